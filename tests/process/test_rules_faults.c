// test-labels: notsan
/*
 * Loading, reloading, adding and removing rules with the n-th call to the system failing, for
 * every n: once, and from then on for ever. Memory that libyaml asks for is among them. The caller
 * gets an error with a text, WEIR_ENOMEM for want of memory, or rules that work in every detail;
 * after an error the old rules go on with all that they have counted; nothing leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir_rules.h>

#include "process/faults.h"
#include "rules/envoy/envoy.h"
#include "rules/live/call_ask.h"
#include "support/engine/process_fixture.h"

#define T0 (UINT64_C(1767225600) * WEIR_SECOND)

static const char rules_text[] =
    "attributes: {tier: ['header:X-Tier', 'file:tiers.csv by user'], user: request, plan: "
    "request}\n"
    "allow: [{ip: [10.0.0.0/8, 'file:allow.cidr']}]\n"
    "block: [{user: [mallory, 'file:names.txt']}, {ip: 192.0.2.66}]\n"
    "limits:\n"
    "- {name: login, when: {path: [/login, /v1/*], method: POST}, unless: {host: inside.example},"
    " key: [user|ip], rate: 5/min, max_keys: 64}\n"
    "- {name: tiered, when: {path: /search/**}, key: [user], rate: 2/min, max_keys: 64,"
    " tiers: {default: free, free: {}, pro: {rate: 4/min}},"
    " overrides: {by: user, file: overrides.csv}}\n"
    "- {name: plans, when: {plan: [a, b, c]}, key: [user], rate: 3/min, max_keys: 64}\n";

static const struct {
    const char *name;
    const char *content;
} files[] = {
    {"allow.cidr", "10.0.0.0/8\n198.51.100.0/24\n"},
    {"names.txt", "eve\n"},
    {"tiers.csv", "user,tier\npaul,pro\n"},
    {"overrides.csv", "user,rate\nolga,7/min\n"},
    {"bad.csv", "user,rate\nolga,7\n"},
};

/* Time is the test's. */
static struct weir_rules_options options(void)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    o.flags = WEIR_EXPLICIT_TIME;
    return o;
}

/* ---- asking ---- */

struct pair {
    const char *name;
    const char *value;
};

/* The verdict and who bound, of one question at T0. */
static struct weir_rules_answer ask(struct weir_rules *rules, const struct pair *pairs)
{
    struct weir_rules_attribute with[8];
    struct weir_rules_question q = {.attributes = with};
    struct weir_rules_answer a;
    struct weir_error error;
    for (; pairs->name != NULL; pairs++) {
        with[q.attributes_count++] = (struct weir_rules_attribute){
            pairs->name, strlen(pairs->name), pairs->value, strlen(pairs->value)};
    }
    REQUIRE(weir_rules_ask_at(rules, &q, T0, &a, &error) == 0);
    return a;
}

#define ASK(rules, ...) ask(rules, (const struct pair[]){__VA_ARGS__, {NULL, NULL}})

/* How many a user gets of 20. */
#define GETS(rules, ...) gets_of(rules, (const struct pair[]){__VA_ARGS__, {NULL, NULL}})

static unsigned gets_of(struct weir_rules *rules, const struct pair *pairs)
{
    unsigned n = 0;
    for (int i = 0; i < 20; i++) {
        n += ask(rules, pairs).answer.verdict == WEIR_ALLOW;
    }
    return n;
}

/* Every list, condition, tier and row that the text has. The user is new each time. */
static void require_all(struct weir_rules *rules, unsigned trial)
{
    char user[32];
    (void)snprintf(user, sizeof user, "user-%u", trial);
    const struct pair who = {"user", user};
    REQUIRE(GETS(rules, who, {"path", "/login"}, {"method", "post"}) == 5);
    REQUIRE(GETS(rules, who, {"path", "/v1/x"}, {"method", "POST"}) == 0); /* the same limit */
    REQUIRE(GETS(rules, who, {"path", "/login"}, {"method", "GET"}) == 20);
    REQUIRE(GETS(rules, who, {"path", "/x"}, {"method", "POST"}) == 20);
    REQUIRE(GETS(rules, who, {"path", "/login"}, {"method", "POST"}, {"host", "inside.example"}) ==
            20);
    REQUIRE(GETS(rules, who, {"path", "/search/x"}) == 2);
    REQUIRE(GETS(rules, who, {"path", "/search"}, {"header:X-Tier", "pro"}) == 4);
    REQUIRE(GETS(rules, who, {"plan", "c"}) == 3);
    REQUIRE(GETS(rules, who, {"plan", "none"}) == 20);
    static const char *const blocked[] = {"mallory", "eve"};
    for (size_t i = 0; i < 2; i++) {
        REQUIRE(ASK(rules, {"user", blocked[i]}).reason == WEIR_REASON_BLOCK_LIST);
    }
    REQUIRE(ASK(rules, {"ip", "192.0.2.66"}).reason == WEIR_REASON_BLOCK_LIST);
    REQUIRE(ASK(rules, {"ip", "10.1.2.3"}).reason == WEIR_REASON_ALLOW_LIST);
    REQUIRE(ASK(rules, {"ip", "198.51.100.9"}).reason == WEIR_REASON_ALLOW_LIST);
    REQUIRE(ASK(rules, {"ip", "203.0.113.1"}).reason == WEIR_REASON_UNMATCHED);
    struct weir_rules_answer a = ASK(rules, {"path", "/search"}, {"user", "olga"});
    REQUIRE(a.answer.quota == 7 && strcmp(a.limit, "tiered") == 0);
    a = ASK(rules, {"path", "/search"}, {"user", "paul"});
    REQUIRE(a.answer.quota == 4 && strcmp(a.tier, "pro") == 0);
}

/* ---- failing ---- */

struct scene {
    const char *dir;
    const char *name; /* of the rules, in dir */
    unsigned calls;   /* that were made to fail */
};

static bool is_memory(const char *call)
{
    static const char *const calls[] = {
        "malloc",  "calloc",         "realloc",     "aligned_alloc", "strdup",     "mmap",
        "scandir", "open_memstream", "yaml_malloc", "yaml_realloc",  "yaml_strdup"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(call, calls[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void require_same(struct holdings a, struct holdings b)
{
    if (a.allocations != b.allocations) {
        (void)fprintf(stderr, "%s failed: %ld pieces of memory kept\n", faults_name(),
                      b.allocations - a.allocations);
    }
    REQUIRE(a.allocations == b.allocations);
    REQUIRE(a.descriptors == b.descriptors);
    REQUIRE(a.mappings == b.mappings);
}

/* For want of memory, or because a file could not be read: never without a word. */
static void require_told(int e, const struct weir_error *error)
{
    if (is_memory(faults_name()) ? e != WEIR_ENOMEM : e >= 0) {
        (void)fprintf(stderr, "%s failed: %d %s\n", faults_name(), e, error->text);
    }
    REQUIRE(is_memory(faults_name()) ? e == WEIR_ENOMEM : e < 0);
    REQUIRE(error->code == e && error->text[0] != 0);
}

/* What a trial does with the n-th call failing; returns how many did. */
typedef unsigned (*trial_fn)(struct scene *scene, unsigned n, bool for_ever);

static void fail_each_call(struct scene *scene, trial_fn trial)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (unsigned n = 1; trial(scene, n, for_ever != 0) > 0; n++) {
            scene->calls++;
        }
    }
}

static struct weir_rules *open_good(const struct scene *scene)
{
    struct weir_rules_options o = options();
    struct weir_rules *rules;
    struct weir_error error = {0, ""};
    if (weir_rules_open_text(&rules, scene->name, rules_text, strlen(rules_text), &o, &error) !=
        0) {
        (void)fprintf(stderr, "%s\n", error.text);
        REQUIRE(false);
    }
    return rules;
}

static unsigned open_text(struct scene *scene, unsigned n, bool for_ever)
{
    struct weir_error error = {0, ""};
    struct weir_rules_options o = options();
    struct weir_rules *rules = (struct weir_rules *)(uintptr_t)1;
    struct holdings before = faults_holdings();
    faults_arm(n, for_ever);
    int e = weir_rules_open_text(&rules, scene->name, rules_text, strlen(rules_text), &o, &error);
    unsigned failed = faults_disarm();
    if (e != 0) {
        REQUIRE(failed > 0 && rules == NULL);
        require_told(e, &error);
    } else {
        require_all(rules, n);
        weir_rules_close(rules);
    }
    require_same(before, faults_holdings());
    return failed;
}

static unsigned open_path(struct scene *scene, unsigned n, bool for_ever)
{
    struct weir_error error = {0, ""};
    struct weir_rules_options o = options();
    struct weir_rules *rules = (struct weir_rules *)(uintptr_t)1;
    struct holdings before = faults_holdings();
    faults_arm(n, for_ever);
    int e = weir_rules_open(&rules, scene->dir, &o, &error);
    unsigned failed = faults_disarm();
    if (e != 0) {
        REQUIRE(failed > 0 && rules == NULL);
        require_told(e, &error);
    } else {
        require_all(rules, n);
        weir_rules_close(rules);
    }
    require_same(before, faults_holdings());
    return failed;
}

/* ---- rules that are in use ---- */

/* Two of five taken by somebody; whether the rules are still the old ones, with those two. */
static void spend_two(struct weir_rules *rules)
{
    for (int i = 0; i < 2; i++) {
        REQUIRE(ASK(rules, {"user", "spender"}, {"path", "/login"}, {"method", "POST"})
                    .answer.verdict == WEIR_ALLOW);
    }
}

static void require_old(struct weir_rules *rules, uint64_t generation)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    REQUIRE(weir_rules_stats_read(rules, &stats) == 0 && stats.generation == generation);
    REQUIRE(GETS(rules, {"user", "spender"}, {"path", "/login"}, {"method", "POST"}) == 3);
    require_all(rules, 1);
}

typedef int (*change_fn)(struct weir_rules *rules, const struct scene *scene,
                         struct weir_error *error);
typedef void (*check_fn)(struct weir_rules *rules);

static unsigned change_rules(const struct scene *scene, unsigned n, bool for_ever, change_fn fn,
                             check_fn check)
{
    struct weir_error error = {0, ""};
    struct holdings before = faults_holdings();
    struct weir_rules *rules = open_good(scene);
    spend_two(rules);
    faults_arm(n, for_ever);
    int e = fn(rules, scene, &error);
    unsigned failed = faults_disarm();
    if (e != 0) {
        REQUIRE(failed > 0);
        require_told(e, &error);
        require_old(rules, 1);
        REQUIRE(fn(rules, scene, &error) == 0); /* and the next try succeeds */
    }
    check(rules);
    weir_rules_close(rules);
    require_same(before, faults_holdings());
    return failed;
}

static const char reloaded_text[] =
    "limits:\n"
    "- {name: login, when: {path: [/login, /v1/*], method: POST}, key: [user|ip], rate: 6/min,"
    " max_keys: 64}\n"
    "- {name: other, when: {user: 'file:names.txt'}, key: [], rate: 1/s}\n";

static int reload(struct weir_rules *rules, const struct scene *scene, struct weir_error *error)
{
    return weir_rules_reload_text(rules, scene->name, reloaded_text, strlen(reloaded_text), error);
}

static int reload_file(struct weir_rules *rules, const struct scene *scene,
                       struct weir_error *error)
{
    return weir_rules_reload(rules, scene->name, error);
}

static void check_reloaded(struct weir_rules *rules)
{
    const struct pair method = {"method", "POST"};
    REQUIRE(GETS(rules, {"user", "new"}, {"path", "/v1/y"}, method) == 6);
    REQUIRE(ASK(rules, {"user", "spender"}, {"path", "/login"}, method).answer.quota == 6);
    unsigned more = GETS(rules, {"user", "spender"}, {"path", "/login"}, method);
    REQUIRE(more <= 3); /* of six, two spent before and one just now */
    REQUIRE(GETS(rules, {"user", "eve"}) == 1);
    REQUIRE(GETS(rules, {"user", "user-1"}, {"plan", "c"}) == 20);
}

static int put(struct weir_rules *rules, const struct scene *scene, struct weir_error *error)
{
    static const char limit[] =
        "{name: added, when: {plan: [d, e, eve, 'g*']}, unless: {user: [x, y, z]}, key: "
        "[user, plan], rate: 2/min, max_keys: 64, tiers: {by: user, olga: {rate: 7/min}}}";
    (void)scene;
    return weir_rules_put(rules, limit, strlen(limit), error);
}

static void check_put(struct weir_rules *rules)
{
    static const char *const plans[] = {"d", "e", "eve", "gold"};
    for (size_t i = 0; i < 4; i++) {
        const struct pair plan = {"plan", plans[i]};
        REQUIRE(GETS(rules, {"user", "ann"}, plan) == 2);
        REQUIRE(GETS(rules, {"user", "olga"}, plan) == 7);
        REQUIRE(GETS(rules, {"user", "z"}, plan) == 20);
    }
    REQUIRE(GETS(rules, {"user", "ann"}, {"plan", "h"}) == 20);
    require_all(rules, 2);
}

static int take_out(struct weir_rules *rules, const struct scene *scene, struct weir_error *error)
{
    (void)scene;
    return weir_rules_remove(rules, "plans", error);
}

static void check_removed(struct weir_rules *rules)
{
    REQUIRE(GETS(rules, {"user", "ann"}, {"plan", "c"}) == 20);
    REQUIRE(GETS(rules, {"user", "ann"}, {"path", "/login"}, {"method", "POST"}) == 5);
}

static unsigned reload_trial(struct scene *scene, unsigned n, bool for_ever)
{
    return change_rules(scene, n, for_ever, reload, check_reloaded);
}

static unsigned reload_file_trial(struct scene *scene, unsigned n, bool for_ever)
{
    return change_rules(scene, n, for_ever, reload_file, check_reloaded);
}

static unsigned put_trial(struct scene *scene, unsigned n, bool for_ever)
{
    return change_rules(scene, n, for_ever, put, check_put);
}

static unsigned remove_trial(struct scene *scene, unsigned n, bool for_ever)
{
    return change_rules(scene, n, for_ever, take_out, check_removed);
}

/* Rules with errors: all of them, or out of memory; never rules. */
static unsigned bad_trial(struct scene *scene, unsigned n, bool for_ever)
{
    static const char text[] = "limits:\n- {name: a, key: [ip], rate: x, brust: 5}\n"
                               "- {name: b, key: [user], rate: 5/min, overrides: {by: user, file: "
                               "bad.csv}}\nallow: [{ip: [x, 'file:allow.cidr']}]\nfoo: 1\n";
    struct weir_error error = {0, ""};
    struct weir_rules_options o = options();
    struct weir_rules *rules = (struct weir_rules *)(uintptr_t)1;
    struct holdings before = faults_holdings();
    faults_arm(n, for_ever);
    int e = weir_rules_open_text(&rules, scene->name, text, strlen(text), &o, &error);
    unsigned failed = faults_disarm();
    REQUIRE(rules == NULL && (e == WEIR_ERULES || (failed > 0 && e == WEIR_ENOMEM)));
    REQUIRE(error.code == e && error.text[0] != 0);
    require_same(before, faults_holdings());
    return failed;
}

/* ---- files of Envoy's server, and calls of its service ---- */

#define EACH_ALONE 16 /* block_bytes of an arena: each piece of memory is asked for by itself */

static const char envoy_text[] =
    "domain: edge\n"
    "descriptors:\n"
    "- {key: path, value: /login, descriptors: [\n"
    "    {key: ip, value: '10.*', share_threshold: true, rate_limit: {unlimited: true}},\n"
    "    {key: ip, rate_limit: {unit: minute, requests_per_unit: 5, weir: {max_keys: 64}}}]}\n"
    "- {key: 'a b', rate_limit: {name: x, unit: week, requests_per_unit: 3, replaces: [{name: y}],"
    " weir: {max_keys: 64}}}\n"
    "- {key: s, shadow_mode: true, rate_limit: {name: y, unit: day, requests_per_unit: 1,"
    " weir: {max_keys: 64}}}\n";

static struct weir_rules *open_envoy(int *e, struct weir_error *error)
{
    struct weir_rules_options o = options();
    struct weir_rules *rules;
    *e = weir_rules_open_text(&rules, "envoy", envoy_text, strlen(envoy_text), &o, error);
    return rules;
}

static unsigned envoy_trial(struct scene *scene, unsigned n, bool for_ever)
{
    struct weir_error error = {0, ""};
    struct holdings before = faults_holdings();
    int e;
    (void)scene;
    faults_arm(n, for_ever);
    struct weir_rules *rules = open_envoy(&e, &error);
    unsigned failed = faults_disarm();
    if (e != 0) {
        REQUIRE(failed > 0 && rules == NULL);
        require_told(e, &error);
    } else {
        const struct pair domain = {"domain", "edge"};
        const struct pair keys = {"descriptor", "path/ip"};
        const struct pair path = {"value_1", "/login"};
        REQUIRE(GETS(rules, domain, keys, path, {"value_2", "192.0.2.1"}) == 5);
        REQUIRE(GETS(rules, domain, keys, path, {"value_2", "10.0.2.1"}) == 20);
        REQUIRE(GETS(rules, domain, {"descriptor", "a b"}, {"value_1", "v"}) == 3);
        weir_rules_close(rules);
    }
    require_same(before, faults_holdings());
    return failed;
}

static unsigned convert_trial(struct scene *scene, unsigned n, bool for_ever)
{
    struct problems problems = {0};
    struct arena read = ARENA_INIT;
    struct arena converted = {.block_bytes = EACH_ALONE};
    struct weir_text domain;
    struct holdings before = faults_holdings();
    (void)scene;
    const struct node *root = document_read(&read, "envoy", text_of(envoy_text), &problems);
    REQUIRE(root != NULL && envoy_is_file(root));
    faults_arm(n, for_ever);
    struct node *limits = envoy_convert(&converted, root, CONFIG_LIMITS_MAX, &domain, &problems);
    unsigned failed = faults_disarm();
    REQUIRE((failed > 0) == converted.failed && (limits != NULL || failed > 0));
    REQUIRE(problems.errors == 0);
    arena_finish(&read);
    arena_finish(&converted);
    problems_finish(&problems);
    require_same(before, faults_holdings());
    return failed;
}

/* A call fails for want of memory and charges nothing, or is answered. */
static unsigned call_trial(struct scene *scene, unsigned n, bool for_ever)
{
    static const struct weir_rules_attribute first[] = {WEIR_RULES_ATTRIBUTE("domain", "edge"),
                                                        WEIR_RULES_ATTRIBUTE("descriptor", "a b"),
                                                        WEIR_RULES_ATTRIBUTE("value_1", "v")};
    static const struct weir_rules_attribute second[] = {WEIR_RULES_ATTRIBUTE("domain", "edge"),
                                                         WEIR_RULES_ATTRIBUTE("descriptor", "s"),
                                                         WEIR_RULES_ATTRIBUTE("value_1", "v")};
    struct call_question questions[] = {{.attributes = first, .attributes_count = 3, .hits = 2},
                                        {.attributes = second, .attributes_count = 3, .hits = 1}};
    struct arena memory = {.block_bytes = EACH_ALONE};
    struct weir_error error = {0, ""};
    struct holdings before = faults_holdings();
    int e;
    (void)scene;
    struct weir_rules *rules = open_envoy(&e, &error);
    REQUIRE(e == 0);
    struct call call = {
        .rules = rules, .memory = &memory, .now_ns = T0, .questions = questions, .count = 2};
    faults_arm(n, for_ever);
    e = call_ask(&call, &error);
    unsigned failed = faults_disarm();
    REQUIRE(e == (failed > 0 ? WEIR_ENOMEM : 0) && (e == 0 || error.text[0] != 0));
    REQUIRE(GETS(rules, {"domain", "edge"}, {"descriptor", "a b"}, {"value_1", "v"}) ==
            (e == 0 ? 1 : 3));
    arena_finish(&memory);
    weir_rules_close(rules);
    require_same(before, faults_holdings());
    return failed;
}

/* ---- tests ---- */

static struct scene make_scene(void **state)
{
    struct scene scene = {.dir = *state, .name = process_path(*state, "weir.yaml")};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        process_write(process_path(scene.dir, files[i].name), files[i].content,
                      strlen(files[i].content));
    }
    scene.name = process_path(scene.dir, "weir.yaml");
    weir_rules_close(open_good(&scene)); /* what is done once per process is done */
    return scene;
}

static void opening_a_text_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    fail_each_call(&scene, open_text);
    assert_in_range(scene.calls, 100, 5000);
}

static void opening_a_folder_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    process_write(scene.name, rules_text, strlen(rules_text));
    fail_each_call(&scene, open_path);
    assert_in_range(scene.calls, 100, 5000);
}

static void a_reload_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    fail_each_call(&scene, reload_trial);
    assert_in_range(scene.calls, 50, 5000);
}

static void a_reload_from_a_file_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    process_write(scene.name, reloaded_text, strlen(reloaded_text));
    fail_each_call(&scene, reload_file_trial);
    assert_in_range(scene.calls, 50, 5000);
}

static void adding_a_limit_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    fail_each_call(&scene, put_trial);
    assert_in_range(scene.calls, 50, 5000);
}

static void removing_a_limit_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    fail_each_call(&scene, remove_trial);
    assert_in_range(scene.calls, 10, 5000);
}

static void bad_rules_survive_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    fail_each_call(&scene, bad_trial);
    assert_in_range(scene.calls, 50, 5000);
}

static void a_file_of_envoys_server_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    fail_each_call(&scene, envoy_trial);
    assert_in_range(scene.calls, 50, 5000);
    scene.calls = 0;
    fail_each_call(&scene, convert_trial);
    assert_in_range(scene.calls, 100, 5000);
}

static void a_call_of_several_descriptors_survives_each_failing_call(void **state)
{
    struct scene scene = make_scene(state);
    fail_each_call(&scene, call_trial);
    assert_in_range(scene.calls, 10, 500);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, process_dir_make, process_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opening_a_text_survives_each_failing_call),
        TEST(opening_a_folder_survives_each_failing_call),
        TEST(a_reload_survives_each_failing_call),
        TEST(a_reload_from_a_file_survives_each_failing_call),
        TEST(adding_a_limit_survives_each_failing_call),
        TEST(removing_a_limit_survives_each_failing_call),
        TEST(bad_rules_survive_each_failing_call),
        TEST(a_file_of_envoys_server_survives_each_failing_call),
        TEST(a_call_of_several_descriptors_survives_each_failing_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
