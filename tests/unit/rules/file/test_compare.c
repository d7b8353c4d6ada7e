/* What a reload cannot take over causes one warning for each key, and does not prevent it. */
#include "support/rules/loading.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>

static const char first[] = "server: {http: '127.0.0.1:1', trusted_proxies: [10.0.0.0/8]}\n"
                            "store: {url: 'redis://a', deadline: 5ms}\nlimits: []\n";

/* What is told when the first rules become the others. */
static const char *told_of_reload(const char *from, const char *to)
{
    static struct loading told;
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules;
    struct weir_error error = {0};
    options.message = loading_message;
    options.message_arg = &told;
    assert_int_equal(weir_rules_open_text(&rules, "f", from, strlen(from), &options, &error), 0);
    memset(&told, 0, sizeof told);
    if (weir_rules_reload_text(rules, "f", to, strlen(to), &error) != 0) {
        fail_msg("%s", error.text);
    }
    weir_rules_close(rules);
    assert_int_equal(told.errors, 0);
    return told.told;
}

#define LIMIT "limits: [{name: a, key: [], rate: 1/s}]\n"

static void each_key_that_has_changed_is_told(void **state)
{
    static const struct {
        const char *from;
        const char *to;
        const char *key;
    } rows[] = {
        {"server: {http: 'a:1'}", "server: {http: 'a:2'}", "server.http"},
        {"server: {resp: 'a:1'}", "server: {}", "server.resp"},
        {"server: {}", "server: {admin: off}", "server.admin"},
        {"server: {state: /a}", "server: {}", "server.state"},
        {"server: {check_secrets: /a}", "server: {check_secrets: /b}", "server.check_secrets"},
        {"server: {}", "server: {admin_secrets: /b}", "server.admin_secrets"},
        {"server: {}", "server: {trusted_proxies: []}", "server.trusted_proxies"},
        {"server: {trusted_proxies: 10.0.0.0/8}", "server: {trusted_proxies: 10.0.0.0/9}",
         "server.trusted_proxies"},
        {"server: {trusted_proxies: '::/8'}", "server: {trusted_proxies: 0.0.0.0/8}",
         "server.trusted_proxies"},
        {"server: {headers: off}", "server: {headers: ietf}", "server.headers"},
        {"adhoc: off", "adhoc: {}", "adhoc"},
        {"adhoc: {max_keys: 5}", "adhoc: {max_keys: 6}", "adhoc.max_keys"},
        {"adhoc: {on_full: deny}", "", "adhoc.on_full"},
        {"adhoc: {consistency: local}", "adhoc: {}", "adhoc.consistency"},
        {"store: redis://a", "store: redis://b", "store.url"},
        {"store: {url: redis://a, user: a}", "store: {url: redis://a, user: b}", "store.user"},
        {"store: {url: redis://a, prefix: a}", "store: {url: redis://a, prefix: b}",
         "store.prefix"},
        {"store: {url: redis://a, password_file: /a}", "store: redis://a", "store.password_file"},
        {"store: {url: redis://a, sentinel_password_file: /a}", "store: redis://a",
         "store.sentinel_password_file"},
        {"store: {url: redis://a, deadline: 6ms}", "store: redis://a", "store.deadline"},
        {"store: {url: redis://a, fleet_size: 2}", "store: redis://a", "store.fleet_size"},
        {"store: {url: rediss://a, tls: {ca: a}}", "store: {url: rediss://a, tls: {ca: b}}",
         "store.tls"},
        {"store: {url: redis://a, networks: []}", "store: redis://a", "store.networks"},
        {"store: {url: redis://a, networks: 10.0.0.0/8}",
         "store: {url: redis://a, networks: 10.0.0.0/9}", "store.networks"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char from[256];
        char to[256];
        char expected[256];
        (void)snprintf(from, sizeof from, "%s\n" LIMIT, rows[i].from);
        (void)snprintf(to, sizeof to, "%s\n" LIMIT, rows[i].to);
        (void)snprintf(expected, sizeof expected,
                       "0:0: warning: %s has changed, which takes effect after a restart\n",
                       rows[i].key);
        assert_string_equal(told_of_reload(from, to), expected);
        assert_string_equal(told_of_reload(to, from), expected);
    }
}

static void what_has_not_changed_is_not_told(void **state)
{
    const char *told = told_of_reload(first, first);
    assert_null(strstr(told, "restart"));
    told =
        told_of_reload(first, "store:\n  deadline: 5ms\n  url: redis://a\nlimits: []\nserver:\n"
                              "  trusted_proxies: ['::ffff:10.0.0.0/104']\n  http: 127.0.0.1:1\n");
    assert_null(strstr(told, "restart"));
}

static void what_a_reload_takes_over_is_not_told(void **state)
{
    const char *told =
        told_of_reload("server: {memory: 1GB}\nallow: [{path: /a}]\n" LIMIT,
                       "server: {memory: 2GB}\nblock: [{path: /b}]\nattributes: {u: 'query:u'}\n"
                       "limits: [{name: b, key: [], rate: 2/s}]\n");
    assert_string_equal(told, "");
}

static void no_secret_is_told(void **state)
{
    const char *told =
        told_of_reload("store: redis://:hunter2@a\n" LIMIT, "store: redis://:hunter3@a\n" LIMIT);
    assert_string_equal(
        told, "0:0: warning: store.url has changed, which takes effect after a restart\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_that_has_changed_is_told),
        cmocka_unit_test(what_has_not_changed_is_not_told),
        cmocka_unit_test(what_a_reload_takes_over_is_not_told),
        cmocka_unit_test(no_secret_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
