/* A program that links two static libraries with Rust in them. */

#include <stdio.h>
#include <tidegate.h>

uint32_t other_sum(uint32_t n);

int main(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 1;
    tidegate_gate *gate;
    uint64_t permit;
    int well = tidegate_gate_new(&config, "db", 2, &gate, NULL, 0) == TIDEGATE_ADMITTED &&
               tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit) == TIDEGATE_ADMITTED &&
               other_sum(10) == 46 &&
               tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS) == TIDEGATE_ADMITTED;
    tidegate_gate_free(gate);
    return !well;
}
