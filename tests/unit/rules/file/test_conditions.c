/* `when`, `unless`, `allow` and `block`: values, patterns, networks and files, as they are read. */
#include "rules/file/conditions.h"
#include "support/rules/loading.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct loading told;
static struct source *source;
static char *folder;

static int setup(void **state)
{
    memset(&told, 0, sizeof told);
    source = source_create();
    folder = unit_folder();
    return source == NULL;
}

static int teardown(void **state)
{
    source_release(source);
    unit_folder_remove(folder);
    return 0;
}

static struct problems problems;

static struct conditions conditions(const char *yaml)
{
    problems = (struct problems){.tell = loading_message, .arg = &told};
    const char *with_slash = arena_format(&source->arena, "%s/", folder);
    struct config config = {.files_most = 1000000};
    struct reader r = {
        .config = &config, .source = source, .problems = &problems, .folder = text_of(with_slash)};
    struct conditions out = {0};
    memset(&told, 0, sizeof told);
    type_conditions.read(&r, NULL, document_read(&source->arena, "f", text_of(yaml), &problems),
                         &out);
    problems_finish(&problems);
    return out;
}

/* Of one attribute. */
static struct condition one(const char *yaml)
{
    struct conditions all = conditions(yaml);
    assert_string_equal(told.told, "");
    assert_int_equal(all.count, 1);
    return all.at[0];
}

static void expect_text(const struct value *value, enum value_kind kind, const char *text)
{
    assert_int_equal(value->kind, kind);
    if (!text_is(value->text, text)) {
        fail_msg("found %.*s, expected %s", TEXT_ARGS(value->text), text);
    }
}

static void expect_network(const struct value *value, const char *network)
{
    char printed[CIDR_MAX];
    assert_int_equal(value->kind, VALUE_NETWORK);
    assert_string_equal(cidr_print(&value->network, printed), network);
}

static void a_value_or_a_list_of_values_for_each_attribute(void **state)
{
    struct conditions all = conditions("{user: alice, plan: [free, pro]}");
    assert_int_equal(all.count, 2);
    assert_true(text_is(all.at[0].attribute, "user"));
    assert_int_equal(all.at[0].count, 1);
    expect_text(&all.at[0].values[0], VALUE_EXACT, "alice");
    assert_int_equal(all.at[1].count, 2);
    expect_text(&all.at[1].values[1], VALUE_EXACT, "pro");
    assert_int_equal(all.at[1].written.count, 2);
    assert_true(text_is(all.at[1].written.at[0], "free"));
}

static void stars_make_patterns_and_backslashes_take_them_away(void **state)
{
    struct condition c = one("{user: ['a*', 'b\\*', 'c\\\\', 'd\\e']}");
    expect_text(&c.values[0], VALUE_PATTERN, "a*");
    expect_text(&c.values[1], VALUE_EXACT, "b*");
    expect_text(&c.values[2], VALUE_EXACT, "c\\");
    expect_text(&c.values[3], VALUE_EXACT, "d\\e");
    c = one("{path: [/a, '/a/*', '/b\\*', /**]}");
    expect_text(&c.values[0], VALUE_EXACT, "/a");
    expect_text(&c.values[1], VALUE_PATTERN, "/a/*");
    expect_text(&c.values[2], VALUE_EXACT, "/b*");
    expect_text(&c.values[3], VALUE_PATTERN, "/**");
}

static void values_are_brought_to_the_form_of_a_request(void **state)
{
    struct condition c = one("{method: [get, 'p*t']}");
    expect_text(&c.values[0], VALUE_EXACT, "GET");
    expect_text(&c.values[1], VALUE_PATTERN, "P*T");
    c = one("{host: ['Example.COM:443', '*.Example.com.']}");
    expect_text(&c.values[0], VALUE_EXACT, "example.com");
    expect_text(&c.values[1], VALUE_PATTERN, "*.example.com");
    c = one("{ip: [10.0.0.0/8, '::ffff:192.0.2.1', '2001:db8::/32']}");
    expect_network(&c.values[0], "10.0.0.0/8");
    expect_network(&c.values[1], "192.0.2.1/32");
    expect_network(&c.values[2], "2001:db8::/32");
    c = one("{user: ['Alice ', '10.0.0.0/8']}"); /* every other value counts as it is */
    expect_text(&c.values[0], VALUE_EXACT, "Alice ");
    expect_text(&c.values[1], VALUE_EXACT, "10.0.0.0/8");
}

static void a_file_has_one_value_in_a_line(void **state)
{
    loading_write(folder, "users.txt",
                  "\xef\xbb\xbf# who\n\nalice\r\n  bob  \n\t# no\ncarol dave\n\xff\xfe\nlast");
    struct condition c = one("{user: [zoe, 'file:users.txt', adam]}");
    static const char *const users[] = {"zoe",      "alice", "bob", "carol dave",
                                        "\xff\xfe", "last",  "adam"};
    assert_int_equal(c.count, 7);
    for (size_t i = 0; i < 7; i++) {
        expect_text(&c.values[i], VALUE_EXACT, users[i]);
    }
    assert_int_equal(c.written.count, 3);
    assert_true(text_is(c.written.at[1], "file:users.txt"));
}

static void values_of_a_file_are_normalised_and_checked_too(void **state)
{
    loading_write(folder, "a.cidr", "10.0.0.0/8\n::ffff:10.1.2.3 \n");
    struct condition c = one("{ip: 'file:a.cidr'}");
    expect_network(&c.values[0], "10.0.0.0/8");
    expect_network(&c.values[1], "10.1.2.3/32");
    loading_write(folder, "bad.txt", "/ok\n  /b//c\nrelative\n");
    (void)conditions("{path: 'file:bad.txt'}");
    assert_int_equal(told.errors, 2);
    assert_int_equal(strncmp(told.told, "2:3: ", 5), 0);
    assert_non_null(strstr(told.told, "\n3:1: "));
}

static void an_absolute_path_is_taken_as_it_is(void **state)
{
    char yaml[512];
    loading_write(folder, "x.txt", "alice\n");
    (void)snprintf(yaml, sizeof yaml, "{user: 'file: %s/x.txt '}", folder);
    struct condition c = one(yaml);
    assert_int_equal(c.count, 1);
    expect_text(&c.values[0], VALUE_EXACT, "alice");
}

static void an_empty_file_is_a_list_of_nothing(void **state)
{
    loading_write(folder, "empty.txt", "");
    struct condition c = one("{user: 'file:empty.txt'}");
    assert_int_equal(c.count, 0);
}

static void links_are_followed_and_what_is_no_file_is_refused(void **state)
{
    char *link = unit_path(folder, "link.txt");
    char *fifo = unit_path(folder, "fifo");
    loading_write(folder, "x.txt", "alice\n");
    assert_int_equal(symlink("x.txt", link), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(one("{user: 'file:link.txt'}").count, 1);
    static const char *const bad[] = {"{user: 'file:fifo'}", "{user: 'file:/dev/zero'}",
                                      "{user: 'file:.'}",    "{user: 'file:missing'}",
                                      "{user: 'file:'}",     "{user: 'file:/dev/tty'}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)conditions(bad[i]);
        assert_int_equal(told.errors, 1);
        assert_int_equal(strncmp(told.told, "1:8: ", 5), 0);
    }
    free(link);
    free(fifo);
}

static void all_problems_of_a_list_are_told_at_their_places(void **state)
{
    (void)conditions("{ip: [x, 10.0.0.0/8, [], 10.0.0.1/8], path: [a, /b//c], 'a b': c}");
    assert_int_equal(told.errors, 6);
    static const char *const places[] = {
        "1:7: ", "\n1:22: ", "\n1:26: ", "\n1:46: ", "\n1:49: ", "\n1:57: "};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strstr(told.told, places[i]) == NULL) {
            fail_msg("nothing at %s in %s", places[i], told.told);
        }
    }
}

static void entries_of_lists_follow_each_other(void **state)
{
    problems = (struct problems){.tell = loading_message, .arg = &told};
    struct config config = {.files_most = 0};
    struct reader r = {
        .config = &config, .source = source, .problems = &problems, .folder = TEXT("")};
    struct list_config list = {0};
    type_list.read(
        &r, NULL,
        document_read(&source->arena, "f", TEXT("[{path: /a}, {ip: 10.0.0.1}]"), &problems), &list);
    type_list.read(&r, NULL,
                   document_read(&source->arena, "g", TEXT("[{user: x, path: /b}]"), &problems),
                   &list);
    problems_finish(&problems);
    assert_int_equal(told.errors, 0);
    assert_int_equal(list.count, 3);
    assert_true(text_is(list.entries[0].at[0].attribute, "path"));
    assert_true(text_is(list.entries[1].at[0].attribute, "ip"));
    assert_int_equal(list.entries[2].count, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_or_a_list_of_values_for_each_attribute),
        TEST(stars_make_patterns_and_backslashes_take_them_away),
        TEST(values_are_brought_to_the_form_of_a_request),
        TEST(a_file_has_one_value_in_a_line),
        TEST(values_of_a_file_are_normalised_and_checked_too),
        TEST(an_absolute_path_is_taken_as_it_is),
        TEST(an_empty_file_is_a_list_of_nothing),
        TEST(links_are_followed_and_what_is_no_file_is_refused),
        TEST(all_problems_of_a_list_are_told_at_their_places),
        TEST(entries_of_lists_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
