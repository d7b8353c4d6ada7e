/* The stepped bucket against its definition, written out a second time in wider arithmetic. */
#include "cli/replay/stepped_bucket.h"
#include "base/maths.h"
#include "support/engine/unit_limiter.h"

struct reference {
    i128 tokens;
    i128 last;
};

static bool reference_take(struct reference *r, i128 c, i128 w, i128 t)
{
    i128 elapsed = t - r->last;
    if (elapsed > 0 && w > 0) {
        i128 refill = elapsed * c / w;
        if (refill > 0 && r->tokens + refill >= c) {
            r->tokens = c;
            r->last = t;
        } else if (refill > 0) {
            r->tokens += refill;
            r->last += refill * w / c;
        }
    }
    if (r->tokens < 1) {
        return false;
    }
    r->tokens--;
    return true;
}

static void compare(int64_t capacity, int64_t window, int64_t start, uint64_t span, uint64_t *seed)
{
    struct stepped_bucket b = {capacity, start};
    struct reference r = {capacity, start};
    for (int i = 0; i < 60; i++) {
        uint64_t jump = span == 0 ? 0 : unit_random(seed) % span;
        int64_t t = (int64_t)((uint64_t)start + jump); /* any time, also backwards */
        assert_int_equal(stepped_bucket_take(&b, capacity, window, t),
                         reference_take(&r, capacity, window, t));
        assert_true(b.tokens == r.tokens && b.last == r.last);
    }
}

static void it_equals_its_definition_for_small_numbers(void **state)
{
    uint64_t seed = 1;
    for (int64_t capacity = 0; capacity < 12; capacity++) {
        for (int64_t window = 0; window < 30; window++) {
            compare(capacity, window, -5, 100, &seed);
        }
    }
}

static void it_equals_its_definition_for_random_numbers(void **state)
{
    uint64_t seed = 2;
    for (uint64_t i = 0; i < unit_scale(20000); i++) {
        int64_t capacity = (int64_t)(unit_random(&seed) >> (1 + unit_random(&seed) % 63));
        int64_t window = (int64_t)(unit_random(&seed) >> (1 + unit_random(&seed) % 63));
        uint64_t span = unit_random(&seed) >> (1 + unit_random(&seed) % 60);
        compare(capacity, window, 0, span, &seed);
    }
}

static void the_whole_range_of_time_passes_at_once(void **state)
{
    struct stepped_bucket b = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < 3; i++) {
        assert_true(stepped_bucket_take(&b, INT64_MAX, INT64_MAX, INT64_MIN));
    }
    assert_int_equal(b.tokens, INT64_MAX - 3);
    assert_true(stepped_bucket_take(&b, INT64_MAX, INT64_MAX, INT64_MAX));
    assert_int_equal(b.tokens, INT64_MAX - 1);
    assert_int_equal(b.last, INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_equals_its_definition_for_small_numbers),
        cmocka_unit_test(it_equals_its_definition_for_random_numbers),
        cmocka_unit_test(the_whole_range_of_time_passes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
