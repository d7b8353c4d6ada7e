#include "support/engine/unit_limiter.h"

#include <string.h>

#include "wire/protobuf.h"

static struct weir_text bytes_of(const char *at, size_t len)
{
    return (struct weir_text){at, len};
}

static void what_is_written_is_read_again(void **state)
{
    static const uint64_t numbers[] = {1, 127, 128, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct buffer b;
        struct protobuf_field f;
        buffer_init(&b, 256);
        protobuf_put_number(&b, 536870911, numbers[i]);
        protobuf_put_bytes(&b, 2, TEXT("two"));
        protobuf_put_message(&b, 3, TEXT(""));
        struct weir_text rest = buffer_text(&b);
        assert_int_equal(protobuf_next(&rest, &f), 1);
        assert_int_equal(f.number, 536870911);
        assert_int_equal(f.type, PROTOBUF_VARINT);
        assert_true(f.value == numbers[i]);
        assert_int_equal(protobuf_next(&rest, &f), 1);
        assert_int_equal(f.number, 2);
        assert_true(text_is(f.bytes, "two"));
        assert_int_equal(protobuf_next(&rest, &f), 1);
        assert_int_equal(f.number, 3);
        assert_int_equal(f.bytes.len, 0);
        assert_int_equal(protobuf_next(&rest, &f), 0);
        buffer_finish(&b);
    }
}

static void zeros_and_empty_texts_are_left_out(void **state)
{
    struct buffer b;
    buffer_init(&b, 256);
    protobuf_put_number(&b, 1, 0);
    protobuf_put_bytes(&b, 2, TEXT(""));
    assert_int_equal(buffer_len(&b), 0);
    buffer_finish(&b);
}

static void fixed_numbers_begin_with_their_lowest_byte(void **state)
{
    struct protobuf_field f;
    struct weir_text rest =
        bytes_of("\x0d\x01\x02\x03\x04\x11\x01\x02\x03\x04\x05\x06\x07\x08", 14);
    assert_int_equal(protobuf_next(&rest, &f), 1);
    assert_int_equal(f.type, PROTOBUF_FIXED32);
    assert_true(f.value == 0x04030201);
    assert_int_equal(protobuf_next(&rest, &f), 1);
    assert_true(f.value == UINT64_C(0x0807060504030201));
    assert_int_equal(protobuf_next(&rest, &f), 0);
}

static void malformed_messages_are_refused(void **state)
{
    static const struct weir_text malformed[] = {
        {"\x00\x01", 2},                                      /* field 0 */
        {"\x80", 1},                                          /* a tag that is cut off */
        {"\x08", 1},                                          /* no value */
        {"\x08\x80", 2},                                      /* a value that is cut off */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, /* more than 64 bits */
        {"\x0a\x02z", 3},                                     /* a text that is cut off */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* a text of 2^64 - 1 bytes */
        {"\x0b", 1},                                          /* a group */
        {"\x0e", 1},                                          /* a type that does not exist */
        {"\x0d\x01\x02", 3},                                  /* a fixed number that is cut off */
        {"\x80\x80\x80\x80\x10\x01", 6},                      /* a field number of 30 bits */
    };
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        struct protobuf_field f;
        struct weir_text rest = malformed[i];
        assert_int_equal(protobuf_next(&rest, &f), -1);
    }
}

static void strings_are_utf_8_without_nul(void **state)
{
    assert_true(protobuf_is_string(TEXT("")));
    assert_true(protobuf_is_string(TEXT("zo\xc3\xab \xf0\x9f\x99\x82")));
    assert_false(protobuf_is_string(bytes_of("a\0b", 3)));
    assert_false(protobuf_is_string(TEXT("\xff")));
    assert_false(protobuf_is_string(TEXT("\xc3")));
    assert_false(protobuf_is_string(TEXT("\xc0\xaf")));
    assert_false(protobuf_is_string(TEXT("\xed\xa0\x80")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(zeros_and_empty_texts_are_left_out),
        cmocka_unit_test(fixed_numbers_begin_with_their_lowest_byte),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(strings_are_utf_8_without_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
