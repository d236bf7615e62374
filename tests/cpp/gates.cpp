// Gates: how they are made, changed, read and closed.
#include "check.hpp"

#include <limits>
#include <thread>
#include <vector>

using namespace tidegate;
using namespace std::chrono_literals;

namespace
{

const std::string limit_rule = "limit must be a whole number from 0 to 2147483647, got ";
const std::string weight_rule = "weight must be a whole number from 1 to 2147483647, got ";

}  // namespace

TEST(what_is_wrong_with_a_configuration_is_told_in_words)
{
    const auto text = [](const config &from) { return check::thrown<config_error>([&] { gate g(from); }); };
    CHECK_EQ(text(config("db", -1)), limit_rule + "-1");
    CHECK_EQ(text(config("db", 2147483648)), limit_rule + "2147483648");
    CHECK_EQ(text(config("db", std::numeric_limits<std::uint64_t>::max())),
             limit_rule + "9223372036854775807");
    CHECK(text(config("", 1)).find("name must be 1 to 255 bytes of UTF-8") == 0);
    CHECK(text(config("a\nb", 1)).find("name must be") == 0);
    CHECK(text(config(std::string(256, 'x'), 1)).find("name must be") == 0);
    CHECK(text(config("\xff", 1)).find("name must be") == 0);
    for (const double fraction : {1.01, -0.1, -0.0000001, 1e300, std::nan("")}) {
        const auto found =
            text(config("db", 9).set_thresholds(thresholds().share(priority::sheddable, fraction)));
        CHECK(found.find("a threshold must be a fraction of the limit from 0 to 1, got ") == 0);
    }
    CHECK(text(config("db", 9).set_thresholds(thresholds().reserve(priority::sheddable, -1)))
              .find("a reserve must") == 0);
    CHECK(text(config("db", 9).set_thresholds(thresholds().share(priority::critical_plus, 0.5)))
              .find("the threshold of critical_plus is the limit itself") == 0);
    CHECK(text(config("db", 9).set_thresholds(
                   thresholds().share(priority::critical, 0.5).share(priority::sheddable, 0.6)))
              .find("thresholds must not rise as importance falls") == 0);
    CHECK_EQ(text(config("db", 9).set_thresholds(thresholds().share(priority::gate_default, 0.5))),
             "a threshold belongs to one of the four priorities, got gate_default");
    CHECK(text(config("db", 9).set_default_priority(priority::gate_default))
              .find("default_priority must be 0 (critical_plus)") == 0);
}

TEST(without_exceptions_it_is_told_as_a_value)
{
    const auto made = gate::make(config("db", -1));
    CHECK(!made);
    CHECK_EQ(made.error().status.code(), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(made.error().message, limit_rule + "-1");
    const auto good = gate::make(config("db", 3));
    CHECK(good.has_value());
    CHECK_EQ(good->limit(), 3);
}

TEST(a_gate_is_what_its_configuration_says)
{
    const gate db(config("d\xc3\xa9p\xc3\xb4t/1", 20)
                      .set_thresholds(
                          thresholds().share(priority::sheddable_plus, 0.5).reserve(priority::sheddable, 15))
                      .set_default_priority(priority::sheddable_plus)
                      .set_enforce(false)
                      .set_timing(true));
    CHECK_EQ(db.name(), "d\xc3\xa9p\xc3\xb4t/1");
    const auto stats = db.stats();
    CHECK_EQ(stats.limit, 20U);
    CHECK_EQ(stats.thresholds[priority::critical_plus], 20U);
    CHECK_EQ(stats.thresholds[priority::sheddable_plus], 10U);
    CHECK_EQ(stats.thresholds[priority::sheddable], 5U);
    CHECK(stats.default_priority == priority::sheddable_plus);
    CHECK(!stats.enforce && stats.timing && !stats.closed);
}

TEST(a_shed_says_why)
{
    const gate db("db", 4);
    const auto heavy = db.admit(priority::critical, 3);
    const auto shed = db.try_admit(priority::sheddable);
    CHECK(!shed);
    CHECK(shed.error().reason() == reason::priority);
    CHECK(shed.error().status().is_shed());
    CHECK(shed.error().priority() == priority::sheddable);
    CHECK_EQ(shed.error().weight(), 1);
    CHECK_EQ(std::string(shed.error().message()), tidegate_status_str(TIDEGATE_SHED_PRIORITY));
    CHECK(!shed.error().retry_after());
    const auto last = db.admit();
    const auto full = db.try_admit(priority::critical_plus);
    CHECK(full.error().reason() == reason::limit);
    CHECK(db.try_admit(priority::critical, 5).error().retry_after() == never);
    CHECK_EQ(check::thrown<shed_error>([&] { (void)db.admit(priority::critical_plus); }),
             "gate 'db' full: 4 of 4 in flight (priority critical_plus)");
    CHECK_EQ(check::thrown<shed_error>([&] { (void)db.admit(priority::critical, 5); }),
             "gate 'db' full: 4 of 4 in flight (priority critical); no retry can succeed");
    CHECK(check::thrown<error>([&] { (void)db.admit(); }).find("gate 'db' full") == 0);
}

TEST(a_gate_with_a_rate)
{
    gate db(config("db", 20).set_rate(rate(0, per::second, 2)));
    CHECK_EQ(db.rate()->burst(), 2);
    const auto first = db.admit();
    const auto second = db.admit();
    CHECK_EQ(check::thrown<shed_error>([&] { (void)db.admit(); }),
             "gate 'db' over its rate of 0/s (burst 2): 2 of 20 in flight (priority gate_default); "
             "no retry can succeed");
    const auto refused = db.try_admit();
    CHECK(refused.error().reason() == reason::rate);
    db.set_rate(rate(150, per::minute));
    CHECK_EQ(db.rate()->count(), 150);
    CHECK(db.rate()->unit() == per::minute);
    CHECK_EQ(db.rate()->burst(), 3);
    CHECK(db.try_admit().has_value());
    db.set_rate(std::nullopt);
    CHECK(!db.rate());
    CHECK(db.try_admit().has_value());
}

TEST(a_rate_outside_its_rule_is_an_error_and_changes_nothing)
{
    gate db(config("db", 20).set_rate(rate(1, per::hour)));
    for (const rate &wrong : {rate(-1, per::second), rate(10000000001, per::second), rate(1, per::second, -1),
                              rate(1, per::second, 2147483648), rate(1, static_cast<per>(2))}) {
        CHECK_EQ(db.try_set_rate(wrong).code(), TIDEGATE_ERR_ARGUMENT);
        CHECK(check::thrown<config_error>([&] {
                  db.set_rate(wrong);
              }).find("a rate must be a whole number from 0 to 10000000000") == 0);
        CHECK(!check::thrown<config_error>([&] { gate g(config("db", 20).set_rate(wrong)); }).empty());
    }
    CHECK(db.rate()->unit() == per::hour);
    CHECK_EQ(db.stats().generation, 0U);
    CHECK(check::thrown<config_error>([] {
              gate g(config("db", 1).set_rate(rate(-1, per::second)));
          }).find("rate must be COUNT/UNIT") == 0);
}

TEST(a_shed_error_outlives_its_gate)
{
    std::exception_ptr kept;
    try {
        const gate db("short", 1);
        const auto inside = db.admit();
        (void)db.admit(priority::sheddable, 1);
    } catch (const shed_error &) {
        kept = std::current_exception();
    }
    try {
        std::rethrow_exception(kept);
    } catch (const shed_error &shed) {
        CHECK(shed.reason() == reason::limit && shed.priority() == priority::sheddable && shed.weight() == 1);
        CHECK(!shed.retry_after());
        CHECK_EQ(std::string(shed.what()), "gate 'short' full: 1 of 1 in flight (priority sheddable)");
    }
}

TEST(numbers_outside_their_rule_are_errors_and_change_nothing)
{
    const gate db("db", 10);
    for (const whole wrong :
         {whole(-1), whole(2147483648), whole(4294967296), whole(4294967301), whole(std::uint64_t{1} << 63),
          whole(std::numeric_limits<std::uint64_t>::max())}) {
        const auto text = std::to_string(wrong.get());
        CHECK_EQ(check::thrown<config_error>([&] { db.set_limit(wrong); }), limit_rule + text);
        CHECK_EQ(db.try_set_limit(wrong).code(), TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(check::thrown<config_error>([&] { (void)db.admit(priority::critical, wrong); }),
                 weight_rule + text);
        const auto refused = db.try_admit(priority::critical, wrong);
        CHECK(!refused && refused.error().status().is_error() && !refused.error().reason());
        CHECK(!refused.error().retry_after());
        CHECK_EQ(check::thrown<config_error>([&] { (void)db.retry_after(priority::critical, wrong); }),
                 weight_rule + text);
    }
    CHECK_EQ(check::thrown<config_error>([&] { (void)db.admit(priority::critical, 0); }), weight_rule + "0");
    CHECK_EQ(check::thrown<config_error>([&] { (void)db.admit(static_cast<priority>(4)); }),
             "no priority has the number 4");
    const auto stats = db.stats();
    CHECK_EQ(stats.limit, 10U);
    CHECK_EQ(stats.generation, gate("db", 10).stats().generation);
    check::at_rest(db);
    db.set_limit(0);
    CHECK(!db.try_admit());
    db.set_limit(largest, "a test");
    CHECK_EQ(db.admit(priority::critical, largest).weight(), largest);
}

TEST(thresholds_of_a_gate_in_use)
{
    const gate db("db", 100);
    db.set_thresholds(thresholds().share(priority::sheddable, 0.5).reserve(priority::sheddable_plus, 20));
    CHECK_EQ(db.stats().thresholds[priority::sheddable], 50U);
    CHECK_EQ(db.stats().thresholds[priority::sheddable_plus], 80U);
    CHECK(check::thrown<config_error>([&] {
              db.set_thresholds(thresholds().share(priority::critical, 0.1).share(priority::sheddable, 0.2));
          }).find("contradicts itself") != std::string::npos);
    CHECK(check::thrown<config_error>([&] {
              db.set_thresholds(thresholds().share(priority::sheddable, 2));
          }).find("got 2") != std::string::npos);
    CHECK(db.try_set_thresholds(thresholds().share(priority::sheddable, 2)).is_error());
    CHECK_EQ(db.stats().thresholds[priority::sheddable], 50U);
    db.set_thresholds(thresholds());
    CHECK_EQ(db.stats().thresholds[priority::sheddable], 75U);
}

TEST(dry_run_lets_in_and_counts)
{
    const gate db("db", 1);
    db.set_enforce(false);
    const auto inside = db.admit();
    const auto over = db.admit(priority::sheddable);
    CHECK(!inside.over() && over.over());
    CHECK_EQ(db.stats().would_shed[priority::sheddable], 1U);
    CHECK_EQ(db.stats().over_in_flight, 1U);
    CHECK_EQ(db.in_flight(), 1);
    db.set_enforce(true);
    CHECK(!db.try_admit());
}

TEST(every_attempt_is_counted_once)
{
    const gate db("db", 2);
    {
        const auto one = db.admit();
        auto two = db.admit(priority::critical_plus);
        CHECK(!db.try_admit(priority::critical));
        CHECK(!db.try_admit(priority::sheddable));
        two.set_outcome(outcome::overload);
    }
    const auto stats = db.stats();
    CHECK_EQ(stats.admitted[priority::critical], 1U);
    CHECK_EQ(stats.admitted[priority::critical_plus], 1U);
    CHECK_EQ(stats.fallback_priority, 1U);
    CHECK_EQ(stats.shed[priority::critical][reason::limit], 1U);
    CHECK_EQ(stats.shed[priority::sheddable][reason::limit], 1U);
    CHECK_EQ(stats.shed[priority::sheddable][reason::priority], 0U);
    CHECK_EQ(stats.released[outcome::success], 1U);
    CHECK_EQ(stats.released[outcome::overload], 1U);
    CHECK_EQ(stats.high_water, 2U);
    check::at_rest(db);
}

TEST(a_closed_gate_sheds_and_drains)
{
    const gate db("db", 2);
    auto inside = db.admit();
    CHECK(!db.drain(0ms));
    CHECK(db.stats().closed);
    CHECK(db.try_admit().error().reason() == reason::closed);
    CHECK(db.retry_after() == never);
    CHECK_EQ(check::thrown<shed_error>([&] { (void)db.admit(); }), "gate 'db' is closed");
    CHECK(db.try_drain(1ns).reason() == reason::timeout);
    std::thread other([moved = std::move(inside)]() mutable { moved.release(); });
    db.drain();
    other.join();
    CHECK(db.drain(0s) && db.try_drain(std::chrono::hours::max()).ok());
    db.close();
    check::at_rest(db);
}

TEST(a_wrong_timeout_closes_nothing)
{
    const gate db("db", 1);
    for (const seconds wrong :
         {seconds(-1), seconds(-1e-9), seconds(-0.001), seconds(std::nan("")), -never}) {
        CHECK_EQ(check::thrown<config_error>([&] { (void)db.drain(wrong); }),
                 "a timeout must not be negative or NaN");
    }
    CHECK_EQ(db.try_drain(-1ms).code(), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(db.try_drain(std::chrono::hours::min()).code(), TIDEGATE_ERR_ARGUMENT);
    CHECK(!db.stats().closed);
    CHECK(db.drain(never));
}

TEST(retry_after_is_known_unknown_or_never)
{
    const gate db("db", 1);
    CHECK(db.retry_after() == seconds(0));
    CHECK(db.retry_after(priority::critical, 2) == never);
    const auto inside = db.admit();
    CHECK(!db.retry_after());
    CHECK(db.try_retry_after().has_value());
    CHECK(!db.try_retry_after(priority::critical, 0).has_value());
}

TEST(latency_is_measured_where_asked_for)
{
    const gate plain("plain", 1);
    plain.run([] {});
    CHECK(!plain.latency(priority::critical, 0.5));
    const gate timed(config("timed", 1).set_timing(true));
    CHECK(!timed.latency(priority::critical, 0.5));
    timed.run([] { std::this_thread::sleep_for(2ms); });
    CHECK(timed.latency(priority::critical, 0.5) > seconds(0.0019));
    CHECK(!timed.latency(priority::sheddable, 0.5));
    for (const double wrong : {-0.1, 1.1, std::nan("")}) {
        CHECK(!check::thrown<config_error>([&] { (void)timed.latency(priority::critical, wrong); }).empty());
    }
    CHECK(timed.try_latency(priority::gate_default, 0.5).error().is_error());
}

TEST(copies_are_the_same_gate)
{
    gate one("db", 1);
    const gate two = one;
    const auto inside = one.admit();
    CHECK(!two.try_admit());
    std::vector<gate> others(3, two);
    one = gate("other", 5);
    CHECK_EQ(two.name(), "db");
    CHECK_EQ(two.in_flight(), 1);
    CHECK_EQ(one.limit(), 5);
}

TEST(a_handle_that_was_moved_away_answers_with_errors)
{
    gate from("db", 1);
    const gate to = std::move(from);
    CHECK_EQ(to.limit(), 1);
    // NOLINTBEGIN(bugprone-use-after-move)
    CHECK_EQ(from.try_admit().error().status().code(), TIDEGATE_ERR_NULL);
    CHECK_EQ(from.try_set_limit(1).code(), TIDEGATE_ERR_NULL);
    CHECK(from.name().empty() && from.limit() < 0 && from.in_flight() < 0);
    CHECK(!from.try_stats() && !from.try_retry_after());
    CHECK(!check::thrown<error>([&] { (void)from.admit(); }).empty());
    CHECK(!check::thrown<error>([&] { from.close(); }).empty());
    CHECK(!check::thrown<error>([&] { (void)from.drain(0s); }).empty());
    // NOLINTEND(bugprone-use-after-move)
}
