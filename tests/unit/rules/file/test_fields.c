/* Maps of the file read by their rows: every kind of field, what it takes, what it leaves alone. */
#include "rules/file/fields.h"
#include "support/rules/loading.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

struct target {
    struct weir_text text;
    struct weir_text name;
    uint64_t count;
    uint64_t whole;
    uint64_t size;
    uint64_t duration;
    uint32_t percent;
    struct rate rate;
    bool yes;
    int choice;
    uint32_t few;
};

static bool never(const struct show *s)
{
    (void)s;
    return false;
}

static const char *const colours[] = {"red", "green", "blue", NULL};

#define AT(member) offsetof(struct target, member)

static const struct field_type type_ignored = {.size = 0};

static const struct field rows[] = {
    {"text", "some text", "h", &type_text, AT(text), .unset = "none"},
    {"name", "a name", "h", &type_name, AT(name), .unset = "none"},
    {"count", "at least one", "h", &type_count, AT(count), .unset = "none", .least = 1},
    {"whole", "a number", "h", &type_count, AT(whole), .unset = "none"},
    {"size", "a size", "h", &type_size, AT(size), .unset = "none"},
    {"duration", "a time", "h", &type_duration, AT(duration), .unset = "none"},
    {"percent", "a share", "h", &type_percent, AT(percent), .unset = "none"},
    {"rate", "a rate", "h", &type_rate, AT(rate), .unset = "none"},
    {"yes", "true or false", "h", &type_bool, AT(yes), .initial = "true"},
    {"choice", "red, green or blue", "h", &type_choice, AT(choice), .initial = "green",
     .choices = colours},
    {"few", "1 to 9 or none", "h", &type_small, AT(few), .initial = "7", .zero = "none", .least = 1,
     .most = 9},
    {"ignored", "anything", "h", &type_ignored, 0, .applies = never},
};
static const struct section section = SECTION("here", NULL, rows);

static const struct section demanding =
    SECTION("there", "a thing",
            ((const struct field[]){{"must", "it", "h", &type_text, AT(text), .required = true}}));

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
                          "choice: blue\nfew: 9\nignored: {a: b}\n"));
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
    assert_int_equal(t.few, 9);
}

static void a_bad_value_leaves_the_field_as_it_was(void **state)
{
    static const char *const bad[] = {
        "text:",        "text: []",  "name: a b",         "name: ''",      "count: 0",
        "whole: 1.5",   "whole: {}", "size: 1XB",         "duration: 5",   "percent: 101%",
        "rate: 5",      "rate: []",  "yes: yes",          "yes: True",     "yes:",
        "choice: Red",  "choice:",   "choice: ''",        "choice: [red]", "rate: 5/year",
        "duration: []", "percent:",  "name: caf\xc3\xa9", "few: 0",        "few: 10",
        "few: nine",    "few:",
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

/* What is shown of the target, each field after a space. */
static char *shown(const struct target *target)
{
    char *text = NULL;
    size_t size;
    struct show s = {.out = open_memstream(&text, &size)};
    assert_non_null(s.out);
    fields_show(&s, &section, target, " ");
    (void)fclose(s.out);
    return text;
}

static void defaults_are_set_and_shown_and_unset_fields_are_not(void **state)
{
    struct reader r = reader();
    struct target t = {0};
    fields_init(&r, &section, &t);
    assert_int_equal(problems.errors, 0);
    char *text = shown(&t);
    assert_string_equal(text, "yes: true choice: green few: 7");
    free(text);
    assert_true(read_into(&t, "text: 'a b'\ncount: 1.5k\nduration: 1m30s\npercent: 12.5%\n"
                              "rate: 0.5/s\nyes: false\nfew: none\nignored: x\n"));
    text = shown(&t);
    assert_string_equal(text, "text: 'a b' count: 1.5k duration: 90s percent: 12.5% rate: 1/2s "
                              "yes: false choice: green few: none");
    free(text);
}

static void a_required_key_that_is_missing_is_told(void **state)
{
    struct reader r = reader();
    struct target t = {0};
    struct node *node = document_read(&source->arena, "f", TEXT("{}"), &problems);
    assert_true(fields_read(&r, &demanding, node, &t));
    problems_finish(&problems);
    assert_string_equal(told.told, "1:1: found a thing without 'must', expected it\n");
}

static void fields_that_differ_are_found(void **state)
{
    struct target a = {.text = TEXT("x"), .count = 5};
    struct target b = {.text = {(const char[]){'x'}, 1}, .count = 5};
    assert_true(fields_same(&section, CHANGE_BY_SECTION, &a, &b));
    b.count = 6;
    assert_false(fields_same(&section, CHANGE_BY_SECTION, &a, &b));
    assert_true(fields_same(&section, CHANGE_KEYS, &a, &b));
}

static void unknown_keys_are_told_with_a_suggestion_or_the_list(void **state)
{
    struct target t = {0};
    assert_true(read_into(&t, "nmae: x\nchoise: red\nsomething: 1\n"));
    assert_string_equal(told.told, "1:1: unknown key 'nmae' in here; did you mean 'name'?\n"
                                   "2:1: unknown key 'choise' in here; did you mean 'choice'?\n"
                                   "3:1: unknown key 'something' in here, expected one of text, "
                                   "name, count, whole, "
                                   "size, duration, percent, rate, yes, choice, few, ignored\n");
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
        assert_int_equal(name_is_good((struct weir_text){&letter, 1}), good);
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
        &section_top,   &section_server, &section_store,     &section_adhoc,
        &section_limit, &section_tiers,  &section_tier,      &section_overrides,
        &section_log,   &section_deny,   &section_server_tls};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        assert_true(sections[i]->count > 0);
        for (size_t j = 0; j < sections[i]->count; j++) {
            const struct field *f = &sections[i]->fields[j];
            assert_true(strlen(f->name) > 0 && strlen(f->expects) > 0 && strlen(f->help) > 0);
            assert_int_equal(f->required + (f->initial != NULL) + (f->unset != NULL), 1);
            assert_true(f->help[strlen(f->help) - 1] != '.');
            for (size_t k = 0; k < j; k++) {
                assert_string_not_equal(f->name, sections[i]->fields[k].name);
            }
        }
    }
}

static bool is_plain(const struct field_type *type)
{
    static const struct field_type *const plain[] = {
        &type_text,  &type_name,    &type_count, &type_size, &type_duration,
        &type_small, &type_percent, &type_rate,  &type_bool, &type_choice};
    size_t i = 0;
    while (i < sizeof plain / sizeof plain[0] && plain[i] != type) {
        i++;
    }
    return i < sizeof plain / sizeof plain[0];
}

/* A new key needs no example of its own among the golden messages. */
static void every_plain_row_of_the_file_says_what_it_expects(void **state)
{
    static const struct section *const sections[] = {
        &section_server, &section_store,     &section_adhoc, &section_limit, &section_tiers,
        &section_tier,   &section_overrides, &section_log,   &section_deny,  &section_server_tls};
    unsigned tried = 0;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        for (size_t j = 0; j < sections[i]->count; j++) {
            const struct field *f = &sections[i]->fields[j];
            if (is_plain(f->type)) {
                char expected[256];
                union {
                    struct weir_text text;
                    struct rate rate;
                } value;
                struct reader r = reader();
                memset(&told, 0, sizeof told);
                f->type->read(&r, f, document_read(&source->arena, "f", TEXT("{}"), &problems),
                              &value);
                problems_finish(&problems);
                (void)snprintf(expected, sizeof expected, "1:1: found an empty map, expected %s\n",
                               f->expects);
                assert_string_equal(told.told, expected);
                tried++;
            }
        }
    }
    assert_true(tried > 30);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_of_field_is_read),
        TEST(a_bad_value_leaves_the_field_as_it_was),
        TEST(defaults_are_set_and_shown_and_unset_fields_are_not),
        TEST(a_required_key_that_is_missing_is_told),
        TEST(fields_that_differ_are_found),
        TEST(unknown_keys_are_told_with_a_suggestion_or_the_list),
        TEST(good_fields_beside_bad_ones_are_read),
        TEST(what_is_no_map_is_not_read),
        TEST(names_are_letters_digits_and_a_few_signs_up_to_63_bytes),
        TEST(a_scalar_is_a_list_of_one),
        TEST(every_item_that_is_no_scalar_is_told),
        TEST(every_row_of_the_file_says_what_it_is),
        TEST(every_plain_row_of_the_file_says_what_it_expects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
