#include "support/oracle/policy_slow.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>

static struct address parsed(const char *string)
{
    struct address a;
    struct weir_error error;
    if (address_parse(text_of(string), &a, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return a;
}

static void assert_printed(const char *string, const char *expected)
{
    struct address a = parsed(string);
    char buffer[ADDRESS_MAX];
    assert_string_equal(address_print(&a, buffer), expected);
}

static void assert_refused(struct weir_text text)
{
    struct weir_error error = {0};
    struct address before = {.family = 77};
    struct address a = before;
    assert_int_equal(address_parse(text, &a, &error), WEIR_EINVAL);
    assert_int_equal(error.code, WEIR_EINVAL);
    assert_true(strstr(error.text, "expected") != NULL);
    assert_memory_equal(&a, &before, sizeof a);
    assert_int_equal(address_parse(text, &a, NULL), WEIR_EINVAL);
}

static void every_spelling_of_the_manual_is_read(void **state)
{
    assert_printed("203.0.113.7", "203.0.113.7");
    assert_printed("203.0.113.7:443", "203.0.113.7");
    assert_printed("203.0.113.7:0", "203.0.113.7");
    assert_printed("0.0.0.0", "0.0.0.0");
    assert_printed("255.255.255.255:65535", "255.255.255.255");
    assert_printed("2001:db8::1", "2001:db8::1");
    assert_printed("[2001:db8::1]", "2001:db8::1");
    assert_printed("[2001:db8::1]:443", "2001:db8::1");
    assert_printed("fe80::1%eth0", "fe80::1");
    assert_printed("[fe80::1%eth0]", "fe80::1");
    assert_printed("[fe80::1%25eth0]:443", "fe80::1");
    assert_printed("::", "::");
    assert_printed("::1", "::1");
    assert_printed("1::", "1::");
    assert_printed("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8");
    assert_printed("::203.0.113.7", "::203.0.113.7");
}

static void ipv4_inside_ipv6_is_ipv4(void **state)
{
    static const char *const spellings[] = {
        "::ffff:203.0.113.7",          "::FFFF:203.0.113.7",     "::ffff:cb00:7107",
        "0:0:0:0:0:ffff:203.0.113.7",  "0::ffff:CB00:7107",      "[::ffff:203.0.113.7]:443",
        "::ffff:203.0.113.7%eth0",     "64:ff9b::203.0.113.7",   "64:FF9B::cb00:7107",
        "0064:ff9b:0:0:0:0:cb00:7107", "[64:ff9b::cb00:7107]:1", "203.0.113.7:80",
    };
    struct address plain = parsed("203.0.113.7");
    assert_int_equal(plain.family, 4);
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        struct address a = parsed(spellings[i]);
        assert_true(slow_same(&a, &plain));
    }
}

static void what_only_looks_mapped_stays_ipv6(void **state)
{
    assert_int_equal(parsed("::ffff:0:203.0.113.7").family, 6);
    assert_int_equal(parsed("::fffe:203.0.113.7").family, 6);
    assert_int_equal(parsed("1::ffff:203.0.113.7").family, 6);
    assert_int_equal(parsed("64:ff9b:1::203.0.113.7").family, 6);
    assert_int_equal(parsed("::203.0.113.7").family, 6);
}

static void what_is_not_strictly_an_address_is_refused(void **state)
{
    static const char *const texts[] = {
        "",           " ",
        "a",          "1",
        ".",          ":",
        "[",          "]",
        "[]",         "%",
        "2130706433", "127.1",
        "1.2.3",      "1.2.3.",
        "1.2.3.4.",   "1.2.3.4.5",
        "1..2.3",     ".1.2.3",
        "01.2.3.4",   "1.2.3.04",
        "00.0.0.0",   "1.2.3.256",
        "1.2.3.1000", "0x7f.0.0.1",
        "1.2.3.a",    "+1.2.3.4",
        "-1.2.3.4",   " 1.2.3.4",
        "1.2.3.4 ",   "1.2.3.4\n",
        "1.2.3.4:",   "1.2.3.4:x",
        "1.2.3.4:-1", "1.2.3.4:65536",
        "1.2.3.4:1:", "1.2.3.4:000443",
        "1.2.3.4%e",  "[1.2.3.4]",
        ":::",        "1:2",
        "1:::2",      "1::2::3",
        ":1::2",      "1::2:",
        "12345::",    "g::",
        "::1 ",       "1:2:3:4:5:6:7",
        "::1%",       "1:2:3:4:5:6:7:8:9",
        "::1%a b",    "1:2:3:4:5:6:7:8::",
        "::1%a]",     "::1:2:3:4:5:6:7:8",
        "::1%a/64",   "1:2:3:4::5:6:7:8",
        "::1/128",    "1:2:3:4:5:6:7:1.2.3.4",
        "[::1",       "::1]",
        "[::1]x",     "[::1]443",
        "[::1]:",     "[::1]:65536",
        "[[::1]]",    "[::1%]",
        "::1.2.3",    "::1.2.3.04",
        "1.2.3.4::",  "::1.2.3.4:5",
        "localhost",  "::1.2.3.4.5",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_refused(text_of(texts[i]));
    }
    assert_refused((struct weir_text){NULL, 0});
}

static void an_error_says_what_was_found_without_control_characters(void **state)
{
    struct address a;
    struct weir_error error;
    (void)address_parse(TEXT("10.0.0.010"), &a, &error);
    assert_string_equal(error.text, "found '10.0.0.010' with a leading zero, which some programs "
                                    "read as octal, expected four decimal numbers without");
    (void)address_parse(TEXT("010.0.0.1"), &a, &error);
    assert_non_null(strstr(error.text, "with a leading zero"));
    (void)address_parse(TEXT("10.100.0.300"), &a, &error); /* its zeros are not in front */
    assert_string_equal(error.text, "found '10.100.0.300', expected an IP address such as "
                                    "203.0.113.7 or 2001:db8::1");
    (void)address_parse(TEXT("localhost"), &a, &error);
    assert_string_equal(error.text, "found 'localhost', expected an IP address such as "
                                    "203.0.113.7 or 2001:db8::1");
    (void)address_parse(TEXT("a\n\033[2J\0\xff"), &a, &error);
    assert_non_null(strstr(error.text, "'a\\x0a\\x1b[2J\\x00\\xff', expected"));
    (void)address_parse(TEXT(""), &a, &error);
    assert_non_null(strstr(error.text, "found '', expected an IP address"));
}

static void a_prefix_cuts_the_bits_behind_it(void **state)
{
    for (unsigned prefix = 0; prefix <= 130; prefix++) {
        struct address ones = {.family = 6};
        struct address few = {.bytes = {255, 255, 255, 255}, .family = 4};
        memset(ones.bytes, 255, sizeof ones.bytes);
        address_cut(&ones, 7, prefix);
        address_cut(&few, prefix, 7);
        for (unsigned bit = 0; bit < 128; bit++) {
            assert_int_equal(slow_bit(&ones, bit), bit < prefix);
            assert_int_equal(slow_bit(&few, bit), bit < prefix && bit < 32);
        }
    }
}

static void ipv6_is_printed_as_rfc_5952_says(void **state)
{
    assert_printed("2001:0DB8:0:0:0:0:0:0001", "2001:db8::1");
    assert_printed("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"); /* one group is not cut */
    assert_printed("2001:0:0:1:0:0:0:1", "2001:0:0:1::1");          /* the longest run */
    assert_printed("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1");    /* the first of two */
    assert_printed("0:0:1:0:0:0:0:0", "0:0:1::");
    assert_printed("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                   "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

/* ---- against the system's own, on random texts that are nearly addresses ---- */

#define TEXT_SIZE 64

static void random_text(uint64_t *seed, char *out)
{
    static const char *const starts[] = {
        "2001:db8::1", "::ffff:1.2.3.4",         "1.2.3.4",          "255.0.10.199",
        "1:2:3:4::",   "a:b:c:d:e:f:1.22.33.44", "64:ff9b::9.8.7.6",
    };
    static const char bytes[] = "0123456789abcdefABF::::....%[]/xg ";
    (void)snprintf(out, TEXT_SIZE, "%s", starts[unit_random(seed) % 7]);
    for (uint64_t changes = unit_random(seed) % 6; changes > 0; changes--) {
        size_t n = strlen(out);
        size_t at = n == 0 ? 0 : unit_random(seed) % n;
        char byte = bytes[unit_random(seed) % (sizeof bytes - 1)];
        switch (n > 40 ? 0 : unit_random(seed) % 3) {
        case 0:
            memmove(out + at, out + at + (n > 0), n - at + (n == 0));
            break;
        case 1:
            out[at] = n > 0 ? byte : '\0';
            break;
        default:
            memmove(out + at + 1, out + at, n - at + 1);
            out[at] = byte;
        }
    }
}

static bool is_bare(const char *string)
{
    return strpbrk(string, "[%") == NULL &&
           !(strcspn(string, ".") < strcspn(string, ":") && strchr(string, ':') != NULL);
}

static void texts_are_addresses_exactly_if_the_system_says_so(void **state)
{
    uint64_t seed = 1;
    unsigned accepted = 0;
    for (uint64_t i = 0; i < unit_scale(2000000); i++) {
        char string[TEXT_SIZE] = {0};
        struct address a;
        struct address reference;
        random_text(&seed, string);
        bool ours = address_parse(text_of(string), &a, NULL) == 0;
        bool theirs = slow_address(string, &reference);
        if ((theirs && !ours) || (ours && is_bare(string) && !theirs) ||
            (theirs && !slow_same(&a, &reference))) {
            fail_msg("'%s': ours %d, inet_pton %d", string, ours, theirs);
        }
        accepted += theirs;
    }
    assert_true(accepted > unit_scale(2000000) / 10);
}

/* inet_ntop() shows the tail of ::/96 and of mapped addresses in dots; RFC 5952 only allows it. */
static void random_addresses_print_as_the_system_does_and_read_back(void **state)
{
    uint64_t seed = 2;
    for (uint64_t i = 0; i < unit_scale(500000); i++) {
        struct address a = {.family = unit_random(&seed) % 2 ? 4 : 6};
        struct address again;
        char ours[ADDRESS_MAX];
        char theirs[INET6_ADDRSTRLEN];
        a.bytes[0] = 0x20;
        for (unsigned j = 1; j < (a.family == 4 ? 4 : 16); j++) {
            uint64_t r = unit_random(&seed);
            a.bytes[j] = r % 3 == 0 ? (uint8_t)(r >> 8) : 0;
        }
        assert_non_null(
            inet_ntop(a.family == 4 ? AF_INET : AF_INET6, a.bytes, theirs, sizeof theirs));
        assert_string_equal(address_print(&a, ours), theirs);
        assert_int_equal(address_parse(text_of(ours), &again, NULL), 0);
        assert_true(slow_same(&a, &again));
    }
}

static void a_port_alone_gets_the_address_of_this_machine(void **state)
{
    static const char *const others[] = {"",       ":",   "::6380",         "6380:",   "65536",
                                         ":65536", "-1",  " 6380",          "6380 ",   "off",
                                         "http",   "1.2", "127.0.0.1:6380", "[::]:80", ":off"};
    char address[PORT_ADDRESS_MAX] = "before";
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(port_complete(text_of(others[i]), address));
        assert_string_equal(address, "before");
    }
    assert_true(port_complete(TEXT("6380"), address));
    assert_string_equal(address, "127.0.0.1:6380");
    assert_true(port_complete(TEXT(":0"), address));
    assert_string_equal(address, "127.0.0.1:0");
    assert_true(port_complete((struct weir_text){"655359", 5}, address));
    assert_string_equal(address, "127.0.0.1:65535");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_of_the_manual_is_read),
        cmocka_unit_test(ipv4_inside_ipv6_is_ipv4),
        cmocka_unit_test(what_only_looks_mapped_stays_ipv6),
        cmocka_unit_test(what_is_not_strictly_an_address_is_refused),
        cmocka_unit_test(an_error_says_what_was_found_without_control_characters),
        cmocka_unit_test(a_prefix_cuts_the_bits_behind_it),
        cmocka_unit_test(ipv6_is_printed_as_rfc_5952_says),
        cmocka_unit_test(texts_are_addresses_exactly_if_the_system_says_so),
        cmocka_unit_test(random_addresses_print_as_the_system_does_and_read_back),
        cmocka_unit_test(a_port_alone_gets_the_address_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
