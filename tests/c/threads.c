/* Real threads: what each counted has to be what the gate counted. */

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { THREADS = 20, HELD = 6 };

static tidegate_gate *gate;
static atomic_long inside, most, admissions, sheds;

static uint32_t draw(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

static void *storm(void *argument)
{
    uint32_t seed = 2463534242u + (uint32_t)(size_t)argument * 7919u;
    uint64_t held[HELD] = {0};
    long weights[HELD] = {0};
    for (long i = scaled(20000); i > 0; i--) {
        size_t at = draw(&seed) % HELD;
        if (held[at]) {
            atomic_fetch_sub(&inside, weights[at]);
            if (tidegate_release(gate, held[at], (int32_t)(draw(&seed) % 3)) != TIDEGATE_ADMITTED)
                abort();
            held[at] = 0;
        }
        weights[at] = 1 + draw(&seed) % 3;
        tidegate_status status = tidegate_try_admit(gate, (int32_t)(draw(&seed) % 4), weights[at], &held[at]);
        if (status == TIDEGATE_ADMITTED) {
            long now = atomic_fetch_add(&inside, weights[at]) + weights[at];
            long seen = atomic_load(&most);
            while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
            }
            atomic_fetch_add(&admissions, 1);
        } else if (status == TIDEGATE_SHED_LIMIT || status == TIDEGATE_SHED_PRIORITY) {
            atomic_fetch_add(&sheds, 1);
        } else {
            abort();
        }
    }
    for (size_t at = 0; at < HELD; at++) {
        if (!held[at])
            continue;
        atomic_fetch_sub(&inside, weights[at]);
        if (tidegate_release(gate, held[at], TIDEGATE_OUTCOME_SUCCESS) != TIDEGATE_ADMITTED)
            abort();
    }
    return NULL;
}

static void on_threads(int count, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, body, (void *)(size_t)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void a_storm_ends_with_exact_counts(void)
{
    gate = gate_of(60);
    on_threads(THREADS, storm);
    tidegate_stats stats = stats_of(gate);
    uint64_t admitted = 0, shed = 0, released = 0;
    for (int priority = 0; priority < 4; priority++) {
        admitted += stats.admitted[priority];
        for (int reason = 0; reason < 7; reason++)
            shed += stats.shed[priority][reason];
    }
    for (int outcome = 0; outcome < 3; outcome++)
        released += stats.released[outcome];
    CHECK_EQ(admitted, admissions);
    CHECK_EQ(released, admissions);
    CHECK_EQ(shed, sheds);
    CHECK_EQ(admitted + shed, THREADS * scaled(20000));
    CHECK_EQ(stats.in_flight, 0);
    CHECK(most <= 60 && stats.high_water <= 60 && most > 0);
    CHECK_EQ(tidegate_drain(gate, 0), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

enum { SHARED = 5000 };

static pthread_barrier_t together;
static uint64_t shared_permits[SHARED];
static atomic_long released_well, released_stale;

static void *release_all(void *nothing)
{
    pthread_barrier_wait(&together);
    for (int i = 0; i < SHARED; i++) {
        tidegate_status status = tidegate_release(gate, shared_permits[i], TIDEGATE_OUTCOME_SUCCESS);
        if (status == TIDEGATE_ADMITTED)
            atomic_fetch_add(&released_well, 1);
        else if (status == TIDEGATE_ERR_STALE)
            atomic_fetch_add(&released_stale, 1);
    }
    return nothing;
}

/* D06: one thread's permits, three that release them in the same order. Who is behind finds them stale, which
 * is quicker, and catches up: then they release the same one at the same moment. */
static void of_threads_that_release_one_permit_one_does(void)
{
    enum { RELEASERS = 3 };
    long rounds = scaled(20);
    gate = gate_of(SHARED);
    pthread_barrier_init(&together, NULL, RELEASERS);
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < SHARED; i++)
            CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &shared_permits[i]),
                     TIDEGATE_ADMITTED);
        on_threads(RELEASERS, release_all);
        CHECK_EQ(tidegate_in_flight(gate), 0);
    }
    CHECK_EQ(released_well, rounds * SHARED);
    CHECK_EQ(released_stale, rounds * SHARED * (RELEASERS - 1));
    CHECK_EQ(stats_of(gate).unmatched_exits, 0);
    pthread_barrier_destroy(&together);
    tidegate_gate_free(gate);
}

static uint64_t permits[THREADS];

static void *release_mine(void *number)
{
    pthread_barrier_wait(&together);
    if (tidegate_release(gate, permits[(size_t)number], TIDEGATE_OUTCOME_SUCCESS) != TIDEGATE_ADMITTED)
        abort();
    return NULL;
}

static void *give_up_or_release(void *number)
{
    if ((size_t)number)
        return release_mine(number);
    pthread_barrier_wait(&together);
    tidegate_gate_free(gate);
    return NULL;
}

/* The gate is given up while its last permits are on their way back. */
static void a_gate_is_given_up_among_releases(void)
{
    enum { RELEASERS = 4 };
    pthread_barrier_init(&together, NULL, RELEASERS);
    for (long i = scaled(300); i > 0; i--) {
        gate = gate_of(RELEASERS);
        for (int j = 1; j < RELEASERS; j++)
            CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permits[j]), TIDEGATE_ADMITTED);
        on_threads(RELEASERS, give_up_or_release);
    }
    pthread_barrier_destroy(&together);
    tidegate_gate_free(gate_of(1)); /* frees what a release left that looked a moment too early */
}

/* As people shut down: drain, then free, while the last release is still returning. */
static void a_gate_is_freed_when_it_is_drained(void)
{
    pthread_barrier_init(&together, NULL, 2);
    for (long i = scaled(300); i > 0; i--) {
        pthread_t other;
        gate = gate_of(1);
        CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permits[0]), TIDEGATE_ADMITTED);
        pthread_create(&other, NULL, release_mine, NULL);
        pthread_barrier_wait(&together);
        CHECK_EQ(tidegate_drain(gate, TIDEGATE_FOREVER), TIDEGATE_ADMITTED);
        tidegate_gate_free(gate);
        pthread_join(other, NULL);
    }
    pthread_barrier_destroy(&together);
    tidegate_gate_free(gate_of(1));
}

static void *hold_one(void *number)
{
    return tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permits[(size_t)number]) ? number : NULL;
}

/* Permits of threads that have ended are as good as any. */
static void permits_outlive_their_threads(void)
{
    gate = gate_of(THREADS);
    for (int round = 0; round < 20; round++) {
        on_threads(THREADS, hold_one);
        CHECK_EQ(tidegate_in_flight(gate), THREADS);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(tidegate_release(gate, permits[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    }
    CHECK_EQ(tidegate_in_flight(gate), 0);
    tidegate_gate_free(gate);
}

int main(void)
{
    RUN(a_storm_ends_with_exact_counts);
    RUN(of_threads_that_release_one_permit_one_does);
    RUN(a_gate_is_given_up_among_releases);
    RUN(a_gate_is_freed_when_it_is_drained);
    RUN(permits_outlive_their_threads);
    return failed_tests != 0;
}
