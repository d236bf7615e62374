/*
 * Tidegate: a load shedder. A gate stands in front of a bottleneck, usually a database, counts what is inside
 * and turns the rest away at once, the least important first.
 *
 *     tidegate_config config = TIDEGATE_CONFIG_INIT;
 *     config.limit = 20;
 *     tidegate_gate *gate;
 *     char why[256];
 *     if (tidegate_gate_new(&config, "db", 2, &gate, why, sizeof why) < 0)
 *         return fail(why);
 *
 *     uint64_t permit;
 *     tidegate_status status = tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit);
 *     if (status == TIDEGATE_ADMITTED) {
 *         bool answered = query_the_database();
 *         tidegate_release(gate, permit, answered ? TIDEGATE_OUTCOME_SUCCESS : TIDEGATE_OUTCOME_OVERLOAD);
 *     } else {
 *         answer_503(tidegate_status_str(status));
 *     }
 *
 * Errors. Every call answers a tidegate_status: 0 is done, above 0 a reason for which the request was shed, below 0
 * an error. An error has changed nothing, but where its own text says otherwise. There is no last error to ask
 * for: what a call has to say it answers. Numbers are taken in types wide enough to see that a negative or too
 * large one is meant, and such a one is TIDEGATE_ERR_ARGUMENT. NULL where it makes no sense is
 * TIDEGATE_ERR_NULL. Numbers keep their meaning for ever and are never used for another. A fault inside the
 * library never unwinds into its caller. Without memory for another permit an admission is an error; without
 * memory for a gate or for a change of its configuration the program is aborted.
 *
 * Thread safety. Every function may be called from any thread at any time on the same gate, with one
 * exception, tidegate_gate_free and tidegate_gates_free. A permit may be released by another thread than asked for it. Nothing waits but
 * tidegate_drain. Not for signal handlers.
 *
 * Files. tidegate_open reads gates and rules from a file in TOML (docs/configuration.md), and tidegate_reload reads
 * it again while they are in use:
 *
 *     tidegate_gates *gates;
 *     const tidegate_gate *db;
 *     if (tidegate_open("tidegate.toml", &gates, why, sizeof why) < 0 || tidegate_find(gates, "db", 2, &db) < 0)
 *         return fail(why);
 *
 * Ownership. A gate belongs to who made it and is given up once, by tidegate_gate_free: no other call on it may then
 * be under way or come later, but the release of permits that are out, which keep the gate alive. A gate of a file
 * belongs to its tidegate_gates, and is given up with them, by tidegate_gates_free, in the same way. A permit is a
 * number, not a pointer: nothing to free, any language can hold it, and a stale one is noticed. Each permit has
 * to be released exactly once; one that is never released takes its weight from the limit for ever. Strings and
 * structs that a call gets are copied, and belong to the caller. Strings that it returns belong to the library.
 *
 * Fork. In a forked child every gate exists, empty, with its configuration and with counters at zero. Permits
 * of the parent are stale in the child, but keep their memory there, and a gate that is given up: nobody may
 * ever know that they are done with. A child made by vfork or a bare clone must not use gates.
 *
 * Loading. The library stays in memory once loaded: dlclose does not unload it. A static library lives once in each
 * program or shared library it was linked into, each with gates of its own.
 *
 * Versions. Structs start with their size, set by their _INIT macro; later versions only append to them. A program
 * works with any later library of the same TIDEGATE_ABI_VERSION. Compare it with tidegate_abi_version() where the
 * library is loaded at run time.
 *
 * Generated from bindings/c; do not edit.
 */

#ifndef TIDEGATE_H
#define TIDEGATE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What tidegate_config starts from: all defaults, and a limit (-1) that has to be set. */
#define TIDEGATE_CONFIG_INIT                                                                          \
    {                                                                                                 \
        sizeof(tidegate_config), TIDEGATE_PRIORITY_CRITICAL, -1, {{0, 0}, {0, 0}, {0, 0}, {0, 0}},    \
        true, false, false, {0}, {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, 0, NULL, 0                         \
    }

/** What tidegate_signal_config starts from: all defaults, and a kind (0) that has to be set. */
#define TIDEGATE_SIGNAL_INIT {sizeof(tidegate_signal_config), 0, NULL, -1, -1, -1, -1, -1, -1, -1}

/** What tidegate_controller_report, tidegate_limit_change, tidegate_pressure and tidegate_signal_report start from. */
#define TIDEGATE_CONTROLLER_REPORT_INIT                                                               \
    {                                                                                                 \
        sizeof(tidegate_controller_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0               \
    }
#define TIDEGATE_LIMIT_CHANGE_INIT {sizeof(tidegate_limit_change), 0, 0, 0, 0, {0}}
#define TIDEGATE_PRESSURE_INIT {sizeof(tidegate_pressure), false, {0}, 0, {0}, 0, 0}
#define TIDEGATE_SIGNAL_REPORT_INIT                                                                   \
    {                                                                                                 \
        sizeof(tidegate_signal_report), false, {0}, 0, 0, 0, 0, 0, 0, 0, 0, {0}                       \
    }

/** What tidegate_permit starts from. */
#define TIDEGATE_PERMIT_INIT {sizeof(tidegate_permit), 0, 0, false, {0}}

/** What tidegate_stats starts from. */
#define TIDEGATE_STATS_INIT                                                                           \
    {                                                                                                 \
        sizeof(tidegate_stats), 0, 0, 0, 0, {0}, 0, false, false, false, {0}, {0}, {{0}}, {0}, {0},   \
        0, 0, 0, 0, 0                                                                                 \
    }

/**
 * The version of this interface. It changes when a program that was compiled with an older header would
 * no longer work, and with it changes the library's soname. Compare it with `tidegate_abi_version()` where
 * header and library may come from different places.
 */
#define TIDEGATE_ABI_VERSION 1

/**
 * Shed last: serious, user-visible harm when it fails.
 */
#define TIDEGATE_PRIORITY_CRITICAL_PLUS 0

/**
 * User-visible harm when it fails. Also called essential.
 */
#define TIDEGATE_PRIORITY_CRITICAL 1

/**
 * Partial unavailability is expected: batch work, retries made later.
 */
#define TIDEGATE_PRIORITY_SHEDDABLE_PLUS 2

/**
 * Shed first: frequent unavailability is expected. Also called non-essential.
 */
#define TIDEGATE_PRIORITY_SHEDDABLE 3

/**
 * The gate's default priority; counted in `fallback_priority`. Far from the others, so that no sum or
 * cast makes one of it.
 */
#define TIDEGATE_PRIORITY_DEFAULT 1000

/**
 * The resource answered, even with an error of its own.
 */
#define TIDEGATE_OUTCOME_SUCCESS 0

/**
 * The resource was too busy: timed out, pool exhausted.
 */
#define TIDEGATE_OUTCOME_OVERLOAD 1

/**
 * The work says nothing about the resource: cancelled, interrupted, never begun.
 */
#define TIDEGATE_OUTCOME_IGNORE 2

/**
 * This priority's threshold is the gate's default: 1.0, 1.0, 0.9 and 0.75 of the limit, lowered to what
 * a more important priority and raised to what a less important one was set to.
 */
#define TIDEGATE_THRESHOLD_DEFAULT 0

/**
 * The value is a share of the limit in parts per million, 0 to 1000000; rounded up to whole weight.
 */
#define TIDEGATE_THRESHOLD_PPM 1

/**
 * The value is the weight that this priority leaves free, 0 to 2147483647.
 */
#define TIDEGATE_THRESHOLD_RESERVE 2

/**
 * As a timeout: for ever.
 */
#define TIDEGATE_FOREVER (-1)

/**
 * Nothing moves the limit.
 */
#define TIDEGATE_CONTROLLER_NONE 0

/**
 * Holds the limit. Everything else that a controller shows is there.
 */
#define TIDEGATE_CONTROLLER_FIXED 1

/**
 * One more while nothing is overload, a tenth less when something is.
 */
#define TIDEGATE_CONTROLLER_AIMD 2

/**
 * By latency against its long average.
 */
#define TIDEGATE_CONTROLLER_GRADIENT2 3

/**
 * By latency against the shortest seen.
 */
#define TIDEGATE_CONTROLLER_VEGAS 4

/**
 * Climbs to where most good answers come out.
 */
#define TIDEGATE_CONTROLLER_GOODPUT 5

/**
 * Nothing spoke for a move.
 */
#define TIDEGATE_CAUSE_HOLD 0

/**
 * One arm of an experiment: a little above or below, and back soon.
 */
#define TIDEGATE_CAUSE_PROBE 1

/**
 * The evidence was for more.
 */
#define TIDEGATE_CAUSE_RAISE 2

/**
 * The evidence was for less.
 */
#define TIDEGATE_CAUSE_LOWER 3

/**
 * Most answers were late or failed: down at once.
 */
#define TIDEGATE_CAUSE_LOST 4

/**
 * A rate per second.
 */
#define TIDEGATE_PER_SECOND 1

/**
 * A rate per minute.
 */
#define TIDEGATE_PER_MINUTE 60

/**
 * A rate per hour.
 */
#define TIDEGATE_PER_HOUR 3600

/**
 * CPU time used of what the process may use.
 */
#define TIDEGATE_SIGNAL_CPU 1

/**
 * Memory in use of what the process may use.
 */
#define TIDEGATE_SIGNAL_MEMORY 2

/**
 * The share of time in which something waited for a CPU.
 */
#define TIDEGATE_SIGNAL_PSI_CPU 3

/**
 * The share of time in which something waited for memory.
 */
#define TIDEGATE_SIGNAL_PSI_MEMORY 4

/**
 * The share of time in which something waited for a disk.
 */
#define TIDEGATE_SIGNAL_PSI_IO 5

/**
 * How long the gate's own permits are held, as a share of its objective.
 */
#define TIDEGATE_SIGNAL_LATENCY 6

/**
 * The share of the gate's own answers that were overload.
 */
#define TIDEGATE_SIGNAL_ERRORS 7

/**
 * What `tidegate_signal` pushes.
 */
#define TIDEGATE_SIGNAL_PUSHED 8

/**
 * The admission controller of one protected resource. Make it with `tidegate_gate_new`, give it up with
 * `tidegate_gate_free`; in between every function may be called on it from any thread at any time.
 */
typedef struct tidegate_gate tidegate_gate;

/**
 * The gates of a file, by name, and its classifier. Make it with `tidegate_open`, give it up with
 * `tidegate_gates_free`; in between every function may be called on it from any thread at any time.
 */
typedef struct tidegate_gates tidegate_gates;

/**
 * What a call answers: `TIDEGATE_ADMITTED` (0), a positive reason for which the request was shed, or a
 * negative error. An error has changed nothing, but where its own text says otherwise.
 */
typedef int32_t tidegate_status;

/**
 * How full a gate may be for one priority still to enter.
 */
typedef struct tidegate_threshold {
    /**
     * One of the `TIDEGATE_THRESHOLD_` numbers.
     */
    int32_t kind;
    /**
     * What the kind says; unused by `TIDEGATE_THRESHOLD_DEFAULT`.
     */
    int64_t value;
} tidegate_threshold;

/**
 * How much may be admitted a time, by weight: in any stretch of time T no more than burst + T x count / per. All
 * zero is no rate: any.
 */
typedef struct tidegate_rate {
    /**
     * 0 to 10000000000. Of 0 the burst is admitted once, and then nothing.
     */
    int64_t count;
    /**
     * The most weight that may enter at once, 1 to 2147483647; 0 is the default: what one second brings, rounded up,
     * and 1 at least.
     */
    int64_t burst;
    /**
     * `TIDEGATE_PER_SECOND`, `TIDEGATE_PER_MINUTE` or `TIDEGATE_PER_HOUR`.
     */
    int32_t per;
    /**
     * Zero.
     */
    int32_t reserved;
} tidegate_rate;

/**
 * What moves a gate's limit, and within which bounds; docs/choosing.md says which when. All zero is nothing.
 */
typedef struct tidegate_controller {
    /**
     * One of the `TIDEGATE_CONTROLLER_` numbers.
     */
    int32_t kind;
    /**
     * Zero.
     */
    int32_t reserved;
    /**
     * The smallest limit, 1 to `max`; 0 is the default: 1.
     */
    int64_t min;
    /**
     * The largest, 1 to 2147483647; 0 is the default: 1000, or `min` if that is more.
     */
    int64_t max;
    /**
     * A limit that a capacity test has shown to hold, at least `min`: nothing goes above it. 0: none.
     */
    int64_t ceiling;
    /**
     * The limit to start from, `min` to `max`; 0 is the default: the gate's own limit, and where that is left out,
     * too, the geometric mean of `min` and `max`.
     */
    int64_t prior;
} tidegate_controller;

/**
 * A signal that a gate watches, and what its readings mean: docs/signals.md. Start with `TIDEGATE_SIGNAL_INIT`, and
 * set `kind`. What is negative has the kind's default.
 */
typedef struct tidegate_signal_config {
    /**
     * `sizeof(tidegate_signal_config)`.
     */
    uint32_t struct_size;
    /**
     * One of the `TIDEGATE_SIGNAL_` numbers. Has to be set.
     */
    int32_t kind;
    /**
     * A label that ends with NUL; each signal of a gate has one of its own. NULL is the kind's name: "cpu",
     * "memory", "psi-cpu", "psi-memory", "psi-io", "latency", "errors", "pushed".
     */
    const char *name;
    /**
     * Overloaded at this pressure or above, 0.0 to 1.0.
     */
    double enter;
    /**
     * Not overloaded any more at this pressure or below; below `enter`.
     */
    double leave;
    /**
     * The pressure at which all is shed that can be; `enter` or above.
     */
    double full;
    /**
     * For how long it must stay at `enter` or above, in seconds.
     */
    double enter_for;
    /**
     * For how long it must stay at `leave` or below, in seconds.
     */
    double leave_for;
    /**
     * How long it rests after a change, in seconds.
     */
    double dwell;
    /**
     * In which time what it sheds may rise from nothing to all, in seconds.
     */
    double ramp;
} tidegate_signal_config;

/**
 * What a gate is made from. Start with `TIDEGATE_CONFIG_INIT`, and set at least `limit`:
 *
 *     tidegate_config config = TIDEGATE_CONFIG_INIT;
 *     config.limit = 20;
 */
typedef struct tidegate_config {
    /**
     * `sizeof(tidegate_config)`. Bytes that this library's version does not know must be zero.
     */
    uint32_t struct_size;
    /**
     * The priority of requests that ask for `TIDEGATE_PRIORITY_DEFAULT`. Critical.
     */
    int32_t default_priority;
    /**
     * The most weight that may be in flight, 0 to 2147483647. Has to be set, but with a controller, which starts from
     * it; -1 there leaves the start to its default.
     */
    int64_t limit;
    /**
     * By priority, most important first. The first is the limit itself: 1000000 ppm or a reserve of 0. They
     * must not rise as importance falls. All default.
     */
    struct tidegate_threshold thresholds[4];
    /**
     * False is dry run: everything is let in, and what would have been shed is counted. True.
     */
    bool enforce;
    /**
     * Whether to measure how long permits are held: two clock readings each, and 32 KiB a gate. False.
     */
    bool timing;
    /**
     * Whether `tidegate_enter` will be used. Then an exit too many does no harm at any moment. False.
     */
    bool bare_entries;
    /**
     * Zero.
     */
    uint8_t reserved[5];
    /**
     * How much may be admitted a time. Any.
     */
    struct tidegate_rate rate;
    /**
     * What moves the limit. Nothing.
     */
    struct tidegate_controller controller;
    /**
     * The time within which an answer is good, in seconds, for the controller and for latency signals; 0 is none:
     * every success is good. None.
     */
    double objective;
    /**
     * The signals to watch, `signal_count` of them. None.
     */
    const struct tidegate_signal_config *signals;
    /**
     * How many there are.
     */
    size_t signal_count;
} tidegate_config;

/**
 * What a permit that is out was admitted with. Start with `TIDEGATE_PERMIT_INIT`.
 */
typedef struct tidegate_permit {
    /**
     * `sizeof(tidegate_permit)`.
     */
    uint32_t struct_size;
    /**
     * The priority, 0 to 3.
     */
    int32_t priority;
    /**
     * The weight.
     */
    int64_t weight;
    /**
     * Whether dry run let it in although enforcement would have shed it.
     */
    bool over;
    /**
     * Zero.
     */
    uint8_t reserved[7];
} tidegate_permit;

/**
 * A reading of a gate's counters. Start with `TIDEGATE_STATS_INIT`.
 *
 * Each counter only grows, and in every reading no more was released than admitted. At rest, that is when
 * no call is under way, all of it is exact. Every attempt is counted once, in `admitted`, `shed` or
 * `would_shed`; what is in `would_shed` is in neither `admitted` nor, later, `released`. After a fork the
 * child counts from zero.
 */
typedef struct tidegate_stats {
    /**
     * `sizeof(tidegate_stats)`. What a later version added becomes zero.
     */
    uint32_t struct_size;
    /**
     * How often the configuration changed, modulo 2^29.
     */
    uint32_t generation;
    /**
     * The most weight that may be in flight.
     */
    uint32_t limit;
    /**
     * The weight in flight, without what dry run let in beyond the limit.
     */
    uint32_t in_flight;
    /**
     * The most weight that was ever in flight.
     */
    uint32_t high_water;
    /**
     * How full the gate may be for each priority still to enter, in weight.
     */
    uint32_t thresholds[4];
    /**
     * The priority of requests that name none.
     */
    int32_t default_priority;
    /**
     * Whether the gate turns requests away; false in dry run.
     */
    bool enforce;
    /**
     * Whether the gate was closed.
     */
    bool closed;
    /**
     * Whether it measures how long permits are held.
     */
    bool timing;
    /**
     * Zero.
     */
    uint8_t reserved[5];
    /**
     * Admissions by priority.
     */
    uint64_t admitted[4];
    /**
     * Requests turned away, by priority and by reason:
     * `shed[TIDEGATE_PRIORITY_CRITICAL][TIDEGATE_SHED_LIMIT - 1]`.
     */
    uint64_t shed[4][7];
    /**
     * What dry run let in although enforcement would have shed it, by priority.
     */
    uint64_t would_shed[4];
    /**
     * Admissions that were released, by outcome.
     */
    uint64_t released[3];
    /**
     * Exits without an entry.
     */
    uint64_t unmatched_exits;
    /**
     * Permits that were released by `tidegate_release_collected`.
     */
    uint64_t collected;
    /**
     * Admissions that asked for `TIDEGATE_PRIORITY_DEFAULT`.
     */
    uint64_t fallback_priority;
    /**
     * What dry run let in beyond the limit and is still inside, in permits.
     */
    uint64_t over_in_flight;
    /**
     * With timing, the time integral of the weight in flight, in weight-microseconds modulo 2^63. Its
     * difference over an interval, divided by the interval, is the mean weight in flight. No counter: a
     * reading during calls may be off by what they do, so take the difference as a signed number.
     */
    uint64_t occupancy_us;
} tidegate_stats;

/**
 * What is known of a request: see `tidegate_classify`.
 */
typedef struct tidegate_attribute {
    /**
     * Such as "path"; ends with NUL.
     */
    const char *name;
    /**
     * `value_len` bytes, which need not end with NUL; NULL where the request lacks it.
     */
    const char *value;
    /**
     * How many bytes the value has.
     */
    size_t value_len;
} tidegate_attribute;

/**
 * What a gate's controller is at. Start with `TIDEGATE_CONTROLLER_REPORT_INIT`.
 */
typedef struct tidegate_controller_report {
    /**
     * `sizeof(tidegate_controller_report)`. What a later version added becomes zero.
     */
    uint32_t struct_size;
    /**
     * One of the `TIDEGATE_CONTROLLER_` numbers; `TIDEGATE_CONTROLLER_NONE` where there is none, and then all else
     * is zero.
     */
    int32_t kind;
    /**
     * The smallest limit.
     */
    uint32_t min;
    /**
     * The largest, the ceiling included.
     */
    uint32_t max;
    /**
     * Where it started.
     */
    uint32_t prior;
    /**
     * Why the limit is what it is: one of the `TIDEGATE_CAUSE_` numbers.
     */
    int32_t cause;
    /**
     * The time within which an answer is good, in seconds; 0: every success is.
     */
    double objective;
    /**
     * How often it looked.
     */
    uint64_t looks;
    /**
     * How often it moved the limit on evidence.
     */
    uint64_t moves;
    /**
     * How often it moved the limit for an experiment, there and back.
     */
    uint64_t probes;
    /**
     * Of the window that it looked at last: how long it was, in seconds,
     */
    double window;
    /**
     * the permits that came back with `success` or `overload`,
     */
    uint64_t completions;
    /**
     * those that were good,
     */
    uint64_t good;
    /**
     * those with `overload`,
     */
    uint64_t overload;
    /**
     * requests that were admitted,
     */
    uint64_t admissions;
    /**
     * and those that met a full gate.
     */
    uint64_t refusals;
} tidegate_controller_report;

/**
 * One change of a gate's limit. Start with `TIDEGATE_LIMIT_CHANGE_INIT`.
 */
typedef struct tidegate_limit_change {
    /**
     * `sizeof(tidegate_limit_change)`. What a later version added becomes zero.
     */
    uint32_t struct_size;
    /**
     * The limit before.
     */
    uint32_t from;
    /**
     * The limit from then on.
     */
    uint32_t to;
    /**
     * Zero.
     */
    uint32_t reserved;
    /**
     * How long ago it was, in seconds.
     */
    double age;
    /**
     * Why, as whoever changed it said, or "raise", "lower" or "lost" for a controller; cut to 63 bytes and ended
     * with NUL; empty for nothing.
     */
    char cause[64];
} tidegate_limit_change;

/**
 * What a gate's signals come to. Start with `TIDEGATE_PRESSURE_INIT`.
 */
typedef struct tidegate_pressure {
    /**
     * `sizeof(tidegate_pressure)`. What a later version added becomes zero.
     */
    uint32_t struct_size;
    /**
     * Whether any signal is overloaded.
     */
    bool overloaded;
    /**
     * Zero.
     */
    uint8_t reserved[3];
    /**
     * The pressure level, 0.0 to 1.0: that of the worst signal.
     */
    double level;
    /**
     * Which share of each priority it sheds, 0.0 to 1.0, most important first.
     */
    double shares[4];
    /**
     * How many signals there are.
     */
    uint64_t signals;
    /**
     * How often one became overloaded, or no longer was.
     */
    uint64_t transitions;
} tidegate_pressure;

/**
 * What one signal says. Start with `TIDEGATE_SIGNAL_REPORT_INIT`.
 */
typedef struct tidegate_signal_report {
    /**
     * `sizeof(tidegate_signal_report)`. What a later version added becomes zero.
     */
    uint32_t struct_size;
    /**
     * Whether it is overloaded.
     */
    bool overloaded;
    /**
     * Zero.
     */
    uint8_t reserved[3];
    /**
     * What it said when it was last looked at, 0.0 to 1.0; -1 is unknown.
     */
    double value;
    /**
     * Its own pressure level, 0.0 to 1.0.
     */
    double level;
    /**
     * Overloaded at this or above.
     */
    double enter;
    /**
     * Not overloaded any more at this or below.
     */
    double leave;
    /**
     * Its level is 1 at this.
     */
    double full;
    /**
     * How often it was measured, or a value pushed.
     */
    uint64_t reads;
    /**
     * How often it did not know.
     */
    uint64_t failures;
    /**
     * What the last measurement took, in seconds.
     */
    double cost;
    /**
     * Its name, ended with NUL.
     */
    char name[256];
} tidegate_signal_report;

/**
 * Admitted; from calls that do not ask for admission: done.
 */
#define TIDEGATE_ADMITTED 0

/**
 * Shed: the weight does not fit under the limit, the gate is full.
 */
#define TIDEGATE_SHED_LIMIT 1

/**
 * Shed: it would fit under the limit, but the rest is kept for more important priorities.
 */
#define TIDEGATE_SHED_PRIORITY 2

/**
 * Shed: the rate limit is used up. Reserved: no gate has one yet.
 */
#define TIDEGATE_SHED_RATE 3

/**
 * Shed: a signal says that the resource is overloaded. Reserved.
 */
#define TIDEGATE_SHED_PRESSURE 4

/**
 * Shed: the gate is closed.
 */
#define TIDEGATE_SHED_CLOSED 5

/**
 * The wait was longer than allowed: what `tidegate_drain` answers when permits are still out.
 */
#define TIDEGATE_SHED_TIMEOUT 6

/**
 * Shed: this host's share of the fleet's limit is used up. Reserved.
 */
#define TIDEGATE_SHED_SHARE 7

/**
 * A pointer that must not be NULL is NULL.
 */
#define TIDEGATE_ERR_NULL (-1)

/**
 * An argument is outside its rule.
 */
#define TIDEGATE_ERR_ARGUMENT (-2)

/**
 * The permit is not out: it was released before, belongs to another gate or, in a forked child, to the
 * parent, or was never given. Also an exit without its entry.
 */
#define TIDEGATE_ERR_STALE (-3)

/**
 * A fault inside the library, which was caught. Please report it.
 */
#define TIDEGATE_ERR_PANIC (-4)

/**
 * A struct of a version that this library cannot serve.
 */
#define TIDEGATE_ERR_VERSION (-5)

/**
 * The configuration contradicts itself: thresholds that rise as importance falls, or a top one that is not
 * the limit. Of a file: it cannot be read, or something in it breaks a rule.
 */
#define TIDEGATE_ERR_CONFIG (-6)

/**
 * No room for another permit: 2^24 of this gate are out, or there is no memory. The admission was taken
 * back; the gate counted it as admitted and released with outcome `ignore`.
 */
#define TIDEGATE_ERR_EXHAUSTED (-7)

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What a status means, in English. Never NULL; valid for ever; also for numbers that mean nothing.
 */
const char *tidegate_status_str(tidegate_status status);

/**
 * The `TIDEGATE_ABI_VERSION` that the library was built with.
 */
uint32_t tidegate_abi_version(void);

/**
 * Makes a gate.
 *
 * `config`: see `tidegate_config`. `name`: a label for people, `name_len` bytes of UTF-8, 1 to 255, without
 * control characters; it is copied, and need not end with NUL. Two gates may have the same name. `out` gets
 * the gate, or NULL where none was made. `err`: a buffer of `err_cap` bytes that gets the reason in
 * English, naming the value and the rule, cut if need be and always ended with NUL, or an empty string; may
 * be NULL.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_ARGUMENT`, `TIDEGATE_ERR_VERSION` or
 * `TIDEGATE_ERR_CONFIG`.
 */
tidegate_status tidegate_gate_new(const struct tidegate_config *config,
                                  const char *name,
                                  size_t name_len,
                                  struct tidegate_gate **out,
                                  char *err,
                                  size_t err_cap);

/**
 * Gives a gate up. NULL is fine and does nothing.
 *
 * No other call on this gate may be under way, but for `tidegate_release` of permits that are out. While
 * any are, the gate lives on, closed, and they can be released as before; with the last of them it is gone.
 * With no permit out it is gone when this returns, and its pointer and permits must not be used again. A gate of
 * a file belongs to its `tidegate_gates`: here it is left as it is.
 */
void tidegate_gate_free(struct tidegate_gate *gate);

/**
 * The gate's name, ended with NUL, valid as long as the gate. NULL for NULL.
 */
const char *tidegate_gate_name(const struct tidegate_gate *gate);

/**
 * Asks for a permit. Never waits.
 *
 * `priority`: one of the `TIDEGATE_PRIORITY_` numbers. `weight`: how much of the limit the permit takes, 1
 * to 2147483647. `permit` gets a number that is never 0 and never given again, for `tidegate_release`, or 0
 * where nothing was admitted.
 *
 * Answers `TIDEGATE_ADMITTED`, a `TIDEGATE_SHED_` reason, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_ARGUMENT` or
 * `TIDEGATE_ERR_EXHAUSTED`.
 */
tidegate_status tidegate_try_admit(const struct tidegate_gate *gate,
                                   int32_t priority,
                                   int64_t weight,
                                   uint64_t *permit);

/**
 * Gives a permit back, exactly once, from any thread.
 *
 * `outcome`: what its work came to, one of the `TIDEGATE_OUTCOME_` numbers.
 *
 * Answers `TIDEGATE_ADMITTED`; `TIDEGATE_ERR_STALE` when the permit is not out on this gate, because it was
 * released before (of two threads that release it at once, one gets this answer) or by the parent of a
 * forked process; `TIDEGATE_ERR_ARGUMENT` for a number that is no outcome, which leaves the permit out;
 * `TIDEGATE_ERR_NULL`.
 */
tidegate_status tidegate_release(const struct tidegate_gate *gate, uint64_t permit, int32_t outcome);

/**
 * As `tidegate_release` with outcome `ignore`, and counted as collected: for bindings to languages with a
 * garbage collector, whose finalizer found a permit that was forgotten.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_STALE` as `tidegate_release` does, or `TIDEGATE_ERR_NULL`.
 */
tidegate_status tidegate_release_collected(const struct tidegate_gate *gate, uint64_t permit);

/**
 * Reads what a permit that is out was admitted with.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_STALE` as `tidegate_release` does, or
 * `TIDEGATE_ERR_VERSION`.
 */
tidegate_status tidegate_get_permit(const struct tidegate_gate *gate,
                                    uint64_t permit,
                                    struct tidegate_permit *out);

/**
 * Enters without a permit, with weight 1: for blocks whose structure guarantees that each entry has its
 * `tidegate_exit`. Where that is not certain use `tidegate_try_admit`, which notices. Set `bare_entries` in
 * the configuration of gates that are used like this.
 *
 * Answers as `tidegate_try_admit` does.
 */
tidegate_status tidegate_enter(const struct tidegate_gate *gate, int32_t priority);

/**
 * Leaves after `tidegate_enter`. Has to have returned before the gate is given up.
 *
 * Answers `TIDEGATE_ADMITTED`; `TIDEGATE_ERR_STALE`, counted in `unmatched_exits` and without effect, where
 * nothing is inside or nobody ever entered like that; `TIDEGATE_ERR_ARGUMENT`; `TIDEGATE_ERR_NULL`. An exit
 * too many while others are inside cannot be told from one of theirs. In dry run an exit draws whether its
 * entry was over the limit: right on average for exponential service times only.
 */
tidegate_status tidegate_exit(const struct tidegate_gate *gate, int32_t outcome);

/**
 * For how long a request like this should stay away, in seconds: a lower bound, from how quickly the gate
 * drains for its priority. 0 when it would be admitted now, -1 when nothing is known yet, `HUGE_VAL` when
 * no retry can succeed (the gate is closed, or the weight exceeds the priority's threshold).
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_ARGUMENT`.
 */
tidegate_status tidegate_retry_after(const struct tidegate_gate *gate,
                                     int32_t priority,
                                     int64_t weight,
                                     double *seconds);

/**
 * Reads all counters.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_VERSION`.
 */
tidegate_status tidegate_get_stats(const struct tidegate_gate *gate, struct tidegate_stats *out);

/**
 * The weight in flight, without what dry run let in beyond the limit: one load, where `tidegate_get_stats`
 * adds up all counters. `TIDEGATE_ERR_NULL` (negative) for NULL.
 */
int64_t tidegate_in_flight(const struct tidegate_gate *gate);

/**
 * The most weight that may be in flight. `TIDEGATE_ERR_NULL` (negative) for NULL.
 */
int64_t tidegate_limit(const struct tidegate_gate *gate);

/**
 * How long permits of a priority were held, in seconds: what a share `q` (0.0 to 1.0) of them did not
 * exceed, within 1.6 %. Permits that were released with outcome `ignore` are left out. -1 without timing,
 * or where nothing was measured yet.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` for a `q` that is not from 0
 * to 1 and for a number that is none of the four priorities.
 */
tidegate_status tidegate_latency(const struct tidegate_gate *gate,
                                 int32_t priority,
                                 double q,
                                 double *seconds);

/**
 * Sets the most weight that may be in flight, 0 to 2147483647. Once this has returned, nothing is admitted
 * above it. Permits that are out stay valid: below them the gate admits nothing until enough have left.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_ARGUMENT`.
 */
tidegate_status tidegate_set_limit(const struct tidegate_gate *gate, int64_t limit);

/**
 * As `tidegate_set_limit`, with the cause for the gate's history: a string that ends with NUL, copied, with
 * what is no UTF-8 in it replaced; or NULL.
 *
 * Answers as that does.
 */
tidegate_status tidegate_set_limit_cause(const struct tidegate_gate *gate, int64_t limit, const char *cause);

/**
 * Sets all thresholds as shares of the limit in parts per million, most important priority first: the first
 * is 1000000, and none exceeds the one before it.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_ARGUMENT` for a share above 1000000 or
 * `TIDEGATE_ERR_CONFIG` where they contradict each other.
 *
 */
tidegate_status tidegate_set_thresholds(const struct tidegate_gate *gate, const uint32_t ppm[4]);

/**
 * Sets all thresholds, each as a share, as a reserve, or to its default: the general form of
 * `tidegate_set_thresholds`.
 *
 * Answers as that does; `TIDEGATE_ERR_ARGUMENT` also for a number that is no kind and for a value outside its
 * kind's rule.
 *
 */
tidegate_status tidegate_set_threshold_kinds(const struct tidegate_gate *gate,
                                             const struct tidegate_threshold thresholds[4]);

/**
 * Switches dry run off (true) or on (false). In dry run everything is let in, and what would have been shed
 * is counted.
 *
 * Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
 */
tidegate_status tidegate_set_enforce(const struct tidegate_gate *gate, bool enforce);

/**
 * Closes the gate for good: nothing is admitted any more, also in dry run. What is inside may leave in its
 * own time. Closing it again changes nothing.
 *
 * Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
 */
tidegate_status tidegate_close(const struct tidegate_gate *gate);

/**
 * Closes the gate and waits until everything inside has left, at most `timeout_ms` milliseconds; 0 looks
 * without waiting, `TIDEGATE_FOREVER` (-1) waits as long as it takes. Several threads may wait at once.
 *
 * Answers `TIDEGATE_ADMITTED` when nothing is inside, `TIDEGATE_SHED_TIMEOUT` when something still is,
 * `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` for any other negative number, which does not close the
 * gate.
 */
tidegate_status tidegate_drain(const struct tidegate_gate *gate, int64_t timeout_ms);

/**
 * Reads a file of gates, in TOML: see docs/configuration.md.
 *
 * `path`: the file, ended with NUL. `out` gets the gates, or NULL where the file cannot be used. `err`: a buffer
 * of `err_cap` bytes that gets the reason: everything that is wrong with the file, one problem a line with its
 * line, value and rule, cut if need be and always ended with NUL, or an empty string; may be NULL.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_CONFIG` where the file cannot be read or
 * breaks a rule.
 */
tidegate_status tidegate_open(const char *path,
                              struct tidegate_gates **out,
                              char *err,
                              size_t err_cap);

/**
 * As `tidegate_open`, from a text of `text_len` bytes. `file`: what messages call it, ended with NUL; NULL is
 * "<text>".
 *
 * Answers as that does, or `TIDEGATE_ERR_ARGUMENT` for a `text_len` such as -1.
 */
tidegate_status tidegate_open_text(const char *text,
                                   size_t text_len,
                                   const char *file,
                                   struct tidegate_gates **out,
                                   char *err,
                                   size_t err_cap);

/**
 * Gives the gates up, all of them as `tidegate_gate_free` does: permits that are out keep their gate alive, closed,
 * and can be released as before. NULL is fine and does nothing.
 *
 * No other call on them may be under way, but for `tidegate_release` of permits that are out.
 */
void tidegate_gates_free(struct tidegate_gates *gates);

/**
 * The gate of a name, `name_len` bytes of UTF-8: the same pointer at every call. It belongs to the gates and is
 * valid until they are given up, also where a reload has the file without it, which closes it. `out` gets it,
 * or NULL where the file has no such gate.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` where the file has no such gate.
 */
tidegate_status tidegate_find(const struct tidegate_gates *gates,
                              const char *name,
                              size_t name_len,
                              const struct tidegate_gate **out);

/**
 * The gate at a position among those that the file has, from 0, in the file's order: for going through all of
 * them. Otherwise as `tidegate_find`; `TIDEGATE_ERR_ARGUMENT` behind the last.
 */
tidegate_status tidegate_gate_at(const struct tidegate_gates *gates,
                                 size_t position,
                                 const struct tidegate_gate **out);

/**
 * Reads the file again and makes its gates what it says now. Nothing is admitted above a new limit once this has
 * returned, and no count is lost. A gate that the file has no more is closed until it has it again.
 *
 * `report`: a buffer of `report_cap` bytes that gets what was changed, one change a line, or why nothing was, as
 * `tidegate_open` has it; cut if need be and always ended with NUL; may be NULL.
 *
 * Answers `TIDEGATE_ADMITTED`, also where there was nothing to change; `TIDEGATE_ERR_NULL`; or
 * `TIDEGATE_ERR_CONFIG` where the file cannot be used, or wants something of a gate in use that is fixed when it is
 * made (`timing`). Then nothing was changed.
 */
tidegate_status tidegate_reload(const struct tidegate_gates *gates,
                                char *report,
                                size_t report_cap);

/**
 * As `tidegate_reload`, from a text of `text_len` bytes.
 *
 * Answers as that does, or `TIDEGATE_ERR_ARGUMENT` for a `text_len` such as -1.
 */
tidegate_status tidegate_reload_text(const struct tidegate_gates *gates,
                                     const char *text,
                                     size_t text_len,
                                     char *report,
                                     size_t report_cap);

/**
 * What the gates and rules do, in words, with what is worth a second look, as `tidegate check FILE` prints it.
 *
 * `text`: a buffer of `text_cap` bytes, filled as `err` of `tidegate_open`; may be NULL. `length` gets how long the
 * whole text is, in bytes without the NUL; may be NULL.
 *
 * Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
 */
tidegate_status tidegate_explain(const struct tidegate_gates *gates,
                                 char *text,
                                 size_t text_cap,
                                 size_t *length);

/**
 * The priority of a request by the rules that the file has now.
 *
 * `attributes`: what is known of it, `count` of them; of several with one name the first counts. What a client
 * sent need not be UTF-8. `priority` gets one of the `TIDEGATE_PRIORITY_` numbers, `TIDEGATE_PRIORITY_DEFAULT` where
 * no rule matches and there is no default, or no classifier: fit for `tidegate_try_admit` either way. `why`: a
 * buffer of `why_cap` bytes that gets a sentence with the rule that decided, filled as `err` of `tidegate_open`;
 * may be NULL, which costs less.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` for more than 4096 attributes or a
 * `value_len` such as -1.
 */
tidegate_status tidegate_classify(const struct tidegate_gates *gates,
                                  const struct tidegate_attribute *attributes,
                                  size_t count,
                                  int32_t *priority,
                                  char *why,
                                  size_t why_cap);

/**
 * Reads what the gate's controller is at.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_VERSION`.
 */
tidegate_status tidegate_get_controller(const struct tidegate_gate *gate,
                                        struct tidegate_controller_report *out);

/**
 * Reads one of the last 64 changes of the limit: the one at `position`, from 0, the latest first. A controller's
 * experiments are not among them.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_VERSION`, or `TIDEGATE_ERR_ARGUMENT` behind the
 * last.
 */
tidegate_status tidegate_get_limit_change(const struct tidegate_gate *gate,
                                          size_t position,
                                          struct tidegate_limit_change *out);

/**
 * Pushes a value into a signal of kind `TIDEGATE_SIGNAL_PUSHED`; whoever asks for a permit next has it looked at.
 *
 * `name`: the signal's, `name_len` bytes of UTF-8. `value`: a pressure from 0.0 to 1.0. `good_for_ms`: for how many
 * milliseconds it holds, from 0 on; after that the signal is unknown, which is never overload.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` where the gate has no such signal, or
 * one that is measured, and for numbers outside their rule. Then nothing was changed.
 */
tidegate_status tidegate_signal(const struct tidegate_gate *gate,
                                const char *name,
                                size_t name_len,
                                double value,
                                int64_t good_for_ms);

/**
 * Reads what the gate's signals come to; all zero without signals. Where it is time to look at them, this does.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_VERSION`.
 */
tidegate_status tidegate_get_pressure(const struct tidegate_gate *gate,
                                      struct tidegate_pressure *out);

/**
 * Reads what the signal at a position says, from 0, in the order in which they were given. Where it is time to look at
 * the signals, this does.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_VERSION`, or `TIDEGATE_ERR_ARGUMENT` behind the
 * last.
 */
tidegate_status tidegate_get_signal(const struct tidegate_gate *gate,
                                    size_t position,
                                    struct tidegate_signal_report *out);

/**
 * Sets the rate, or takes it away by one that is all zero. Once this has returned, nothing is admitted by the old
 * one. What was used of the old burst stays used, up to the whole of the new one; where there was no rate
 * the burst is full.
 *
 * Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_ARGUMENT`.
 */
tidegate_status tidegate_set_rate(const struct tidegate_gate *gate,
                                  const struct tidegate_rate *rate);

/**
 * Reads the rate, with its burst; all zero where there is none.
 *
 * Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
 */
tidegate_status tidegate_get_rate(const struct tidegate_gate *gate, struct tidegate_rate *rate);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TIDEGATE_H */
