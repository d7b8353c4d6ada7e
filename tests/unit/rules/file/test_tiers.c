/* Tiers, overrides and attributes from a file: what each limit counts with. */
#include "rules/file/tiers.h"
#include "support/rules/loading.h"
#include "support/rules/rules_ask.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

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

static void expect_lines(const char *yaml, const char *const *lines)
{
    char *shown = loading_show_of(yaml);
    for (size_t i = 0; lines[i] != NULL; i++) {
        if (strstr(shown, lines[i]) == NULL) {
            fail_msg("no line %s in\n%s", lines[i], shown);
        }
    }
    free(shown);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_tier_without_numbers_has_those_of_the_limit(void **state)
{
    expect_lines("limits: [{name: a, key: [user], rate: 5/min, burst: 9, max_keys: 7, "
                 "tiers: {free: {}}}]",
                 LINES("free: {rate: 5/min, burst: 9, max_keys: 7}", "by: tier"));
}

static void a_tier_with_a_rate_of_its_own_has_a_burst_of_its_own(void **state)
{
    expect_lines(
        "limits: [{name: a, key: [user], rate: 5/min, burst: 9, "
        "tiers: {pro: {rate: 50/min}, big: {rate: 50/min, burst: 60}, wide: {burst: 70}}}]",
        LINES("pro: {rate: 50/min, burst: 50,", "big: {rate: 50/min, burst: 60,",
              "wide: {rate: 5/min, burst: 70,"));
}

static void a_tier_may_have_another_period_and_as_many_keys_as_it_likes(void **state)
{
    expect_lines("limits: [{name: a, key: [user], rate: 5/min, algorithm: fixed_window, "
                 "tiers: {pro: {rate: 1k/day, max_keys: 10}}}]",
                 LINES("pro: {rate: 1k/day, max_keys: 10}"));
}

static void a_queue_of_no_places_is_a_queue(void **state)
{
    expect_lines("limits: [{name: a, key: [user], rate: 5/min, algorithm: leaky_bucket, queue: 20, "
                 "tiers: {same: {}, none: {queue: 0}, more: {queue: 30}, fast: {rate: 9/min}}}]",
                 LINES("same: {rate: 5/min, queue: 20,", "none: {rate: 5/min, queue: 0,",
                       "more: {rate: 5/min, queue: 30,", "fast: {rate: 9/min, queue: 20,"));
}

static char *with_overrides(const char *file, const char *algorithm)
{
    static char yaml[1024];
    (void)snprintf(yaml, sizeof yaml,
                   "limits: [{name: a, key: [user], rate: 5/min, algorithm: %s, "
                   "overrides: {by: user, file: '%s/%s'}}]",
                   algorithm, folder, file);
    return yaml;
}

/* How many a user gets at once. */
static unsigned gets(struct weir_rules *rules, const char *user)
{
    char words[64];
    (void)snprintf(words, sizeof words, "user=%s", user);
    return rules_allowed(rules, RULES_T0, words, 100);
}

static void a_row_of_the_overrides_is_a_rate_and_perhaps_a_burst(void **state)
{
    loading_write(
        folder, "o.csv",
        "\xef\xbb\xbf# who,how much\r\nuser,rate,burst\r\nalice,50/min\r\n\"b,\"\"ob\",5/min,9\r\n"
        "carol , 1/h , 2\r\nrate,7/min");
    struct weir_rules *rules = rules_open(with_overrides("o.csv", "token_bucket"));
    assert_int_equal(gets(rules, "alice"), 50);
    assert_int_equal(gets(rules, "b,\"ob"), 9);
    assert_int_equal(gets(rules, "carol"), 2);
    assert_int_equal(gets(rules, "rate"), 7);
    assert_int_equal(gets(rules, "dave"), 5);
    assert_int_equal(gets(rules, "user"), 5);
    weir_rules_close(rules);
}

static void the_third_column_is_the_queue_of_a_leaky_bucket(void **state)
{
    loading_write(folder, "o.csv", "alice,5/min,3\nbob,5/min,0\n");
    struct weir_rules *rules = rules_open(with_overrides("o.csv", "leaky_bucket"));
    assert_int_equal(gets(rules, "alice"), 4);
    assert_int_equal(gets(rules, "bob"), 1);
    weir_rules_close(rules);
}

static void a_burst_of_nothing_is_refused(void **state)
{
    loading_write(folder, "o.csv", "alice,5/min,0\n");
    assert_non_null(strstr(loading_told_of(with_overrides("o.csv", "token_bucket")), "1:13: "));
}

static void rows_of_one_rate_share_one_table(void **state)
{
    char *content = malloc(3000 * 32);
    size_t n = 0;
    assert_non_null(content);
    for (int i = 0; i < 3000; i++) {
        n += (size_t)sprintf(content + n, "u%d,%d/min\n", i, i % 3 + 1);
    }
    loading_write(folder, "o.csv", content);
    free(content);
    expect_lines(with_overrides("o.csv", "token_bucket"), LINES("3000 values, 3 different rates"));
}

/* A hundred thousand customers are not unusual: 4 kB for each would be 400 MB. */
static void a_row_takes_about_as_much_memory_as_it_has_bytes(void **state)
{
    struct arena arena = ARENA_INIT;
    char *content = arena_take(&arena, 20000 * 16);
    size_t n = 0;
    for (int i = 0; i < 20000; i++) {
        n += (size_t)sprintf(content + n, "%d,5/min\n", i);
    }
    loading_write(folder, "o.csv", content);
    struct config config = {0};
    struct problems problems = {0};
    assert_int_equal(
        config_read_text(&config, "f", text_of(with_overrides("o.csv", "token_bucket")), &problems),
        0);
    assert_int_equal(text_map_count(config.limits[0]->overrides.values), 20000);
    const struct arena_block *block = config.sources[0]->arena.blocks;
    size_t blocks = 0; /* of 16 kB each, or one large piece */
    for (; block != NULL; blocks++) {
        block = *(struct arena_block *const *)block;
    }
    assert_true(blocks < 300);
    config_finish(&config);
    problems_finish(&problems);
    arena_finish(&arena);
}

static void addresses_and_paths_of_a_table_are_found_however_a_request_writes_them(void **state)
{
    char yaml[1024];
    loading_write(folder, "ip.csv", "::ffff:192.0.2.1,50/min\n");
    loading_write(folder, "host.csv", "Example.COM,60/min\n");
    (void)snprintf(
        yaml, sizeof yaml,
        "limits:\n"
        "- {name: a, when: {path: /a}, key: [ip], rate: 5/min, overrides: {by: ip, file: "
        "'%s/ip.csv'}}\n"
        "- {name: b, when: {path: /b}, key: [ip], rate: 5/min, overrides: {by: host, file: "
        "'%s/host.csv'}}",
        folder, folder);
    struct weir_rules *rules = rules_open(yaml);
    assert_int_equal(rules_allowed(rules, RULES_T0, "path=/a ip=192.0.2.1:80", 100), 50);
    assert_int_equal(
        rules_allowed(rules, RULES_T0, "path=/b ip=192.0.2.1 host=example.com:443", 100), 60);
    weir_rules_close(rules);
}

static void an_attribute_can_be_looked_up_in_a_file(void **state)
{
    char yaml[1024];
    loading_write(folder, "tiers.csv", "user,tier\nalice,pro\nbob,free\n");
    (void)snprintf(
        yaml, sizeof yaml,
        "attributes: {tier: ['header:X-Tier', 'file:%s/tiers.csv by user'], user: request}\n"
        "limits: [{name: a, key: [user], rate: 5/min, tiers: {default: free, free: {}, "
        "pro: {rate: 50/min}}}]",
        folder);
    struct weir_rules *rules = rules_open(yaml);
    assert_int_equal(gets(rules, "alice"), 50);
    assert_int_equal(gets(rules, "bob"), 5);
    assert_int_equal(gets(rules, "carol"), 5);
    assert_int_equal(rules_allowed(rules, RULES_T0, "user=dave header:x-tier=pro", 100), 50);
    weir_rules_close(rules);
}

static void attributes_are_looked_up_in_the_order_in_which_they_need_each_other(void **state)
{
    char yaml[1024];
    loading_write(folder, "plan.csv", "alice,gold\n");
    loading_write(folder, "tier.csv", "gold,pro\n");
    (void)snprintf(yaml, sizeof yaml,
                   "attributes:\n  tier: 'file:%s/tier.csv by plan'\n"
                   "  plan: 'file:%s/plan.csv by user'\n  user: 'header:X-User'\n"
                   "limits: [{name: a, key: [user], rate: 5/min, tiers: {pro: {rate: 50/min}}}]",
                   folder, folder);
    struct weir_rules *rules = rules_open(yaml);
    assert_int_equal(rules_allowed(rules, RULES_T0, "header:x-user=alice", 100), 50);
    assert_int_equal(rules_allowed(rules, RULES_T0, "header:x-user=bob", 100), 5);
    assert_int_equal(rules_allowed(rules, RULES_T0, "header:x-user=carol plan=gold", 100), 50);
    weir_rules_close(rules);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tier_without_numbers_has_those_of_the_limit),
        TEST(a_tier_with_a_rate_of_its_own_has_a_burst_of_its_own),
        TEST(a_tier_may_have_another_period_and_as_many_keys_as_it_likes),
        TEST(a_queue_of_no_places_is_a_queue),
        TEST(a_row_of_the_overrides_is_a_rate_and_perhaps_a_burst),
        TEST(the_third_column_is_the_queue_of_a_leaky_bucket),
        TEST(a_burst_of_nothing_is_refused),
        TEST(rows_of_one_rate_share_one_table),
        TEST(a_row_takes_about_as_much_memory_as_it_has_bytes),
        TEST(addresses_and_paths_of_a_table_are_found_however_a_request_writes_them),
        TEST(an_attribute_can_be_looked_up_in_a_file),
        TEST(attributes_are_looked_up_in_the_order_in_which_they_need_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
