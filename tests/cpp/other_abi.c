/* Loaded before libtidegate: a library of another version. */
#include <stdint.h>

uint32_t tidegate_abi_version(void);

uint32_t tidegate_abi_version(void)
{
    return 999;
}
