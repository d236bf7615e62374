// Controllers and signals.
#include "check.hpp"

#include <limits>
#include <vector>

#include "../c/tidegate_test.h"

using namespace tidegate;
using namespace std::chrono_literals;

namespace
{

constexpr std::uint64_t second = 1000000000;

std::string refusal(const config &from)
{
    return check::thrown<config_error>([&] { gate g(from); });
}

/// A second in which all of `count` are inside together and come back with `with`.
void a_second(const gate &gate, std::uint64_t from, int count, outcome with)
{
    tidegate_test_set_clock(from);
    std::vector<permit> permits;
    for (int n = 0; n < count; ++n) {
        permits.push_back(gate.admit());
    }
    tidegate_test_set_clock(from + second);
    for (permit &each : permits) {
        each.release(with);
    }
}

}  // namespace

TEST(a_controller_moves_the_limit)
{
    tidegate_test_set_clock(0);
    const gate db(config("db", controller(controller_kind::aimd).min(4).max(200).prior(20)).set_objective(2500ms));
    const auto first = *db.controller();
    CHECK(first.kind == controller_kind::aimd && first.min == 4 && first.max == 200 && first.prior == 20);
    CHECK(first.objective == seconds(2.5) && first.looks == 0);
    for (std::uint64_t n = 0; n < 6; ++n) {
        a_second(db, n * second, 20, outcome::success);
    }
    const auto raised = db.limit();
    CHECK(raised > 20);
    for (std::uint64_t n = 6; n < 12; ++n) {
        a_second(db, n * second, 12, outcome::overload);
    }
    CHECK(db.limit() < raised);
    const auto report = *db.controller();
    CHECK(report.cause == move_cause::lower && to_string(report.cause) == "lower");
    CHECK(report.looks > 6 && report.overload >= 12 && report.good == 0 && report.window >= 1s);
    const auto history = db.limit_history();
    CHECK_EQ(history.size(), report.moves);
    CHECK(history.front().from == 20 && history.front().to == 21 && history.front().cause == "raise");
    CHECK(history.back().to == db.limit() && history.back().cause == "lower");
    CHECK(history.front().age > history.back().age);

    CHECK_EQ(check::thrown<config_error>([&] { db.set_limit(201); }),
             "limit must be a whole number from 4 to 200, got 201");
    db.set_limit(50, "by hand");
    CHECK_EQ(db.controller()->prior, 50U);
    CHECK(!gate("plain", 3).controller());
    tidegate_test_set_clock(0);
}

TEST(what_no_controller_can_be)
{
    const controller goodput(controller_kind::goodput);
    const auto with = [](controller moves) { return config("db", 20).set_controller(moves); };
    const std::string rule = " must be a whole number from 1 to 2147483647, or 0 for its default, got ";
    CHECK_EQ(refusal(with(controller(goodput).min(-1))), "controller.min" + rule + "-1");
    CHECK_EQ(refusal(with(controller(goodput).max(2147483648))), "controller.max" + rule + "2147483648");
    CHECK_EQ(refusal(with(controller(goodput).prior(std::numeric_limits<std::uint64_t>::max()))),
             "controller.prior" + rule + "9223372036854775807");
    CHECK_EQ(refusal(with(controller(goodput).min(30))),
             "the prior, or the limit where there is none, must be from min (30) to max (1000), got 20");
    CHECK_EQ(refusal(config("db", controller(goodput).min(30).ceiling(5))), "ceiling must be at least min (30), got 5");
    CHECK_EQ(gate(config("db", goodput)).limit(), 32);
    CHECK_EQ(gate(with(controller(goodput).ceiling(10))).limit(), 10);
    CHECK_EQ(refusal(config("db", 20).set_objective(0s)), "objective must be longer than zero");
    CHECK_EQ(refusal(config("db", 20).set_objective(0s).set_thresholds(thresholds())),
             "objective must be longer than zero");
    for (const double objective : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
        CHECK(refusal(config("db", 20).set_objective(seconds(objective))).find("objective must be a time") == 0);
    }
}

TEST(what_is_pushed_sheds)
{
    tidegate_test_set_clock(0);
    const gate db(config("db", 20)
                      .add_signal(signal_config(signal_kind::pushed, "waits")
                                      .enter(0.8)
                                      .leave(0.6)
                                      .full(0.9)
                                      .enter_for(0s)
                                      .leave_for(1s)
                                      .dwell(0s)
                                      .ramp(0s))
                      .add_signal(signal_config(signal_kind::errors)));
    CHECK(!db.pressure()->overloaded && db.pressure()->signals.size() == 2);
    db.push_signal("waits", 0.95, 5s);
    const auto refused = db.try_admit(priority::sheddable);
    CHECK(!refused && refused.error().reason() == reason::pressure);
    const auto pressure = *db.pressure();
    CHECK(pressure.overloaded && pressure.level == 1.0 && pressure.transitions == 1);
    CHECK_EQ(pressure.shares[priority::sheddable], 1.0);
    CHECK(pressure.shares[priority::critical_plus] > 0.94 && pressure.shares[priority::critical_plus] < 0.96);
    const auto &waits = pressure.signals[0];
    CHECK(waits.name == "waits" && waits.value == 0.95 && waits.overloaded && waits.level == 1.0 && waits.reads == 1);
    CHECK(waits.enter == 0.8 && waits.leave == 0.6 && waits.full == 0.9);
    CHECK(pressure.signals[1].name == "errors" && !pressure.signals[1].value);
    tidegate_test_set_clock(6 * second);
    CHECK(db.try_admit(priority::sheddable).has_value());

    CHECK_EQ(db.try_push_signal("waits", 70, 5s).code(), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(db.try_push_signal("wait", 0.7, 5s).code(), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(db.try_push_signal("errors", 0.7, 5s).code(), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(db.try_push_signal("waits", 0.7, -5s).code(), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(check::thrown<config_error>([&] { db.push_signal("waits", std::nan(""), 5s); }),
             "error: an argument is outside its rule");
    CHECK(!gate("plain", 3).pressure());
    tidegate_test_set_clock(0);
}

TEST(what_no_signal_can_be)
{
    const signal_config pushed(signal_kind::pushed);
    const auto with = [](signal_config signal) { return config("db", 20).add_signal(std::move(signal)); };
    CHECK(refusal(with(signal_config(pushed).enter(0.7))).find("signals[0]: a signal's thresholds must be") == 0);
    CHECK_EQ(refusal(with(signal_config(pushed).enter(-0.5))), "enter of a signal must be 0 or more, got -0.500000");
    CHECK_EQ(refusal(with(signal_config(pushed).dwell(-1s))), "dwell of a signal must be 0 or more, got -1.000000");
    CHECK(refusal(with(signal_config(pushed).ramp(seconds(std::nan(""))))).find("signals[0]: ramp must be a time") == 0);
    CHECK(refusal(with(signal_config(signal_kind::pushed, "a\nb"))).find("signals[0]: name must be") == 0 ||
          refusal(with(signal_config(signal_kind::pushed, "a\nb"))).find("name must be") == 0);
    CHECK(refusal(with(pushed).add_signal(pushed)).find("\"pushed\" twice") != std::string::npos);
    CHECK(refusal(with(signal_config(signal_kind::latency))).find("objective") != std::string::npos);
    CHECK_EQ(gate(with(signal_config(signal_kind::latency)).set_objective(1s)).pressure()->signals[0].name, "latency");
}
