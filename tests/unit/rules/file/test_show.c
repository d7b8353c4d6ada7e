/* `weir config show`: every default, no secret, and YAML that reads back as the same rules. */
#include "rules/value/quantity.h"
#include "support/rules/loading.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

static void expect_lines(const char *shown, const char *const *lines)
{
    for (size_t i = 0; lines[i] != NULL; i++) {
        if (!loading_has_line(shown, lines[i])) {
            fail_msg("no line %s in\n%s", lines[i], shown);
        }
    }
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What is shown reads back, and is shown the same again. */
static void expect_round_trip(const char *yaml)
{
    char *once = loading_show_of(yaml);
    char *twice = loading_show_of(once);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
}

static void every_default_is_shown(void **state)
{
    char *shown = loading_show_of("limits: [{name: a, key: [ip], rate: 5/min}]");
    expect_lines(shown,
                 LINES("version: 1", "http: '127.0.0.1:8080'", "resp: '127.0.0.1:6380'",
                       "admin: '127.0.0.1:8082'", "memory: 1GB",
                       "trusted_proxies: [127.0.0.0/8, '::1/128']", "headers: ietf", "- name: a",
                       "key: [ip]", "algorithm: token_bucket", "rate: 5/min", "burst: 5",
                       "max_keys: 100k", "on_full: evict", "on_missing: skip",
                       "on_store_failure: local", "consistency: local", "shadow: false",
                       "expose: true", "retry_jitter: 0%", "ipv4_prefix: 32", "ipv6_prefix: 64"));
    assert_null(strstr(shown, "store:"));
    assert_null(strstr(shown, "align:"));
    free(shown);
    shown = loading_show_of("store: redis://h\nlimits: [{name: a, key: [ip], rate: 5/min, "
                            "algorithm: fixed_window}]");
    expect_lines(shown, LINES("url: 'redis://h'", "prefix: weir", "deadline: 5ms",
                              "fleet_size: auto", "consistency: exact", "align: clock"));
    free(shown);
}

static void the_memory_of_each_limit_and_of_all_is_shown(void **state)
{
    char *shown = loading_show_of("limits:\n- {name: a, key: [ip], rate: 5/min}\n"
                                  "- {name: b, key: [], rate: 5/min}\n");
    struct weir_options o = WEIR_OPTIONS_INIT;
    uint64_t a;
    uint64_t b;
    uint64_t adhoc;
    char line[128];
    char size[QUANTITY_MAX];
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 5;
    o.period_ns = WEIR_MINUTE;
    o.max_keys = 100000;
    assert_int_equal(weir_size(&o, &a, NULL), 0);
    o.max_keys = 1;
    assert_int_equal(weir_size(&o, &b, NULL), 0);
    (void)snprintf(line, sizeof line, "\n  # %s\n  - name: a", size_print_short(a, size));
    assert_non_null(strstr(shown, line));
    (void)snprintf(line, sizeof line, "\n  # %s\n  - name: b", size_print_short(b, size));
    assert_non_null(strstr(shown, line));
    o.max_keys = 1000000;
    assert_int_equal(weir_size(&o, &adhoc, NULL), 0);
    (void)snprintf(line, sizeof line, "consistency: local} # %s\n", size_print_short(adhoc, size));
    assert_non_null(strstr(shown, line));
    (void)snprintf(line, sizeof line, "# 2 limits and adhoc, %s in all\n",
                   size_print_short(a + b + adhoc, size));
    assert_non_null(strstr(shown, line));
    free(shown);
}

/* A word that must not come out, in every place where a URL takes one. */
static void no_password_is_shown(void **state)
{
    static const char *const urls[] = {
        "redis://user:hunter2@10.0.0.5:6379/0",
        "redis://:hunter2@10.0.0.5",
        "redis://hunter2@10.0.0.5",
        "redis://user:hunt@er2hunter2@10.0.0.5",
        "redis-sentinel://user:hunter2@a:26379,b:26379/mymaster/0",
        "redis-sentinel://:hunter2@a,:hunter2@b/mymaster",
        "redis-cluster://user:hunter2@a:6379,b:6379",
        "redis-cluster://a:6379,user:hunter2@b:6379",
        "redis://10.0.0.5/0?password=hunter2",
        "redis://10.0.0.5/0?db=1&password=hunter2&x=y",
        "redis-cluster://a,b?user=x&password=hunter2",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        char yaml[256];
        (void)snprintf(yaml, sizeof yaml, "store: '%s'\nlimits: []", urls[i]);
        char *shown = loading_show_of(yaml);
        if (strstr(shown, "hunter2") != NULL || strstr(shown, "hunt@") != NULL) {
            fail_msg("%s is shown in\n%s", urls[i], shown);
        }
        assert_non_null(strstr(shown, "url: "));
        free(shown);
        expect_round_trip(yaml);
    }
}

static void hosts_and_databases_are_shown(void **state)
{
    char *shown = loading_show_of("store: {url: 'redis-sentinel://me:pw@a:1,b:2/master/3', "
                                  "password_file: /run/secret, user: weir}\nlimits: []");
    expect_lines(shown, LINES("url: 'redis-sentinel://***@a:1,b:2/master/3'",
                              "password_file: /run/secret", "user: weir"));
    free(shown);
}

static void a_long_url_is_shown_whole(void **state)
{
    char yaml[4096] = "limits: []\nstore: 'redis-cluster://me:pw@";
    size_t n = strlen(yaml);
    for (int i = 0; i < 100; i++) {
        n += (size_t)sprintf(yaml + n, "node-%03d.example.com:6379,", i);
    }
    (void)sprintf(yaml + n, "last:6379'");
    char *shown = loading_show_of(yaml);
    assert_non_null(strstr(shown, "node-099.example.com:6379,last:6379'"));
    assert_null(strstr(shown, "pw"));
    free(shown);
    expect_round_trip(yaml);
}

static void the_rules_of_a_whole_file_read_back(void **state)
{
    expect_round_trip(
        "server: {http: off, resp: 'unix:/run/weir.sock', admin: '[::1]:1', state: '/run/we ir', "
        "check_secrets: /run/c, admin_secrets: '/run/a b', "
        "memory: 1.5GiB, trusted_proxies: [], headers: x-delta}\n"
        "store: {url: 'redis://h', deadline: 1.5ms, fleet_size: 3, prefix: x, user: u}\n"
        "attributes: {tier: ['header:X-Tier', 'query:t'], user: 'header:X-User', "
        "tokens: request, plan: [request]}\n"
        "allow: [{ip: [10.0.0.0/8, '::1'], path: /a}, {user: root}]\n"
        "block: [{user: ['*bad*', '\\*']}]\n"
        "limits:\n"
        "- {name: a, when: {path: [/a/**, '/b\\*'], method: get}, unless: {host: '*.X.org'}, "
        "key: [user|ip, tier], rate: 1.5M/day, burst: 7, cost: 'attribute:tokens', group: g, "
        "on_full: deny, on_missing: deny, on_store_failure: closed, consistency: leased, shadow: "
        "true, retry_jitter: 12.34%, ipv4_prefix: 24, ipv6_prefix: 48, expose: false, deny: "
        "{status: 402, message: \"it's: {no}\"}}\n"
        "- {name: b, key: [], rate: 0.3/90s, algorithm: leaky_bucket, queue: 3, cost: 2}\n"
        "- {name: c, key: [ip], rate: 7/1h30m, algorithm: fixed_window, align: key}\n"
        "- {name: d, key: [ip], rate: 7/s, algorithm: sliding_log, on_full: allow}\n"
        "- {name: e, key: [ip], rate: 7/s, algorithm: sliding_window, tiers: {by: plan, default: "
        "y, "
        "x: {rate: 9/min}, y: {max_keys: 5}}}\n");
    expect_round_trip(
        "envoy: {charge: each}\n"
        "limits:\n"
        "- {name: a, unless: [{user: a}, {user: b, path: ['/c', '/d/**']}], key: [], rate: 1/h}\n"
        "- {name: b, unless: [{user: a}], key: [], rate: 1/h, label: \"l: 'x'\", quota_mode: "
        "true}\n"
        "- {name: c, key: [ip], rate: 7/7day, algorithm: fixed_window, align: epoch,"
        " replaces: [a, \"l: 'x'\"]}\n");
    expect_round_trip("limits: []");
    expect_round_trip("store: {url: redis-cluster://h, networks: []}\nlimits: []");
    expect_round_trip(
        "store: {url: redis-cluster://h, networks: [10.0.0.0/8, 'fd00::/8']}\nlimits: []");
    expect_round_trip(
        "server: {trusted_proxies: ['::ffff:10.0.0.0/104', '2001:db8::/32']}\nlimits: []");
}

static void names_that_yaml_reads_as_something_else_read_back(void **state)
{
    static const char *const names[] = {"null", "true", "1",  "1.5",  "-", "--",  "---", "...",
                                        ".",    "_",    "-a", "0x10", "y", "1e3", "-1",  "a.b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char yaml[512];
        (void)snprintf(
            yaml, sizeof yaml,
            "attributes: {'%s': 'query:x'}\nallow: [{'%s': x}]\n"
            "limits: [{name: '%s', when: {'%s': '%s'}, key: ['%s', '%s|ip'], rate: 5/min, "
            "group: '%s', cost: 'attribute:%s', tiers: {by: '%s', default: '%s', '%s': {}}}]",
            names[i], names[i], names[i], names[i], names[i], names[i], names[i], names[i],
            names[i], names[i], names[i], names[i]);
        expect_round_trip(yaml);
    }
}

static void nasty_texts_read_back(void **state)
{
    static const char *const texts[] = {
        "'it''s'",       "\"a\\tb\"",   "\"\\e[31m\"",     "\"a\\nb\"",      "\" lead\"",
        "\"trail \"",    "\"a: b\"",    "\"# no\"",        "\"[\"",          "\"a\\\"b\\\\c\"",
        "\"\\x7f\"",     "\"\\x80\"",   "\"\\x85\"",       "\"a\\x9fb\"",    "\"\\u2028\"",
        "\"x\\u2029y\"", "\"\\ufeff\"", "\"\\ufffe\"",     "\"\\uffff\"",    "\"\\U0001f600\"",
        "\"\\u00e4\"",   "\"%\"",       "\"@\"",           "\"`\"",          "\"*x\"",
        "\"&x\"",        "\"!x\"",      "\"|\"",           "\">\"",          "\"- x\"",
        "\"? x\"",       "\"a\\rb\"",   "\"a\\r\\nb\"",    "\"\\x01\\x1f\"", "\"'\\t'\"",
        "\"a  b\"",      "\"\\u00a0\"", "\"\\U0001fffe\"", "\"\\ud7ff\"",    "\"\\ue000\"",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char yaml[256];
        (void)snprintf(yaml, sizeof yaml,
                       "server: {state: %s}\nstore: {url: 'redis://h', user: %s}\n"
                       "allow: [{user: [%s, x]}]\nlimits: []",
                       texts[i], texts[i], texts[i]);
        char *once = loading_show_of(yaml);
        const char *told = loading_told_of(once);
        if (strstr(told, "warning") == NULL && told[0] != 0) {
            fail_msg("%s: what is shown is not read: %s\n%s", texts[i], told, once);
        }
        free(once);
        expect_round_trip(yaml);
    }
}

static void numbers_read_back_exactly(void **state)
{
    uint64_t seed = 11;
    for (uint64_t i = unit_scale(2000); i > 0; i--) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "server: {memory: 100TB}\nlimits: [{name: a, key: [ip], rate: %llu/%lluus, "
                       "burst: %llu, max_keys: %llu, retry_jitter: %llu.%02llu%%}]",
                       (unsigned long long)(unit_random(&seed) % 100000 + 1),
                       (unsigned long long)(unit_random(&seed) % 100000000 + 1000),
                       (unsigned long long)(unit_random(&seed) % 1000000 + 1),
                       (unsigned long long)(unit_random(&seed) % 1000000 + 1),
                       (unsigned long long)(unit_random(&seed) % 100),
                       (unsigned long long)(unit_random(&seed) % 100));
        expect_round_trip(yaml);
    }
}

static void an_attribute_that_only_callers_send_is_marked(void **state)
{
    char *shown = loading_show_of("attributes: {user: request, tier: ['header:X-Tier', request]}\n"
                                  "limits: [{name: a, key: [user, tier], rate: 5/min}]\n");
    (void)state;
    assert_true(loading_has_line(shown, "user: [request] # not from /v1/auth"));
    assert_true(loading_has_line(shown, "tier: ['header:X-Tier', request]"));
    free(shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attribute_that_only_callers_send_is_marked),
        cmocka_unit_test(every_default_is_shown),
        cmocka_unit_test(the_memory_of_each_limit_and_of_all_is_shown),
        cmocka_unit_test(no_password_is_shown),
        cmocka_unit_test(hosts_and_databases_are_shown),
        cmocka_unit_test(a_long_url_is_shown_whole),
        cmocka_unit_test(the_rules_of_a_whole_file_read_back),
        cmocka_unit_test(names_that_yaml_reads_as_something_else_read_back),
        cmocka_unit_test(nasty_texts_read_back),
        cmocka_unit_test(numbers_read_back_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
