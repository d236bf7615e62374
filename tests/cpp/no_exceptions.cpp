// The whole surface without exceptions and without RTTI: everything that can fail is a value.
#include <tidegate.hpp>

#include <cstdio>

using namespace tidegate;
using namespace std::chrono_literals;

#define CHECK(holds)                                                                                         \
    if (!(holds))                                                                                            \
    return std::printf("%s:%d: %s\n", __FILE__, __LINE__, #holds), 1

int main()
{
    const auto wrong = gate::make(config("db", -1));
    CHECK(!wrong && wrong.error().status.code() == TIDEGATE_ERR_ARGUMENT);
    CHECK(wrong.error().message == "limit must be a whole number from 0 to 2147483647, got -1");

    auto made = gate::make(
        config("db", 4).set_thresholds(thresholds().share(priority::sheddable, 0.5)).set_timing(true));
    CHECK(made);
    const gate db = *std::move(made);
    {
        auto permit = db.try_admit(priority::critical, 2);
        CHECK(permit && permit->weight() == 2 && db.in_flight() == 2);
        const auto shed = db.try_admit(priority::sheddable);
        CHECK(!shed && shed.error().reason() == reason::priority);
        CHECK(permit->release(outcome::overload) && !permit->release());
    }
    CHECK(db.try_admit(priority::critical, 0).error().status().is_error());
    CHECK(db.try_set_limit(-1).is_error() && db.limit() == 4);
    CHECK(db.try_set_limit(8, "no cause").ok() && db.limit() == 8);
    CHECK(db.try_set_thresholds(thresholds().share(priority::sheddable, 2)).is_error());
    CHECK(db.try_set_thresholds(thresholds()).ok());
    CHECK(db.try_set_enforce(false).ok() && db.try_set_enforce(true).ok());
    CHECK(*db.try_retry_after() == seconds(0));
    CHECK(db.try_latency(priority::critical, 0.5)->has_value());
    CHECK(db.try_latency(priority::critical, 2).error().is_error());
    const auto stats = db.try_stats();
    CHECK(stats && stats->released[outcome::overload] == 1);
    CHECK(db.try_drain(-1s).is_error() && db.try_admit());
    CHECK(db.try_close().ok() && db.try_drain(0s).ok() && db.try_drain().ok());
    CHECK(db.try_admit().error().reason() == reason::closed);
    return 0;
}
