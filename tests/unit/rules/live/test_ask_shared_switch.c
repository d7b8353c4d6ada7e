/* Limits that a fleet decides, while rules are switched and closed. By many threads:
 * test_ask_shared_threads.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "support/rules/faked_world.h"

#define SMALL "limits: [{name: l, key: [user], rate: 2/h}]"

static int reload(struct faked_world *w, const char *yaml, struct weir_error *error)
{
    *error = (struct weir_error){0};
    return weir_rules_reload_text(w->rules, "test", yaml, strlen(yaml), error);
}

static void reload_well(struct faked_world *w, const char *yaml)
{
    struct weir_error error;
    if (reload(w, yaml, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

/* ---- what a reload keeps ---- */

static void a_limit_that_stays_is_handed_on(void **state)
{
    struct faked_world w;
    faked_begin(&w, SMALL);
    (void)faked_settle(&w, "user=u");
    reload_well(&w,
                "limits: [{name: l, when: {path: /x}, key: [user], rate: 2/h, shard_by: user}]");
    assert_int_equal(w.fleet.opened, 1);
    assert_int_equal(faked_settle(&w, "path=/x user=u")->answer.remaining, 0);
    assert_string_equal(w.fleet.told[0], "l u u 1");
    faked_end(&w);
}

static void new_numbers_are_a_change_of_the_same_limit(void **state)
{
    struct faked_world w;
    faked_begin(&w, SMALL);
    const struct fake_limit *limit = fake_find(&w.fleet, "l");
    (void)faked_settle(&w, "user=u");
    reload_well(&w, "limits: [{name: l, key: [user], rate: 5/h}]");
    assert_ptr_equal(fake_find(&w.fleet, "l"), limit);
    assert_int_equal(limit->changes, 1);
    assert_int_equal(limit->spec.options.count, 5);
    assert_int_equal(limit->spec.options.burst, 5);
    assert_int_equal(faked_settle(&w, "user=u")->answer.remaining, 3);
    reload_well(&w, "limits: [{name: l, key: [user], rate: 5/h}]");
    assert_int_equal(limit->changes, 1);
    faked_end(&w);
}

/* Which has kept them all. */
static void a_limit_whose_numbers_change_for_ever_is_made_anew_at_times(void **state)
{
    struct faked_world w;
    unsigned most = 0;
    faked_begin(&w, SMALL);
    for (unsigned i = 1; i <= 600; i++) {
        char yaml[80];
        (void)snprintf(yaml, sizeof yaml, "limits: [{name: l, key: [user], rate: %u/h}]", 2 + i);
        reload_well(&w, yaml);
        const struct fake_limit *limit = fake_find(&w.fleet, "l");
        assert_int_equal(limit->spec.options.count, 2 + i);
        assert_null(limit->next); /* the old one has gone */
        most = limit->changes > most ? limit->changes : most;
    }
    assert_in_range(most, 100, 256);
    assert_int_equal(faked_settle(&w, "user=u")->answer.verdict, WEIR_ALLOW);
    faked_end(&w);
}

static void what_cannot_be_changed_is_opened_anew(void **state)
{
    static const char *const others[] = {
        "limits: [{name: l, key: [user], rate: 2/min}]",
        "limits: [{name: l, key: [user], rate: 2/h, algorithm: fixed_window}]",
        "limits: [{name: l, key: [user], rate: 2/h, on_store_failure: open}]",
        "limits: [{name: l, key: [user], rate: 2/h, deny_cache: 2s}]",
        "limits: [{name: l, key: [user], rate: 2/h, consistency: leased}]",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct faked_world w;
        faked_begin(&w, SMALL);
        reload_well(&w, others[i]);
        assert_int_equal(w.fleet.opened, 2);
        assert_null(fake_find(&w.fleet, "l")->next);
        faked_end(&w);
    }
}

static void a_limit_may_be_shared_and_no_longer(void **state)
{
    struct faked_world w;
    faked_begin(&w, SMALL);
    (void)faked_settle(&w, "user=u");
    reload_well(&w, "limits: [{name: l, key: [user], rate: 2/h, consistency: local}]");
    assert_null(w.fleet.limits);
    assert_int_equal(rules_allowed(w.rules, RULES_T0, "user=u", 3), 2);
    reload_well(&w, SMALL);
    assert_int_equal(faked_settle(&w, "user=u")->answer.remaining, 1);
    faked_end(&w);
}

static void what_the_fleet_refuses_is_told_where_the_file_says_it(void **state)
{
    struct faked_world w;
    struct weir_error error;
    faked_begin(&w, SMALL);
    w.fleet.most = 10;
    assert_int_equal(reload(&w,
                            "limits:\n"
                            "  - {name: l, key: [user], rate: 3/h}\n"
                            "  - name: m\n"
                            "    key: []\n"
                            "    rate: 11/h\n",
                            &error),
                     WEIR_ERULES);
    assert_string_equal(error.text, "test:5:11: limit 'm': found 11, expected at most 10");
    assert_int_equal(reload(&w, "limits: [{name: l, key: [user], rate: 12/h}]", &error),
                     WEIR_ERULES);
    assert_string_equal(error.text, "test:1:39: limit 'l': found 12, expected at most 10");
    assert_int_equal(weir_rules_put(w.rules, "{name: p, key: [], rate: 99/s}", 30, &error),
                     WEIR_ERULES);
    assert_int_equal(faked_settle(&w, "user=u")->answer.remaining, 1);
    assert_int_equal(fake_find(&w.fleet, "l")->changes, 0);
    faked_end(&w);
}

static unsigned told;

static void count_message(void *arg, const struct weir_rules_message *message)
{
    (void)arg;
    (void)message;
    told++;
}

static void everything_that_the_fleet_refuses_is_told(void **state)
{
    static const char yaml[] = "limits:\n"
                               "- {name: a, key: [], rate: 99/s}\n"
                               "- {name: b, key: [], rate: 1/s}\n"
                               "- {name: c, key: [], rate: 99/s}\n";
    struct faked_world w = {0};
    struct weir_error error;
    fake_init(&w.fleet);
    w.fleet.most = 10;
    struct weir_rules_options o = faked_options(&w);
    o.message = count_message;
    told = 0;
    assert_int_equal(weir_rules_open_text(&w.rules, "test", yaml, sizeof yaml - 1, &o, &error),
                     WEIR_ERULES);
    assert_int_equal(told, 2);
    assert_string_equal(error.text, "test:2:28: limit 'a': found 99, expected at most 10");
    assert_null(w.rules);
    fake_finish(&w.fleet);
}

/* ---- while questions are out ---- */

static void a_question_is_answered_by_the_rules_that_it_was_asked_by(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- name: old\n"
                    "  key: [user]\n"
                    "  rate: 5/h\n"
                    "  tiers: {by: tier, pro: {rate: 1/h}}\n"
                    "- {name: here, key: [user], rate: 9/h, consistency: local}\n"
                    "- {name: shadow, key: [user], rate: 1/h, shadow: true}\n"
                    "- {name: beside, key: [user], rate: 1/h, shadow: true, consistency: local}\n");
    assert_int_equal(faked_ask(&w, "user=u tier=pro"), 0);
    assert_int_equal(faked_ask(&w, "user=u tier=pro"), 0);
    reload_well(&w, "limits: [{name: new, key: [], rate: 7/min}]");
    assert_non_null(fake_find(&w.fleet, "old/pro"));
    assert_non_null(fake_find(&w.fleet, "shadow"));
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 1);
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_string_equal(w.answer.limit, "old");
    assert_string_equal(w.answer.tier, "pro");
    assert_string_equal(w.denied, "old u");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 2);
    assert_int_equal(w.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(w.answer.window_ns, WEIR_HOUR);
    assert_null(fake_find(&w.fleet, "old/pro"));
    assert_null(fake_find(&w.fleet, "shadow"));
    assert_string_equal(faked_settle(&w, "user=u")->limit, "new");
    faked_end(&w);
}

static void a_limit_may_be_put_and_removed_while_questions_are_out(void **state)
{
    static const char put[] = "{name: l, key: [user], rate: 9/min, on_store_failure: open}";
    struct faked_world w;
    faked_begin(&w, SMALL);
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_int_equal(weir_rules_put(w.rules, put, sizeof put - 1, NULL), 0);
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_int_equal(weir_rules_remove(w.rules, "l", NULL), 0);
    assert_int_equal(faked_ask(&w, "user=u"), 1);
    assert_int_equal(w.answer.reason, WEIR_REASON_UNMATCHED);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.answer.answer.quota, 2);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.answer.answer.quota, 9);
    assert_int_equal(w.done, 2);
    assert_null(w.fleet.limits);
    faked_end(&w);
}

static void numbers_that_change_while_a_question_is_out_count_for_it(void **state)
{
    struct faked_world w;
    faked_begin(&w, SMALL);
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    reload_well(&w, "limits: [{name: l, key: [user], rate: 8/h}]");
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.answer.answer.remaining, 7);
    faked_end(&w);
}

static void rules_may_be_closed_while_questions_are_out(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: l, key: [user], rate: 1/h}\n"
                    "- {name: here, key: [user], rate: 9/h, consistency: local}\n"
                    "- {name: s, key: [user], rate: 1/h, shadow: true}\n"
                    "- {name: t, key: [user], rate: 1/h, shadow: true, consistency: local}\n");
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    assert_int_equal(faked_ask(&w, "user=u"), 0);
    weir_rules_close(w.rules);
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(w.done, 2);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 3);
    assert_int_equal(w.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(w.denials, 0); /* a refusal, but nobody is told any more */
    fake_finish(&w.fleet);
}

static void close_them(void *arg, int error, const struct weir_rules_answer *answer)
{
    struct faked_world *w = arg;
    weir_rules_close(w->rules);
    assert_null(w->fleet.limits); /* the question holds none any more (O3) */
    faked_hear(arg, error, answer);
}

static void who_hears_an_answer_may_close_the_rules(void **state)
{
    struct faked_world w;
    struct weir_rules_answer answer;
    faked_begin(&w, "limits: [{name: l, key: [], rate: 1/h}, {name: m, key: [], rate: 1/h, when: "
                    "{path: /m}}]");
    assert_int_equal(rules_ask_async(w.rules, NULL, "path=/", (struct weir_rules_question){0},
                                     &answer, close_them, &w, NULL),
                     0);
    assert_true(fake_answer(&w.fleet));
    assert_string_equal(w.answer.limit, "l");
    fake_finish(&w.fleet);
}

static void ask_again(void *arg, int error, const struct weir_rules_answer *answer)
{
    struct faked_world *w = arg;
    faked_hear(arg, error, answer);
    if (w->done < 3) {
        assert_int_equal(rules_ask_async(w->rules, NULL, "user=u", (struct weir_rules_question){0},
                                         &w->answer, ask_again, w, NULL),
                         0);
        reload_well(w, SMALL);
    }
}

static void who_hears_an_answer_may_ask_again_and_switch_rules(void **state)
{
    struct faked_world w;
    faked_begin(&w, SMALL);
    assert_int_equal(rules_ask_async(w.rules, NULL, "user=u", (struct weir_rules_question){0},
                                     &w.answer, ask_again, &w, NULL),
                     0);
    while (fake_answer(&w.fleet)) {
    }
    assert_int_equal(w.done, 3);
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    faked_end(&w);
}

static void keys_as_long_as_can_be_fit_a_question(void **state)
{
    struct faked_world w;
    char *words = malloc(5 + WEIR_KEY_MAX + 1);
    memcpy(words, "user=", 5);
    memset(words + 5, 'k', WEIR_KEY_MAX);
    words[5 + WEIR_KEY_MAX] = 0;
    faked_begin(&w, "limits:\n"
                    "- {name: a, key: [user], rate: 1/h, shard_by: [user]}\n"
                    "- {name: b, key: [user], rate: 1/h}\n"
                    "- {name: s, key: [user], rate: 1/h, shadow: true}\n");
    (void)faked_settle(&w, words);
    assert_int_equal(strlen(w.fleet.told[0]), 5 + WEIR_KEY_MAX);
    assert_int_equal(faked_settle(&w, words)->answer.verdict, WEIR_DENY);
    faked_end(&w);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_stays_is_handed_on),
        cmocka_unit_test(new_numbers_are_a_change_of_the_same_limit),
        cmocka_unit_test(a_limit_whose_numbers_change_for_ever_is_made_anew_at_times),
        cmocka_unit_test(what_cannot_be_changed_is_opened_anew),
        cmocka_unit_test(a_limit_may_be_shared_and_no_longer),
        cmocka_unit_test(what_the_fleet_refuses_is_told_where_the_file_says_it),
        cmocka_unit_test(everything_that_the_fleet_refuses_is_told),
        cmocka_unit_test(a_question_is_answered_by_the_rules_that_it_was_asked_by),
        cmocka_unit_test(a_limit_may_be_put_and_removed_while_questions_are_out),
        cmocka_unit_test(numbers_that_change_while_a_question_is_out_count_for_it),
        cmocka_unit_test(rules_may_be_closed_while_questions_are_out),
        cmocka_unit_test(who_hears_an_answer_may_close_the_rules),
        cmocka_unit_test(who_hears_an_answer_may_ask_again_and_switch_rules),
        cmocka_unit_test(keys_as_long_as_can_be_fit_a_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
