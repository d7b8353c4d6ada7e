/* Tests where a key lies in the store: no two keys have the same place, and the slot depends only
 * on the subject. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/slots.h"
#include "common/sha256.h"
#include "shared/core/script.h"

static const struct weir_text none = {NULL, 0};

static struct store_params params_of(int algorithm, uint64_t offset_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct store_params p;
    o.algorithm = algorithm;
    o.count = 10;
    o.period_ns = WEIR_MINUTE;
    o.offset_ns = offset_ns;
    assert_int_equal(store_params(&o, &p, NULL), 0);
    return p;
}

static struct store_key key_of(const char *limit, struct weir_text shard, struct weir_text key)
{
    struct store_params p = params_of(WEIR_TOKEN_BUCKET, 0);
    struct store_key head;
    struct store_key out;
    assert_int_equal(store_key_head(TEXT("weir"), text_of(limit), &p, &head, NULL), 0);
    store_key(&head, shard, key, &out);
    return out;
}

static void assert_key(struct store_key key, const char *expected)
{
    assert_true(text_is(store_key_text(&key), expected));
}

static void a_short_key_stands_as_it_is(void **state)
{
    assert_key(key_of("api", none, TEXT("alice")), "weir:1:api:t:{ralice}");
    assert_key(key_of("api", TEXT("acme"), TEXT("alice")), "weir:1:api:t:{racme}ralice");
    assert_key(key_of("api", TEXT(""), TEXT("alice")), "weir:1:api:t:{r}ralice");
}

static void a_long_key_is_the_first_128_bits_of_its_sha_256(void **state)
{
    char a[66];
    memset(a, 'a', sizeof a);
    struct store_key longest = key_of("api", none, (struct weir_text){a, 64});
    struct store_key hashed = key_of("api", none, (struct weir_text){a, 65});
    assert_int_equal(longest.len, strlen("weir:1:api:t:{r}") + 64);
    /* printf 'a%.0s' $(seq 65) | sha256sum */
    assert_key(hashed, "weir:1:api:t:{h635361c48bb9eab14198e76ea8ab7f1a}");
}

static void a_closing_brace_does_not_cut_the_hash_tag(void **state)
{
    struct store_key a = key_of("api", none, TEXT("a}b"));
    struct store_key b = key_of("api", none, TEXT("a}c"));
    struct store_key c = key_of("other", none, TEXT("a}b"));
    assert_int_equal(a.at[strlen("weir:1:api:t:{")], 'h');
    assert_int_not_equal(cluster_slot(store_key_text(&a)), cluster_slot(store_key_text(&b)));
    assert_int_equal(cluster_slot(store_key_text(&a)), cluster_slot(store_key_text(&c)));
}

/* Tries all short keys of the bytes that have a special meaning, with and without a shard. */
static void no_two_keys_share_a_place(void **state)
{
    static const char bytes[] = {'{', '}', ':', 'r', 'h', '\0', '\r', '\n', '\xff', 'a'};
    enum { N = sizeof bytes, ALL = N + N * N + N };
    static struct store_key keys[ALL];
    static char texts[ALL][2];
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        texts[n][0] = bytes[i];
        keys[n] = key_of("api", none, (struct weir_text){texts[n], 1});
        n++;
        keys[n] = key_of("api", (struct weir_text){texts[n - 1], 1}, TEXT("a"));
        n++;
        for (size_t j = 0; j < N; j++, n++) {
            texts[n][0] = bytes[i];
            texts[n][1] = bytes[j];
            keys[n] = key_of("api", none, (struct weir_text){texts[n], 2});
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_false(text_equal(store_key_text(&keys[i]), store_key_text(&keys[j])));
        }
    }
}

static void states_that_mean_different_things_have_different_places(void **state)
{
    assert_string_equal(params_of(WEIR_TOKEN_BUCKET, 0).kind, "t");
    assert_string_equal(params_of(WEIR_LEAKY_BUCKET, 0).kind, "l");
    assert_string_equal(params_of(WEIR_FIXED_WINDOW, 0).kind, "f60s");
    assert_string_equal(params_of(WEIR_FIXED_WINDOW, WEIR_SECOND).kind, "f60s+1s");
    assert_string_equal(params_of(WEIR_FIXED_WINDOW, WEIR_MILLISECOND).kind, "f60s+1000u");
    assert_string_equal(params_of(WEIR_SLIDING_WINDOW, 0).kind, "s60s");
    assert_string_equal(params_of(WEIR_SLIDING_LOG, 0).kind, "g");
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct store_params p;
    o.algorithm = WEIR_FIXED_WINDOW;
    o.count = 1;
    o.period_ns = 1500 * WEIR_MICROSECOND;
    o.align = WEIR_ALIGN_KEY;
    assert_int_equal(store_params(&o, &p, NULL), 0);
    assert_string_equal(p.kind, "f1500uk");
}

static void names_that_would_move_keys_are_refused(void **state)
{
    struct store_params p = params_of(WEIR_TOKEN_BUCKET, 0);
    struct store_key head;
    struct weir_error error;
    char longer[300];
    memset(longer, 'x', sizeof longer);
    const struct weir_text limit = TEXT("api");
    const struct weir_text weir = TEXT("weir");
    assert_int_equal(store_key_head(TEXT("{a"), limit, &p, &head, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "a brace in the prefix '{a'"));
    assert_int_equal(store_key_head(weir, TEXT("a}"), &p, &head, &error), WEIR_EINVAL);
    assert_int_equal(store_key_head(weir, TEXT(""), &p, &head, &error), WEIR_EINVAL);
    assert_int_equal(store_key_head((struct weir_text){longer, 65}, limit, &p, &head, &error),
                     WEIR_EINVAL);
    assert_non_null(strstr(error.text, "has 65 bytes, expected at most 64"));
    assert_int_equal(store_key_head(weir, (struct weir_text){longer, 257}, &p, &head, &error),
                     WEIR_EINVAL);
    assert_int_equal(store_key_head(TEXT(""), limit, &p, &head, &error), 0);
}

/* Uses the maximum of every length at once: nothing is written out of bounds. */
static void the_longest_key_fits(void **state)
{
    char x[256];
    memset(x, 'x', sizeof x);
    struct store_params p = params_of(WEIR_FIXED_WINDOW, 0);
    memset(p.kind, 'k', sizeof p.kind - 1);
    struct store_key head;
    struct store_key out;
    assert_int_equal(
        store_key_head((struct weir_text){x, 64}, (struct weir_text){x, 256}, &p, &head, NULL), 0);
    store_key(&head, (struct weir_text){x, 64}, (struct weir_text){x, 64}, &out);
    assert_true(out.len <= sizeof out.at);
    assert_int_equal(out.at[out.len - 1], 'x');
    assert_int_equal(out.len, 64 + 3 + 256 + 1 + 47 + 2 + 65 + 1 + 65);
}

/* The values are from the specification of Redis Cluster and its source. */
static void slots_are_those_of_redis(void **state)
{
    static const struct {
        const char *key;
        unsigned slot;
    } known[] = {
        {"123456789", 12739}, {"foo", 12182}, {"", 0}, {"somekey", 11058}, {"bar", 5061},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(cluster_slot(text_of(known[i].key)), known[i].slot);
    }
    assert_int_equal(cluster_slot(TEXT("foo{hash_tag}")), 2515);
    assert_int_equal(cluster_slot(TEXT("bar{hash_tag}")), 2515);
    assert_int_equal(cluster_slot(TEXT("{user1000}.following")), cluster_slot(TEXT("user1000")));
    assert_int_equal(cluster_slot(TEXT("foo{{bar}}zap")), cluster_slot(TEXT("{bar")));
    assert_int_equal(cluster_slot(TEXT("foo{bar}{zap}")), cluster_slot(TEXT("bar")));
    assert_int_not_equal(cluster_slot(TEXT("foo{}{bar}")), cluster_slot(TEXT("bar")));
}

static void assert_digest(struct weir_text text, const char *expected)
{
    unsigned char bytes[SHA256_SIZE];
    char digits[2 * SHA256_SIZE + 1];
    sha256(text, bytes);
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        (void)sprintf(digits + 2 * i, "%02x", bytes[i]);
    }
    assert_string_equal(digits, expected);
}

/* The examples of FIPS 180-4, and lengths around the end of a block. */
static void digests_are_the_published_ones(void **state)
{
    const struct weir_text words = TEXT("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq");
    assert_digest(TEXT("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_digest(words, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_digest((struct weir_text){NULL, 0},
                  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    char *many = malloc(1000000);
    memset(many, 'a', 1000000);
    assert_digest((struct weir_text){many, 1000000},
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_key_stands_as_it_is),
        cmocka_unit_test(a_long_key_is_the_first_128_bits_of_its_sha_256),
        cmocka_unit_test(a_closing_brace_does_not_cut_the_hash_tag),
        cmocka_unit_test(no_two_keys_share_a_place),
        cmocka_unit_test(states_that_mean_different_things_have_different_places),
        cmocka_unit_test(names_that_would_move_keys_are_refused),
        cmocka_unit_test(the_longest_key_fits),
        cmocka_unit_test(slots_are_those_of_redis),
        cmocka_unit_test(digests_are_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
