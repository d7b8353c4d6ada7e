/* Limits that a fleet decides: what it is asked, and the answer that comes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rules/faked_world.h"

static const struct weir_rules_question plain;

/* ---- the question ---- */

static void a_limit_of_the_fleet_is_answered_later_and_once(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits: [{name: l, key: [user], rate: 2/h, retry_jitter: 5%}]");
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_int_equal(w.done, 0);
    assert_ptr_equal(fake_where(&w.fleet), &w);
    assert_string_equal(w.fleet.told[0], "l  u 1");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 1);
    assert_int_equal(w.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(w.answer.answer.remaining, 1);
    assert_int_equal(w.answer.reason, WEIR_REASON_LIMIT);
    assert_int_equal(w.answer.applied, 1);
    assert_string_equal(w.answer.limit, "l");
    assert_string_equal(w.answer.tier, "");
    assert_int_equal(w.answer.window_ns, WEIR_HOUR);
    assert_int_equal(w.answer.retry_jitter, 500);
    assert_int_equal(faked_settle(&w, "user=u")->answer.verdict, WEIR_ALLOW);
    assert_int_equal(faked_settle(&w, "user=u")->answer.verdict, WEIR_DENY);
    assert_int_equal(w.done, 3);
    faked_end(&w);
}

static void a_fleet_that_answers_at_once_is_answered_at_once(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: l, key: [user], rate: 1/h, consistency: leased}\n"
                    "- {name: s, key: [user], rate: 1/h, cost: 2, shadow: true}\n");
    w.fleet.plan.at_once = 1;
    assert_int_equal(faked_ask(&w, "user=u"), 1);
    assert_string_equal(w.answer.limit, "l");
    assert_string_equal(w.answer.shadow, "s");
    assert_int_equal(w.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(faked_ask(&w, "user=u"), 1);
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_int_equal(w.done, 0);
    assert_string_equal(w.denied, "l u");
    faked_end(&w);
}

static void what_no_limit_of_the_fleet_applies_to_is_answered_at_once(void **state)
{
    struct faked_world w;
    faked_begin(&w, "block: [{user: eve}]\n"
                    "limits:\n"
                    "- {name: f, when: {path: /f}, key: [user], rate: 1/h}\n"
                    "- {name: m, when: {path: /m}, key: [user], rate: 1/h, on_missing: deny}\n"
                    "- {name: l, when: {path: /l}, key: [user], rate: 1/h, consistency: local}\n");
    assert_int_equal(faked_ask(&w, "path=/l user=u"), 1);
    assert_string_equal(w.answer.limit, "l");
    assert_int_equal(faked_ask(&w, "path=/x user=u"), 1);
    assert_int_equal(w.answer.reason, WEIR_REASON_UNMATCHED);
    assert_int_equal(faked_ask(&w, "path=/f user=eve"), 1);
    assert_int_equal(w.answer.reason, WEIR_REASON_BLOCK_LIST);
    assert_int_equal(faked_ask(&w, "path=/m"), 1);
    assert_int_equal(w.answer.reason, WEIR_REASON_MISSING);
    assert_int_equal(w.fleet.asked, 0);
    assert_int_equal(rules_ask(w.rules, RULES_T0, "path=/l user=v").answer.verdict, WEIR_ALLOW);
    faked_end(&w);
}

static void who_cannot_wait_is_told_so(void **state)
{
    struct faked_world w;
    struct weir_error error;
    faked_begin(&w, "limits: [{name: l, key: [], rate: 1/h}]");
    assert_int_equal(rules_refusal(w.rules, "user=u", &error), WEIR_ENOTSUP);
    assert_string_equal(error.text,
                        "limit 'l' is decided by a fleet, which answers later: expected "
                        "weir_rules_ask_async()");
    assert_int_equal(w.fleet.asked, 0);
    assert_int_equal(faked_stats(&w).bad, 1);
    faked_end(&w);
}

static void limits_that_apply_are_asked_in_one_question(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: a, key: [user], rate: 5/h}\n"
                    "- {name: here, key: [user], rate: 2/h, consistency: local}\n"
                    "- {name: b, key: [], rate: 3/h, cost: 3}\n");
    assert_string_equal(faked_settle(&w, "user=u")->limit, "b");
    assert_int_equal(w.fleet.asked, 1);
    assert_int_equal(w.fleet.last.n, 3);
    assert_int_equal(w.fleet.last.now_ns, RULES_T0);
    assert_string_equal(w.fleet.told[0], "a  u 1");
    assert_string_equal(w.fleet.told[1], "-  u 1");
    assert_string_equal(w.fleet.told[2], "b  * 3");
    assert_int_equal(faked_settle(&w, "user=u")->answer.verdict, WEIR_DENY);
    assert_string_equal(w.answer.limit, "b");
    assert_string_equal(w.denied, "b *");
    assert_int_equal(w.answer.applied, 3);
    faked_end(&w);
}

static void a_limit_that_is_decided_here_may_be_the_one_that_binds(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: a, key: [user], rate: 5/h}\n"
                    "- {name: here, key: [ip], rate: 1/h, consistency: local}\n");
    assert_int_equal(faked_settle(&w, "user=u ip=192.0.2.1")->answer.verdict, WEIR_ALLOW);
    assert_int_equal(faked_settle(&w, "user=u ip=192.0.2.1")->answer.verdict, WEIR_DENY);
    assert_string_equal(w.answer.limit, "here");
    assert_string_equal(w.denied, "here 192.0.2.1");
    faked_end(&w);
}

static void each_state_has_a_name_of_its_own(void **state)
{
    char path[] = "/tmp/weir-out-XXXXXX";
    char yaml[500];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "user,rate\nbig,50/min\n", 21), 21);
    (void)close(fd);
    struct faked_world w;
    (void)snprintf(yaml, sizeof yaml,
                   "limits:\n"
                   "- name: l\n"
                   "  key: [user]\n"
                   "  rate: 9/min\n"
                   "  tiers: {by: tier, pro: {rate: 20/min}}\n"
                   "  overrides: {by: user, file: %s}\n",
                   path);
    faked_begin(&w, yaml);
    assert_non_null(fake_find(&w.fleet, "l"));
    assert_non_null(fake_find(&w.fleet, "l/pro"));
    assert_non_null(fake_find(&w.fleet, "l=50-60000000000-50"));
    assert_string_equal(faked_settle(&w, "user=u tier=pro")->tier, "pro");
    assert_int_equal(w.answer.answer.quota, 20);
    assert_int_equal(faked_settle(&w, "user=big tier=pro")->answer.quota, 50);
    assert_int_equal(faked_settle(&w, "user=u tier=no")->answer.quota, 9);
    assert_int_equal(faked_stats(&w).tier_unknown, 1);
    faked_end(&w);
    (void)unlink(path);
}

static void what_a_limit_says_of_the_store_reaches_the_fleet(void **state)
{
    struct faked_world w;
    faked_begin(&w,
                "limits:\n"
                "- {name: a, key: [], rate: 7/s, burst: 9, consistency: leased, on_store_failure: "
                "closed, deny_cache: off}\n"
                "- {name: b, key: [], rate: 7/s, algorithm: fixed_window, align: key, consistency: "
                "synced, sync: 20ms, deny_cache: 3s, on_store_failure: open}\n");
    const struct remote_spec *a = &fake_find(&w.fleet, "a")->spec;
    const struct remote_spec *b = &fake_find(&w.fleet, "b")->spec;
    assert_int_equal(a->mode, REMOTE_LEASED);
    assert_int_equal(a->on_failure, REMOTE_FAIL_CLOSED);
    assert_int_equal(a->deny_cache_ns, 0);
    assert_int_equal(a->sync_ns, 100 * WEIR_MILLISECOND);
    assert_int_equal(a->options.count, 7);
    assert_int_equal(a->options.burst, 9);
    assert_int_equal(b->mode, REMOTE_SYNCED);
    assert_int_equal(b->on_failure, REMOTE_FAIL_OPEN);
    assert_int_equal(b->deny_cache_ns, 3 * WEIR_SECOND);
    assert_int_equal(b->sync_ns, 20 * WEIR_MILLISECOND);
    assert_int_equal(b->options.algorithm, WEIR_FIXED_WINDOW);
    assert_int_equal(b->options.align, WEIR_ALIGN_KEY);
    faked_end(&w);
}

static void limits_that_shard_by_the_same_have_the_same_shard(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: a, key: [tenant, user], rate: 5/h, shard_by: [tenant]}\n"
                    "- {name: b, key: [tenant], rate: 5/h, shard_by: [tenant]}\n"
                    "- {name: c, key: [ip, tenant, user], rate: 5/h, shard_by: [tenant, user]}\n"
                    "- {name: d, key: [ip, tenant], rate: 5/h, shard_by: [ip]}\n");
    (void)faked_settle(&w, "tenant=t1 user=u ip=1.2.3.4");
    assert_string_equal(w.fleet.told[0], "a t1 2:t11:u 1");
    assert_string_equal(w.fleet.told[1], "b t1 t1 1");
    assert_memory_equal(w.fleet.told[2], "c 2:t11:u 5:\x04\x01\x02\x03\x04", 17);
    assert_memory_equal(w.fleet.told[3], "d \x04\x01\x02\x03\x04 5:", 10);
    faked_end(&w);
}

static void costs_are_those_of_the_limit_or_of_the_request(void **state)
{
    struct faked_world w;
    struct weir_error error;
    faked_begin(&w, "limits:\n"
                    "- {name: a, key: [], rate: 100/h, cost: 'attribute:size'}\n"
                    "- {name: b, key: [], rate: 100/h}\n");
    assert_int_equal(faked_ask_with(&w, "size=7", (struct weir_rules_question){.cost = 3}), 0);
    assert_string_equal(w.fleet.told[0], "a  * 7");
    assert_string_equal(w.fleet.told[1], "b  * 3");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(faked_refusal(&w, "size=x", plain, &error), WEIR_EATTRIBUTE);
    assert_non_null(strstr(error.text, "size: found 'x'"));
    assert_int_equal(w.fleet.asked, 1);
    assert_int_equal(w.done, 1);
    faked_end(&w);
}

static void max_wait_goes_along_if_a_limit_can_wait(void **state)
{
    static const char *const requests[] = {"path=/", "path=/b", "path=/c"};
    struct faked_world w;
    struct weir_error error;
    struct weir_rules_question q = {.max_wait_ns = 5 * WEIR_SECOND};
    faked_begin(&w, "limits:\n"
                    "- {name: a, unless: {path: /window}, key: [], rate: 100/h}\n"
                    "- {name: b, when: {path: /b}, key: [], rate: 100/h}\n"
                    "- {name: c, when: {path: [/c, /window]}, key: [], rate: 100/h,"
                    " algorithm: fixed_window}\n");
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        w.fleet.last.time_ns = 0;
        assert_int_equal(faked_ask_with(&w, requests[i], q), 0);
        assert_int_equal(w.fleet.last.time_ns, 5 * WEIR_SECOND);
        assert_true(fake_answer(&w.fleet));
    }
    assert_int_equal(faked_refusal(&w, "path=/window", q, &error), WEIR_ENOTSUP);
    assert_string_equal(error.text,
                        "found max_wait, but no limit that applies is a token_bucket or "
                        "leaky_bucket: others cannot wait");
    faked_end(&w);
}

static void a_peek_takes_and_tells_nothing(void **state)
{
    struct faked_world w;
    struct weir_rules_question q = {.mode = WEIR_PEEK};
    faked_begin(&w, "limits:\n"
                    "- {name: l, key: [], rate: 1/h}\n"
                    "- {name: s, key: [], rate: 1/h, shadow: true, cost: 2}\n");
    assert_int_equal(faked_ask_with(&w, "", q), 0);
    assert_int_equal(w.fleet.last.verb, REMOTE_PEEK);
    while (fake_answer(&w.fleet)) {
    }
    assert_int_equal(w.answer.answer.remaining, 1);
    assert_string_equal(w.answer.shadow, "s");
    assert_int_equal(faked_settle(&w, "")->answer.verdict, WEIR_ALLOW);
    assert_int_equal(faked_ask_with(&w, "", q), 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_int_equal(w.denials, 0);
    faked_end(&w);
}

static void an_error_of_the_fleet_is_the_answer(void **state)
{
    struct faked_world w;
    struct weir_error error;
    faked_begin(&w, "limits: [{name: l, key: [], rate: 1/h}]");
    w.fleet.plan.refuse = WEIR_ETIME;
    assert_int_equal(faked_refusal(&w, "", plain, &error), WEIR_ETIME);
    assert_string_equal(error.text, weir_strerror(WEIR_ETIME));
    assert_int_equal(w.done, 0);
    w.fleet.plan.refuse = 0;
    assert_int_equal(faked_ask(&w, ""), 0);
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(w.done, 1);
    assert_int_equal(w.error, WEIR_EIO);
    assert_int_equal(faked_stats(&w).asked, 2);
    assert_int_equal(faked_stats(&w).bad, 2);
    faked_end(&w);
}

static void without_a_function_to_call_nothing_is_asked(void **state)
{
    struct faked_world w;
    struct weir_error error;
    faked_begin(&w, "limits: []");
    assert_int_equal(rules_ask_async(w.rules, NULL, "", plain, &w.answer, NULL, &w, &error),
                     WEIR_EINVAL);
    assert_ptr_equal(weir_rules_fleet(w.rules), fake_of(&w.fleet));
    assert_null(weir_rules_fleet(NULL));
    faked_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_of_the_fleet_is_answered_later_and_once),
        cmocka_unit_test(a_fleet_that_answers_at_once_is_answered_at_once),
        cmocka_unit_test(what_no_limit_of_the_fleet_applies_to_is_answered_at_once),
        cmocka_unit_test(who_cannot_wait_is_told_so),
        cmocka_unit_test(limits_that_apply_are_asked_in_one_question),
        cmocka_unit_test(a_limit_that_is_decided_here_may_be_the_one_that_binds),
        cmocka_unit_test(each_state_has_a_name_of_its_own),
        cmocka_unit_test(what_a_limit_says_of_the_store_reaches_the_fleet),
        cmocka_unit_test(limits_that_shard_by_the_same_have_the_same_shard),
        cmocka_unit_test(costs_are_those_of_the_limit_or_of_the_request),
        cmocka_unit_test(max_wait_goes_along_if_a_limit_can_wait),
        cmocka_unit_test(a_peek_takes_and_tells_nothing),
        cmocka_unit_test(an_error_of_the_fleet_is_the_answer),
        cmocka_unit_test(without_a_function_to_call_nothing_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
