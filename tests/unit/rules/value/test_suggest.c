#include "rules/value/suggest.h"
#include "support/engine/unit_limiter.h"

static unsigned distance(const char *a, const char *b)
{
    return suggest_distance(text_of(a), b);
}

static void each_single_slip_is_one_step(void **state)
{
    assert_int_equal(distance("burst", "burst"), 0);
    assert_int_equal(distance("burts", "burst"), 1);  /* swapped neighbours */
    assert_int_equal(distance("bust", "burst"), 1);   /* left out */
    assert_int_equal(distance("burrst", "burst"), 1); /* typed twice */
    assert_int_equal(distance("barst", "burst"), 1);  /* another letter */
    assert_int_equal(distance("urst", "burst"), 1);   /* at the beginning */
    assert_int_equal(distance("bursts", "burst"), 1); /* at the end */
    assert_int_equal(distance("ubrst", "burst"), 1);  /* swapped at the beginning */
    assert_int_equal(distance("Burst", "burst"), 1);  /* case counts */
}

static void slips_add_up(void **state)
{
    assert_int_equal(distance("brsut", "burst"), 2);
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_int_equal(distance("abcdef", "fedcba"), 5);
    assert_int_equal(distance("ca", "abc"), 3); /* a swapped pair is not edited again */
    assert_int_equal(distance("max_kyes", "max_keys"), 1);
    assert_int_equal(distance("on_store_fialure", "on_store_failure"), 1);
}

static void nothing_is_as_far_as_the_other_word_is_long(void **state)
{
    assert_int_equal(distance("", ""), 0);
    assert_int_equal(distance("", "rate"), 4);
    assert_int_equal(distance("rate", ""), 4);
    assert_int_equal(suggest_distance((struct weir_text){NULL, 0}, "rate"), 4);
}

static void only_the_named_bytes_are_read(void **state)
{
    assert_int_equal(suggest_distance((struct weir_text){"rates", 4}, "rate"), 0);
    assert_int_equal(suggest_distance((struct weir_text){"ra\0e", 4}, "rate"), 1);
}

static void words_too_long_to_be_misspelt_are_far(void **state)
{
    const char *word32 = "abcdefghijklmnopqrstuvwxyz012345";
    const char *word33 = "abcdefghijklmnopqrstuvwxyz0123456";
    assert_int_equal(distance(word32, word32), 0);
    assert_int_equal(distance(word33, word33), SUGGEST_FAR);
    assert_int_equal(distance(word33, "a"), SUGGEST_FAR);
    assert_int_equal(distance("a", word33), SUGGEST_FAR);
    assert_int_equal(distance("", word32), 32);
}

/* Slow and plain: what the three rows stand for. */
static unsigned by_definition(const char *a, size_t i, const char *b, size_t j)
{
    if (i == 0 || j == 0) {
        return (unsigned)(i + j);
    }
    unsigned best = by_definition(a, i - 1, b, j - 1) + (a[i - 1] != b[j - 1]);
    unsigned left_out = by_definition(a, i - 1, b, j) + 1;
    unsigned put_in = by_definition(a, i, b, j - 1) + 1;
    best = left_out < best ? left_out : best;
    best = put_in < best ? put_in : best;
    if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        unsigned swapped = by_definition(a, i - 2, b, j - 2) + 1;
        best = swapped < best ? swapped : best;
    }
    return best;
}

static void random_words_are_as_far_as_the_definition_says(void **state)
{
    uint64_t seed = 7;
    for (uint64_t round = 0; round < unit_scale(2000); round++) {
        char a[8] = {0};
        char b[8] = {0};
        size_t i = unit_random(&seed) % 7;
        size_t j = unit_random(&seed) % 7;
        for (size_t k = 0; k < i; k++) {
            a[k] = 'a' + unit_random(&seed) % 3;
        }
        for (size_t k = 0; k < j; k++) {
            b[k] = 'a' + unit_random(&seed) % 3;
        }
        assert_int_equal(distance(a, b), by_definition(a, i, b, j));
        assert_int_equal(distance(a, b), distance(b, a));
    }
}

static bool is_suggested(const char *word, const char *known)
{
    return distance(word, known) <= suggest_limit(text_of(word));
}

static void a_third_of_a_word_may_be_wrong(void **state)
{
    assert_true(is_suggested("brust", "burst"));
    assert_true(is_suggested("algoritm", "algorithm"));
    assert_true(is_suggested("kye", "key"));
    assert_true(is_suggested("ke", "key"));
    assert_true(is_suggested("unles", "unless"));
    assert_false(is_suggested("ttl", "tiers"));
    assert_false(is_suggested("foo", "key"));
    assert_false(is_suggested("burst", "queue"));
    assert_false(is_suggested("", "key"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_single_slip_is_one_step),
        cmocka_unit_test(slips_add_up),
        cmocka_unit_test(nothing_is_as_far_as_the_other_word_is_long),
        cmocka_unit_test(only_the_named_bytes_are_read),
        cmocka_unit_test(words_too_long_to_be_misspelt_are_far),
        cmocka_unit_test(random_words_are_as_far_as_the_definition_says),
        cmocka_unit_test(a_third_of_a_word_may_be_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
