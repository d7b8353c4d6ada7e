#include "support/oracle/policy_slow.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

static struct cidr network(const char *string)
{
    struct cidr c;
    struct weir_error error;
    if (cidr_parse(text_of(string), &c, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return c;
}

static void assert_network(const char *string, const char *expected)
{
    struct cidr c = network(string);
    char buffer[CIDR_MAX];
    assert_string_equal(cidr_print(&c, buffer), expected);
}

static void assert_error(const char *string, const char *expected)
{
    struct weir_error error = {0};
    struct cidr c;
    assert_int_equal(cidr_parse(text_of(string), &c, &error), WEIR_EINVAL);
    assert_string_equal(error.text, expected);
    assert_int_equal(cidr_parse(text_of(string), &c, NULL), WEIR_EINVAL);
}

static struct cidr_set *set_of(const struct cidr *cidrs, size_t n)
{
    struct cidr_set *set = NULL;
    assert_int_equal(cidr_set_create(cidrs, n, &set), 0);
    assert_non_null(set);
    return set;
}

static bool has(const struct cidr_set *set, const char *string)
{
    struct address a;
    assert_int_equal(address_parse(text_of(string), &a, NULL), 0);
    return cidr_set_has(set, &a);
}

static void networks_are_read_and_printed(void **state)
{
    assert_network("10.0.0.0/8", "10.0.0.0/8");
    assert_network("0.0.0.0/0", "0.0.0.0/0");
    assert_network("203.0.113.7", "203.0.113.7/32");
    assert_network("203.0.113.7/32", "203.0.113.7/32");
    assert_network("203.0.113.6/31", "203.0.113.6/31");
    assert_network("2001:DB8::/32", "2001:db8::/32");
    assert_network("::1", "::1/128");
    assert_network("::/0", "::/0");
}

static void networks_of_mapped_addresses_are_ipv4(void **state)
{
    assert_network("::ffff:0:0/96", "0.0.0.0/0");
    assert_network("::ffff:10.0.0.0/104", "10.0.0.0/8");
    assert_network("::FFFF:203.0.113.7", "203.0.113.7/32");
    assert_network("::ffff:203.0.113.7/128", "203.0.113.7/32");
    assert_network("64:ff9b::/96", "0.0.0.0/0");
    assert_network("64:ff9b::10.0.0.0/104", "10.0.0.0/8");
    assert_network("64:ff9b::/64", "64:ff9b::/64");
    assert_network("::fffe:0:0/95", "::fffe:0:0/95");
}

static void bits_behind_the_prefix_are_an_error_that_shows_the_network(void **state)
{
    assert_error("10.0.0.1/8",
                 "found '10.0.0.1/8' with bits set after its prefix, expected 10.0.0.0/8");
    assert_error("0.0.0.1/0",
                 "found '0.0.0.1/0' with bits set after its prefix, expected 0.0.0.0/0");
    assert_error("2001:db8::1/64",
                 "found '2001:db8::1/64' with bits set after its prefix, expected 2001:db8::/64");
    assert_error("::ffff:10.0.0.1/104",
                 "found '::ffff:10.0.0.1/104' with bits set after its prefix, expected 10.0.0.0/8");
    assert_error("::ffff:0:0/80",
                 "found '::ffff:0:0/80' with bits set after its prefix, expected ::/80");
}

static void a_bad_prefix_is_an_error_that_shows_the_range(void **state)
{
    static const char *const texts[] = {"/",    "/33",  "/08", "/-1", "/+8", "/ 8",
                                        "/8 ",  "/8/8", "/x",  "/99", "/00", "/4294967304",
                                        "/128", "/1e1", "/8.", "//8"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char string[40];
        char expected[100];
        (void)snprintf(string, sizeof string, "10.0.0.0%s", texts[i]);
        (void)snprintf(expected, sizeof expected, "found '%s', expected a prefix from /0 to /32",
                       string);
        assert_error(string, expected);
    }
    assert_error("::/129", "found '::/129', expected a prefix from /0 to /128");
}

static void a_network_has_no_port_no_brackets_and_no_zone(void **state)
{
    static const char *const texts[] = {"",       "/8",       "10.0.0.0:80/8", "10.0.0.0:80",
                                        "[::1]",  "[::]/0",   "fe80::1%eth0",  "fe80::%eth0/64",
                                        "10.0/8", "10.0.0/8", "private",       " 10.0.0.0/8"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char expected[120];
        (void)snprintf(expected, sizeof expected,
                       "found '%s', expected a network such as 10.0.0.0/8 or ::1", texts[i]);
        assert_error(texts[i], expected);
    }
    assert_error("010.0.0.0/8", "found '010.0.0.0/8' with a leading zero, which some programs read "
                                "as octal, expected four decimal numbers without");
}

static void a_set_has_what_one_of_its_networks_has(void **state)
{
    const struct cidr cidrs[] = {network("192.168.0.0/16"), network("10.0.0.0/8"),
                                 network("2001:db8::/32"), network("203.0.113.7")};
    struct cidr_set *set = set_of(cidrs, 4);
    assert_true(has(set, "10.0.0.0") && has(set, "10.255.255.255"));
    assert_true(has(set, "192.168.0.1") && has(set, "203.0.113.7"));
    assert_true(has(set, "::ffff:10.1.2.3") && has(set, "64:ff9b::10.1.2.3"));
    assert_true(has(set, "2001:db8:ffff::1"));
    assert_false(has(set, "9.255.255.255") || has(set, "11.0.0.0"));
    assert_false(has(set, "203.0.113.6") || has(set, "203.0.113.8"));
    assert_false(has(set, "2001:db7:ffff::") || has(set, "2001:db9::"));
    assert_false(has(set, "0.0.0.0") || has(set, "255.255.255.255") || has(set, "::"));
    cidr_set_destroy(set);
}

static void an_empty_set_has_nothing(void **state)
{
    struct cidr_set *set = set_of(NULL, 0);
    assert_false(has(set, "0.0.0.0") || has(set, "::") || has(set, "10.1.2.3"));
    cidr_set_destroy(set);
    cidr_set_destroy(NULL);
}

static void all_of_ipv6_has_no_ipv4_client_and_the_other_way_round(void **state)
{
    const struct cidr six = network("::/0");
    const struct cidr four = network("0.0.0.0/0");
    struct cidr_set *set = set_of(&six, 1);
    assert_true(has(set, "::") && has(set, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    assert_false(has(set, "10.0.0.1") || has(set, "::ffff:10.0.0.1"));
    cidr_set_destroy(set);
    set = set_of(&four, 1);
    assert_true(has(set, "0.0.0.0") && has(set, "255.255.255.255") && has(set, "::ffff:1.2.3.4"));
    assert_false(has(set, "::") || has(set, "::1"));
    cidr_set_destroy(set);
}

static void a_set_that_does_not_fit_into_memory_is_an_error(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their allocators end the program instead */
#else
    struct cidr_set *set = NULL;
    assert_int_equal(cidr_set_create(NULL, SIZE_MAX / 64, &set), WEIR_ENOMEM);
    assert_int_equal(cidr_set_create(NULL, SIZE_MAX - 1, &set), WEIR_ENOMEM);
    assert_null(set);
#endif
}

/* ---- against a look at each network ---- */

/* Crowded: few different bits, so that networks nest, touch and repeat. */
static struct address random_address(uint64_t *seed, unsigned family)
{
    struct address a = {.family = (uint8_t)family};
    for (unsigned i = 0; i < (family == 4 ? 4 : 16); i++) {
        uint64_t r = unit_random(seed);
        a.bytes[i] = r % 4 == 0 ? 255 : r % 4 == 1 ? 0 : (uint8_t)(r >> 8 & 3);
    }
    return a;
}

static struct cidr random_network(uint64_t *seed)
{
    unsigned family = unit_random(seed) % 2 ? 4 : 6;
    struct cidr c = {.network = random_address(seed, family)};
    c.prefix = (uint8_t)(unit_random(seed) % (family == 4 ? 33 : 129));
    if (unit_random(seed) % 8 != 0 && c.prefix < 12) {
        c.prefix = (uint8_t)(c.prefix + 20);
    }
    address_cut(&c.network, c.prefix, c.prefix);
    return c;
}

static bool slow_has(const struct cidr *cidrs, size_t n, const struct address *a)
{
    for (size_t i = 0; i < n; i++) {
        if (slow_in_network(&cidrs[i], a)) {
            return true;
        }
    }
    return false;
}

static void random_sets_have_what_a_look_at_each_network_finds(void **state)
{
    uint64_t seed = 3;
    uint64_t found = 0;
    uint64_t asked = 0;
    for (uint64_t round = 0; round < unit_scale(2000); round++) {
        struct cidr cidrs[40];
        size_t n = unit_random(&seed) % 40;
        for (size_t i = 0; i < n; i++) {
            cidrs[i] = random_network(&seed);
        }
        struct cidr_set *set = set_of(cidrs, n);
        for (int i = 0; i < 200; i++, asked++) {
            struct address a = random_address(&seed, i % 2 ? 4 : 6);
            if (i % 3 == 0 && n > 0) {
                a = cidrs[unit_random(&seed) % n].network;
            }
            bool slow = slow_has(cidrs, n, &a);
            assert_int_equal(cidr_set_has(set, &a), slow);
            found += slow;
        }
        cidr_set_destroy(set);
    }
    assert_in_range(found, asked / 10, asked - asked / 10);
}

static void a_hundred_thousand_networks_are_searched_not_scanned(void **state)
{
    const size_t n = 100000;
    struct cidr *cidrs = calloc(n, sizeof *cidrs);
    assert_non_null(cidrs);
    for (size_t i = 0; i < n; i++) { /* every other /24 from 10.0.0.0 on, last first */
        uint32_t first = UINT32_C(0x0a000000) + (uint32_t)(n - 1 - i) * 512;
        cidrs[i] = (struct cidr){.network = {.family = 4}, .prefix = 24};
        for (int j = 0; j < 4; j++) {
            cidrs[i].network.bytes[j] = (uint8_t)(first >> (24 - 8 * j));
        }
    }
    struct cidr_set *set = set_of(cidrs, n);
    for (uint32_t i = 0; i < 2 * n; i++) { /* 2 * 10^10 steps if it were a scan */
        uint32_t x = UINT32_C(0x0a000000) + i * 256 + i % 256;
        struct address a = {{x >> 24, x >> 16, x >> 8, x}, 4};
        assert_int_equal(cidr_set_has(set, &a), i % 2 == 0);
    }
    cidr_set_destroy(set);
    free(cidrs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_read_and_printed),
        cmocka_unit_test(networks_of_mapped_addresses_are_ipv4),
        cmocka_unit_test(bits_behind_the_prefix_are_an_error_that_shows_the_network),
        cmocka_unit_test(a_bad_prefix_is_an_error_that_shows_the_range),
        cmocka_unit_test(a_network_has_no_port_no_brackets_and_no_zone),
        cmocka_unit_test(a_set_has_what_one_of_its_networks_has),
        cmocka_unit_test(an_empty_set_has_nothing),
        cmocka_unit_test(all_of_ipv6_has_no_ipv4_client_and_the_other_way_round),
        cmocka_unit_test(a_set_that_does_not_fit_into_memory_is_an_error),
        cmocka_unit_test(random_sets_have_what_a_look_at_each_network_finds),
        cmocka_unit_test(a_hundred_thousand_networks_are_searched_not_scanned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
