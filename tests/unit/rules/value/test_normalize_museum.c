/*
 * A museum of public ways around rate limiters, as far as they went by how an address or a path
 * was written; and each spelling that such a list should try. What went wrong inside
 * the counting itself is in tests/unit/limit/test_museum.c.
 */
#include "support/oracle/policy_slow.h"
#include "support/engine/unit_limiter.h"

/* The client as a limit sees it by default: IPv4 whole, IPv6 cut to a /64. */
static struct address client(const char *string)
{
    struct address a;
    struct weir_error error;
    if (address_parse(text_of(string), &a, &error) != 0) {
        fail_msg("%s", error.text);
    }
    address_cut(&a, 32, 64);
    return a;
}

static bool same_client(const char *a, const char *b)
{
    struct address left = client(a);
    struct address right = client(b);
    return slow_same(&left, &right);
}

static bool no_address(struct weir_text text)
{
    struct address a;
    struct weir_error error;
    return address_parse(text, &a, &error) == WEIR_EINVAL && error.code == WEIR_EINVAL;
}

static bool same_path(const char *written, const char *path)
{
    char out[PATH_BYTES_MAX];
    size_t n;
    assert_int_equal(path_normalise(text_of(written), out, &n, NULL), 0);
    return text_equal((struct weir_text){out, n}, text_of(path));
}

static bool no_path(struct weir_text text)
{
    char out[PATH_BYTES_MAX];
    struct weir_error error;
    size_t n;
    return path_normalise(text, out, &n, &error) == WEIR_EINVAL && error.code == WEIR_EINVAL;
}

/* ---- what others shipped ---- */

/* express-rate-limit: /56 was laid on IPv4-mapped addresses, so all of IPv4 was one client. */
static void cve_2026_30827_all_ipv4_clients_share_one_bucket(void **state)
{
    assert_false(same_client("::ffff:203.0.113.7", "::ffff:203.0.113.8"));
    assert_false(same_client("::ffff:1.2.3.4", "::ffff:200.2.3.4"));
    for (unsigned prefix = 0; prefix <= 128; prefix++) {
        struct address a;
        struct address plain = client("203.0.113.7");
        assert_int_equal(address_parse(TEXT("::ffff:203.0.113.7"), &a, NULL), 0);
        address_cut(&a, 32, prefix);
        assert_true(slow_same(&a, &plain));
    }
}

/* Better Auth: the key was the text of the address; each spelling was a client of its own. */
static void cve_2026_45364_one_address_in_many_spellings_is_many_clients(void **state)
{
    static const char *const spellings[] = {
        "2001:db8:0:0:0:0:0:1", "2001:0db8:0000:0000:0000:0000:0000:0001",
        "2001:DB8::1",          "2001:db8:0::1",
        "[2001:db8::1]:443",    "2001:db8::1%eth0"};
    static const char *const mapped[] = {"::ffff:203.0.113.7", "::FFFF:CB00:7107",
                                         "0:0:0:0:0:ffff:cb00:7107", "::ffff:cb00:7107"};
    for (int i = 0; i < 6; i++) {
        assert_true(same_client(spellings[i], "2001:db8::1"));
    }
    for (int i = 0; i < 4; i++) {
        assert_true(same_client(mapped[i], "203.0.113.7"));
    }
}

/* The same report: a new address out of one's own /64 for each request. */
static void cve_2026_45364_rotation_within_a_64_is_many_clients(void **state)
{
    uint64_t seed = 9;
    struct address one = client("2001:db8:1:2::");
    for (int i = 0; i < 1000; i++) {
        struct address a = one;
        for (int j = 8; j < 16; j++) {
            a.bytes[j] = (uint8_t)unit_random(&seed);
        }
        address_cut(&a, 32, 64);
        assert_true(slow_same(&a, &one));
    }
    assert_false(same_client("2001:db8:1:2::1", "2001:db8:1:3::1"));
}

/* rou3 in Better Auth: '//path' reached the route of '/path', under another key. */
static void ghsa_x732_6j76_qmhm_a_double_slash_is_another_path(void **state)
{
    assert_true(same_path("//api//sign-in///email", "/api/sign-in/email"));
    assert_true(same_path("/api/%2Fsign-in/email", "/api/sign-in/email"));
    assert_true(same_path("http://h//api/sign-in/email//", "/api/sign-in/email"));
}

/* zulip 21544: who has a /48 or a /32 has many /64; a limit can be as wide as it likes. */
static void zulip_21544_wider_networks_rotate_64s(void **state)
{
    static const unsigned prefixes[] = {64, 48, 32};
    static const char *const neighbours[] = {
        "2001:db8:1:2:ffff::", "2001:db8:1:ffff::", "2001:db8:ffff::"};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            struct address one;
            struct address other;
            assert_int_equal(address_parse(TEXT("2001:db8:1:2::1"), &one, NULL), 0);
            assert_int_equal(address_parse(text_of(neighbours[j]), &other, NULL), 0);
            address_cut(&one, 32, prefixes[i]);
            address_cut(&other, 32, prefixes[i]);
            assert_int_equal(slow_same(&one, &other), j <= i);
        }
    }
}

/* ---- addresses, one spelling each ---- */

static void vector_ipv4(void **state)
{
    assert_true(same_client("203.0.113.7", "203.0.113.7"));
    assert_false(same_client("203.0.113.7", "203.0.113.8"));
    assert_false(same_client("203.0.113.7", "::203.0.113.7"));
}

static void vector_mapped(void **state)
{
    assert_true(same_client("::ffff:203.0.113.7", "203.0.113.7"));
}

static void vector_nat64(void **state)
{
    assert_true(same_client("64:ff9b::203.0.113.7", "203.0.113.7"));
    assert_false(same_client("64:ff9b::203.0.113.7", "64:ff9b::203.0.113.8"));
}

static void vector_zone_id(void **state)
{
    assert_true(same_client("fe80::1%eth0", "fe80::1%eth1"));
    assert_true(same_client("fe80::1%eth0", "fe80::1"));
}

static void vector_brackets_and_port(void **state)
{
    assert_true(same_client("[2001:db8::1]:1", "[2001:db8::1]:65535"));
    assert_true(same_client("203.0.113.7:1", "203.0.113.7:2"));
}

static void vector_leading_zeros(void **state)
{
    assert_true(no_address(TEXT("203.000.113.007")));
    assert_true(no_address(TEXT("::ffff:203.0.113.07")));
    assert_true(same_client("2001:0db8::0001", "2001:db8::1"));
}

static void vector_octal(void **state)
{
    assert_true(no_address(TEXT("0313.0.0161.07")));
    assert_true(no_address(TEXT("0x7f.1")) && no_address(TEXT("2130706433")));
}

static void vector_upper_case(void **state)
{
    assert_true(same_client("2001:DB8:ABCD:EF::1", "2001:db8:abcd:ef::1"));
    assert_true(same_client("::FFFF:203.0.113.7", "203.0.113.7"));
}

static void vector_embedded_nul(void **state)
{
    assert_true(no_address(TEXT("203.0.113.7\0")));
    assert_true(no_address(TEXT("203.0.113.7\0.example.com")));
    assert_true(no_path(TEXT("/login\0")) && no_path(TEXT("/login%00.png")));
}

static void vector_trailing_dot(void **state)
{
    assert_true(no_address(TEXT("203.0.113.7.")));
    assert_true(same_path("/login/.", "/login"));
}

/* ---- paths, one spelling each ---- */

static void vector_case_of_host(void **state)
{
    assert_true(same_path("HTTP://EXAMPLE.com/login", "/login"));
    assert_true(same_path("http://example.COM/login", "/login"));
    assert_false(same_path("http://example.com/Login", "/login"));
}

static void vector_encoded_slash_upper_and_lower(void **state)
{
    assert_true(same_path("/v1%2Flogin", "/v1/login"));
    assert_true(same_path("/v1%2flogin", "/v1/login"));
    assert_true(no_path(TEXT("/v1%2F..%2Flogin")));
    assert_true(no_path(TEXT("/x%2fy/../login")));
}

/* Decoded once: a server that decodes twice is not rewarded with a second look. */
static void vector_double_encoding(void **state)
{
    assert_true(same_path("/%252Flogin", "/%2Flogin"));
    assert_true(same_path("/x/%252e%252e/login", "/x/%2e%2e/login"));
}

static void vector_double_slash(void **state)
{
    assert_true(same_path("//login", "/login"));
}

static void vector_dot_segment(void **state)
{
    assert_true(same_path("/./login", "/login"));
    assert_true(same_path("/x/../login", "/login"));
    assert_true(same_path("/x/%2e%2e/login", "/login"));
}

static void vector_dots_with_parameters(void **state)
{
    assert_true(no_path(TEXT("/x/..;/login")));
    assert_true(no_path(TEXT("/x/..%3b/login")));
    assert_true(no_path(TEXT("/.;a=b/login")));
}

static void vector_trailing_slash(void **state)
{
    assert_true(same_path("/login/", "/login"));
    assert_true(same_path("/login%2F", "/login"));
}

static void vector_parameters(void **state)
{
    assert_true(same_path("/login;jsessionid=1", "/login"));
    assert_true(same_path("/v1;v=2/login;x;y?z", "/v1/login"));
}

/* C0 AF, E0 80 AF and C0 AE are '/' and '.' to nobody who follows RFC 3629. */
static void vector_overlong_utf8(void **state)
{
    assert_true(same_path("/x%C0%AFlogin", "/x\xc0\xaflogin"));
    assert_true(same_path("/x%e0%80%aflogin", "/x\xe0\x80\xaflogin"));
    assert_true(same_path("/x/%C0%AE%C0%AE/login", "/x/\xc0\xae\xc0\xae/login"));
}

/* ---- sizes ---- */

static void vector_nothing(void **state)
{
    assert_true(no_address(TEXT("")));
    assert_true(same_path("", "/"));
    assert_int_equal(path_pattern_check(TEXT(""), NULL), WEIR_EINVAL);
    assert_true(segment_match(TEXT("*"), TEXT("")));
}

static void vector_64_kib(void **state)
{
    static char big[65536];
    static const char fills[] = "1:.%[/;a\0\xff";
    const struct weir_text zone = TEXT("fe80::1%");
    const struct weir_text query = TEXT("/login?");
    for (size_t i = 0; i < sizeof fills - 1; i++) {
        memset(big, fills[i], sizeof big);
        struct weir_text text = {big, sizeof big};
        struct cidr c;
        assert_true(no_address(text));
        assert_int_equal(cidr_parse(text, &c, NULL), WEIR_EINVAL);
        assert_true(no_path(text));
        assert_int_equal(path_pattern_check(text, NULL), WEIR_EINVAL);
        memcpy(big, zone.at, zone.len);
        assert_true(no_address(text));
    }
    memcpy(big, query.at, query.len);
    char out[PATH_BYTES_MAX];
    size_t n;
    assert_int_equal(path_normalise((struct weir_text){big, sizeof big}, out, &n, NULL), 0);
    assert_true(text_equal((struct weir_text){out, n}, TEXT("/login")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cve_2026_30827_all_ipv4_clients_share_one_bucket),
        cmocka_unit_test(cve_2026_45364_one_address_in_many_spellings_is_many_clients),
        cmocka_unit_test(cve_2026_45364_rotation_within_a_64_is_many_clients),
        cmocka_unit_test(ghsa_x732_6j76_qmhm_a_double_slash_is_another_path),
        cmocka_unit_test(zulip_21544_wider_networks_rotate_64s),
        cmocka_unit_test(vector_ipv4),
        cmocka_unit_test(vector_mapped),
        cmocka_unit_test(vector_nat64),
        cmocka_unit_test(vector_zone_id),
        cmocka_unit_test(vector_brackets_and_port),
        cmocka_unit_test(vector_leading_zeros),
        cmocka_unit_test(vector_octal),
        cmocka_unit_test(vector_upper_case),
        cmocka_unit_test(vector_embedded_nul),
        cmocka_unit_test(vector_trailing_dot),
        cmocka_unit_test(vector_case_of_host),
        cmocka_unit_test(vector_encoded_slash_upper_and_lower),
        cmocka_unit_test(vector_double_encoding),
        cmocka_unit_test(vector_double_slash),
        cmocka_unit_test(vector_dot_segment),
        cmocka_unit_test(vector_dots_with_parameters),
        cmocka_unit_test(vector_trailing_slash),
        cmocka_unit_test(vector_parameters),
        cmocka_unit_test(vector_overlong_utf8),
        cmocka_unit_test(vector_nothing),
        cmocka_unit_test(vector_64_kib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
