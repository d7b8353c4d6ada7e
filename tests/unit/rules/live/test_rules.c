/* What a rule file means: which limits apply, and by which key (weir.yaml(5)). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/rules_ask.h"

#define T0 RULES_T0

static void assert_limit(struct weir_rules *rules, const char *words, const char *limit)
{
    struct weir_rules_answer a = rules_peek(rules, T0, words);
    if (strcmp(a.limit, limit) != 0) {
        fail_msg("%s: limit '%s', expected '%s'", words, a.limit, limit);
    }
}

static void all_keys_of_when_must_hold_and_one_of_their_values(void **state)
{
    struct weir_rules *r = rules_open(
        "limits: [{name: l, when: {method: [POST, PUT], path: [/a, /b/**], host: '*.example.com'}, "
        "key: [], rate: 1/s}]");
    assert_limit(r, "method=POST path=/a host=www.example.com", "l");
    assert_limit(r, "method=put path=/b/c/d host=WWW.Example.COM:443", "l");
    assert_limit(r, "method=GET path=/a host=www.example.com", "");
    assert_limit(r, "method=POST path=/c host=www.example.com", "");
    assert_limit(r, "method=POST path=/a host=example.com", "");
    assert_limit(r, "path=/a host=www.example.com", "");
    assert_limit(r, "method=POST host=www.example.com", "");
    weir_rules_close(r);
}

static void a_star_stays_in_its_segment_and_two_cross(void **state)
{
    struct weir_rules *r =
        rules_open("limits:\n"
                   "- {name: one, when: {path: /u/*/x}, key: [], rate: 1/s}\n"
                   "- {name: two, when: {path: /v/**}, key: [], rate: 1/s}\n"
                   "- {name: jpg, when: {path: '/**/*.jpg'}, key: [], rate: 1/s}");
    assert_limit(r, "path=/u/1/x", "one");
    assert_limit(r, "path=/u/1/2/x", "");
    assert_limit(r, "path=/v/1/2/x", "two");
    assert_limit(r, "path=/v", "two");
    assert_limit(r, "path=/v/", "two");
    assert_limit(r, "path=/vv", "");
    assert_limit(r, "path=/V/1", "");
    assert_limit(r, "path=/a/b/c.jpg?size=1", "jpg");
    weir_rules_close(r);
}

static void unless_takes_requests_out(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, when: {path: /**}, unless: {path: "
                                      "/static/**, method: GET}, key: [], rate: 1/s}]");
    assert_limit(r, "path=/x method=GET", "l");
    assert_limit(r, "path=/static/x method=GET", "");
    assert_limit(r, "path=/static/x method=POST", "l"); /* both must hold */
    assert_limit(r, "path=/static/x", "l");
    assert_limit(r, "path=/static/%2e%2e/x method=GET", "l");
    weir_rules_close(r);
}

static void unless_may_be_a_list_of_which_one_entry_must_hold(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, unless: [{user: a, path: /x}, {user: [b, "
                                      "'c*']}], key: [], rate: 1/s}]");
    assert_limit(r, "user=a path=/x", "");
    assert_limit(r, "user=a path=/y", "l");
    assert_limit(r, "user=b path=/y", "");
    assert_limit(r, "user=cc", "");
    assert_limit(r, "path=/x", "l");
    assert_limit(r, "", "l");
    weir_rules_close(r);
}

static void windows_of_seven_days_may_begin_with_the_epoch(void **state)
{
    static const struct {
        const char *limit;
        uint64_t days; /* until the window ends, on Thursday the 1st of January at noon */
    } rows[] = {
        {"rate: 9/week", 4},               /* on Monday */
        {"rate: 9/week, align: epoch", 7}, /* on Thursday, as 1970 did */
        {"rate: 9/7day, align: clock", 4},
        {"rate: 9/day, align: epoch", 1},
        {"rate: 9/day", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       "limits: [{name: l, key: [], algorithm: fixed_window, %s}]", rows[i].limit);
        struct weir_rules *r = rules_open(yaml);
        struct weir_answer a = rules_ask(r, RULES_T0 + WEIR_DAY / 2, "").answer;
        assert_int_equal(a.reset_after_ns, rows[i].days * WEIR_DAY - WEIR_DAY / 2);
        weir_rules_close(r);
    }
}

static void epochs_are_for_windows_on_the_clock_only(void **state)
{
    assert_non_null(rules_complaint("limits: [{name: l, key: [], rate: 1/h, align: epoch}]"));
    assert_non_null(rules_complaint("limits: [{name: l, key: [], rate: 1/month, align: epoch,"
                                    " algorithm: fixed_window}]"));
}

static void a_limit_replaces_others_by_name_or_label(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: a, when: {a: x}, key: [], rate: 1/s}\n"
                                      "- {name: b, when: {b: x}, key: [], rate: 2/s, label: B,"
                                      " replaces: [a]}\n"
                                      "- {name: c, when: {c: x}, key: [], rate: 3/s,"
                                      " replaces: [B]}\n"
                                      "- {name: d, when: {d: x}, key: [], rate: 4/s,"
                                      " replaces: [e]}\n"
                                      "- {name: e, when: {e: x}, key: [], rate: 5/s,"
                                      " replaces: [d]}\n");
    assert_limit(r, "a=x", "a");
    assert_limit(r, "a=x b=x", "b");
    assert_limit(r, "a=x c=x", "a");
    assert_limit(r, "b=x c=x", "c");
    assert_limit(r, "a=x b=x c=x", "c"); /* all at once: b replaces a although c replaces b */
    assert_limit(r, "d=x", "d");
    assert_limit(r, "d=x e=x", "");
    assert_limit(r, "d=x e=x c=x", "c");
    weir_rules_close(r);
    assert_non_null(rules_complaint("limits: [{name: a, key: [], rate: 1/s, replaces: [a]}]"));
    assert_non_null(
        rules_complaint("limits: [{name: a, label: b, key: [], rate: 1/s, replaces: [b]}]"));
}

static void a_limit_cannot_replace_a_name_that_no_limit_has(void **state)
{
    static const char refused[] = "{name: b, key: [], rate: 1/s, replaces: [lable]}";
    static const char good[] = "{name: b, key: [], rate: 1/s, replaces: [label]}";
    struct weir_error error;
    struct weir_rules *r = rules_open("limits: [{name: a, key: [], rate: 1/s, label: label}]");
    const char *told = rules_complaint("limits: [{name: a, key: [], rate: 1/s, label: label},"
                                       " {name: b, key: [], rate: 1/s, replaces: [lable]}]");
    assert_non_null(strstr(told, "found 'lable' in 'replaces' of limit 'b', expected the name or "
                                 "label of another limit; did you mean 'label'?"));
    assert_int_equal(weir_rules_put(r, refused, strlen(refused), &error), WEIR_ERULES);
    assert_int_equal(weir_rules_put(r, good, strlen(good), &error), 0);
    assert_int_equal(weir_rules_remove(r, "a", &error), 0);
    weir_rules_close(r);
}

static void of_a_group_the_first_that_applies_counts(void **state)
{
    struct weir_rules *r =
        rules_open("limits:\n"
                   "- {name: all, key: [], rate: 9/s}\n"
                   "- {name: first, when: {path: /a/**}, key: [], rate: 5/s, group: g}\n"
                   "- {name: second, when: {path: /**}, key: [], rate: 3/s, group: g}\n"
                   "- {name: third, key: [], rate: 1/s, group: g}");
    assert_limit(r, "path=/a/x", "first"); /* 5 is scarcer than 9 */
    assert_limit(r, "path=/b", "second");
    assert_limit(r, "user=x", "third");
    assert_int_equal(rules_peek(r, T0, "path=/a/x").applied, 2);
    weir_rules_close(r);
}

static void a_limit_without_its_key_leaves_the_group_to_the_next(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: user, key: [user], rate: 5/s, group: g}\n"
                                      "- {name: ip, key: [ip], rate: 3/s, group: g}");
    assert_limit(r, "user=alice ip=192.0.2.1", "user");
    assert_limit(r, "ip=192.0.2.1", "ip");
    assert_limit(r, "user= ip=192.0.2.1", "ip"); /* an empty value is none */
    weir_rules_close(r);
}

static void the_first_attribute_present_is_the_key_and_alternatives_never_meet(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user|api_key|ip], rate: 2/h}]");
    assert_int_equal(rules_allowed(r, T0, "user=alice ip=192.0.2.1", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "user=alice ip=192.0.2.9", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "api_key=alice ip=192.0.2.1", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "ip=192.0.2.1", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "user=192.0.2.1", 3), 2);
    weir_rules_close(r);
}

static void parts_of_a_key_do_not_run_into_each_other(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [a, b], rate: 1/h}]");
    assert_int_equal(rules_allowed(r, T0, "a=ab b=c", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "a=a b=bc", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "a=1:b b=c", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "a=ab b=c", 1), 0);
    weir_rules_close(r);
}

static void a_missing_key_is_skipped_and_counted_or_refused(void **state)
{
    struct weir_rules *r =
        rules_open("limits:\n"
                   "- {name: soft, when: {path: /a}, key: [user], rate: 1/h}\n"
                   "- {name: hard, when: {path: /b}, key: [user], rate: 1/h, on_missing: deny}");
    struct weir_rules_answer a = rules_ask(r, T0, "path=/a");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_int_equal(a.reason, WEIR_REASON_UNMATCHED);
    assert_int_equal(a.missing, 1);
    a = rules_ask(r, T0, "path=/b");
    assert_int_equal(a.answer.verdict, WEIR_NEVER);
    assert_int_equal(a.reason, WEIR_REASON_MISSING);
    assert_string_equal(a.limit, "hard");
    assert_true(a.answer.retry_after_ns == WEIR_FOREVER);
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(r, &stats), 0);
    assert_int_equal(stats.missing, 2);
    assert_int_equal(stats.unmatched, 1);
    weir_rules_close(r);
}

static void block_beats_allow_beats_limits(void **state)
{
    struct weir_rules *r = rules_open("allow: [{ip: [10.0.0.0/8, '2001:db8::/32']}, {path: /ok}]\n"
                                      "block: [{user: [mallory, 'bot-*']}, {ip: 10.6.6.6}]\n"
                                      "limits: [{name: l, key: [], rate: 1/h}]");
    struct weir_rules_answer a = rules_ask(r, T0, "ip=10.1.2.3 user=mallory");
    assert_int_equal(a.reason, WEIR_REASON_BLOCK_LIST);
    assert_int_equal(a.answer.verdict, WEIR_NEVER);
    assert_int_equal(rules_ask(r, T0, "user=bot-7").reason, WEIR_REASON_BLOCK_LIST);
    assert_int_equal(rules_ask(r, T0, "ip=10.6.6.6").reason, WEIR_REASON_BLOCK_LIST);
    assert_int_equal(rules_allowed(r, T0, "ip=10.1.2.3", 5), 5);
    assert_int_equal(rules_allowed(r, T0, "ip=::ffff:10.1.2.3", 5), 5);
    assert_int_equal(rules_allowed(r, T0, "ip=2001:db8::9", 5), 5);
    assert_int_equal(rules_allowed(r, T0, "path=/ok", 5), 5);
    a = rules_ask(r, T0, "path=//ok/");
    assert_int_equal(a.reason, WEIR_REASON_ALLOW_LIST);
    assert_true(a.answer.remaining == WEIR_UNLIMITED);
    assert_int_equal(rules_allowed(r, T0, "ip=11.1.2.3", 5), 1);
    weir_rules_close(r);
}

static void no_limit_means_allowed_and_counted(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, when: {path: /a}, key: [], rate: 1/h}]");
    struct weir_rules_answer a = rules_ask(r, T0, "path=/b");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_int_equal(a.reason, WEIR_REASON_UNMATCHED);
    assert_string_equal(a.limit, "");
    assert_true(a.answer.remaining == WEIR_UNLIMITED);
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(r, &stats), 0);
    assert_int_equal(stats.unmatched, 1);
    assert_int_equal(stats.asked, 1);
    weir_rules_close(r);
}

static void of_limits_that_say_the_same_the_first_in_the_file_is_named(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: a, key: [user], rate: 1/h}\n"
                                      "- {name: b, key: [], rate: 1/h}");
    assert_string_equal(rules_ask(r, T0, "user=alice").limit, "a");
    struct weir_rules_answer denied = rules_ask(r, T0, "user=alice");
    assert_int_equal(denied.answer.verdict, WEIR_DENY);
    assert_string_equal(denied.limit, "a");
    assert_limit(r, "user=bob", "b"); /* it alone denies him */
    weir_rules_close(r);
}

static void several_limits_are_charged_together_or_not_at_all(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: fast, key: [user], rate: 10/s}\n"
                                      "- {name: slow, key: [user], rate: 12/h}");
    assert_int_equal(rules_allowed(r, T0, "user=a", 11), 10);
    assert_string_equal(rules_ask(r, T0, "user=a").limit, "fast");
    assert_int_equal(rules_allowed(r, T0 + WEIR_SECOND, "user=a", 11), 2);
    struct weir_rules_answer a = rules_ask(r, T0 + WEIR_SECOND, "user=a");
    assert_string_equal(a.limit, "slow");
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_int_equal(a.applied, 2);
    /* Denied by the slow one: the fast one was not charged. */
    a = rules_ask(r, T0 + 301 * WEIR_SECOND, "user=a");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    weir_rules_close(r);
}

static void cost_is_the_rules_or_the_requests(void **state)
{
    struct weir_rules *r =
        rules_open("limits:\n"
                   "- {name: fixed, when: {path: /f}, key: [], rate: 10/h, cost: 4}\n"
                   "- {name: asked, when: {path: /a}, key: [], rate: 10/h}\n"
                   "- {name: read, when: {path: /r}, key: [], rate: 10/h, cost: 'attribute:n'}");
    assert_int_equal(rules_ask_cost(r, T0, "path=/f", 9).answer.remaining, 6);
    assert_int_equal(rules_ask_cost(r, T0, "path=/a", 9).answer.remaining, 1);
    assert_int_equal(rules_ask_cost(r, T0, "path=/r n=3", 9).answer.remaining, 7);
    assert_int_equal(rules_ask_cost(r, T0, "path=/r n=11", 1).answer.verdict, WEIR_NEVER);
    struct weir_error error;
    static const char *const bad[] = {"path=/r",      "path=/r n=0",
                                      "path=/r n=-1", "path=/r n=1.5",
                                      "path=/r n=x",  "path=/r n=99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(rules_refusal(r, bad[i], &error), WEIR_EATTRIBUTE);
        assert_non_null(strstr(error.text, "n: "));
    }
    assert_int_equal(rules_peek(r, T0, "path=/r n=1").answer.remaining, 7);
    weir_rules_close(r);
}

static void shadow_limits_never_deny_and_are_charged_only_by_what_passes(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: real, key: [], rate: 3/h}\n"
                                      "- {name: dark, key: [], rate: 2/h, shadow: true}\n"
                                      "- {name: gone, key: [], rate: 1/h, shadow: true}");
    struct weir_rules_answer a = rules_ask(r, T0, "");
    assert_int_equal(a.shadow_denied, 0);
    a = rules_ask(r, T0, "");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_int_equal(a.shadow_denied, 1);
    assert_string_equal(a.shadow, "gone");
    assert_string_equal(a.limit, "real");
    assert_true((a.answer.flags & WEIR_FLAG_SHADOW) != 0);
    a = rules_ask(r, T0, "");
    assert_int_equal(a.shadow_denied, 2);
    assert_string_equal(a.shadow, "dark");
    a = rules_ask(r, T0, ""); /* denied by the real one: the others are not even asked */
    assert_int_equal(a.answer.verdict, WEIR_DENY);
    assert_int_equal(a.shadow_denied, 0);
    weir_rules_close(r);
}

static void a_shadow_limit_does_not_take_the_place_of_an_enforced_one_in_a_group(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: dark, key: [], rate: 1/h, shadow: true, group: g}\n"
                                      "- {name: real, key: [], rate: 2/h, group: g}\n"
                                      "- {name: late, key: [], rate: 1/h, group: g}");
    assert_int_equal(rules_allowed(r, T0, "", 5), 2);
    assert_string_equal(rules_peek(r, T0, "").limit, "real");
    weir_rules_close(r);
}

static void attributes_come_from_headers_queries_in_the_order_of_the_file(void **state)
{
    struct weir_rules *r = rules_open("attributes: {user: ['header:X-User', 'query:u']}\n"
                                      "limits: [{name: l, key: [user], rate: 1/h}]");
    assert_int_equal(rules_allowed(r, T0, "header:x-user=alice query:u=bob", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "header:X-USER=alice", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "user=alice", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "query:u=bob", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "header:x-user=alice user=carol", 2), 1);
    assert_int_equal(rules_ask(r, T0, "query:U=dave").reason, WEIR_REASON_UNMATCHED);
    weir_rules_close(r);
}

static void bad_attributes_are_errors_and_charge_nothing(void **state)
{
    struct weir_rules *r = rules_open(
        "limits:\n"
        "- {name: all, key: [], rate: 9/h}\n"
        "- {name: l, when: {path: /**, host: h, method: M}, key: [ip, user], rate: 9/h}");
    static const char *const bad[] = {"ip=not-an-address", "ip=192.0.2.256", "ip=010.0.0.1",
                                      "path=/a%2f..%2fb",  "path=/a/..;/b",  "path=/%00",
                                      "host=a,b",          "host=u@h",       "user=a user=b"};
    struct weir_error error;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (rules_refusal(r, bad[i], &error) != WEIR_EATTRIBUTE) {
            fail_msg("%s: %d", bad[i], error.code);
        }
        assert_non_null(strchr(error.text, ':'));
    }
    assert_int_equal(rules_ask(r, T0, "path=/x").answer.remaining, 8);
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(r, &stats), 0);
    assert_int_equal(stats.bad, sizeof bad / sizeof bad[0]);
    weir_rules_close(r);
}

static void a_key_longer_than_the_engine_takes_is_an_error(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [a, b], rate: 9/h}]");
    static char value[WEIR_RULES_VALUE_MAX];
    memset(value, 'x', sizeof value);
    struct weir_rules_attribute with[] = {{"a", 1, value, sizeof value},
                                          {"b", 1, value, sizeof value}};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 2};
    struct weir_rules_answer a;
    struct weir_error error;
    assert_int_equal(weir_rules_ask_at(r, &q, T0, &a, &error), WEIR_EATTRIBUTE);
    with[1].value_len = 1;
    with[0].value_len = 4000;
    assert_int_equal(weir_rules_ask_at(r, &q, T0, &a, &error), 0);
    with[0].value_len = 65536; /* not even read */
    assert_int_equal(weir_rules_ask_at(r, &q, T0, &a, &error), WEIR_EATTRIBUTE);
    weir_rules_close(r);
}

static void ipv6_counts_by_its_network_and_ipv4_never_does(void **state)
{
    struct weir_rules *r =
        rules_open("limits:\n"
                   "- {name: l, when: {path: /d}, key: [ip], rate: 2/h}\n"
                   "- {name: w, when: {path: /w}, key: [ip], rate: 2/h, ipv6_prefix: 48, "
                   "ipv4_prefix: 24}");
    assert_int_equal(rules_allowed(r, T0, "path=/d ip=2001:db8:0:1::1", 1), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/d ip=2001:DB8:0:1:ffff::9", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/d ip=2001:db8:0:2::1", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "path=/d ip=::ffff:192.0.2.1", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "path=/d ip=192.0.2.1", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/d ip=::ffff:192.0.2.2", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "path=/w ip=2001:db8:0:1::1", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "path=/w ip=2001:db8:0:2::1", 3), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/w ip=192.0.2.1", 3), 2);
    assert_int_equal(rules_allowed(r, T0, "path=/w ip=192.0.2.200", 3), 0);
    weir_rules_close(r);
}

static void more_limits_than_can_be_decided_at_once_are_an_error(void **state)
{
    static char yaml[8192] = "limits:\n";
    for (int i = 0; i < WEIR_SEVERAL_MAX + 1; i++) {
        char line[100];
        (void)snprintf(line, sizeof line,
                       "- {name: l%d, when: {path: /x}, key: [user], rate: 1/s}\n", i);
        strcat(yaml, line);
    }
    struct weir_rules *r = rules_open(yaml);
    struct weir_error error;
    assert_int_equal(rules_refusal(r, "path=/x user=a", &error), WEIR_EINVAL);
    assert_int_equal(rules_refusal(r, "path=/x", &error), 0); /* their key is missing */
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_keys_of_when_must_hold_and_one_of_their_values),
        cmocka_unit_test(a_star_stays_in_its_segment_and_two_cross),
        cmocka_unit_test(unless_takes_requests_out),
        cmocka_unit_test(unless_may_be_a_list_of_which_one_entry_must_hold),
        cmocka_unit_test(windows_of_seven_days_may_begin_with_the_epoch),
        cmocka_unit_test(epochs_are_for_windows_on_the_clock_only),
        cmocka_unit_test(a_limit_replaces_others_by_name_or_label),
        cmocka_unit_test(a_limit_cannot_replace_a_name_that_no_limit_has),
        cmocka_unit_test(of_a_group_the_first_that_applies_counts),
        cmocka_unit_test(a_limit_without_its_key_leaves_the_group_to_the_next),
        cmocka_unit_test(the_first_attribute_present_is_the_key_and_alternatives_never_meet),
        cmocka_unit_test(parts_of_a_key_do_not_run_into_each_other),
        cmocka_unit_test(a_missing_key_is_skipped_and_counted_or_refused),
        cmocka_unit_test(block_beats_allow_beats_limits),
        cmocka_unit_test(no_limit_means_allowed_and_counted),
        cmocka_unit_test(of_limits_that_say_the_same_the_first_in_the_file_is_named),
        cmocka_unit_test(several_limits_are_charged_together_or_not_at_all),
        cmocka_unit_test(cost_is_the_rules_or_the_requests),
        cmocka_unit_test(shadow_limits_never_deny_and_are_charged_only_by_what_passes),
        cmocka_unit_test(a_shadow_limit_does_not_take_the_place_of_an_enforced_one_in_a_group),
        cmocka_unit_test(attributes_come_from_headers_queries_in_the_order_of_the_file),
        cmocka_unit_test(bad_attributes_are_errors_and_charge_nothing),
        cmocka_unit_test(a_key_longer_than_the_engine_takes_is_an_error),
        cmocka_unit_test(ipv6_counts_by_its_network_and_ipv4_never_does),
        cmocka_unit_test(more_limits_than_can_be_decided_at_once_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
