/* Finding a cookie in a header field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "rules/value/cookie.h"

static void assert_cookie(const char *field, const char *name, const char *expected)
{
    struct weir_text value;
    assert_true(cookie_find(text_of(field), text_of(name), &value));
    assert_int_equal(value.len, strlen(expected));
    assert_memory_equal(value.at, expected, value.len);
}

static void a_cookie_is_found_wherever_it_stands(void **state)
{
    assert_cookie("sid=31d4", "sid", "31d4");
    assert_cookie("sid=31d4; lang=en", "sid", "31d4");
    assert_cookie("lang=en; sid=31d4; x=y", "sid", "31d4");
    assert_cookie("lang=en;sid=31d4", "sid", "31d4");
    assert_cookie("  lang=en ;\t sid = 31d4 ", "sid", "31d4");
}

static void only_the_whole_name_counts_in_its_own_letters(void **state)
{
    assert_cookie("xsid=1; sidx=2; SID=3; s=sid=4", "sid", "");
    assert_cookie("", "sid", "");
    assert_cookie("sid", "sid", "");
    assert_cookie("sid=", "sid", "");
    assert_cookie(";;=;", "sid", "");
}

static void the_value_is_all_up_to_the_semicolon_without_quotes(void **state)
{
    assert_cookie("sid=a=b==", "sid", "a=b==");
    assert_cookie("sid=\"a b\"", "sid", "a b");
    assert_cookie("sid=\"", "sid", "\"");
    assert_cookie("sid=%31", "sid", "%31");
}

static void two_different_values_are_refused_and_equal_ones_are_one(void **state)
{
    struct weir_text value;
    assert_false(cookie_find(TEXT("sid=1; sid=2"), TEXT("sid"), &value));
    assert_false(cookie_find(TEXT("sid=1; sid="), TEXT("sid"), &value));
    assert_cookie("sid=1; sid=\"1\"", "sid", "1");
    assert_cookie("sid=1; sid=2; lang=en", "lang", "en");
}

static void names_are_tokens(void **state)
{
    assert_true(cookie_name_is_good(TEXT("__Host-sid")));
    assert_true(cookie_name_is_good(TEXT("a.b~c")));
    assert_false(cookie_name_is_good(TEXT("")));
    assert_false(cookie_name_is_good(TEXT("a b")));
    assert_false(cookie_name_is_good(TEXT("a=b")));
    assert_false(cookie_name_is_good(TEXT("a;b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_is_found_wherever_it_stands),
        cmocka_unit_test(only_the_whole_name_counts_in_its_own_letters),
        cmocka_unit_test(the_value_is_all_up_to_the_semicolon_without_quotes),
        cmocka_unit_test(two_different_values_are_refused_and_equal_ones_are_one),
        cmocka_unit_test(names_are_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
