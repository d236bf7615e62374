#!/usr/bin/env bash
# Compiles the pairs of other languages and runs a command that times them:
# `scripts/bench_libraries.sh cargo bench`.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/target/c/bench
mkdir -p "$out"
cargo build --locked --quiet --release -p tidegate-c
ln -sfn ../../release/libtidegate.so "$out/libtidegate.so.1"

# compile COMPILER STANDARD SOURCE: for the benchmark to load, but with thread-local variables as a program has them.
compile() {
    "$1" "-std=$2" -O2 -fPIC -ftls-model=initial-exec -shared -Iinclude "benches/$3" -o "$out/${3%.*}-$1.so" \
        -Ltarget/release "-Wl,-rpath,$out" -ltidegate
}

if command -v cc >/dev/null; then
    compile cc c11 pairs.c
    export TIDEGATE_BENCH_C=$out/pairs-cc.so
    if command -v c++ >/dev/null && [ -e benches/pairs.cpp ]; then
        compile c++ c++17 pairs.cpp
        export TIDEGATE_BENCH_CPP=$out/pairs-c++.so
    fi
else
    echo "SKIPPED  the pairs of C and C++: no compiler" >&2
fi

exec "$@"
