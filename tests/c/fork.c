/* Forks of a program in C: the child starts empty, and what its parent holds is not the child's to release.
 */

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static tidegate_gate *gate;
static uint64_t held[3];

/* Runs the body in a child, which is ended if it hangs, and says whether its checks held. */
static int holds_in_child(void (*body)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        failed_checks = 0;
        body();
        fflush(stdout);
        _exit(failed_checks != 0);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void child_starts_empty(void)
{
    uint64_t own[5], none;
    tidegate_permit permit = TIDEGATE_PERMIT_INIT;
    CHECK_EQ(tidegate_in_flight(gate), 0);
    CHECK_EQ(tidegate_limit(gate), 5);
    CHECK_EQ(stats_of(gate).admitted[TIDEGATE_PRIORITY_CRITICAL], 0);
    CHECK_EQ(tidegate_get_permit(gate, held[0], &permit), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_release(gate, held[0], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_release(gate, held[0], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &own[i]), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &none), TIDEGATE_SHED_LIMIT);
    CHECK_EQ(tidegate_release(gate, held[1], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_release_collected(gate, held[2]), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_in_flight(gate), 5);
    CHECK_EQ(stats_of(gate).collected, 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(tidegate_release(gate, own[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_drain(gate, 0), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

static void a_child_starts_empty_and_inherited_permits_are_stale(void)
{
    gate = gate_of(5);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &held[i]), TIDEGATE_ADMITTED);
    CHECK(holds_in_child(child_starts_empty));
    CHECK_EQ(tidegate_in_flight(gate), 3);
    CHECK(!stats_of(gate).closed);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(tidegate_release(gate, held[i], TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

static atomic_int stop;

static void *keep_busy(void *nothing)
{
    while (!atomic_load(&stop)) {
        uint64_t permit;
        if (tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit) == TIDEGATE_ADMITTED)
            tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS);
        tidegate_set_limit(gate, 50);
        tidegate_gate *passing = gate_of(1);
        tidegate_try_admit(passing, TIDEGATE_PRIORITY_CRITICAL, 1, &permit);
        tidegate_gate_free(passing);
        tidegate_release(passing, permit, TIDEGATE_OUTCOME_SUCCESS);
    }
    return nothing;
}

static void child_uses_everything(void)
{
    uint64_t permit;
    CHECK_EQ(tidegate_in_flight(gate), 0);
    CHECK_EQ(tidegate_set_limit(gate, 2), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 2, &permit), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_gate *own = gate_of(1);
    CHECK_EQ(tidegate_try_admit(own, TIDEGATE_PRIORITY_CRITICAL, 1, &permit), TIDEGATE_ADMITTED);
    tidegate_gate_free(own);
    CHECK_EQ(tidegate_release(own, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_drain(gate, 0), TIDEGATE_ADMITTED);
}

static void forks_among_threads(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    gate = gate_of(50);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, keep_busy, NULL);
    for (long i = scaled(50); i > 0; i--)
        CHECK(holds_in_child(child_uses_everything));
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(tidegate_in_flight(gate), 0);
    tidegate_gate_free(gate);
    tidegate_gate_free(gate_of(1));
}

/* A fork comes between reloads: the child goes on with the file, whatever another thread was at. */
static tidegate_gates *gates;
static const char two[] = "[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1\n";
static const char one[] = "[gates.other]\nlimit = 1\n";

static void *reload_often(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        tidegate_reload_text(gates, one, sizeof one - 1, NULL, 0);
        tidegate_reload_text(gates, two, sizeof two - 1, NULL, 0);
    }
    return NULL;
}

static void child_reloads(void)
{
    const tidegate_gate *db;
    CHECK_EQ(tidegate_reload_text(gates, two, sizeof two - 1, NULL, 0), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_find(gates, "db", 2, &db), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_limit(db), 5);
    CHECK(!stats_of(db).closed);
    tidegate_gates_free(gates);
}

static void forks_amid_reloads(void)
{
    pthread_t thread;
    CHECK_EQ(tidegate_open_text(two, sizeof two - 1, NULL, &gates, NULL, 0), TIDEGATE_ADMITTED);
    atomic_store(&stop, 0);
    pthread_create(&thread, NULL, reload_often, NULL);
    for (long i = scaled(30); i > 0; i--)
        CHECK(holds_in_child(child_reloads));
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    tidegate_gates_free(gates);
}

int main(void)
{
    RUN(a_child_starts_empty_and_inherited_permits_are_stale);
    RUN(forks_among_threads);
    RUN(forks_amid_reloads);
    return failed_tests != 0;
}
