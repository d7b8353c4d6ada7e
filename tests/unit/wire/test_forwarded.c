/* Lists of hops, read from the right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/forwarded.h"

/* The hops of a list, the last one first, with a bar after each. */
static void assert_hops(bool quotes, const char *list, const char *expected)
{
    char found[512] = "";
    struct weir_text rest = text_of(list);
    struct weir_text hop;
    while (forwarded_last(&rest, quotes, &hop)) {
        size_t n = strlen(found);
        (void)snprintf(found + n, sizeof found - n, "%.*s|", TEXT_ARGS(hop));
    }
    if (strcmp(found, expected) != 0) {
        fail_msg("%s: found %s, expected %s", list, found, expected);
    }
}

static void hops_are_taken_off_the_end(void **state)
{
    assert_hops(false, "", "");
    assert_hops(false, "a", "a|");
    assert_hops(false, "a, b ,\tc", "c|b|a|");
    assert_hops(false, "a,,b,", "|b||a|");
    assert_hops(false, "\"a,b\"", "b\"|\"a|"); /* it knows no quotes */
    assert_hops(true, "", "");
    assert_hops(true, "for=a, for=b;by=c", "for=b;by=c|for=a|");
}

static void a_comma_in_quotes_is_part_of_a_hop(void **state)
{
    assert_hops(true, "for=a, x=\"b,c\";for=d, for=\"e\"", "for=\"e\"|x=\"b,c\";for=d|for=a|");
    assert_hops(true, "for=a, x=\"\\\",\\\\\", for=e", "for=e|x=\"\\\",\\\\\"|for=a|");
}

/* What a proxy adds stays a hop of its own, whatever it was told. */
static void earlier_hops_cannot_change_the_last_hop(void **state)
{
    static const char *const before[] = {"\"",     "for=\"",          "for=\"\\",      "\\",
                                         "\\\"",   "\"\"\"",          "for=\"a, b",    ",",
                                         "=;=;\"", "for=\"x\\\\\\\"", "for=\"x\\\\\"", "\"\\\"\\"};
    static const char *const last[] = {"for=192.0.2.1", "for=\"[2001:db8::1]:4711\"",
                                       "by=\"a\\\"b\\\\\";for=_x"};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        for (size_t j = 0; j < sizeof last / sizeof last[0]; j++) {
            char list[256];
            struct weir_text hop;
            (void)snprintf(list, sizeof list, "%s, %s", before[i], last[j]);
            struct weir_text rest = text_of(list);
            assert_true(forwarded_last(&rest, true, &hop));
            if (!text_is(hop, last[j])) {
                fail_msg("%s: found %.*s", list, TEXT_ARGS(hop));
            }
        }
    }
}

static void a_node_is_the_value_of_for(void **state)
{
    static const struct {
        const char *hop;
        const char *node; /* NULL: none */
    } cases[] = {
        {"for=192.0.2.1", "192.0.2.1"},
        {"FOR=192.0.2.1", "192.0.2.1"},
        {"for=\"192.0.2.1:80\"", "192.0.2.1:80"},
        {"for=\"[2001:db8::1]:4711\"", "[2001:db8::1]:4711"},
        {"for=[2001:db8::1]:4711", "[2001:db8::1]:4711"},
        {"for=\"192.0.2.1:_web\"", "192.0.2.1"},
        {"for=\"[2001:db8::1]:_web\"", "[2001:db8::1]"},
        {"for=unknown", "unknown"},
        {"for=_gazonk", "_gazonk"},
        {"for=\"_gaz\\onk\"", "_gazonk"},
        {"proto=http;by=x; for=a", "a"},
        {"proto=http ; for = a ;", "a"},
        {";;for=a;;", "a"},
        {"for=a;by=\"other, \\\"longer\\\" text\"", "a"},
        {"by=\"first\";for=a", "a"},
        {"for=\"a\";by=\"b\"", "a"},
        {"", NULL},
        {"for", NULL},
        {"for=", NULL},
        {"for=\"\"", NULL},
        {"=a", NULL},
        {"for=a for=b", NULL},
        {"for=a;for=a", NULL},
        {"for=\"a", NULL},
        {"for=\"a\\", NULL},
        {"for=\"a\"b", NULL},
        {"for=a,b", NULL},
        {"for=a\\b", NULL},
        {"fo r=a", NULL},
        {"proto=https", NULL},
        {"192.0.2.1", NULL},
        {"for=\":_x\"", NULL},
        {"for=\xc3\xa9", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char room[FORWARDED_NODE_MAX];
        struct weir_text node = {"", 0};
        bool found = forwarded_node(text_of(cases[i].hop), room, &node);
        if (found != (cases[i].node != NULL) || (found && !text_is(node, cases[i].node))) {
            fail_msg("%s: found %s%.*s", cases[i].hop, found ? "" : "nothing", TEXT_ARGS(node));
        }
    }
}

static bool is_node(const char *begin, size_t length, const char *end)
{
    char hop[1024];
    char room[FORWARDED_NODE_MAX];
    struct weir_text node;
    (void)snprintf(hop, sizeof hop, "%s%0*d%s", begin, (int)length, 1, end);
    return forwarded_node(text_of(hop), room, &node);
}

/* A host is as long as a client likes: that must not hide who the client is. */
static void only_the_node_is_bounded(void **state)
{
    assert_true(is_node("for=", FORWARDED_NODE_MAX, ""));
    assert_false(is_node("for=", FORWARDED_NODE_MAX + 1, ""));
    assert_true(is_node("for=\"", FORWARDED_NODE_MAX, "\""));
    assert_false(is_node("for=\"", FORWARDED_NODE_MAX + 1, "\""));
    assert_true(is_node("host=\"", 900, "\";for=a"));
    assert_true(is_node("for=a;host=", 900, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hops_are_taken_off_the_end),
        cmocka_unit_test(a_comma_in_quotes_is_part_of_a_hop),
        cmocka_unit_test(earlier_hops_cannot_change_the_last_hop),
        cmocka_unit_test(a_node_is_the_value_of_for),
        cmocka_unit_test(only_the_node_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
