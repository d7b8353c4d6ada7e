/* A file that the rules name in many places is read once. */
#include <stdio.h>
#include <stdlib.h>

#include "rules/file/config.h"
#include "support/rules/loading.h"
#include "support/rules/rules_ask.h"
#include "support/engine/unit_limiter.h"

static char *folder;

static int setup(void **state)
{
    folder = unit_folder();
    return 0;
}

static int teardown(void **state)
{
    unit_folder_remove(folder);
    return 0;
}

/* The path of a rule file in the folder, to be freed. */
static char *write_rules(const char *yaml)
{
    char *path = NULL;
    loading_write(folder, "weir.yaml", yaml);
    assert_true(asprintf(&path, "%s/weir.yaml", folder) > 0);
    return path;
}

static const char twice[] = "block: [{user: ['file:names.txt', zoe]}]\n"
                            "limits:\n"
                            "- {name: a, when: {user: 'file:names.txt'}, key: [], rate: 1/h}\n"
                            "- {name: b, when: {user: 'file:names.txt'}, key: [], rate: 2/h}\n"
                            "- {name: c, when: {tenant: 'file:names.txt'}, key: [], rate: 3/h}\n"
                            "- {name: d, when: {method: 'file:names.txt'}, key: [], rate: 4/h}\n";

static void places_that_name_it_share_its_values(void **state)
{
    struct config config = {0};
    struct problems problems = {0};
    loading_write(folder, "names.txt", "alice\nbob\n");
    char *path = write_rules(twice);
    assert_int_equal(config_read(&config, path, &problems), 0);
    const struct condition *a = &config.limits[0]->when.at[0];
    const struct condition *b = &config.limits[1]->when.at[0];
    const struct condition *d = &config.limits[3]->when.at[0];
    assert_int_equal(a->count, 2);
    assert_ptr_equal(a->values, b->values);
    assert_ptr_not_equal(a->values, d->values); /* methods are written in upper case */
    assert_string_equal(d->values[0].text.at, "ALICE");
    assert_int_equal(config.block.entries[0].at[0].count, 3);
    config_finish(&config);
    free(path);
}

static void each_place_matches_as_if_it_were_alone(void **state)
{
    struct weir_rules *rules;
    struct weir_error error;
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    o.flags = WEIR_EXPLICIT_TIME;
    loading_write(folder, "names.txt", "alice\nbob\nb*\n");
    char *path = write_rules("block: [{user: ['file:names.txt', zoe], path: /blocked}]\n"
                             "limits:\n"
                             "- {name: user, when: {user: 'file:names.txt'}, key: [], rate: 1/h}\n"
                             "- {name: tenant, when: {path: /t, tenant: 'file:names.txt'}, key: [],"
                             " rate: 1/h}\n"
                             "- {name: both, when: {path: /b, tenant: 'file:names.txt'},"
                             " unless: {user: 'file:names.txt'}, key: [], rate: 1/h}\n");
    if (weir_rules_open(&rules, path, &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(rules_ask(rules, RULES_T0, "user=zoe path=/blocked").reason,
                     WEIR_REASON_BLOCK_LIST);
    assert_string_equal(rules_peek(rules, RULES_T0, "user=bert").limit, "user");
    assert_string_equal(rules_peek(rules, RULES_T0, "user=zoe").limit, "");
    assert_string_equal(rules_peek(rules, RULES_T0, "path=/t tenant=alice").limit, "tenant");
    assert_string_equal(rules_peek(rules, RULES_T0, "path=/t tenant=zoe").limit, "");
    assert_string_equal(rules_peek(rules, RULES_T0, "path=/b tenant=bob").limit, "both");
    assert_string_equal(rules_peek(rules, RULES_T0, "path=/b tenant=bob user=alice").limit, "user");
    weir_rules_close(rules);
    free(path);
}

static void networks_of_one_file_are_shared_too(void **state)
{
    struct weir_rules *rules;
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    o.flags = WEIR_EXPLICIT_TIME;
    loading_write(folder, "nets.txt", "10.0.0.0/8\n2001:db8::/32\n");
    char *path = write_rules(
        "allow: [{ip: 'file:nets.txt', path: /in}]\n"
        "limits:\n"
        "- {name: in, when: {ip: 'file:nets.txt'}, key: [], rate: 9/h}\n"
        "- {name: out, when: {path: /x}, unless: {ip: 'file:nets.txt'}, key: [], rate: 9/h}\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_rules_open(&rules, path, &o, NULL), 0);
        assert_int_equal(weir_rules_reload(rules, NULL, NULL), 0);
        assert_int_equal(rules_ask(rules, RULES_T0, "ip=10.1.2.3 path=/in").reason,
                         WEIR_REASON_ALLOW_LIST);
        assert_string_equal(rules_ask(rules, RULES_T0, "ip=2001:db8::1 path=/x").limit, "in");
        assert_string_equal(rules_ask(rules, RULES_T0, "ip=192.0.2.1 path=/x").limit, "out");
        weir_rules_close(rules);
    }
    free(path);
}

static void what_is_wrong_with_it_is_told_once(void **state)
{
    loading_write(folder, "nets.txt", "10.0.0.0/8\nnowhere\n");
    char *path = write_rules("limits:\n"
                             "- {name: a, when: {ip: 'file:nets.txt'}, key: [], rate: 1/h}\n"
                             "- {name: b, when: {ip: 'file:nets.txt'}, key: [], rate: 1/h}\n");
    const char *told = loading_told_file(path);
    assert_non_null(strstr(told, "2:1: found a value that is not shown here"));
    assert_null(strstr(strstr(told, "2:1: ") + 1, "2:1: "));
    assert_null(strstr(told, "nowhere"));
    free(path);
}

static void overrides_and_lookups_read_the_same_file_each_in_their_way(void **state)
{
    loading_write(folder, "rows.csv", "alice,5/min\nbob,6/min\n");
    char *path =
        write_rules("attributes: {plan: 'file:rows.csv by user', user: request}\n"
                    "limits:\n"
                    "- {name: a, key: [user], rate: 1/h, overrides: {by: user, file: rows.csv}}\n"
                    "- {name: b, key: [user], rate: 1/h, overrides: {by: user, file: rows.csv}}\n");
    char *shown = loading_show_file(path);
    const char *first = strstr(shown, "# 2 values, 2 different rates");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "# 2 values, 2 different rates"));
    free(shown);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(places_that_name_it_share_its_values),
        TEST(each_place_matches_as_if_it_were_alone),
        TEST(networks_of_one_file_are_shared_too),
        TEST(what_is_wrong_with_it_is_told_once),
        TEST(overrides_and_lookups_read_the_same_file_each_in_their_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
