/* A program of somebody else's: it knows only what was installed. */

#include <stdio.h>
#include <tidegate.h>

int main(void)
{
    if (tidegate_abi_version() != TIDEGATE_ABI_VERSION) {
        fprintf(stderr, "the library speaks another version\n");
        return 1;
    }
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 1;
    tidegate_gate *gate;
    char why[256];
    if (tidegate_gate_new(&config, "db", 2, &gate, why, sizeof why) < 0) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    uint64_t permit, none;
    tidegate_status first = tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permit);
    tidegate_status second = tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &none);
    tidegate_status released = tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS);
    tidegate_gate_free(gate);
    printf("%s / %s\n", tidegate_status_str(first), tidegate_status_str(second));
    return !(first == TIDEGATE_ADMITTED && second == TIDEGATE_SHED_LIMIT && released == TIDEGATE_ADMITTED);
}
