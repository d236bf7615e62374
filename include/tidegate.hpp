/// Tidegate for C++17: gates, permits that give themselves back, and errors as values or as exceptions.
///
///     #include <tidegate.hpp>
///
///     tidegate::gate db("db", 20);                                 // throws config_error
///
///     if (auto permit = db.try_admit(tidegate::priority::sheddable)) {
///         query();                                                 // given back at the end of the block
///     } else {
///         answer_503(permit.error().retry_after());
///     }
///
///     db.run([&] { query(); });                                    // throws shed_error when it is full
///
/// It is a thin layer over tidegate.h, whose chapters on threads, ownership and forks hold here, too. Each
/// call that can fail has two forms: `try_NAME` is noexcept and returns a `status` or a `result`, `NAME`
/// throws an `error`. Without exceptions (-fno-exceptions, or TIDEGATE_NO_EXCEPTIONS defined) only the first
/// form is there; define it in all units of a program or in none.
///
/// Whole numbers may be of any integer type: none is cut to size on its way, so a negative or too large one
/// is an error and never another number. Fractions do not convert.
#ifndef TIDEGATE_HPP
#define TIDEGATE_HPP

#include <tidegate.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#if !defined(TIDEGATE_NO_EXCEPTIONS) && !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#define TIDEGATE_NO_EXCEPTIONS
#endif

#ifndef TIDEGATE_NO_EXCEPTIONS
#include <stdexcept>
#endif

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace tidegate
{

// --- words ---------------------------------------------------------------------------------------

/// How important a request is, most important first.
enum class priority : std::int32_t {
    /// Shed last: serious harm to users when it fails.
    critical_plus = TIDEGATE_PRIORITY_CRITICAL_PLUS,
    /// Harm to users when it fails.
    critical = TIDEGATE_PRIORITY_CRITICAL,
    /// Batch work, retries made later.
    sheddable_plus = TIDEGATE_PRIORITY_SHEDDABLE_PLUS,
    /// Shed first.
    sheddable = TIDEGATE_PRIORITY_SHEDDABLE,
    /// Another name of `critical`.
    essential = critical,
    /// Another name of `sheddable`.
    non_essential = sheddable,
    /// The gate's default, for requests that name none; counted in `stats::fallback_priority`.
    gate_default = TIDEGATE_PRIORITY_DEFAULT,
};

/// The four priorities, most important first.
inline constexpr std::array<priority, 4> priorities{priority::critical_plus, priority::critical,
                                                    priority::sheddable_plus, priority::sheddable};

/// Why a request was shed.
enum class reason : std::int32_t {
    /// The weight does not fit under the limit.
    limit = TIDEGATE_SHED_LIMIT,
    /// It would fit, but the rest is kept for more important priorities.
    priority = TIDEGATE_SHED_PRIORITY,
    /// The rate limit is used up.
    rate = TIDEGATE_SHED_RATE,
    /// The resource is overloaded.
    pressure = TIDEGATE_SHED_PRESSURE,
    /// The gate is closed.
    closed = TIDEGATE_SHED_CLOSED,
    /// The wait was longer than allowed.
    timeout = TIDEGATE_SHED_TIMEOUT,
    /// This host's share of the fleet's limit is used up.
    share = TIDEGATE_SHED_SHARE,
};

/// All reasons, in the order of their numbers.
inline constexpr std::array<reason, 7> reasons{reason::limit,    reason::priority, reason::rate,
                                               reason::pressure, reason::closed,   reason::timeout,
                                               reason::share};

/// What a permit's work came to.
enum class outcome : std::int32_t {
    /// The resource answered, even with an error of its own.
    success = TIDEGATE_OUTCOME_SUCCESS,
    /// The resource was too busy: timed out, pool exhausted.
    overload = TIDEGATE_OUTCOME_OVERLOAD,
    /// It says nothing about the resource: cancelled, interrupted, never begun.
    ignore = TIDEGATE_OUTCOME_IGNORE,
};

/// All outcomes, in the order of their numbers.
inline constexpr std::array<outcome, 3> outcomes{outcome::success, outcome::overload, outcome::ignore};

/// The name, as in every language: "critical_plus". "unknown" for a number that is no priority.
[[nodiscard]] constexpr std::string_view to_string(priority of) noexcept
{
    switch (of) {
    case priority::critical_plus:
        return "critical_plus";
    case priority::critical:
        return "critical";
    case priority::sheddable_plus:
        return "sheddable_plus";
    case priority::sheddable:
        return "sheddable";
    case priority::gate_default:
        return "gate_default";
    }
    return "unknown";
}

/// The name, as in every language: "limit". "unknown" for a number that is no reason.
[[nodiscard]] constexpr std::string_view to_string(reason of) noexcept
{
    switch (of) {
    case reason::limit:
        return "limit";
    case reason::priority:
        return "priority";
    case reason::rate:
        return "rate";
    case reason::pressure:
        return "pressure";
    case reason::closed:
        return "closed";
    case reason::timeout:
        return "timeout";
    case reason::share:
        return "share";
    }
    return "unknown";
}

/// The name, as in every language: "success". "unknown" for a number that is no outcome.
[[nodiscard]] constexpr std::string_view to_string(outcome of) noexcept
{
    switch (of) {
    case outcome::success:
        return "success";
    case outcome::overload:
        return "overload";
    case outcome::ignore:
        return "ignore";
    }
    return "unknown";
}

/// The unit of time that a rate counts by.
enum class per : std::int32_t {
    /// "s"
    second = TIDEGATE_PER_SECOND,
    /// "min"
    minute = TIDEGATE_PER_MINUTE,
    /// "h"
    hour = TIDEGATE_PER_HOUR,
};

/// The name, as in every language: "min". "unknown" for a number that is no unit.
[[nodiscard]] constexpr std::string_view to_string(per unit) noexcept
{
    switch (unit) {
    case per::second:
        return "s";
    case per::minute:
        return "min";
    case per::hour:
        return "h";
    }
    return "unknown";
}

/// What moves a gate's limit.
enum class controller_kind : std::int32_t {
    /// Holds it.
    fixed = TIDEGATE_CONTROLLER_FIXED,
    /// One more while nothing is overload, a tenth less when something is.
    aimd = TIDEGATE_CONTROLLER_AIMD,
    /// By latency against its long average.
    gradient2 = TIDEGATE_CONTROLLER_GRADIENT2,
    /// By latency against the shortest seen.
    vegas = TIDEGATE_CONTROLLER_VEGAS,
    /// Climbs to where most good answers come out.
    goodput = TIDEGATE_CONTROLLER_GOODPUT,
};

/// The name, as in every language: "goodput". "unknown" for a number that is no controller.
[[nodiscard]] constexpr std::string_view to_string(controller_kind of) noexcept
{
    switch (of) {
    case controller_kind::fixed:
        return "fixed";
    case controller_kind::aimd:
        return "aimd";
    case controller_kind::gradient2:
        return "gradient2";
    case controller_kind::vegas:
        return "vegas";
    case controller_kind::goodput:
        return "goodput";
    }
    return "unknown";
}

/// Why a controller holds the limit that it does.
enum class move_cause : std::int32_t {
    /// Nothing spoke for a move.
    hold = TIDEGATE_CAUSE_HOLD,
    /// One arm of an experiment.
    probe = TIDEGATE_CAUSE_PROBE,
    /// The evidence was for more.
    raise = TIDEGATE_CAUSE_RAISE,
    /// The evidence was for less.
    lower = TIDEGATE_CAUSE_LOWER,
    /// Most answers were late or failed.
    lost = TIDEGATE_CAUSE_LOST,
};

/// The name, as in every language: "raise". "unknown" for a number that is no cause.
[[nodiscard]] constexpr std::string_view to_string(move_cause of) noexcept
{
    switch (of) {
    case move_cause::hold:
        return "hold";
    case move_cause::probe:
        return "probe";
    case move_cause::raise:
        return "raise";
    case move_cause::lower:
        return "lower";
    case move_cause::lost:
        return "lost";
    }
    return "unknown";
}

/// What a signal measures.
enum class signal_kind : std::int32_t {
    /// CPU time used of what the process may use.
    cpu = TIDEGATE_SIGNAL_CPU,
    /// Memory in use of what the process may use.
    memory = TIDEGATE_SIGNAL_MEMORY,
    /// The share of time in which something waited for a CPU.
    psi_cpu = TIDEGATE_SIGNAL_PSI_CPU,
    /// The share of time in which something waited for memory.
    psi_memory = TIDEGATE_SIGNAL_PSI_MEMORY,
    /// The share of time in which something waited for a disk.
    psi_io = TIDEGATE_SIGNAL_PSI_IO,
    /// How long the gate's own permits are held, as a share of its objective.
    latency = TIDEGATE_SIGNAL_LATENCY,
    /// The share of the gate's own answers that were overload.
    errors = TIDEGATE_SIGNAL_ERRORS,
    /// What `gate::push_signal` pushes.
    pushed = TIDEGATE_SIGNAL_PUSHED,
};

/// The priority of this name, "essential" and "non-essential" among them; none for any other text.
[[nodiscard]] constexpr std::optional<priority> priority_from(std::string_view name) noexcept
{
    for (const priority each : priorities) {
        if (name == to_string(each)) {
            return each;
        }
    }
    if (name == "essential") {
        return priority::essential;
    }
    if (name == "non-essential") {
        return priority::non_essential;
    }
    return std::nullopt;
}

/// A time in seconds.
using seconds = std::chrono::duration<double>;

/// A wait without an end. Compare with it before a `duration_cast`: it fits into no whole number.
inline constexpr seconds never{std::numeric_limits<double>::infinity()};

/// A whole number on its way to a gate, made from any integer type. What no 64-bit number holds becomes the
/// nearest one that does, which is far outside every rule here and thus refused.
class whole
{
public:
    /// From any integer but `bool`; not explicit, so that a plain number can stand in its place.
    template <class Integer,
              std::enable_if_t<std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>, int> = 0>
    constexpr whole(Integer number) noexcept : number_(nearest(number))
    {
    }

    /// The number, or the nearest that 64 bits hold.
    [[nodiscard]] constexpr std::int64_t get() const noexcept { return number_; }

private:
    template <class Integer>
    static constexpr std::int64_t nearest(Integer number) noexcept
    {
        using bounds = std::numeric_limits<std::int64_t>;
        if constexpr (sizeof(Integer) > sizeof(std::int64_t) && std::is_signed_v<Integer>) {
            if (number < static_cast<Integer>(bounds::min())) {
                return bounds::min();
            }
        }
        if constexpr (sizeof(Integer) >= sizeof(std::int64_t)) {
            if (number > static_cast<Integer>(bounds::max())) {
                return bounds::max();
            }
        }
        return static_cast<std::int64_t>(number);
    }

    std::int64_t number_;
};

/// The largest limit and the largest weight.
inline constexpr std::int64_t largest = 2147483647;

// --- errors --------------------------------------------------------------------------------------

/// What a call came to: done, shed, or an error, which has changed nothing.
class [[nodiscard]] status
{
public:
    /// Done.
    constexpr status() noexcept = default;
    /// From a number of tidegate.h.
    constexpr explicit status(tidegate_status code) noexcept : code_(code) {}

    /// Whether it is done.
    [[nodiscard]] constexpr bool ok() const noexcept { return code_ == TIDEGATE_ADMITTED; }
    /// Whether the request was shed.
    [[nodiscard]] constexpr bool is_shed() const noexcept { return code_ > 0; }
    /// Whether the call itself was wrong.
    [[nodiscard]] constexpr bool is_error() const noexcept { return code_ < 0; }
    /// Why the request was shed; none if it was not.
    [[nodiscard]] constexpr std::optional<tidegate::reason> reason() const noexcept
    {
        return is_shed() ? std::optional(static_cast<tidegate::reason>(code_)) : std::nullopt;
    }
    /// The number in tidegate.h.
    [[nodiscard]] constexpr tidegate_status code() const noexcept { return code_; }
    /// What it means, in English; valid for ever.
    [[nodiscard]] const char *message() const noexcept { return tidegate_status_str(code_); }

#ifndef TIDEGATE_NO_EXCEPTIONS
    /// Throws what it stands for.
    [[noreturn]] void raise() const;
#endif

    friend constexpr bool operator==(status a, status b) noexcept { return a.code_ == b.code_; }
    friend constexpr bool operator!=(status a, status b) noexcept { return a.code_ != b.code_; }

private:
    tidegate_status code_ = TIDEGATE_ADMITTED;
};

/// A status and, in English, the value and the rule that it broke.
struct failure {
    /// What kind of error it is.
    tidegate::status status;
    /// The reason, for people.
    std::string message;

#ifndef TIDEGATE_NO_EXCEPTIONS
    /// Throws what it stands for.
    [[noreturn]] void raise() const;
#endif
};

#ifndef TIDEGATE_NO_EXCEPTIONS

/// Everything that is thrown here.
class error : public std::runtime_error
{
public:
    /// From a failure.
    explicit error(const failure &why) : std::runtime_error(why.message), status_(why.status) {}

    /// What kind of error it is.
    tidegate::status status() const noexcept { return status_; }

private:
    tidegate::status status_;
};

/// A value outside its rule, or a configuration that contradicts itself. It has changed nothing.
class config_error : public error
{
public:
    using error::error;
};

inline void failure::raise() const
{
    switch (status.code()) {
    case TIDEGATE_ERR_ARGUMENT:
    case TIDEGATE_ERR_CONFIG:
        throw config_error(*this);
    default:
        throw error(*this);
    }
}

inline void status::raise() const
{
    failure{*this, message()}.raise();
}

#endif

namespace detail
{

inline failure outside(const char *what, std::int64_t least, std::int64_t most, whole got)
{
    std::string message = std::string(what) + " must be a whole number from " + std::to_string(least) +
                          " to " + std::to_string(most) + ", got " + std::to_string(got.get());
    return {status(TIDEGATE_ERR_ARGUMENT), std::move(message)};
}

/// Whether header and library belong together.
inline std::optional<failure> abi_mismatch(std::uint32_t library, std::uint32_t header = TIDEGATE_ABI_VERSION)
{
    if (library == header) {
        return std::nullopt;
    }
    return failure{status(TIDEGATE_ERR_VERSION),
                   "this program was compiled with tidegate.h of ABI version " + std::to_string(header) +
                       " and runs with a libtidegate of ABI version " + std::to_string(library) +
                       ": install both from one release"};
}

}  // namespace detail

/// A value, or why there is none.
template <class Value, class Error = status>
class [[nodiscard]] result
{
public:
    /// A value.
    constexpr result(Value value) : state_(std::in_place_index<0>, std::move(value)) {}
    /// None.
    constexpr result(Error why) : state_(std::in_place_index<1>, std::move(why)) {}
    /// A value, made in its place.
    template <class... Arguments>
    constexpr explicit result(std::in_place_t, Arguments &&...arguments)
        : state_(std::in_place_index<0>, std::forward<Arguments>(arguments)...)
    {
    }

    /// Whether there is a value.
    [[nodiscard]] constexpr bool has_value() const noexcept { return state_.index() == 0; }
    /// Whether there is a value.
    constexpr explicit operator bool() const noexcept { return has_value(); }

    /// The value. There has to be one.
    [[nodiscard]] constexpr Value &operator*() & noexcept { return *std::get_if<0>(&state_); }
    /// The value. There has to be one.
    [[nodiscard]] constexpr const Value &operator*() const & noexcept { return *std::get_if<0>(&state_); }
    /// The value, to be moved away. There has to be one.
    [[nodiscard]] constexpr Value &&operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
    /// The value. There has to be one.
    constexpr Value *operator->() noexcept { return std::get_if<0>(&state_); }
    /// The value. There has to be one.
    constexpr const Value *operator->() const noexcept { return std::get_if<0>(&state_); }

    /// Why there is no value. There must not be one.
    [[nodiscard]] constexpr const Error &error() const noexcept { return *std::get_if<1>(&state_); }

#ifndef TIDEGATE_NO_EXCEPTIONS
    /// The value. Throws what `error` stands for if there is none.
    [[nodiscard]] Value &value() &
    {
        check();
        return **this;
    }
    /// The value, moved out. Throws what `error` stands for if there is none.
    [[nodiscard]] Value value() &&
    {
        check();
        return std::move(**this);
    }
#endif

private:
#ifndef TIDEGATE_NO_EXCEPTIONS
    void check() const
    {
        if (!has_value()) {
            error().raise();
        }
    }
#endif

    std::variant<Value, Error> state_;
};

// --- configuration -------------------------------------------------------------------------------

/// How full a gate may be for each priority still to enter. What is not set is the gate's default: 1.0, 1.0,
/// 0.9 and 0.75 of the limit. They must not rise as importance falls, and the first is the limit itself.
class thresholds
{
public:
    /// A share of the limit from 0 to 1, rounded up to whole weight.
    thresholds &share(priority of, double fraction)
    {
        if (!(fraction >= 0.0 && fraction <= 1.0)) {
            std::array<char, 32> got{};
            std::snprintf(got.data(), got.size(), "%g", fraction);
            return refuse(std::string("a threshold must be a fraction of the limit from 0 to 1, got ") +
                          got.data());
        }
        return set(of, TIDEGATE_THRESHOLD_PPM, std::llround(fraction * 1e6));
    }

    /// A weight that stays free for more important priorities, 0 to 2147483647.
    thresholds &reserve(priority of, whole weight)
    {
        return set(of, TIDEGATE_THRESHOLD_RESERVE, weight.get());
    }

private:
    friend class config;
    friend class gate;

    thresholds &set(priority of, std::int32_t kind, std::int64_t value)
    {
        const auto position = static_cast<std::uint32_t>(of);
        if (position >= values_.size()) {
            return refuse("a threshold belongs to one of the four priorities, got " +
                          std::string(to_string(of)));
        }
        values_[position] = {kind, value};
        return *this;
    }

    thresholds &refuse(std::string why)
    {
        if (wrong_.empty()) {
            wrong_ = std::move(why);
        }
        return *this;
    }

    std::array<tidegate_threshold, 4> values_{};
    std::string wrong_;  // the first thing that was; told when the thresholds are used
};

/// How much may be admitted a time, by weight: in any stretch of time T no more than burst + T x count /
/// unit.
class rate
{
public:
    /// `count`: 0 to 10^10 in each `unit`; of 0 the burst is admitted once, and then nothing. `burst`: the
    /// most weight that may enter at once, 1 to 2147483647; 0 is the default: what one second brings, rounded
    /// up.
    constexpr rate(whole count, per unit, whole burst = 0) noexcept
        : values_{count.get(), burst.get(), static_cast<std::int32_t>(unit), 0}
    {
    }

    /// How many permits of weight 1 in each unit.
    [[nodiscard]] constexpr std::int64_t count() const noexcept { return values_.count; }
    /// The unit.
    [[nodiscard]] constexpr per unit() const noexcept { return static_cast<per>(values_.per); }
    /// The burst; 0 where the default was asked for, but of a gate's rate what that is.
    [[nodiscard]] constexpr std::int64_t burst() const noexcept { return values_.burst; }

private:
    friend class config;
    friend class gate;
    friend class shed;

    explicit constexpr rate(const tidegate_rate &values) noexcept : values_(values) {}

    static std::optional<rate> of(const tidegate_gate *gate) noexcept
    {
        tidegate_rate values{};
        const bool read = tidegate_get_rate(gate, &values) == TIDEGATE_ADMITTED;
        return read && values.per != 0 ? std::optional(rate(values)) : std::nullopt;
    }

    /// For people: "150/min (burst 10)".
    [[nodiscard]] std::string text() const
    {
        return std::to_string(count()) + "/" + std::string(to_string(unit())) + " (burst " +
               std::to_string(burst()) + ")";
    }

    tidegate_rate values_;
};

/// What moves a gate's limit, and within which bounds.
class controller
{
public:
    /// With all bounds at their defaults.
    constexpr controller(controller_kind kind) noexcept
        : values_{static_cast<std::int32_t>(kind), 0, 0, 0, 0, 0}
    {
    }

    /// The smallest limit; 0 is the default: 1.
    constexpr controller &min(whole limit) noexcept
    {
        values_.min = limit.get();
        return *this;
    }

    /// The largest limit; 0 is the default: 1000, or the smallest if that is more.
    constexpr controller &max(whole limit) noexcept
    {
        values_.max = limit.get();
        return *this;
    }

    /// A limit that a capacity test has shown to hold: nothing goes above it. 0: none.
    constexpr controller &ceiling(whole limit) noexcept
    {
        values_.ceiling = limit.get();
        return *this;
    }

    /// The limit to start from; 0 is the default: the gate's own, and where it has none, too, the geometric mean
    /// of the smallest and the largest.
    constexpr controller &prior(whole limit) noexcept
    {
        values_.prior = limit.get();
        return *this;
    }

private:
    friend class config;

    tidegate_controller values_;
};

/// A signal that a gate watches, and what its readings mean: docs/signals.md. What is not set has the kind's
/// default.
class signal_config
{
public:
    /// `name`: a label; each signal of a gate has one of its own. The kind's name unless given.
    explicit signal_config(signal_kind kind, std::optional<std::string> name = std::nullopt)
        : name_(std::move(name)), values_(TIDEGATE_SIGNAL_INIT)
    {
        values_.kind = static_cast<std::int32_t>(kind);
    }

    /// Overloaded at this pressure or above, 0 to 1.
    signal_config &enter(double pressure) { return set(values_.enter, pressure, "enter"); }
    /// Not overloaded any more at this pressure or below; below `enter`.
    signal_config &leave(double pressure) { return set(values_.leave, pressure, "leave"); }
    /// The pressure at which all is shed that can be; `enter` or above.
    signal_config &full(double pressure) { return set(values_.full, pressure, "full"); }
    /// For how long it must stay at `enter` or above.
    signal_config &enter_for(seconds time) { return set(values_.enter_for, time.count(), "enter_for"); }
    /// For how long it must stay at `leave` or below.
    signal_config &leave_for(seconds time) { return set(values_.leave_for, time.count(), "leave_for"); }
    /// How long it rests after a change.
    signal_config &dwell(seconds time) { return set(values_.dwell, time.count(), "dwell"); }
    /// In which time what it sheds may rise from nothing to all.
    signal_config &ramp(seconds time) { return set(values_.ramp, time.count(), "ramp"); }

private:
    friend class config;
    friend class gate;

    /// In C a negative number is the default, which nobody means who sets one.
    signal_config &set(double &value, double to, const char *what)
    {
        value = to;
        if (to < 0.0 && wrong_.empty()) {
            wrong_ = std::string(what) + " of a signal must be 0 or more, got " + std::to_string(to);
        }
        return *this;
    }

    std::optional<std::string> name_;
    tidegate_signal_config values_;
    std::string wrong_;  // told when it is used
};

/// What a gate is made from. Whatever is wrong with it is told when the gate is made.
class config
{
public:
    /// `name`: a label for people, 1 to 255 bytes of UTF-8 without control characters. `limit`: the most
    /// weight that may be in flight, 0 to 2147483647.
    config(std::string_view name, whole limit) : name_(name), values_(TIDEGATE_CONFIG_INIT)
    {
        values_.limit = limit.get();
    }

    /// A gate whose limit is where `moved_by` starts.
    config(std::string_view name, const controller &moved_by) : name_(name), values_(TIDEGATE_CONFIG_INIT)
    {
        values_.controller = moved_by.values_;
    }

    /// How full the gate may be for each priority.
    config &set_thresholds(const thresholds &by_priority)
    {
        for (std::size_t n = 0; n < by_priority.values_.size(); ++n) {
            values_.thresholds[n] = by_priority.values_[n];
        }
        wrong_ = by_priority.wrong_;
        return *this;
    }

    /// What moves the limit, which is where it starts; nothing unless set.
    config &set_controller(const controller &of)
    {
        values_.controller = of.values_;
        return *this;
    }

    /// The time within which an answer is good, for the controller and for latency signals; every success is
    /// unless set.
    config &set_objective(seconds objective)
    {
        // Zero is none in C. Here it is a mistake, of which C says the same as of a time that rounds to it.
        const bool none = objective.count() == 0.0;
        values_.objective = none ? std::numeric_limits<double>::min() : objective.count();
        return *this;
    }

    /// A further signal to watch.
    config &add_signal(signal_config signal)
    {
        signals_.push_back(std::move(signal));
        return *this;
    }

    /// How much may be admitted a time; any unless set.
    config &set_rate(const rate &of)
    {
        values_.rate = of.values_;
        return *this;
    }

    /// The priority of requests that name none; `critical` unless set.
    config &set_default_priority(priority of)
    {
        values_.default_priority = static_cast<std::int32_t>(of);
        return *this;
    }

    /// False is dry run: everything is let in, and what would have been shed is counted. True unless set.
    config &set_enforce(bool enforce)
    {
        values_.enforce = enforce;
        return *this;
    }

    /// Whether to measure how long permits are held: two clock readings each, and 32 KiB. False unless set.
    config &set_timing(bool timing)
    {
        values_.timing = timing;
        return *this;
    }

private:
    friend class gate;

    /// What is wrong with it that C cannot see; empty where nothing is.
    [[nodiscard]] const std::string &wrong() const noexcept
    {
        for (const signal_config &signal : signals_) {
            if (wrong_.empty() && !signal.wrong_.empty()) {
                return signal.wrong_;
            }
        }
        return wrong_;
    }

    /// As C takes it: `signals` get those that it points at.
    [[nodiscard]] tidegate_config values(std::vector<tidegate_signal_config> &signals) const
    {
        for (const signal_config &signal : signals_) {
            signals.push_back(signal.values_);
            signals.back().name = signal.name_ ? signal.name_->c_str() : nullptr;
        }
        tidegate_config values = values_;
        values.signals = signals.data();
        values.signal_count = signals.size();
        return values;
    }

    std::string name_;
    tidegate_config values_;
    std::vector<signal_config> signals_;
    std::string wrong_;
};

// --- permits -------------------------------------------------------------------------------------

namespace detail
{

/// How many exceptions are under way on this thread, as `std::uncaught_exceptions` says, whose two calls
/// were measured to cost a permit 40 % more. With GCC's library the number lies where the Itanium C++ ABI
/// (2.2.2) puts it, at an address that a thread keeps for life.
inline unsigned int uncaught_exceptions() noexcept
{
#ifdef __GLIBCXX__
    static thread_local const unsigned int *count = nullptr;
    if (count == nullptr) {
        const auto *globals = reinterpret_cast<const char *>(abi::__cxa_get_globals());
        count = reinterpret_cast<const unsigned int *>(globals + sizeof(void *));
    }
    return *count;
#else
    return static_cast<unsigned int>(std::uncaught_exceptions());
#endif
}

}  // namespace detail

/// The right to use the resource once. It gives itself back when it is destroyed, exactly once: with outcome
/// `success`, or with `ignore` when an exception is what destroys it, unless `set_outcome` said otherwise. It
/// may outlive its gate, and may be moved to another thread; one permit is for one thread at a time.
class [[nodiscard]] permit
{
public:
    permit(const permit &) = delete;
    permit &operator=(const permit &) = delete;

    /// The other one is released then, as far as it knows.
    permit(permit &&other) noexcept
        : gate_(other.gate_), number_(std::exchange(other.number_, 0)), unwinding_(other.unwinding_),
          outcome_(other.outcome_)
    {
    }

    /// Gives back what it held before. The other one is released then, as far as it knows.
    permit &operator=(permit &&other) noexcept
    {
        if (this != &other) {
            give_back();
            gate_ = other.gate_;
            number_ = std::exchange(other.number_, 0);
            unwinding_ = other.unwinding_;
            outcome_ = other.outcome_;
        }
        return *this;
    }

    ~permit() { give_back(); }

    /// What is told when the permit gives itself back. A number that is no outcome is not taken.
    void set_outcome(outcome of) noexcept
    {
        for (const outcome each : outcomes) {
            if (each == of) {
                outcome_ = of;
            }
        }
    }

    /// Gives it back now. False, and without effect, when it was released or moved away before, in the child
    /// of a fork, and for a number that is no outcome, which leaves it held.
    bool release(outcome of = outcome::success) noexcept
    {
        if (number_ == 0) {
            return false;
        }
        const tidegate_status done = tidegate_release(gate_, number_, static_cast<std::int32_t>(of));
        if (done != TIDEGATE_ERR_ARGUMENT) {
            number_ = 0;
        }
        return done == TIDEGATE_ADMITTED;
    }

    /// Whether it was released or moved away.
    [[nodiscard]] bool released() const noexcept { return number_ == 0; }

    /// The priority it was admitted with; `gate_default` once it is released.
    [[nodiscard]] tidegate::priority priority() const noexcept
    {
        return static_cast<tidegate::priority>(details().priority);
    }

    /// How much of the limit it takes; 0 once it is released.
    [[nodiscard]] std::int64_t weight() const noexcept { return details().weight; }

    /// Whether dry run let it in although enforcement would have shed it; false once it is released.
    [[nodiscard]] bool over() const noexcept { return details().over; }

private:
    friend class gate;

    static constexpr outcome not_set{-1};

    permit(const tidegate_gate *gate, std::uint64_t number) noexcept : gate_(gate), number_(number) {}

    void give_back() noexcept
    {
        if (number_ == 0) {
            return;
        }
        const bool thrown_out = detail::uncaught_exceptions() > unwinding_;
        const outcome unless_set = thrown_out ? outcome::ignore : outcome::success;
        const outcome of = outcome_ == not_set ? unless_set : outcome_;
        tidegate_release(gate_, number_, static_cast<std::int32_t>(of));
    }

    tidegate_permit details() const noexcept
    {
        tidegate_permit read = TIDEGATE_PERMIT_INIT;
        if (number_ == 0 || tidegate_get_permit(gate_, number_, &read) != TIDEGATE_ADMITTED) {
            read.priority = TIDEGATE_PRIORITY_DEFAULT;
        }
        return read;
    }

    const tidegate_gate *gate_;
    std::uint64_t number_;
    unsigned int unwinding_ = detail::uncaught_exceptions();
    outcome outcome_ = not_set;
};

/// Why no permit was given: the request was shed, or the call itself was wrong (`status().is_error()`). It
/// knows its gate as a reference does: ask it while the gate lives.
class shed
{
public:
    /// What the gate answered.
    [[nodiscard]] tidegate::status status() const noexcept { return status_; }
    /// Why the request was shed; none if the call was wrong.
    [[nodiscard]] std::optional<tidegate::reason> reason() const noexcept { return status_.reason(); }
    /// The same in English; valid for ever.
    [[nodiscard]] const char *message() const noexcept { return status_.message(); }
    /// The priority that was asked for.
    [[nodiscard]] tidegate::priority priority() const noexcept { return priority_; }
    /// The weight that was asked for.
    [[nodiscard]] std::int64_t weight() const noexcept { return weight_; }

    /// How long a request like this should stay away, as `gate::retry_after`, now; none if the call was
    /// wrong.
    [[nodiscard]] std::optional<seconds> retry_after() const noexcept
    {
        double wait = -1.0;
        const tidegate_status asked =
            tidegate_retry_after(gate_, static_cast<std::int32_t>(priority_), weight_, &wait);
        return asked == TIDEGATE_ADMITTED && wait >= 0.0 ? std::optional(seconds(wait)) : std::nullopt;
    }

#ifndef TIDEGATE_NO_EXCEPTIONS
    /// Throws what it stands for.
    [[noreturn]] void raise() const;
#endif

private:
    friend class gate;
#ifndef TIDEGATE_NO_EXCEPTIONS
    friend class shed_error;
#endif

    shed(const tidegate_gate *gate, tidegate::status status, tidegate::priority of, whole weight) noexcept
        : gate_(gate), weight_(weight.get()), priority_(of), status_(status)
    {
    }

    /// For people, with the numbers of the moment.
    std::string text() const
    {
        const char *name = tidegate_gate_name(gate_);
        const std::string gate = "gate '" + std::string(name == nullptr ? "" : name) + "'";
        if (reason() == tidegate::reason::closed) {
            return gate + " is closed";
        }
        return gate + why() + ": " + std::to_string(tidegate_in_flight(gate_)) + " of " +
               std::to_string(tidegate_limit(gate_)) + " in flight (priority " +
               std::string(to_string(priority_)) + ")" + hint();
    }

    std::string why() const
    {
        if (reason() == tidegate::reason::limit) {
            return " full";
        }
        if (reason() == tidegate::reason::rate) {
            const auto now = rate::of(gate_);
            return " over its rate" + (now ? " of " + now->text() : std::string());
        }
        return " shed by " + std::string(to_string(*reason()));
    }

    std::string hint() const
    {
        const auto wait = retry_after();
        if (!wait) {
            return "";
        }
        if (*wait == never) {
            return "; no retry can succeed";
        }
        std::array<char, 48> hint{};
        std::snprintf(hint.data(), hint.size(), "; retry in about %.2g s", wait->count());
        return hint.data();
    }

    const tidegate_gate *gate_;
    std::int64_t weight_;
    tidegate::priority priority_;
    tidegate::status status_;
};

#ifndef TIDEGATE_NO_EXCEPTIONS

/// A request was shed. All it says was read when it was thrown; it may outlive the gate.
class shed_error : public error
{
public:
    /// From a shed whose gate lives.
    explicit shed_error(const shed &why)
        : error({why.status(), why.text()}), retry_after_(why.retry_after()), weight_(why.weight()),
          priority_(why.priority())
    {
    }

    /// Why.
    tidegate::reason reason() const noexcept { return static_cast<tidegate::reason>(status().code()); }
    /// The priority that was asked for.
    tidegate::priority priority() const noexcept { return priority_; }
    /// The weight that was asked for.
    std::int64_t weight() const noexcept { return weight_; }
    /// How long a request like this should stay away, as `gate::retry_after`.
    std::optional<seconds> retry_after() const noexcept { return retry_after_; }

private:
    std::optional<seconds> retry_after_;
    std::int64_t weight_;
    tidegate::priority priority_;
};

namespace detail
{

/// What is wrong with a request.
inline failure refused_request(status why, priority of, whole weight)
{
    if (why.code() != TIDEGATE_ERR_ARGUMENT) {
        return {why, why.message()};
    }
    if (weight.get() < 1 || weight.get() > largest) {
        return outside("weight", 1, largest, weight);
    }
    return {why, "no priority has the number " + std::to_string(static_cast<std::int32_t>(of))};
}

}  // namespace detail

inline void shed::raise() const
{
    if (status_.is_shed()) {
        throw shed_error(*this);
    }
    detail::refused_request(status_, priority_, weight_).raise();
}

#endif

// --- readings ------------------------------------------------------------------------------------

/// Values by priority, reason or outcome: `stats.shed[priority::sheddable][reason::limit]`.
template <class Key, class Value, std::size_t Count, std::int32_t First = 0>
class by
{
public:
    /// The value of a key, which has to be one of the named ones; not `gate_default`.
    constexpr const Value &operator[](Key key) const { return values_.at(position(key)); }
    /// The value of a key, which has to be one of the named ones; not `gate_default`.
    constexpr Value &operator[](Key key) { return values_.at(position(key)); }

private:
    static constexpr std::size_t position(Key key)
    {
        return static_cast<std::size_t>(static_cast<std::int32_t>(key) - First);
    }

    std::array<Value, Count> values_{};
};

template <class Value>
using by_priority = by<priority, Value, priorities.size()>;
template <class Value>
using by_reason = by<reason, Value, reasons.size(), TIDEGATE_SHED_LIMIT>;
template <class Value>
using by_outcome = by<outcome, Value, outcomes.size()>;

/// A reading of a gate's counters. Each counter only grows, and in every reading no more was released than
/// admitted; at rest all of it is exact. Each attempt is counted once: in `admitted`, `shed` or `would_shed`.
struct stats {
    /// The most weight that may be in flight.
    std::uint32_t limit = 0;
    /// The weight in flight, without what dry run let in beyond the limit.
    std::uint32_t in_flight = 0;
    /// The most weight that was ever in flight.
    std::uint32_t high_water = 0;
    /// How full the gate may be for each priority still to enter, in weight.
    by_priority<std::uint32_t> thresholds;
    /// The priority of requests that name none.
    priority default_priority = priority::critical;
    /// Whether the gate turns requests away; false in dry run.
    bool enforce = true;
    /// Whether the gate was closed.
    bool closed = false;
    /// Whether it measures how long permits are held.
    bool timing = false;
    /// Admissions.
    by_priority<std::uint64_t> admitted;
    /// Requests turned away.
    by_priority<by_reason<std::uint64_t>> shed;
    /// What dry run let in although enforcement would have shed it.
    by_priority<std::uint64_t> would_shed;
    /// Admissions that were released.
    by_outcome<std::uint64_t> released;
    /// Exits without an entry, by users of `tidegate_exit` in C.
    std::uint64_t unmatched_exits = 0;
    /// Permits that a garbage collector found, in other languages.
    std::uint64_t collected = 0;
    /// Admissions that named no priority.
    std::uint64_t fallback_priority = 0;
    /// What dry run let in beyond the limit and is still inside, in permits.
    std::uint64_t over_in_flight = 0;
    /// With timing, the time integral of the weight in flight, in weight-microseconds modulo 2^63.
    std::uint64_t occupancy_us = 0;
    /// How often the configuration changed, modulo 2^29.
    std::uint32_t generation = 0;
};

/// What a gate's controller is at.
struct controller_report {
    /// Which one.
    controller_kind kind = controller_kind::fixed;
    /// The smallest limit.
    std::uint32_t min = 0;
    /// The largest, the ceiling included.
    std::uint32_t max = 0;
    /// Where it started.
    std::uint32_t prior = 0;
    /// Why the limit is what it is.
    move_cause cause = move_cause::hold;
    /// The time within which an answer is good; none: every success is.
    std::optional<seconds> objective;
    /// How often it looked.
    std::uint64_t looks = 0;
    /// How often it moved the limit on evidence.
    std::uint64_t moves = 0;
    /// How often it moved the limit for an experiment, there and back.
    std::uint64_t probes = 0;
    /// Of the window that it looked at last: how long it was,
    seconds window{0};
    /// the permits that came back with `success` or `overload`,
    std::uint64_t completions = 0;
    /// those that were good,
    std::uint64_t good = 0;
    /// those with `overload`,
    std::uint64_t overload = 0;
    /// requests that were admitted,
    std::uint64_t admissions = 0;
    /// and those that met a full gate.
    std::uint64_t refusals = 0;
};

/// One change of a gate's limit.
struct limit_change {
    /// The limit before.
    std::uint32_t from = 0;
    /// The limit from then on.
    std::uint32_t to = 0;
    /// How long ago it was.
    seconds age{0};
    /// Why, in at most 63 bytes; empty for nothing.
    std::string cause;
};

/// What one signal says.
struct signal_report {
    /// Its name.
    std::string name;
    /// What it said when it was last looked at, 0 to 1; none: unknown.
    std::optional<double> value;
    /// Whether it is overloaded.
    bool overloaded = false;
    /// Its own pressure level, 0 to 1.
    double level = 0.0;
    /// Overloaded at this or above.
    double enter = 0.0;
    /// Not overloaded any more at this or below.
    double leave = 0.0;
    /// Its level is 1 at this.
    double full = 0.0;
    /// How often it was measured, or a value pushed.
    std::uint64_t reads = 0;
    /// How often it did not know.
    std::uint64_t failures = 0;
    /// What the last measurement took.
    seconds cost{0};
};

/// What a gate's signals come to.
struct pressure_report {
    /// The pressure level, 0 to 1: that of the worst signal.
    double level = 0.0;
    /// Which share of each priority it sheds, 0 to 1.
    by_priority<double> shares;
    /// Whether any signal is overloaded.
    bool overloaded = false;
    /// How often one became overloaded, or no longer was.
    std::uint64_t transitions = 0;
    /// The signals, in the order in which they were given.
    std::vector<signal_report> signals;
};

namespace detail
{

inline controller_report read(const tidegate_controller_report &raw)
{
    controller_report read;
    read.kind = static_cast<controller_kind>(raw.kind);
    read.min = raw.min;
    read.max = raw.max;
    read.prior = raw.prior;
    read.cause = static_cast<move_cause>(raw.cause);
    read.objective = raw.objective > 0.0 ? std::optional(seconds(raw.objective)) : std::nullopt;
    read.looks = raw.looks;
    read.moves = raw.moves;
    read.probes = raw.probes;
    read.window = seconds(raw.window);
    read.completions = raw.completions;
    read.good = raw.good;
    read.overload = raw.overload;
    read.admissions = raw.admissions;
    read.refusals = raw.refusals;
    return read;
}

inline signal_report read(const tidegate_signal_report &raw)
{
    signal_report read;
    read.name = raw.name;
    read.value = raw.value < 0.0 ? std::nullopt : std::optional(raw.value);
    read.overloaded = raw.overloaded;
    read.level = raw.level;
    read.enter = raw.enter;
    read.leave = raw.leave;
    read.full = raw.full;
    read.reads = raw.reads;
    read.failures = raw.failures;
    read.cost = seconds(raw.cost);
    return read;
}

inline stats read(const tidegate_stats &raw)
{
    stats read;
    read.limit = raw.limit;
    read.in_flight = raw.in_flight;
    read.high_water = raw.high_water;
    read.default_priority = static_cast<priority>(raw.default_priority);
    read.enforce = raw.enforce;
    read.closed = raw.closed;
    read.timing = raw.timing;
    for (const priority each : priorities) {
        const auto level = static_cast<std::size_t>(each);
        read.thresholds[each] = raw.thresholds[level];
        read.admitted[each] = raw.admitted[level];
        read.would_shed[each] = raw.would_shed[level];
        for (const reason why : reasons) {
            read.shed[each][why] = raw.shed[level][static_cast<std::size_t>(why) - 1];
        }
    }
    for (const outcome each : outcomes) {
        read.released[each] = raw.released[static_cast<std::size_t>(each)];
    }
    read.unmatched_exits = raw.unmatched_exits;
    read.collected = raw.collected;
    read.fallback_priority = raw.fallback_priority;
    read.over_in_flight = raw.over_in_flight;
    read.occupancy_us = raw.occupancy_us;
    read.generation = raw.generation;
    return read;
}

/// Whole milliseconds, rounded up, so that a short wait is not none. A negative time becomes one that no call
/// takes for "for ever".
template <class Rep, class Period>
std::int64_t milliseconds(std::chrono::duration<Rep, Period> time) noexcept
{
    using real = std::chrono::duration<long double, std::milli>;
    const long double exact = std::chrono::duration_cast<real>(time).count();
    constexpr std::int64_t negative = -2;
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    if (!(exact >= 0)) {
        return negative;
    }
    const long double rounded = std::ceil(exact);
    return rounded >= static_cast<long double>(most) ? most : static_cast<std::int64_t>(rounded);
}

}  // namespace detail

// --- the gate ------------------------------------------------------------------------------------

template <class Body>
class guarded;

/// The admission controller of one protected resource, as a handle: copies are the same gate, which is given
/// up with the last of them. Any thread may use a handle that no other thread assigns to at the time. A
/// handle that was moved away answers every call with the error TIDEGATE_ERR_NULL.
class gate
{
public:
#ifndef TIDEGATE_NO_EXCEPTIONS
    /// A gate that lets at most `limit` (0 to 2147483647) in. Throws `config_error`; `error` where header and
    /// library do not belong together.
    gate(std::string_view name, whole limit) : gate(config(name, limit)) {}

    /// Throws `config_error`; `error` where header and library do not belong together.
    explicit gate(const config &from) : gate(make(from).value()) {}
#endif

    /// A gate, or what is wrong with the configuration, in the words that every language uses.
    [[nodiscard]] static result<gate, failure> make(const config &from)
    {
        if (auto mismatch = detail::abi_mismatch(tidegate_abi_version())) {
            return *std::move(mismatch);
        }
        if (!from.wrong().empty()) {
            return failure{status(TIDEGATE_ERR_ARGUMENT), from.wrong()};
        }
        tidegate_gate *made = nullptr;
        std::array<char, 1024> why{};
        std::vector<tidegate_signal_config> signals;
        const tidegate_config values = from.values(signals);
        const status done(tidegate_gate_new(&values, from.name_.data(), from.name_.size(), &made,
                                            why.data(), why.size()));
        if (!done.ok()) {
            return failure{done, why.data()};
        }
        return gate(made);
    }

    /// The gate's name.
    [[nodiscard]] std::string_view name() const noexcept
    {
        const char *name = tidegate_gate_name(handle());
        return name == nullptr ? std::string_view() : std::string_view(name);
    }

    /// Asks for a permit, and never waits. `weight`: how much of the limit it takes, 1 to 2147483647.
    [[nodiscard]] result<permit, shed> try_admit(priority of = priority::gate_default,
                                                 whole weight = 1) const noexcept
    {
        std::uint64_t number = 0;
        const tidegate_status answer =
            tidegate_try_admit(handle(), static_cast<std::int32_t>(of), weight.get(), &number);
        if (answer == TIDEGATE_ADMITTED) {
            return permit(handle(), number);
        }
        return shed(handle(), status(answer), of, weight);
    }

#ifndef TIDEGATE_NO_EXCEPTIONS
    /// Asks for a permit, and never waits. Throws `shed_error`; `config_error` for a weight outside its rule.
    [[nodiscard]] permit admit(priority of = priority::gate_default, whole weight = 1) const
    {
        return try_admit(of, weight).value();
    }

    /// Calls `body` with a permit held, and returns what it returns. `body` may take the permit, as a `permit
    /// &`. What it throws comes out as it is, and counts as outcome `ignore`. Throws as `admit` does, too.
    template <class Body>
    decltype(auto) run(priority of, whole weight, Body &&body) const
    {
        permit held = admit(of, weight);
        if constexpr (std::is_invocable_v<Body, permit &>) {
            return std::invoke(std::forward<Body>(body), held);
        } else {
            return std::invoke(std::forward<Body>(body));
        }
    }
    /// The same with weight 1.
    template <class Body>
    decltype(auto) run(priority of, Body &&body) const
    {
        return run(of, 1, std::forward<Body>(body));
    }
    /// The same with weight 1 and the gate's default priority.
    template <class Body>
    decltype(auto) run(Body &&body) const
    {
        return run(priority::gate_default, 1, std::forward<Body>(body));
    }

    /// A function that does what `body` does with a permit held, once for each call. It shares the gate, and
    /// throws as `run` does.
    template <class Body>
    [[nodiscard]] guarded<std::decay_t<Body>> guard(Body &&body, priority of = priority::gate_default,
                                                    whole weight = 1) const
    {
        return guarded<std::decay_t<Body>>(*this, std::forward<Body>(body), of, weight);
    }
#endif

    /// How long a request like this should stay away, at least: 0 when it would be admitted now, `never` when
    /// no retry can succeed, none when nothing is known yet.
    [[nodiscard]] result<std::optional<seconds>> try_retry_after(priority of = priority::gate_default,
                                                                 whole weight = 1) const noexcept
    {
        double wait = -1.0;
        const status asked(
            tidegate_retry_after(handle(), static_cast<std::int32_t>(of), weight.get(), &wait));
        if (!asked.ok()) {
            return asked;
        }
        return wait < 0.0 ? std::nullopt : std::optional(seconds(wait));
    }

    /// Sets the most weight that may be in flight, 0 to 2147483647. Once this has returned, nothing is
    /// admitted above it; what is inside stays. `cause` is for the gate's history.
    status try_set_limit(whole limit, const char *cause = nullptr) const noexcept
    {
        return status(tidegate_set_limit_cause(handle(), limit.get(), cause));
    }

    /// Sets all thresholds; those that are not named become the gate's default.
    status try_set_thresholds(const thresholds &by_priority) const noexcept
    {
        if (!by_priority.wrong_.empty()) {
            return status(TIDEGATE_ERR_ARGUMENT);
        }
        return status(tidegate_set_threshold_kinds(handle(), by_priority.values_.data()));
    }

    /// How much may be admitted a time; none for any.
    [[nodiscard]] std::optional<tidegate::rate> rate() const noexcept { return tidegate::rate::of(handle()); }

    /// Sets the rate, or takes it away (`std::nullopt`). What was used of the old burst stays used, up to the
    /// whole of the new one; where there was no rate the burst is full.
    status try_set_rate(const std::optional<tidegate::rate> &of) const noexcept
    {
        const tidegate_rate values = of ? of->values_ : tidegate_rate{};
        return status(tidegate_set_rate(handle(), &values));
    }

    /// Switches dry run off (true) or on (false).
    status try_set_enforce(bool enforce) const noexcept
    {
        return status(tidegate_set_enforce(handle(), enforce));
    }

    /// Closes the gate for good: nothing is admitted any more, and what is inside leaves in its own time.
    status try_close() const noexcept { return status(tidegate_close(handle())); }

    /// Closes the gate and waits until everything inside has left, at most `timeout`, in whole milliseconds,
    /// rounded up. Reason `timeout` when something still is. A negative time is an error and closes nothing.
    template <class Rep, class Period>
    status try_drain(std::chrono::duration<Rep, Period> timeout) const noexcept
    {
        return status(tidegate_drain(handle(), detail::milliseconds(timeout)));
    }

    /// Closes the gate and waits until everything inside has left, as long as it takes.
    status try_drain() const noexcept { return status(tidegate_drain(handle(), TIDEGATE_FOREVER)); }

    /// Reads all counters.
    [[nodiscard]] result<tidegate::stats> try_stats() const noexcept
    {
        tidegate_stats raw = TIDEGATE_STATS_INIT;
        const status done(tidegate_get_stats(handle(), &raw));
        if (!done.ok()) {
            return done;
        }
        return detail::read(raw);
    }

    /// How long permits of a priority were held: what a share `q` (0 to 1) of them did not exceed, within 1.6
    /// %; outcome `ignore` left out. None without timing, or where nothing was measured yet.
    [[nodiscard]] result<std::optional<seconds>> try_latency(priority of, double q) const noexcept
    {
        double held = -1.0;
        const status done(tidegate_latency(handle(), static_cast<std::int32_t>(of), q, &held));
        if (!done.ok()) {
            return done;
        }
        return held < 0.0 ? std::nullopt : std::optional(seconds(held));
    }

    /// What the controller is at; none where there is none.
    [[nodiscard]] std::optional<controller_report> controller() const
    {
        tidegate_controller_report raw = TIDEGATE_CONTROLLER_REPORT_INIT;
        const bool read = tidegate_get_controller(handle(), &raw) == TIDEGATE_ADMITTED;
        return read && raw.kind != TIDEGATE_CONTROLLER_NONE ? std::optional(detail::read(raw)) : std::nullopt;
    }

    /// The last 64 changes of the limit, oldest first; without a controller's experiments.
    [[nodiscard]] std::vector<limit_change> limit_history() const
    {
        std::vector<limit_change> changes;
        tidegate_limit_change raw = TIDEGATE_LIMIT_CHANGE_INIT;
        while (tidegate_get_limit_change(handle(), changes.size(), &raw) == TIDEGATE_ADMITTED) {
            changes.push_back({raw.from, raw.to, seconds(raw.age), raw.cause});
        }
        return {changes.rbegin(), changes.rend()};
    }

    /// What the gate's signals come to; none where there are none. Where it is time to look at them, this does.
    [[nodiscard]] std::optional<pressure_report> pressure() const
    {
        tidegate_pressure raw = TIDEGATE_PRESSURE_INIT;
        if (tidegate_get_pressure(handle(), &raw) != TIDEGATE_ADMITTED || raw.signals == 0) {
            return std::nullopt;
        }
        pressure_report read;
        read.level = raw.level;
        read.overloaded = raw.overloaded;
        read.transitions = raw.transitions;
        for (const priority each : priorities) {
            read.shares[each] = raw.shares[static_cast<std::size_t>(each)];
        }
        tidegate_signal_report signal = TIDEGATE_SIGNAL_REPORT_INIT;
        while (tidegate_get_signal(handle(), read.signals.size(), &signal) == TIDEGATE_ADMITTED) {
            read.signals.push_back(detail::read(signal));
        }
        return read;
    }

    /// Pushes a value from 0 to 1 into the signal of this name, which is one of kind `pushed`; good for so long, in
    /// whole milliseconds, rounded up, and unknown after that.
    template <class Rep, class Period>
    status try_push_signal(std::string_view name, double value,
                           std::chrono::duration<Rep, Period> good_for) const noexcept
    {
        return status(
            tidegate_signal(handle(), name.data(), name.size(), value, detail::milliseconds(good_for)));
    }

    /// The weight in flight: one load. Negative, an error's number, for a handle that was moved away.
    [[nodiscard]] std::int64_t in_flight() const noexcept { return tidegate_in_flight(handle()); }

    /// The most weight that may be in flight. Negative, an error's number, for a handle that was moved away.
    [[nodiscard]] std::int64_t limit() const noexcept { return tidegate_limit(handle()); }

#ifndef TIDEGATE_NO_EXCEPTIONS
    /// As `try_retry_after`. Throws `config_error`.
    [[nodiscard]] std::optional<seconds> retry_after(priority of = priority::gate_default,
                                                     whole weight = 1) const
    {
        const auto asked = try_retry_after(of, weight);
        if (!asked) {
            detail::refused_request(asked.error(), of, weight).raise();
        }
        return *asked;
    }

    /// As `try_set_limit`. Throws `config_error`.
    void set_limit(whole limit, const char *cause = nullptr) const
    {
        const status done = try_set_limit(limit, cause);
        if (done.code() == TIDEGATE_ERR_ARGUMENT) {
            const auto moves = controller();
            moves ? detail::outside("limit", moves->min, moves->max, limit).raise()
                  : detail::outside("limit", 0, largest, limit).raise();
        }
        check(done);
    }

    /// As `try_push_signal`. Throws `config_error` where the gate has no such signal, or one that is measured, and
    /// for a value that is not from 0 to 1.
    template <class Rep, class Period>
    void push_signal(std::string_view name, double value, std::chrono::duration<Rep, Period> good_for) const
    {
        check(try_push_signal(name, value, good_for));
    }

    /// As `try_set_thresholds`. Throws `config_error`.
    void set_thresholds(const thresholds &by_priority) const
    {
        if (!by_priority.wrong_.empty()) {
            failure{status(TIDEGATE_ERR_ARGUMENT), by_priority.wrong_}.raise();
        }
        check(try_set_thresholds(by_priority));
    }

    /// As `try_set_rate`. Throws `config_error`.
    void set_rate(const std::optional<tidegate::rate> &of) const
    {
        const status done = try_set_rate(of);
        if (done.code() == TIDEGATE_ERR_ARGUMENT) {
            failure{
                done,
                "a rate must be a whole number from 0 to 10000000000 a second, a minute or an hour, and its "
                "burst one from 1 to 2147483647, or 0 for the default, got " +
                    of->text()}
                .raise();
        }
        check(done);
    }

    /// As `try_set_enforce`.
    void set_enforce(bool enforce) const { check(try_set_enforce(enforce)); }

    /// As `try_close`.
    void close() const { check(try_close()); }

    /// As `try_drain`: whether everything has left in time. Throws `config_error` for a negative time.
    template <class Rep, class Period>
    bool drain(std::chrono::duration<Rep, Period> timeout) const
    {
        const status done = try_drain(timeout);
        if (done.code() == TIDEGATE_ERR_ARGUMENT) {
            failure{done, "a timeout must not be negative or NaN"}.raise();
        }
        check(done);
        return done.ok();
    }

    /// As `try_drain`.
    void drain() const { check(try_drain()); }

    /// As `try_stats`.
    [[nodiscard]] tidegate::stats stats() const { return try_stats().value(); }

    /// As `try_latency`. Throws `config_error` for a `q` that is not from 0 to 1.
    [[nodiscard]] std::optional<seconds> latency(priority of, double q) const
    {
        return try_latency(of, q).value();
    }
#endif

private:
    friend class gates;

    explicit gate(tidegate_gate *made) : handle_(made, tidegate_gate_free) {}

    /// One of a file, which is kept as long as the gate is.
    gate(const std::shared_ptr<tidegate_gates> &file, const tidegate_gate *of_it) noexcept
        : handle_(file, of_it)
    {
    }

    const tidegate_gate *handle() const noexcept { return handle_.get(); }

#ifndef TIDEGATE_NO_EXCEPTIONS
    static void check(status done)
    {
        if (done.is_error()) {
            done.raise();
        }
    }
#endif

    std::shared_ptr<const tidegate_gate> handle_;
};

#ifndef TIDEGATE_NO_EXCEPTIONS

/// What `gate::guard` makes.
template <class Body>
class guarded
{
public:
    /// See `gate::guard`.
    guarded(tidegate::gate gate, Body body, priority of, whole weight)
        : gate_(std::move(gate)), body_(std::move(body)), priority_(of), weight_(weight)
    {
    }

    /// Calls the body with a permit held.
    template <class... Arguments>
    decltype(auto) operator()(Arguments &&...arguments)
    {
        const permit held = gate_.admit(priority_, weight_);
        return std::invoke(body_, std::forward<Arguments>(arguments)...);
    }

    /// Calls the body with a permit held.
    template <class... Arguments>
    decltype(auto) operator()(Arguments &&...arguments) const
    {
        const permit held = gate_.admit(priority_, weight_);
        return std::invoke(body_, std::forward<Arguments>(arguments)...);
    }

private:
    tidegate::gate gate_;
    Body body_;
    priority priority_;
    whole weight_;
};

#endif

// --- gates from a file ---------------------------------------------------------------------------

/// What is known of a request: see `gates::classify`.
struct attribute {
    /// Such as "path"; valid during the call.
    const char *name;
    /// Its value, valid during the call; what a client sent need not be UTF-8.
    std::string_view value;
};

/// The gates of a file in TOML, by name, and its classifier: as a handle, whose copies are the same gates.
/// They are given up with the last of the copies and of the gates that were found in them. Any thread may use
/// a handle that no other thread assigns to at the time. A handle that was moved away answers every call with
/// TIDEGATE_ERR_NULL.
///
///     const tidegate::gates gates("tidegate.toml");              // throws config_error with all that is
///     wrong const tidegate::gate db = gates["db"]; std::cout << gates.reload(); // what was changed, one
///     change a line
class gates
{
public:
#ifndef TIDEGATE_NO_EXCEPTIONS
    /// The gates of the file at `path`. Throws `config_error`, whose message has all that is wrong with it,
    /// one problem a line; `error` where header and library do not belong together.
    explicit gates(const std::string &path) : gates(open(path).value()) {}
#endif

    /// The gates of the file at `path`, or all that is wrong with it, one problem a line.
    [[nodiscard]] static result<gates, failure> open(const std::string &path)
    {
        return make([&](tidegate_gates **out, std::string &why) {
            return tidegate_open(path.c_str(), out, why.data(), why.size());
        });
    }

    /// The gates of a text in TOML, which messages call `file`.
    [[nodiscard]] static result<gates, failure> open_text(std::string_view text,
                                                          const std::string &file = "<text>")
    {
        return make([&](tidegate_gates **out, std::string &why) {
            return tidegate_open_text(data(text), text.size(), file.c_str(), out, why.data(), why.size());
        });
    }

    /// The gate of this name, if the file has it: each time a handle of the same gate.
    [[nodiscard]] std::optional<gate> find(std::string_view name) const noexcept
    {
        const tidegate_gate *of_it = nullptr;
        if (tidegate_find(handle_.get(), data(name), name.size(), &of_it) != TIDEGATE_ADMITTED) {
            return std::nullopt;
        }
        return gate(handle_, of_it);
    }

    /// All gates that the file has, in its order.
    [[nodiscard]] std::vector<gate> all() const
    {
        std::vector<gate> all;
        const tidegate_gate *of_it = nullptr;
        while (tidegate_gate_at(handle_.get(), all.size(), &of_it) == TIDEGATE_ADMITTED) {
            all.push_back(gate(handle_, of_it));
        }
        return all;
    }

    /// Reads the file again and makes the gates what it says now; gates keep what they count. What was
    /// changed, one change a line; or all that is wrong, and then nothing was changed.
    [[nodiscard]] result<std::string, failure> try_reload() const
    {
        return saying([&](std::string &report) {
            return tidegate_reload(handle_.get(), report.data(), report.size());
        });
    }

    /// The same from a text.
    [[nodiscard]] result<std::string, failure> try_reload_text(std::string_view text) const
    {
        return saying([&](std::string &report) {
            return tidegate_reload_text(handle_.get(), data(text), text.size(), report.data(), report.size());
        });
    }

    /// The priority of a request by the rules that the file has now; `priority::gate_default` where they
    /// leave it to the gate. Of several attributes with one name the first counts.
    [[nodiscard]] result<priority> try_classify(const attribute *attributes, std::size_t count) const
    {
        const auto raw = raw_attributes(attributes, count);
        std::int32_t decided = TIDEGATE_PRIORITY_DEFAULT;
        const status done(tidegate_classify(handle_.get(), raw.data(), raw.size(), &decided, nullptr, 0));
        if (!done.ok()) {
            return done;
        }
        return static_cast<priority>(decided);
    }

    /// The same for a list: `gates.try_classify({{"method", "GET"}, {"path", path}})`.
    [[nodiscard]] result<priority> try_classify(std::initializer_list<attribute> attributes) const
    {
        return try_classify(attributes.begin(), attributes.size());
    }

    /// A sentence with the rule that decides for a request.
    [[nodiscard]] result<std::string, failure> try_explain(std::initializer_list<attribute> attributes) const
    {
        const auto raw = raw_attributes(attributes.begin(), attributes.size());
        return saying([&](std::string &why) {
            std::int32_t decided = TIDEGATE_PRIORITY_DEFAULT;
            return tidegate_classify(handle_.get(), raw.data(), raw.size(), &decided, why.data(), why.size());
        });
    }

    /// What the gates and rules do, in words, with what is worth a second look.
    [[nodiscard]] result<std::string, failure> try_explain() const
    {
        std::size_t length = 0;
        tidegate_explain(handle_.get(), nullptr, 0, &length);
        return saying([&](std::string &text) {
            text.resize(length + 1);
            return tidegate_explain(handle_.get(), text.data(), text.size(), nullptr);
        });
    }

#ifndef TIDEGATE_NO_EXCEPTIONS
    /// As `find`. Throws `config_error` where the file has no such gate.
    [[nodiscard]] gate operator[](std::string_view name) const
    {
        if (auto found = find(name)) {
            return *std::move(found);
        }
        failure{status(TIDEGATE_ERR_ARGUMENT), "the file has no gate \"" + std::string(name) + "\""}.raise();
    }

    /// As `try_reload`. Throws `config_error`.
    std::string reload() const { return try_reload().value(); }

    /// As `try_reload_text`. Throws `config_error`.
    std::string reload_text(std::string_view text) const { return try_reload_text(text).value(); }

    /// As `try_classify`.
    [[nodiscard]] priority classify(std::initializer_list<attribute> attributes) const
    {
        return try_classify(attributes).value();
    }

    /// As `try_explain`.
    [[nodiscard]] std::string explain(std::initializer_list<attribute> attributes) const
    {
        return try_explain(attributes).value();
    }

    /// As `try_explain`.
    [[nodiscard]] std::string explain() const { return try_explain().value(); }
#endif

private:
    explicit gates(tidegate_gates *made) : handle_(made, tidegate_gates_free) {}

    /// An empty view may have no address, which is no empty text in C.
    static const char *data(std::string_view text) noexcept
    {
        return text.data() == nullptr ? "" : text.data();
    }

    /// What `call` writes into a text that has room for it.
    template <class Call>
    static result<std::string, failure> saying(Call &&call)
    {
        constexpr std::size_t room = 1 << 16;
        std::string said(room, '\0');
        const status done(call(said));
        said.resize(std::char_traits<char>::length(said.c_str()));
        if (!done.ok()) {
            return failure{done, std::move(said)};
        }
        return said;
    }

    template <class Open>
    static result<gates, failure> make(Open &&open)
    {
        if (auto mismatch = detail::abi_mismatch(tidegate_abi_version())) {
            return *std::move(mismatch);
        }
        tidegate_gates *made = nullptr;
        auto said = saying([&](std::string &why) { return open(&made, why); });
        if (!said) {
            return said.error();
        }
        return gates(made);
    }

    static std::vector<tidegate_attribute> raw_attributes(const attribute *attributes, std::size_t count)
    {
        std::vector<tidegate_attribute> raw;
        raw.reserve(count);
        for (std::size_t at = 0; at < count; ++at) {
            const auto &[name, value] = attributes[at];
            raw.push_back({name, data(value), value.size()});
        }
        return raw;
    }

    std::shared_ptr<tidegate_gates> handle_;
};

}  // namespace tidegate

#endif  // TIDEGATE_HPP
