#include "base/error.h"
#include "support/engine/unit_limiter.h"

#include <errno.h>
#include <stdio.h>

/* cmocka has a macro of this name; the parentheses reach the function. */
#define FAIL (fail)

static void every_code_has_a_name_and_a_text_of_its_own(void **state)
{
#define ROW(name, value, text) {name, #name, text},
    const struct {
        int code;
        const char *name;
        const char *text;
    } rows[] = {WEIR_ERRORS(ROW)};
#undef ROW
    const int n = (int)(sizeof rows / sizeof rows[0]);
    for (int i = 0; i < n; i++) {
        assert_int_equal(rows[i].code, -1 - i);
        assert_string_equal(weir_errname(rows[i].code), rows[i].name);
        assert_string_equal(weir_strerror(rows[i].code), rows[i].text);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(rows[i].text, rows[j].text);
        }
    }
    assert_string_equal(weir_strerror(0), "success");
    assert_string_equal(weir_errname(0), "WEIR_OK");
}

static void unknown_codes_say_so(void **state)
{
    const int unknown[] = {1, -1000, INT32_MIN, INT32_MAX, -99};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(weir_errname(unknown[i]), "WEIR_E?");
        assert_non_null(strstr(weir_strerror(unknown[i]), "unknown"));
    }
}

static void the_version_is_that_of_the_header(void **state)
{
    char version[32];
    (void)snprintf(version, sizeof version, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR,
                   WEIR_VERSION_PATCH);
    assert_string_equal(weir_version(), version);
}

static void a_failure_fills_the_error_and_returns_its_code(void **state)
{
    struct weir_error error;
    assert_int_equal(FAIL(&error, WEIR_ERATE, "count is %d", 0), WEIR_ERATE);
    assert_int_equal(error.code, WEIR_ERATE);
    assert_string_equal(error.text, "count is 0");
    assert_int_equal(FAIL(NULL, WEIR_EQUOTA, "nobody listens"), WEIR_EQUOTA);
}

static void a_long_text_is_cut_and_terminated(void **state)
{
    struct weir_error error;
    char large[1000];
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = '\0';
    memset(&error, 0x5a, sizeof error);
    (void)FAIL(&error, WEIR_EIO, "%s", large);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
}

static void failed_system_calls_are_mapped_to_codes(void **state)
{
    const struct {
        int number;
        int code;
    } rows[] = {{ENOMEM, WEIR_ENOMEM}, {EAGAIN, WEIR_ENOMEM}, {ENOSPC, WEIR_ENOSPC},
                {EDQUOT, WEIR_ENOSPC}, {EFBIG, WEIR_ENOSPC},  {EACCES, WEIR_EACCES},
                {EPERM, WEIR_EACCES},  {ELOOP, WEIR_EACCES},  {EIO, WEIR_EIO},
                {ENOENT, WEIR_ENOENT}, {EMFILE, WEIR_EIO}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_error error;
        errno = rows[i].number;
        assert_int_equal(fail_errno(&error, "cannot open", "/some/path"), rows[i].code);
        assert_non_null(strstr(error.text, "/some/path: cannot open: "));
        assert_non_null(strstr(error.text, strerror(rows[i].number)));
        errno = rows[i].number;
        assert_int_equal(fail_errno(&error, "mmap", NULL), rows[i].code);
        assert_int_equal(strncmp(error.text, "mmap: ", 6), 0);
        errno = rows[i].number;
        assert_int_equal(fail_errno(NULL, "mmap", NULL), rows[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_and_a_text_of_its_own),
        cmocka_unit_test(unknown_codes_say_so),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(a_failure_fills_the_error_and_returns_its_code),
        cmocka_unit_test(a_long_text_is_cut_and_terminated),
        cmocka_unit_test(failed_system_calls_are_mapped_to_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
