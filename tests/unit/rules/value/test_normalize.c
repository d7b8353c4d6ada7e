/* Attributes that can be written in several ways: each comes to one, and stays there. */
#include "rules/value/normalize.h"
#include "support/engine/unit_limiter.h"

#include <stdlib.h>

static void expect_host(const char *written, const char *host)
{
    char to[300];
    struct weir_text from = text_of(written);
    size_t len = normalize_host(from, to);
    if (!text_equal((struct weir_text){to, len}, text_of(host))) {
        fail_msg("%s became %.*s, expected %s", written, (int)len, to, host);
    }
}

static void the_kind_of_an_attribute_is_in_its_name(void **state)
{
    assert_int_equal(attribute_kind_of(TEXT("path")), ATTRIBUTE_PATH);
    assert_int_equal(attribute_kind_of(TEXT("method")), ATTRIBUTE_METHOD);
    assert_int_equal(attribute_kind_of(TEXT("host")), ATTRIBUTE_HOST);
    assert_int_equal(attribute_kind_of(TEXT("ip")), ATTRIBUTE_IP);
    static const char *const plain[] = {"user", "Path", "paths", "pat", "ip6", "", "header:host"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        assert_int_equal(attribute_kind_of(text_of(plain[i])), ATTRIBUTE_PLAIN);
    }
}

static void a_host_is_in_lower_case_without_port_and_root_dot(void **state)
{
    expect_host("example.com", "example.com");
    expect_host("Example.COM", "example.com");
    expect_host("example.com:443", "example.com");
    expect_host("example.com.", "example.com");
    expect_host("example.com.:443", "example.com");
    expect_host("example.com:", "example.com");
    expect_host("[2001:DB8::1]:443", "[2001:db8::1]");
    expect_host("[2001:DB8::1]", "[2001:db8::1]");
    expect_host("2001:db8::1", "2001:db8::1");
    expect_host("::ffff:192.0.2.1", "::ffff:192.0.2.1");
    expect_host("10.0.0.1:80", "10.0.0.1");
    expect_host("127.0.0.1", "127.0.0.1");
    expect_host("example.com:https", "example.com"); /* as nginx, which serves it */
    expect_host("example.com:80:x", "example.com");
    expect_host("example.com.:x", "example.com");
    expect_host("example.com:?/", "example.com");
    expect_host("face:80", "face");
    expect_host("[2001:db8::1]:x", "[2001:db8::1]");
    expect_host("[2001:db8::1", "[2001:db8::1");
}

static void what_servers_read_in_different_ways_is_no_host(void **state)
{
    static const char *const hosts[] = {"a.example",        "a_b", "[2001:db8::1]",
                                        "\xc3\xbc.example", "",    "a~%2e!"};
    static const char others[] = "\"#,/<>?@\\^`{|}\177 \t\r\n\1";
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        assert_true(is_host(text_of(hosts[i])));
    }
    for (size_t i = 0; i < sizeof others; i++) { /* with the NUL */
        const char host[] = {'a', others[i], 'b'};
        assert_false(is_host((struct weir_text){host, sizeof host}));
    }
}

/* What one server routes as another's name must not be another key. */
static void a_normal_host_is_normal_again(void **state)
{
    static const char letters[] = "aZ.:[]09-";
    uint64_t seed = 3;
    for (uint64_t i = unit_scale(200000); i > 0; i--) {
        char from[8];
        char once[8];
        char twice[8];
        size_t n = unit_random(&seed) % sizeof from;
        for (size_t j = 0; j < n; j++) {
            from[j] = letters[unit_random(&seed) % (sizeof letters - 1)];
        }
        size_t len = normalize_host((struct weir_text){from, n}, once);
        size_t again = normalize_host((struct weir_text){once, len}, twice);
        assert_int_equal(again, len);
        assert_memory_equal(once, twice, len);
    }
}

static void a_method_is_in_upper_case(void **state)
{
    char to[16];
    normalize_method(TEXT("get"), to);
    assert_memory_equal(to, "GET", 3);
    normalize_method(TEXT("PaTcH-x_1\xe4"), to);
    assert_memory_equal(to, "PATCH-X_1\xe4", 10);
}

static void expect_normal(enum attribute_kind kind, struct weir_text from, struct weir_text value)
{
    char *to = malloc(NORMAL_BYTES(from.len)); /* so that a write behind it is seen */
    struct weir_error error;
    size_t len;
    assert_non_null(to);
    assert_int_equal(normalize_value(kind, from, to, &len, &error), 0);
    assert_true(text_equal((struct weir_text){to, len}, value));
    free(to);
}

static void a_value_of_each_kind_has_one_form(void **state)
{
    expect_normal(ATTRIBUTE_PLAIN, TEXT("Al\0ice "), TEXT("Al\0ice "));
    expect_normal(ATTRIBUTE_PLAIN, TEXT(""), TEXT(""));
    expect_normal(ATTRIBUTE_PATH, TEXT("/a//b/./c/../?q=1"), TEXT("/a/b"));
    expect_normal(ATTRIBUTE_METHOD, TEXT("post"), TEXT("POST"));
    expect_normal(ATTRIBUTE_HOST, TEXT("A.example.:80"), TEXT("a.example"));
    expect_normal(ATTRIBUTE_IP, TEXT("10.1.2.3"), TEXT("\x0a\x01\x02\x03"));
    expect_normal(ATTRIBUTE_IP, TEXT("::ffff:10.1.2.3"), TEXT("\x0a\x01\x02\x03"));
    expect_normal(ATTRIBUTE_IP, TEXT("[2001:db8::1]:80"),
                  TEXT("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"));
}

static void a_long_plain_value_stays_whole(void **state)
{
    size_t n = 3 * PATH_BYTES_MAX;
    char *from = malloc(n);
    assert_non_null(from);
    memset(from, 'x', n);
    expect_normal(ATTRIBUTE_PLAIN, (struct weir_text){from, n}, (struct weir_text){from, n});
    expect_normal(ATTRIBUTE_HOST, (struct weir_text){from, n}, (struct weir_text){from, n});
    free(from);
}

static void what_cannot_be_brought_to_a_form_is_refused(void **state)
{
    char to[PATH_BYTES_MAX];
    struct weir_error error;
    size_t len;
    assert_int_equal(normalize_value(ATTRIBUTE_IP, TEXT("localhost"), to, &len, &error),
                     WEIR_EINVAL);
    assert_int_equal(error.code, WEIR_EINVAL);
    assert_int_equal(normalize_value(ATTRIBUTE_PATH, TEXT("/a/..;/b"), to, &len, &error),
                     WEIR_EINVAL);
    assert_int_equal(normalize_value(ATTRIBUTE_PATH, TEXT("/\0"), to, &len, NULL), WEIR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kind_of_an_attribute_is_in_its_name),
        cmocka_unit_test(a_host_is_in_lower_case_without_port_and_root_dot),
        cmocka_unit_test(what_servers_read_in_different_ways_is_no_host),
        cmocka_unit_test(a_normal_host_is_normal_again),
        cmocka_unit_test(a_method_is_in_upper_case),
        cmocka_unit_test(a_value_of_each_kind_has_one_form),
        cmocka_unit_test(a_long_plain_value_stays_whole),
        cmocka_unit_test(what_cannot_be_brought_to_a_form_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
