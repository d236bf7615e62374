/* D16, D17 and the integer maxima: numbers outside their rule are errors that change nothing, and the
 * documented largest ones work. */

#include "check.h"

static const int64_t outside[] = {-1,         INT64_MIN,  INT32_MIN,        2147483648, 4294967295,
                                  4294967296, 4294967301, 9007199254740993, INT64_MAX};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void limits(void)
{
    tidegate_gate *gate = gate_of(3), *made;
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    for (size_t i = 0; i < COUNT(outside); i++) {
        CHECK_EQ(tidegate_set_limit(gate, outside[i]), TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(tidegate_set_limit_cause(gate, outside[i], "x"), TIDEGATE_ERR_ARGUMENT);
        config.limit = outside[i];
        CHECK_EQ(tidegate_gate_new(&config, "x", 1, &made, NULL, 0), TIDEGATE_ERR_ARGUMENT);
    }
    CHECK_EQ(tidegate_limit(gate), 3);
    CHECK_EQ(stats_of(gate).generation, 0);
    CHECK_EQ(tidegate_set_limit(gate, 0), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_set_limit(gate, 2147483647), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_limit(gate), 2147483647);
    tidegate_gate_free(gate);
}

static void weights(void)
{
    tidegate_gate *gate = gate_of(2147483647);
    uint64_t permit, none;
    double seconds;
    for (size_t i = 0; i < COUNT(outside); i++) {
        CHECK_EQ(tidegate_try_admit(gate, 1, outside[i], &permit), TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(permit, 0);
        CHECK_EQ(tidegate_retry_after(gate, 1, outside[i], &seconds), TIDEGATE_ERR_ARGUMENT);
    }
    CHECK_EQ(tidegate_try_admit(gate, 1, 0, &permit), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(stats_of(gate).high_water, 0);
    CHECK_EQ(tidegate_try_admit(gate, 1, 2147483647, &permit), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_in_flight(gate), 2147483647);
    CHECK_EQ(tidegate_try_admit(gate, 0, 1, &none), TIDEGATE_SHED_LIMIT);
    CHECK_EQ(tidegate_try_admit(gate, 0, 2147483647, &none), TIDEGATE_SHED_LIMIT);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_in_flight(gate), 0);
    tidegate_gate_free(gate);
}

static void priorities_and_outcomes(void)
{
    tidegate_gate *gate = gate_of(3), *made;
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    static const int32_t none_of_them[] = {-1, 4, 255, 256, 999, 1001, INT32_MIN, INT32_MAX};
    static const int32_t no_outcome[] = {-1, 3, 255, INT32_MIN, INT32_MAX};
    uint64_t permit, held;
    double seconds;
    CHECK_EQ(tidegate_try_admit(gate, 1, 1, &held), TIDEGATE_ADMITTED);
    config.limit = 1;
    for (size_t i = 0; i < COUNT(none_of_them); i++) {
        CHECK_EQ(tidegate_try_admit(gate, none_of_them[i], 1, &permit), TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(tidegate_enter(gate, none_of_them[i]), TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(tidegate_retry_after(gate, none_of_them[i], 1, &seconds), TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(tidegate_latency(gate, none_of_them[i], 0.5, &seconds), TIDEGATE_ERR_ARGUMENT);
        config.default_priority = none_of_them[i];
        CHECK_EQ(tidegate_gate_new(&config, "x", 1, &made, NULL, 0), TIDEGATE_ERR_ARGUMENT);
    }
    config.default_priority = TIDEGATE_PRIORITY_DEFAULT;
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &made, NULL, 0), TIDEGATE_ERR_ARGUMENT);
    for (size_t i = 0; i < COUNT(no_outcome); i++) {
        CHECK_EQ(tidegate_release(gate, held, no_outcome[i]), TIDEGATE_ERR_ARGUMENT);
        CHECK_EQ(tidegate_exit(gate, no_outcome[i]), TIDEGATE_ERR_ARGUMENT);
    }
    CHECK_EQ(tidegate_in_flight(gate), 1);
    CHECK_EQ(stats_of(gate).unmatched_exits, 0);
    CHECK_EQ(tidegate_release(gate, held, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

static void thresholds(void)
{
    tidegate_gate *gate = gate_of(10);
    static const int64_t no_share[] = {-1, 1000001, 4294967295, 4294967296, INT64_MIN, INT64_MAX};
    static const int64_t no_reserve[] = {-1, 2147483648, 4294967295, 4294967296, INT64_MIN, INT64_MAX};
    tidegate_threshold all[4] = {{0, 0}, {0, 0}, {0, 0}, {TIDEGATE_THRESHOLD_PPM, 0}};
    for (size_t i = 0; i < COUNT(no_share); i++) {
        all[3].kind = TIDEGATE_THRESHOLD_PPM;
        all[3].value = no_share[i];
        CHECK_EQ(tidegate_set_threshold_kinds(gate, all), TIDEGATE_ERR_ARGUMENT);
        all[3].kind = TIDEGATE_THRESHOLD_RESERVE;
        all[3].value = no_reserve[i];
        CHECK_EQ(tidegate_set_threshold_kinds(gate, all), TIDEGATE_ERR_ARGUMENT);
    }
    static const uint32_t minus_one[4] = {1000000, 1000000, 1000000, UINT32_MAX};
    CHECK_EQ(tidegate_set_thresholds(gate, minus_one), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(stats_of(gate).generation, 0);
    all[3].value = 2147483647;
    CHECK_EQ(tidegate_set_threshold_kinds(gate, all), TIDEGATE_ADMITTED);
    CHECK_EQ(stats_of(gate).thresholds[3], 0);
    tidegate_gate_free(gate);
}

static void rates(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 10;
    config.rate = (tidegate_rate){150, 10, TIDEGATE_PER_MINUTE, 0};
    tidegate_gate *gate, *made;
    CHECK_EQ(tidegate_gate_new(&config, "x", 1, &gate, NULL, 0), TIDEGATE_ADMITTED);
    static const tidegate_rate wrong[] = {
        {-1, 0, 1, 0},        {10000000001, 0, 1, 0}, {INT64_MIN, 0, 1, 0},  {INT64_MAX, 0, 3600, 0},
        {1, -1, 1, 0},        {1, 2147483648, 1, 0},  {1, 4294967297, 1, 0}, {1, INT64_MIN, 1, 0},
        {1, 0, 0, 0},         {0, 1, 0, 0},           {1, 0, 2, 0},          {1, 0, -60, 0},
        {1, 0, INT32_MAX, 0}, {1, 0, 1, 1},           {0, 0, 0, 1},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char why[256] = "";
        CHECK_EQ(tidegate_set_rate(gate, &wrong[i]), TIDEGATE_ERR_ARGUMENT);
        config.rate = wrong[i];
        CHECK_EQ(tidegate_gate_new(&config, "x", 1, &made, why, sizeof why), TIDEGATE_ERR_ARGUMENT);
        CHECK(strncmp(why, "rate", 4) == 0 || strncmp(why, "burst", 5) == 0);
    }
    tidegate_rate read;
    CHECK_EQ(tidegate_get_rate(gate, &read), TIDEGATE_ADMITTED);
    CHECK(read.count == 150 && read.burst == 10 && read.per == TIDEGATE_PER_MINUTE && read.reserved == 0);
    CHECK_EQ(stats_of(gate).generation, 0);
    CHECK_EQ(tidegate_set_rate(gate, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_set_rate(NULL, &read), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_rate(gate, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_rate(NULL, &read), TIDEGATE_ERR_NULL);
    const tidegate_rate largest = {10000000000, 2147483647, TIDEGATE_PER_HOUR, 0},
                        by_default = {150, 0, 60, 0};
    CHECK_EQ(tidegate_set_rate(gate, &largest), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_set_rate(gate, &by_default), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_get_rate(gate, &read), TIDEGATE_ADMITTED);
    CHECK_EQ(read.burst, 3);
    const tidegate_rate none = {0, 0, 0, 0};
    CHECK_EQ(tidegate_set_rate(gate, &none), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_get_rate(gate, &read), TIDEGATE_ADMITTED);
    CHECK(memcmp(&read, &none, sizeof none) == 0);
    tidegate_gate_free(gate);
}

static void quantiles(void)
{
    tidegate_gate *gate = gate_of(1);
    double seconds = 7;
    const double bad[] = {-0.001, 1.001, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_EQ(tidegate_latency(gate, 1, bad[i], &seconds), TIDEGATE_ERR_ARGUMENT);
    CHECK(seconds == 7);
    CHECK_EQ(tidegate_latency(gate, 1, 0, &seconds), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_latency(gate, 1, -0.0, &seconds), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_latency(gate, 1, 1, &seconds), TIDEGATE_ADMITTED);
    CHECK(seconds == -1);
    tidegate_gate_free(gate);
}

int main(void)
{
    RUN(limits);
    RUN(weights);
    RUN(priorities_and_outcomes);
    RUN(thresholds);
    RUN(rates);
    RUN(quantiles);
    return failed_tests != 0;
}
