/* The second unit that includes the header. */

#include <tidegate.h>

#ifdef __cplusplus
extern "C"
#endif
    int of_the_other_unit(void);

int of_the_other_unit(void)
{
    return tidegate_abi_version() == TIDEGATE_ABI_VERSION ? 0 : 1;
}
