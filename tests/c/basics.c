/* What a gate does, and what every call does with NULL and with versions. */

#include "check.h"

static void a_gate_admits_up_to_its_limit(void)
{
    tidegate_gate *gate = gate_of(2);
    uint64_t a, b, c = 99;
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &a), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &b), TIDEGATE_ADMITTED);
    CHECK(a != 0 && b != 0 && a != b);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &c), TIDEGATE_SHED_LIMIT);
    CHECK_EQ(c, 0);
    CHECK_EQ(tidegate_in_flight(gate), 2);
    CHECK_EQ(tidegate_release(gate, a, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_release(gate, b, TIDEGATE_OUTCOME_OVERLOAD), TIDEGATE_ADMITTED);
    tidegate_stats stats = stats_of(gate);
    CHECK_EQ(stats.limit, 2);
    CHECK_EQ(stats.in_flight, 0);
    CHECK_EQ(stats.high_water, 2);
    CHECK_EQ(stats.admitted[TIDEGATE_PRIORITY_CRITICAL], 2);
    CHECK_EQ(stats.shed[TIDEGATE_PRIORITY_CRITICAL][TIDEGATE_SHED_LIMIT - 1], 1);
    CHECK_EQ(stats.released[TIDEGATE_OUTCOME_SUCCESS], 1);
    CHECK_EQ(stats.released[TIDEGATE_OUTCOME_OVERLOAD], 1);
    tidegate_gate_free(gate);
}

static void a_gate_changes_live(void)
{
    tidegate_gate *gate = gate_of(10);
    static const uint32_t half[4] = {1000000, 1000000, 500000, 500000};
    static const uint32_t rising[4] = {1000000, 500000, 600000, 0};
    static const uint32_t low_top[4] = {999999, 0, 0, 0};
    static const uint32_t too_large[4] = {1000000, 1000000, 1000001, 0};
    CHECK_EQ(tidegate_set_thresholds(gate, half), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_set_thresholds(gate, rising), TIDEGATE_ERR_CONFIG);
    CHECK_EQ(tidegate_set_thresholds(gate, low_top), TIDEGATE_ERR_CONFIG);
    CHECK_EQ(tidegate_set_thresholds(gate, too_large), TIDEGATE_ERR_ARGUMENT);
    tidegate_threshold mixed[4] = {{0, 0}, {0, 0}, {0, 0}, {TIDEGATE_THRESHOLD_RESERVE, 6}};
    CHECK_EQ(stats_of(gate).thresholds[2], 5);
    CHECK_EQ(tidegate_set_threshold_kinds(gate, mixed), TIDEGATE_ADMITTED);
    CHECK_EQ(stats_of(gate).thresholds[2], 9);
    CHECK_EQ(stats_of(gate).thresholds[3], 4);
    mixed[3].kind = 3;
    CHECK_EQ(tidegate_set_threshold_kinds(gate, mixed), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_set_limit_cause(gate, 20, "a test"), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_set_limit_cause(gate, 21, "\xff is no UTF-8"), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_set_limit_cause(gate, 22, NULL), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_limit(gate), 22);
    CHECK_EQ(tidegate_set_enforce(gate, false), TIDEGATE_ADMITTED);
    CHECK(!stats_of(gate).enforce);
    CHECK_EQ(stats_of(gate).generation, 6);
    tidegate_gate_free(gate);
}

static void dry_run_lets_in_and_marks(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 1;
    config.enforce = false;
    tidegate_gate *gate;
    CHECK_EQ(tidegate_gate_new(&config, "dry", 3, &gate, NULL, 0), TIDEGATE_ADMITTED);
    uint64_t inside, over;
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_DEFAULT, 1, &inside), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_SHEDDABLE, 3, &over), TIDEGATE_ADMITTED);
    tidegate_permit permit = TIDEGATE_PERMIT_INIT;
    CHECK_EQ(tidegate_get_permit(gate, inside, &permit), TIDEGATE_ADMITTED);
    CHECK(!permit.over && permit.priority == TIDEGATE_PRIORITY_CRITICAL && permit.weight == 1);
    CHECK_EQ(tidegate_get_permit(gate, over, &permit), TIDEGATE_ADMITTED);
    CHECK(permit.over && permit.priority == TIDEGATE_PRIORITY_SHEDDABLE && permit.weight == 3);
    tidegate_stats stats = stats_of(gate);
    CHECK_EQ(stats.would_shed[TIDEGATE_PRIORITY_SHEDDABLE], 1);
    CHECK_EQ(stats.over_in_flight, 1);
    CHECK_EQ(stats.in_flight, 1);
    CHECK_EQ(stats.fallback_priority, 1);
    CHECK_EQ(tidegate_release(gate, over, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_get_permit(gate, over, &permit), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_release(gate, inside, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

static void bare_entries(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 1;
    config.bare_entries = true;
    tidegate_gate *gate;
    CHECK_EQ(tidegate_gate_new(&config, "bare", 4, &gate, NULL, 0), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_exit(gate, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    CHECK_EQ(tidegate_enter(gate, TIDEGATE_PRIORITY_DEFAULT), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_enter(gate, TIDEGATE_PRIORITY_CRITICAL), TIDEGATE_SHED_LIMIT);
    CHECK_EQ(tidegate_exit(gate, TIDEGATE_OUTCOME_OVERLOAD), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_exit(gate, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ERR_STALE);
    CHECK_EQ(stats_of(gate).unmatched_exits, 2);
    CHECK_EQ(tidegate_in_flight(gate), 0);
    tidegate_gate_free(gate);
}

static void closing_and_draining(void)
{
    tidegate_gate *gate = gate_of(2);
    uint64_t permit, none;
    CHECK_EQ(tidegate_drain(gate, -2), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_drain(gate, INT64_MIN), TIDEGATE_ERR_ARGUMENT);
    CHECK(!stats_of(gate).closed);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_close(gate), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_close(gate), TIDEGATE_ADMITTED);
    CHECK(stats_of(gate).closed);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &none), TIDEGATE_SHED_CLOSED);
    CHECK_EQ(tidegate_drain(gate, 0), TIDEGATE_SHED_TIMEOUT);
    double seconds = 0;
    CHECK_EQ(tidegate_retry_after(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &seconds), TIDEGATE_ADMITTED);
    CHECK(seconds == HUGE_VAL);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_drain(gate, TIDEGATE_FOREVER), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_drain(gate, INT64_MAX), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

static void retry_after_and_latency(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 1;
    config.timing = true;
    tidegate_gate *gate;
    CHECK_EQ(tidegate_gate_new(&config, "timed", 5, &gate, NULL, 0), TIDEGATE_ADMITTED);
    double seconds = 7;
    CHECK_EQ(tidegate_retry_after(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &seconds), TIDEGATE_ADMITTED);
    CHECK(seconds == 0);
    CHECK_EQ(tidegate_latency(gate, TIDEGATE_PRIORITY_CRITICAL, 0.5, &seconds), TIDEGATE_ADMITTED);
    CHECK(seconds == -1);
    uint64_t permit;
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_retry_after(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &seconds), TIDEGATE_ADMITTED);
    CHECK(seconds == -1);
    CHECK_EQ(tidegate_retry_after(gate, TIDEGATE_PRIORITY_CRITICAL, 2, &seconds), TIDEGATE_ADMITTED);
    CHECK(seconds == HUGE_VAL);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_latency(gate, TIDEGATE_PRIORITY_CRITICAL, 0.5, &seconds), TIDEGATE_ADMITTED);
    CHECK(seconds > 0);
    CHECK(stats_of(gate).timing);
    tidegate_gate_free(gate);
}

static void null_is_an_error_everywhere(void)
{
    tidegate_gate *gate = gate_of(1);
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    tidegate_stats stats = TIDEGATE_STATS_INIT;
    tidegate_permit permit = TIDEGATE_PERMIT_INIT;
    static const uint32_t ppm[4] = {1000000, 0, 0, 0};
    static const tidegate_threshold kinds[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    tidegate_gate *made = gate;
    uint64_t number;
    double seconds;
    config.limit = 1;
    tidegate_gate_free(NULL);
    CHECK_EQ(tidegate_gate_new(NULL, "x", 1, &made, NULL, 0), TIDEGATE_ERR_NULL);
    CHECK(made == NULL);
    CHECK_EQ(tidegate_gate_new(&config, NULL, 1, &made, NULL, 0), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_gate_new(&config, NULL, 0, &made, NULL, 0), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, NULL, NULL, 0), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_try_admit(NULL, 1, 1, &number), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_try_admit(gate, 1, 1, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_release(NULL, 1, 0), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_release_collected(NULL, 1), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_permit(NULL, 1, &permit), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_enter(NULL, 1), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_exit(NULL, 0), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_limit(NULL, 1), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_limit_cause(NULL, 1, "x"), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_thresholds(NULL, ppm), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_thresholds(gate, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_threshold_kinds(NULL, kinds), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_threshold_kinds(gate, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_enforce(NULL, true), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_close(NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_drain(NULL, 0), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_stats(NULL, &stats), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_stats(gate, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_retry_after(NULL, 1, 1, &seconds), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_retry_after(gate, 1, 1, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_latency(NULL, 1, 0.5, &seconds), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_latency(gate, 1, 0.5, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_in_flight(NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_limit(NULL), TIDEGATE_ERR_NULL);
    CHECK(tidegate_gate_name(NULL) == NULL);
    CHECK_EQ(stats_of(gate).generation, 0);
    CHECK(!stats_of(gate).closed);
    CHECK_EQ(stats_of(gate).high_water, 0);
    tidegate_gate_free(gate);
}

static void structs_of_other_versions(void)
{
    struct {
        tidegate_config now;
        char later[16];
    } config = {TIDEGATE_CONFIG_INIT, {0}};
    tidegate_gate *gate;
    config.now.limit = 1;
    config.now.struct_size = sizeof config;
    CHECK_EQ(tidegate_gate_new(&config.now, "x", 1, &gate, NULL, 0), TIDEGATE_ADMITTED);
    struct {
        tidegate_stats now;
        char later[16];
    } stats;
    memset(&stats, 0xff, sizeof stats);
    stats.now.struct_size = sizeof stats;
    CHECK_EQ(tidegate_get_stats(gate, &stats.now), TIDEGATE_ADMITTED);
    CHECK_EQ(stats.now.struct_size, sizeof stats);
    CHECK_EQ(stats.now.limit, 1);
    CHECK(stats.later[0] == 0 && stats.later[15] == 0);
    const uint32_t bad_sizes[] = {0, 1, sizeof(tidegate_stats) - 1, 4097, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++) {
        stats.now.struct_size = bad_sizes[i];
        CHECK_EQ(tidegate_get_stats(gate, &stats.now), TIDEGATE_ERR_VERSION);
    }
    tidegate_gate_free(gate);

    char why[200];
    config.later[15] = 1;
    CHECK_EQ(tidegate_gate_new(&config.now, "x", 1, &gate, why, sizeof why), TIDEGATE_ERR_VERSION);
    CHECK(strstr(why, "version") != NULL && gate == NULL);
    config.now.struct_size = sizeof config.now - 1;
    CHECK_EQ(tidegate_gate_new(&config.now, "x", 1, &gate, why, sizeof why), TIDEGATE_ERR_VERSION);
    /* A program that was built before there were rates: what lies behind its struct is not looked at. */
    config.now.struct_size = offsetof(tidegate_config, rate);
    memset(&config.now.rate, 0xff, sizeof config.now.rate);
    CHECK_EQ(tidegate_gate_new(&config.now, "x", 1, &gate, why, sizeof why), TIDEGATE_ADMITTED);
    tidegate_rate rate;
    CHECK_EQ(tidegate_get_rate(gate, &rate), TIDEGATE_ADMITTED);
    CHECK_EQ(rate.per, 0);
    tidegate_gate_free(gate);
    memset(&config.now.rate, 0, sizeof config.now.rate);
    config.now.struct_size = sizeof config.now;
    config.now.reserved[4] = 1;
    CHECK_EQ(tidegate_gate_new(&config.now, "x", 1, &gate, why, sizeof why), TIDEGATE_ERR_VERSION);
}

/* D35: the same rule as everywhere, and nothing is cut at a NUL. */
static void names(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    tidegate_gate *gate;
    char longest[256];
    config.limit = 1;
    memset(longest, 'x', sizeof longest);
    static const struct {
        const char *name;
        size_t length;
    } good[] = {{"db", 2},   {"\xf0\x9f\x8c\x8a", 4}, {"e\xcc\x81", 3}, {"../a/b", 6}, {"'\"\\", 3},
                {"dbase", 2}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_EQ(tidegate_gate_new(&config, good[i].name, good[i].length, &gate, NULL, 0), TIDEGATE_ADMITTED);
        CHECK(strlen(tidegate_gate_name(gate)) == good[i].length);
        CHECK(memcmp(tidegate_gate_name(gate), good[i].name, good[i].length) == 0);
        tidegate_gate_free(gate);
    }
    CHECK_EQ(tidegate_gate_new(&config, longest, 255, &gate, NULL, 0), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
    static const struct {
        const char *name;
        size_t length;
    } bad[] = {{"", 0},         {"a\0b", 3},         {"a\nb", 3}, {"\x7f", 1},
               {"\xff\xfe", 2}, {"\xed\xa0\x80", 3}, {"\xc3", 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ(tidegate_gate_new(&config, bad[i].name, bad[i].length, &gate, NULL, 0),
                 TIDEGATE_ERR_ARGUMENT);
        CHECK(gate == NULL);
    }
    CHECK_EQ(tidegate_gate_new(&config, longest, 256, &gate, NULL, 0), TIDEGATE_ERR_ARGUMENT);
    /* -1 from a signed language: not read. */
    CHECK_EQ(tidegate_gate_new(&config, "x", SIZE_MAX, &gate, NULL, 0), TIDEGATE_ERR_ARGUMENT);
}

/* Other languages pass what they have: nothing has to be aligned. */
static void structs_that_are_not_aligned(void)
{
    char config[sizeof(tidegate_config) + 1], stats[sizeof(tidegate_stats) + 1];
    char ppm[4 * sizeof(uint32_t) + 1], number[sizeof(uint64_t) + 1];
    tidegate_config fine = TIDEGATE_CONFIG_INIT;
    tidegate_stats read = TIDEGATE_STATS_INIT;
    static const uint32_t shares[4] = {1000000, 500000, 500000, 500000};
    uint64_t permit;
    tidegate_gate *gate;
    fine.limit = 2;
    memcpy(config + 1, &fine, sizeof fine);
    CHECK_EQ(tidegate_gate_new((void *)(config + 1), "x", 1, &gate, NULL, 0), TIDEGATE_ADMITTED);
    memcpy(ppm + 1, shares, sizeof shares);
    CHECK_EQ(tidegate_set_thresholds(gate, (void *)(ppm + 1)), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, (void *)(number + 1)),
             TIDEGATE_ADMITTED);
    memcpy(&permit, number + 1, sizeof permit);
    memcpy(stats + 1, &read, sizeof read);
    CHECK_EQ(tidegate_get_stats(gate, (void *)(stats + 1)), TIDEGATE_ADMITTED);
    memcpy(&read, stats + 1, sizeof read);
    CHECK_EQ(read.thresholds[1], 1);
    CHECK_EQ(read.in_flight, 1);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

static void error_texts(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    tidegate_gate *gate;
    char why[200];
    memset(why, '#', sizeof why);
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &gate, why, sizeof why), TIDEGATE_ERR_ARGUMENT);
    CHECK(strcmp(why, "limit must be a whole number from 0 to 2147483647, got -1") == 0);
    config.limit = 1;
    config.thresholds[2].kind = TIDEGATE_THRESHOLD_PPM;
    config.thresholds[2].value = 500000;
    config.thresholds[3].kind = TIDEGATE_THRESHOLD_PPM;
    config.thresholds[3].value = 600000;
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &gate, why, sizeof why), TIDEGATE_ERR_CONFIG);
    CHECK(strcmp(why, "thresholds must not rise as importance falls: sheddable (0.6) is above "
                      "sheddable_plus (0.5)") == 0);
    /* Cut to fit, and ended: here and at one byte. */
    memset(why, '#', sizeof why);
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &gate, why, 11), TIDEGATE_ERR_CONFIG);
    CHECK(strcmp(why, "thresholds") == 0 && why[11] == '#');
    memset(why, '#', sizeof why);
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &gate, why, 1), TIDEGATE_ERR_CONFIG);
    CHECK(why[0] == 0 && why[1] == '#');
    memset(why, '#', sizeof why);
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &gate, why, 0), TIDEGATE_ERR_CONFIG);
    CHECK(why[0] == '#');
    config.thresholds[3].value = 500000;
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &gate, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK(why[0] == 0);
    tidegate_gate_free(gate);
}

static void every_status_has_a_text(void)
{
    for (int status = TIDEGATE_ERR_EXHAUSTED; status <= TIDEGATE_SHED_SHARE; status++) {
        CHECK(strlen(tidegate_status_str(status)) > 0);
        CHECK(strcmp(tidegate_status_str(status), "unknown status") != 0);
    }
    CHECK(strcmp(tidegate_status_str(8), "unknown status") == 0);
    CHECK(strcmp(tidegate_status_str(INT32_MIN), "unknown status") == 0);
    CHECK_EQ(tidegate_abi_version(), TIDEGATE_ABI_VERSION);
}

int main(void)
{
    RUN(a_gate_admits_up_to_its_limit);
    RUN(a_gate_changes_live);
    RUN(dry_run_lets_in_and_marks);
    RUN(bare_entries);
    RUN(closing_and_draining);
    RUN(retry_after_and_latency);
    RUN(null_is_an_error_everywhere);
    RUN(structs_of_other_versions);
    RUN(structs_that_are_not_aligned);
    RUN(names);
    RUN(error_texts);
    RUN(every_status_has_a_text);
    return failed_tests != 0;
}
