#include "common/buffer.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

static void what_is_put_in_behind_comes_out_in_front(void **state)
{
    struct buffer b;
    buffer_init(&b, 100);
    buffer_put(&b, TEXT("hello"));
    buffer_put_char(&b, ' ');
    buffer_put(&b, TEXT("world"));
    assert_true(text_is(buffer_text(&b), "hello world"));
    buffer_take(&b, 6);
    assert_true(text_is(buffer_text(&b), "world"));
    buffer_put(&b, TEXT("\0!"));
    assert_true(text_equal(buffer_text(&b), TEXT("world\0!")));
    buffer_take(&b, 7);
    assert_int_equal(buffer_len(&b), 0);
    buffer_finish(&b);
}

static void a_fresh_buffer_has_no_memory_and_an_empty_text(void **state)
{
    struct buffer b;
    buffer_init(&b, 100);
    assert_int_equal(b.size, 0);
    assert_int_equal(buffer_len(&b), 0);
    assert_int_equal(buffer_text(&b).len, 0);
    buffer_put(&b, TEXT(""));
    buffer_trim(&b, 0);
    assert_int_equal(b.size, 0);
    assert_false(b.full);
    buffer_finish(&b);
}

static void the_bound_is_exact(void **state)
{
    struct buffer b;
    buffer_init(&b, 10);
    buffer_put(&b, TEXT("0123456789"));
    assert_false(b.full);
    buffer_put(&b, TEXT(""));
    assert_false(b.full);
    buffer_put(&b, TEXT("x"));
    assert_true(b.full);
    assert_true(text_is(buffer_text(&b), "0123456789"));
    buffer_finish(&b);
    assert_false(b.full);
    assert_int_equal(b.most, 10);
}

static void what_does_not_fit_is_dropped_as_a_whole_with_all_that_follows(void **state)
{
    struct buffer b;
    buffer_init(&b, 10);
    buffer_put(&b, TEXT("01234567"));
    buffer_put(&b, TEXT("abc"));
    buffer_put(&b, TEXT("d"));
    buffer_put_u64(&b, 1);
    buffer_put_char(&b, 'e');
    assert_true(b.full);
    assert_true(text_is(buffer_text(&b), "01234567"));
    buffer_finish(&b);
}

static void a_number_that_does_not_fit_leaves_no_sign_behind(void **state)
{
    for (size_t most = 0; most < 5; most++) {
        struct buffer b;
        buffer_init(&b, most);
        buffer_put_i64(&b, -1234);
        assert_true(b.full);
        assert_int_equal(buffer_len(&b), 0);
        buffer_finish(&b);
    }
}

static void an_impossible_size_is_refused(void **state)
{
    struct buffer b;
    buffer_init(&b, 1000);
    buffer_put(&b, TEXT("abc"));
    assert_null(buffer_room(&b, SIZE_MAX));
    assert_true(b.full);
    assert_null(buffer_room(&b, SIZE_MAX - 2));
    assert_null(buffer_room(&b, 998));
    assert_true(text_is(buffer_text(&b), "abc"));
    buffer_finish(&b);
}

static void memory_grows_with_what_is_put_not_with_the_bound(void **state)
{
    struct buffer b;
    buffer_init(&b, (size_t)1 << 40);
    buffer_put(&b, TEXT("abc"));
    assert_true(b.size <= 4096);
    for (int i = 0; i < 10000; i++) {
        buffer_put(&b, TEXT("0123456789"));
    }
    assert_int_equal(buffer_len(&b), 100003);
    assert_true(b.size < 400000);
    buffer_finish(&b);
}

static void taking_makes_room_again(void **state)
{
    struct buffer b;
    buffer_init(&b, 1000);
    char expected[1000];
    for (size_t i = 0; i < 1000; i++) {
        expected[i] = (char)('a' + i % 26);
    }
    buffer_put(&b, (struct weir_text){expected, 1000});
    for (size_t i = 0; i < 5000; i++) {
        assert_int_equal(buffer_text(&b).at[0], 'a' + (int)(i % 26));
        buffer_take(&b, 1);
        buffer_put_char(&b, (char)('a' + (1000 + i) % 26));
        assert_int_equal(buffer_len(&b), 1000);
    }
    assert_false(b.full);
    assert_true(b.size <= 4096);
    buffer_finish(&b);
}

static void room_is_written_first_and_counted_after(void **state)
{
    struct buffer b;
    buffer_init(&b, 4096);
    buffer_put(&b, TEXT("ab"));
    char *at = buffer_room(&b, 4000);
    assert_non_null(at);
    memset(at, 'x', 4000);
    assert_int_equal(buffer_len(&b), 2);
    buffer_add(&b, 3);
    assert_true(text_is(buffer_text(&b), "abxxx"));
    buffer_finish(&b);
}

static void numbers_are_written_in_decimal(void **state)
{
    static const int64_t numbers[] = {0, 9, 10, -1, -10, 1234567890, INT64_MAX, INT64_MIN};
    struct buffer b;
    buffer_init(&b, 1000);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char expected[32];
        sprintf(expected, "%lld", (long long)numbers[i]);
        buffer_put_i64(&b, numbers[i]);
        assert_true(text_is(buffer_text(&b), expected));
        buffer_take(&b, buffer_len(&b));
    }
    buffer_put_u64(&b, UINT64_MAX);
    assert_true(text_is(buffer_text(&b), "18446744073709551615"));
    buffer_finish(&b);
}

static void memory_is_given_back_when_nothing_counts(void **state)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    memset(buffer_room(&b, 100000), 'x', 100000);
    buffer_add(&b, 100000);
    buffer_trim(&b, 4096);
    assert_true(b.size >= 100000);
    buffer_take(&b, 99999);
    buffer_trim(&b, 4096);
    assert_true(text_is(buffer_text(&b), "x"));
    buffer_take(&b, 1);
    buffer_trim(&b, 1 << 20);
    assert_true(b.size >= 100000);
    buffer_trim(&b, 4096);
    assert_int_equal(b.size, 0);
    buffer_put(&b, TEXT("again"));
    assert_true(text_is(buffer_text(&b), "again"));
    buffer_finish(&b);
}

/* Against a plain array that is moved by each take. */
static void any_order_of_puts_and_takes_keeps_every_byte(void **state)
{
    enum { MOST = 3000 };
    static char model[MOST];
    size_t len = 0;
    unsigned seed = 4;
    struct buffer b;
    buffer_init(&b, MOST);
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)rand_r(&seed) % (rand_r(&seed) % 10 == 0 ? 1500 : 60);
        if (rand_r(&seed) % 2 == 0) {
            n = n < len ? n : len;
            memmove(model, model + n, len - n);
            len -= n;
            buffer_take(&b, n);
        } else if (n <= MOST - len) {
            memset(model + len, i, n);
            buffer_put(&b, (struct weir_text){model + len, n});
            len += n;
        }
        assert_false(b.full);
        assert_true(text_equal(buffer_text(&b), (struct weir_text){model, len}));
    }
    buffer_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_in_behind_comes_out_in_front),
        cmocka_unit_test(a_fresh_buffer_has_no_memory_and_an_empty_text),
        cmocka_unit_test(the_bound_is_exact),
        cmocka_unit_test(what_does_not_fit_is_dropped_as_a_whole_with_all_that_follows),
        cmocka_unit_test(a_number_that_does_not_fit_leaves_no_sign_behind),
        cmocka_unit_test(an_impossible_size_is_refused),
        cmocka_unit_test(memory_grows_with_what_is_put_not_with_the_bound),
        cmocka_unit_test(taking_makes_room_again),
        cmocka_unit_test(room_is_written_first_and_counted_after),
        cmocka_unit_test(numbers_are_written_in_decimal),
        cmocka_unit_test(memory_is_given_back_when_nothing_counts),
        cmocka_unit_test(any_order_of_puts_and_takes_keeps_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
