/*
 * Limits that are skipped because their key is missing: which answers say so, and what is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/faked_call.h"

#define T0 RULES_T0
#define LOGIN "limits: [{name: login, when: {path: /login}, key: [ip], rate: 5/min}]"
#define IDIOM                                                                                      \
    "limits:\n"                                                                                    \
    "- {name: by-user, when: {path: /x}, key: [user], group: g, rate: 5/min}\n"                    \
    "- {name: by-ip, when: {path: /x}, key: [ip], group: g, rate: 5/min}\n"

static bool flagged(const struct weir_rules_answer *a)
{
    return (a->answer.flags & WEIR_FLAG_MISSING) != 0;
}

static bool asks_flagged(struct weir_rules *rules, const char *words)
{
    struct weir_rules_answer a = rules_ask(rules, T0, words);
    return flagged(&a);
}

struct counts {
    char text[400];
    size_t len;
};

static int count(void *arg, const struct weir_rules_limit *limit)
{
    struct counts *c = arg;
    c->len +=
        (size_t)snprintf(c->text + c->len, sizeof c->text - c->len, "%s %llu %llu\n", limit->name,
                         (unsigned long long)limit->missing, (unsigned long long)limit->uncovered);
    return 0;
}

/* Each line has the name of a limit, and how often it was missing and uncovered. */
static void assert_counts(struct weir_rules *rules, const char *expected)
{
    struct counts c = {.len = 0};
    assert_int_equal(weir_rules_limits(rules, count, &c), 0);
    assert_string_equal(c.text, expected);
}

/* ---- the flag ---- */

static void a_limit_that_is_skipped_is_flagged(void **state)
{
    struct weir_rules *r = rules_open(LOGIN);
    struct weir_rules_answer a = rules_ask(r, T0, "path=/login");
    assert_true(flagged(&a));
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_int_equal(a.reason, WEIR_REASON_UNMATCHED);
    assert_int_equal(a.missing, 1);
    assert_false(asks_flagged(r, "path=/login ip=192.0.2.1"));
    assert_false(asks_flagged(r, "path=/other"));
    a = rules_peek(r, T0, "path=/login");
    assert_true(flagged(&a));
    assert_counts(r, "login 2 2\n");
    weir_rules_close(r);
}

static void the_next_limit_of_a_group_takes_the_place(void **state)
{
    struct weir_rules *r = rules_open(IDIOM);
    assert_false(asks_flagged(r, "path=/x user=u ip=192.0.2.1"));
    assert_false(asks_flagged(r, "path=/x ip=192.0.2.1"));
    assert_counts(r, "by-user 1 0\nby-ip 0 0\n");
    assert_true(asks_flagged(r, "path=/x"));
    assert_counts(r, "by-user 2 1\nby-ip 1 1\n");
    weir_rules_close(r);
}

static void limits_of_other_groups_do_not(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: a, key: [user], group: g, rate: 5/min}\n"
                                      "- {name: b, key: [ip], group: h, rate: 5/min}\n"
                                      "- {name: c, key: [], rate: 50/min}\n");
    struct weir_rules_answer a = rules_ask(r, T0, "ip=192.0.2.1");
    assert_true(flagged(&a));
    assert_int_equal(a.applied, 2);
    assert_counts(r, "a 1 1\nb 0 0\nc 0 0\n");
    weir_rules_close(r);
}

static void a_denial_by_another_limit_is_flagged_too(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: a, key: [user], rate: 5/min}\n"
                                      "- {name: all, key: [], rate: 1/min}\n");
    assert_true(asks_flagged(r, "ip=192.0.2.1"));
    struct weir_rules_answer a = rules_ask(r, T0, "ip=192.0.2.1");
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_int_equal(a.reason, WEIR_REASON_LIMIT);
    assert_true(flagged(&a));
    weir_rules_close(r);
}

static void a_limit_that_replaces_the_skipped_one_takes_its_place(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: a, key: [user], rate: 5/min}\n"
                                      "- {name: b, key: [ip], rate: 5/min, replaces: [a]}\n");
    assert_false(asks_flagged(r, "ip=192.0.2.1"));
    assert_counts(r, "a 1 0\nb 0 0\n");
    assert_true(asks_flagged(r, "path=/x"));
    assert_counts(r, "a 2 1\nb 1 1\n");
    weir_rules_close(r);
}

static void refused_and_listed_requests_are_not_flagged(void **state)
{
    struct weir_rules *r =
        rules_open("block: [{ip: 192.0.2.66}]\nallow: [{ip: 192.0.2.77}]\n"
                   "limits:\n"
                   "- {name: a, key: [user], rate: 5/min}\n"
                   "- {name: b, when: {path: /b}, key: [plan], rate: 5/min, on_missing: deny}\n");
    struct weir_rules_answer a = rules_ask(r, T0, "path=/b");
    assert_int_equal(a.reason, WEIR_REASON_MISSING);
    assert_false(flagged(&a));
    assert_false(asks_flagged(r, "ip=192.0.2.66"));
    assert_false(asks_flagged(r, "ip=192.0.2.77"));
    assert_counts(r, "a 1 0\nb 1 0\n");
    weir_rules_close(r);
}

static void a_shadow_limit_is_counted_and_not_flagged(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: s, key: [user], rate: 5/min, shadow: true,"
                                      " on_missing: deny}]");
    assert_false(asks_flagged(r, "path=/x"));
    assert_counts(r, "s 1 1\n");
    weir_rules_close(r);
}

static void any_number_of_skipped_limits_is_counted(void **state)
{
    enum { LIMITS = 100 };
    char yaml[LIMITS * 64] = "limits:\n";
    for (unsigned i = 0; i < LIMITS; i++) {
        (void)sprintf(yaml + strlen(yaml), "- {name: l%u, key: [user], group: g%u, rate: 1/h}\n", i,
                      i % 3);
    }
    struct weir_rules *r = rules_open(yaml);
    struct weir_rules_answer a = rules_ask(r, T0, "path=/x");
    assert_true(flagged(&a));
    assert_int_equal(a.missing, LIMITS);
    weir_rules_close(r);
}

/* ---- answers that come later, and calls ---- */

static void an_answer_of_a_fleet_is_flagged(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: a, key: [user], rate: 5/min}\n"
                    "- {name: b, key: [ip], rate: 5/min}\n"
                    "- {name: c, when: {path: /c}, key: [], rate: 5/min, consistency: local}\n");
    assert_true(flagged(faked_settle(&w, "ip=192.0.2.1")));
    assert_false(flagged(faked_settle(&w, "ip=192.0.2.1 user=u")));
    w.fleet.plan.at_once = 1;
    assert_int_equal(faked_ask(&w, "user=u"), 1);
    assert_true(flagged(&w.answer));
    assert_int_equal(faked_ask(&w, "path=/c"), 1);
    assert_true(flagged(&w.answer));
    faked_end(&w);
}

static void a_shadow_limit_of_a_fleet_leaves_the_flag(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: a, key: [user], rate: 5/min, consistency: local}\n"
                    "- {name: s, key: [], rate: 5/min, shadow: true}\n");
    assert_int_equal(faked_ask(&w, "path=/x"), 0);
    assert_true(fake_answer(&w.fleet));
    assert_true(flagged(&w.answer));
    faked_end(&w);
}

static void a_call_is_flagged_if_a_descriptor_skips_a_limit(void **state)
{
    struct weir_rules *r = rules_open(IDIOM);
    struct faked_call c = faked_call_init();
    faked_call_ask(&c, r, NULL, "path=/x ip=192.0.2.1; path=/x user=u");
    assert_false(flagged(&c.call.answer));
    faked_call_finish(&c);
    c = faked_call_init();
    faked_call_ask(&c, r, NULL, "path=/x ip=192.0.2.1; path=/x");
    assert_true(flagged(&c.call.answer));
    faked_call_finish(&c);
    weir_rules_close(r);
}

/* ---- misspelt names ---- */

struct heard {
    unsigned calls;
    char last[200]; /* "found expected" */
};

static void hear(void *arg, const char *name, size_t name_len, const char *meant)
{
    struct heard *heard = arg;
    (void)snprintf(heard->last, sizeof heard->last, "%.*s %s", (int)name_len, name, meant);
    heard->calls++;
}

static struct weir_rules *open_heard(struct heard *heard)
{
    static const char yaml[] =
        "attributes: {user: request, tenant: 'header:X-Tenant-Id', seat: request, seats: request}\n"
        "limits:\n"
        "- {name: a, when: {path: /a}, key: [user|ip], rate: 100/h}\n"
        "- {name: b, key: [tenant], rate: 100/h}\n"
        "- {name: c, key: [seat], rate: 100/h}\n"
        "- {name: d, key: [seats], rate: 100/h}\n";
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules = NULL;
    struct weir_error error = {0};
    o.flags = WEIR_EXPLICIT_TIME;
    o.misspelt = hear;
    o.misspelt_arg = heard;
    assert_int_equal(weir_rules_open_text(&rules, "test", yaml, strlen(yaml), &o, &error), 0);
    return rules;
}

static void a_name_one_edit_away_is_told(void **state)
{
    static const struct {
        const char *words;
        const char *told;
    } rows[] = {{"usr=u", "usr user"},
                {"users=u", "users user"},
                {"usre=u", "usre user"},
                {"uaer=u", "uaer user"},
                {"USER=u", "USER user"},
                {"paht=/a user=u", "paht path"},
                {"header:X-Tenat-Id=t", "header:X-Tenat-Id header:x-tenant-id"},
                {"IP=192.0.2.1", "IP ip"}};
    struct heard heard = {0};
    struct weir_rules *r = open_heard(&heard);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)rules_ask(r, T0, rows[i].words);
        (void)rules_ask(r, T0, rows[i].words);
        assert_int_equal(heard.calls, 2 * (i + 1));
        assert_string_equal(heard.last, rows[i].told);
    }
    weir_rules_close(r);
}

static void other_names_are_not_told(void **state)
{
    static const char *const rows[] = {"user=u",
                                       "method=GET",
                                       "host=h",
                                       "id=7",
                                       "vip=1",
                                       "us=u",
                                       "customer=c",
                                       "i=1",
                                       "x=1",

                                       "usr=u user=u",
                                       "user=u usr=u",
                                       "seat=p seats=q",
                                       "ip=192.0.2.1",
                                       "p=/a",
                                       "sea=1 seat=p seats=q",
                                       "methods=x",
                                       "header:x-tenant=t",
                                       "header:X-User=u"};
    struct heard heard = {0};
    struct weir_rules *r = open_heard(&heard);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)rules_ask(r, T0, rows[i]);
        assert_string_equal(heard.last, "");
    }
    (void)rules_ask(r, T0, "usr=u"); /* was with `user` above, which is no mistake */
    assert_string_equal(heard.last, "usr user");
    weir_rules_close(r);
}

static void names_of_any_length_and_bytes_are_compared(void **state)
{
    struct heard heard = {0};
    struct weir_rules *r = open_heard(&heard);
    char words[400];
    for (int len = 1; len < 300; len++) {
        (void)snprintf(words, sizeof words, "%0*d=1", len, 1);
        (void)rules_ask(r, T0, words);
        (void)snprintf(words, sizeof words, "header:%0*d=1", len, 1);
        (void)rules_ask(r, T0, words);
    }
    for (int byte = 1; byte < 256; byte++) {
        if (strchr(" =", byte) == NULL && byte != 'r' && byte != 'R') {
            (void)snprintf(words, sizeof words, "%c%c=1", byte, byte);
            (void)rules_ask(r, T0, words);
        }
    }
    assert_int_equal(heard.calls, 0);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_is_skipped_is_flagged),
        cmocka_unit_test(the_next_limit_of_a_group_takes_the_place),
        cmocka_unit_test(limits_of_other_groups_do_not),
        cmocka_unit_test(a_denial_by_another_limit_is_flagged_too),
        cmocka_unit_test(a_limit_that_replaces_the_skipped_one_takes_its_place),
        cmocka_unit_test(refused_and_listed_requests_are_not_flagged),
        cmocka_unit_test(a_shadow_limit_is_counted_and_not_flagged),
        cmocka_unit_test(any_number_of_skipped_limits_is_counted),
        cmocka_unit_test(an_answer_of_a_fleet_is_flagged),
        cmocka_unit_test(a_shadow_limit_of_a_fleet_leaves_the_flag),
        cmocka_unit_test(a_call_is_flagged_if_a_descriptor_skips_a_limit),
        cmocka_unit_test(a_name_one_edit_away_is_told),
        cmocka_unit_test(other_names_are_not_told),
        cmocka_unit_test(names_of_any_length_and_bytes_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
