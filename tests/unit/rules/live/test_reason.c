/* Why a request was allowed or denied: the answer's reason, its word, and the line of a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <weir_fleet.h>

#include "support/rules/faked_world.h"

#define T0 RULES_T0

static void assert_reason(struct weir_rules *r, const char *words, const char *expected)
{
    struct weir_rules_answer a = rules_ask(r, T0, words);
    assert_string_equal(weir_rules_reason_name(a.reason), expected);
}

static void an_answer_says_what_allowed_or_denied_the_request(void **state)
{
    struct weir_rules *r = rules_open("allow: [{ip: 10.0.0.0/8}]\n"
                                      "block: [{user: eve}]\n"
                                      "limits:\n"
                                      "- {name: l, when: {path: /l}, key: [user], rate: 1/h}\n"
                                      "- {name: s, when: {path: /s}, key: [user], rate: 1/h,\n"
                                      "   shadow: true}\n"
                                      "- {name: m, when: {path: /m}, key: [user], rate: 1/h,\n"
                                      "   on_missing: deny}\n");
    assert_reason(r, "path=/l user=al", "limit");
    assert_reason(r, "path=/l user=al", "limit");
    assert_reason(r, "path=/l user=al ip=10.1.2.3", "allow_list");
    assert_reason(r, "path=/l user=eve", "block_list");
    assert_reason(r, "path=/other", "unmatched");
    assert_reason(r, "path=/m", "missing");
    assert_reason(r, "path=/s user=al", "unmatched");
    assert_reason(r, "path=/s user=al", "shadow");
    weir_rules_close(r);
}

static int block(void *arg, struct weir *limiter, const void *key, size_t key_len,
                 const struct weir_rules_found *found)
{
    return weir_block_at(limiter, key, key_len, T0 + *(uint64_t *)arg, T0);
}

static void a_blocked_key_is_not_denied_by_its_units(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 5/h}]");
    struct weir_text part = {"al", 2};
    struct weir_rules_key key = {.limit = {"l", 1}, .parts = &part, .parts_count = 1};
    uint64_t for_ns = WEIR_MINUTE;
    assert_int_equal(weir_rules_use(r, &key, block, &for_ns, NULL), 0);
    assert_reason(r, "user=al", "blocked");
    assert_reason(r, "user=bo", "limit");
    weir_rules_close(r);
}

static void a_full_table_is_overload(void **state)
{
    struct weir_rules *r =
        rules_open("limits: [{name: l, key: [user], rate: 5/h, max_keys: 1, on_full: deny}]");
    char words[32];
    int reason = WEIR_REASON_LIMIT;
    for (unsigned i = 0; i < 1000 && reason == WEIR_REASON_LIMIT; i++) {
        (void)snprintf(words, sizeof words, "user=u%u", i);
        struct weir_rules_answer a = rules_ask(r, T0, words);
        reason = a.reason;
        assert_int_equal(a.answer.verdict, reason == WEIR_REASON_LIMIT ? WEIR_ALLOW : WEIR_DENY);
    }
    assert_int_equal(reason, WEIR_REASON_OVERLOAD);
    weir_rules_close(r);
}

static void a_store_that_does_not_answer_denies_or_degrades(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits: [{name: l, key: [user], rate: 1/h}]");
    w.fleet.plan = (struct fake_plan){.planned = true, .flags = WEIR_FLAG_DEGRADED};
    assert_int_equal(faked_settle(&w, "user=u")->reason, WEIR_REASON_DEGRADED);
    w.fleet.plan.verdict = WEIR_DENY;
    assert_int_equal(faked_settle(&w, "user=u")->reason, WEIR_REASON_LIMIT);
    w.fleet.plan.flags |= WEIR_FLAG_CLOSED;
    assert_int_equal(faked_settle(&w, "user=u")->reason, WEIR_REASON_STORE);
    faked_end(&w);
}

static struct weir_rules_answer ask_with(struct weir_rules *r, unsigned flags)
{
    struct weir_rules_attribute user = {"user", 4, "al", 2};
    struct weir_rules_question q = {.attributes = &user, .attributes_count = 1, .flags = flags};
    struct weir_rules_answer a;
    assert_int_equal(weir_rules_ask_at(r, &q, T0, &a, NULL), 0);
    return a;
}

static void assert_denied(struct weir_rules *r, unsigned flags, int reason)
{
    struct weir_rules_answer a = ask_with(r, flags);
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_int_equal(a.reason, reason);
}

/* WEIR_RULES_NO_DELAY is what a server says that has no place for one more held reply. */
static void a_delay_that_would_have_been_held_is_overload(void **state)
{
    struct weir_rules *r = rules_open("server: {hold_max: 1s}\n"
                                      "limits: [{name: l, key: [user], algorithm: leaky_bucket,\n"
                                      "          rate: 1/s, queue: 3, undelayed: 1}]");
    assert_int_equal(ask_with(r, WEIR_RULES_NO_DELAY).answer.verdict, WEIR_ALLOW);
    assert_int_equal(ask_with(r, WEIR_RULES_NO_DELAY).answer.verdict, WEIR_ALLOW);
    assert_denied(r, WEIR_RULES_NO_DELAY, WEIR_REASON_OVERLOAD);
    assert_int_equal(ask_with(r, WEIR_RULES_HOLD).answer.delay_ns, WEIR_SECOND);
    assert_denied(r, WEIR_RULES_NO_DELAY, WEIR_REASON_LIMIT); /* two seconds: not held either */
    assert_denied(r, WEIR_RULES_HOLD, WEIR_REASON_LIMIT);
    weir_rules_close(r);
}

static void a_full_queue_is_not_overload(void **state)
{
    struct weir_rules *r = rules_open("server: {hold_max: 1min}\n"
                                      "limits: [{name: l, key: [user], algorithm: leaky_bucket,\n"
                                      "          rate: 1/s, queue: 1}]");
    assert_int_equal(ask_with(r, WEIR_RULES_HOLD).answer.verdict, WEIR_ALLOW);
    assert_denied(r, WEIR_RULES_NO_DELAY, WEIR_REASON_OVERLOAD);
    assert_int_equal(ask_with(r, WEIR_RULES_HOLD).answer.verdict, WEIR_ALLOW);
    assert_denied(r, WEIR_RULES_NO_DELAY, WEIR_REASON_LIMIT);
    weir_rules_close(r);
}

static void overload_bans_no_key(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], algorithm: leaky_bucket,\n"
                                      "          rate: 10/s, queue: 2,\n"
                                      "          ban: {denials: 1, within: 1min, for: 1h}}]");
    assert_int_equal(ask_with(r, WEIR_RULES_HOLD).answer.verdict, WEIR_ALLOW);
    assert_denied(r, WEIR_RULES_NO_DELAY, WEIR_REASON_OVERLOAD);
    assert_int_equal(ask_with(r, WEIR_RULES_HOLD).answer.verdict, WEIR_ALLOW);
    weir_rules_close(r);
}

static void every_reason_has_a_word(void **state)
{
    for (int i = 0; i <= WEIR_REASON_DEGRADED; i++) {
        assert_string_not_equal(weir_rules_reason_name(i), "unknown");
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(weir_rules_reason_name(i), weir_rules_reason_name(j));
        }
    }
    assert_string_equal(weir_rules_reason_name(-1), "unknown");
    assert_string_equal(weir_rules_reason_name(WEIR_REASON_DEGRADED + 1), "unknown");
}

static void hear(void *arg, const char *file, unsigned line)
{
    (void)snprintf(arg, 64, "%s:%u", file, line);
}

static void the_entry_of_the_block_list_is_told_to_the_operator(void **state)
{
    static const char yaml[] = "block:\n"
                               "- {user: eve}\n"
                               "- path: /admin\n"
                               "  ip: 192.0.2.0/24\n"
                               "limits: [{name: l, key: [user], rate: 5/h}]\n";
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *r = NULL;
    struct weir_error error = {0};
    char heard[64] = "";
    o.flags = WEIR_EXPLICIT_TIME;
    o.listed = hear;
    o.listed_arg = heard;
    assert_int_equal(weir_rules_open_text(&r, "rules.yaml", yaml, strlen(yaml), &o, &error), 0);
    assert_reason(r, "user=al", "limit");
    assert_string_equal(heard, "");
    assert_reason(r, "user=al ip=192.0.2.7 path=/admin", "block_list");
    assert_string_equal(heard, "rules.yaml:3");
    assert_int_equal(rules_peek(r, T0, "user=eve").reason, WEIR_REASON_BLOCK_LIST);
    assert_string_equal(heard, "rules.yaml:3");
    assert_reason(r, "user=eve", "block_list");
    assert_string_equal(heard, "rules.yaml:2");
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_says_what_allowed_or_denied_the_request),
        cmocka_unit_test(a_blocked_key_is_not_denied_by_its_units),
        cmocka_unit_test(a_full_table_is_overload),
        cmocka_unit_test(a_store_that_does_not_answer_denies_or_degrades),
        cmocka_unit_test(a_delay_that_would_have_been_held_is_overload),
        cmocka_unit_test(a_full_queue_is_not_overload),
        cmocka_unit_test(overload_bans_no_key),
        cmocka_unit_test(every_reason_has_a_word),
        cmocka_unit_test(the_entry_of_the_block_list_is_told_to_the_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
