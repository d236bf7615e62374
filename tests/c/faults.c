/* What only a test can bring about. A fault inside the library ends at its border: every call answers, and
 * the gate is as it was. */

#include "check.h"
#include "tidegate_test.h"

#define PANICS(call)                                                                                         \
    do {                                                                                                     \
        tidegate_test_panic_next();                                                                          \
        CHECK_EQ(call, TIDEGATE_ERR_PANIC);                                                                  \
    } while (0)

static void no_panic_of_files(void)
{
    static const char toml[] = "[gates.db]\nlimit = 1\n";
    tidegate_gates *gates, *more;
    const tidegate_gate *db;
    int32_t priority;
    char why[100];
    CHECK_EQ(tidegate_open_text(toml, sizeof toml - 1, NULL, &gates, NULL, 0), TIDEGATE_ADMITTED);
    PANICS(tidegate_open("/", &more, why, sizeof why));
    CHECK(strcmp(why, "a fault inside the library") == 0);
    PANICS(tidegate_open_text(toml, sizeof toml - 1, NULL, &more, NULL, 0));
    PANICS(tidegate_find(gates, "db", 2, &db));
    PANICS(tidegate_gate_at(gates, 0, &db));
    PANICS(tidegate_reload(gates, NULL, 0));
    PANICS(tidegate_reload_text(gates, toml, sizeof toml - 1, why, sizeof why));
    CHECK(strcmp(why, "a fault inside the library") == 0);
    PANICS(tidegate_explain(gates, why, sizeof why, NULL));
    PANICS(tidegate_classify(gates, NULL, 0, &priority, NULL, 0));
    tidegate_test_panic_next();
    tidegate_gates_free(gates); /* has no answer to give: the gates are still there */
    CHECK_EQ(tidegate_find(gates, "db", 2, &db), TIDEGATE_ADMITTED);
    tidegate_gates_free(gates);
}

static void no_panic_crosses_the_border(void)
{
    tidegate_gate *gate = gate_of(2), *made = gate;
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    tidegate_stats stats = TIDEGATE_STATS_INIT;
    tidegate_permit permit = TIDEGATE_PERMIT_INIT;
    static const uint32_t ppm[4] = {1000000, 0, 0, 0};
    static const tidegate_threshold kinds[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    uint64_t held, number = 7;
    double seconds;
    char why[100];
    CHECK_EQ(tidegate_try_admit(gate, 1, 1, &held), TIDEGATE_ADMITTED);
    config.limit = 1;
    PANICS(tidegate_gate_new(&config, "x", 1, &made, why, sizeof why));
    CHECK(strcmp(why, "a fault inside the library") == 0);
    PANICS(tidegate_try_admit(gate, 1, 1, &number));
    PANICS(tidegate_release(gate, held, 0));
    PANICS(tidegate_release_collected(gate, held));
    PANICS(tidegate_get_permit(gate, held, &permit));
    PANICS(tidegate_enter(gate, 1));
    PANICS(tidegate_exit(gate, 0));
    PANICS(tidegate_set_limit(gate, 1));
    PANICS(tidegate_set_limit_cause(gate, 1, "x"));
    PANICS(tidegate_set_thresholds(gate, ppm));
    PANICS(tidegate_set_threshold_kinds(gate, kinds));
    PANICS(tidegate_set_enforce(gate, false));
    PANICS(tidegate_close(gate));
    PANICS(tidegate_drain(gate, 0));
    PANICS(tidegate_get_stats(gate, &stats));
    PANICS(tidegate_retry_after(gate, 1, 1, &seconds));
    PANICS(tidegate_latency(gate, 1, 0.5, &seconds));
    PANICS(tidegate_in_flight(gate));
    PANICS(tidegate_limit(gate));
    tidegate_test_panic_next();
    CHECK(tidegate_gate_name(gate) == NULL);
    no_panic_of_files();
    tidegate_test_panic_next();
    tidegate_gate_free(gate); /* has no answer to give: the gate is still there */
    CHECK_EQ(stats_of(gate).in_flight, 1);
    CHECK_EQ(stats_of(gate).generation, 0);
    CHECK_EQ(tidegate_release(gate, held, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_in_flight(gate), 0);
    tidegate_gate_free(gate);
}

static void an_admission_without_room_for_its_permit_is_taken_back(void)
{
    tidegate_gate *gate = gate_of(1);
    uint64_t permit = 7;
    tidegate_test_full_next();
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit), TIDEGATE_ERR_EXHAUSTED);
    CHECK_EQ(permit, 0);
    CHECK_EQ(tidegate_in_flight(gate), 0);
    CHECK_EQ(stats_of(gate).admitted[TIDEGATE_PRIORITY_CRITICAL], 1);
    CHECK_EQ(stats_of(gate).released[TIDEGATE_OUTCOME_IGNORE], 1);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

int main(void)
{
    RUN(no_panic_crosses_the_border);
    RUN(an_admission_without_room_for_its_permit_is_taken_back);
    return failed_tests != 0;
}
