/* What `weir config` says and shows of limits that nodes share. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/config/config_store.h"
#include "support/rules/loading.h"
#include "support/engine/unit_limiter.h"

static struct loading heard;

static void read_rules(const char *yaml, struct config *config)
{
    struct problems problems = {.tell = loading_message, .arg = &heard};
    heard = (struct loading){0};
    *config = (struct config){.fleet = FLEET_AS_FILE};
    int e = config_read_text(config, "rules", text_of(yaml), &problems);
    if (e == 0) {
        e = config_check_store(config, &problems);
    }
    problems_finish(&problems);
    assert_int_equal(e, heard.errors == 0 ? 0 : WEIR_ERULES);
}

/* What is told of the rules. */
static const char *told(const char *yaml)
{
    struct config config;
    read_rules(yaml, &config);
    config_finish(&config);
    return heard.told;
}

static char *show(const char *yaml)
{
    struct config config;
    char *shown = NULL;
    size_t size;
    read_rules(yaml, &config);
    assert_string_equal(heard.told, "");
    FILE *out = open_memstream(&shown, &size);
    assert_non_null(out);
    config_show(&config, config_note_store, out);
    (void)fclose(out);
    config_finish(&config);
    return shown;
}

static void expect_line(const char *yaml, const char *line)
{
    char *shown = show(yaml);
    if (!loading_has_line(shown, line)) {
        fail_msg("no line %s in\n%s", line, shown);
    }
    free(shown);
}

#define STORE "store: redis://a\nadhoc: off\n"

static void a_limit_that_is_too_small_for_leases_says_so(void **state)
{
    expect_line(STORE "limits: [{name: l, key: [], rate: 5/min, consistency: leased}]",
                "consistency: leased # acts as exact: too small for leases");
    expect_line(STORE "limits: [{name: l, key: [], rate: 5M/min, consistency: leased}]",
                "consistency: leased");
    expect_line(STORE "limits: [{name: l, key: [], rate: 5/min, consistency: exact}]",
                "consistency: exact");
    expect_line(STORE "limits: [{name: l, key: [], rate: 5M/min, consistency: leased, tiers: {a: "
                      "{rate: 3/min}, b: {}}}]",
                "consistency: leased # 1 of its 3 rates act as exact: too small for leases");
    expect_line("store: {url: 'redis://a', fleet_size: 100k}\nadhoc: off\n"
                "limits: [{name: l, key: [], rate: 1M/min, consistency: leased}]",
                "consistency: leased # acts as exact: too small for leases");
}

static void numbers_of_a_limit_that_nobody_gets_are_not_looked_at(void **state)
{
    expect_line(STORE "limits: [{name: l, key: [], rate: 5M/min, consistency: leased, tiers: "
                      "{default: a, a: {rate: 3/min}}}]",
                "consistency: leased # acts as exact: too small for leases");
}

static void what_the_store_keeps_takes_no_memory_here(void **state)
{
    static const char yaml[] =
        "server: {memory: 9MB}\n" STORE
        "limits: [{name: l, key: [ip], rate: 5/min, max_keys: 100M, tiers: {a: {}}}]";
    expect_line(yaml, "# in the store");
    expect_line(yaml, "a: {rate: 5/min, burst: 5, max_keys: 100M}");
    expect_line(yaml, "# 1 limit, 0 bytes in all");
    assert_non_null(strstr(told("server: {memory: 9MB}\n" STORE
                                "limits: [{name: l, key: [ip], rate: 5/min, max_keys: 100M, "
                                "consistency: local}]"),
                           "expected at most 9MB together"));
}

static void how_nodes_share_a_limit_is_shown_and_reads_back(void **state)
{
    static const char yaml[] = STORE "limits:\n"
                                     "- {name: l, key: [tenant, ip], rate: 500/min, consistency: "
                                     "synced, shard_by: tenant}\n"
                                     "- {name: m, key: [ip], rate: 5/min, deny_cache: 1m30s}\n"
                                     "- {name: n, key: [ip], rate: 5/min, deny_cache: 0}\n";
    expect_line(yaml, "shard_by: [tenant]");
    expect_line(yaml, "sync: 100ms");
    expect_line(yaml, "deny_cache: 90s");
    expect_line(yaml, "deny_cache: off");
    char *once = show(yaml);
    char *twice = show(once);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
    char *local = show("limits: [{name: l, key: [tenant], rate: 5/min, shard_by: tenant}]");
    assert_null(strstr(local, "shard_by"));
    assert_null(strstr(local, "deny_cache"));
    free(local);
}

static void a_bound_far_above_the_limit_is_told(void **state)
{
    const char *found = told("store: {url: 'redis://a', fleet_size: 4}\nadhoc: off\n"
                             "limits: [{name: l, key: [], rate: 100/s, consistency: synced}]");
    assert_non_null(strstr(found, "limit 'l': synced every 100ms, 4 nodes"));
    assert_non_null(strstr(found, "may admit 178 where 100 are allowed"));
    assert_string_equal(told(STORE "limits: [{name: l, key: [], rate: 6000/min, consistency: "
                                   "synced}]"),
                        "");
    assert_string_equal(told(STORE "limits: [{name: l, key: [], rate: 100/s, consistency: synced, "
                                   "sync: 10ms}]"),
                        "");
    assert_non_null(strstr(told(STORE "limits: [{name: l, key: [], rate: 100/s, consistency: "
                                      "synced}]"),
                           "10 nodes"));
    assert_non_null(strstr(told(STORE "limits: [{name: l, key: [], rate: 5/s, consistency: "
                                      "synced}]"),
                           "may admit 9 where 5 are allowed"));
}

static void a_url_is_looked_at_and_a_secret_in_it_never_told(void **state)
{
    static const char *const urls[] = {
        "redis://a:1,b:2/3",    "redis://[::1]:7000",         "redis:///run/redis.sock",
        "redis-sentinel://a/m", "redis-sentinel://a,b:1/m-1", "redis-cluster://a:1,b",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       "store: '%s'\nadhoc: off\nlimits: [{name: l, key: [], rate: 1/s}]", urls[i]);
        assert_string_equal(told(yaml), "");
    }
    const char *found = told("store: redis://:hunter2@a\nadhoc: off\n"
                             "limits: [{name: l, key: [], rate: 1/s}]");
    assert_non_null(strstr(found, "1:8: the store's URL has an '@'"));
    assert_null(strstr(found, "hunter2"));
}

static void what_cl_throttle_counts_may_be_shared_or_not(void **state)
{
    assert_string_equal(told("store: redis://a\nlimits: [{name: l, key: [], rate: 1/s}]"), "");
    assert_non_null(strstr(told("adhoc: {consistency: exact}\n"
                                "limits: [{name: l, key: [], rate: 1/s}]"),
                           "adhoc: found consistency exact without a store"));
    assert_string_equal(told("store: redis://a\nadhoc: {consistency: local}\n"
                             "limits: [{name: l, key: [], rate: 1/s}]"),
                        "");
    assert_string_equal(told("limits: [{name: l, key: [], rate: 1/s}]"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_is_too_small_for_leases_says_so),
        cmocka_unit_test(numbers_of_a_limit_that_nobody_gets_are_not_looked_at),
        cmocka_unit_test(what_the_store_keeps_takes_no_memory_here),
        cmocka_unit_test(how_nodes_share_a_limit_is_shown_and_reads_back),
        cmocka_unit_test(a_bound_far_above_the_limit_is_told),
        cmocka_unit_test(a_url_is_looked_at_and_a_secret_in_it_never_told),
        cmocka_unit_test(what_cl_throttle_counts_may_be_shared_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
