/* Controllers and signals: what a configuration takes, and what comes of it on a clock that is set by hand. */

#include "check.h"
#include "tidegate_test.h"

static const uint64_t second = 1000000000;
static char why[512];

static tidegate_status made(const tidegate_config *config, tidegate_gate **gate)
{
    return tidegate_gate_new(config, "db", 2, gate, why, sizeof why);
}

/* The configuration is refused with this status, and a text that has this in it. */
static void refused(const tidegate_config *config, tidegate_status status, const char *part)
{
    tidegate_gate *gate = NULL;
    CHECK_EQ(made(config, &gate), status);
    CHECK(gate == NULL);
    if (!strstr(why, part))
        printf("    %s\n    has not: %s\n", why, part);
    CHECK(strstr(why, part) != NULL);
}

static tidegate_controller_report controller_of(const tidegate_gate *gate)
{
    tidegate_controller_report report = TIDEGATE_CONTROLLER_REPORT_INIT;
    CHECK_EQ(tidegate_get_controller(gate, &report), TIDEGATE_ADMITTED);
    return report;
}

static tidegate_pressure pressure_of(const tidegate_gate *gate)
{
    tidegate_pressure report = TIDEGATE_PRESSURE_INIT;
    CHECK_EQ(tidegate_get_pressure(gate, &report), TIDEGATE_ADMITTED);
    return report;
}

/* A window of a second in which all of `count` are inside together and answered with `outcome`. */
static void a_second(const tidegate_gate *gate, uint64_t from, int count, int32_t outcome)
{
    uint64_t permits[64];
    tidegate_test_set_clock(from);
    for (int n = 0; n < count; n++)
        CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_CRITICAL, 1, &permits[n]), TIDEGATE_ADMITTED);
    tidegate_test_set_clock(from + second);
    for (int n = 0; n < count; n++)
        CHECK_EQ(tidegate_release(gate, permits[n], outcome), TIDEGATE_ADMITTED);
}

static void a_controller_moves_the_limit(void)
{
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 20;
    config.controller.kind = TIDEGATE_CONTROLLER_AIMD;
    config.controller.min = 4;
    config.controller.max = 200;
    config.objective = 2.5;
    tidegate_test_set_clock(0);
    tidegate_gate *gate;
    CHECK_EQ(made(&config, &gate), TIDEGATE_ADMITTED);
    tidegate_controller_report report = controller_of(gate);
    CHECK_EQ(report.struct_size, sizeof report);
    CHECK_EQ(report.kind, TIDEGATE_CONTROLLER_AIMD);
    CHECK(report.min == 4 && report.max == 200 && report.prior == 20 && report.looks == 0);
    CHECK(report.objective == 2.5);

    for (uint64_t n = 0; n < 6; n++)
        a_second(gate, n * second, 20, TIDEGATE_OUTCOME_SUCCESS);
    const int64_t raised = tidegate_limit(gate);
    CHECK(raised > 20);
    for (uint64_t n = 6; n < 12; n++)
        a_second(gate, n * second, 12, TIDEGATE_OUTCOME_OVERLOAD);
    CHECK(tidegate_limit(gate) < raised);
    report = controller_of(gate);
    CHECK_EQ(report.cause, TIDEGATE_CAUSE_LOWER);
    CHECK(report.looks > 6 && report.moves > 2 && report.probes == 0);
    CHECK(report.completions >= 12 && report.overload >= 12 && report.good == 0 && report.window >= 1.0);
    CHECK_EQ(stats_of(gate).limit, tidegate_limit(gate));

    tidegate_limit_change change = TIDEGATE_LIMIT_CHANGE_INIT;
    CHECK_EQ(tidegate_get_limit_change(gate, 0, &change), TIDEGATE_ADMITTED);
    CHECK_EQ(change.to, tidegate_limit(gate));
    CHECK(strcmp(change.cause, "lower") == 0 && change.from > change.to && change.age >= 0.0);
    size_t moves = 0;
    while (tidegate_get_limit_change(gate, moves, &change) == TIDEGATE_ADMITTED)
        moves++;
    CHECK_EQ(moves, report.moves);
    CHECK(change.from == 20 && change.to == 21 && strcmp(change.cause, "raise") == 0);
    CHECK_EQ(tidegate_get_limit_change(gate, moves, &change), TIDEGATE_ERR_ARGUMENT);

    /* By hand only within the bounds; then it starts anew from there. */
    CHECK_EQ(tidegate_set_limit(gate, 3), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_set_limit(gate, 201), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_set_limit_cause(gate, 50, "a cause that is longer than the sixty-three bytes that are read of it"),
             TIDEGATE_ADMITTED);
    CHECK_EQ(controller_of(gate).prior, 50);
    CHECK_EQ(tidegate_get_limit_change(gate, 0, &change), TIDEGATE_ADMITTED);
    CHECK_EQ(strlen(change.cause), 63);
    tidegate_gate_free(gate);
}

static void where_a_controller_starts(void)
{
    static const struct {
        int64_t limit, min, max, ceiling, prior, starts;
    } cases[] = {
        {-1, 0, 0, 0, 0, 32}, {20, 0, 0, 0, 0, 20},   {20, 0, 0, 10, 0, 10},
        {20, 0, 0, 0, 29, 29}, {-1, 4, 200, 0, 0, 28}, {-1, 2000, 0, 0, 0, 2000},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        tidegate_config config = TIDEGATE_CONFIG_INIT;
        config.limit = cases[n].limit;
        config.controller.kind = TIDEGATE_CONTROLLER_GOODPUT;
        config.controller.min = cases[n].min;
        config.controller.max = cases[n].max;
        config.controller.ceiling = cases[n].ceiling;
        config.controller.prior = cases[n].prior;
        tidegate_gate *gate;
        CHECK_EQ(made(&config, &gate), TIDEGATE_ADMITTED);
        CHECK_EQ(tidegate_limit(gate), cases[n].starts);
        CHECK_EQ(controller_of(gate).prior, cases[n].starts);
        tidegate_gate_free(gate);
    }
    tidegate_gate *plain = gate_of(3);
    CHECK_EQ(controller_of(plain).kind, TIDEGATE_CONTROLLER_NONE);
    CHECK_EQ(controller_of(plain).max, 0);
    CHECK_EQ(pressure_of(plain).signals, 0);
    tidegate_gate_free(plain);
}

static void what_no_controller_can_be(void)
{
    static const int64_t outside[] = {-1, INT64_MIN, 2147483648, 4294967296, 4294967301, INT64_MAX};
    for (size_t n = 0; n < sizeof outside / sizeof *outside; n++) {
        for (int which = 0; which < 4; which++) {
            tidegate_config config = TIDEGATE_CONFIG_INIT;
            config.limit = 20;
            config.controller.kind = TIDEGATE_CONTROLLER_VEGAS;
            int64_t *bounds[4] = {&config.controller.min, &config.controller.max, &config.controller.ceiling,
                                  &config.controller.prior};
            *bounds[which] = outside[n];
            refused(&config, TIDEGATE_ERR_ARGUMENT, "must be a whole number from 1 to 2147483647, or 0 for its default, got ");
        }
    }
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 20;
    config.controller.min = 4;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "controller.kind must be 1 (fixed)");
    config.controller.kind = 6;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "got 6 and 0");
    config.controller.kind = TIDEGATE_CONTROLLER_AIMD;
    config.controller.reserved = 1;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "got 2 and 1");
    config.controller.reserved = 0;
    config.controller.min = 30;
    refused(&config, TIDEGATE_ERR_CONFIG, "must be from min (30) to max (1000), got 20");
    config.controller.max = 25;
    refused(&config, TIDEGATE_ERR_CONFIG, "min must be a whole number from 1 to max (25), got 30");
    config.controller.max = 0;
    config.limit = -1;
    config.controller.ceiling = 5;
    refused(&config, TIDEGATE_ERR_CONFIG, "ceiling must be at least min (30), got 5");
    config.controller.ceiling = 0;
    config.limit = -2;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "limit must be a whole number from 0 to 2147483647, got -2");
    config.limit = 50;
    static const double no_objective[] = {-1.0, -0.001, HUGE_VAL, -HUGE_VAL, 1e300, 1e-10};
    for (size_t n = 0; n < sizeof no_objective / sizeof *no_objective; n++) {
        config.objective = no_objective[n];
        refused(&config, TIDEGATE_ERR_ARGUMENT, "objective must be ");
    }
    config.objective = NAN;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "objective must be a time in seconds above 0, or 0 for none, got NaN");
}

static void what_is_pushed_sheds(void)
{
    tidegate_signal_config signals[2] = {TIDEGATE_SIGNAL_INIT, TIDEGATE_SIGNAL_INIT};
    signals[0].kind = TIDEGATE_SIGNAL_PUSHED;
    signals[0].name = "waits";
    signals[0].enter = 0.8;
    signals[0].leave = 0.6;
    signals[0].enter_for = 0;
    signals[0].ramp = 0;
    signals[1].kind = TIDEGATE_SIGNAL_ERRORS;
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 20;
    config.signals = signals;
    config.signal_count = 2;
    tidegate_test_set_clock(0);
    tidegate_gate *gate;
    CHECK_EQ(made(&config, &gate), TIDEGATE_ADMITTED);
    CHECK_EQ(pressure_of(gate).signals, 2);
    CHECK(pressure_of(gate).level == 0 && !pressure_of(gate).overloaded);

    CHECK_EQ(tidegate_signal(gate, "waits", 5, 1.0, 5000), TIDEGATE_ADMITTED);
    uint64_t permit;
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_SHEDDABLE, 1, &permit), TIDEGATE_SHED_PRESSURE);
    tidegate_pressure pressure = pressure_of(gate);
    CHECK(pressure.overloaded && pressure.level == 1.0 && pressure.transitions == 1);
    CHECK(pressure.shares[3] == 1.0 && pressure.shares[0] > 0.94 && pressure.shares[0] < 0.96);
    tidegate_signal_report signal = TIDEGATE_SIGNAL_REPORT_INIT;
    CHECK_EQ(tidegate_get_signal(gate, 0, &signal), TIDEGATE_ADMITTED);
    CHECK(strcmp(signal.name, "waits") == 0 && signal.value == 1.0 && signal.overloaded && signal.level == 1.0);
    CHECK(signal.enter == 0.8 && signal.leave == 0.6 && signal.full == 1.0 && signal.reads == 1);
    CHECK_EQ(tidegate_get_signal(gate, 1, &signal), TIDEGATE_ADMITTED);
    CHECK(strcmp(signal.name, "errors") == 0 && signal.value == -1.0 && !signal.overloaded);
    CHECK(signal.enter == 0.10 && signal.leave == 0.05 && signal.full == 0.5);
    CHECK_EQ(tidegate_get_signal(gate, 2, &signal), TIDEGATE_ERR_ARGUMENT);

    /* After that it is unknown, which is not overload. */
    tidegate_test_set_clock(6 * second);
    CHECK_EQ(tidegate_try_admit(gate, TIDEGATE_PRIORITY_SHEDDABLE, 1, &permit), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_release(gate, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(stats_of(gate).shed[TIDEGATE_PRIORITY_SHEDDABLE][TIDEGATE_SHED_PRESSURE - 1], 1);

    static const double no_pressure[] = {-0.1, 1.1, 70, HUGE_VAL};
    for (size_t n = 0; n < sizeof no_pressure / sizeof *no_pressure; n++)
        CHECK_EQ(tidegate_signal(gate, "waits", 5, no_pressure[n], 5000), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_signal(gate, "waits", 5, NAN, 5000), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_signal(gate, "waits", 5, 1.0, -1), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_signal(gate, "wait", 4, 1.0, 5000), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_signal(gate, "errors", 6, 1.0, 5000), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_signal(gate, "waits", SIZE_MAX, 1.0, 5000), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_signal(gate, NULL, 5, 1.0, 5000), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_signal(NULL, "waits", 5, 1.0, 5000), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_signal(gate, 0, &signal), TIDEGATE_ADMITTED);
    CHECK_EQ(signal.reads, 1);
    tidegate_gate_free(gate);
}

static void what_no_signals_can_be(void)
{
    tidegate_signal_config signals[2] = {TIDEGATE_SIGNAL_INIT, TIDEGATE_SIGNAL_INIT};
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 20;
    config.signal_count = 1;
    refused(&config, TIDEGATE_ERR_NULL, "signals is NULL");
    config.signals = signals;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "signals[0]: kind must be one of the TIDEGATE_SIGNAL_ numbers, 1 to 8, got 0");
    config.signal_count = SIZE_MAX;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "signal_count must be at most 1024, got ");
    config.signal_count = 2;
    signals[0].kind = TIDEGATE_SIGNAL_PUSHED;
    signals[1].kind = TIDEGATE_SIGNAL_LATENCY;
    refused(&config, TIDEGATE_ERR_CONFIG, "objective");
    config.objective = 1;
    signals[1].name = "pushed";
    refused(&config, TIDEGATE_ERR_CONFIG, "\"pushed\" twice");
    signals[1].name = "a\nb";
    refused(&config, TIDEGATE_ERR_ARGUMENT, "name must be 1 to 255 bytes");
    signals[1].name = "\xff";
    refused(&config, TIDEGATE_ERR_ARGUMENT, "name must be 1 to 255 bytes");
    signals[1].name = NULL;
    signals[1].enter = 0.7;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "signals[1]: a signal's thresholds must be 0 <= leave < enter <= full <= 1");
    signals[1].enter = NAN;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "signals[1]: a signal's thresholds must be");
    signals[1].enter = -1;
    signals[1].dwell = NAN;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "signals[1]: dwell must be a time in seconds, 0 or more, got NaN");
    signals[1].dwell = HUGE_VAL;
    refused(&config, TIDEGATE_ERR_ARGUMENT, "signals[1]: dwell must be");
    signals[1].dwell = -1;
    signals[1].struct_size--;
    refused(&config, TIDEGATE_ERR_VERSION, "signals[1] is of a version");
    signals[0].struct_size = 3;
    refused(&config, TIDEGATE_ERR_VERSION, "signals[0] is of a version");
    signals[0].struct_size = signals[1].struct_size = sizeof *signals;
    tidegate_gate *gate;
    CHECK_EQ(made(&config, &gate), TIDEGATE_ADMITTED);
    tidegate_gate_free(gate);
}

/* A program that was built before there were controllers, or rates: what lies behind its struct is not looked at. */
static void older_programs(void)
{
    const size_t sizes[] = {offsetof(tidegate_config, rate), offsetof(tidegate_config, controller)};
    for (size_t n = 0; n < 2; n++) {
        tidegate_config config = TIDEGATE_CONFIG_INIT;
        config.limit = 7;
        memset((char *)&config + sizes[n], 0xff, sizeof config - sizes[n]);
        config.struct_size = (uint32_t)sizes[n];
        tidegate_gate *gate;
        CHECK_EQ(made(&config, &gate), TIDEGATE_ADMITTED);
        CHECK_EQ(tidegate_limit(gate), 7);
        CHECK_EQ(controller_of(gate).kind, TIDEGATE_CONTROLLER_NONE);
        CHECK_EQ(pressure_of(gate).signals, 0);
        tidegate_gate_free(gate);
    }
}

/* What a newer program's structs have more is filled with zero, or told apart. */
static void newer_programs(void)
{
    struct {
        tidegate_signal_config now;
        char later[16];
    } signals[2] = {{TIDEGATE_SIGNAL_INIT, {0}}, {TIDEGATE_SIGNAL_INIT, {0}}};
    signals[0].now.struct_size = signals[1].now.struct_size = sizeof *signals;
    signals[0].now.kind = TIDEGATE_SIGNAL_PUSHED;
    signals[1].now.kind = TIDEGATE_SIGNAL_ERRORS;
    tidegate_config config = TIDEGATE_CONFIG_INIT;
    config.limit = 20;
    config.signals = &signals[0].now;
    config.signal_count = 2;
    tidegate_gate *gate;
    CHECK_EQ(made(&config, &gate), TIDEGATE_ADMITTED);
    struct {
        tidegate_signal_report now;
        char later[16];
    } report;
    memset(&report, 0xff, sizeof report);
    report.now.struct_size = sizeof report;
    CHECK_EQ(tidegate_get_signal(gate, 1, &report.now), TIDEGATE_ADMITTED);
    CHECK(strcmp(report.now.name, "errors") == 0 && report.later[0] == 0 && report.later[15] == 0);
    report.now.struct_size = 7;
    CHECK_EQ(tidegate_get_signal(gate, 1, &report.now), TIDEGATE_ERR_VERSION);
    CHECK_EQ(tidegate_get_signal(gate, 1, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_controller(gate, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_controller(NULL, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_pressure(gate, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_pressure(NULL, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_get_limit_change(NULL, 0, NULL), TIDEGATE_ERR_NULL);
    tidegate_gate_free(gate);
    signals[1].later[3] = 1;
    refused(&config, TIDEGATE_ERR_VERSION, "signals[1] is of a version");
}

/* A file gives the same as a configuration, and a reload leaves what a controller has found. */
static void from_a_file(void)
{
    static const char text[] = "[gates.db]\nlimit = 20\nobjective = '2s'\ncontroller = { kind = 'aimd', min = 4 }\n"
                               "signals = [{ kind = 'pushed', name = 'waits' }]\n";
    tidegate_test_set_clock(0);
    tidegate_gates *gates;
    const tidegate_gate *db;
    CHECK_EQ(tidegate_open_text(text, sizeof text - 1, NULL, &gates, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_find(gates, "db", 2, &db), TIDEGATE_ADMITTED);
    CHECK(controller_of(db).kind == TIDEGATE_CONTROLLER_AIMD && controller_of(db).objective == 2.0);
    for (uint64_t n = 0; n < 4; n++)
        a_second(db, n * second, 20, TIDEGATE_OUTCOME_SUCCESS);
    const int64_t found = tidegate_limit(db);
    const uint64_t looks = controller_of(db).looks;
    CHECK(found > 20 && looks > 2);
    CHECK_EQ(tidegate_signal(db, "waits", 5, 0.5, 60000), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_reload_text(gates, text, sizeof text - 1, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK(strcmp(why, "") == 0);
    CHECK_EQ(tidegate_limit(db), found);
    CHECK_EQ(controller_of(db).looks, looks);
    tidegate_signal_report signal = TIDEGATE_SIGNAL_REPORT_INIT;
    CHECK_EQ(tidegate_get_signal(db, 0, &signal), TIDEGATE_ADMITTED);
    CHECK_EQ(signal.reads, 1);
    static const char plain[] = "[gates.db]\nlimit = 20\n";
    CHECK_EQ(tidegate_reload_text(gates, plain, sizeof plain - 1, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK(strstr(why, "gate db: controller aimd (4 to 1000, from 20) -> none") != NULL);
    CHECK(strstr(why, "gate db: signal waits: removed") != NULL);
    CHECK_EQ(tidegate_limit(db), 20);
    CHECK_EQ(controller_of(db).kind, TIDEGATE_CONTROLLER_NONE);
    CHECK_EQ(tidegate_signal(db, "waits", 5, 0.5, 60000), TIDEGATE_ERR_ARGUMENT);
    tidegate_gates_free(gates);
}

int main(void)
{
    RUN(a_controller_moves_the_limit);
    RUN(where_a_controller_starts);
    RUN(what_no_controller_can_be);
    RUN(what_is_pushed_sheds);
    RUN(what_no_signals_can_be);
    RUN(older_programs);
    RUN(newer_programs);
    RUN(from_a_file);
    return failed_tests != 0;
}
