#include "support/oracle/path_encode.h"
#include "support/oracle/policy_slow.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>

static char out[PATH_BYTES_MAX];

static struct weir_text normal(struct weir_text in)
{
    struct weir_error error;
    size_t out_len = 0;
    if (path_normalise(in, out, &out_len, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return (struct weir_text){out, out_len};
}

static void assert_text(struct weir_text found, struct weir_text expected)
{
    if (!text_equal(found, expected)) {
        fail_msg("%.*s, expected %.*s", TEXT_ARGS(found), TEXT_ARGS(expected));
    }
}

static void assert_path(const char *in, const char *expected)
{
    assert_text(normal(text_of(in)), text_of(expected));
}

static void assert_refused(struct weir_text in, const char *why)
{
    struct weir_error error = {0};
    size_t out_len;
    assert_int_equal(path_normalise(in, out, &out_len, &error), WEIR_EINVAL);
    assert_int_equal(error.code, WEIR_EINVAL);
    if (strstr(error.text, why) == NULL) {
        fail_msg("%s, expected %s", error.text, why);
    }
    assert_int_equal(path_normalise(in, out, &out_len, NULL), WEIR_EINVAL);
}

static void a_clean_path_is_itself(void **state)
{
    static const char *const paths[] = {"/",           "/a",     "/v1/users/42", "/.well-known/x",
                                        "/..a/b..",    "/.../x", "/a b\t",       "/caf\xc3\xa9",
                                        "/A/a",        "/a\\b",  "/a:b@c",       "/....",
                                        "/\x80\xff/x", "/*",     "/a.b/c..d/.e"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_path(paths[i], paths[i]);
    }
}

static void query_and_fragment_are_cut(void **state)
{
    assert_path("/a?b", "/a");
    assert_path("/a#b", "/a");
    assert_path("/a?b#c", "/a");
    assert_path("/a#b?c", "/a");
    assert_path("/?", "/");
    assert_path("?x", "/");
    assert_path("#x", "/");
    assert_path("/a/?x", "/a");
    assert_path("/a?x=/../b;%00", "/a");
    assert_path("/a%3Fb%23c", "/a?b#c");
}

static void the_absolute_form_is_its_path(void **state)
{
    assert_path("http://example.com/a/b", "/a/b");
    assert_path("HTTPS://Example.com:443/a?x", "/a");
    assert_path("http://user:pw@[::1]:80/a", "/a");
    assert_path("coap+tcp://h/a", "/a");
    assert_path("http://example.com", "/");
    assert_path("http://example.com?x", "/");
    assert_path("http://example.com#x", "/");
    assert_path("http:///a", "/a");
    assert_path("http://h//a/../b", "/b");
    assert_path("/http://h/a", "/http:/h/a");
    assert_path("http:/a", "/http:/a");
    assert_path("1http://h/a", "/1http:/h/a");
    assert_path("://h/a", "/:/h/a");
}

static void percent_encoding_is_decoded_once(void **state)
{
    assert_path("/%6C%6fgin", "/login");
    assert_path("/a%2Fb", "/a/b");
    assert_path("/a%2fb", "/a/b");
    assert_path("/a%2F%2Fb%2F", "/a/b");
    assert_path("%2Fa", "/a");
    assert_path("/%252F", "/%2F");
    assert_path("/%25%32%46", "/%2F");
    assert_path("/%", "/%");
    assert_path("/100%/x", "/100%/x");
    assert_path("/%2", "/%2");
    assert_path("/%zz%4", "/%zz%4");
    assert_path("/%%41", "/%A");
    assert_path("/%C3%9F", "/\xc3\x9f");
}

static void parameters_of_a_segment_are_cut(void **state)
{
    assert_path("/login;jsessionid=1", "/login");
    assert_path("/a;x/b;y;z/c;", "/a/b/c");
    assert_path("/a;x=%2Fy/b", "/a/b");
    assert_path("/a;x=%2Fy;z%2Fw/b", "/a/b");
    assert_path("/;x/a", "/a");
    assert_path(";x/a", "/a");
    assert_path("/a;../b", "/a/b");
    assert_path("/a;x?y;z", "/a");
    assert_path("/a%3Bx", "/a;x");
}

static void slashes_and_dots_are_resolved(void **state)
{
    assert_path("//a///b", "/a/b");
    assert_path("/./a/././b/.", "/a/b");
    assert_path("/x/../a", "/a");
    assert_path("/a/b/c/../../d", "/a/d");
    assert_path("/a//../b", "/b");
    assert_path("/a/..", "/");
    assert_path("/a/b/..", "/a");
    assert_path("/..", "/");
    assert_path("/../../a", "/a");
    assert_path("..", "/");
    assert_path("./a", "/a");
    assert_path("/x/%2e%2E/a/%2e", "/a");
    assert_path("/x/.%2e/a", "/a");
    assert_path("/a/.../b", "/a/.../b");
}

static void a_first_slash_is_added_and_a_last_one_cut(void **state)
{
    assert_path("", "/");
    assert_path("a", "/a");
    assert_path("a/b/", "/a/b");
    assert_path("/a/", "/a");
    assert_path("/a///", "/a");
    assert_path("////", "/");
    assert_path("*", "/*");
    assert_text(normal((struct weir_text){NULL, 0}), TEXT("/"));
}

static void what_servers_read_differently_is_refused(void **state)
{
    static const char *const with_parameters[] = {"/a/..;/b",   "/a/..;x=1/b", "/..;",
                                                  "/a/.;/b",    "/%2e%2e;/b",  "/a/..%3B/b",
                                                  "/a/..%3bx/", "/a/.%3B",     "/;x/..;/b"};
    static const char *const with_slash[] = {
        "/a%2F..%2Fb", "/a%2f../b",       "/a/..%2Fb",     "/..%2F",   "/a%2F..",
        "/a%2F./b",    "/a%2Fb/../login", "/../a%2Fb",     "/./a%2Fb", "/a%2Fb/..",
        "/a;x%2F../",  "/a;x%2Fy/../b",   "/a%2F%2e%2e/b", "/a;%2F..", "%2F../login"};
    for (size_t i = 0; i < sizeof with_parameters / sizeof with_parameters[0]; i++) {
        assert_refused(text_of(with_parameters[i]),
                       "servers read a dot segment with parameters in different ways");
    }
    for (size_t i = 0; i < sizeof with_slash / sizeof with_slash[0]; i++) {
        assert_refused(text_of(with_slash[i]),
                       "servers read dot segments with an encoded slash in different ways");
    }
}

static void a_nul_byte_is_refused_wherever_the_path_has_it(void **state)
{
    assert_refused(TEXT("/login\0"), "a path cannot contain a NUL byte");
    assert_refused(TEXT("/login%00"), "a path cannot contain a NUL byte");
    assert_refused(TEXT("\0"), "a path cannot contain a NUL byte");
    assert_refused(TEXT("/a;%00/b"), "a path cannot contain a NUL byte");
    assert_refused(TEXT("/a/\0/../b"), "a path cannot contain a NUL byte");
    assert_text(normal(TEXT("/login?\0")), TEXT("/login"));
    assert_text(normal(TEXT("/%2500")), TEXT("/%00"));
}

static void an_error_shows_the_path_without_control_characters(void **state)
{
    struct weir_error error;
    size_t n;
    (void)path_normalise(TEXT("/a\r\n\033[2J/..;/?x"), out, &n, &error);
    assert_string_equal(error.text, "found '/a\\x0d\\x0a\\x1b[2J/..;/': servers read a dot "
                                    "segment with parameters in different ways");
}

/* ---- length ---- */

static void assert_length_of(struct weir_text start, char fill, size_t length, size_t expected)
{
    static char in[PATH_BYTES_MAX + 100];
    memset(in, fill, sizeof in);
    memcpy(in, start.at, start.len);
    struct weir_text text = {in, length};
    if (expected == 0) {
        assert_refused(text, "expected at most 4096");
    } else {
        assert_int_equal(normal(text).len, expected);
    }
}

static void assert_length(const char *start, char fill, size_t length, size_t expected)
{
    assert_length_of(text_of(start), fill, length, expected);
}

static void the_longest_path_is_taken_and_no_longer_one(void **state)
{
    assert_length("/", 'a', PATH_BYTES_MAX, PATH_BYTES_MAX);
    assert_length("/", 'a', PATH_BYTES_MAX + 1, 0);
    assert_length("/%61", 'a', PATH_BYTES_MAX, PATH_BYTES_MAX - 2);
    assert_length("/%61", 'a', PATH_BYTES_MAX + 1, 0);
    assert_length("", 'a', PATH_BYTES_MAX - 1, PATH_BYTES_MAX);
    assert_length("", 'a', PATH_BYTES_MAX, 0);
    assert_length("", '/', PATH_BYTES_MAX, 1);
    assert_length("", '/', PATH_BYTES_MAX + 1, 0);
    assert_length("/", ';', PATH_BYTES_MAX, 1);
    assert_length("http://h/", 'a', PATH_BYTES_MAX + 8, PATH_BYTES_MAX);
    assert_length("http://h/", 'a', PATH_BYTES_MAX + 9, 0);
    assert_length("/a?", 'a', PATH_BYTES_MAX + 50, 2);
    assert_length("/a/?", 'a', PATH_BYTES_MAX + 50, 2);
}

/* ---- the canonical spelling ---- */

static void the_canonical_spelling_encodes_what_it_must(void **state)
{
    char encoded[3 * PATH_BYTES_MAX];
    struct weir_text path = TEXT("/Az09-._~!$&'()*+,:=@/%;?# \"<>[]\\^`{|}\x7f\xc3\x9f\n");
    size_t n = path_encode(path, encoded);
    assert_text((struct weir_text){encoded, n},
                TEXT("/Az09-._~!$&'()*+,:=@/%25%3B%3F%23%20%22%3C%3E%5B%5D%5C%5E%60%7B%7C%7D"
                     "%7F%C3%9F%0A"));
    assert_text(normal((struct weir_text){encoded, n}), path);
}

/* ---- one resource is one path: random spellings ---- */

struct spelling {
    char text[PATH_BYTES_MAX];
    size_t len;
    bool dots; /* or else encoded slashes: never both */
};

static bool chance(uint64_t *seed, unsigned once_in)
{
    return unit_random(seed) % once_in == 0;
}

static void add(struct spelling *s, const char *string)
{
    struct weir_text more = text_of(string);
    memcpy(s->text + s->len, more.at, more.len);
    s->len += more.len;
}

static void add_byte(struct spelling *s, uint64_t *seed, char byte)
{
    char encoded[4];
    bool must = strchr("%?#;", byte) != NULL;
    if (must || chance(seed, 4)) {
        (void)snprintf(encoded, sizeof encoded, chance(seed, 2) ? "%%%02x" : "%%%02X",
                       (unsigned char)byte);
        add(s, encoded);
    } else {
        s->text[s->len++] = byte;
    }
}

static void add_slash(struct spelling *s, uint64_t *seed)
{
    static const char *const dotted[] = {"/",     "//",          "/./", "/x/../",
                                         "/%2e/", "/y;z/.%2E//", "/;p/"};
    static const char *const encoded[] = {"/", "//", "%2F", "%2f", "/%2F", "%2f%2F", "/;p%2F/"};
    unsigned which = chance(seed, 2) ? 0 : unit_random(seed) % 7;
    add(s, s->dots ? dotted[which] : encoded[which]);
}

static void add_end(struct spelling *s, uint64_t *seed)
{
    static const char *const dotted[] = {"", "/", "//", "/.", "/x/..", "/x;p/%2e%2e/", ";p=1/"};
    static const char *const encoded[] = {"", "/", "%2F", "%2f/", ";p", ";p=%2Fx", ";/"};
    static const char *const queries[] = {"", "", "?", "?a=/../b", "#x", "?%00;", "#a?b/%2F.."};
    add(s, (s->dots ? dotted : encoded)[unit_random(seed) % 7]);
    add(s, queries[unit_random(seed) % 7]);
}

/* Any path that can come out of path_normalise(). */
static struct weir_text random_path(uint64_t *seed, char *path)
{
    static const char bytes[] = "aabbcXY019.._-~%%;;?#: *+\\\"\x80\xc3\x9f\n2Fe";
    size_t n = 0;
    for (unsigned segments = unit_random(seed) % 5; segments > 0; segments--) {
        size_t first = n;
        path[n++] = '/';
        for (unsigned length = 1 + unit_random(seed) % 6; length > 0; length--) {
            path[n++] = bytes[unit_random(seed) % (sizeof bytes - 1)];
        }
        size_t dots = 1;
        while (dots < 3 && first + dots < n && path[first + dots] == '.') {
            dots++;
        }
        if (dots > 1 && (first + dots == n || path[first + dots] == ';')) {
            n = first; /* a dot segment */
        }
    }
    if (n == 0) {
        path[n++] = '/';
    }
    return (struct weir_text){path, n};
}

static void respell(struct weir_text path, uint64_t *seed, struct spelling *s)
{
    static const char *const hosts[] = {"http://h", "HTTPS://Example.COM:8443", "http://u:p@[::1]"};
    s->len = 0;
    s->dots = chance(seed, 2);
    if (chance(seed, 4)) {
        add(s, hosts[unit_random(seed) % 3]);
        add(s, "/");
    }
    for (size_t i = 0; i < path.len && path.len > 1; i++) {
        if (path.at[i] == '/') {
            if (i > 0 && chance(seed, 4)) {
                add(s, ";v=1,2;w");
                add(s, s->dots ? "/" : "%2F");
                add(s, "/");
            }
            add_slash(s, seed);
        } else {
            add_byte(s, seed, path.at[i]);
        }
    }
    if (path.len == 1) {
        add(s, "/");
    }
    add_end(s, seed);
}

static void every_spelling_of_a_path_is_that_path(void **state)
{
    uint64_t seed = 4;
    for (uint64_t i = 0; i < unit_scale(1000000); i++) {
        char path[100];
        struct spelling s;
        struct weir_text expected = random_path(&seed, path);
        respell(expected, &seed, &s);
        struct weir_text found = normal((struct weir_text){s.text, s.len});
        if (!text_equal(found, expected)) {
            fail_msg("%.*s became %.*s, not %.*s", (int)s.len, s.text, TEXT_ARGS(found),
                     TEXT_ARGS(expected));
        }
    }
}

static void the_canonical_spelling_stays_as_it_is(void **state)
{
    uint64_t seed = 5;
    for (uint64_t i = 0; i < unit_scale(1000000); i++) {
        char path[100];
        char first[300];
        char second[300];
        struct weir_text expected = random_path(&seed, path);
        struct weir_text spelling = {first, path_encode(expected, first)};
        struct weir_text found = normal(spelling);
        assert_text(found, expected);
        assert_text((struct weir_text){second, path_encode(found, second)}, spelling);
    }
}

/* Random bytes of those that matter, against one pass for each sentence of the manual. */
static void any_text_is_what_the_slow_way_makes_of_it(void **state)
{
    static const char *const tokens[] = {"/",   "/",   "//",  ".",   "..",  ";",   "%2F", "%2f",
                                         "%2e", "%3B", "%00", "%25", "a",   "bc",  "%",   "%6",
                                         "%61", "/.",  "/..", "../", "/./", "/b/", ";p=", "\xff"};
    uint64_t seed = 6;
    uint64_t accepted = 0;
    for (uint64_t i = 0; i < unit_scale(100000); i++) {
        struct spelling s = {.text = "/", .len = 1};
        char slow[PATH_BYTES_MAX];
        size_t slow_len;
        size_t out_len = 0;
        for (unsigned n = unit_random(&seed) % 10; n > 0; n--) {
            add(&s, tokens[unit_random(&seed) % 24]);
        }
        struct weir_text in = {s.text, s.len};
        bool fine = path_normalise(in, out, &out_len, NULL) == 0;
        if (fine != slow_normalise(in, slow, &slow_len)) {
            fail_msg("%.*s: %s", TEXT_ARGS(in), fine ? "should be refused" : "should be taken");
        }
        if (fine) {
            assert_text((struct weir_text){out, out_len}, (struct weir_text){slow, slow_len});
        }
        accepted += fine;
    }
    assert_in_range(accepted, unit_scale(100000) / 5, unit_scale(100000) - 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_path_is_itself),
        cmocka_unit_test(query_and_fragment_are_cut),
        cmocka_unit_test(the_absolute_form_is_its_path),
        cmocka_unit_test(percent_encoding_is_decoded_once),
        cmocka_unit_test(parameters_of_a_segment_are_cut),
        cmocka_unit_test(slashes_and_dots_are_resolved),
        cmocka_unit_test(a_first_slash_is_added_and_a_last_one_cut),
        cmocka_unit_test(what_servers_read_differently_is_refused),
        cmocka_unit_test(a_nul_byte_is_refused_wherever_the_path_has_it),
        cmocka_unit_test(an_error_shows_the_path_without_control_characters),
        cmocka_unit_test(the_longest_path_is_taken_and_no_longer_one),
        cmocka_unit_test(the_canonical_spelling_encodes_what_it_must),
        cmocka_unit_test(every_spelling_of_a_path_is_that_path),
        cmocka_unit_test(the_canonical_spelling_stays_as_it_is),
        cmocka_unit_test(any_text_is_what_the_slow_way_makes_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
