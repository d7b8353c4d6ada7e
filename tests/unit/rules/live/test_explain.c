/*
 * Explanations of requests. The limits that are said to apply are those that asking charges,
 * whatever the rules and the request are; the others have a reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/maths.h"
#include "rules/live/explain.h"

#define LIMITS_MAX 24
#define TOLD_MAX 40 /* more than apply */
#define NOW (1000 * WEIR_SECOND)

/* ---- what is told ---- */

struct told {
    char list[8];
    char attributes[1024];
    size_t limits;
    struct {
        char name[WEIR_RULES_NAME];
        char why[640]; /* "": it applies */
        char key[128];
        char rate[32];
        char tier[32];
        struct explained_limit limit;
    } at[TOLD_MAX];
};

static void note_attribute(void *arg, struct weir_text name, struct weir_text value)
{
    struct told *t = arg;
    size_t n = strlen(t->attributes);
    (void)snprintf(t->attributes + n, sizeof t->attributes - n, "%.*s=%.*s ", TEXT_ARGS(name),
                   TEXT_ARGS(value));
}

static void note_list(void *arg, const char *name, unsigned line)
{
    struct told *t = arg;
    assert_true(line > 0);
    (void)snprintf(t->list, sizeof t->list, "%s", name);
}

static void note_limit(void *arg, const struct explained_limit *l)
{
    struct told *t = arg;
    assert_true(t->limits < TOLD_MAX);
    (void)snprintf(t->at[t->limits].name, WEIR_RULES_NAME, "%.*s", TEXT_ARGS(l->name));
    (void)snprintf(t->at[t->limits].why, sizeof t->at[0].why, "%s", l->why != NULL ? l->why : "");
    assert_true(l->why == NULL || l->why[0] != 0);
    if (l->why == NULL) {
        (void)snprintf(t->at[t->limits].key, sizeof t->at[0].key, "%s", l->key);
        (void)snprintf(t->at[t->limits].rate, sizeof t->at[0].rate, "%s", l->rate);
        (void)snprintf(t->at[t->limits].tier, sizeof t->at[0].tier, "%.*s", (int)l->tier.len,
                       l->tier.len > 0 ? l->tier.at : "");
    }
    t->at[t->limits++].limit = *l;
}

static const struct explain_told tell = {note_attribute, note_list, note_limit};
static struct weir_rules *rules;
static struct told told;

static void open_rules(const char *yaml)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    options.flags = WEIR_EXPLICIT_TIME;
    if (weir_rules_open_text(&rules, "rules", yaml, strlen(yaml), &options, &error) != 0) {
        fail_msg("%s\n%s", error.text, yaml);
    }
}

static int close_rules(void **state)
{
    weir_rules_close(rules);
    rules = NULL;
    return 0;
}

static int explain(const struct weir_rules_question *q, struct weir_error *error)
{
    memset(&told, 0, sizeof told);
    return rules_explain(rules, q, NOW, &tell, &told, error);
}

/* A request from words "path=/a user=x". */
static struct weir_rules_question question(const char *words)
{
    static struct weir_rules_attribute at[16];
    struct weir_rules_question q = {.attributes = at};
    struct weir_text rest = text_of(words);
    while (rest.len > 0) {
        struct weir_text value = text_cut(&rest, ' ');
        struct weir_text name = text_cut(&value, '=');
        at[q.attributes_count++] =
            (struct weir_rules_attribute){name.at, name.len, value.at, value.len};
    }
    return q;
}

static void explain_words(const char *words)
{
    struct weir_rules_question q = question(words);
    struct weir_error error = {0};
    if (explain(&q, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void assert_why(size_t limit, const char *why)
{
    assert_string_equal(told.at[limit].why, why);
}

/* ---- reasons ---- */

static void a_condition_that_does_not_hold_is_named(void **state)
{
    open_rules(
        "limits:\n"
        "  - {name: a, when: {path: '/search/**'}, key: [], rate: 5/s}\n"
        "  - {name: b, when: {method: [POST, PUT], path: '/**'}, key: [], rate: 5/s}\n"
        "  - {name: c, when: {ip: [10.0.0.0/8], user: [x, y, z, u, v]}, key: [], rate: 5/s}\n"
        "  - {name: d, when: {user: [ann], plan: pro}, key: [], rate: 5/s}\n");
    explain_words("path=/login method=get ip=192.0.2.1 user=ann");
    assert_why(0, "path is /login, expected /search/**");
    assert_why(1, "method is GET, expected POST or PUT");
    assert_why(2, "user is ann, expected x or y or z or 2 others");
    assert_why(3, "plan is missing, expected pro");
    explain_words("path=/search/%41 ip=192.0.2.1 user=x");
    assert_why(0, "");
    assert_why(1, "method is missing, expected POST or PUT");
    assert_why(2, "ip is 192.0.2.1, expected 10.0.0.0/8");
    assert_string_equal(told.attributes, "path=/search/A ip=192.0.2.1 user=x ");
}

static void replaced_limits_and_lists_of_unless_are_told(void **state)
{
    open_rules(
        "limits:\n"
        "  - {name: a, key: [], rate: 5/s, label: la}\n"
        "  - {name: b, when: {user: ann}, key: [], rate: 5/s, replaces: [la, c]}\n"
        "  - {name: c, key: [], rate: 5/s, unless: [{path: /x, method: GET}, {user: bob}]}\n");
    explain_words("user=ann");
    assert_why(0, "limit 'b' replaces it");
    assert_why(1, "");
    assert_why(2, "limit 'b' replaces it");
    explain_words("user=bob path=/x");
    assert_why(0, "");
    assert_why(2, "unless holds: user is bob");
    explain_words("user=eve path=/x method=GET");
    assert_why(2, "unless holds: path is /x and method is GET");
}

static void other_reasons_are_told(void **state)
{
    open_rules("limits:\n"
               "  - {name: a, unless: {path: /health, method: GET}, key: [], rate: 5/s}\n"
               "  - {name: b, group: g, when: {user: ann}, key: [], rate: 5/s}\n"
               "  - {name: c, group: g, key: [], rate: 5/s}\n"
               "  - {name: d, key: [user, ip|plan], rate: 5/s}\n");
    explain_words("path=/health method=GET user=ann");
    assert_why(0, "unless holds: path is /health and method is GET");
    assert_why(1, "");
    assert_why(2, "limit 'b' of the same group came first");
    assert_why(3, "its key needs ip|plan, which is missing (on_missing: skip)");
    explain_words("path=/health user=bob plan=x");
    assert_why(0, "");
    assert_why(2, "");
    assert_why(3, "");
    assert_string_equal(told.at[3].key, "bob|plan=x");
}

static void a_shadow_limit_too_many_is_told(void **state)
{
    char yaml[40 * 64] = "limits:\n";
    size_t len = strlen(yaml);
    for (unsigned i = 0; i < 33; i++) {
        len += (size_t)snprintf(yaml + len, sizeof yaml - len,
                                "  - {name: l%u, key: [], rate: 5/s, shadow: true}\n", i);
    }
    open_rules(yaml);
    explain_words("user=ann");
    assert_int_equal(told.limits, 33);
    assert_why(31, "");
    assert_why(32, "32 shadow limits before it apply, which is the most");
}

static void a_key_that_is_missing_may_deny_the_request(void **state)
{
    open_rules("limits:\n"
               "  - {name: a, key: [], rate: 5/s}\n"
               "  - {name: b, key: [user], rate: 5/s, on_missing: deny}\n");
    explain_words("path=/");
    assert_why(0, "limit 'b' denies the request, because its key is missing (on_missing: deny)");
    assert_why(1, "its key needs user, which is missing (on_missing: deny)");
}

static void a_list_covers_the_limits(void **state)
{
    open_rules("block: [{user: mallory}]\n"
               "allow:\n"
               "  - {user: [boss, mallory]}\n"
               "limits:\n"
               "  - {name: a, key: [], rate: 5/s}\n"
               "  - {name: b, when: {user: ann}, key: [], rate: 5/s}\n");
    explain_words("user=boss");
    assert_string_equal(told.list, "allow");
    assert_why(0, "the allow list decides before the limits: its entry in line 3 matches");
    assert_why(1, "user is boss, expected ann");
    explain_words("user=mallory");
    assert_string_equal(told.list, "block");
    explain_words("user=ann");
    assert_string_equal(told.list, "");
    assert_why(1, "");
}

static void values_of_clients_are_made_visible_and_cut(void **state)
{
    char words[600] = "user=";
    open_rules("limits: [{name: a, when: {user: x}, key: [], rate: 5/s}]\n");
    explain_words("user=it's\x1b[31m");
    assert_why(0, "user is it's\\x1b[31m, expected x");
    memset(words + 5, 'y', 500);
    explain_words(words);
    assert_true(strlen(told.at[0].why) < 128);
    assert_non_null(strstr(told.at[0].why, "yyy..., expected x"));
}

/* ---- numbers ---- */

static void numbers_are_those_of_a_peek_and_charge_nothing(void **state)
{
    struct weir_rules_question q;
    struct weir_rules_answer a;
    open_rules("limits:\n"
               "  - {name: a, key: [user], rate: 3/min, algorithm: fixed_window}\n"
               "  - {name: b, key: [user], rate: 3/min, shadow: true, tiers: {by: plan, default: "
               "free, free: {}, pro: {rate: 9/min}}}\n"
               "  - {name: c, key: [], rate: unlimited}\n");
    for (unsigned i = 0; i < 5; i++) {
        explain_words("user=ann plan=pro");
        assert_int_equal(told.at[0].limit.answer.remaining, 3);
    }
    assert_string_equal(told.at[0].rate, "3/min");
    assert_string_equal(told.at[1].rate, "9/min");
    assert_string_equal(told.at[1].tier, "pro");
    assert_true(told.at[1].limit.shadow);
    assert_true(told.at[2].limit.known);
    assert_true(told.at[2].limit.answer.quota == WEIR_UNLIMITED);
    q = question("user=ann plan=pro");
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(weir_rules_ask_at(rules, &q, NOW, &a, NULL), 0);
    }
    explain_words("user=ann plan=pro");
    assert_int_equal(told.at[0].limit.answer.verdict, WEIR_DENY);
    assert_int_equal(told.at[0].limit.answer.remaining, 0);
    assert_int_equal(told.at[1].limit.answer.remaining, 6);
}

static int block(void *arg, struct weir *limiter, const void *key, size_t key_len,
                 const struct weir_rules_found *found)
{
    return weir_block_at(limiter, key, key_len, *(uint64_t *)arg, NOW);
}

static void a_block_is_told_with_its_end(void **state)
{
    struct weir_text user = {"ann", 3};
    struct weir_rules_key key = {.limit = {"a", 1}, .parts = &user, .parts_count = 1};
    uint64_t until = NOW + 90 * WEIR_SECOND;
    open_rules("limits: [{name: a, key: [user], rate: 3/min}]\n");
    assert_int_equal(weir_rules_use(rules, &key, block, &until, NULL), 0);
    explain_words("user=ann");
    assert_int_equal(told.at[0].limit.answer.verdict, WEIR_DENY);
    assert_int_equal(told.at[0].limit.blocked_ns, 90 * WEIR_SECOND);
    explain_words("user=bob");
    assert_int_equal(told.at[0].limit.blocked_ns, 0);
}

static void a_limit_that_was_put_in_has_no_line(void **state)
{
    static const char limit[] = "{name: b, key: [], rate: 5/s}";
    open_rules("limits:\n  - {name: a, key: [], rate: 5/s}\n");
    assert_int_equal(weir_rules_put(rules, limit, strlen(limit), NULL), 0);
    explain_words("path=/");
    assert_int_equal(told.at[0].limit.line, 2);
    assert_int_equal(told.at[1].limit.line, 0);
}

static void requests_that_asking_refuses_are_refused(void **state)
{
    struct weir_error error;
    struct weir_rules_question q = question("path=/a%00");
    open_rules("limits: [{name: a, when: {path: /}, key: [], rate: 5/s}]\n");
    assert_int_equal(explain(&q, &error), WEIR_EATTRIBUTE);
    assert_int_equal(told.limits, 0);
}

/* ---- by chance ---- */

static uint64_t state_of_chance;

static unsigned below(unsigned n)
{
    return (unsigned)(splitmix_next(&state_of_chance) % n);
}

static const char *one_of(const char *const *list, unsigned n)
{
    return list[below(n)];
}

static const char *const paths[] = {"/a", "/a/b", "/a/*", "/a/**", "/**", "/*/b", "/b/**", "/a*/b"};
static const char *const values[] = {"x", "y", "z"};

/* Appends conditions, perhaps none. */
static size_t put_conditions(char *to, const char *name)
{
    size_t n = 0;
    const char *between = "";
    n += (size_t)sprintf(to, ", %s: {", name);
    if (below(2) == 0) {
        n += (size_t)sprintf(to + n, "path: ['%s', '%s']", one_of(paths, 8), one_of(paths, 8));
        between = ", ";
    }
    if (below(3) == 0) {
        n += (size_t)sprintf(to + n, "%suser: [%s]", between, one_of(values, 3));
        between = ", ";
    }
    if (below(3) == 0) {
        n += (size_t)sprintf(to + n, "%splan: [%s, '%s*']", between, one_of(values, 3),
                             one_of(values, 3));
        between = ", ";
    }
    if (below(4) == 0) {
        n += (size_t)sprintf(to + n, "%sip: [10.%u.0.0/16]", between, below(3));
        between = ", ";
    }
    if (between[0] == 0) {
        to[0] = 0;
        return 0;
    }
    return n + (size_t)sprintf(to + n, "}");
}

static void put_limit(char *to, unsigned i, unsigned limits)
{
    static const char *const keys[] = {"", "user", "user|ip", "plan", "user, plan"};
    size_t n = (size_t)sprintf(to, "  - {name: l%u, key: [%s], rate: 1M/s", i, one_of(keys, 5));
    n += below(4) != 0 ? put_conditions(to + n, "when") : 0;
    n += below(3) == 0 ? put_conditions(to + n, "unless") : 0;
    n += (size_t)sprintf(to + n, "%s", below(4) == 0 ? ", shadow: true" : "");
    n += (size_t)(below(3) == 0 ? sprintf(to + n, ", group: g%u", below(3)) : 0);
    n += (size_t)sprintf(to + n, "%s", below(12) == 0 ? ", on_missing: deny" : "");
    unsigned other = below(limits);
    n += (size_t)(other != i && below(4) == 0 ? sprintf(to + n, ", replaces: [l%u]", other) : 0);
    (void)sprintf(to + n, ", max_keys: 10}\n");
}

static void make_rules(unsigned limits, char *yaml)
{
    yaml[0] = 0;
    if (below(4) == 0) {
        (void)sprintf(yaml, "allow: [{user: %s, plan: %s}]\n", one_of(values, 3),
                      one_of(values, 3));
    }
    if (below(4) == 0) {
        (void)sprintf(yaml + strlen(yaml), "block: [{ip: [10.2.0.0/16]}]\n");
    }
    (void)strcat(yaml, "limits:\n");
    for (unsigned i = 0; i < limits; i++) {
        put_limit(yaml + strlen(yaml), i, limits);
    }
}

static void make_request(char *words)
{
    static const char *const asked[] = {"/a", "/a/b", "/a/c", "/b/c/d", "/", "/ax/b"};
    words[0] = 0;
    if (below(8) != 0) {
        (void)sprintf(words, "path=%s ", one_of(asked, 6));
    }
    if (below(4) != 0) {
        (void)sprintf(words + strlen(words), "user=%s ", one_of(values, 3));
    }
    if (below(2) != 0) {
        (void)sprintf(words + strlen(words), "plan=%s%s ", one_of(values, 3),
                      below(2) != 0 ? "y" : "");
    }
    if (below(2) != 0) {
        (void)sprintf(words + strlen(words), "ip=10.%u.1.1 ", below(3));
    }
}

static int note_allowed(void *arg, const struct weir_rules_limit *limit)
{
    uint64_t *counts = arg;
    counts[strtoul(limit->name + 1, NULL, 10)] = limit->stats.allowed;
    return 0;
}

/* Asks once, and compares the limits that have counted it with the explanation. */
static void compare(unsigned limits, const char *yaml, const char *words)
{
    uint64_t before[LIMITS_MAX] = {0};
    uint64_t after[LIMITS_MAX] = {0};
    struct weir_rules_question q = question(words);
    struct weir_rules_answer a;
    assert_int_equal(weir_rules_limits(rules, note_allowed, before), 0);
    explain_words(words);
    assert_int_equal(told.limits, limits);
    assert_int_equal(weir_rules_limits(rules, note_allowed, after), 0);
    assert_memory_equal(before, after, sizeof before);
    struct weir_error error = {0};
    if (weir_rules_ask_at(rules, &q, NOW, &a, &error) != 0) {
        fail_msg("%s\n%s\n%s", error.text, yaml, words);
    }
    assert_int_equal(weir_rules_limits(rules, note_allowed, after), 0);
    for (unsigned i = 0; i < limits; i++) {
        if ((after[i] - before[i] == 1) != (told.at[i].why[0] == 0)) {
            fail_msg("limit %u counted %d, explained '%s'\n%s\n%s", i, (int)(after[i] - before[i]),
                     told.at[i].why, yaml, words);
        }
    }
}

static void what_is_said_to_apply_is_what_asking_charges(void **state)
{
    static char yaml[16384];
    char words[256];
    for (unsigned seed = 0; seed < 300; seed++) {
        state_of_chance = seed;
        unsigned limits = 1 + below(LIMITS_MAX);
        make_rules(limits, yaml);
        open_rules(yaml);
        for (unsigned i = 0; i < 40; i++) {
            make_request(words);
            if (below(8) == 0) { /* the kill switch keeps a limit's place in its group */
                (void)weir_rules_shadow_set(rules, "l0", (int)below(2), NULL);
            }
            compare(limits, yaml, words);
        }
        (void)close_rules(state);
    }
}

#define TEST(f) cmocka_unit_test_teardown(f, close_rules)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_condition_that_does_not_hold_is_named),
        TEST(other_reasons_are_told),
        TEST(replaced_limits_and_lists_of_unless_are_told),
        TEST(a_shadow_limit_too_many_is_told),
        TEST(a_key_that_is_missing_may_deny_the_request),
        TEST(a_list_covers_the_limits),
        TEST(values_of_clients_are_made_visible_and_cut),
        TEST(numbers_are_those_of_a_peek_and_charge_nothing),
        TEST(a_block_is_told_with_its_end),
        TEST(a_limit_that_was_put_in_has_no_line),
        TEST(requests_that_asking_refuses_are_refused),
        cmocka_unit_test(what_is_said_to_apply_is_what_asking_charges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
