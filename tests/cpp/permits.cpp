// Permits: given back exactly once, whatever happens.
#include "check.hpp"

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace tidegate;

namespace
{

struct Boom {};

/// Exceptions under way, as the standard library counts them and as permits do.
using Counts = std::array<int, 2>;

/// Counts when it is destroyed.
struct Probe {
    Counts &counts;
    ~Probe() { counts = {std::uncaught_exceptions(), static_cast<int>(detail::uncaught_exceptions())}; }
};

/// Has a probe destroyed by another exception than the one that destroys it itself.
struct Nested {
    Counts &counts;
    ~Nested()
    {
        try {
            const Probe probe{counts};
            throw Boom();
        } catch (const Boom &) {
        }
    }
};

template <class Destroyed>
Counts counted()
{
    Counts counts{-1, -1};
    try {
        const Destroyed destroyed{counts};
        throw Boom();
    } catch (const Boom &) {
    }
    return counts;
}

std::uint64_t released(const gate &db, outcome of)
{
    return db.stats().released[of];
}

}  // namespace

TEST(a_permit_gives_itself_back_at_the_end_of_its_block)
{
    const gate db("db", 1);
    {
        const auto permit = db.try_admit(priority::sheddable_plus);
        CHECK(permit.has_value());
        CHECK(permit->priority() == priority::sheddable_plus);
        CHECK_EQ(permit->weight(), 1);
        CHECK(!permit->over() && !permit->released());
        CHECK_EQ(db.in_flight(), 1);
    }
    CHECK_EQ(released(db, outcome::success), 1U);
    check::at_rest(db);
}

TEST(only_the_first_release_counts)
{
    const gate db("db", 5);
    auto permit = db.admit();
    CHECK(permit.release(outcome::overload));
    CHECK(!permit.release(outcome::success));
    CHECK(permit.released());
    CHECK(permit.priority() == priority::gate_default && permit.weight() == 0 && !permit.over());
    const auto other = db.admit();
    CHECK(!permit.release());
    CHECK_EQ(db.in_flight(), 1);
    CHECK_EQ(released(db, outcome::overload), 1U);
    CHECK_EQ(released(db, outcome::success), 0U);
}

TEST(a_number_that_is_no_outcome_leaves_the_permit_held)
{
    const gate db("db", 1);
    {
        auto permit = db.admit();
        permit.set_outcome(outcome::overload);
        permit.set_outcome(static_cast<outcome>(3));
        CHECK(!permit.release(static_cast<outcome>(-1)));
        CHECK(!permit.released());
    }
    CHECK_EQ(released(db, outcome::overload), 1U);
    check::at_rest(db);
}

TEST(moved_it_is_one_permit)
{
    const gate db("db", 3);
    {
        auto first = db.admit();
        auto second = std::move(first);
        CHECK(first.released() && !second.released());  // NOLINT(bugprone-use-after-move)
        CHECK(!first.release());                        // NOLINT(bugprone-use-after-move)
        CHECK_EQ(db.in_flight(), 1);

        auto third = db.admit(priority::critical, 2);
        CHECK_EQ(db.in_flight(), 3);
        third = std::move(second);  // what it held goes back
        CHECK_EQ(db.in_flight(), 1);
        auto &same = third;
        third = std::move(same);
        CHECK(!third.released());

        auto result = db.try_admit();
        auto taken = *std::move(result);
        CHECK_EQ(db.in_flight(), 2);
        std::vector<permit> many;
        many.push_back(std::move(taken));
        many.push_back(std::move(third));
        CHECK_EQ(db.in_flight(), 2);
        many.clear();
        CHECK_EQ(db.in_flight(), 0);
    }
    CHECK_EQ(released(db, outcome::success), 3U);
    check::at_rest(db);
}

TEST(the_value_of_a_result_moves_out_or_throws)
{
    const gate db("db", 1);
    const permit inside = db.try_admit().value();
    auto shed = db.try_admit();
    CHECK(check::thrown<shed_error>([&] { (void)shed.value(); }).find("full") != std::string::npos);
    CHECK(!check::thrown<config_error>([&] { (void)db.try_admit(priority::critical, 0).value(); }).empty());
}

TEST(an_exception_that_destroys_it_says_nothing_about_the_resource)
{
    const gate db("db", 1);
    try {
        const auto permit = db.try_admit();
        throw Boom();
    } catch (const Boom &) {
    }
    CHECK_EQ(released(db, outcome::ignore), 1U);
    try {
        auto permit = db.admit();
        permit.set_outcome(outcome::overload);
        throw Boom();
    } catch (const Boom &) {
    }
    CHECK_EQ(released(db, outcome::overload), 1U);
    try {
        throw Boom();
    } catch (const Boom &) {
        const auto permit = db.admit();  // the exception was caught: this is a life of its own
    }
    CHECK_EQ(released(db, outcome::success), 1U);
    check::at_rest(db);
}

TEST(a_permit_born_while_an_exception_is_under_way_is_not_destroyed_by_it)
{
    const gate db("db", 2);
    struct Rollback {
        const gate &db;
        ~Rollback()
        {
            {
                const auto permit = db.admit();
            }
            try {
                const auto permit = db.admit();
                throw Boom();
            } catch (const Boom &) {
            }
        }
    };
    try {
        const Rollback rollback{db};
        throw Boom();
    } catch (const Boom &) {
    }
    CHECK_EQ(released(db, outcome::success), 1U);
    CHECK_EQ(released(db, outcome::ignore), 1U);
}

TEST(exceptions_under_way_are_counted_as_the_standard_library_does)
{
    const auto on_this_thread = [] {
        const bool once = counted<Probe>() == Counts{1, 1};
        const bool nested = counted<Nested>() == Counts{2, 2};
        return once && nested && detail::uncaught_exceptions() == 0;
    };
    CHECK(on_this_thread());
    CHECK(std::async(std::launch::async, on_this_thread).get());
}

TEST(a_permit_outlives_its_gate)
{
    std::optional<permit> kept;
    std::optional<permit> released_late;
    {
        const gate db("short", 2);
        kept = db.admit();
        released_late = db.admit();
    }
    CHECK(released_late->release());
    CHECK(!released_late->release());
    kept.reset();
}

TEST(a_permit_may_be_given_back_by_another_thread)
{
    const gate db("db", 1);
    std::async(std::launch::async, [permit = db.admit()]() mutable { permit.release(); }).get();
    std::thread([permit = std::make_unique<tidegate::permit>(db.admit())] {}).join();
    CHECK_EQ(released(db, outcome::success), 2U);
    check::at_rest(db);
}

TEST(a_storm_of_threads_loses_nothing)
{
    constexpr int threads = 4;
    const int rounds = check::scaled(3000);
    const gate db("db", 3);
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    std::atomic<std::uint64_t> admitted{0};
    std::vector<std::thread> all;
    for (int number = 0; number < threads; ++number) {
        all.emplace_back([&, number] {
            for (int round = 0; round < rounds; ++round) {
                const auto of = priorities[static_cast<std::size_t>(round + number) % priorities.size()];
                try {
                    auto permit = db.admit(of);
                    const int now = ++inside;
                    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                    }
                    ++admitted;
                    --inside;
                    if (round % 3 == 0) {
                        throw Boom();
                    }
                    if (round % 3 == 1) {
                        auto moved = std::move(permit);
                        moved.release(outcome::overload);
                    }
                } catch (const Boom &) {
                } catch (const shed_error &) {
                }
            }
        });
    }
    for (auto &thread : all) {
        thread.join();
    }
    CHECK(most <= 3);
    const auto stats = db.stats();
    std::uint64_t attempts = 0;
    std::uint64_t counted = 0;
    for (const auto of : priorities) {
        attempts += stats.admitted[of] + stats.shed[of][reason::limit] + stats.shed[of][reason::priority];
        counted += stats.admitted[of];
    }
    CHECK_EQ(attempts, static_cast<std::uint64_t>(threads * rounds));
    CHECK_EQ(counted, admitted.load());
    CHECK(stats.high_water <= 3);
    check::at_rest(db);
}
