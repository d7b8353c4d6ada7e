#include "rules/value/csv.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct csv csv;

static void expect_row(const char *const *fields)
{
    struct weir_error error = {0};
    int e = csv_next(&csv, &error);
    if (e != 1) {
        fail_msg("expected a row with %s, found %d %s", fields[0], e, error.text);
    }
    unsigned n = 0;
    for (; fields[n] != NULL; n++) {
        assert_true(n < csv.fields);
        if (!text_is(csv.field[n].text, fields[n])) {
            fail_msg("field %u is '%.*s', not '%s'", n, TEXT_ARGS(csv.field[n].text), fields[n]);
        }
    }
    assert_int_equal(csv.fields, n);
}

static void expect_end(void)
{
    struct weir_error error;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(csv_next(&csv, &error), 0);
        assert_int_equal(csv.fields, 0);
        assert_int_equal(csv.rest.len, 0);
    }
}

static void expect_bad(unsigned line, unsigned column, const char *text)
{
    struct weir_error error = {0};
    assert_int_equal(csv_next(&csv, &error), WEIR_EINVAL);
    assert_string_equal(error.text, text);
    assert_int_equal(error.code, WEIR_EINVAL);
    assert_int_equal(csv.fields, 0);
    assert_int_equal(csv.field[0].line, line);
    assert_int_equal(csv.field[0].column, column);
}

static void expect_place(unsigned i, unsigned line, unsigned column)
{
    assert_int_equal(csv.field[i].line, line);
    assert_int_equal(csv.field[i].column, column);
}

/* The file is exactly one row, then the end. */
static void expect_only(struct weir_text file, const char *const *fields)
{
    csv_init(&csv, file);
    expect_row(fields);
    expect_end();
}

static void a_row_is_fields_between_commas(void **state)
{
    expect_only(TEXT("alice,5/min,10\n"), FIELDS("alice", "5/min", "10"));
    expect_only(TEXT("alice\n"), FIELDS("alice"));
    expect_only(TEXT("a,b,c,d,e,f,g,h\n"), FIELDS("a", "b", "c", "d", "e", "f", "g", "h"));
}

static void lines_end_with_lf_or_crlf_or_the_file(void **state)
{
    csv_init(&csv, TEXT("a,b\nc,d\r\ne,f"));
    expect_row(FIELDS("a", "b"));
    expect_row(FIELDS("c", "d"));
    expect_row(FIELDS("e", "f"));
    expect_end();
    expect_only(TEXT("a,b\r"), FIELDS("a", "b"));
    expect_only(TEXT("\"a\",\"b\"\r\n"), FIELDS("a", "b"));
    expect_only(TEXT("\"a\",\"b\""), FIELDS("a", "b"));
}

static void a_file_may_be_empty_or_hold_no_row(void **state)
{
    const struct weir_text files[] = {
        {NULL, 0},           TEXT(""),
        TEXT("\n"),          TEXT("\r\n"),
        TEXT("\r"),          TEXT("\n\n"),
        TEXT("  \t\r\n"),    TEXT("# a comment"),
        TEXT("#\n \n #x\n"), TEXT("\xef\xbb\xbf"),
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        csv_init(&csv, files[i]);
        expect_end();
    }
}

static void a_byte_order_mark_is_skipped_once_and_takes_no_column(void **state)
{
    csv_init(&csv, TEXT("\xef\xbb\xbf"
                        "a,b\n"));
    expect_row(FIELDS("a", "b"));
    expect_place(0, 1, 1);
    expect_only(TEXT("\xef\xbb\xbf# comment\na"), FIELDS("a"));
    expect_only(TEXT("\xef\xbb\xbf\"a\""), FIELDS("a"));
    expect_only(TEXT("\xef\xbb\xbf\xef\xbb\xbf"), FIELDS("\xef\xbb\xbf"));
    expect_only(TEXT("\xef\xbb"), FIELDS("\xef\xbb"));
}

static void blank_lines_and_comments_are_skipped_but_counted(void **state)
{
    csv_init(&csv, TEXT("# user,rate\n\n \t \r\nalice,1\n  # bob,2\n\ncarol,3 # not a comment\n#"));
    expect_row(FIELDS("alice", "1"));
    expect_place(0, 4, 1);
    expect_place(1, 4, 7);
    expect_row(FIELDS("carol", "3 # not a comment"));
    expect_place(0, 7, 1);
    expect_end();
    expect_only(TEXT("\"#1\",x"), FIELDS("#1", "x"));
    expect_only(TEXT("a,#1"), FIELDS("a", "#1"));
}

static void blanks_around_fields_are_trimmed_but_not_inside_quotes(void **state)
{
    expect_only(TEXT("  a b\t,\t c  \n"), FIELDS("a b", "c"));
    expect_only(TEXT(" \" a \" , \"b\"\t\r\n"), FIELDS(" a ", "b"));
}

static void fields_may_be_empty(void **state)
{
    expect_only(TEXT("a,,b\n"), FIELDS("a", "", "b"));
    expect_only(TEXT(","), FIELDS("", ""));
    expect_only(TEXT("a,\n"), FIELDS("a", ""));
    expect_only(TEXT(" , \n"), FIELDS("", ""));
    expect_only(TEXT("\"\"\n"), FIELDS(""));
    expect_only(TEXT("\"\",\"\""), FIELDS("", ""));
}

static void quoted_fields_may_hold_anything(void **state)
{
    expect_only(TEXT("\"a,b\",c\n"), FIELDS("a,b", "c"));
    expect_only(TEXT("\"a\nb\",c\n"), FIELDS("a\nb", "c"));
    expect_only(TEXT("\"a\r\nb\rc\"\r\n"), FIELDS("a\r\nb\rc"));
    expect_only(TEXT("\"say \"\"no\"\"\",c\n"), FIELDS("say \"no\"", "c"));
    expect_only(TEXT("\"\"\"\"\n"), FIELDS("\""));
    expect_only(TEXT("\"\"\"\"\"\",\"\"\"a\"\n"), FIELDS("\"\"", "\"a"));
    expect_only(TEXT("\"\n\n#\n\"\n"), FIELDS("\n\n#\n"));
}

static void any_byte_can_be_in_a_field(void **state)
{
    csv_init(&csv, TEXT("a\0b,\"\0\"\"\"\n\xff\x01,\x7f"));
    assert_int_equal(csv_next(&csv, NULL), 1);
    assert_true(text_equal(csv.field[0].text, TEXT("a\0b")));
    assert_true(text_equal(csv.field[1].text, TEXT("\0\"")));
    expect_row(FIELDS("\xff\x01", "\x7f"));
    expect_end();
}

static void places_are_those_of_the_first_byte_or_quote(void **state)
{
    csv_init(&csv, TEXT("a,  b,\n\"x\ny\" , \"\"\"\"\n,z"));
    expect_row(FIELDS("a", "b", ""));
    expect_place(0, 1, 1);
    expect_place(1, 1, 5);
    expect_place(2, 1, 7);
    assert_int_equal(csv.line, 2);
    expect_row(FIELDS("x\ny", "\""));
    expect_place(0, 2, 1);
    expect_place(1, 3, 6);
    assert_int_equal(csv.line, 4);
    expect_row(FIELDS("", "z"));
    expect_place(0, 4, 1);
    expect_place(1, 4, 2);
    assert_int_equal(csv.line, 4);
}

static void only_fields_in_quotes_are_copied(void **state)
{
    struct weir_text file = TEXT("a,\"b\",\"c\"\"\"\n");
    csv_init(&csv, file);
    expect_row(FIELDS("a", "b", "c\""));
    assert_ptr_equal(csv.field[0].text.at, file.at);
    assert_ptr_equal(csv.field[1].text.at, csv.unquoted + 1);
    assert_ptr_equal(csv.field[2].text.at, csv.unquoted + 2);
}

static void a_bad_row_is_reported_and_the_next_line_read(void **state)
{
    csv_init(&csv, TEXT("a,b\"c\ngood,1\n\"a\"b,\"c\ngood,2\na\rb\ngood,3\n1,2,3,4,5,6,7,8,9\n"
                        "good,4\n"));
    expect_bad(1, 4,
               "found a quote inside a field, expected the whole field in quotes, this one "
               "doubled");
    expect_row(FIELDS("good", "1"));
    expect_bad(3, 4, "found text after a closing quote, expected a comma or the end of the line");
    expect_row(FIELDS("good", "2"));
    expect_bad(5, 2, "found a carriage return inside a line, expected LF or CRLF at its end");
    expect_row(FIELDS("good", "3"));
    expect_bad(7, 17,
               "found more than 8 fields, expected fewer commas, or fields with commas in "
               "quotes");
    expect_row(FIELDS("good", "4"));
    expect_end();
}

static void a_bad_row_of_several_lines_is_left_behind_its_bad_place(void **state)
{
    csv_init(&csv, TEXT("\"a\nb\" x,1\ngood\n"));
    expect_bad(2, 4, "found text after a closing quote, expected a comma or the end of the line");
    expect_row(FIELDS("good"));
    expect_end();
}

static void a_quote_that_is_never_closed_costs_one_line(void **state)
{
    const char *never = "found a quote that is never closed, expected a closing quote";
    csv_init(&csv, TEXT("a,\"b\ngood,1\ngood,2"));
    expect_bad(1, 3, never);
    expect_row(FIELDS("good", "1"));
    expect_row(FIELDS("good", "2"));
    expect_end();
    csv_init(&csv, TEXT("\""));
    expect_bad(1, 1, never);
    expect_end();
    csv_init(&csv, TEXT("\"\"\""));
    expect_bad(1, 1, never);
    expect_end();
    csv_init(&csv, TEXT("a\n\"\r"));
    expect_row(FIELDS("a"));
    expect_bad(2, 1, never);
    expect_end();
}

static void errors_need_no_room(void **state)
{
    csv_init(&csv, TEXT("\"\nb"));
    assert_int_equal(csv_next(&csv, NULL), WEIR_EINVAL);
    expect_row(FIELDS("b"));
}

/* len bytes of c, then the tail; freed by the caller. */
static struct weir_text long_line(const char *head, char c, size_t len, const char *tail)
{
    size_t before = strlen(head);
    char *line = malloc(before + len + strlen(tail) + 1);
    assert_non_null(line);
    memcpy(line, head, before);
    memset(line + before, c, len);
    memcpy(line + before + len, tail, strlen(tail) + 1);
    return text_of(line);
}

static void expect_long(const char *head, char c, size_t len, const char *tail, const char *text)
{
    struct weir_text file = long_line(head, c, len, tail);
    csv_init(&csv, file);
    if (text != NULL) {
        expect_bad(1, head[0] == 'a' ? 3 : 1, text);
    } else {
        assert_int_equal(csv_next(&csv, NULL), 1);
        assert_int_equal(csv.field[csv.fields - 1].text.len, c == '"' ? len / 2 : len);
    }
    expect_row(FIELDS("good"));
    expect_end();
    free((char *)file.at);
}

static void a_row_has_at_most_16384_bytes(void **state)
{
    const char *plain = "found a row of more than 16384 bytes, expected shorter fields";
    const char *quoted = "found a quote that is not closed within the 16384 bytes of a row, "
                         "expected a closing quote";
    expect_long("", 'x', 16384, "\ngood", NULL);
    expect_long("", 'x', 16385, "\ngood", plain);
    expect_long("a,", 'x', 16383, "\ngood", NULL);
    expect_long("a,", 'x', 16384, "\ngood", plain);
    expect_long("\"", 'x', 16384, "\"\ngood", NULL);
    expect_long("\"", 'x', 16385, "\"\ngood", quoted);
    expect_long("a,\"", 'x', 16383, "\"\ngood", NULL);
    expect_long("a,\"", 'x', 16384, "\"\ngood", quoted);
    expect_long("\"", '"', 2 * 16384, "\"\ngood", NULL);
    expect_long("\"", '"', 2 * 16385, "\"\ngood", quoted);
    expect_long("a,\"", '"', 2 * 16383, "\"\ngood", NULL);
    expect_long("a,\"", '"', 2 * 16384, "\"\ngood", quoted);
}

static void blanks_do_not_count_towards_the_row(void **state)
{
    struct weir_text file = long_line("a", ' ', 100000, ",b\n");
    expect_only(file, FIELDS("a", "b"));
    free((char *)file.at);
}

/* ---- random files: written by hand, read back ---- */

#define ROWS_MAX 5

struct file {
    char bytes[4096];
    size_t len;
    char fields[ROWS_MAX][CSV_FIELDS_MAX][16];
    size_t lens[ROWS_MAX][CSV_FIELDS_MAX];
    unsigned counts[ROWS_MAX];
};

static void put(struct file *f, const char *bytes, size_t n)
{
    memcpy(f->bytes + f->len, bytes, n);
    f->len += n;
}

static void put_quoted(struct file *f, const char *field, size_t len)
{
    put(f, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        put(f, field + i, 1);
        if (field[i] == '"') {
            put(f, "\"", 1);
        }
    }
    put(f, "\"", 1);
}

static void put_row(struct file *f, unsigned row, uint64_t *seed)
{
    static const char bytes[] = "ab \",\n\r#\t\0";
    f->counts[row] = 1 + unit_random(seed) % CSV_FIELDS_MAX;
    for (unsigned i = 0; i < f->counts[row]; i++) {
        char *field = f->fields[row][i];
        size_t len = f->lens[row][i] = unit_random(seed) % 16;
        bool plain = len > 0;
        for (size_t k = 0; k < len; k++) {
            field[k] = bytes[unit_random(seed) % (sizeof bytes - 1)];
            plain = plain && field[k] >= 'a';
        }
        put(f, ",", i > 0);
        put(f, "\t ", unit_random(seed) % 3);
        if (plain && unit_random(seed) % 2 != 0) {
            put(f, field, len);
        } else {
            put_quoted(f, field, len);
        }
        put(f, " \t", unit_random(seed) % 3);
    }
    size_t lf_only = unit_random(seed) % 2;
    put(f, lf_only != 0 ? "\n" : "\r\n", 2 - lf_only);
}

static void what_is_written_is_read_back(void **state)
{
    static const char *const between[] = {"", "\n", "# a \"comment\n", " \r\n"};
    static struct file f;
    uint64_t seed = 11;
    for (uint64_t round = 0; round < unit_scale(20000); round++) {
        f.len = 0;
        unsigned rows = 1 + unit_random(&seed) % ROWS_MAX;
        for (unsigned row = 0; row < rows; row++) {
            const char *skipped = between[unit_random(&seed) % 4];
            put(&f, skipped, strlen(skipped));
            put_row(&f, row, &seed);
        }
        f.len -= unit_random(&seed) % 2; /* a missing final line end */
        csv_init(&csv, (struct weir_text){f.bytes, f.len});
        for (unsigned row = 0; row < rows; row++) {
            assert_int_equal(csv_next(&csv, NULL), 1);
            assert_int_equal(csv.fields, f.counts[row]);
            for (unsigned i = 0; i < csv.fields; i++) {
                assert_true(text_equal(csv.field[i].text,
                                       (struct weir_text){f.fields[row][i], f.lens[row][i]}));
            }
        }
        expect_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_fields_between_commas),
        cmocka_unit_test(lines_end_with_lf_or_crlf_or_the_file),
        cmocka_unit_test(a_file_may_be_empty_or_hold_no_row),
        cmocka_unit_test(a_byte_order_mark_is_skipped_once_and_takes_no_column),
        cmocka_unit_test(blank_lines_and_comments_are_skipped_but_counted),
        cmocka_unit_test(blanks_around_fields_are_trimmed_but_not_inside_quotes),
        cmocka_unit_test(fields_may_be_empty),
        cmocka_unit_test(quoted_fields_may_hold_anything),
        cmocka_unit_test(any_byte_can_be_in_a_field),
        cmocka_unit_test(places_are_those_of_the_first_byte_or_quote),
        cmocka_unit_test(only_fields_in_quotes_are_copied),
        cmocka_unit_test(a_bad_row_is_reported_and_the_next_line_read),
        cmocka_unit_test(a_bad_row_of_several_lines_is_left_behind_its_bad_place),
        cmocka_unit_test(a_quote_that_is_never_closed_costs_one_line),
        cmocka_unit_test(errors_need_no_room),
        cmocka_unit_test(a_row_has_at_most_16384_bytes),
        cmocka_unit_test(blanks_do_not_count_towards_the_row),
        cmocka_unit_test(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
