#include "rules/value/quote.h"
#include "support/engine/unit_limiter.h"

static const char *quoted(struct weir_text text)
{
    static char buffer[QUOTE_MAX + 1];
    buffer[QUOTE_MAX] = 'X';
    const char *result = quote(text, buffer);
    assert_ptr_equal(result, buffer);
    assert_int_equal(buffer[QUOTE_MAX], 'X');
    return result;
}

static void printable_text_stands_between_quotes(void **state)
{
    assert_string_equal(quoted(TEXT("/a b~")), "'/a b~'");
    assert_string_equal(quoted(TEXT("")), "''");
    assert_string_equal(quoted((struct weir_text){NULL, 0}), "''");
    assert_string_equal(quoted(TEXT("\\*'")), "'\\*''");
}

static void what_is_not_a_visible_character_is_escaped(void **state)
{
    assert_string_equal(quoted(TEXT("\r\n\033\0\x7f")), "'\\x0d\\x0a\\x1b\\x00\\x7f'");
    assert_string_equal(quoted(TEXT("\xc2\x9b")), "'\\xc2\\x9b'");          /* CSI */
    assert_string_equal(quoted(TEXT("\xe2\x80\xae")), "'\\xe2\\x80\\xae'"); /* from right to left */
    assert_string_equal(quoted(TEXT("\xc0\xaf\xff\xc3")), "'\\xc0\\xaf\\xff\\xc3'"); /* no UTF-8 */
    assert_string_equal(quoted(TEXT("\xed\xa0\x80")), "'\\xed\\xa0\\x80'"); /* a surrogate */
}

static void visible_characters_of_utf_8_stay(void **state)
{
    assert_string_equal(quoted(TEXT("gr\xc3\xbc\xc3\x9f")), "'gr\xc3\xbc\xc3\x9f'");
    assert_string_equal(quoted(TEXT("\xe6\xb0\xb4\xf0\x9f\x8c\x8a")),
                        "'\xe6\xb0\xb4\xf0\x9f\x8c\x8a'");
}

static void a_long_text_is_cut_and_says_so(void **state)
{
    char text[200];
    for (size_t n = 0; n <= sizeof text; n++) {
        memset(text, n % 2 ? 'a' : '\n', sizeof text);
        const char *result = quoted((struct weir_text){text, n});
        size_t length = strlen(result);
        size_t whole = 2 + n * (n % 2 ? 1 : 4);
        assert_true(length < QUOTE_MAX);
        assert_true(length == whole || strcmp(result + length - 4, "'...") == 0);
        assert_true(length == whole || length >= 60);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_text_stands_between_quotes),
        cmocka_unit_test(what_is_not_a_visible_character_is_escaped),
        cmocka_unit_test(visible_characters_of_utf_8_stay),
        cmocka_unit_test(a_long_text_is_cut_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
