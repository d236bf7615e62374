/* A random program over the whole surface against a model of one gate. `fuzz SEED STEPS`; a failure prints
 * its seed. */

#include "check.h"

enum { MOST_HELD = 500 };

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int64_t below(int64_t end)
{
    return (int64_t)(draw() % (uint64_t)end);
}

/* Mostly from 0 to `end`, now and then a number that nobody should send. */
static int64_t wild(int64_t end)
{
    static const int64_t numbers[] = {-1,         INT64_MIN,  INT64_MAX, 2147483647,
                                      2147483648, 4294967296, 4294967301};
    return below(20) ? below(end + 1) : numbers[below(7)];
}

typedef struct {
    uint64_t number;
    int64_t weight;
    int32_t priority;
    bool over;
} held_permit;

/* What the gate should be. */
static struct {
    int64_t limit, in_flight, high_water, over;
    int64_t ppm[4];
    bool enforce, closed;
    int64_t admitted[4], shed[4][7], would_shed[4], released[3], collected, fallback, generation;
    held_permit held[MOST_HELD];
    int count;
    uint64_t stale[64];
} model;

static int64_t threshold(int32_t priority)
{
    return (model.limit * model.ppm[priority] + 999999) / 1000000;
}

static void a_new_model(int64_t limit)
{
    static const int64_t defaults[4] = {1000000, 1000000, 900000, 750000};
    memset(&model, 0, sizeof model);
    model.limit = limit;
    model.enforce = true;
    memcpy(model.ppm, defaults, sizeof defaults);
}

static void try_admit(const tidegate_gate *gate)
{
    int32_t priority = below(10) ? (int32_t)wild(3) : TIDEGATE_PRIORITY_DEFAULT;
    int64_t weight = wild(4);
    uint64_t number = 99;
    tidegate_status got = tidegate_try_admit(gate, priority, weight, &number);
    bool fallback = priority == TIDEGATE_PRIORITY_DEFAULT;
    int32_t level = fallback ? TIDEGATE_PRIORITY_CRITICAL : priority;
    if (weight < 1 || weight > 2147483647 || level < 0 || level > 3) {
        CHECK_EQ(got, TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(number, 0);
        return;
    }
    int64_t after = model.in_flight + weight;
    tidegate_status expected = TIDEGATE_ADMITTED;
    if (model.closed)
        expected = TIDEGATE_SHED_CLOSED;
    else if (after > model.limit)
        expected = TIDEGATE_SHED_LIMIT;
    else if (after > threshold(level))
        expected = TIDEGATE_SHED_PRIORITY;
    bool over = expected != TIDEGATE_ADMITTED && !model.closed && !model.enforce;
    if (expected != TIDEGATE_ADMITTED && !over) {
        CHECK_EQ(got, expected);
        CHECK_EQ(number, 0);
        model.shed[level][expected - 1]++;
        return;
    }
    CHECK_EQ(got, TIDEGATE_ADMITTED);
    CHECK(number != 0);
    if (over) {
        model.would_shed[level]++;
        model.over++;
    } else {
        model.admitted[level]++;
        model.fallback += fallback;
        model.in_flight = after;
        if (after > model.high_water)
            model.high_water = after;
    }
    held_permit permit = {number, weight, level, over};
    model.held[model.count++] = permit;
}

static void release(const tidegate_gate *gate)
{
    if (model.count == 0 || !below(5)) {
        uint64_t stray = below(2) ? model.stale[below(64)] : draw();
        CHECK_EQ(tidegate_release(gate, stray, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
        return;
    }
    int at = (int)below(model.count);
    held_permit permit = model.held[at];
    tidegate_permit read = TIDEGATE_PERMIT_INIT;
    CHECK_EQ(tidegate_get_permit(gate, permit.number, &read), TIDEGATE_ADMITTED);
    CHECK(read.over == permit.over && read.priority == permit.priority && read.weight == permit.weight);
    int32_t outcome = (int32_t)wild(2);
    if (outcome < 0 || outcome > 2) {
        CHECK_EQ(tidegate_release(gate, permit.number, outcome), TIDEGATE_ERR_ARGUMENT);
        return;
    }
    if (below(10)) {
        CHECK_EQ(tidegate_release(gate, permit.number, outcome), TIDEGATE_ADMITTED);
    } else {
        CHECK_EQ(tidegate_release_collected(gate, permit.number), TIDEGATE_ADMITTED);
        outcome = TIDEGATE_OUTCOME_IGNORE;
        model.collected++;
    }
    CHECK_EQ(tidegate_release(gate, permit.number, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    if (permit.over) {
        model.over--;
    } else {
        model.in_flight -= permit.weight;
        model.released[outcome]++;
    }
    model.stale[below(64)] = permit.number;
    model.held[at] = model.held[--model.count];
}

static void set_limit(const tidegate_gate *gate)
{
    int64_t limit = wild(60);
    bool well = limit >= 0 && limit <= 2147483647;
    CHECK_EQ(tidegate_set_limit(gate, limit), well ? TIDEGATE_ADMITTED : TIDEGATE_ERR_ARGUMENT);
    if (well) {
        model.limit = limit;
        model.generation++;
    }
}

static void set_thresholds(const tidegate_gate *gate)
{
    uint32_t ppm[4];
    for (int priority = 0; priority < 4; priority++)
        ppm[priority] =
            below(4) ? 1000000 - (uint32_t)below(200000) * (uint32_t)priority : (uint32_t)below(1000002);
    if (below(4))
        ppm[0] = 1000000;
    tidegate_status expected = TIDEGATE_ADMITTED;
    for (int priority = 0; priority < 4 && !expected; priority++) {
        if (ppm[priority] > 1000000)
            expected = TIDEGATE_ERR_ARGUMENT;
        else if (priority == 0 ? ppm[0] != 1000000 : ppm[priority] > ppm[priority - 1])
            expected = TIDEGATE_ERR_CONFIG;
    }
    CHECK_EQ(tidegate_set_thresholds(gate, ppm), expected);
    if (expected == TIDEGATE_ADMITTED) {
        for (int priority = 0; priority < 4; priority++)
            model.ppm[priority] = ppm[priority];
        model.generation++;
    }
}

static void ask(const tidegate_gate *gate)
{
    int32_t priority = (int32_t)wild(3);
    int64_t weight = wild(70);
    double seconds = -2;
    tidegate_status got = tidegate_retry_after(gate, priority, weight, &seconds);
    if (weight < 1 || weight > 2147483647 || priority < 0 || priority > 3) {
        CHECK_EQ(got, TIDEGATE_ERR_ARGUMENT);
        return;
    }
    CHECK_EQ(got, TIDEGATE_ADMITTED);
    if (model.closed || (model.enforce && weight > threshold(priority)))
        CHECK(seconds == HUGE_VAL);
    else if (!model.enforce || model.in_flight + weight <= threshold(priority))
        CHECK(seconds == 0);
    else
        CHECK(seconds == -1 || (seconds >= 0 && seconds < HUGE_VAL));
}

static void compare(const tidegate_gate *gate)
{
    tidegate_stats stats = stats_of(gate);
    CHECK_EQ(stats.limit, model.limit);
    CHECK_EQ(stats.in_flight, model.in_flight);
    CHECK_EQ(tidegate_in_flight(gate), model.in_flight);
    CHECK_EQ(stats.high_water, model.high_water);
    CHECK_EQ(stats.over_in_flight, model.over);
    CHECK_EQ(stats.enforce, model.enforce);
    CHECK_EQ(stats.closed, model.closed);
    CHECK_EQ(stats.collected, model.collected);
    CHECK_EQ(stats.fallback_priority, model.fallback);
    CHECK_EQ(stats.generation, model.generation);
    CHECK_EQ(stats.unmatched_exits, 0);
    for (int priority = 0; priority < 4; priority++) {
        CHECK_EQ(stats.thresholds[priority], threshold(priority));
        CHECK_EQ(stats.admitted[priority], model.admitted[priority]);
        CHECK_EQ(stats.would_shed[priority], model.would_shed[priority]);
        for (int reason = 0; reason < 7; reason++)
            CHECK_EQ(stats.shed[priority][reason], model.shed[priority][reason]);
    }
    for (int outcome = 0; outcome < 3; outcome++)
        CHECK_EQ(stats.released[outcome], model.released[outcome]);
}

static void step(const tidegate_gate *gate)
{
    switch (below(40)) {
    case 0:
        set_limit(gate);
        break;
    case 1:
        set_thresholds(gate);
        break;
    case 2:
        model.enforce = below(3) != 0;
        model.generation++;
        CHECK_EQ(tidegate_set_enforce(gate, model.enforce), TIDEGATE_ADMITTED);
        break;
    case 3:
    case 4:
        ask(gate);
        break;
    case 5:
        compare(gate);
        break;
    default:
        if (model.count < MOST_HELD && below(2))
            try_admit(gate);
        else
            release(gate);
    }
}

/* Drained with what is still out, given up, and then the rest comes back. */
static void end(tidegate_gate *gate)
{
    bool empty = model.count == 0;
    model.generation += !model.closed;
    model.closed = true;
    CHECK_EQ(tidegate_drain(gate, 0), empty ? TIDEGATE_ADMITTED : TIDEGATE_SHED_TIMEOUT);
    compare(gate);
    tidegate_gate_free(gate);
    while (model.count > 0)
        CHECK_EQ(tidegate_release(gate, model.held[--model.count].number, TIDEGATE_OUTCOME_SUCCESS),
                 TIDEGATE_ADMITTED);
}

int main(int count, char **arguments)
{
    uint64_t seed = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    long steps = count > 2 ? atol(arguments[2]) : 100000;
    state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    while (steps > 0 && !failed_checks) {
        int64_t limit = below(60);
        tidegate_gate *gate = gate_of(limit);
        a_new_model(limit);
        for (long left = 1 + below(5000); left > 0 && steps > 0 && !failed_checks; left--, steps--)
            step(gate);
        if (!below(4) && !model.closed) {
            CHECK_EQ(tidegate_close(gate), TIDEGATE_ADMITTED);
            model.closed = true;
            model.generation++;
            try_admit(gate);
        }
        end(gate);
    }
    printf("%s a_random_program_meets_its_model (seed %llu)\n", failed_checks ? "FAILED  " : "ok      ",
           (unsigned long long)seed);
    return failed_checks != 0;
}
