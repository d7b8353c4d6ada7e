/* What changes from one rule file to another, in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/file/diff.h"

static char told[2000];

static void hear(void *arg, const char *line)
{
    size_t n = strlen(told);
    (void)arg;
    (void)snprintf(told + n, sizeof told - n, "%s\n", line);
}

static void read_text(struct config *config, const char *text)
{
    struct problems problems = {0};
    *config = (struct config){.fleet = FLEET_NONE};
    assert_int_equal(config_read_text(config, "test", text_of(text), &problems), 0);
    problems_finish(&problems);
}

static int compare(const char *before, const char *after)
{
    struct config old;
    struct config next;
    read_text(&old, before);
    read_text(&next, after);
    told[0] = 0;
    int n = config_diff(&old, &next, hear, NULL);
    config_finish(&old);
    config_finish(&next);
    return n;
}

static void numbers_that_change_keep_the_keys(void **state)
{
    assert_int_equal(compare("limits: [{name: search, key: [user], rate: 100/min, burst: 150}]\n",
                             "limits: [{name: search, key: [user], rate: 200/min, burst: 150}]\n"),
                     1);
    assert_string_equal(told, "search: rate 100/min -> 200/min; keys kept\n");
}

static void another_period_or_key_starts_the_keys_afresh(void **state)
{
    assert_int_equal(compare("limits: [{name: a, key: [user], rate: 5/min},\n"
                             "         {name: b, key: [user], rate: 5/min}]\n",
                             "limits: [{name: a, key: [user], rate: 5/h},\n"
                             "         {name: b, key: [ip], rate: 5/min}]\n"),
                     2);
    assert_string_equal(told, "a: rate 5/min -> 5/h; keys start afresh\n"
                              "b: key [user] -> [ip]; keys start afresh\n");
}

static void limits_come_and_go(void **state)
{
    assert_int_equal(compare("limits: [{name: a, key: [], rate: 5/min}]\n",
                             "limits: [{name: b, key: [], rate: 5/min}]\n"),
                     2);
    assert_string_equal(told, "b: added\na: removed with its keys\n");
}

static void what_is_long_is_only_said_to_have_changed(void **state)
{
    static const char limit[] = "limits: [{name: a, key: [user], rate: 5/min%s}]\n";
    char after[600];
    char before[300];
    (void)snprintf(before, sizeof before, limit, "");
    (void)snprintf(after, sizeof after, limit, ", tiers: {by: tier, default: x, x: {rate: 6/min}}");
    assert_int_equal(compare(before, after), 1);
    assert_non_null(strstr(told, "tiers changed"));
    (void)snprintf(after, sizeof after, "block: [{ip: [192.0.2.1]}]\nserver: {memory: 2GB}\n%s",
                   before);
    assert_int_equal(compare(before, after), 2);
    assert_non_null(strstr(told, "server.memory 1GB -> 2GB\n"));
    assert_non_null(strstr(told, "block "));
}

static void the_order_within_a_group_is_told(void **state)
{
    assert_int_equal(compare("limits:\n"
                             "- {name: a, key: [user], rate: 1/s, group: g}\n"
                             "- {name: x, key: [user], rate: 1/s}\n"
                             "- {name: b, key: [user], rate: 1/s, group: g}\n"
                             "- {name: c, key: [user], rate: 1/s, group: g}\n"
                             "- {name: d, key: [user], rate: 1/s, group: h}\n",
                             "limits:\n"
                             "- {name: x, key: [user], rate: 1/s}\n"
                             "- {name: d, key: [user], rate: 1/s, group: h}\n"
                             "- {name: c, key: [user], rate: 1/s, group: g}\n"
                             "- {name: a, key: [user], rate: 1/s, group: g}\n"
                             "- {name: b, key: [user], rate: 1/s, group: g}\n"),
                     1);
    assert_string_equal(told, "group g: order a, b, c -> c, a, b\n");
}

static void limits_that_join_or_leave_a_group_are_not_its_order(void **state)
{
    assert_int_equal(compare("limits:\n"
                             "- {name: a, key: [user], rate: 1/s, group: g}\n"
                             "- {name: b, key: [user], rate: 1/s, group: g}\n"
                             "- {name: c, key: [user], rate: 1/s, group: g}\n",
                             "limits:\n"
                             "- {name: n, key: [user], rate: 1/s, group: g}\n"
                             "- {name: b, key: [user], rate: 1/s, group: g}\n"
                             "- {name: a, key: [user], rate: 1/s, group: h}\n"
                             "- {name: c, key: [user], rate: 1/s, group: g}\n"),
                     2);
    assert_string_equal(told, "n: added\na: group g -> h; keys kept\n");
}

static void the_same_rules_change_nothing(void **state)
{
    static const char rules[] = "limits: [{name: a, key: [user], rate: 60/min, shadow: false}]\n";
    assert_int_equal(compare(rules, "limits: [{name: a, key: user, rate: 60/1min}]\n"), 0);
    assert_string_equal(told, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_change_keep_the_keys),
        cmocka_unit_test(another_period_or_key_starts_the_keys_afresh),
        cmocka_unit_test(limits_come_and_go),
        cmocka_unit_test(what_is_long_is_only_said_to_have_changed),
        cmocka_unit_test(the_order_within_a_group_is_told),
        cmocka_unit_test(limits_that_join_or_leave_a_group_are_not_its_order),
        cmocka_unit_test(the_same_rules_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
