/*
 * The keyed hash against the published vectors of SipHash-2-4-128, and in the
 * rounds that weir uses against a second, slow implementation.
 */
#include "base/hash.h"
#include "support/engine/unit_limiter.h"

/* Key 00 01 .. 0f, input 00 01 .. (n-1), for n = 0 to 16: from the authors' reference. */
static const char *const published[] = {
    "\xa3\x81\x7f\x04\xba\x25\xa8\xe6\x6d\xf6\x72\x14\xc7\x55\x02\x93",
    "\xda\x87\xc1\xd8\x6b\x99\xaf\x44\x34\x76\x59\x11\x9b\x22\xfc\x45",
    "\x81\x77\x22\x8d\xa4\xa4\x5d\xc7\xfc\xa3\x8b\xde\xf6\x0a\xff\xe4",
    "\x9c\x70\xb6\x0c\x52\x67\xa9\x4e\x5f\x33\xb6\xb0\x29\x85\xed\x51",
    "\xf8\x81\x64\xc1\x2d\x9c\x8f\xaf\x7d\x0f\x6e\x7c\x7b\xcd\x55\x79",
    "\x13\x68\x87\x59\x80\x77\x6f\x88\x54\x52\x7a\x07\x69\x0e\x96\x27",
    "\x14\xee\xca\x33\x8b\x20\x86\x13\x48\x5e\xa0\x30\x8f\xd7\xa1\x5e",
    "\xa1\xf1\xeb\xbe\xd8\xdb\xc1\x53\xc0\xb8\x4a\xa6\x1f\xf0\x82\x39",
    "\x3b\x62\xa9\xba\x62\x58\xf5\x61\x0f\x83\xe2\x64\xf3\x14\x97\xb4",
    "\x26\x44\x99\x06\x0a\xd9\xba\xab\xc4\x7f\x8b\x02\xbb\x6d\x71\xed",
    "\x00\x11\x0d\xc3\x78\x14\x69\x56\xc9\x54\x47\xd3\xf3\xd0\xfb\xba",
    "\x01\x51\xc5\x68\x38\x6b\x66\x77\xa2\xb4\xdc\x6f\x81\xe5\xdc\x18",
    "\xd6\x26\xb2\x66\x90\x5e\xf3\x58\x82\x63\x4d\xf6\x85\x32\xc1\x25",
    "\x98\x69\xe2\x47\xe9\xc0\x8b\x10\xd0\x29\x93\x4f\xc4\xb9\x52\xf7",
    "\x31\xfc\xef\xac\x66\xd7\xde\x9c\x7e\xc7\x48\x5f\xe4\x49\x49\x02",
    "\x54\x93\xe9\x99\x33\xb0\xa8\x11\x7e\x08\xec\x0f\x97\xcf\xc3\xd9",
    "\x6e\xe2\xa4\xca\x67\xb0\x54\xbb\xfd\x33\x15\xbf\x85\x23\x05\x77",
};

static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

static void counting_bytes(unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (unsigned char)i;
    }
}

static void store_le64(unsigned char *p, uint64_t x)
{
    for (int i = 0; i < 8; i++) {
        p[i] = (unsigned char)(x >> 8 * i);
    }
}

static void siphash_2_4_128_gives_the_published_vectors(void **state)
{
    unsigned char in[64];
    unsigned char out[16];
    counting_bytes(in, sizeof in);
    for (size_t n = 0; n < sizeof published / sizeof published[0]; n++) {
        struct hash h = siphash128(key, in, n, 2, 4);
        store_le64(out, h.low);
        store_le64(out + 8, h.high);
        assert_memory_equal(out, published[n], 16);
    }
}

/* ---- the second implementation: byte by byte, in the words of the paper ---- */

static uint64_t rotl(uint64_t x, int b)
{
    return x << b | x >> (64 - b);
}

static void slow_rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotl(v[1], 13);
        v[3] = rotl(v[3], 16);
        v[1] ^= v[0];
        v[3] ^= v[2];
        v[0] = rotl(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotl(v[1], 17);
        v[3] = rotl(v[3], 21);
        v[1] ^= v[2];
        v[3] ^= v[0];
        v[2] = rotl(v[2], 32);
    }
}

static struct hash slow_siphash(const uint64_t k[2], const unsigned char *in, size_t len, int c,
                                int d)
{
    uint64_t v[4] = {k[0] ^ UINT64_C(0x736f6d6570736575), k[1] ^ UINT64_C(0x646f72616e646f6d),
                     k[0] ^ UINT64_C(0x6c7967656e657261), k[1] ^ UINT64_C(0x7465646279746573)};
    v[1] ^= 0xee;
    for (size_t word = 0; word <= len / 8; word++) {
        uint64_t m = word == len / 8 ? (uint64_t)(len % 256) << 56 : 0;
        for (size_t i = 0; i < 8 && word * 8 + i < len; i++) {
            m |= (uint64_t)in[word * 8 + i] << 8 * i;
        }
        v[3] ^= m;
        slow_rounds(v, c);
        v[0] ^= m;
    }
    struct hash h;
    v[2] ^= 0xee;
    slow_rounds(v, d);
    h.low = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    slow_rounds(v, d);
    h.high = v[0] ^ v[1] ^ v[2] ^ v[3];
    return h;
}

static void siphash_1_3_128_agrees_with_a_second_implementation(void **state)
{
    static unsigned char in[WEIR_KEY_MAX + 8];
    uint64_t seed = 99;
    for (size_t len = 0; len <= WEIR_KEY_MAX; len += len < 300 ? 1 : 251) {
        struct hash_secret secret;
        size_t skew = len % 8; /* from any address */
        secret.sip[0] = unit_random(&seed);
        secret.sip[1] = unit_random(&seed);
        for (size_t i = 0; i < len; i++) {
            in[skew + i] = (unsigned char)unit_random(&seed);
        }
        struct hash slow = slow_siphash(secret.sip, in + skew, len, 1, 3);
        struct hash fast = hash_sip(&secret, in + skew, len);
        assert_int_equal(fast.low, slow.low);
        assert_int_equal(fast.high, slow.high);
        slow = slow_siphash(secret.sip, in + skew, len, 2, 4);
        fast = siphash128(secret.sip, in + skew, len, 2, 4);
        assert_int_equal(fast.low, slow.low);
        assert_int_equal(fast.high, slow.high);
    }
}

static void secrets_are_random_throughout(void **state)
{
    struct hash_secret a;
    struct hash_secret b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    assert_int_equal(hash_secret_init(&a), 0);
    assert_int_equal(hash_secret_init(&b), 0);
    const uint64_t *x = (const uint64_t *)(const void *)&a;
    const uint64_t *y = (const uint64_t *)(const void *)&b;
    for (size_t i = 0; i < sizeof a / sizeof *x; i++) {
        assert_int_not_equal(x[i], y[i]);
        assert_int_not_equal(x[i], 0);
    }
}

static bool differ(struct hash a, struct hash b)
{
    return a.low != b.low && a.high != b.high;
}

typedef struct hash hash_fn(const struct hash_secret *secret, const void *key, size_t len);

static void assert_depends_on_all(hash_fn *hash)
{
    struct hash_secret a;
    struct hash_secret b;
    unsigned char in[300];
    assert_int_equal(hash_secret_init(&a), 0);
    assert_int_equal(hash_secret_init(&b), 0);
    memset(in, 0, sizeof in);
    for (size_t len = 1; len < sizeof in; len++) {
        struct hash whole = hash(&a, in, len);
        assert_true(differ(whole, hash(&b, in, len)));
        assert_true(differ(whole, hash(&a, in, len + 1 < sizeof in ? len + 1 : 1)));
        in[len - 1] ^= 0x40;
        assert_true(differ(whole, hash(&a, in, len)));
        in[len - 1] ^= 0x40;
        assert_false(differ(whole, hash(&a, in, len)));
    }
}

static void siphash_depends_on_secret_bytes_and_length(void **state)
{
    assert_depends_on_all(hash_sip);
}

static void xxh3_depends_on_secret_bytes_and_length(void **state)
{
    if (!hash_has_xxh3) {
        skip();
    }
    assert_depends_on_all(hash_xxh3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_2_4_128_gives_the_published_vectors),
        cmocka_unit_test(siphash_1_3_128_agrees_with_a_second_implementation),
        cmocka_unit_test(secrets_are_random_throughout),
        cmocka_unit_test(siphash_depends_on_secret_bytes_and_length),
        cmocka_unit_test(xxh3_depends_on_secret_bytes_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
