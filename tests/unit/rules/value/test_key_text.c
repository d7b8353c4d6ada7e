/* Keys as text for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir_rules.h>

#define SHOWS(key, expected) assert_shows(key, sizeof(key) - 1, expected, 200)
#define SHOWS_IN(size, key, expected) assert_shows(key, sizeof(key) - 1, expected, size)

static void assert_shows(const char *key, size_t key_len, const char *expected, size_t size)
{
    char text[201];
    memset(text, '#', sizeof text);
    size_t len = weir_rules_key_text(key, key_len, text, size);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
    assert_int_equal(text[size], '#');
}

static void a_key_of_one_part_is_its_value(void **state)
{
    SHOWS("alice", "alice");
    SHOWS("*", "*");
    SHOWS("", "");
    SHOWS("5:alice", "5:alice"); /* no key has a single part with a length */
    SHOWS("user=alice", "user=alice");
    SHOWS("J\xc3\xb6rg", "J\xc3\xb6rg");
}

static void parts_of_a_key_stand_beside_each_other(void **state)
{
    SHOWS("5:alice3:get", "alice|get");
    SHOWS("user=5:alice", "user=alice");
    SHOWS("user=5:alice7:/search", "user=alice|/search");
    SHOWS("2:4:1:|", "4:|\\x7c");
    SHOWS("1:a1:b1:c1:d1:e1:f1:g1:h", "a|b|c|d|e|f|g|h");
}

static void what_only_looks_like_parts_is_shown_as_it_is(void **state)
{
    SHOWS("1:a1:b1:c1:d1:e1:f1:g1:h1:i", "1:a1:b1:c1:d1:e1:f1:g1:h1:i"); /* nine */
    SHOWS("5:alice3:ge", "5:alice3:ge");
    SHOWS("5:alice3:gets", "5:alice3:gets");
    SHOWS("5:alice03:get", "5:alice03:get");
    SHOWS("0:3:get", "0:3:get");
    SHOWS("99999999999999999999:x3:get", "99999999999999999999:x3:get");
    SHOWS("us er=5:alice", "us er=5:alice");
    SHOWS("user=5", "user=5");
    SHOWS("user=", "user=");
    SHOWS("=5:alice", "=5:alice");
}

static void an_address_is_shown_as_one(void **state)
{
    SHOWS("\x04\xc0\x00\x02\x01", "192.0.2.1");
    SHOWS("\x04"
          "abcd",
          "97.98.99.100");
    SHOWS("\x06\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\0", "2001:db8::");
    SHOWS("ip=5:\x04\xc0\x00\x02\x01"
          "3:get",
          "ip=192.0.2.1|get");
    SHOWS("abcd", "abcd");
}

static void nothing_in_it_can_drive_a_terminal_or_end_a_line(void **state)
{
    SHOWS("a\nb\x1b[31m\x7f\xff", "a\\x0ab\\x1b[31m\\x7f\\xff");
    SHOWS("\xe2\x80\xae", "\\xe2\\x80\\xae"); /* turns the direction of writing */
    SHOWS("a\\x0a|b", "a\\x5cx0a\\x7cb");
    SHOWS("a\0b", "a\\x00b");
}

static void what_does_not_fit_is_cut_behind_a_whole_character(void **state)
{
    SHOWS_IN(6, "alice", "alice");
    SHOWS_IN(6, "alices", "al...");
    SHOWS_IN(9, "ab\xff\xff", "ab...");
    SHOWS_IN(10, "ab\xff\xff", "ab\\xff...");
    SHOWS_IN(11, "ab\xff\xff", "ab\\xff\\xff");
    SHOWS_IN(7, "ab\xc3\xb6xyz", "ab...");
    SHOWS_IN(8, "ab\xc3\xb6xyzz", "ab\xc3\xb6...");
    SHOWS_IN(9, "5:alice3:get", "alice...");
    SHOWS_IN(4, "alice", "...");
    SHOWS_IN(3, "alice", "..");
    SHOWS_IN(1, "alice", "");
    SHOWS_IN(1, "", "");
    assert_int_equal(weir_rules_key_text("alice", 5, NULL, 0), 0);
    assert_int_equal(weir_rules_key_text("alice", 5, NULL, 9), 0);
    char text[4] = "xyz";
    assert_int_equal(weir_rules_key_text("alice", 5, text, 0), 0);
    assert_string_equal(text, "xyz");
    assert_int_equal(weir_rules_key_text(NULL, 0, text, sizeof text), 0);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_of_one_part_is_its_value),
        cmocka_unit_test(parts_of_a_key_stand_beside_each_other),
        cmocka_unit_test(what_only_looks_like_parts_is_shown_as_it_is),
        cmocka_unit_test(an_address_is_shown_as_one),
        cmocka_unit_test(nothing_in_it_can_drive_a_terminal_or_end_a_line),
        cmocka_unit_test(what_does_not_fit_is_cut_behind_a_whole_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
