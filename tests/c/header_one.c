/* D36: the header alone, twice, in the first of two units; and the layout that other languages rely on.
 * Compiled as every standard of C and C++. */

#include <tidegate.h>
#include <tidegate.h>

#ifdef __cplusplus
#define LAYOUT(condition) static_assert(condition, #condition)
extern "C" int of_the_other_unit(void);
#elif __STDC_VERSION__ >= 201112L
#define LAYOUT(condition) _Static_assert(condition, #condition)
int of_the_other_unit(void);
#else
#define LAYOUT(condition) extern int not_checked_before_c11
int of_the_other_unit(void);
#endif

LAYOUT(sizeof(tidegate_status) == 4);
LAYOUT(sizeof(bool) == 1);
LAYOUT(sizeof(tidegate_threshold) == 16);
LAYOUT(offsetof(tidegate_threshold, value) == 8);
LAYOUT(sizeof(tidegate_rate) == 24);
LAYOUT(offsetof(tidegate_rate, burst) == 8);
LAYOUT(offsetof(tidegate_rate, per) == 16);
LAYOUT(sizeof(tidegate_controller) == 40);
LAYOUT(offsetof(tidegate_controller, min) == 8);
LAYOUT(offsetof(tidegate_controller, prior) == 32);
LAYOUT(sizeof(tidegate_signal_config) == 72);
LAYOUT(offsetof(tidegate_signal_config, name) == 8);
LAYOUT(offsetof(tidegate_signal_config, enter) == 16);
LAYOUT(offsetof(tidegate_signal_config, ramp) == 64);
LAYOUT(sizeof(tidegate_config) == 176);
LAYOUT(offsetof(tidegate_config, struct_size) == 0);
LAYOUT(offsetof(tidegate_config, default_priority) == 4);
LAYOUT(offsetof(tidegate_config, limit) == 8);
LAYOUT(offsetof(tidegate_config, thresholds) == 16);
LAYOUT(offsetof(tidegate_config, enforce) == 80);
LAYOUT(offsetof(tidegate_config, timing) == 81);
LAYOUT(offsetof(tidegate_config, bare_entries) == 82);
LAYOUT(offsetof(tidegate_config, rate) == 88);
LAYOUT(offsetof(tidegate_config, controller) == 112);
LAYOUT(offsetof(tidegate_config, objective) == 152);
LAYOUT(offsetof(tidegate_config, signals) == 160);
LAYOUT(offsetof(tidegate_config, signal_count) == 168);
LAYOUT(sizeof(tidegate_controller_report) == 104);
LAYOUT(offsetof(tidegate_controller_report, objective) == 24);
LAYOUT(offsetof(tidegate_controller_report, refusals) == 96);
LAYOUT(sizeof(tidegate_limit_change) == 88);
LAYOUT(offsetof(tidegate_limit_change, age) == 16);
LAYOUT(offsetof(tidegate_limit_change, cause) == 24);
LAYOUT(sizeof(tidegate_pressure) == 64);
LAYOUT(offsetof(tidegate_pressure, level) == 8);
LAYOUT(offsetof(tidegate_pressure, shares) == 16);
LAYOUT(offsetof(tidegate_pressure, transitions) == 56);
LAYOUT(sizeof(tidegate_signal_report) == 328);
LAYOUT(offsetof(tidegate_signal_report, value) == 8);
LAYOUT(offsetof(tidegate_signal_report, cost) == 64);
LAYOUT(offsetof(tidegate_signal_report, name) == 72);
LAYOUT(sizeof(tidegate_permit) == 24);
LAYOUT(offsetof(tidegate_permit, priority) == 4);
LAYOUT(offsetof(tidegate_permit, weight) == 8);
LAYOUT(offsetof(tidegate_permit, over) == 16);
LAYOUT(sizeof(tidegate_stats) == 400);
LAYOUT(offsetof(tidegate_stats, generation) == 4);
LAYOUT(offsetof(tidegate_stats, limit) == 8);
LAYOUT(offsetof(tidegate_stats, in_flight) == 12);
LAYOUT(offsetof(tidegate_stats, high_water) == 16);
LAYOUT(offsetof(tidegate_stats, thresholds) == 20);
LAYOUT(offsetof(tidegate_stats, default_priority) == 36);
LAYOUT(offsetof(tidegate_stats, enforce) == 40);
LAYOUT(offsetof(tidegate_stats, admitted) == 48);
LAYOUT(offsetof(tidegate_stats, shed) == 80);
LAYOUT(offsetof(tidegate_stats, would_shed) == 304);
LAYOUT(offsetof(tidegate_stats, released) == 336);
LAYOUT(offsetof(tidegate_stats, unmatched_exits) == 360);
LAYOUT(offsetof(tidegate_stats, collected) == 368);
LAYOUT(offsetof(tidegate_stats, fallback_priority) == 376);
LAYOUT(offsetof(tidegate_stats, over_in_flight) == 384);
LAYOUT(offsetof(tidegate_stats, occupancy_us) == 392);

/* Every macro is a constant expression that fits its type, and negative ones are one operand. */
static const tidegate_status errors[] = {TIDEGATE_ERR_NULL,     TIDEGATE_ERR_ARGUMENT, TIDEGATE_ERR_STALE,
                                         TIDEGATE_ERR_PANIC,    TIDEGATE_ERR_VERSION,  TIDEGATE_ERR_CONFIG,
                                         TIDEGATE_ERR_EXHAUSTED};

int main(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    tidegate_stats stats = TIDEGATE_STATS_INIT;
    tidegate_permit permit = TIDEGATE_PERMIT_INIT;
    return !(config.limit == -1 && stats.limit == 0 && permit.priority == 0 && errors[0] == -1 &&
             1 - TIDEGATE_ERR_NULL == 2 && of_the_other_unit() == 0);
}
