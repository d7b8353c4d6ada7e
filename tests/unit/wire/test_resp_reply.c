/* RESP replies, byte for byte. */
#include "wire/resp.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

static struct buffer out;

static int setup(void **state)
{
    buffer_init(&out, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    buffer_finish(&out);
    return 0;
}

/* What has been put, which is then taken. */
static void assert_put(struct weir_text expected)
{
    struct weir_text got = buffer_text(&out);
    assert_false(out.full);
    assert_int_equal(got.len, expected.len);
    assert_memory_equal(got.at, expected.at, got.len);
    buffer_take(&out, got.len);
}

static void integers_are_written_whole(void **state)
{
    static const struct {
        int64_t number;
        struct weir_text expected;
    } rows[] = {
        {0, TEXT(":0\r\n")},
        {7, TEXT(":7\r\n")},
        {10, TEXT(":10\r\n")},
        {-1, TEXT(":-1\r\n")},
        {-10, TEXT(":-10\r\n")},
        {86400, TEXT(":86400\r\n")},
        {INT64_MAX, TEXT(":9223372036854775807\r\n")},
        {INT64_MIN, TEXT(":-9223372036854775808\r\n")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        resp_put_integer(&out, rows[i].number);
        assert_put(rows[i].expected);
    }
}

static void integers_can_be_bulk_strings(void **state)
{
    const int64_t numbers[] = {0, -1, 10, 999, -1000, INT64_MAX, INT64_MIN};
    resp_put_bulk_integers(&out, numbers, sizeof numbers / sizeof numbers[0]);
    assert_put(TEXT("$1\r\n0\r\n$2\r\n-1\r\n$2\r\n10\r\n$3\r\n999\r\n$5\r\n-1000\r\n"
                    "$19\r\n9223372036854775807\r\n$20\r\n-9223372036854775808\r\n"));
    resp_put_bulk_integers(&out, numbers, 0);
    assert_put(TEXT(""));
    struct buffer small;
    buffer_init(&small, 28); /* the longest integer has 28 bytes, and one more is asked for */
    resp_put_bulk_integers(&small, numbers, 1);
    assert_true(small.full);
    assert_int_equal(buffer_len(&small), 0);
    buffer_finish(&small);
}

static void integers_of_every_length_read_back(void **state)
{
    uint64_t power = 1;
    for (int digits = 1; digits <= 19; digits++, power *= 10) {
        for (int64_t by = -1; by <= 1; by++) {
            for (int sign = -1; sign <= 1; sign += 2) {
                int64_t number = sign * ((int64_t)power + by);
                int64_t again = 0;
                resp_put_integer(&out, number);
                struct weir_text line = buffer_text(&out);
                assert_true(resp_to_i64((struct weir_text){line.at + 1, line.len - 3}, &again));
                assert_true(again == number);
                buffer_take(&out, line.len);
            }
        }
    }
}

static void a_bulk_string_holds_any_bytes(void **state)
{
    resp_put_bulk(&out, TEXT(""));
    assert_put(TEXT("$0\r\n\r\n"));
    resp_put_bulk(&out, (struct weir_text){NULL, 0});
    assert_put(TEXT("$0\r\n\r\n"));
    resp_put_bulk(&out, TEXT("a\r\n\0\xff:1\r\n"));
    assert_put(TEXT("$9\r\na\r\n\0\xff:1\r\n\r\n"));
}

static void each_protocol_has_its_own_null_and_map(void **state)
{
    resp_put_null(&out, 2);
    assert_put(TEXT("$-1\r\n"));
    resp_put_null(&out, 3);
    assert_put(TEXT("_\r\n"));
    resp_put_map(&out, 2, 8);
    assert_put(TEXT("*16\r\n"));
    resp_put_map(&out, 3, 8);
    assert_put(TEXT("%8\r\n"));
    resp_put_verbatim(&out, 2, TEXT("# Server\r\n"));
    assert_put(TEXT("$10\r\n# Server\r\n\r\n"));
    resp_put_verbatim(&out, 3, TEXT("# Server\r\n"));
    assert_put(TEXT("=14\r\ntxt:# Server\r\n\r\n"));
}

static void an_array_counts_what_follows(void **state)
{
    static const int64_t first[] = {0, 16, 15, -1, 2};
    resp_put_array(&out, 5);
    for (int i = 0; i < 5; i++) {
        resp_put_integer(&out, first[i]);
    }
    assert_put(TEXT("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"));
    resp_put_integers(&out, first, 5);
    assert_put(TEXT("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"));
    resp_put_array(&out, 0);
    resp_put_integers(&out, NULL, 0);
    assert_put(TEXT("*0\r\n*0\r\n"));
}

static void no_text_can_end_a_line_early(void **state)
{
    resp_put_error(&out, TEXT("ERR unknown command 'a\r\n+OK\r\n\0\x1b[2J\x7f'"));
    assert_put(TEXT("-ERR unknown command 'a  +OK    [2J '\r\n"));
    resp_put_simple(&out, TEXT("O\nK\r"));
    assert_put(TEXT("+O K \r\n"));
    char all[256];
    for (int c = 0; c < 256; c++) {
        all[c] = (char)c;
    }
    resp_put_error(&out, (struct weir_text){all, 256});
    struct weir_text line = buffer_text(&out);
    assert_int_equal(line.len, 259);
    for (size_t c = 0; c < 256; c++) {
        char expected = (char)(c < 32 || c == 127 ? ' ' : c);
        assert_int_equal(line.at[1 + c], expected);
    }
    buffer_take(&out, line.len);
}

static void an_error_is_formatted_and_bounded(void **state)
{
    resp_put_errorf(&out, "NOLIMIT no limit named '%.*s'", TEXT_ARGS(TEXT("a\r\nb")));
    assert_put(TEXT("-NOLIMIT no limit named 'a  b'\r\n"));
    resp_put_errorf(&out, "ERR %0300d", 7);
    assert_int_equal(buffer_len(&out), 1 + 255 + 2);
    assert_memory_equal(buffer_text(&out).at, "-ERR 000", 8);
    buffer_take(&out, buffer_len(&out));
}

#define KINDS 7

static void put_one(struct buffer *b, int which)
{
    static const int64_t numbers[] = {0, -1234, INT64_MIN};
    switch (which) {
    case 0:
        resp_put_integer(b, -1234);
        break;
    case 1:
        resp_put_bulk(b, TEXT("abc"));
        break;
    case 2:
        resp_put_error(b, TEXT("ERR x"));
        break;
    case 3:
        resp_put_verbatim(b, 3, TEXT("abc"));
        break;
    case 4:
        resp_put_null(b, 2);
        break;
    case 5:
        resp_put_integers(b, numbers, 3);
        break;
    default:
        resp_put_map(b, 3, 12);
    }
}

static void a_reply_is_put_as_a_whole_or_not_at_all(void **state)
{
    for (int which = 0; which < KINDS; which++) {
        size_t needed = 0;
        bool full = true;
        for (size_t most = 0; full; most++) {
            struct buffer small;
            buffer_init(&small, most);
            put_one(&small, which);
            full = small.full;
            needed = buffer_len(&small);
            assert_int_equal(needed, full ? 0 : most);
            buffer_finish(&small);
        }
        assert_true(needed >= 4);
    }
}

static void after_a_reply_that_did_not_fit_nothing_is_put(void **state)
{
    for (int which = 0; which < KINDS; which++) {
        struct buffer small;
        buffer_init(&small, 20);
        resp_put_simple(&small, TEXT("OK"));
        resp_put_bulk(&small, TEXT("0123456789abcdefghij"));
        assert_true(small.full);
        put_one(&small, which);
        assert_true(text_is(buffer_text(&small), "+OK\r\n"));
        buffer_finish(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_written_whole),
        cmocka_unit_test(integers_can_be_bulk_strings),
        cmocka_unit_test(integers_of_every_length_read_back),
        cmocka_unit_test(a_bulk_string_holds_any_bytes),
        cmocka_unit_test(each_protocol_has_its_own_null_and_map),
        cmocka_unit_test(an_array_counts_what_follows),
        cmocka_unit_test(no_text_can_end_a_line_early),
        cmocka_unit_test(an_error_is_formatted_and_bounded),
        cmocka_unit_test(a_reply_is_put_as_a_whole_or_not_at_all),
        cmocka_unit_test(after_a_reply_that_did_not_fit_nothing_is_put),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
