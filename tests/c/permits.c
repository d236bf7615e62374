/* D06: a permit goes back exactly once, whoever tries how often; and a gate outlives its permits. */

#include "check.h"

static uint64_t admitted(const tidegate_gate *gate)
{
    uint64_t permit = 0;
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit), TIDEGATE_ADMITTED);
    return permit;
}

static void the_second_release_is_stale(void)
{
    tidegate_gate *gate = gate_of(1);
    uint64_t permit = admitted(gate), none;
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_release_collected(gate, permit), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_in_flight(gate), 0);
    uint64_t again = admitted(gate);
    CHECK(again != permit);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &none), TIDEGATE_SHED_LIMIT);
    CHECK_EQ(tidegate_release(gate, again, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_stats stats = stats_of(gate);
    CHECK_EQ(stats.released[TIDEGATE_OUTCOME_SUCCESS], 2);
    CHECK_EQ(stats.unmatched_exits, 0);
    tidegate_gate_free(gate);
}

static void numbers_that_are_no_permit_of_this_gate(void)
{
    tidegate_gate *gate = gate_of(5), *other = gate_of(5);
    uint64_t mine = admitted(gate), theirs = admitted(other);
    const uint64_t strays[] = {0,
                               1,
                               UINT64_MAX,
                               mine + 1,
                               mine - 1,
                               mine ^ (UINT64_C(1) << 63),
                               mine << 1,
                               mine + (UINT64_C(1) << 24),
                               mine & 0xffffff,
                               theirs};
    tidegate_permit permit = TIDEGATE_PERMIT_INIT;
    for (size_t i = 0; i < sizeof strays / sizeof *strays; i++) {
        CHECK_EQ(tidegate_release(gate, strays[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
        CHECK_EQ(tidegate_get_permit(gate, strays[i], &permit), TIDEGATE_ERR_STALE);
    }
    CHECK_EQ(tidegate_in_flight(gate), 1);
    CHECK_EQ(tidegate_in_flight(other), 1);
    CHECK_EQ(tidegate_release(gate, mine, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_release(other, theirs, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
    tidegate_gate_free(other);
}

static void collected_permits_are_counted(void)
{
    tidegate_gate *gate = gate_of(1);
    CHECK_EQ(tidegate_release_collected(gate, admitted(gate)), TIDEGATE_ADMITTED);
    CHECK_EQ(stats_of(gate).collected, 1);
    CHECK_EQ(stats_of(gate).released[TIDEGATE_OUTCOME_IGNORE], 1);
    tidegate_gate_free(gate);
}

static void many_permits_at_once(void)
{
    long count = scaled(200000);
    tidegate_gate *gate = gate_of(count);
    uint64_t *permits = malloc((size_t)count * sizeof *permits);
    for (int round = 0; round < 2; round++) {
        for (long i = 0; i < count; i++)
            permits[i] = admitted(gate);
        CHECK_EQ(tidegate_in_flight(gate), count);
        for (long i = 0; i < count; i++) { /* in another order than they came */
            long at = round ? i : (i * 7919 + 13) % count;
            if (!round && count % 7919 == 0)
                at = i;
            CHECK_EQ(tidegate_release(gate, permits[at], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
        }
        CHECK_EQ(tidegate_in_flight(gate), 0);
        for (long i = 0; i < count; i++)
            CHECK_EQ(tidegate_release(gate, permits[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    }
    CHECK_EQ(stats_of(gate).released[TIDEGATE_OUTCOME_SUCCESS], 2 * count);
    free(permits);
    tidegate_gate_free(gate);
}

/* Valgrind and the address sanitizer see whether the gate is really there until the end, and gone afterwards.
 */
static void a_gate_that_is_given_up_waits_for_its_permits(void)
{
    tidegate_gate *gate = gate_of(100);
    uint64_t permits[100], none;
    for (int i = 0; i < 100; i++)
        permits[i] = admitted(gate);
    tidegate_gate_free(gate);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &none), TIDEGATE_SHED_CLOSED);
    tidegate_gate_free(gate);       /* while permits keep it even a second time does nothing */
    tidegate_gate_free(gate_of(1)); /* others come and go meanwhile */
    for (int i = 0; i < 99; i++) {
        CHECK_EQ(tidegate_release(gate, permits[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
        CHECK_EQ(tidegate_release(gate, permits[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
        CHECK_EQ(tidegate_in_flight(gate), 99 - i);
    }
    CHECK_EQ(tidegate_release(gate, permits[99], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
}

/* As fast as from any other gate, though each of them may be the last. */
static void many_permits_return_to_a_gate_that_is_given_up(void)
{
    long count = scaled(200000);
    tidegate_gate *gate = gate_of(count);
    uint64_t *permits = malloc((size_t)count * sizeof *permits);
    for (long i = 0; i < count; i++)
        permits[i] = admitted(gate);
    tidegate_gate_free(gate);
    for (long i = 0; i < count; i++)
        CHECK_EQ(tidegate_release(gate, permits[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    free(permits);
}

int main(void)
{
    RUN(the_second_release_is_stale);
    RUN(numbers_that_are_no_permit_of_this_gate);
    RUN(collected_permits_are_counted);
    RUN(many_permits_at_once);
    RUN(a_gate_that_is_given_up_waits_for_its_permits);
    RUN(many_permits_return_to_a_gate_that_is_given_up);
    return failed_tests != 0;
}
