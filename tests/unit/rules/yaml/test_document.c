/* A YAML text as a tree, or what is wrong with it and where; nothing in a file takes long. */
#include "rules/yaml/document.h"
#include "support/rules/loading.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
static struct loading told;

static int setup(void **state)
{
    memset(&told, 0, sizeof told);
    return 0;
}

static int teardown(void **state)
{
    arena_finish(&arena);
    return 0;
}

static struct node *read_text(struct weir_text text)
{
    struct problems problems = {.tell = loading_message, .arg = &told};
    struct node *root = document_read(&arena, "f", text, &problems);
    problems_finish(&problems);
    return root;
}

static struct node *read_good(const char *yaml)
{
    struct node *root = read_text(text_of(yaml));
    assert_string_equal(told.told, "");
    assert_non_null(root);
    return root;
}

static void expect_told(struct weir_text yaml, const char *expected)
{
    memset(&told, 0, sizeof told);
    (void)read_text(yaml);
    assert_string_equal(told.told, expected);
}

static void expect_place(const struct node *node, unsigned line, unsigned column)
{
    assert_string_equal(node->place.file, "f");
    assert_int_equal(node->place.line, line);
    assert_int_equal(node->place.column, column);
}

static void expect_scalar(const struct node *node, const char *text, bool quoted)
{
    assert_int_equal(node->kind, NODE_SCALAR);
    assert_true(text_is(node->scalar, text));
    assert_int_equal(node->scalar.at[node->scalar.len], 0);
    assert_int_equal(node->quoted, quoted);
}

static void scalars_lists_and_maps_know_where_they_stand(void **state)
{
    struct node *root = read_good("a: 1\nb:\n  - x\n  - {c: 'y', d: [z]}\n");
    assert_int_equal(root->kind, NODE_MAP);
    assert_int_equal(root->count, 2);
    expect_place(root, 1, 1);
    expect_scalar(root->keys[0], "a", false);
    expect_scalar(root->items[0], "1", false);
    expect_place(root->items[0], 1, 4);
    struct node *b = node_find(root, "b");
    assert_int_equal(b->kind, NODE_LIST);
    assert_int_equal(b->count, 2);
    expect_place(b, 3, 3);
    expect_place(b->items[1], 4, 5);
    expect_scalar(node_find(b->items[1], "c"), "y", true);
    expect_place(node_find(b->items[1], "c"), 4, 9);
    expect_place(node_find(b->items[1], "d")->items[0], 4, 18);
    assert_null(node_find(root, "c"));
    assert_null(node_find(b, "a"));
    assert_null(node_find(root->items[0], "a"));
}

static void texts_in_quotes_and_blocks_are_told_apart_from_plain_ones(void **state)
{
    struct node *root =
        read_good("- plain\n- 'single'\n- \"dou\\x62le\"\n- |\n  block\n- \n- ''\n");
    expect_scalar(root->items[0], "plain", false);
    expect_scalar(root->items[1], "single", true);
    expect_scalar(root->items[2], "double", true);
    expect_scalar(root->items[3], "block\n", true);
    expect_scalar(root->items[4], "", false);
    expect_scalar(root->items[5], "", true);
}

static void crlf_a_byte_order_mark_and_tabs_behind_values_change_nothing(void **state)
{
    struct node *root = read_good("\xef\xbb\xbf"
                                  "a: 1\t# one\r\nb: 'x'\r\n");
    expect_scalar(node_find(root, "a"), "1", false);
    expect_scalar(node_find(root, "b"), "x", true);
    expect_place(root->keys[0], 1, 1);
    expect_place(root->keys[1], 2, 1);
}

static void an_alias_is_what_its_anchor_is(void **state)
{
    struct node *root = read_good("a: &a {x: 1}\nb: *a\nc: [*a, *a]\n");
    expect_scalar(node_find(node_find(root, "b"), "x"), "1", false);
    expect_scalar(node_find(node_find(root, "c")->items[1], "x"), "1", false);
}

static void a_merge_key_adds_what_the_map_does_not_have(void **state)
{
    struct node *root = read_good("a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\n"
                                  "c: {<<: *a, y: 5}\nd: {z: 6, <<: [*a, *b]}\n"
                                  "e: &e {<<: *a, v: 7}\nf: {<<: *e}\ng: {'<<': *a}\n");
    struct node *c = node_find(root, "c");
    struct node *d = node_find(root, "d");
    struct node *f = node_find(root, "f");
    assert_int_equal(c->count, 2);
    expect_scalar(node_find(c, "x"), "1", false);
    expect_scalar(node_find(c, "y"), "5", false);
    assert_int_equal(d->count, 3);
    expect_scalar(node_find(d, "y"), "2", false);
    expect_scalar(node_find(d, "z"), "6", false);
    assert_int_equal(f->count, 3);
    expect_scalar(node_find(f, "x"), "1", false);
    expect_scalar(node_find(f, "v"), "7", false);
    assert_non_null(node_find(node_find(root, "g"), "<<"));
}

static void only_maps_can_be_merged_and_once(void **state)
{
    expect_told(TEXT("a: {<<: 5}\n"),
                "1:9: found '5' to merge, expected a map or a list of maps\n");
    expect_told(TEXT("a: {<<: [{x: 1}, [2]]}\n"),
                "1:18: found a list to merge, expected a map or a list of maps\n");
    expect_told(TEXT("a: &a {x: 1}\nb: {<<: *a, <<: *a}\n"),
                "2:13: found '<<' a second time, expected a list of maps\n");
}

static void nothing_is_no_document(void **state)
{
    expect_told(TEXT(""), "1:1: found nothing, expected rules\n");
    expect_told((struct weir_text){NULL, 0}, "1:1: found nothing, expected rules\n");
    expect_told(TEXT("# a comment\n\n"), "1:1: found nothing, expected rules\n");
    expect_told(TEXT("\xef\xbb\xbf"), "1:1: found nothing, expected rules\n");
}

static void keys_are_unique_texts(void **state)
{
    (void)read_text(TEXT("? [a]\n: 1\n"));
    assert_int_equal(told.errors, 1);
    setup(NULL);
    struct node *root = read_text(TEXT("a: 1\nb: 2\na: 3\n'a': 4\n"));
    assert_int_equal(told.errors, 2);
    assert_int_equal(root->count, 2);
    expect_scalar(node_find(root, "a"), "1", false);
}

static void the_problems_of_one_map_are_told_together(void **state)
{
    (void)read_text(TEXT("a: 1\na: 2\nb: {c: 1, c: 2}\n? {}\n: x\n"));
    assert_int_equal(told.errors, 3);
}

static void one_document_is_all(void **state)
{
    assert_null(read_text(TEXT("a: 1\n---\nb: 1\n")));
    assert_int_equal(told.errors, 1);
    assert_int_equal(strncmp(told.told, "2:1: ", 5), 0);
    setup(NULL);
    assert_null(read_text(TEXT("a: 1\n---\n[b\n")));
    assert_int_equal(told.errors, 1);
    setup(NULL);
    (void)read_good("---\na: 1\n...\n");
}

static void bytes_that_are_no_text_are_told_where_they_are(void **state)
{
    static const struct {
        struct weir_text text;
        const char *place;
    } rows[] = {
        {TEXT("a: \xff\n"), "1:4: "},          {TEXT("a: 1\nb: \xc3(\n"), "2:5: "},
        {TEXT("a: 1\nbb: \x1b[m\n"), "2:5: "}, {TEXT("a: 1\n\0"), "2:1: "},
        {TEXT("a: \xed\xa0\x80\n"), "1:4: "},  {TEXT("a: 1\r\nb: \x01\n"), "2:4: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setup(NULL);
        assert_null(read_text(rows[i].text));
        assert_int_equal(told.errors, 1);
        if (strncmp(told.told, rows[i].place, strlen(rows[i].place)) != 0) {
            fail_msg("%zu: expected %s, found %s", i, rows[i].place, told.told);
        }
    }
}

static void a_text_with_a_nul_byte_is_refused(void **state)
{
    (void)read_text(TEXT("a: \"x\\0y\"\n"));
    assert_int_equal(told.errors, 1);
}

static char *repeated(const char *text, size_t times)
{
    size_t n = strlen(text);
    char *all = malloc(n * times + 1);
    assert_non_null(all);
    for (size_t i = 0; i < times; i++) {
        memcpy(all + i * n, text, n);
    }
    all[n * times] = 0;
    return all;
}

/* One complaint, and before the test's time is over: libyaml alone takes minutes for these. */
static void deep_nesting_is_one_problem_and_takes_no_time(void **state)
{
    static const char *const nests[] = {"[", "{a: ", "- ", "? ", "[[{a: ", "{? [", "[- "};
    for (size_t i = 0; i < sizeof nests / sizeof nests[0]; i++) {
        char *deep = repeated(nests[i], 400000);
        setup(NULL);
        assert_null(read_text(text_of(deep)));
        assert_int_equal(told.errors, 1);
        free(deep);
    }
}

static void thirty_two_levels_are_allowed_and_no_more(void **state)
{
    (void)read_good("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
    assert_null(
        read_text(TEXT("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]")));
    assert_int_equal(told.errors, 1);
}

static void an_alias_within_its_own_anchor_is_told(void **state)
{
    (void)read_text(TEXT("a: &a [*a, x, *a]\n"));
    assert_int_equal(told.errors, 2);
    assert_int_equal(strncmp(told.told, "1:8: ", 5), 0);
    setup(NULL);
    (void)read_text(TEXT("&a {b: *a, c: &c {d: *c, e: *a}}\n"));
    assert_int_equal(told.errors, 3);
}

static void the_last_anchor_of_a_name_counts(void **state)
{
    struct node *root = read_good("a: &x 1\nb: &x 2\nc: *x\n");
    expect_scalar(node_find(root, "c"), "2", false);
}

static void a_bomb_of_aliases_does_not_go_off(void **state)
{
    (void)read_text(TEXT("a: &a [x, x, x, x, x, x, x, x, x, x]\n"
                         "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
                         "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
                         "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
                         "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n"
                         "f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n"
                         "g: &g [*f, *f, *f, *f, *f, *f, *f, *f, *f, *f]\n"
                         "h: &h [*g, *g, *g, *g, *g, *g, *g, *g, *g, *g]\n"));
    assert_int_equal(told.errors, 1);
}

static void many_anchors_are_refused_in_no_time(void **state)
{
    char *yaml = malloc(200000 * 16);
    size_t n = 0;
    assert_non_null(yaml);
    for (int i = 0; i < 200000; i++) {
        n += (size_t)sprintf(yaml + n, "- &a%d x\n", i);
    }
    assert_null(read_text((struct weir_text){yaml, n}));
    assert_int_equal(told.errors, 1);
    free(yaml);
}

static void a_text_of_sixteen_million_bytes_is_read_and_no_more(void **state)
{
    char *yaml = malloc(DOCUMENT_BYTES_MAX + 1);
    assert_non_null(yaml);
    memset(yaml, '#', DOCUMENT_BYTES_MAX + 1);
    memcpy(yaml, "a: 1\n", 5);
    assert_non_null(read_text((struct weir_text){yaml, DOCUMENT_BYTES_MAX}));
    assert_string_equal(told.told, "");
    assert_null(read_text((struct weir_text){yaml, DOCUMENT_BYTES_MAX + 1}));
    assert_string_equal(told.told, "0:0: found 16777217 bytes, expected at most 16777216\n");
    free(yaml);
}

static void what_was_found_fits_its_buffer_and_no_control_character_is_in_it(void **state)
{
    static const struct {
        const char *yaml;
        const char *found;
    } rows[] = {
        {"abc", "'abc'"},    {"''", "an empty text"},
        {"~", "'~'"},        {"\"a\\e[31mb\\tc\\x7f\"", "'a\\x1b[31mb\\x09c\\x7f'"},
        {"[a]", "a list"},   {"[]", "an empty list"},
        {"{a: b}", "a map"}, {"{}", "an empty map"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[NODE_FOUND];
        assert_string_equal(node_found(read_good(rows[i].yaml), buffer), rows[i].found);
    }
    char *text = repeated("0123456789", 1000);
    char buffer[NODE_FOUND];
    const char *found = node_found(read_good(text), buffer);
    assert_int_equal(strncmp(found, "'012345678901234567890", 21), 0);
    assert_non_null(strstr(found, "..."));
    free(text);
}

/* U+009B is to a terminal what ESC [ is; half of a character is no text at all. */
static void what_was_found_is_good_utf8_without_c1_controls(void **state)
{
    char buffer[NODE_FOUND];
    char *umlauts = repeated("\xc3\xa4", 80);
    struct node *node = read_good("\"a\\x9b31m\"");
    assert_null(strstr(node_found(node, buffer), "\xc2\x9b"));
    for (size_t before = 0; before < 2; before++) { /* the cut comes before or within a character */
        umlauts[0] = 'x';
        umlauts[1] = 'x';
        node = read_good(umlauts + before);
        for (const char *c = node_found(node, buffer); *c != 0; c++) {
            assert_true((unsigned char)*c != 0xc3 || (unsigned char)c[1] == 0xa4);
        }
    }
    free(umlauts);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(scalars_lists_and_maps_know_where_they_stand),
        TEST(texts_in_quotes_and_blocks_are_told_apart_from_plain_ones),
        TEST(crlf_a_byte_order_mark_and_tabs_behind_values_change_nothing),
        TEST(an_alias_is_what_its_anchor_is),
        TEST(a_merge_key_adds_what_the_map_does_not_have),
        TEST(only_maps_can_be_merged_and_once),
        TEST(nothing_is_no_document),
        TEST(keys_are_unique_texts),
        TEST(the_problems_of_one_map_are_told_together),
        TEST(one_document_is_all),
        TEST(bytes_that_are_no_text_are_told_where_they_are),
        TEST(a_text_with_a_nul_byte_is_refused),
        TEST(deep_nesting_is_one_problem_and_takes_no_time),
        TEST(thirty_two_levels_are_allowed_and_no_more),
        TEST(an_alias_within_its_own_anchor_is_told),
        TEST(the_last_anchor_of_a_name_counts),
        TEST(a_bomb_of_aliases_does_not_go_off),
        TEST(many_anchors_are_refused_in_no_time),
        TEST(a_text_of_sixteen_million_bytes_is_read_and_no_more),
        TEST(what_was_found_fits_its_buffer_and_no_control_character_is_in_it),
        TEST(what_was_found_is_good_utf8_without_c1_controls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
