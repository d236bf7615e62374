#define _POSIX_C_SOURCE 200809L

/* Gates from a file: whose they are, what a reload does to them, and what every call does with NULL. */

#include "check.h"

#include <pthread.h>
#include <unistd.h>

static const char two[] = "[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1\n";
static const char one[] = "[gates.other]\nlimit = 1\n";

static tidegate_gates *open_text(const char *text)
{
    tidegate_gates *gates;
    char why[1024];
    if (tidegate_open_text(text, strlen(text), "f.toml", &gates, why, sizeof why) != TIDEGATE_ADMITTED) {
        printf("no gates: %s\n", why);
        exit(1);
    }
    return gates;
}

static const tidegate_gate *find(const tidegate_gates *gates, const char *name)
{
    const tidegate_gate *gate;
    tidegate_status status = tidegate_find(gates, name, strlen(name), &gate);
    CHECK_EQ(status, gate ? TIDEGATE_ADMITTED : TIDEGATE_ERR_ARGUMENT);
    return gate;
}

static tidegate_status reload(const tidegate_gates *gates, const char *text)
{
    return tidegate_reload_text(gates, text, strlen(text), NULL, 0);
}

static void each_name_has_one_gate(void)
{
    tidegate_gates *gates = open_text(two);
    const tidegate_gate *db = find(gates, "db"), *gate;
    CHECK(db != NULL && find(gates, "db") == db && find(gates, "none") == NULL);
    CHECK(strcmp(tidegate_gate_name(db), "db") == 0);
    CHECK_EQ(tidegate_limit(db), 5);
    CHECK_EQ(tidegate_gate_at(gates, 0, &gate), TIDEGATE_ADMITTED);
    CHECK(gate == db);
    CHECK_EQ(tidegate_gate_at(gates, 1, &gate), TIDEGATE_ADMITTED);
    CHECK(gate == find(gates, "other"));
    CHECK_EQ(tidegate_gate_at(gates, 2, &gate), TIDEGATE_ERR_ARGUMENT);
    CHECK(gate == NULL);
    CHECK_EQ(tidegate_find(gates, "db", (size_t)1 << 40, &gate), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_find(gates, "d\xff", 2, &gate), TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(tidegate_find(gates, "db\0", 3, &gate), TIDEGATE_ERR_ARGUMENT);
    tidegate_gates_free(gates);
}

static void a_gate_of_a_file_is_not_the_callers_to_free(void)
{
    tidegate_gates *gates = open_text(two);
    const tidegate_gate *db = find(gates, "db");
    tidegate_gate_free((tidegate_gate *)(uintptr_t)db);
    CHECK(!stats_of(db).closed);
    CHECK(find(gates, "db") == db);
    tidegate_gates_free(gates);
}

static void permits_outlive_the_gates(void)
{
    tidegate_gates *gates = open_text(two);
    const tidegate_gate *db = find(gates, "db"), *other = find(gates, "other");
    uint64_t a, b, none;
    CHECK_EQ(tidegate_try_admit(db, TIDEGATE_PRIORITY_CRITICAL, 2, &a), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_try_admit(other, TIDEGATE_PRIORITY_CRITICAL, 1, &b), TIDEGATE_ADMITTED);
    tidegate_gates_free(gates);
    CHECK_EQ(tidegate_try_admit(db, TIDEGATE_PRIORITY_CRITICAL, 1, &none), TIDEGATE_SHED_CLOSED);
    CHECK_EQ(tidegate_release(db, a, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_release(other, b, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);
}

static void a_reload_reports(void)
{
    tidegate_gates *gates = open_text(two);
    const tidegate_gate *db = find(gates, "db");
    char report[512], little[12];
    uint64_t permit;
    CHECK_EQ(tidegate_try_admit(db, TIDEGATE_PRIORITY_CRITICAL, 1, &permit), TIDEGATE_ADMITTED);
    static const char more[] = "[gates.db]\nlimit = 6\nenforce = false\n";
    CHECK_EQ(tidegate_reload_text(gates, more, sizeof more - 1, report, sizeof report), TIDEGATE_ADMITTED);
    CHECK(strcmp(report,
                 "gate db: limit 5 -> 6\ngate db: enforce true -> false\ngate other: removed, and closed") ==
          0);
    CHECK_EQ(tidegate_reload_text(gates, more, sizeof more - 1, report, sizeof report), TIDEGATE_ADMITTED);
    CHECK(strcmp(report, "") == 0);
    CHECK_EQ(tidegate_reload_text(gates, one, sizeof one - 1, little, sizeof little), TIDEGATE_ADMITTED);
    CHECK(strcmp(little, "gate other:") == 0);
    CHECK(find(gates, "db") == NULL); /* but the pointer is good, and what it held is counted */
    CHECK_EQ(tidegate_in_flight(db), 1);
    CHECK(stats_of(db).closed);
    CHECK_EQ(reload(gates, two), TIDEGATE_ADMITTED);
    CHECK(find(gates, "db") == db && !stats_of(db).closed);
    CHECK_EQ(tidegate_in_flight(db), 1);
    CHECK_EQ(tidegate_release(db, permit, TIDEGATE_OUTCOME_SUCCESS), TIDEGATE_ADMITTED);

    static const char bad[] = "[gates.db]\nlimit = -1\nspeed = 3\n";
    CHECK_EQ(tidegate_reload_text(gates, bad, sizeof bad - 1, report, sizeof report), TIDEGATE_ERR_CONFIG);
    CHECK(strncmp(report,
                  "f.toml, line 2: gates.db.limit: limit must be a whole number from 0 to 2147483647, got "
                  "-1\nf.toml, line 3: unknown key",
                  80) == 0);
    CHECK_EQ(tidegate_limit(db), 5);
    CHECK_EQ(tidegate_reload(gates, report, sizeof report), TIDEGATE_ERR_CONFIG);
    CHECK(strcmp(report, "f.toml: was given as text: there is no file to read again") == 0);
    tidegate_gates_free(gates);
}

static void a_file_is_read_again(void)
{
    char path[] = "/tmp/tidegate-XXXXXX", report[512];
    int file = mkstemp(path);
    tidegate_gates *gates;
    CHECK(write(file, two, sizeof two - 1) == (ssize_t)(sizeof two - 1));
    CHECK_EQ(tidegate_open(path, &gates, report, sizeof report), TIDEGATE_ADMITTED);
    CHECK(strcmp(report, "") == 0);
    CHECK_EQ(tidegate_limit(find(gates, "db")), 5);
    CHECK(write(file, "[gates.new]\nlimit = 2\n", 22) == 22);
    CHECK_EQ(tidegate_reload(gates, report, sizeof report), TIDEGATE_ADMITTED);
    CHECK(strcmp(report, "gate new: added") == 0);
    close(file);
    unlink(path);
    CHECK_EQ(tidegate_reload(gates, report, sizeof report), TIDEGATE_ERR_CONFIG);
    CHECK(strncmp(report, path, strlen(path)) == 0 && strstr(report, ": cannot be read: ") != NULL);
    CHECK_EQ(tidegate_limit(find(gates, "new")), 2);
    tidegate_gates_free(gates);
    CHECK_EQ(tidegate_open("/", &gates, report, sizeof report), TIDEGATE_ERR_CONFIG);
    CHECK(gates == NULL && strcmp(report, "/: is a directory, not a file") == 0);
}

static void a_request_is_classified(void)
{
    static const char rules[] = "[classifier]\n[[classifier.rules]]\n"
                                "match = { path = '/r*', plan = 'free' }\npriority = 'sheddable'\n";
    tidegate_gates *gates = open_text(rules);
    tidegate_attribute request[3] = {
        {"path", "/reports and more", 8}, {"plan", "free", 4}, {"path", "/other", 6}};
    int32_t priority;
    char why[128];
    CHECK_EQ(tidegate_classify(gates, request, 3, &priority, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK_EQ(priority, TIDEGATE_PRIORITY_SHEDDABLE);
    CHECK(strcmp(why, "sheddable, by rule 1: path = \"/r*\", plan = \"free\"") == 0);
    request[0].value = "/r\xff\0";
    request[0].value_len = 4; /* what a client sent need not be UTF-8 */
    CHECK_EQ(tidegate_classify(gates, request, 3, &priority, NULL, 0), TIDEGATE_ADMITTED);
    CHECK_EQ(priority, TIDEGATE_PRIORITY_SHEDDABLE);
    request[1].value = NULL;
    CHECK_EQ(tidegate_classify(gates, request, 3, &priority, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK_EQ(priority, TIDEGATE_PRIORITY_DEFAULT);
    CHECK(strcmp(why, "undecided: no rule matches, and there is no default") == 0);
    CHECK_EQ(tidegate_classify(gates, NULL, 0, &priority, NULL, 0), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_classify(gates, NULL, 1, &priority, why, sizeof why), TIDEGATE_ERR_NULL);
    request[1].name = NULL;
    CHECK_EQ(tidegate_classify(gates, request, 3, &priority, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_classify(gates, request, (size_t)-1, &priority, why, sizeof why),
             TIDEGATE_ERR_ARGUMENT);
    CHECK_EQ(reload(gates, two), TIDEGATE_ADMITTED);
    CHECK_EQ(tidegate_classify(gates, request, 1, &priority, why, sizeof why), TIDEGATE_ADMITTED);
    CHECK_EQ(priority, TIDEGATE_PRIORITY_DEFAULT);
    CHECK(strcmp(why, "undecided: there is no classifier") == 0);
    tidegate_gates_free(gates);
}

static void a_file_is_explained(void)
{
    static const char said[] = "gate other: at most 1 at once\n";
    tidegate_gates *gates = open_text(one);
    char text[1024], little[8];
    size_t length = 0, again = 0;
    CHECK_EQ(tidegate_explain(gates, text, sizeof text, &length), TIDEGATE_ADMITTED);
    CHECK(strncmp(text, said, sizeof said - 1) == 0);
    CHECK_EQ(length, strlen(text));
    CHECK_EQ(tidegate_explain(gates, little, sizeof little, &again), TIDEGATE_ADMITTED);
    CHECK(strcmp(little, "gate ot") == 0 && again == length);
    CHECK_EQ(tidegate_explain(gates, NULL, 0, NULL), TIDEGATE_ADMITTED);
    tidegate_gates_free(gates);
}

static void null_is_an_error(void)
{
    tidegate_gates *gates = open_text(two), *made = gates;
    const tidegate_gate *gate = find(gates, "db");
    int32_t priority;
    char why[128];
    CHECK_EQ(tidegate_open(NULL, &made, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK(made == NULL && strcmp(why, "path is NULL") == 0);
    CHECK_EQ(tidegate_open("x", NULL, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK(strcmp(why, "out is NULL") == 0);
    CHECK_EQ(tidegate_open_text(NULL, 3, NULL, &made, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_open_text(two, sizeof two - 1, NULL, NULL, NULL, 0), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_open_text("\xff", 1, NULL, &made, why, sizeof why), TIDEGATE_ERR_CONFIG);
    CHECK(strcmp(why, "<text>, line 1: is not UTF-8, as TOML has to be") == 0);
    CHECK_EQ(tidegate_find(NULL, "db", 2, &gate), TIDEGATE_ERR_NULL);
    CHECK(gate == NULL);
    CHECK_EQ(tidegate_find(gates, NULL, 2, &gate), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_find(gates, "db", 2, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_gate_at(NULL, 0, &gate), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_gate_at(gates, 0, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_reload(NULL, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_reload_text(NULL, two, 3, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_reload_text(gates, NULL, 3, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_explain(NULL, why, sizeof why, NULL), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_classify(NULL, NULL, 0, &priority, why, sizeof why), TIDEGATE_ERR_NULL);
    CHECK_EQ(tidegate_classify(gates, NULL, 0, NULL, why, sizeof why), TIDEGATE_ERR_NULL);
    tidegate_gates_free(NULL);
    tidegate_gates_free(gates);
}

static tidegate_gates *shared;
static int stop;

static void *come_and_go(void *unused)
{
    (void)unused;
    uint64_t permit;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const tidegate_gate *db;
        if (tidegate_find(shared, "db", 2, &db) != TIDEGATE_ADMITTED)
            continue; /* the file has it not at the moment */
        if (tidegate_try_admit(db, TIDEGATE_PRIORITY_CRITICAL, 1, &permit) == TIDEGATE_ADMITTED)
            tidegate_release(db, permit, TIDEGATE_OUTCOME_SUCCESS);
    }
    return NULL;
}

static void *reload_often(void *unused)
{
    (void)unused;
    for (long i = scaled(1000); i > 0; i--)
        reload(shared, i % 3 == 0 ? one : i % 3 == 1 ? "[gates.db]\nlimit = 2\n" : two);
    return NULL;
}

static void reloads_under_load_lose_nothing(void)
{
    pthread_t threads[4];
    shared = open_text(two);
    stop = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? come_and_go : reload_often, NULL);
    for (int i = 3; i >= 0; i--) {
        __atomic_store_n(&stop, i < 2, __ATOMIC_RELAXED);
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(reload(shared, two), TIDEGATE_ADMITTED);
    const tidegate_gate *db = find(shared, "db");
    CHECK_EQ(tidegate_in_flight(db), 0);
    CHECK(stats_of(db).high_water <= 5);
    CHECK(!stats_of(db).closed);
    tidegate_gates_free(shared);
}

int main(void)
{
    RUN(each_name_has_one_gate);
    RUN(a_gate_of_a_file_is_not_the_callers_to_free);
    RUN(permits_outlive_the_gates);
    RUN(a_reload_reports);
    RUN(a_file_is_read_again);
    RUN(a_request_is_classified);
    RUN(a_file_is_explained);
    RUN(null_is_an_error);
    RUN(reloads_under_load_lose_nothing);
    return failed_tests != 0;
}
