/* What only a library that was built with the feature `test-hooks` has. */

#ifndef TIDEGATE_TEST_HOOKS_H
#define TIDEGATE_TEST_HOOKS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the time, and has gates that are made from now on go by it. */
void tidegate_test_set_clock(uint64_t now_ns);

/* Has the next call of any thread panic inside the library. */
void tidegate_test_panic_next(void);

/* Has the next permit find no room, as when 2^24 are out. */
void tidegate_test_full_next(void);

#ifdef __cplusplus
}
#endif

#endif
