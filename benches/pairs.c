/* The pair that the benchmark times: admit, release. */

#include <tidegate.h>

static tidegate_gate *gate;

int tidegate_bench_open(void);
void tidegate_bench_pairs(uint64_t n);

int tidegate_bench_open(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 20;
    return tidegate_gate_new(&config, "bench", 5, &gate, NULL, 0);
}

void tidegate_bench_pairs(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t permit;
        if (tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit) == TIDEGATE_ADMITTED)
            tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS);
    }
}
