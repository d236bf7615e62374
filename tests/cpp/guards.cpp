// Bodies that run with a permit held.
#include "check.hpp"

#include <functional>
#include <memory>
#include <string>

using namespace tidegate;

namespace
{

struct Boom : std::runtime_error {
    Boom() : std::runtime_error("boom") {}
};

int plus_one(int number)
{
    return number + 1;
}

}  // namespace

TEST(run_holds_a_permit_while_the_body_runs)
{
    const gate db("db", 5);
    CHECK_EQ(db.run([&] { return db.in_flight(); }), 1);
    CHECK_EQ(db.run(priority::sheddable, [&] { return db.in_flight(); }), 1);
    CHECK_EQ(db.run(priority::critical, 3, [&] { return db.in_flight(); }), 3);
    CHECK_EQ(db.stats().admitted[priority::sheddable], 1U);
    check::at_rest(db);
}

TEST(run_returns_what_the_body_returns)
{
    const gate db("db", 1);
    int number = 7;
    int &same = db.run([&]() -> int & { return number; });
    CHECK(&same == &number);
    auto owned = db.run([] { return std::make_unique<int>(3); });
    CHECK_EQ(*owned, 3);
    db.run([] {});
}

TEST(a_body_that_throws_frees_the_permit_and_its_exception_comes_out)
{
    const gate db("db", 1);
    const Boom *thrown = nullptr;
    try {
        db.run([&] {
            try {
                throw Boom();
            } catch (const Boom &boom) {
                thrown = &boom;
                throw;
            }
        });
    } catch (const Boom &boom) {
        CHECK(&boom == thrown);  // the same object, not a copy
    }
    CHECK(thrown != nullptr);
    CHECK_EQ(db.stats().released[outcome::ignore], 1U);
    check::at_rest(db);
    try {
        db.run([] { throw 42; });
    } catch (int number) {
        CHECK_EQ(number, 42);
    }
    check::at_rest(db);
}

TEST(a_body_may_say_what_it_came_to)
{
    const gate db("db", 1);
    db.run([](permit &held) { held.set_outcome(outcome::overload); });
    db.run([](permit &held) { held.release(outcome::ignore); });
    CHECK_EQ(db.stats().released[outcome::overload], 1U);
    CHECK_EQ(db.stats().released[outcome::ignore], 1U);
}

TEST(a_full_gate_runs_no_body)
{
    const gate db("db", 1);
    const auto inside = db.admit();
    bool ran = false;
    CHECK(!check::thrown<shed_error>([&] { db.run([&] { ran = true; }); }).empty());
    CHECK(!check::thrown<config_error>([&] { db.run(priority::critical, 0, [&] { ran = true; }); }).empty());
    CHECK(!ran);
}

TEST(runs_nest)
{
    const gate db("db", 2);
    CHECK_EQ(db.run([&] { return db.run([&] { return db.in_flight(); }); }), 2);
    try {
        db.run([&] { db.run([] { throw Boom(); }); });
    } catch (const Boom &) {
    }
    CHECK_EQ(db.stats().released[outcome::ignore], 2U);
    check::at_rest(db);
}

TEST(guard_makes_a_function_that_holds_a_permit_for_each_call)
{
    const gate db("db", 1);
    const auto guarded = db.guard(plus_one);
    CHECK_EQ(guarded(1), 2);
    CHECK_EQ(guarded(2), 3);
    CHECK_EQ(db.stats().admitted[priority::critical], 2U);
    const auto inside = db.admit();
    CHECK(!check::thrown<shed_error>([&] { guarded(1); }).empty());
}

TEST(a_guarded_function_throws_what_it_throws)
{
    const gate db("db", 1);
    const auto guarded = db.guard([](const std::string &) { throw Boom(); }, priority::sheddable);
    for (int round = 0; round < 3; ++round) {
        CHECK_EQ(check::thrown<Boom>([&] { guarded("x"); }), "boom");
        check::at_rest(db);
    }
    CHECK_EQ(db.stats().released[outcome::ignore], 3U);
    CHECK_EQ(db.stats().admitted[priority::sheddable], 3U);
}

TEST(a_guarded_function_keeps_the_gate)
{
    std::function<int(int)> kept;
    {
        const gate db("short", 1);
        kept = db.guard([calls = 0](int number) mutable { return number + ++calls; });
    }
    CHECK_EQ(kept(10), 11);
    CHECK_EQ(kept(10), 12);
}

TEST(a_guarded_function_takes_and_returns_what_cannot_be_copied)
{
    const gate db("db", 2);
    auto guarded = db.guard([](std::unique_ptr<int> number) { return number; }, priority::critical, 2);
    CHECK_EQ(*guarded(std::make_unique<int>(4)), 4);
    struct Owner {
        std::unique_ptr<int> number;
        int operator()() const { return *number; }
    };
    const auto owner = db.guard(Owner{std::make_unique<int>(5)});
    CHECK_EQ(owner(), 5);
    check::at_rest(db);
}
