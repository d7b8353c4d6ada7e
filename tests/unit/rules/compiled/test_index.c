/*
 * The index finds what a loop over all patterns would find; first by examples,
 * then by many random rule lists over so few letters that most things match.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rules/compiled/index.h"
#include "common/arena.h"
#include "rules/value/pattern.h"
#include "support/engine/unit_limiter.h"

#define USER 1u
#define METHOD UINT32_MAX

/* As in rules, paths may be written as patterns: those without wildcards become values. */
static struct index *index_of(const struct index_entry *written, size_t n)
{
    struct index *index;
    struct arena arena = ARENA_INIT;
    struct index_entry *entries = arena_array(&arena, n, sizeof *entries);
    assert_non_null(entries);
    for (size_t i = 0; i < n; i++) {
        entries[i] = written[i];
        entries[i].wild =
            written[i].attribute == INDEX_PATH && pattern_has_wildcard(written[i].text);
        if (written[i].attribute == INDEX_PATH && !entries[i].wild) {
            char *literal = arena_take(&arena, written[i].text.len + 1);
            assert_non_null(literal);
            entries[i].text =
                (struct weir_text){literal, pattern_literal(written[i].text, literal)};
        }
    }
    assert_int_equal(index_create(entries, n, &index), 0);
    assert_non_null(index);
    arena_finish(&arena);
    return index;
}

static bool has(const struct index_found *found, unsigned limit)
{
    return (found->words >> limit / 64 & 1) != 0 &&
           (found->bits[limit / 64] >> limit % 64 & 1) != 0;
}

/* All that were found, of the first 64. */
static uint64_t first_of(const struct index_found *found)
{
    assert_true(found->words <= 1);
    return found->words != 0 ? found->bits[0] : 0;
}

static unsigned count(const struct index_found *found)
{
    unsigned n = 0;
    for (unsigned i = 0; i < INDEX_LIMITS_MAX / 64; i++) {
        n += (found->words >> i & 1) != 0 ? (unsigned)__builtin_popcountll(found->bits[i]) : 0;
    }
    return n;
}

/* Nothing found; what is not to be looked at is not 0. */
static struct index_found nothing(void)
{
    struct index_found found;
    memset(&found, 0xff, sizeof found);
    found.words = 0;
    return found;
}

/* Does an index of this pattern alone find this path? */
static bool finds(const char *pattern, const char *path)
{
    struct index_found found = nothing();
    struct index_entry entry = {INDEX_PATH, 5, false, text_of(pattern)};
    struct index *index = index_of(&entry, 1);
    index_find_path(index, text_of(path), &found);
    index_destroy(index);
    assert_int_equal(count(&found), has(&found, 5));
    return has(&found, 5);
}

static void an_index_of_nothing_finds_nothing(void **state)
{
    struct index_found found = nothing();
    struct index *index = index_of(NULL, 0);
    index_find_path(index, TEXT("/"), &found);
    index_find_path(index, TEXT(""), &found);
    index_find_value(index, USER, TEXT("alice"), &found);
    index_find_value(index, USER, TEXT(""), &found);
    assert_int_equal(first_of(&found), 0);
    index_destroy(index);
    index_destroy(NULL);
}

static void a_path_without_wildcard_is_found_by_all_of_it(void **state)
{
    assert_true(finds("/login", "/login"));
    assert_true(finds("/", "/"));
    assert_false(finds("/login", "/"));
    assert_false(finds("/login", "/logi"));
    assert_false(finds("/login", "/login/x"));
    assert_false(finds("/login", "/Login"));
    assert_false(finds("/a/b", "/a"));
}

static void a_star_behind_a_backslash_is_a_star(void **state)
{
    assert_true(finds("/a\\*", "/a*"));
    assert_false(finds("/a\\*", "/ab"));
    assert_false(finds("/a\\*", "/a\\*"));
    assert_true(finds("/\\*/x*", "/*/xy"));
    assert_false(finds("/\\*/x*", "/a/xy"));
    assert_true(finds("/a/\\*\\**", "/a/**b"));
    assert_false(finds("/a/\\*\\**", "/a/b"));
}

static void one_star_stays_within_its_segment(void **state)
{
    assert_true(finds("/a/*", "/a/b"));
    assert_false(finds("/a/*", "/a"));
    assert_false(finds("/a/*", "/a/b/c"));
    assert_true(finds("/*/c", "/a/c"));
    assert_false(finds("/*/c", "/a/b/c"));
    assert_true(finds("/v*/users", "/v1/users"));
    assert_true(finds("/v*/users", "/v/users"));
    assert_false(finds("/v*/users", "/w1/users"));
    assert_true(finds("/a*b*c", "/a-b-b-c"));
    assert_false(finds("/a*b*c", "/a/b/c"));
}

static void two_stars_at_the_end_match_any_segments_and_none(void **state)
{
    assert_true(finds("/x/**", "/x"));
    assert_true(finds("/x/**", "/x/y"));
    assert_true(finds("/x/**", "/x/y/z"));
    assert_false(finds("/x/**", "/xy"));
    assert_false(finds("/x/**", "/"));
    assert_true(finds("/**", "/"));
    assert_true(finds("/**", "/a/b"));
    assert_true(finds("/*/**", "/a"));
    assert_false(finds("/*/**", "/"));
}

static void two_stars_in_between_match_any_segments_and_none(void **state)
{
    assert_true(finds("/a/**/z", "/a/z"));
    assert_true(finds("/a/**/z", "/a/b/c/z"));
    assert_true(finds("/a/**/z", "/a/z/z"));
    assert_false(finds("/a/**/z", "/a"));
    assert_false(finds("/a/**/z", "/a/b/z/c"));
    assert_true(finds("/**/admin/**", "/admin"));
    assert_true(finds("/**/admin/**", "/x/y/admin/z"));
    assert_false(finds("/**/admin/**", "/x/y/administrator"));
    assert_true(finds("/**/a/b/c", "/a/b/a/b/c"));
    assert_true(finds("/**/a/**/b", "/x/a/a/y/b"));
    assert_false(finds("/**/a/**/b", "/x/b/y/a"));
    assert_true(finds("/**/**/b", "/b"));
    assert_true(finds("/a/**/**", "/a"));
    assert_true(finds("/a/**/**", "/a/b"));
    assert_false(finds("/a/**/**", "/b"));
}

static void an_extension_is_what_follows_the_last_dot(void **state)
{
    assert_true(finds("/img/*.jpg", "/img/a.jpg"));
    assert_true(finds("/img/*.jpg", "/img/a.b.jpg"));
    assert_true(finds("/img/*.jpg", "/img/.jpg"));
    assert_false(finds("/img/*.jpg", "/img/a.jpg.gz"));
    assert_false(finds("/img/*.jpg", "/img/ajpg"));
    assert_false(finds("/img/*.jpg", "/img/a.jpg/b"));
    assert_true(finds("/**/*.tar.gz", "/x/y/a.tar.gz"));
    assert_false(finds("/**/*.tar.gz", "/x/y/a.gz"));
    assert_true(finds("/**/*.js/x", "/a.css/b.js/x"));
    assert_true(finds("/*.", "/a."));
    assert_true(finds("/*.\\*", "/a.*"));
}

static void one_value_of_two_attributes_is_two_values(void **state)
{
    struct index_found found = nothing();
    struct index_entry entries[] = {{USER, 0, false, TEXT("/a*")},
                                    {METHOD, 1, false, TEXT("/a*")},
                                    {INDEX_PATH, 2, false, TEXT("/a*")}};
    struct index *index = index_of(entries, 3);
    index_find_value(index, USER, TEXT("/a*"), &found);
    assert_int_equal(first_of(&found), 1);
    index_find_value(index, USER, TEXT("/ab"), &found);
    assert_int_equal(first_of(&found), 1);
    index_find_value(index, METHOD, TEXT("/a*"), &found);
    assert_int_equal(first_of(&found), 1 | 2);
    index_find_path(index, TEXT("/ab"), &found);
    assert_int_equal(first_of(&found), 1 | 2 | 4);
    index_destroy(index);
}

static void values_may_hold_any_bytes_and_none(void **state)
{
    struct index_found found = nothing();
    struct index_entry entries[] = {
        {USER, 0, false, {"a\0b", 3}}, {USER, 1, false, {"a\0c", 3}}, {USER, 2, false, {"", 0}}};
    struct index *index = index_of(entries, 3);
    index_find_value(index, USER, (struct weir_text){"a\0c", 3}, &found);
    assert_int_equal(first_of(&found), 2);
    index_find_value(index, USER, TEXT("a"), &found);
    assert_int_equal(first_of(&found), 2);
    index_find_value(index, USER, (struct weir_text){NULL, 0}, &found);
    assert_int_equal(first_of(&found), 2 | 4);
    index_destroy(index);
}

static void patterns_and_values_are_copied(void **state)
{
    struct index_found found = nothing();
    char path[] = "/a/*";
    char user[] = "alice";
    struct index_entry entries[] = {{INDEX_PATH, 0, false, text_of(path)},
                                    {USER, 1, false, text_of(user)}};
    struct index *index = index_of(entries, 2);
    memset(path, 'x', sizeof path - 1);
    memset(user, 'x', sizeof user - 1);
    index_find_path(index, TEXT("/a/b"), &found);
    index_find_value(index, USER, TEXT("alice"), &found);
    assert_int_equal(first_of(&found), 1 | 2);
    index_destroy(index);
}

static void a_limit_has_many_entries_and_a_pattern_many_limits(void **state)
{
    static const char *const patterns[] = {"/x",  "/x/**", "/*",        "/**/x",
                                           "/x*", "/*.x",  "/**/x/**/y"};
    struct index_entry entries[7 * 64];
    struct index_found found = nothing();
    for (unsigned i = 0; i < 7 * 64; i++) {
        entries[i] = (struct index_entry){INDEX_PATH, i % 64, false, text_of(patterns[i / 64])};
    }
    struct index *index = index_of(entries, 7 * 64);
    index_find_path(index, TEXT("/"), &found);
    index_find_path(index, TEXT("/a/b"), &found);
    assert_int_equal(first_of(&found), 0);
    index_find_path(index, TEXT("/x/a"), &found);
    assert_true(first_of(&found) == UINT64_MAX);
    index_destroy(index);
}

/* Each with its own of: a literal, a '*', a '**', a mixed segment, an extension, a user. */
static void four_thousand_limits_are_told_apart(void **state)
{
    static const char *const before[] = {"/lit", "/star", "/tail", "/mix/a", "/**/e/*.ext", "user"};
    static const char *const asked[] = {"/lit",   "/star",          "/tail",
                                        "/mix/a", "/q/r/e/t.u.ext", "user"};
    static const char *const behind[] = {"/x", "/*", "/**", "-*", "", ""};
    static char texts[INDEX_LIMITS_MAX][32];
    static struct index_entry entries[INDEX_LIMITS_MAX];
    for (unsigned i = 0; i < INDEX_LIMITS_MAX; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%s%u%s", before[i % 6], i, behind[i % 6]);
        entries[i] =
            (struct index_entry){i % 6 == 5 ? USER : INDEX_PATH, i, false, text_of(texts[i])};
    }
    struct index *index = index_of(entries, INDEX_LIMITS_MAX);
    for (unsigned i = 0; i < INDEX_LIMITS_MAX; i++) {
        struct index_found found = nothing();
        char path[32];
        (void)snprintf(path, sizeof path, "%s%u%s", asked[i % 6], i, behind[i % 6]);
        if (i % 6 == 5) {
            index_find_value(index, USER, text_of(path), &found);
        } else {
            index_find_path(index, text_of(path), &found);
        }
        assert_true(has(&found, i));
        assert_int_equal(count(&found), 1);
    }
    index_destroy(index);
}

/* `n` segments "/a", the last one `last`. */
static struct weir_text deep(char *buffer, unsigned n, const char *last)
{
    for (unsigned i = 0; i + 1 < n; i++) {
        memcpy(buffer + 2 * i, "/a", 2);
    }
    memcpy(buffer + 2 * (n - 1), last, strlen(last));
    return (struct weir_text){buffer, 2 * (n - 1) + strlen(last)};
}

static void patterns_and_paths_may_be_as_deep_as_they_like(void **state)
{
    char pattern[4200];
    char path[4200];
    static const char *const ends[] = {"/b",  "/*",    "/b*",      "/*.b",
                                       "/**", "/**/b", "/**/b/**", "/**/b/**/c"};
    for (unsigned n = 28; n <= 36; n++) {
        for (unsigned k = 0; k < sizeof ends / sizeof ends[0]; k++) {
            struct index_entry e = {INDEX_PATH, 0, false, deep(pattern, n, ends[k])};
            struct index *index = index_of(&e, 1);
            for (unsigned m = n - 2; m <= n + 2; m++) {
                struct index_found found = nothing();
                struct weir_text asked = deep(path, m, "/b");
                index_find_path(index, asked, &found);
                assert_int_equal(first_of(&found), path_pattern_match(e.text, asked));
            }
            index_destroy(index);
        }
    }
}

/* In memory that ends where the path does: a sanitizer sees who reads on. */
static bool finds_exactly(const struct index *index, const char *path)
{
    struct index_found found = nothing();
    size_t len = strlen(path);
    char *exact = malloc(len);
    assert_non_null(exact);
    memcpy(exact, path, len);
    index_find_path(index, (struct weir_text){exact, len}, &found);
    free(exact);
    return has(&found, 0);
}

static void segments_may_have_any_length(void **state)
{
    static const char *const around[][2] = {
        {"/", "/*"}, {"/**/", ""}, {"/*/", "/**"}, {"/", "*/z"}};
    static const char *const asked[][2] = {{"/", "/y"}, {"/a/b/", ""}, {"/q/", ""}, {"/", "/z"}};
    for (unsigned n = 1; n <= 50; n++) {
        for (unsigned k = 0; k < 4; k++) {
            char pattern[80];
            char path[80];
            (void)snprintf(pattern, sizeof pattern, "%s%0*d%s", around[k][0], (int)n, 7,
                           around[k][1]);
            struct index_entry e = {INDEX_PATH, 0, false, text_of(pattern)};
            struct index *index = index_of(&e, 1);
            for (unsigned m = n > 1 ? n - 1 : 1; m <= n + 1; m++) {
                (void)snprintf(path, sizeof path, "%s%0*d%s", asked[k][0], (int)m, 7, asked[k][1]);
                assert_int_equal(finds_exactly(index, path),
                                 path_pattern_match(e.text, text_of(path)));
            }
            index_destroy(index);
        }
    }
}

/* A path that a stranger made to take long. If time were squared or worse, this would not end. */
static void thousands_of_segments_are_walked_once(void **state)
{
    static const char *const patterns[] = {"/**/a/b",     "/**/a/a/a/a/b", "/**/a/**/b",
                                           "/**/*/a/*/b", "/a/**/a*c/b",   "/**/a/**/a/**/a/**/b"};
    char path[4200];
    struct index_entry entries[6];
    for (unsigned i = 0; i < 6; i++) {
        entries[i] = (struct index_entry){INDEX_PATH, i, false, text_of(patterns[i])};
    }
    struct index *index = index_of(entries, 6);
    for (unsigned round = 0; round < unit_scale(100); round++) {
        struct index_found found = nothing();
        index_find_path(index, deep(path, 2000, "/c"), &found);
        assert_int_equal(first_of(&found), 0);
        index_find_path(index, deep(path, 2000, "/b"), &found);
        assert_int_equal(first_of(&found), 1 | 2 | 4 | 8 | 32);
    }
    index_destroy(index);
}

static void more_text_than_32_bits_can_name_is_refused(void **state)
{
    struct index *index = NULL;
    struct index_entry entry = {USER, 0, false, {"", SIZE_MAX / 4}};
    assert_int_equal(index_create(&entry, 1, &index), WEIR_ENOMEM);
    assert_null(index);
}

/* ---- against a loop over all patterns ---- */

#define ROUND_LIMITS 200

static const char *pick(uint64_t *seed, const char *const *list, size_t n)
{
    return list[unit_random(seed) % n];
}

/* A path or a pattern of up to seven segments out of the list. */
static struct weir_text random_path(uint64_t *seed, const char *const *list, size_t n, char *buffer)
{
    unsigned segments = (unsigned)(unit_random(seed) % 8);
    size_t len = 0;
    for (unsigned i = 0; i < segments; i++) {
        const char *segment = pick(seed, list, n);
        buffer[len++] = '/';
        memcpy(buffer + len, segment, strlen(segment));
        len += strlen(segment);
    }
    if (len == 0) {
        buffer[len++] = '/';
    }
    return (struct weir_text){buffer, len};
}

struct round {
    size_t n;
    struct index_entry entries[ROUND_LIMITS];
    char patterns[ROUND_LIMITS][128];
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void make_round(struct round *r, uint64_t *seed)
{
    static const char *const pieces[] = {"a",   "b",   "ab",   "a.b",   "*",    "*",
                                         "a*",  "*b",  "a*b",  "**",    "**",   "*.b",
                                         "*.a", "*a*", "a\\*", "\\*b*", "*.a.b"};
    size_t first = unit_random(seed) % 4; /* some lists have few literals, some few wildcards */
    size_t last = COUNT(pieces) - unit_random(seed) % 8;
    r->n = unit_random(seed) % 3 == 0 ? unit_random(seed) % 3 : unit_random(seed) % ROUND_LIMITS;
    for (size_t i = 0; i < r->n; i++) {
        r->entries[i].attribute = INDEX_PATH;
        r->entries[i].limit = (unsigned)(unit_random(seed) % ROUND_LIMITS);
        r->entries[i].text = random_path(seed, pieces + first, last - first, r->patterns[i]);
    }
}

static void assert_same(const struct round *r, struct weir_text path,
                        const struct index_found *found)
{
    struct index_found expected = {0};
    for (size_t i = 0; i < r->n; i++) {
        if (path_pattern_match(r->entries[i].text, path)) {
            index_found_set(&expected, r->entries[i].limit);
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        unsigned limit = r->entries[i].limit;
        if (has(found, limit) != has(&expected, limit)) {
            fail_msg("'%.*s' and '%.*s': expected %s", TEXT_ARGS(r->entries[i].text),
                     TEXT_ARGS(path), has(&expected, limit) ? "a match" : "none");
        }
    }
    assert_int_equal(count(found), count(&expected));
}

static void any_index_finds_what_a_loop_over_all_patterns_finds(void **state)
{
    static const char *const segments[] = {"a",   "b",  "ab",    "a.b", "a*",
                                           "aab", ".b", "b.a.b", "*b",  "x"};
    uint64_t seed = 20;
    uint64_t matched = 0;
    static struct round r;
    for (uint64_t i = 0; i < unit_scale(1500); i++) {
        make_round(&r, &seed);
        struct index *index = index_of(r.entries, r.n);
        for (unsigned k = 0; k < 200; k++) {
            struct index_found found = nothing();
            char buffer[128];
            struct weir_text path = random_path(&seed, segments, COUNT(segments), buffer);
            index_find_path(index, path, &found);
            assert_same(&r, path, &found);
            matched += found.words != 0;
        }
        index_destroy(index);
    }
    assert_true(matched > unit_scale(1500) * 200 / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_of_nothing_finds_nothing),
        cmocka_unit_test(a_path_without_wildcard_is_found_by_all_of_it),
        cmocka_unit_test(a_star_behind_a_backslash_is_a_star),
        cmocka_unit_test(one_star_stays_within_its_segment),
        cmocka_unit_test(two_stars_at_the_end_match_any_segments_and_none),
        cmocka_unit_test(two_stars_in_between_match_any_segments_and_none),
        cmocka_unit_test(an_extension_is_what_follows_the_last_dot),
        cmocka_unit_test(one_value_of_two_attributes_is_two_values),
        cmocka_unit_test(values_may_hold_any_bytes_and_none),
        cmocka_unit_test(patterns_and_values_are_copied),
        cmocka_unit_test(a_limit_has_many_entries_and_a_pattern_many_limits),
        cmocka_unit_test(four_thousand_limits_are_told_apart),
        cmocka_unit_test(patterns_and_paths_may_be_as_deep_as_they_like),
        cmocka_unit_test(segments_may_have_any_length),
        cmocka_unit_test(thousands_of_segments_are_walked_once),
        cmocka_unit_test(more_text_than_32_bits_can_name_is_refused),
        cmocka_unit_test(any_index_finds_what_a_loop_over_all_patterns_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
