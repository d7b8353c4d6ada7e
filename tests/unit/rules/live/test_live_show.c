/* The rules in use as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/live/live_show.h"
#include "support/rules/rules_ask.h"

static char *shown(struct weir_rules *rules)
{
    char *text;
    size_t len;
    assert_int_equal(live_show(rules, NULL, &text, &len), 0);
    assert_int_equal(strlen(text), len);
    return text;
}

static void assert_shows(struct weir_rules *rules, const char *part, int yes)
{
    char *text = shown(rules);
    if ((strstr(text, part) != NULL) != yes) {
        fail_msg("found\n%s\nexpected%s '%s'", text, yes ? "" : " no", part);
    }
    free(text);
}

static void limits_put_in_and_removed_are_seen(void **state)
{
    static const char put[] = "{name: b, key: [user], rate: 7/h}";
    struct weir_rules *r = rules_open("limits: [{name: a, key: [], rate: 5/min}]");
    assert_shows(r, "name: a\n", 1);
    assert_shows(r, "rate: 7/h", 0);
    assert_int_equal(weir_rules_put(r, put, strlen(put), NULL), 0);
    assert_int_equal(weir_rules_remove(r, "a", NULL), 0);
    assert_shows(r, "name: a\n", 0);
    assert_shows(r, "rate: 7/h", 1);
    weir_rules_close(r);
}

static void what_is_shown_reads_back_as_the_same(void **state)
{
    struct weir_rules *r = rules_open("allow: [{ip: 10.0.0.0/8}]\n"
                                      "limits: [{name: a, key: [user|ip], rate: 5/min}]");
    assert_int_equal(weir_rules_shadow_set(r, "a", 1, NULL), 0);
    char *before = shown(r);
    assert_int_equal(weir_rules_reload_text(r, "test", before, strlen(before), NULL), 0);
    char *after = shown(r);
    assert_string_equal(after, before);
    free(before);
    free(after);
    weir_rules_close(r);
}

static void what_is_switched_to_shadow_is_named(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: a, key: [], rate: 5/min},"
                                      "{name: b, key: [], rate: 5/min}]");
    assert_shows(r, "by hand", 0);
    assert_int_equal(weir_rules_shadow_set(r, "b", 1, NULL), 0);
    assert_shows(r, "# switched to shadow by hand: b\n", 1);
    assert_shows(r, "shadow: true", 0); /* the rules do not say so */
    assert_int_equal(weir_rules_shadow_set(r, NULL, 1, NULL), 0);
    assert_shows(r, "# switched to shadow by hand: any limit to come, a, b\n", 1);
    assert_int_equal(weir_rules_shadow_set(r, NULL, 0, NULL), 0);
    assert_shows(r, "by hand", 0);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_put_in_and_removed_are_seen),
        cmocka_unit_test(what_is_shown_reads_back_as_the_same),
        cmocka_unit_test(what_is_switched_to_shadow_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
