/* Runs the cases of tests/vectors, as vector_lines.py writes them, from standard input. A case is a test. */

#include "check.h"
#include "tidegate_test.h"

enum { LINE = 32768, PERMITS = 64 };

static char line[LINE], fields[LINE], name[LINE];
static const tidegate_gate *gate;
static tidegate_gate *made; /* by a case without a file */
static uint64_t permits[PERMITS];
static int cases, skipped;

/* The value of a field of the current line, or NULL. */
static const char *field(const char *key)
{
    size_t length = strlen(key);
    for (char *at = strchr(fields, ' '); at; at = strchr(at, ' ')) {
        at++;
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

static int64_t number(const char *key)
{
    const char *value = field(key);
    if (!value) {
        printf("    no %s in: %s\n", key, line);
        exit(2);
    }
    return strtoll(value, NULL, 10);
}

/* Text from hexadecimal; its length. */
static size_t text(const char *hex, char *out)
{
    size_t length = 0;
    unsigned byte;
    for (; *hex && *hex != ' ' && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        out[length++] = (char)byte;
    out[length] = 0;
    return length;
}

static void read_thresholds(tidegate_threshold thresholds[4])
{
    static const char *const keys[4] = {"t0", "t1", "t2", "t3"};
    for (int priority = 0; priority < 4; priority++) {
        const char *value = field(keys[priority]);
        thresholds[priority].kind = value ? (int32_t)strtol(value, NULL, 10) : TIDEGATE_THRESHOLD_DEFAULT;
        thresholds[priority].value = value ? strtoll(strchr(value, ':') + 1, NULL, 10) : 0;
    }
}

static tidegate_rate read_rate(void)
{
    tidegate_rate rate = {number("count"), number("burst"), (int32_t)number("per"), 0};
    return rate;
}

/* A step's answer; what was expected of it stands in its line. */
static void answered(tidegate_status got)
{
    if (got != number("want"))
        printf("    got %d: %s\n", (int)got, line);
    failed_checks += got != number("want");
}

static void make_gate(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    char label[LINE];
    size_t length = text(field("name"), label);
    config.limit = number("limit");
    config.enforce = number("enforce") != 0;
    config.default_priority = (int32_t)number("default");
    read_thresholds(config.thresholds);
    config.rate = read_rate();
    tidegate_test_set_clock(0);
    answered(tidegate_gate_new(&config, label, length, &made, NULL, 0));
    gate = made;
}

static void try_admit(void)
{
    uint64_t permit;
    tidegate_status got = tidegate_try_admit(gate, (int32_t)number("priority"), number("weight"), &permit);
    answered(got);
    if (got != TIDEGATE_ADMITTED)
        return;
    tidegate_permit read = TIDEGATE_PERMIT_INIT;
    CHECK_EQ(tidegate_get_permit(gate, permit, &read), TIDEGATE_ADMITTED);
    CHECK_EQ(read.over, number("over"));
    permits[number("as")] = permit;
}

static void retry_after(void)
{
    double seconds = -2;
    tidegate_status got = tidegate_retry_after(gate, (int32_t)number("priority"), number("weight"), &seconds);
    answered(got);
    if (got != TIDEGATE_ADMITTED)
        return;
    double expected = strtod(field("seconds"), NULL);
    if (!(seconds == expected || fabs(seconds - expected) <= 1e-9)) {
        printf("    got %.9f: %s\n", seconds, line);
        failed_checks++;
    }
}

static void compare(const char *key, uint64_t got)
{
    const char *expected = field(key);
    if (expected && strtoull(expected, NULL, 10) != got) {
        printf("    %s is %llu: %s\n", key, (unsigned long long)got, line);
        failed_checks++;
    }
}

static void compare_stats(void)
{
    tidegate_stats stats = stats_of(gate);
    char key[32];
    compare(".limit", stats.limit);
    compare(".in_flight", stats.in_flight);
    compare(".high_water", stats.high_water);
    compare(".generation", stats.generation);
    compare(".unmatched_exits", stats.unmatched_exits);
    compare(".collected", stats.collected);
    compare(".fallback_priority", stats.fallback_priority);
    for (int priority = 0; priority < 4; priority++) {
        snprintf(key, sizeof key, ".admitted.%d", priority);
        compare(key, stats.admitted[priority]);
        snprintf(key, sizeof key, ".would_shed.%d", priority);
        compare(key, stats.would_shed[priority]);
        for (int reason = 0; reason < 7; reason++) {
            snprintf(key, sizeof key, ".shed.%d.%d", priority, reason);
            compare(key, stats.shed[priority][reason]);
        }
    }
    for (int outcome = 0; outcome < 3; outcome++) {
        snprintf(key, sizeof key, ".released.%d", outcome);
        compare(key, stats.released[outcome]);
    }
}

#include "vectors_of_files.h"

static void step(const char *op)
{
    if (strcmp(op, "skip") == 0) {
        skipped++;
    } else if (step_of_a_file(op)) {
        return;
    } else if (strcmp(op, "gate") == 0) {
        make_gate();
    } else if (strcmp(op, "clock") == 0) {
        tidegate_test_set_clock(strtoull(field("ns"), NULL, 10));
    } else if (strcmp(op, "try_admit") == 0) {
        try_admit();
    } else if (strcmp(op, "release") == 0) {
        answered(tidegate_release(gate, permits[number("permit")], (int32_t)number("outcome")));
    } else if (strcmp(op, "enter") == 0) {
        answered(tidegate_enter(gate, TIDEGATE_PRIORITY_DEFAULT));
    } else if (strcmp(op, "exit") == 0) {
        answered(tidegate_exit(gate, (int32_t)number("outcome")));
    } else if (strcmp(op, "set_limit") == 0) {
        answered(tidegate_set_limit(gate, number("limit")));
    } else if (strcmp(op, "set_thresholds") == 0) {
        tidegate_threshold thresholds[4];
        read_thresholds(thresholds);
        answered(tidegate_set_threshold_kinds(gate, thresholds));
    } else if (strcmp(op, "set_rate") == 0) {
        tidegate_rate rate = read_rate();
        answered(tidegate_set_rate(gate, &rate));
    } else if (strcmp(op, "set_enforce") == 0) {
        answered(tidegate_set_enforce(gate, number("enforce") != 0));
    } else if (strcmp(op, "signal") == 0) {
        char signal[LINE];
        size_t length = text(field("name"), signal);
        answered(tidegate_signal(gate, signal, length, strtod(field("value"), NULL), number("good_for_ms")));
    } else if (strcmp(op, "close") == 0) {
        answered(tidegate_close(gate));
    } else if (strcmp(op, "retry_after") == 0) {
        retry_after();
    } else if (strcmp(op, "stats") == 0) {
        compare_stats();
    } else {
        printf("no such op: %s\n", line);
        exit(2);
    }
}

static void end_case(void)
{
    if (!cases)
        return;
    for (int i = 0; i < PERMITS; i++)
        if (made && permits[i])
            tidegate_release(made, permits[i], TIDEGATE_OUTCOME_IGNORE); /* stale where it was released */
    tidegate_gate_free(made);
    end_file();
    printf("%s vector: %s\n", failed_checks ? "FAILED  " : "ok      ", name);
    failed_tests += failed_checks != 0;
}

int main(void)
{
    while (fgets(line, sizeof line, stdin)) {
        char op[LINE];
        line[strcspn(line, "\n")] = 0;
        strcpy(fields, line);
        sscanf(line, "%s", op);
        if (strcmp(op, "case") != 0) {
            step(op);
            continue;
        }
        end_case();
        failed_checks = 0;
        gate = made = NULL;
        memset(permits, 0, sizeof permits);
        text(line + strlen("case "), name);
        cases++;
    }
    end_case();
    printf("    %d cases; the C ABI's types cannot express %d steps\n", cases, skipped);
    if (cases < 60) {
        printf("FAILED   only %d cases were found\n", cases);
        return 1;
    }
    return failed_tests != 0;
}
