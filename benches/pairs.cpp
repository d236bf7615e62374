// The pair as C++ programs write it, for the figure `cpp.pair_vs_c`. Compiled by scripts/bench_libraries.sh
// into a shared library that benches/foreign.rs loads.

#include <cstdint>
#include <optional>

#include <tidegate.hpp>

namespace
{

std::optional<tidegate::gate> bench;

}  // namespace

extern "C" int tidegate_bench_open()
{
    auto made = tidegate::gate::make(tidegate::config("bench", 20));
    if (!made) {
        return 1;
    }
    bench = *std::move(made);
    return 0;
}

extern "C" void tidegate_bench_pairs(std::uint64_t n)
{
    const tidegate::gate &gate = *bench;
    while (n-- > 0) {
        if (auto permit = gate.try_admit(tidegate::priority::critical)) {
            asm volatile("" ::: "memory");  // the work, which the compiler cannot see through
        }
    }
}
