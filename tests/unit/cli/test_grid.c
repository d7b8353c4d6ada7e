/* Text from strangers on a terminal, and columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/grid.h"

static void assert_safe(struct weir_text text, bool lines, const char *expected)
{
    struct buffer b;
    buffer_init(&b, 4096);
    safe_put(&b, text, lines);
    assert_int_equal(buffer_len(&b), strlen(expected));
    assert_memory_equal(buffer_text(&b).at, expected, buffer_len(&b));
    buffer_finish(&b);
}

static void what_drives_a_terminal_is_shown_and_not_obeyed(void **state)
{
    assert_safe(TEXT("plain"), false, "plain");
    assert_safe(TEXT("\33[2J\33]0;mine\7"), false, "\\x1b[2J\\x1b]0;mine\\x07");
    assert_safe(TEXT("a\r\nb\tc\0d\177"), false, "a\\x0d\\x0ab\\x09c\\x00d\\x7f");
    assert_safe(TEXT("\xc2\x9b"
                     "2J"),
                false, "\\xc2\\x9b2J");                          /* CSI as one character */
    assert_safe(TEXT("\xe2\x80\xae"), false, "\\xe2\\x80\\xae"); /* from right to left */
    assert_safe(TEXT("gr\xc3\xbc\xc3\x9f"), false, "gr\xc3\xbc\xc3\x9f");
    assert_safe(TEXT("\xff\xc3"), false, "\\xff\\xc3");
}

static void lines_and_tabs_stay_where_they_are_wanted(void **state)
{
    assert_safe(TEXT("a:\n\tb\33\r\n"), true, "a:\n\tb\\x1b\\x0d\n");
}

static const struct grid_column columns[] = {{"NAME", false}, {"N", true}, {"WHAT", false}};

static void fill(struct grid *g)
{
    grid_init(g, columns, 3);
    grid_put(g, TEXT("gr\xc3\xbcn"));
    grid_put_count(g, 12345);
    grid_put(g, TEXT("x\n"));
    grid_put(g, TEXT(""));
    grid_put_count(g, 7);
    grid_put(g, TEXT("yy"));
}

static void assert_grid(size_t width, size_t rows, const char *expected)
{
    struct grid g;
    struct buffer b;
    fill(&g);
    buffer_init(&b, 4096);
    grid_print(&g, &b, width, rows);
    buffer_put_char(&b, 0);
    assert_string_equal(buffer_text(&b).at, expected);
    buffer_finish(&b);
    grid_finish(&g);
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    assert_grid(0, 0, "NAME      N  WHAT\ngr\xc3\xbcn  12345  x\\x0a\n          7  yy\n");
}

static void lines_are_cut_at_the_width_and_rows_at_their_number(void **state)
{
    assert_grid(4, 1, "NAME\ngr\xc3\xbcn\n");
    assert_grid(3, 2, "NAM\ngr\xc3\xbc\n   \n");
}

static void a_cell_that_is_too_long_is_cut_unless_it_is_the_last(void **state)
{
    static const struct grid_column two[] = {{"LIMIT", false}, {"KEY", false}};
    char key[4096];
    struct grid g;
    struct buffer b;
    memset(key, 1, sizeof key);
    grid_init(&g, two, 2);
    buffer_init(&b, 1 << 16);
    grid_put(&g, (struct weir_text){key, sizeof key});
    grid_put(&g, (struct weir_text){key, sizeof key});
    grid_print(&g, &b, 0, 0);
    assert_int_equal(buffer_len(&b), 64 + strlen("  KEY\n") + 64 + 2 + 4 * sizeof key + 1);
    buffer_finish(&b);
    grid_finish(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_drives_a_terminal_is_shown_and_not_obeyed),
        cmocka_unit_test(lines_and_tabs_stay_where_they_are_wanted),
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(lines_are_cut_at_the_width_and_rows_at_their_number),
        cmocka_unit_test(a_cell_that_is_too_long_is_cut_unless_it_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
