/* The part of vectors.c that is about files: gates by name, reloads, classifiers. Included by it. */

enum { GATES = 16, SAID = 16384 };

static tidegate_gates *gates;
/* Those that were found: a pointer stays good when a reload has the file without its gate. */
static const tidegate_gate *found[GATES];

static void wrong(const char *what, const char *got)
{
    printf("    %s: got %s: %.200s\n", what, got, line);
    failed_checks++;
}

/* The text of a field `KEYat`, or NULL. */
static const char *numbered(const char *key, int at, char *out)
{
    char name_of[16];
    snprintf(name_of, sizeof name_of, "%s%d", key, at);
    const char *value = field(name_of);
    if (!value)
        return NULL;
    text(value, out);
    return out;
}

/* Compares what a call said, line by line, where the case tells what it should. */
static void compare_said(char *said)
{
    char expected[LINE];
    if (!field("n"))
        return;
    int count = (int)number("n"), got = 0;
    for (char *at = said; *at; got++) {
        char *end = strchr(at, '\n');
        if (end)
            *end = 0;
        if (numbered("p", got, expected) && strncmp(at, expected, strlen(expected)) != 0)
            wrong(expected, at);
        if (numbered("l", got, expected) && strcmp(at, expected) != 0)
            wrong(expected, at);
        at = end ? end + 1 : at + strlen(at);
    }
    if (got != count)
        wrong("the number of lines", said);
}

/* Where the gate of a name is kept; NULL there if it is new. */
static const tidegate_gate **place_of(const char *wanted)
{
    int at = 0;
    while (found[at] && strcmp(tidegate_gate_name(found[at]), wanted) != 0)
        at++;
    return &found[at];
}

static void remember_all(void)
{
    const tidegate_gate *each;
    for (size_t at = 0; tidegate_gate_at(gates, at, &each) == TIDEGATE_ADMITTED; at++) {
        const tidegate_gate **place = place_of(tidegate_gate_name(each));
        CHECK(!*place || *place == each);
        *place = each;
    }
}

static void open_file(void)
{
    char toml[LINE], said[SAID];
    size_t length = text(field("toml"), toml);
    tidegate_test_set_clock(0);
    answered(tidegate_open_text(toml, length, "vector.toml", &gates, said, sizeof said));
    compare_said(said);
    if (gates)
        remember_all();
}

static void reload_file(void)
{
    char toml[LINE], said[SAID];
    size_t length = text(field("toml"), toml);
    answered(tidegate_reload_text(gates, toml, length, said, sizeof said));
    compare_said(said);
    remember_all();
}

static void use_gate(void)
{
    char wanted[LINE];
    text(field("gate"), wanted);
    gate = *place_of(wanted);
    CHECK(gate != NULL);
}

static void compare_names(void)
{
    char expected[LINE];
    const tidegate_gate *each;
    int count = (int)number("n");
    for (int at = 0; at < count; at++) {
        CHECK_EQ(tidegate_gate_at(gates, (size_t)at, &each), TIDEGATE_ADMITTED);
        if (!each || strcmp(tidegate_gate_name(each), numbered("l", at, expected)) != 0)
            wrong(expected, each ? tidegate_gate_name(each) : "none");
    }
    CHECK_EQ(tidegate_gate_at(gates, (size_t)count, &each), TIDEGATE_ERR_ARGUMENT);
}

static void compare_state(void)
{
    tidegate_stats stats = stats_of(gate);
    tidegate_rate rate;
    char key[32];
    CHECK_EQ(tidegate_get_rate(gate, &rate), TIDEGATE_ADMITTED);
    compare(".limit", stats.limit);
    compare(".default_priority", (uint64_t)stats.default_priority);
    compare(".enforce", stats.enforce);
    compare(".timing", stats.timing);
    compare(".closed", stats.closed);
    compare(".rate.count", (uint64_t)rate.count);
    compare(".rate.burst", (uint64_t)rate.burst);
    compare(".rate.seconds", (uint64_t)rate.per);
    for (int priority = 0; priority < 4; priority++) {
        snprintf(key, sizeof key, ".threshold.%d", priority);
        compare(key, stats.thresholds[priority]);
    }
}

static void classify(void)
{
    enum { ATTRIBUTES = 8 };
    static char names[ATTRIBUTES][LINE], values[ATTRIBUTES][LINE];
    tidegate_attribute request[ATTRIBUTES];
    char key[16], why[SAID], expected[LINE], rule[32];
    int count = (int)number("n");
    for (int at = 0; at < count; at++) {
        snprintf(key, sizeof key, "a%d", at);
        const char *pair = field(key);
        text(pair, names[at]);
        request[at].name = names[at];
        request[at].value = values[at];
        request[at].value_len = text(strchr(pair, ':') + 1, values[at]);
    }
    int32_t priority, again;
    CHECK_EQ(tidegate_classify(gates, request, (size_t)count, &priority, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK_EQ(priority, number("priority"));
    CHECK_EQ(tidegate_classify(gates, request, (size_t)count, &again, NULL, 0), TIDEGATE_ADMITTED);
    CHECK_EQ(again, priority);
    if (field("why") && text(field("why"), expected) && strcmp(why, expected) != 0)
        wrong(expected, why);
    if (field("rule")) {
        snprintf(rule, sizeof rule, ", by rule %d", (int)number("rule"));
        if (number("rule") ? strstr(why, rule) == NULL : strstr(why, "no rule matches") == NULL)
            wrong("the rule", why);
    }
}

static void explain(void)
{
    char expected[LINE], got[SAID];
    text(field("text"), expected);
    CHECK_EQ(tidegate_explain(gates, got, sizeof got, NULL), TIDEGATE_ADMITTED);
    if (strcmp(got, expected) != 0)
        wrong("the text", got);
}

/* Whether the call is about a file; then it is made. */
static int step_of_a_file(const char *op)
{
    static const struct {
        const char *op;
        void (*call)(void);
    } calls[] = {{"open", open_file},      {"reload", reload_file},  {"use", use_gate},
                 {"names", compare_names}, {"state", compare_state}, {"classify", classify},
                 {"explain", explain}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(op, calls[i].op) == 0) {
            calls[i].call();
            return 1;
        }
    return 0;
}

static void end_file(void)
{
    for (int at = 0; at < GATES && found[at]; at++)
        for (int i = 0; i < PERMITS; i++)
            if (permits[i])
                tidegate_release(found[at], permits[i], TIDEGATE_OUTCOME_IGNORE);
    tidegate_gates_free(gates);
    gates = NULL;
    memset(found, 0, sizeof found);
}
