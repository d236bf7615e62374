// Names, numbers and values.
#include "check.hpp"

#include <limits>
#include <type_traits>

using namespace tidegate;

static_assert(std::is_move_constructible_v<permit> && std::is_nothrow_move_assignable_v<permit>);
static_assert(!std::is_copy_constructible_v<permit> && !std::is_copy_assignable_v<permit>);
static_assert(!std::is_default_constructible_v<permit>);
static_assert(std::is_copy_constructible_v<gate> && std::is_nothrow_move_constructible_v<gate>);
static_assert(noexcept(std::declval<gate>().try_admit()));

// Neither a fraction nor a flag nor a priority is a number of anything.
static_assert(!std::is_convertible_v<double, whole> && !std::is_convertible_v<float, whole>);
static_assert(!std::is_convertible_v<bool, whole> && !std::is_convertible_v<priority, whole>);

template <class Integer>
constexpr std::int64_t as_whole(Integer number)
{
    return whole(number).get();
}

static_assert(as_whole(std::int8_t{-1}) == -1);
static_assert(as_whole(-1LL) == -1);
static_assert(as_whole(4294967301ULL) == 4294967301);
static_assert(as_whole(std::numeric_limits<std::int64_t>::min()) == std::numeric_limits<std::int64_t>::min());
static_assert(as_whole(std::uint64_t{1} << 63) == std::numeric_limits<std::int64_t>::max());
static_assert(as_whole(std::numeric_limits<std::uint64_t>::max()) ==
              std::numeric_limits<std::int64_t>::max());

TEST(names_are_those_of_every_language)
{
    CHECK_EQ(to_string(priority::critical_plus), "critical_plus");
    CHECK_EQ(to_string(priority::essential), "critical");
    CHECK_EQ(to_string(priority::sheddable_plus), "sheddable_plus");
    CHECK_EQ(to_string(priority::non_essential), "sheddable");
    CHECK_EQ(to_string(static_cast<priority>(9)), "unknown");
    std::string all;
    for (const reason each : reasons) {
        all += std::string(to_string(each)) + " ";
    }
    for (const outcome each : outcomes) {
        all += std::string(to_string(each)) + " ";
    }
    CHECK_EQ(all, "limit priority rate pressure closed timeout share success overload ignore ");
    CHECK_EQ(to_string(static_cast<reason>(0)), "unknown");
    CHECK_EQ(to_string(static_cast<outcome>(3)), "unknown");
}

TEST(a_priority_has_a_name_and_back)
{
    for (const priority each : priorities) {
        CHECK(priority_from(to_string(each)) == each);
    }
    CHECK(priority_from("essential") == priority::critical);
    CHECK(priority_from("non-essential") == priority::sheddable);
    for (const auto *none : {"", "Critical", "critical ", "gate_default", "unknown"}) {
        CHECK(!priority_from(none));
    }
}

TEST(a_status_is_done_or_shed_or_an_error)
{
    CHECK(status().ok() && !status().is_shed() && !status().is_error() && !status().reason());
    const status shed(TIDEGATE_SHED_PRIORITY);
    CHECK(!shed.ok() && shed.is_shed() && !shed.is_error());
    CHECK(shed.reason() == reason::priority);
    const status stale(TIDEGATE_ERR_STALE);
    CHECK(!stale.ok() && !stale.is_shed() && stale.is_error() && !stale.reason());
    CHECK_EQ(std::string(stale.message()), tidegate_status_str(TIDEGATE_ERR_STALE));
    CHECK(stale == status(TIDEGATE_ERR_STALE) && stale != shed);
}

TEST(never_is_never_reached)
{
    CHECK(never > std::chrono::hours(24 * 365 * 1000));
    CHECK(never == seconds(never));
}

TEST(header_and_library_of_two_versions_are_told_apart)
{
    CHECK(!detail::abi_mismatch(TIDEGATE_ABI_VERSION));
    const auto mismatch = detail::abi_mismatch(9, 1);
    CHECK_EQ(mismatch->status.code(), TIDEGATE_ERR_VERSION);
    CHECK_EQ(mismatch->message, "this program was compiled with tidegate.h of ABI version 1 and runs with a "
                                "libtidegate of ABI version 9: install both from one release");
}
