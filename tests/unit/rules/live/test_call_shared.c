/* Calls of several descriptors of which a fleet decides at least one limit: answers come later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/faked_call.h"

/* Limits of the fleet with as many units as the letter says, and one of this node. */
#define LETTERS                                                                                    \
    "limits:\n"                                                                                    \
    "- {name: a, key: [a], rate: 1/h}\n"                                                           \
    "- {name: b, key: [b], rate: 2/h}\n"                                                           \
    "- {name: c, key: [c], rate: 3/h}\n"                                                           \
    "- {name: q, key: [q], rate: 2/h, quota_mode: true}\n"                                         \
    "- {name: r, key: [r], rate: 2/h, quota_mode: true}\n"                                         \
    "- {name: s, key: [s], rate: 1/h, shadow: true}\n"                                             \
    "- {name: here, key: [here], rate: 4/h, consistency: local}\n"

static const char *told(struct faked_world *w, const char *words)
{
    return faked_call_settle(w, w->rules, words);
}

static struct faked_call begin(struct faked_world *w)
{
    faked_begin(w, LETTERS);
    return faked_call_init();
}

static void end(struct faked_world *w, struct faked_call *c)
{
    faked_call_finish(c);
    faked_end(w);
}

/* Lets the fleet decide the built-in limit. The test releases it. */
static void share_adhoc(struct faked_world *w, struct faked_call *c)
{
    const struct remote_spec spec = {
        .name = TEXT("adhoc"), .options = {.count = 1}, .mode = REMOTE_EXACT, .any_rate = true};
    const struct remote_ops *ops = remote_ops(fake_of(&w->fleet));
    assert_int_equal(ops->open(fake_of(&w->fleet), &spec, &c->call.adhoc_remote, NULL), 0);
}

/* ---- stages ---- */

static void the_group_is_one_question_and_the_others_are_peeked_at_after_it(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    faked_call_ask(&c, w.rules, &w, "b=x; c=x; here=x");
    assert_int_equal(fake_out(&w.fleet), 1);
    assert_int_equal(w.fleet.last.verb, REMOTE_CHECK);
    assert_int_equal(w.fleet.last.n, 3);
    assert_ptr_equal(fake_where(&w.fleet), &w);
    assert_string_equal(w.fleet.told[0], "b  x 1");
    assert_string_equal(w.fleet.told[1], "c  x 1");
    assert_string_equal(w.fleet.told[2], "-  x 1");
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(faked_call_told(&c), "pending");
    assert_int_equal(fake_out(&w.fleet), 1);
    assert_int_equal(w.fleet.last.verb, REMOTE_PEEK);
    assert_string_equal(w.fleet.told[0], "c  x 1");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(c.done, 1);
    assert_string_equal(faked_call_told(&c), "allow b: allow 1, allow 2, allow 3");
    end(&w, &c);
}

static void a_call_that_the_fleet_answers_at_once_is_answered_at_once(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    w.fleet.plan.at_once = 1;
    assert_string_equal(told(&w, "a=x; q=x; s=x"), "allow a: allow 0, allow 1, allow 0");
    assert_string_equal(told(&w, "a=x; q=x; s=x"), "deny a: deny 0, allow 1, allow 0");
    assert_string_equal(w.denied, "a x");
    assert_int_equal(w.denials, 1);
    end(&w, &c);
}

static void answers_may_come_in_any_order_and_partly_at_once(void **state)
{
    for (unsigned at_once = 0; at_once < 4; at_once++) {
        for (unsigned newest = 0; newest < 2; newest++) {
            struct faked_world w;
            struct faked_call c = begin(&w);
            w.fleet.plan.at_once = at_once;
            faked_call_ask(&c, w.rules, &w, "q=x; r=x +2; c=x +2; b=x; s=x; here=x +4; b=y +0");
            while (newest != 0 ? fake_answer_newest(&w.fleet) : fake_answer(&w.fleet)) {
            }
            assert_int_equal(c.done, c.result == RULES_PENDING);
            assert_string_equal(faked_call_told(&c), "allow r: allow 1, allow 0, allow 1, allow 1, "
                                                     "allow 0, allow 0, allow 2");
            assert_int_equal(w.denials, 0);
            end(&w, &c);
        }
    }
}

static void a_look_denies_before_the_group_is_asked(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    assert_string_equal(told(&w, "a=x"), "allow a: allow 0");
    assert_string_equal(told(&w, "a=x +0; b=x; q=x"), "deny a: deny 0, allow 2, allow 2");
    assert_int_equal(fake_find(&w.fleet, "b")->left, 2);
    assert_int_equal(fake_find(&w.fleet, "q")->left, 2);
    assert_int_equal(w.denials, 0);
    end(&w, &c);
}

static void the_same_key_twice_is_one_part_of_the_question(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    faked_call_ask(&c, w.rules, &w, "c=x +2; c=x");
    assert_int_equal(w.fleet.last.n, 1);
    assert_string_equal(w.fleet.told[0], "c  x 3");
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(faked_call_told(&c), "allow c: allow 0, allow 0");
    end(&w, &c);
}

/* ---- quota_mode, refunds, charge: each ---- */

static void units_of_quota_mode_come_back_if_the_group_denies(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    assert_string_equal(told(&w, "q=x; a=x"), "allow a: allow 1, allow 0");
    faked_call_ask(&c, w.rules, &w, "q=x; r=x +3; a=x");
    assert_int_equal(fake_out(&w.fleet), 2);
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(fake_find(&w.fleet, "q")->left, 0);
    assert_true(fake_answer(&w.fleet)); /* the group */
    assert_int_equal(w.fleet.last.verb, REMOTE_REFUND);
    assert_int_equal(fake_out(&w.fleet), 1);
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(faked_call_told(&c), "deny a: allow 1, deny 0, deny 0");
    assert_int_equal(fake_find(&w.fleet, "q")->left, 1);
    assert_string_equal(w.denied, "a x");
    assert_int_equal(w.denials, 1);
    end(&w, &c);
}

static void a_call_is_denied_also_if_the_store_loses_the_refund(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    (void)told(&w, "a=x");
    faked_call_ask(&c, w.rules, &w, "q=x; a=x");
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.fleet.last.verb, REMOTE_REFUND);
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(c.done, 1);
    assert_string_equal(faked_call_told(&c), "deny a: allow 1, deny 0");
    assert_int_equal(faked_stats(&w).bad, 0);
    end(&w, &c);
}

static void limits_that_are_charged_each_take_what_there_is(void **state)
{
    struct faked_world w;
    faked_begin(&w, "envoy: {charge: each}\n" LETTERS);
    assert_string_equal(told(&w, "c=x +2; a=x"), "allow a: allow 1, allow 0");
    assert_string_equal(told(&w, "c=x +2; b=x"), "deny c: deny 0, allow 1");
    assert_int_equal(fake_find(&w.fleet, "c")->left, 0);
    assert_string_equal(w.denied, "c x");
    assert_string_equal(told(&w, "c=x -2"), "allow c: allow 2");
    faked_end(&w);
}

/* ---- errors ---- */

static void an_error_ends_the_call_once_when_all_parts_have_answered(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    faked_call_ask(&c, w.rules, &w, "q=x; r=x; b=x; q=y +0");
    assert_int_equal(fake_out(&w.fleet), 3);
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_string_equal(faked_call_told(&c), "pending");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(c.done, 0);
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(c.done, 1);
    assert_int_equal(c.call.error, WEIR_EIO);
    assert_int_equal(fake_out(&w.fleet), 0);
    assert_int_equal(fake_find(&w.fleet, "b")->left, 2);
    assert_int_equal(faked_stats(&w).bad, 1);
    assert_int_equal(faked_stats(&w).asked, 4);
    end(&w, &c);
}

static void an_error_at_once_waits_for_parts_that_are_pending(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    w.fleet.plan = (struct fake_plan){.refuse = WEIR_ETIME, .allowed = 2};
    faked_call_ask(&c, w.rules, &w, "q=x; r=x; q=y; b=x");
    assert_int_equal(c.result, RULES_PENDING);
    assert_int_equal(fake_out(&w.fleet), 2);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(c.done, 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(c.done, 1);
    assert_int_equal(c.call.error, WEIR_ETIME);
    assert_int_equal(w.fleet.asked, 3);
    end(&w, &c);
}

static void an_error_at_once_is_the_result_if_nothing_is_pending(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    w.fleet.plan.refuse = WEIR_ETIME;
    faked_call_ask(&c, w.rules, &w, "q=x; r=x; b=x");
    assert_int_equal(c.result, WEIR_ETIME);
    assert_string_equal(c.error.text, weir_strerror(WEIR_ETIME));
    assert_int_equal(c.done, 0);
    end(&w, &c);
}

static void an_error_of_the_group_is_that_of_the_call(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    faked_call_ask(&c, w.rules, &w, "b=x; c=x; s=x");
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(c.done, 1);
    assert_int_equal(c.call.error, WEIR_EIO);
    end(&w, &c);
}

static void errors_after_the_decision_do_not_change_it(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    faked_call_ask(&c, w.rules, &w, "b=x; c=x; s=x");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(fake_out(&w.fleet), 2); /* a peek at c, and the shadow limit */
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(c.done, 1);
    assert_string_equal(faked_call_told(&c), "allow b: allow 1, allow -, allow -");
    assert_int_equal(faked_stats(&w).shadow_failed, 1);
    assert_int_equal(faked_stats(&w).bad, 0);
    w.fleet.plan = (struct fake_plan){.at_once = 1};
    assert_string_equal(told(&w, "b=x; s=x"), "allow b: allow 0, allow 0");
    end(&w, &c);
}

static void a_failed_peek_is_that_of_all_descriptors_with_its_key(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    faked_call_ask(&c, w.rules, &w, "b=x; c=x; c=x");
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_string_equal(faked_call_told(&c), "allow b: allow 1, allow -, allow -");
    end(&w, &c);
}

static void an_override_in_shadow_mode_fails_no_call(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    share_adhoc(&w, &c);
    c.call.adhoc_shadow = true;
    faked_call_ask(&c, w.rules, &w, "5/k; b=x");
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(faked_call_told(&c), "allow b: allow -, allow 1");
    assert_int_equal(faked_stats(&w).shadow_failed, 1);
    remote_ops(fake_of(&w.fleet))->release(c.call.adhoc_remote);
    end(&w, &c);
}

static void units_that_cannot_be_given_back_are_an_error(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    faked_call_ask(&c, w.rules, &w, "c=x -1");
    assert_int_equal(w.fleet.last.verb, REMOTE_REFUND);
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(c.call.error, WEIR_EIO);
    assert_int_equal(c.done, 1);
    end(&w, &c);
}

/* ---- overrides ---- */

static void an_override_is_peeked_at_and_charged_when_the_group_allows(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    share_adhoc(&w, &c);
    faked_call_ask(&c, w.rules, &w, "5/k; b=x");
    assert_int_equal(w.fleet.last.verb, REMOTE_PEEK);
    assert_string_equal(w.fleet.told[0], "adhoc  k 1");
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(w.fleet.told[0], "b  x 1");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.fleet.last.verb, REMOTE_CHECK);
    assert_string_equal(w.fleet.told[0], "adhoc  k 1");
    fake_find(&w.fleet, "adhoc")->left = 0; /* another call has taken the unit */
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(faked_call_told(&c), "deny override: deny 0, allow 1");
    remote_ops(fake_of(&w.fleet))->release(c.call.adhoc_remote);
    end(&w, &c);
}

/* ---- rules that are switched or closed meanwhile ---- */

static void a_pending_call_keeps_its_limits_through_a_reload(void **state)
{
    static const char next[] = "limits: [{name: z, key: [z], rate: 1/h}]";
    for (unsigned stage = 0; stage < 3; stage++) {
        struct faked_world w;
        struct faked_call c = begin(&w);
        struct weir_error error;
        faked_call_ask(&c, w.rules, &w, "q=x; b=x; c=x; s=x; here=x");
        for (unsigned i = 0; i < stage; i++) {
            assert_true(fake_answer(&w.fleet));
        }
        assert_int_equal(weir_rules_reload_text(w.rules, "t", next, strlen(next), &error), 0);
        assert_non_null(fake_find(&w.fleet, "b"));
        while (fake_answer(&w.fleet)) {
        }
        assert_int_equal(c.done, 1);
        assert_string_equal(faked_call_told(&c),
                            "allow q: allow 1, allow 1, allow 2, allow 0, allow 3");
        assert_null(fake_find(&w.fleet, "b"));
        assert_null(fake_find(&w.fleet, "q"));
        end(&w, &c);
    }
}

static void a_pending_call_is_answered_after_its_rules_are_closed(void **state)
{
    for (unsigned stage = 0; stage < 3; stage++) {
        struct faked_world w;
        struct faked_call c = begin(&w);
        (void)told(&w, "a=x");
        faked_call_ask(&c, w.rules, &w, "q=x; a=x; c=x; s=x; here=x");
        for (unsigned i = 0; i < stage; i++) {
            assert_true(fake_answer(&w.fleet));
        }
        unsigned denials = w.denials;
        weir_rules_close(w.rules);
        assert_int_equal(c.done, 0);
        while (fake_answer(&w.fleet)) {
        }
        assert_int_equal(c.done, 1);
        assert_string_equal(faked_call_told(&c),
                            "deny a: allow 2, deny 0, allow 3, allow 1, allow 4");
        assert_int_equal(w.denials, denials); /* closed rules report nothing */
        faked_call_finish(&c);
        fake_finish(&w.fleet);
    }
}

/* ---- what is told ---- */

static void statistics_count_questions_and_denials_count_calls(void **state)
{
    struct faked_world w;
    struct faked_call c = begin(&w);
    assert_string_equal(told(&w, "a=x; s=x; none=x"), "allow a: allow 0, allow 0, allow -");
    assert_string_equal(told(&w, "a=y; s=x"), "deny a: deny 0, allow 0");
    assert_string_equal(told(&w, "b=x; s=x"), "allow b: allow 1, allow 0");
    struct weir_rules_stats stats = faked_stats(&w);
    assert_int_equal(stats.asked, 7);
    assert_int_equal(stats.unmatched, 4);
    assert_int_equal(stats.shadow_denied, 1);
    assert_int_equal(stats.bad, 0);
    assert_int_equal(w.denials, 1);
    end(&w, &c);
}

static void a_denial_counts_for_the_ban_of_the_store(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: b, key: [b], rate: 1/h, ban: {denials: 1, within: 1min, for: 2h}}\n"
                    "- {name: c, key: [c], rate: 3/h}\n");
    struct faked_call c = faked_call_init();
    (void)told(&w, "b=x");
    faked_call_ask(&c, w.rules, &w, "b=x; c=x");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(fake_out(&w.fleet), 2); /* the ban, and a peek at c */
    w.fleet.plan = (struct fake_plan){.planned = true};
    while (fake_answer(&w.fleet)) {
    }
    assert_int_equal(c.done, 1);
    assert_int_equal(c.call.answer.reason, WEIR_REASON_BAN);
    assert_string_equal(faked_call_told(&c), "deny b: deny 0, allow 3");
    faked_call_finish(&c);
    faked_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_group_is_one_question_and_the_others_are_peeked_at_after_it),
        cmocka_unit_test(a_call_that_the_fleet_answers_at_once_is_answered_at_once),
        cmocka_unit_test(answers_may_come_in_any_order_and_partly_at_once),
        cmocka_unit_test(a_look_denies_before_the_group_is_asked),
        cmocka_unit_test(the_same_key_twice_is_one_part_of_the_question),
        cmocka_unit_test(units_of_quota_mode_come_back_if_the_group_denies),
        cmocka_unit_test(a_call_is_denied_also_if_the_store_loses_the_refund),
        cmocka_unit_test(limits_that_are_charged_each_take_what_there_is),
        cmocka_unit_test(an_error_ends_the_call_once_when_all_parts_have_answered),
        cmocka_unit_test(an_error_at_once_waits_for_parts_that_are_pending),
        cmocka_unit_test(an_error_at_once_is_the_result_if_nothing_is_pending),
        cmocka_unit_test(an_error_of_the_group_is_that_of_the_call),
        cmocka_unit_test(errors_after_the_decision_do_not_change_it),
        cmocka_unit_test(a_failed_peek_is_that_of_all_descriptors_with_its_key),
        cmocka_unit_test(an_override_in_shadow_mode_fails_no_call),
        cmocka_unit_test(units_that_cannot_be_given_back_are_an_error),
        cmocka_unit_test(an_override_is_peeked_at_and_charged_when_the_group_allows),
        cmocka_unit_test(a_pending_call_keeps_its_limits_through_a_reload),
        cmocka_unit_test(a_pending_call_is_answered_after_its_rules_are_closed),
        cmocka_unit_test(statistics_count_questions_and_denials_count_calls),
        cmocka_unit_test(a_denial_counts_for_the_ban_of_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
