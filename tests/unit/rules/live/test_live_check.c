/* rules_check(): what rules that are not in use are told to be and to change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/live/live.h"
#include "support/rules/rules_ask.h"

/* Everything that was told, a line each. */
struct told {
    char text[4096];
    size_t len;
};

static void add(struct told *t, const char *kind, const char *text, unsigned line)
{
    t->len +=
        (size_t)snprintf(t->text + t->len, sizeof t->text - t->len, "%s %u %s\n", kind, line, text);
    assert_true(t->len < sizeof t->text);
}

static void tell_limit(void *arg, const char *name, unsigned line)
{
    add(arg, "limit", name, line);
}

static void tell_change(void *arg, const char *line)
{
    add(arg, "change", line, 0);
}

static void tell_message(void *arg, const struct weir_rules_message *m)
{
    add(arg, m->severity == WEIR_RULES_ERROR ? "error" : "warning", m->text, m->line);
}

static int check(struct weir_rules *rules, const char *yaml, struct told *t)
{
    static const struct rules_check_told tell = {tell_limit, tell_change, tell_message};
    struct weir_error error = {0};
    struct weir_text text = text_of(yaml);
    *t = (struct told){.len = 0};
    return rules_check(rules, &text, &tell, t, &error);
}

static const char in_use[] = "limits:\n  - {name: old, key: [user], rate: 5/min}\n";

static void good_rules_tell_their_limits_and_what_would_change(void **state)
{
    static struct told t;
    struct weir_rules *r = rules_open(in_use);
    assert_int_equal(check(r, "limits:\n  - {name: new, key: [user], rate: 5/min}\n", &t), 0);
    assert_non_null(strstr(t.text, "limit 2 new\n"));
    assert_non_null(strstr(t.text, "change 0 "));
    assert_null(strstr(t.text, "error"));
    weir_rules_close(r);
}

/* Somebody who mends the first error should not meet the next one only then. */
static void rules_with_an_error_are_checked_to_the_end(void **state)
{
    static struct told t;
    struct weir_rules *r = rules_open(in_use);
    static const char bad[] = "limits:\n"
                              "  - {name: first, key: [user], rate: often}\n"
                              "  - {name: second, key: [user], rate: 5/min}\n"
                              "  - {name: third, key: [user], rate: 5/min, max_keys: 4000000000}\n";
    assert_int_equal(check(r, bad, &t), WEIR_ERULES);
    assert_non_null(strstr(t.text, "error 2 found 'often'"));
    assert_non_null(strstr(t.text, "limit 3 second\n"));
    assert_non_null(strstr(t.text, "found limits and adhoc that need "));
    assert_null(strstr(t.text, "change"));
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_rules_tell_their_limits_and_what_would_change),
        cmocka_unit_test(rules_with_an_error_are_checked_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
