/* What is easier said in C: one crossing where the Go side would need several, and no pointer inside of a
 * struct that Go made. */

#ifndef TIDEGATE_GO_NATIVE_H
#define TIDEGATE_GO_NATIVE_H

#include <stdlib.h>
#include <string.h>
#include <tidegate.h>

/* What try_admit answers: a permit, or the numbers of the moment where it was shed. */
typedef struct {
    uint64_t permit;
    int64_t in_flight;
    int64_t limit;
    tidegate_status status;
} tidegate_go_answer;

static inline void tidegate_go_try_admit(const tidegate_gate *gate, int32_t priority, int64_t weight,
                                         tidegate_go_answer *answer)
{
    answer->status = tidegate_try_admit(gate, priority, weight, &answer->permit);
    if (answer->status > 0) {
        answer->in_flight = tidegate_in_flight(gate);
        answer->limit = tidegate_limit(gate);
    }
}

static inline tidegate_config tidegate_go_config(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    return config;
}

static inline tidegate_stats tidegate_go_stats(void)
{
    tidegate_stats stats = TIDEGATE_STATS_INIT;
    return stats;
}

static inline tidegate_permit tidegate_go_permit(void)
{
    tidegate_permit permit = TIDEGATE_PERMIT_INIT;
    return permit;
}

static inline tidegate_signal_config tidegate_go_signal_config(void)
{
    tidegate_signal_config config = TIDEGATE_SIGNAL_INIT;
    return config;
}

static inline tidegate_controller_report tidegate_go_controller_report(void)
{
    tidegate_controller_report report = TIDEGATE_CONTROLLER_REPORT_INIT;
    return report;
}

static inline tidegate_limit_change tidegate_go_limit_change(void)
{
    tidegate_limit_change change = TIDEGATE_LIMIT_CHANGE_INIT;
    return change;
}

static inline tidegate_pressure tidegate_go_pressure(void)
{
    tidegate_pressure pressure = TIDEGATE_PRESSURE_INIT;
    return pressure;
}

static inline tidegate_signal_report tidegate_go_signal_report(void)
{
    tidegate_signal_report report = TIDEGATE_SIGNAL_REPORT_INIT;
    return report;
}

/* The attributes stand in `texts` one after the other, each a name with its NUL and a value; `sizes` has how
 * long each of them is. */
static inline tidegate_status tidegate_go_classify(const tidegate_gates *gates, const char *texts,
                                                   const size_t *sizes, size_t count, int32_t *priority,
                                                   char *why, size_t why_cap)
{
    tidegate_attribute few[32];
    tidegate_attribute *all = count <= 32 ? few : malloc(count * sizeof *all);
    if (!all)
        return TIDEGATE_ERR_EXHAUSTED;
    for (size_t at = 0; at < count; at++) {
        all[at].name = texts;
        all[at].value = texts + sizes[2 * at];
        all[at].value_len = sizes[2 * at + 1];
        texts = all[at].value + all[at].value_len;
    }
    tidegate_status status = tidegate_classify(gates, all, count, priority, why, why_cap);
    if (all != few)
        free(all);
    return status;
}

#endif
