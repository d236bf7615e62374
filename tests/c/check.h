/* What the test programs share. A program is a list of tests: each prints `ok NAME` or `FAILED NAME`, and all
 * run. */

#ifndef TIDEGATE_TEST_CHECK_H
#define TIDEGATE_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidegate.h>

static int failed_checks, failed_tests;

#define CHECK(condition) check((condition) ? 1 : 0, #condition, __FILE__, __LINE__)

/* As CHECK, and says which number it was. */
#define CHECK_EQ(got, expected)                                                                              \
    check_equal((long long)(got), (long long)(expected), #got " == " #expected, __FILE__, __LINE__)

#define RUN(test) run_test(#test, test)

static inline void check(int holds, const char *text, const char *file, int line)
{
    if (!holds) {
        printf("    %s:%d: %s\n", file, line, text);
        failed_checks++;
    }
}

static inline void check_equal(long long got, long long expected, const char *text, const char *file,
                               int line)
{
    if (got != expected) {
        printf("    %s:%d: %s: got %lld, expected %lld\n", file, line, text, got, expected);
        failed_checks++;
    }
}

static inline void run_test(const char *name, void (*test)(void))
{
    failed_checks = 0;
    test();
    printf("%s %s\n", failed_checks ? "FAILED  " : "ok      ", name);
    fflush(stdout); /* a child that is forked later must not print it again */
    failed_tests += failed_checks != 0;
}

/* A gate of the given limit, with everything else as it comes. */
static inline tidegate_gate *gate_of(int64_t limit)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = limit;
    tidegate_gate *gate;
    char why[256];
    if (tidegate_gate_new(&config, "test", 4, &gate, why, sizeof why) != TIDEGATE_ADMITTED) {
        printf("no gate: %s\n", why);
        exit(1);
    }
    return gate;
}

static inline tidegate_stats stats_of(const tidegate_gate *gate)
{
    tidegate_stats stats = TIDEGATE_STATS_INIT;
    CHECK_EQ(tidegate_get_stats(gate, &stats), TIDEGATE_ADMITTED);
    return stats;
}

/* How much of a test's work to do, in per cent: less under valgrind, more in a soak. */
static inline long scaled(long work)
{
    const char *percent = getenv("TIDEGATE_TEST_PERCENT");
    long result = percent ? work * atol(percent) / 100 : work;
    return result > 0 ? result : 1;
}

#endif
