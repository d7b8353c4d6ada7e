/* The built-in limit of CL.THROTTLE in the rule file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/file/adhoc.h"
#include "support/rules/loading.h"
#include "support/rules/rules_ask.h"

#define LIMIT "limits: [{name: a, key: [], rate: 5/min}]\n"

static struct adhoc_config read(const char *yaml)
{
    struct config config = {0};
    struct problems problems = {0};
    assert_int_equal(config_read_text(&config, "rules", text_of(yaml), &problems), 0);
    struct adhoc_config adhoc = config.adhoc;
    config_finish(&config);
    return adhoc;
}

static void it_is_on_unless_it_is_switched_off(void **state)
{
    struct adhoc_config adhoc = read(LIMIT);
    assert_false(adhoc.off);
    assert_int_equal(adhoc.max_keys, 1000000);
    assert_int_equal(adhoc.on_full, WEIR_EVICT);
    assert_int_equal(adhoc.consistency, CONSISTENCY_DEFAULT);
    adhoc = read("adhoc: {max_keys: 5k, on_full: deny, consistency: local}\n" LIMIT);
    assert_int_equal(adhoc.max_keys, 5000);
    assert_int_equal(adhoc.on_full, WEIR_DENY_NEW);
    assert_int_equal(adhoc.consistency, CONSISTENCY_LOCAL);
    assert_true(read("adhoc: off\n" LIMIT).off);
    assert_true(read("adhoc: 'off'\n" LIMIT).off);
}

static void its_table_counts_where_it_is_on(void **state)
{
    struct problems problems = {0};
    struct config config = {.adhoc = read(LIMIT)};
    uint64_t bytes = adhoc_bytes(&config, &problems);
    assert_true(bytes > 16000000 && bytes < 40000000);
    config.fleet = FLEET_GIVEN;
    assert_int_equal(adhoc_bytes(&config, &problems), 0); /* in the store */
    config.fleet = FLEET_NONE;
    config.adhoc.off = true;
    assert_int_equal(adhoc_bytes(&config, &problems), 0);
    assert_null(rules_complaint("adhoc: off\nserver: {memory: 20MB}\n" LIMIT));
    assert_non_null(strstr(rules_complaint("server: {memory: 20MB}\n" LIMIT),
                           "found limits and adhoc that need"));
}

static void what_is_shown_reads_back(void **state)
{
    static const char *const rows[][2] = {
        {"adhoc: off\n", "\nadhoc: off\n"},
        {"adhoc: {on_full: allow}\n",
         "\nadhoc: {max_keys: 1M, on_full: allow, consistency: local}"},
        {"store: redis://a\n", "\nadhoc: {max_keys: 1M, on_full: evict, consistency: exact"},
        {"store: redis://a\nadhoc: {consistency: local}\n",
         "\nadhoc: {max_keys: 1M, on_full: evict, consistency: local}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml, "%s" LIMIT, rows[i][0]);
        char *shown = loading_show_of(yaml);
        char *again = loading_show_of(shown);
        assert_non_null(strstr(shown, rows[i][1]));
        assert_string_equal(again, shown);
        free(shown);
        free(again);
    }
}

static void its_name_is_taken_while_it_is_on(void **state)
{
    static const char limit[] = "{name: adhoc, key: [], rate: 5/min}";
    static const char without[] = "adhoc: off\n" LIMIT;
    struct weir_rules *r = rules_open(LIMIT);
    struct weir_error error;
    assert_int_equal(weir_rules_put(r, limit, strlen(limit), &error), WEIR_ERULES);
    assert_non_null(strstr(error.text, "found a limit named 'adhoc'"));
    assert_int_equal(weir_rules_reload_text(r, "rules", without, strlen(without), NULL), 0);
    assert_int_equal(weir_rules_put(r, limit, strlen(limit), &error), 0);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_on_unless_it_is_switched_off),
        cmocka_unit_test(its_table_counts_where_it_is_on),
        cmocka_unit_test(what_is_shown_reads_back),
        cmocka_unit_test(its_name_is_taken_while_it_is_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
