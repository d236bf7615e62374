// Tests as functions: TEST(name) { CHECK(...); }. What is linked with check.cpp is a program that runs them
// all.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>

#include <tidegate.hpp>

namespace check
{

struct Registered {
    Registered(const char *name, void (*body)());
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void that(bool holds, const std::string &what, const char *file, int line)
{
    if (!holds) {
        throw Failure(std::string(file) + ":" + std::to_string(line) + ": " + what);
    }
}

template <class A, class B>
void equal(const A &found, const B &wanted, const std::string &what, const char *file, int line)
{
    std::ostringstream text;
    text << what << " is " << found << ", not " << wanted;
    that(found == wanted, text.str(), file, line);
}

/// How much of a test's work to do, by TIDEGATE_TEST_PERCENT: less under valgrind, more in a soak.
inline int scaled(int work)
{
    const char *percent = std::getenv("TIDEGATE_TEST_PERCENT");
    return percent == nullptr ? work : std::max(1, static_cast<int>(work * std::atol(percent) / 100));
}

/// What `body` says when it throws an `Error`.
template <class Error, class Body>
std::string thrown(Body body)
{
    try {
        body();
    } catch (const Error &error) {
        return error.what();
    }
    throw Failure("nothing was thrown");
}

/// Nothing is inside, and all that was admitted was released.
inline void at_rest(const tidegate::gate &gate)
{
    const auto stats = gate.stats();
    std::uint64_t admitted = 0;
    std::uint64_t released = 0;
    for (const auto priority : tidegate::priorities) {
        admitted += stats.admitted[priority];
    }
    for (const auto outcome : tidegate::outcomes) {
        released += stats.released[outcome];
    }
    equal(stats.in_flight, 0U, "in_flight", __FILE__, __LINE__);
    equal(stats.over_in_flight, 0U, "over_in_flight", __FILE__, __LINE__);
    equal(released, admitted, "released", __FILE__, __LINE__);
}

}  // namespace check

#define TEST(name)                                                                                           \
    static void name();                                                                                      \
    static const check::Registered name##_registered(#name, name);                                           \
    static void name()

#define CHECK(...) check::that((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define CHECK_EQ(found, wanted) check::equal(found, wanted, #found, __FILE__, __LINE__)
