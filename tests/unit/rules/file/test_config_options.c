/* What becomes of a limit of a file, or one that is put in; and the options of rules. */
#include "rules/file/config.h"
#include "support/rules/loading.h"
#include "support/rules/rules_ask.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

#define GOOD "limits: [{name: a, key: [ip], rate: 5/min}]\n"

static void a_limit_becomes_the_options_of_its_limiter(void **state)
{
    struct problems problems = {0};
    struct weir_options o;
    struct config config = {0};
    assert_int_equal(
        config_read_text(
            &config, "f",
            TEXT(
                "limits:\n"
                "- {name: a, key: [ip], rate: 5/min, burst: 9, on_full: deny}\n"
                "- {name: b, key: [], rate: 5/h, algorithm: leaky_bucket, queue: 3, undelayed: 2}\n"
                "- {name: c, key: [ip], rate: 7/s, algorithm: fixed_window, align: key,"
                " max_keys: 8}\n"),
            &problems),
        0);
    config_options(config.limits[0], &config.limits[0]->base, &o);
    assert_true(o.algorithm == WEIR_TOKEN_BUCKET && o.count == 5 && o.period_ns == WEIR_MINUTE);
    assert_true(o.burst == 9 && o.queue == 0 && o.max_keys == 100000 && o.on_full == WEIR_DENY_NEW);
    config_options(config.limits[1], &config.limits[1]->base, &o);
    assert_true(o.algorithm == WEIR_LEAKY_BUCKET && o.period_ns == WEIR_HOUR);
    assert_true(o.burst == 0 && o.queue == 3 && o.max_keys == 1); /* one count for everybody */
    assert_int_equal(o.undelayed, 2);
    struct setting shorter = config.limits[1]->base;
    shorter.burst = 1; /* as of a tier */
    config_options(config.limits[1], &shorter, &o);
    assert_int_equal(o.undelayed, 1);
    config_options(config.limits[2], &config.limits[2]->base, &o);
    assert_true(o.algorithm == WEIR_FIXED_WINDOW && o.align == WEIR_ALIGN_KEY);
    assert_true(o.burst == 0 && o.queue == 0 && o.max_keys == 8);
    assert_int_equal(config_consistency(&config, config.limits[0]->consistency), CONSISTENCY_LOCAL);
    config.store_place.line = 1; /* of a section `store` */
    assert_int_equal(config_consistency(&config, config.limits[0]->consistency), CONSISTENCY_EXACT);
    config_finish(&config);
    problems_finish(&problems);
}

static void a_limit_put_in_takes_its_place_or_comes_last(void **state)
{
    struct problems problems = {0};
    struct config config = {0};
    struct config second;
    struct config third;
    struct config fourth;
    assert_int_equal(config_read_text(&config, "f",
                                      TEXT("limits:\n- {name: a, key: [], rate: 1/s}\n"
                                           "- {name: b, key: [], rate: 1/s}\n"),
                                      &problems),
                     0);
    assert_int_equal(config_put(&config, TEXT("{name: a, key: [], rate: 2/s}"), &second, &problems),
                     0);
    config_finish(&config); /* what the others share lives on */
    assert_int_equal(config_put(&second, TEXT("name: c\nkey: []\nrate: 3/s"), &third, &problems),
                     0);
    config_finish(&second);
    assert_int_equal(third.limits_count, 3);
    assert_true(text_is(third.limits[0]->name, "a") && third.limits[0]->base.rate.count == 2);
    assert_true(text_is(third.limits[1]->name, "b") && text_is(third.limits[2]->name, "c"));
    assert_int_equal(config_remove(&third, TEXT("b"), &fourth), 0);
    config_finish(&third);
    assert_int_equal(fourth.limits_count, 2);
    assert_true(text_is(fourth.limits[1]->name, "c"));
    assert_int_equal(config_remove(&fourth, TEXT("b"), &third), WEIR_ENOLIMIT);
    config_finish(&third);
    config_finish(&fourth);
    problems_finish(&problems);
}

static void what_is_put_is_one_limit_and_nothing_else(void **state)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "a",
                                      "limits: []",
                                      "- {name: a, key: [], rate: 1/s}",
                                      "{name: a, key: [], rate: 1/s}\n---\n{}",
                                      "{name: a",
                                      "*x",
                                      "{name: a, key: [], rate: 1/s, consistency: exact}",
                                      "{name: a, key: [ip], rate: 1/s, max_keys: 1G}"};
    struct weir_rules *rules = rules_open(GOOD);
    struct weir_error error;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error.text[0] = 0;
        assert_int_equal(weir_rules_put(rules, bad[i], strlen(bad[i]), &error), WEIR_ERULES);
        assert_true(strlen(error.text) > 0);
    }
    assert_int_equal(rules_allowed(rules, RULES_T0, "ip=10.0.0.1", 9), 5);
    weir_rules_close(rules);
}

static void options_of_another_size_or_unknown_flags_are_refused(void **state)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules;
    struct weir_error error;
    options.size = 4;
    assert_int_equal(weir_rules_open_text(&rules, "f", GOOD, strlen(GOOD), &options, &error),
                     WEIR_EINVAL);
    options.size = sizeof options + 1;
    assert_int_equal(weir_rules_open_text(&rules, "f", GOOD, strlen(GOOD), &options, &error),
                     WEIR_EINVAL);
    options.size = sizeof options;
    options.flags = 1u << 30;
    assert_int_equal(weir_rules_open_text(&rules, "f", GOOD, strlen(GOOD), &options, &error),
                     WEIR_EINVAL);
    assert_int_equal(weir_rules_open(NULL, "f", NULL, &error), WEIR_EINVAL);
    assert_int_equal(weir_rules_open(&rules, NULL, NULL, &error), WEIR_EINVAL);
    assert_int_equal(weir_rules_open_text(&rules, "f", NULL, 5, NULL, &error), WEIR_EINVAL);
    assert_int_equal(weir_rules_open_text(&rules, NULL, GOOD, 5, NULL, &error), WEIR_EINVAL);
}

/* A program that was built before `denied` was there. */
static void options_of_an_earlier_version_are_read_as_far_as_they_go(void **state)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules;
    options.size = offsetof(struct weir_rules_options, denied);
    options.flags = WEIR_EXPLICIT_TIME;
    memset(&options.denied, 0xee, sizeof options - options.size);
    assert_int_equal(weir_rules_open_text(&rules, "f", GOOD, strlen(GOOD), &options, NULL), 0);
    assert_int_equal(rules_allowed(rules, RULES_T0, "ip=10.0.0.1", 9), 5);
    weir_rules_close(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_becomes_the_options_of_its_limiter),
        cmocka_unit_test(a_limit_put_in_takes_its_place_or_comes_last),
        cmocka_unit_test(what_is_put_is_one_limit_and_nothing_else),
        cmocka_unit_test(options_of_another_size_or_unknown_flags_are_refused),
        cmocka_unit_test(options_of_an_earlier_version_are_read_as_far_as_they_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
