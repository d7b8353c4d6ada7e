/* Maps of the file read by their rows: every kind of field, what it takes, what it leaves alone. */
#include "rules/file/fields.h"
#include "support/loading.h"
#include "support/unit_limiter.h"

#include <stdio.h>

struct target {
    struct text text;
    struct text name;
    uint64_t count;
    uint64_t whole;
    uint64_t size;
    uint64_t duration;
    uint32_t percent;
    struct rate rate;
    bool yes;
    int choice;
};

static const char *const colours[] = {"red", "green", "blue", NULL};

#define ROW(kind, expects, choices)                                                                \
    {                                                                                              \
#kind, expects, "", "", field_##kind, offsetof(struct target, kind), choices               \
    }

static const struct field rows[] = {
    ROW(text, "some text", NULL),
    ROW(name, "a name", NULL),
    ROW(count, "at least one", NULL),
    ROW(whole, "a number", NULL),
    ROW(size, "a size", NULL),
    ROW(duration, "a time", NULL),
    ROW(percent, "a share", NULL),
    ROW(rate, "a rate", NULL),
    {"yes", "true or false", "", "", field_bool, offsetof(struct target, yes), NULL},
    ROW(choice, "red, green or blue", colours),
    {"ignored", "anything", "", "", NULL, 0, NULL},
};
static const struct section section = {"here", "", rows, sizeof rows / sizeof rows[0]};

static struct loading told;
static struct source *source;

static int setup(void **state)
{
    memset(&told, 0, sizeof told);
    source = source_create();
    return source == NULL;
}

static int teardown(void **state)
{
    source_release(source);
    return 0;
}

static struct problems problems;

static struct reader reader(void)
{
    problems = (struct problems){.tell = loading_message, .arg = &told};
    return (struct reader){.source = source, .problems = &problems};
}

static bool read_into(struct target *target, const char *yaml)
{
    struct reader r = reader();
    memset(&told, 0, sizeof told);
    struct node *node = document_read(&source->arena, "f", text_of(yaml), &problems);
    assert_non_null(node);
    bool map = fields_read(&r, &section, node, target);
    problems_finish(&problems);
    return map;
}

static void every_kind_of_field_is_read(void **state)
{
    struct target t = {0};
    assert_true(read_into(&t,
                          "text: 'a b'\nname: a-b_c.D9\ncount: 1.5k\nwhole: 0\n"
                          "size: 2KiB\nduration: 1m30s\npercent: 12.5%\nrate: 0.5/s\nyes: true\n"
                          "choice: blue\nignored: {a: b}\n"));
    assert_string_equal(told.told, "");
    assert_true(text_is(t.text, "a b") && text_is(t.name, "a-b_c.D9"));
    assert_int_equal(t.count, 1500);
    assert_int_equal(t.whole, 0);
    assert_int_equal(t.size, 2048);
    assert_int_equal(t.duration, 90 * WEIR_SECOND);
    assert_int_equal(t.percent, 1250);
    assert_int_equal(t.rate.count, 1);
    assert_int_equal(t.rate.period_ns, 2 * WEIR_SECOND);
    assert_true(t.yes);
    assert_int_equal(t.choice, 2);
}

static void a_bad_value_leaves_the_field_as_it_was(void **state)
{
    static const char *const bad[] = {
        "text:",        "text: []",  "name: a b",         "name: ''",      "count: 0",
        "whole: 1.5",   "whole: {}", "size: 1XB",         "duration: 5",   "percent: 101%",
        "rate: 5",      "rate: []",  "yes: yes",          "yes: True",     "yes:",
        "choice: Red",  "choice:",   "choice: ''",        "choice: [red]", "rate: 5/month",
        "duration: []", "percent:",  "name: caf\xc3\xa9",
    };
    struct target before;
    memset(&before, 0x55, sizeof before);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct target t = before;
        assert_true(read_into(&t, bad[i]));
        if (told.errors != 1 || memcmp(&t, &before, sizeof t) != 0) {
            fail_msg("%s: %u errors: %s", bad[i], told.errors, told.told);
        }
        assert_non_null(strstr(told.told, "expected"));
    }
}

static void unknown_keys_are_told_with_a_suggestion_or_the_list(void **state)
{
    struct target t = {0};
    assert_true(read_into(&t, "nmae: x\nchoise: red\nsomething: 1\n"));
    assert_string_equal(told.told, "1:1: unknown key 'nmae' in here; did you mean 'name'?\n"
                                   "2:1: unknown key 'choise' in here; did you mean 'choice'?\n"
                                   "3:1: unknown key 'something' in here, expected one of text, "
                                   "name, count, whole, "
                                   "size, duration, percent, rate, yes, choice, ignored\n");
    assert_int_equal(t.name.len, 0);
}

static void good_fields_beside_bad_ones_are_read(void **state)
{
    struct target t = {0};
    assert_true(read_into(&t, "count: x\nwhole: 7\nfoo: 1\nchoice: green\n"));
    assert_int_equal(told.errors, 2);
    assert_int_equal(t.whole, 7);
    assert_int_equal(t.choice, 1);
}

static void what_is_no_map_is_not_read(void **state)
{
    static const char *const no_maps[] = {"- text: a", "text", "''", "~"};
    for (size_t i = 0; i < sizeof no_maps / sizeof no_maps[0]; i++) {
        struct target t = {0};
        assert_false(read_into(&t, no_maps[i]));
        assert_int_equal(told.errors, 1);
    }
    struct target t = {0};
    assert_true(read_into(&t, "{}"));
    assert_int_equal(told.errors, 0);
}

static void names_are_letters_digits_and_a_few_signs_up_to_63_bytes(void **state)
{
    assert_true(name_is_good(TEXT("a")));
    assert_true(name_is_good(TEXT("-._")));
    assert_true(
        name_is_good(TEXT("0123456789012345678901234567890123456789012345678901234567890ab")));
    assert_false(
        name_is_good(TEXT("0123456789012345678901234567890123456789012345678901234567890abc")));
    assert_false(name_is_good(TEXT("")));
    for (int c = 0; c < 256; c++) {
        char letter = (char)c;
        bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    c == '_' || c == '-' || c == '.';
        assert_int_equal(name_is_good((struct text){&letter, 1}), good);
    }
}

static size_t scalars(const char *yaml, const struct node *const **items)
{
    struct reader r = reader();
    memset(&told, 0, sizeof told);
    struct node *node = document_read(&source->arena, "f", text_of(yaml), &problems);
    size_t n = scalars_of(&r, node, "values", items);
    problems_finish(&problems);
    return n;
}

static void a_scalar_is_a_list_of_one(void **state)
{
    const struct node *const *items;
    assert_int_equal(scalars("a", &items), 1);
    assert_true(text_is(items[0]->scalar, "a"));
    assert_int_equal(scalars("[a, 'b c']", &items), 2);
    assert_true(text_is(items[1]->scalar, "b c"));
    assert_int_equal(told.errors, 0);
    assert_int_equal(scalars("[]", &items), 0);
    assert_int_equal(told.errors, 0);
}

static void every_item_that_is_no_scalar_is_told(void **state)
{
    const struct node *const *items;
    (void)scalars("[a, [b], '', {c: d}, e, ]", &items);
    assert_string_equal(told.told, "1:5: found a list, expected values\n"
                                   "1:10: found an empty text, expected values\n"
                                   "1:14: found a map, expected values\n");
    assert_int_equal(scalars("{a: b}", &items), 0);
    assert_int_equal(told.errors, 1);
    assert_int_equal(scalars("''", &items), 0);
    assert_int_equal(told.errors, 1);
}

/* The manual is made from the rows, so each must say something. */
static void every_row_of_the_file_says_what_it_is(void **state)
{
    static const struct section *const sections[] = {
        &section_top,   &section_server, &section_store, &section_adhoc,
        &section_limit, &section_tiers,  &section_tier,  &section_overrides};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        assert_true(sections[i]->count > 0 && strlen(sections[i]->help) > 0);
        for (size_t j = 0; j < sections[i]->count; j++) {
            const struct field *f = &sections[i]->fields[j];
            assert_true(strlen(f->name) > 0 && strlen(f->expects) > 0 && strlen(f->help) > 0);
            assert_non_null(f->initial);
            assert_true(f->help[strlen(f->help) - 1] != '.');
            for (size_t k = 0; k < j; k++) {
                assert_string_not_equal(f->name, sections[i]->fields[k].name);
            }
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_of_field_is_read),
        TEST(a_bad_value_leaves_the_field_as_it_was),
        TEST(unknown_keys_are_told_with_a_suggestion_or_the_list),
        TEST(good_fields_beside_bad_ones_are_read),
        TEST(what_is_no_map_is_not_read),
        TEST(names_are_letters_digits_and_a_few_signs_up_to_63_bytes),
        TEST(a_scalar_is_a_list_of_one),
        TEST(every_item_that_is_no_scalar_is_told),
        TEST(every_row_of_the_file_says_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
