/* The kill switch: limits are decided as shadow limits until they are switched back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/rules_ask.h"

#define T0 RULES_T0
#define ALICE "path=/x user=alice"

static const char one_limit[] = "limits: [{name: l, key: [user], rate: 2/h}]";

static void set(struct weir_rules *rules, const char *limit, int on)
{
    struct weir_error error = {0};
    if (weir_rules_shadow_set(rules, limit, on, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void reload(struct weir_rules *rules, const char *yaml)
{
    struct weir_error error = {0};
    if (weir_rules_reload_text(rules, "test", yaml, strlen(yaml), &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void put(struct weir_rules *rules, const char *yaml)
{
    assert_int_equal(weir_rules_put(rules, yaml, strlen(yaml), NULL), 0);
}

static void a_switched_limit_counts_and_reports_but_never_denies(void **state)
{
    struct weir_rules *r = rules_open(one_limit);
    set(r, "l", 1);
    assert_int_equal(rules_allowed(r, T0, ALICE, 2), 2);
    struct weir_rules_answer a = rules_ask(r, T0, ALICE);
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_int_equal(a.answer.flags, WEIR_FLAG_SHADOW);
    assert_int_equal(a.reason, WEIR_REASON_SHADOW);
    assert_int_equal(a.applied, 0);
    assert_string_equal(a.shadow, "l");
    assert_string_equal(a.limit, "");
    weir_rules_close(r);
}

static void switching_back_enforces_with_what_was_charged_meanwhile(void **state)
{
    struct weir_rules *r = rules_open(one_limit);
    assert_int_equal(rules_allowed(r, T0, ALICE, 1), 1);
    set(r, "l", 1);
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 5);
    set(r, "l", 0);
    struct weir_rules_answer a = rules_ask(r, T0, ALICE);
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_string_equal(a.limit, "l");
    assert_int_equal(rules_allowed(r, T0, "path=/x user=bob", 5), 2);
    weir_rules_close(r);
}

static void what_the_rules_call_shadow_stays_so(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 2/h, shadow: true}]");
    set(r, "l", 1);
    set(r, "l", 0);
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 5);
    set(r, NULL, 1);
    set(r, NULL, 0);
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 5);
    weir_rules_close(r);
}

static void all_at_once_leaves_nothing_that_denies_but_the_block_list(void **state)
{
    struct weir_rules *r =
        rules_open("block: [{user: eve}]\n"
                   "limits:\n"
                   "- {name: a, key: [user], rate: 1/h}\n"
                   "- {name: b, key: [], rate: 1/h}\n"
                   "- {name: c, when: {path: /x}, key: [tenant], rate: 1/h, on_missing: deny}\n");
    assert_int_equal(rules_ask(r, T0, ALICE).reason, WEIR_REASON_MISSING);
    set(r, NULL, 1);
    assert_int_equal(rules_allowed(r, T0, ALICE, 9), 9);
    struct weir_rules_answer a = rules_ask(r, T0, ALICE);
    assert_int_equal(a.shadow_denied, 2);
    assert_int_equal(a.missing, 1);
    assert_int_equal(rules_ask(r, T0, "path=/x user=eve").reason, WEIR_REASON_BLOCK_LIST);
    set(r, NULL, 0);
    assert_int_equal(rules_ask(r, T0, ALICE).reason, WEIR_REASON_MISSING);
    assert_int_equal(rules_ask(r, T0, "path=/y user=alice").answer.verdict, WEIR_DENY);
    weir_rules_close(r);
}

static void the_last_word_counts(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: a, key: [user], rate: 1/h},"
                                      "{name: b, key: [user], rate: 3/h}]");
    set(r, NULL, 1);
    set(r, "b", 0);
    assert_int_equal(weir_rules_shadow_get(r, NULL), 1);
    assert_int_equal(weir_rules_shadow_get(r, "a"), 1);
    assert_int_equal(weir_rules_shadow_get(r, "b"), 0);
    assert_int_equal(rules_allowed(r, T0, ALICE, 9), 3);
    set(r, NULL, 0);
    assert_int_equal(weir_rules_shadow_get(r, "a"), 0);
    assert_int_equal(rules_allowed(r, T0, "user=bob", 9), 1);
    weir_rules_close(r);
}

/* Of a group the first that applies counts, switched or not. */
static void a_switched_limit_keeps_its_place_in_its_group(void **state)
{
    struct weir_rules *r =
        rules_open("limits:\n"
                   "- {name: a, when: {path: /x}, key: [user], rate: 1/h, group: g}\n"
                   "- {name: b, key: [user], rate: 2/h, group: g}\n"
                   "- {name: c, key: [user], rate: 3/h, group: g, shadow: true}\n");
    set(r, "a", 1);
    assert_int_equal(rules_allowed(r, T0, ALICE, 9), 9); /* b is still hidden behind a */
    assert_int_equal(rules_ask(r, T0, ALICE).shadow_denied, 2);
    set(r, "a", 0);
    set(r, "b", 1);
    assert_int_equal(rules_allowed(r, T0, "path=/x user=bob", 9), 1); /* b is still behind a */
    assert_int_equal(rules_allowed(r, T0, "path=/y user=carol", 9), 9);
    weir_rules_close(r);
}

static void reloads_puts_and_removes_keep_it(void **state)
{
    struct weir_rules *r = rules_open(one_limit);
    set(r, "l", 1);
    reload(r, "limits: [{name: m, key: [], rate: 1M/h}, {name: l, key: [user], rate: 1/h}]");
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 5);
    put(r, "{name: n, key: [], rate: 1M/h}");
    put(r, "{name: l, key: [user], rate: 1/min, algorithm: fixed_window}");
    assert_int_equal(weir_rules_remove(r, "m", NULL), 0);
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 5);
    assert_int_equal(weir_rules_shadow_get(r, "l"), 1);
    assert_int_equal(weir_rules_shadow_get(r, "n"), 0);
    assert_int_equal(weir_rules_reload_text(r, "test", "limits: [{name: l}]", 19, NULL),
                     WEIR_ERULES);
    assert_int_equal(weir_rules_shadow_get(r, "l"), 1);
    set(r, "l", 0);
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 0);
    weir_rules_close(r);
}

static void what_vanishes_is_forgotten(void **state)
{
    struct weir_rules *r = rules_open(one_limit);
    set(r, "l", 1);
    reload(r, "limits: [{name: m, key: [], rate: 1M/h}]");
    assert_int_equal(weir_rules_shadow_get(r, "l"), WEIR_ENOLIMIT);
    reload(r, one_limit);
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 2);
    weir_rules_close(r);
}

static void all_means_those_to_come_too(void **state)
{
    struct weir_rules *r = rules_open(one_limit);
    set(r, NULL, 1);
    reload(r, "limits: [{name: m, key: [user], rate: 1/h}]");
    put(r, "{name: n, key: [user], rate: 1/h}");
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 5);
    assert_int_equal(rules_ask(r, T0, ALICE).shadow_denied, 2);
    set(r, NULL, 0);
    assert_int_equal(rules_allowed(r, T0, "user=bob", 5), 1);
    weir_rules_close(r);
}

static int look(void *arg, struct weir *limiter, const void *key, size_t key_len,
                const struct weir_rules_found *found)
{
    *(int *)arg = found->shadow;
    (void)limiter;
    (void)key;
    (void)key_len;
    return 0;
}

static void whoever_uses_one_limit_is_told(void **state)
{
    struct weir_rules *r = rules_open(one_limit);
    struct weir_text part = {"alice", 5};
    struct weir_rules_key key = {.limit = {"l", 1}, .parts = &part, .parts_count = 1};
    int shadow = -1;
    for (int on = 1; on >= 0; on--) {
        set(r, NULL, on);
        assert_int_equal(weir_rules_use(r, &key, look, &shadow, NULL), 0);
        assert_int_equal(shadow, on);
    }
    weir_rules_close(r);
}

static void what_does_not_fit_is_an_error_and_changes_nothing(void **state)
{
    struct weir_rules *r = rules_open(one_limit);
    struct weir_error error = {0};
    assert_int_equal(weir_rules_shadow_set(r, "none", 1, &error), WEIR_ENOLIMIT);
    assert_string_equal(error.text, "no limit named 'none'");
    assert_int_equal(weir_rules_shadow_set(r, "l", 2, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "on is 2, expected 0 or 1");
    assert_int_equal(weir_rules_shadow_set(NULL, "l", 1, &error), WEIR_EINVAL);
    assert_int_equal(weir_rules_shadow_set(r, "", 1, NULL), WEIR_ENOLIMIT);
    assert_int_equal(weir_rules_shadow_get(r, "none"), WEIR_ENOLIMIT);
    assert_int_equal(weir_rules_shadow_get(NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_rules_shadow_get(r, NULL), 0);
    assert_int_equal(rules_allowed(r, T0, ALICE, 5), 2);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_switched_limit_counts_and_reports_but_never_denies),
        cmocka_unit_test(switching_back_enforces_with_what_was_charged_meanwhile),
        cmocka_unit_test(what_the_rules_call_shadow_stays_so),
        cmocka_unit_test(all_at_once_leaves_nothing_that_denies_but_the_block_list),
        cmocka_unit_test(the_last_word_counts),
        cmocka_unit_test(a_switched_limit_keeps_its_place_in_its_group),
        cmocka_unit_test(reloads_puts_and_removes_keep_it),
        cmocka_unit_test(what_vanishes_is_forgotten),
        cmocka_unit_test(all_means_those_to_come_too),
        cmocka_unit_test(whoever_uses_one_limit_is_told),
        cmocka_unit_test(what_does_not_fit_is_an_error_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
