/* The header in front of a table, and regions of memory. */
#include "table/region_file.h"
#include "support/engine/unit_limiter.h"

#include <sys/mman.h>
#include <unistd.h>

static unsigned filled;

static int fill(const struct region_opening *o, struct region *r)
{
    (void)r;
    filled++;
    return *(int *)o->arg;
}

static struct region_fixed some_fixed(void)
{
    struct region_fixed f;
    memset(&f, 0, sizeof f);
    f.shape = table_shape(100, 64, 0);
    f.algorithm = WEIR_TOKEN_BUCKET;
    f.period_ns = WEIR_SECOND;
    assert_int_equal(region_fixed_finish(&f, NULL), 0);
    return f;
}

static void a_finished_header_has_magic_sizes_secret_and_check(void **state)
{
    struct region_fixed a = some_fixed();
    struct region_fixed b = some_fixed();
    assert_memory_equal(a.magic, "weir\r\n\x1a", 8);
    assert_int_equal(a.version, REGION_FORMAT);
    assert_int_equal(a.header_bytes, REGION_HEADER_BYTES);
    assert_int_equal(a.total_bytes, REGION_HEADER_BYTES + table_bytes(&a.shape));
    assert_int_equal(a.check, region_check(&a, sizeof a));
    assert_int_not_equal(a.generation, b.generation);
    assert_int_not_equal(a.generation, 0); /* 0 is a handle that is used up */
    assert_memory_not_equal(&a.secret, &b.secret, sizeof a.secret);
}

static void the_check_sees_every_bit(void **state)
{
    struct region_fixed f = some_fixed();
    unsigned char *bytes = (unsigned char *)&f;
    for (size_t i = 0; i < offsetof(struct region_fixed, check) * 8; i++) {
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_int_not_equal(f.check, region_check(&f, sizeof f));
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    assert_int_equal(f.check, region_check(&f, sizeof f));
}

static void the_header_is_laid_out_for_any_compiler(void **state)
{
    assert_int_equal(REGION_HEADER_BYTES % 4096, 0);
    assert_int_equal(offsetof(struct region_header, version) % 64, 0);
    assert_int_equal(offsetof(struct region_header, change) % 64, 0);
    /* No holes: the bytes of the check are all named. */
    assert_int_equal(offsetof(struct region_fixed, secret) + sizeof(struct hash_secret),
                     offsetof(struct region_fixed, check));
    assert_int_equal(sizeof(struct region_fixed), offsetof(struct region_fixed, check) + 8);
}

static void regions_of_memory_are_filled_once_and_zero_elsewhere(void **state)
{
    const unsigned flags[] = {0, WEIR_PREFAULT, WEIR_HUGE_PAGES, WEIR_PREFAULT | WEIR_HUGE_PAGES};
    for (int i = 0; i < 8; i++) {
        struct region_fixed f = some_fixed();
        int result = 0;
        struct region_opening o = {.fixed = &f, .fill = fill, .arg = &result};
        struct region *r = NULL;
        filled = 0;
        o.shared = i % 2 != 0;
        o.flags = flags[i / 2];
        assert_int_equal(region_make_memory(&o, &r), 0);
        assert_true(o.made);
        assert_int_equal(filled, 1);
        assert_int_equal(r->bytes, f.total_bytes);
        assert_true((r->owner == &lock_private) == (i % 2 == 0));
        assert_memory_equal(&r->head->fixed, &f, sizeof f);
        const unsigned char *body = r->body;
        for (uint64_t j = 0; j < table_bytes(&f.shape); j++) {
            assert_int_equal(body[j], 0);
        }
        assert_true(region_anchor(r)->unix_ns > 0);
        region_close(r);
    }
}

static void a_failed_fill_leaves_nothing_mapped(void **state)
{
    struct region_fixed f = some_fixed();
    int result = WEIR_EIO;
    struct region_opening o = {.fixed = &f, .fill = fill, .arg = &result};
    struct region *r = NULL;
    o.shared = true;
    assert_int_equal(region_make_memory(&o, &r), WEIR_EIO);
    assert_null(r);
}

static void more_memory_than_there_can_be_is_an_error(void **state)
{
    struct region_fixed f = some_fixed();
    int result = 0;
    struct region_opening o = {.fixed = &f, .fill = fill, .arg = &result};
    struct region *r = NULL;
    struct weir_error error;
    f.total_bytes = UINT64_MAX;
    o.error = &error;
    o.shared = true;
    assert_int_equal(region_make_memory(&o, &r), WEIR_ENOMEM);
    assert_non_null(strstr(error.text, "more memory than there can be"));
    f.total_bytes = UINT64_C(1) << 56;
    o.shared = false;
    assert_int_equal(region_make_memory(&o, &r), WEIR_ENOMEM);
    assert_non_null(strstr(error.text, "cannot map"));
    assert_null(r);
}

static void the_latest_anchor_is_in_force(void **state)
{
    struct region_fixed f = some_fixed();
    int result = 0;
    struct region_opening o = {.fixed = &f, .fill = fill, .arg = &result};
    struct region *r = NULL;
    assert_int_equal(region_make_memory(&o, &r), 0);
    for (uint64_t i = 1; i < 10; i++) {
        struct region_anchor a = {{{i, i}}, r->identity, i, i};
        region_set_anchor(r, &a);
        assert_memory_equal(region_anchor(r), &a, sizeof a);
    }
    region_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_header_has_magic_sizes_secret_and_check),
        cmocka_unit_test(the_check_sees_every_bit),
        cmocka_unit_test(the_header_is_laid_out_for_any_compiler),
        cmocka_unit_test(regions_of_memory_are_filled_once_and_zero_elsewhere),
        cmocka_unit_test(a_failed_fill_leaves_nothing_mapped),
        cmocka_unit_test(more_memory_than_there_can_be_is_an_error),
        cmocka_unit_test(the_latest_anchor_is_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
