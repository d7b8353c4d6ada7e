/* A server whose /v1/auth asks warns of attributes that it cannot send: at the start and after each
 * change. The messages themselves are in tests/golden/config. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rules/live/live.h"
#include "support/rules/loading.h"

#define ASKED_BY_USER "limits: [{name: search, key: [user], rate: 1/s}]"
#define ASKED_BY_IP "limits: [{name: search, key: [ip], rate: 1/s}]"
#define DECLARED "attributes: {user: request}\n" ASKED_BY_USER

static struct weir_rules *open_rules(const char *yaml, struct loading *told)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules;
    *told = (struct loading){0};
    options.message = loading_message;
    options.message_arg = told;
    assert_int_equal(weir_rules_open_text(&rules, "test", yaml, strlen(yaml), &options, NULL), 0);
    return rules;
}

static void reload(struct weir_rules *rules, const char *yaml, struct loading *told)
{
    *told = (struct loading){0};
    assert_int_equal(weir_rules_reload_text(rules, "test", yaml, strlen(yaml), NULL), 0);
}

static void put(struct weir_rules *rules, const char *yaml, struct loading *told)
{
    *told = (struct loading){0};
    assert_int_equal(weir_rules_put(rules, yaml, strlen(yaml), NULL), 0);
}

static void a_server_that_gateways_ask_warns_at_the_start_and_a_program_does_not(void **state)
{
    struct loading told;
    struct weir_rules *rules = open_rules(ASKED_BY_USER, &told);
    (void)state;
    assert_int_equal(told.warnings, 0);
    reload(rules, ASKED_BY_USER, &told);
    assert_int_equal(told.warnings, 0);
    rules_serve_gateways(rules);
    assert_int_equal(told.warnings, 1);
    assert_non_null(strstr(told.told,
                           "limit 'search': /v1/auth cannot send 'user'; add attributes: "
                           "{user: 'header:X-User-Id'}"));
    weir_rules_close(rules);
}

static void each_reload_warns_until_the_name_is_declared(void **state)
{
    struct loading told;
    struct weir_rules *rules = open_rules(ASKED_BY_IP, &told);
    (void)state;
    rules_serve_gateways(rules);
    assert_int_equal(told.warnings, 0);
    reload(rules, ASKED_BY_USER, &told);
    assert_int_equal(told.warnings, 1);
    reload(rules, ASKED_BY_USER, &told);
    assert_int_equal(told.warnings, 1);
    reload(rules, DECLARED, &told);
    assert_int_equal(told.warnings, 0);
    weir_rules_close(rules);
}

static void a_limit_that_is_put_in_gets_a_warning_about_its_own_names(void **state)
{
    struct loading told;
    struct weir_rules *rules = open_rules(ASKED_BY_USER, &told);
    (void)state;
    rules_serve_gateways(rules);
    put(rules, "{name: address, key: [ip], rate: 1/s}", &told);
    assert_int_equal(told.warnings, 0);
    put(rules, "{name: plan, key: [plan, ip], rate: 1/s}", &told);
    assert_int_equal(told.warnings, 1);
    assert_non_null(strstr(told.told, "limit 'plan': /v1/auth cannot send 'plan'; add"));
    assert_null(strstr(told.told, "user"));
    put(rules, "{name: search, key: [plan], rate: 2/s}", &told); /* in the place of another */
    assert_int_equal(told.warnings, 1);
    assert_non_null(strstr(told.told, "limit 'search': /v1/auth cannot send 'plan'; add"));
    weir_rules_close(rules);
}

static void a_name_that_is_a_field_is_not_given_its_prefix_twice(void **state)
{
    struct loading told;
    struct weir_rules *rules = open_rules(ASKED_BY_IP, &told);
    (void)state;
    rules_serve_gateways(rules);
    put(rules, "{name: plan, key: [X-Api-Key, ip], rate: 1/s}", &told);
    assert_int_equal(told.warnings, 1);
    assert_non_null(strstr(told.told, "{X-Api-Key: 'header:X-Api-Key'}"));
    weir_rules_close(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_gateways_ask_warns_at_the_start_and_a_program_does_not),
        cmocka_unit_test(each_reload_warns_until_the_name_is_declared),
        cmocka_unit_test(a_limit_that_is_put_in_gets_a_warning_about_its_own_names),
        cmocka_unit_test(a_name_that_is_a_field_is_not_given_its_prefix_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
