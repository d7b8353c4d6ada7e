#include "support/oracle/policy_slow.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <time.h>

static bool matches(const char *pattern, const char *path)
{
    assert_int_equal(path_pattern_check(text_of(pattern), NULL), 0);
    return path_pattern_match(text_of(pattern), text_of(path));
}

static bool name_matches(const char *pattern, const char *name)
{
    return segment_match(text_of(pattern), text_of(name));
}

static void a_pattern_without_wildcard_matches_itself(void **state)
{
    assert_true(matches("/login", "/login"));
    assert_true(matches("/", "/"));
    assert_true(matches("/a/b", "/a/b"));
    assert_false(matches("/login", "/Login"));
    assert_false(matches("/login", "/login/x"));
    assert_false(matches("/login/x", "/login"));
    assert_false(matches("/login", "/logi"));
    assert_false(matches("/login", "/loginx"));
    assert_false(matches("/a", "/"));
    assert_false(matches("/", "/a"));
}

static void a_star_stays_within_its_segment(void **state)
{
    assert_true(matches("/*", "/a"));
    assert_true(matches("/users/*/name", "/users/42/name"));
    assert_true(matches("/a*", "/a"));
    assert_true(matches("/a*c", "/abc"));
    assert_true(matches("/*.js", "/app.min.js"));
    assert_true(matches("/a*b*c", "/aXbYbZc"));
    assert_false(matches("/*", "/"));
    assert_false(matches("/*", "/a/b"));
    assert_false(matches("/a*c", "/a/c"));
    assert_false(matches("/users/*/name", "/users/name"));
    assert_false(matches("/users/*/name", "/users/4/2/name"));
    assert_false(matches("/a*b", "/aba"));
}

static void two_stars_cross_segments(void **state)
{
    assert_true(matches("/**", "/"));
    assert_true(matches("/**", "/a/b/c"));
    assert_true(matches("/a/**", "/a"));
    assert_true(matches("/a/**", "/a/b"));
    assert_true(matches("/a/**", "/a/b/c"));
    assert_true(matches("/a/**/z", "/a/z"));
    assert_true(matches("/a/**/z", "/a/b/c/z"));
    assert_true(matches("/**/z", "/z"));
    assert_true(matches("/**/a/**/b", "/x/a/a/y/b"));
    assert_true(matches("/**/**", "/"));
    assert_true(matches("/**/a*/b", "/a1/a2/b"));
    assert_true(matches("/**/*", "/a"));
    assert_false(matches("/**/*", "/"));
    assert_false(matches("/a/**", "/ab"));
    assert_false(matches("/a/**", "/"));
    assert_false(matches("/a/**/z", "/a/b"));
    assert_false(matches("/**/z", "/z/a"));
}

static void an_escaped_star_is_a_star(void **state)
{
    assert_true(matches("/a\\*", "/a*"));
    assert_false(matches("/a\\*", "/ab"));
    assert_true(matches("/\\**", "/*b"));
    assert_false(matches("/\\**", "/b"));
    assert_true(matches("/\\*\\*", "/**"));
    assert_false(matches("/\\*\\*", "/a/b"));
    assert_true(matches("/a\\\\*", "/a\\b"));
    assert_true(matches("/a\\b", "/a\\b"));
    assert_true(matches("/a\\", "/a\\"));
}

static void a_star_in_a_name_matches_any_bytes(void **state)
{
    assert_true(name_matches("*", ""));
    assert_true(name_matches("", ""));
    assert_true(name_matches("*@example.com", "ann/x@example.com"));
    assert_true(name_matches("a*b*b", "aabbab"));
    assert_true(name_matches("**", "x"));
    assert_true(segment_match(TEXT("a*z"), TEXT("a\0\n/z")));
    assert_false(name_matches("", "a"));
    assert_false(name_matches("*@example.com", "ann@example.org"));
    assert_false(name_matches("a*", "b"));
    assert_false(name_matches("[a-z]?", "a1"));
    assert_true(name_matches("[a-z]?", "[a-z]?"));
}

static void wildcards_are_known_and_literals_unescaped(void **state)
{
    char out[16];
    assert_true(pattern_has_wildcard(TEXT("/a*")));
    assert_true(pattern_has_wildcard(TEXT("\\\\*")));
    assert_true(pattern_has_wildcard(TEXT("\\**")));
    assert_false(pattern_has_wildcard(TEXT("")));
    assert_false(pattern_has_wildcard(TEXT("a?[b]")));
    assert_false(pattern_has_wildcard(TEXT("\\*\\\\\\*")));
    assert_int_equal(pattern_literal(TEXT("a\\*b\\\\c\\d\\"), out), 8);
    assert_memory_equal(out, "a*b\\c\\d\\", 8);
    assert_int_equal(pattern_literal(TEXT(""), out), 0);
}

/* ---- the check ---- */

static void assert_fault(const char *pattern, const char *expected)
{
    struct weir_error error = {0};
    char text[300];
    (void)snprintf(text, sizeof text, "path pattern '%s' %s", pattern, expected);
    assert_int_equal(path_pattern_check(text_of(pattern), &error), WEIR_EINVAL);
    assert_string_equal(error.text, text);
    assert_int_equal(path_pattern_check(text_of(pattern), NULL), WEIR_EINVAL);
}

static void a_pattern_that_no_path_could_match_is_refused(void **state)
{
    const char *begin = "does not begin with a slash, expected a path such as /login or /search/**";
    const char *empty = "has an empty segment, expected single slashes and none at the end";
    const char *dots = "has a dot segment, which no normalised path has";
    const char *stars = "has '**' beside other characters, expected it alone between slashes";
    assert_fault("", begin);
    assert_fault("login", begin);
    assert_fault("**", begin);
    assert_fault("http://h/a", begin);
    assert_fault("//", empty);
    assert_fault("/a//b", empty);
    assert_fault("/a/", empty);
    assert_fault("/**/", empty);
    assert_fault("/a/./b", dots);
    assert_fault("/..", dots);
    assert_fault("/a**", stars);
    assert_fault("/**a/b", stars);
    assert_fault("/***", stars);
    assert_fault("/a/\\***", stars);
    assert_fault("/a?", "has a '?', expected a path without query ('*' is the only wildcard)");
    assert_fault("/a#b", "has a '#', expected a path without fragment");
    assert_fault("/a;b",
                 "has a ';', expected a path without parameters, which are cut from requests");
}

static void a_pattern_is_written_decoded_and_the_error_shows_how(void **state)
{
    assert_fault("/a%20b", "is percent-encoded, expected its decoded form '/a b'");
    assert_fault("/a%2b", "is percent-encoded, expected its decoded form '/a+'");
    assert_fault("/%2a/%5C*", "is percent-encoded, expected its decoded form "
                              "'/\\*/\\\\*'");
    assert_int_equal(path_pattern_check(TEXT("/100%"), NULL), 0);
    assert_int_equal(path_pattern_check(TEXT("/%2*/%zz"), NULL), 0);
}

static void a_pattern_with_nul_or_too_long_is_refused(void **state)
{
    static char pattern[PATH_BYTES_MAX + 1];
    struct weir_error error;
    assert_int_equal(path_pattern_check(TEXT("/a\0b"), &error), WEIR_EINVAL);
    assert_string_equal(error.text, "path pattern '/a\\x00b' has a NUL byte");
    memset(pattern, 'a', sizeof pattern);
    pattern[0] = '/';
    assert_int_equal(path_pattern_check((struct weir_text){pattern, PATH_BYTES_MAX}, NULL), 0);
    assert_int_equal(path_pattern_check((struct weir_text){pattern, PATH_BYTES_MAX + 1}, &error),
                     WEIR_EINVAL);
    assert_non_null(strstr(error.text, "'... is longer than a path can be"));
}

static void good_patterns_pass(void **state)
{
    static const char *const patterns[] = {"/",           "/a",          "/*",   "/**",
                                           "/a/**/b/*c*", "/.hidden",    "/...", "/a\\*",
                                           "/\\*\\*/x",   "/caf\xc3\xa9"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        assert_int_equal(path_pattern_check(text_of(patterns[i]), NULL), 0);
    }
}

/* ---- against trying everything ---- */

static void random_text(uint64_t *seed, const char *const *tokens, unsigned kinds, char *out)
{
    char *at = out;
    *at = '\0';
    for (unsigned n = unit_random(seed) % 9; n > 0; n--) {
        at = stpcpy(at, tokens[unit_random(seed) % kinds]);
    }
}

static void random_names_match_as_by_trying_everything(void **state)
{
    static const char *const in_pattern[] = {"a", "b", "*", "*", "\\*", "\\\\", "\\", "ab"};
    static const char *const in_name[] = {"a", "b", "*", "\\", "ab"};
    uint64_t seed = 7;
    uint64_t matched = 0;
    for (uint64_t i = 0; i < unit_scale(1000000); i++) {
        char pattern[32];
        char name[32];
        random_text(&seed, in_pattern, 8, pattern);
        random_text(&seed, in_name, 5, name);
        bool slow = slow_segment_match(text_of(pattern), text_of(name));
        if (segment_match(text_of(pattern), text_of(name)) != slow) {
            fail_msg("%s %s %s", pattern, slow ? "should match" : "should not match", name);
        }
        matched += slow;
    }
    assert_true(matched > unit_scale(1000000) / 20);
}

static void random_paths_match_as_by_trying_everything(void **state)
{
    static const char *const in_pattern[] = {"/a",  "/b",  "/*",   "/**", "/**",
                                             "/ab", "/a*", "/*b*", "*",   "/\\*"};
    static const char *const in_path[] = {"/a", "/a", "/b", "/ab", "b", "/*"};
    uint64_t seed = 8;
    uint64_t matched = 0;
    uint64_t tried = 0;
    while (tried < unit_scale(1000000)) {
        char pattern[64];
        char path[64];
        random_text(&seed, in_pattern, 10, pattern);
        random_text(&seed, in_path, 6, path);
        if (path[0] != '/' || path_pattern_check(text_of(pattern), NULL) != 0) {
            continue;
        }
        bool slow = slow_path_match(text_of(pattern), text_of(path));
        if (path_pattern_match(text_of(pattern), text_of(path)) != slow) {
            fail_msg("%s %s %s", pattern, slow ? "should match" : "should not match", path);
        }
        matched += slow;
        tried++;
    }
    assert_true(matched > tried / 20);
}

/* ---- time ---- */

/* Processor time of matching the pattern on "/a/a/a...", the least of some tries. */
static clock_t time_of(const char *pattern, size_t segments)
{
    static char path[2 * 8000];
    clock_t best = 0;
    for (size_t i = 0; i < segments; i++) {
        path[2 * i] = '/';
        path[2 * i + 1] = 'a';
    }
    for (int try = 0; try < 5; try++) {
        clock_t begin = clock();
        for (int i = 0; i < 50; i++) {
            assert_false(
                path_pattern_match(text_of(pattern), (struct weir_text){path, 2 * segments}));
        }
        clock_t taken = clock() - begin;
        best = try == 0 || taken < best ? taken : best;
    }
    return best;
}

/* Four times the path takes about four times as long; by trying everything it would be 64 times. */
static void time_grows_with_the_length_of_the_path_and_no_faster(void **state)
{
    static const char *const patterns[] = {"/**/a/**/a/**/b", "/**/a/a/a/a/a/a/a/b",
                                           "/**/a*/**/*a/**/*a*/b"};
    for (int i = 0; i < 3; i++) {
        clock_t one = time_of(patterns[i], 1000);
        clock_t four = time_of(patterns[i], 4000);
        assert_true(four <= 16 * (one + 1000));
    }
}

/* Trying everything would outlive us: (4000 over 12) ways. */
static void many_stars_end(void **state)
{
    char name[4001];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(name_matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
    assert_true(name_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a", name));
    for (size_t i = 0; i < sizeof name - 1; i += 2) {
        name[i] = '/';
    }
    assert_false(matches("/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", name));
    assert_true(matches("/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/a", name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_without_wildcard_matches_itself),
        cmocka_unit_test(a_star_stays_within_its_segment),
        cmocka_unit_test(two_stars_cross_segments),
        cmocka_unit_test(an_escaped_star_is_a_star),
        cmocka_unit_test(a_star_in_a_name_matches_any_bytes),
        cmocka_unit_test(wildcards_are_known_and_literals_unescaped),
        cmocka_unit_test(a_pattern_that_no_path_could_match_is_refused),
        cmocka_unit_test(a_pattern_is_written_decoded_and_the_error_shows_how),
        cmocka_unit_test(a_pattern_with_nul_or_too_long_is_refused),
        cmocka_unit_test(good_patterns_pass),
        cmocka_unit_test(random_names_match_as_by_trying_everything),
        cmocka_unit_test(random_paths_match_as_by_trying_everything),
        cmocka_unit_test(time_grows_with_the_length_of_the_path_and_no_faster),
        cmocka_unit_test(many_stars_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
