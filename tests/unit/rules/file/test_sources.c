/* Attributes from cookies and from segments of the path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/rules_ask.h"

#define T0 RULES_T0

/* Each value of `key` has one unit: true if the words give a value that has not been seen. */
static struct weir_rules *open_with(const char *source)
{
    char yaml[1024];
    (void)snprintf(yaml, sizeof yaml,
                   "attributes: {who: %s}\n"
                   "limits:\n- {name: l, key: [who], rate: 1/day}\n",
                   source);
    return rules_open(yaml);
}

static void a_cookie_is_taken_from_the_field(void **state)
{
    struct weir_rules *r = open_with("['cookie:sid', 'header:X-Sid']");
    assert_int_equal(rules_allowed(r, T0, "header:Cookie=lang=en;sid=a", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "header:cookie=sid=a;lang=de", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "header:cookie=sid=b", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "header:cookie=lang=en header:x-sid=b", 1), 0);
    assert_string_equal(rules_ask(r, T0, "header:cookie=lang=en").limit, "");
    weir_rules_close(r);
}

static void a_cookie_with_two_values_is_refused(void **state)
{
    struct weir_rules *r = open_with("'cookie:sid'");
    struct weir_error error;
    assert_int_equal(rules_refusal(r, "header:cookie=sid=a;sid=b", &error), WEIR_EATTRIBUTE);
    assert_non_null(strstr(error.text, "cookie:sid"));
    assert_int_equal(rules_allowed(r, T0, "header:cookie=sid=a;sid=a", 2), 1);
    weir_rules_close(r);
}

/* Other fields may have as many bytes as a value may; this one has many values. */
static void a_field_of_many_cookies_may_be_long(void **state)
{
    struct weir_rules *r = open_with("'cookie:sid'");
    size_t size = 3 * WEIR_RULES_VALUE_MAX;
    char *words = malloc(size);
    struct weir_error error;
    assert_non_null(words);
    int n = snprintf(words, size, "header:cookie=a=");
    memset(words + n, 'x', 2 * WEIR_RULES_VALUE_MAX);
    (void)snprintf(words + n + 2 * WEIR_RULES_VALUE_MAX, 100, ";sid=1");
    assert_int_equal(rules_allowed(r, T0, words, 2), 1);
    (void)memcpy(words, "header:cookie=sid=", 18);
    assert_int_equal(rules_refusal(r, words, &error), WEIR_EATTRIBUTE);
    free(words);
    weir_rules_close(r);
}

static void segments_are_counted_from_one(void **state)
{
    struct weir_rules *r = open_with("'path:2'");
    assert_int_equal(rules_allowed(r, T0, "path=/users/7/x", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/teams//%37?q=1", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/users/8", 2), 1);
    assert_string_equal(rules_ask(r, T0, "path=/users").limit, "");
    assert_string_equal(rules_ask(r, T0, "path=/").limit, "");
    assert_string_equal(rules_ask(r, T0, "ip=10.0.0.1").limit, "");
    weir_rules_close(r);
}

static const char named[] =
    "attributes: {user: ['path:{user}', 'header:X-User'], team: 'path:{team}'}\n"
    "limits:\n"
    "- {name: users, when: {path: '/users/{user}/**'}, key: [user], rate: 1/day}\n"
    "- {name: teams, when: {path: ['/teams/{team}/users/{user}', '/t/{user}-x']}, key: [team, "
    "user],"
    " rate: 1/day}\n";

static void a_name_in_a_path_takes_what_stands_there(void **state)
{
    struct weir_rules *r = rules_open(named);
    assert_int_equal(rules_allowed(r, T0, "path=/users/ann/a", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/users/ann/b/c", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/users/bob", 2), 1);
    assert_string_equal(rules_ask(r, T0, "path=/users").limit, "");
    assert_string_equal(rules_ask(r, T0, "path=/teams/red/users/ann").limit, "teams");
    assert_int_equal(rules_allowed(r, T0, "path=/teams/red/users/ann", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/teams/red/users/bob", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/teams/blue/users/ann", 2), 1);
    weir_rules_close(r);
}

static void what_the_request_carries_and_what_stands_first_wins(void **state)
{
    struct weir_rules *r = rules_open(named);
    assert_int_equal(rules_allowed(r, T0, "path=/users/ann header:x-user=eve", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/users/ann", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/users/ann user=carl", 2), 1);
    weir_rules_close(r);
}

/* A limit that is put has names of its own; the attribute finds them. */
static void names_of_a_limit_that_is_put_count_from_then_on(void **state)
{
    static const char put[] =
        "{name: users, when: {path: '/people/{user}'}, key: [user], rate: 2/day}";
    struct weir_rules *r = rules_open(named);
    assert_int_equal(weir_rules_put(r, put, strlen(put), NULL), 0);
    assert_string_equal(rules_ask(r, T0, "path=/users/ann").limit, "");
    assert_int_equal(rules_allowed(r, T0, "path=/people/ann", 3), 2);
    assert_int_equal(weir_rules_remove(r, "users", NULL), 0);
    assert_string_equal(rules_ask(r, T0, "path=/people/ann").limit, "");
    weir_rules_close(r);
}

/* The path itself may come from a field. */
static void a_segment_of_a_derived_path_is_taken_too(void **state)
{
    struct weir_rules *r = rules_open("attributes: {who: 'path:1', path: 'header:X-Path'}\n"
                                      "limits: [{name: l, key: [who], rate: 1/day}]\n");
    assert_int_equal(rules_allowed(r, T0, "header:x-path=/ann/x", 2), 1);
    assert_int_equal(rules_allowed(r, T0, "path=/ann", 1), 0);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_is_taken_from_the_field),
        cmocka_unit_test(a_cookie_with_two_values_is_refused),
        cmocka_unit_test(a_field_of_many_cookies_may_be_long),
        cmocka_unit_test(segments_are_counted_from_one),
        cmocka_unit_test(a_name_in_a_path_takes_what_stands_there),
        cmocka_unit_test(what_the_request_carries_and_what_stands_first_wins),
        cmocka_unit_test(names_of_a_limit_that_is_put_count_from_then_on),
        cmocka_unit_test(a_segment_of_a_derived_path_is_taken_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
