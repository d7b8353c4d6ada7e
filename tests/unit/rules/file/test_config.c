/* Files and folders of rules, from the outside: what is read, in which order, and what is not. */
#include "rules/file/config.h"
#include "support/rules/loading.h"
#include "support/rules/rules_ask.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder;

static int setup(void **state)
{
    folder = unit_folder();
    return 0;
}

static int teardown(void **state)
{
    unit_folder_remove(folder);
    return 0;
}

static char *in_folder(const char *name)
{
    static char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#define GOOD "limits: [{name: a, key: [ip], rate: 5/min}]\n"

static void expect_same(const char *yaml, struct weir_text other)
{
    char *a = loading_show_of(yaml);
    char *b = loading_show(other);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void line_ends_a_byte_order_mark_and_a_missing_last_line_end_change_nothing(void **state)
{
    static const char yaml[] =
        "# rules\nversion: 1\nlimits:\n  - name: a\n    key: [ip]\n    rate: 5/min\n";
    expect_same(yaml, TEXT("# rules\r\nversion: 1\r\nlimits:\r\n  - name: a\r\n    key: [ip]\r\n"
                           "    rate: 5/min\r\n"));
    expect_same(yaml, TEXT("\xef\xbb\xbf# rules\nversion: 1\nlimits:\n  - name: a\n    key: [ip]\n"
                           "    rate: 5/min"));
    expect_same(yaml, TEXT("limits:\r  - name: a\r    key: [ip]\r    rate: 5/min\r"));
    expect_same(yaml, TEXT("{limits: [{name: a,\tkey: [ip],\trate: 5/min}]}\t# tabs"));
    expect_same(
        yaml,
        TEXT("---\nlimits: [{\"name\": \"a\", \"key\": [\"ip\"], \"rate\": \"5/min\"}]\n...\n"));
}

static void anchors_save_writing(void **state)
{
    expect_same("limits:\n- {name: a, when: {path: [/x, /y]}, key: [ip], rate: 5/min}\n"
                "- {name: b, when: {path: [/x, /y]}, key: [ip], rate: 6/min}\n",
                TEXT("limits:\n- {name: a, when: &w {path: [/x, /y]}, key: &k [ip], rate: 5/min}\n"
                     "- {name: b, when: *w, key: *k, rate: 6/min}\n"));
}

static void files_of_a_folder_are_read_in_the_order_of_their_names(void **state)
{
    loading_write(folder, "20.yaml", "limits: [{name: c, key: [ip], rate: 3/min}]\n");
    loading_write(folder, "10.yaml",
                  "limits: [{name: a, key: [ip], rate: 1/min}, {name: b, key: [], "
                  "rate: 2/min}]\nallow: [{path: /one}]\n");
    loading_write(folder, "15.yaml", "server: {memory: 2GB}\nallow: [{path: /two}]\n");
    loading_write(folder, "05.yml", "not even YAML: [");
    loading_write(folder, ".06.yaml", "not even YAML: [");
    loading_write(folder, "07.yaml~", "not even YAML: [");
    loading_write(folder, ".yaml", "not even YAML: [");
    char *shown = loading_show_file(folder);
    char *expected = loading_show_of("server: {memory: 2GB}\nallow: [{path: /one}, {path: /two}]\n"
                                     "limits:\n- {name: a, key: [ip], rate: 1/min}\n"
                                     "- {name: b, key: [], rate: 2/min}\n"
                                     "- {name: c, key: [ip], rate: 3/min}\n");
    assert_string_equal(shown, expected);
    free(shown);
    free(expected);
    assert_string_equal(loading_told_file(folder), "");
}

/* Returns the list of two files of the folder. */
static const char *of_paths(const char *first, const char *second)
{
    static char list[4096];
    (void)snprintf(list, sizeof list, "%s/%s:%s/%s", folder, first, folder, second);
    return list;
}

static void paths_of_a_list_are_read_in_its_order(void **state)
{
    loading_write(folder, "b.yml", "limits: [{name: first, key: [], rate: 1/h}]");
    loading_write(folder, "a.yml",
                  "domain: d\ndescriptors: [{key: second, rate_limit: {unlimited: true}}]");
    char *shown = loading_show_file(of_paths("b.yml", "a.yml"));
    const char *first = strstr(shown, "- name: first");
    assert_non_null(first);
    assert_non_null(strstr(first, "- name: d.second"));
    free(shown);
    assert_string_equal(loading_told_file(of_paths("b.yml:", "a.yml:")), "");
    assert_non_null(strstr(loading_told_file(of_paths("b.yml", "none.yml")), "cannot be opened"));
    assert_non_null(strstr(loading_told_file(of_paths("none.yml", "a.yml")), "cannot be opened"));
    assert_non_null(strstr(loading_told_file(":"), "cannot be opened"));
}

static void a_path_with_a_colon_that_exists_is_one_path(void **state)
{
    loading_write(folder, "a:b.yml", "limits: [{name: one, key: [], rate: 1/h}]");
    loading_write(folder, "a", "limits: [{name: other, key: [], rate: 1/h}]");
    char *shown = loading_show_file(in_folder("a:b.yml"));
    assert_non_null(strstr(shown, "- name: one"));
    assert_null(strstr(shown, "other"));
    free(shown);
}

static void a_list_of_unless_has_entries(void **state)
{
    static const char *const wrong[] = {"[]",   "[a]", "[[{user: a}]]", "{}",
                                        "[{}]", "x",   "[{user: []}]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml, "limits: [{name: l, unless: %s, key: [], rate: 1/h}]",
                       wrong[i]);
        const char *said = loading_told_of(yaml);
        if (strncmp(said, "1:", 2) != 0 || strstr(said, "warning") != NULL) {
            fail_msg("unless: %s: found '%s', expected an error", wrong[i], said);
        }
    }
}

static void a_section_or_a_name_may_stand_in_one_file_only(void **state)
{
    loading_write(folder, "1.yaml",
                  "server: {}\nstore: redis://a\nattributes: {user: 'header:u'}\n" GOOD);
    loading_write(folder, "2.yaml",
                  GOOD "server: {}\nstore: redis://a\nattributes: {user: 'header:u'}\n");
    const char *told = loading_told_file(folder);
    unsigned lines = 0;
    for (const char *c = told; *c != 0; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, 4);
    assert_int_equal(strncmp(told, "1:10: found a second limit 'a'", 30), 0);
}

static void all_files_of_a_folder_are_told_of(void **state)
{
    loading_write(folder, "1.yaml", "foo: 1\n");
    loading_write(folder, "2.yaml", "limits: [\n");
    loading_write(folder, "3.yaml", "bar: 1\n" GOOD);
    const char *told = loading_told_file(folder);
    assert_non_null(strstr(told, "'foo'"));
    assert_non_null(strstr(told, "YAML"));
    assert_non_null(strstr(told, "'bar'"));
}

static void messages_come_in_the_order_of_the_file(void **state)
{
    static const char yaml[] =
        "limits:\n"
        "- {name: a, key: [ip], rate: 5/min, consistency: exact}\n"
        "- name: b\n"
        "  overrides: {by: user}\n"
        "  align: key\n"
        "  key: [ip]\n"
        "- {name: c, tiers: {free: {burst: x}, default: pro}, rate: x, key: [ip]}\n"
        "server: {http: 1}\n"
        "version: 2\n"
        "unknown: 1\n";
    const char *told = loading_told_of(yaml);
    unsigned line = 0;
    unsigned column = 0;
    unsigned count = 0;
    for (const char *at = told; at != NULL && *at != 0; count++) {
        unsigned l;
        unsigned c;
        assert_int_equal(sscanf(at, "%u:%u:", &l, &c), 2);
        if (l < line || (l == line && c < column)) {
            fail_msg("%u:%u behind %u:%u in\n%s", l, c, line, column, told);
        }
        line = l;
        column = c;
        at = strchr(at, '\n') + 1;
    }
    assert_true(count >= 9);
}

static void a_file_that_cannot_be_read_is_told(void **state)
{
    char *fifo = unit_path(folder, "fifo.yaml");
    char *loop = unit_path(folder, "loop.yaml");
    char *sub = unit_path(folder, "sub");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("loop.yaml", loop), 0);
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_non_null(strstr(loading_told_file(fifo), "expected a file"));
    assert_non_null(strstr(loading_told_file(loop), "symbolic links"));
    assert_non_null(strstr(loading_told_file(in_folder("missing.yaml")), "No such file"));
    assert_non_null(strstr(loading_told_file(in_folder("missing/x.yaml")), "No such file"));
    assert_non_null(strstr(loading_told_file("/dev/zero"), "expected a file"));
    assert_non_null(strstr(loading_told_file(sub), "*.yaml"));
    assert_non_null(strstr(loading_told_file(""), "No such file"));
    free(fifo);
    free(loop);
    free(sub);
}

static void a_socket_is_no_rule_file(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *path = unit_path(folder, "s.yaml");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_true(strlen(loading_told_file(path)) > 0);
    (void)close(fd);
    free(path);
}

/* 0 if the rules are refused, with that in the message, to somebody who is not root. */
static int refused_to_a_stranger(const char *path, const char *message)
{
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct weir_error error = {0};
        struct weir_rules *rules;
        bool stranger = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
        int e = weir_rules_open(&rules, path, NULL, &error);
        _exit(!stranger || e != WEIR_ERULES || strstr(error.text, message) == NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void without_permission_a_file_or_folder_is_told(void **state)
{
    loading_write(folder, "a.yaml", GOOD);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(in_folder("a.yaml"), 0), 0);
    assert_int_equal(refused_to_a_stranger(in_folder("a.yaml"), "Permission denied"), 0);
    assert_int_equal(refused_to_a_stranger(folder, "a.yaml: cannot be opened"), 0);
    assert_int_equal(chmod(folder, 0), 0);
    assert_int_equal(refused_to_a_stranger(folder, "found a folder that cannot be read"), 0);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void files_are_looked_for_beside_the_rule_file(void **state)
{
    char *sub = unit_path(folder, "sub");
    assert_int_equal(mkdir(sub, 0700), 0);
    loading_write(folder, "sub/who.txt", "alice\n");
    loading_write(folder, "sub/o.csv", "alice,9/min\n");
    loading_write(folder, "sub/t.csv", "alice,pro\n");
    loading_write(
        folder, "sub/r.yaml",
        "attributes: {tier: 'file:t.csv by user', user: request}\nblock: [{user: 'file:who.txt'}]\n"
        "limits: [{name: a, key: [user], rate: 5/min, overrides: {by: user, file: o.csv}}]\n");
    assert_string_equal(loading_told_file(in_folder("sub/r.yaml")), "");
    assert_string_equal(loading_told_file(sub), "");
    assert_int_equal(chdir(sub), 0);
    assert_string_equal(loading_told_file("r.yaml"), "");
    assert_string_equal(loading_told_file("."), "");
    assert_int_equal(chdir("/"), 0);
    free(sub);
}

/* The section is in the second file, after the limits that use it. */
static void attributes_are_declared_in_any_file_of_a_folder(void **state)
{
    loading_write(folder, "1.yaml", "limits: [{name: a, key: [user, seat], rate: 5/min}]\n");
    loading_write(folder, "2.yaml", "attributes: {user: 'header:u', seat: request}\n");
    assert_string_equal(loading_told_file(folder), "");
    loading_write(folder, "3.yaml", "limits: [{name: b, key: [usr], rate: 5/min}]\n");
    assert_non_null(strstr(loading_told_file(folder), "'usr'"));
}

/* Puts a limit into rules; returns the error, "" if it is accepted. */
static const char *put_into(const char *rules_text, const char *limit)
{
    static struct weir_error error;
    struct weir_rules *rules = rules_open(rules_text);
    error.text[0] = 0;
    int e = weir_rules_put(rules, limit, strlen(limit), &error);
    assert_true(e == 0 || e == WEIR_ERULES);
    weir_rules_close(rules);
    return error.text;
}

static void a_limit_that_is_put_uses_declared_attributes_only(void **state)
{
    static const char declares[] = "attributes: {user: 'header:u', seat: request}\n" GOOD;
    const char *told = put_into(declares, "{name: b, key: [usr], rate: 5/min}");
    assert_non_null(strstr(told, "did you mean 'user'?"));
    told = put_into(declares, "{name: b, key: [colour], rate: 5/min}");
    assert_non_null(strstr(told, "'colour: request'"));
    assert_string_equal(put_into(declares, "{name: b, key: [user, seat, ip], rate: 5/min}"), "");
    told = put_into(GOOD, "{name: b, when: {methd: GET}, key: [ip], rate: 5/min}");
    assert_non_null(strstr(told, "expected 'method'"));
    assert_string_equal(put_into(GOOD, "{name: b, key: [colour], rate: 5/min}"), "");
}

/* Its sender may be someone who cannot read them. */
static void a_limit_that_is_put_names_no_files(void **state)
{
    static const char *const limits[] = {
        "{name: b, key: [user], rate: 5/min, overrides: {by: user, file: o.csv}}",
        "{name: b, key: [user], rate: 5/min, when: {user: 'file:o.csv'}}",
        "{name: b, key: [user], rate: 5/min, unless: {ip: [10.0.0.1, 'file:/etc/passwd']}}",
    };
    struct weir_rules *rules;
    struct weir_error error = {0};
    loading_write(folder, "o.csv", "alice,9/min\n");
    loading_write(folder, "r.yaml", GOOD);
    assert_int_equal(weir_rules_open(&rules, in_folder("r.yaml"), NULL, &error), 0);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        assert_int_equal(weir_rules_put(rules, limits[i], strlen(limits[i]), &error), WEIR_ERULES);
        assert_non_null(strstr(error.text, "found a file, expected values"));
    }
    weir_rules_close(rules);
}

/* server.memory bounds the files of all texts, wherever it is written. */
static void files_count_against_the_memory_that_another_file_of_the_folder_states(void **state)
{
    char *list = calloc(5000, 20);
    size_t n = 0;
    for (unsigned i = 0; i < 5000; i++) {
        n += (size_t)sprintf(list + n, "10.0.%u.%u\n", i / 250, i % 250);
    }
    loading_write(folder, "long.txt", list);
    loading_write(folder, "a.yaml", "block: [{ip: 'file:long.txt'}]\nadhoc: off\n");
    loading_write(folder, "b.yaml", "limits: [{name: z, key: [], rate: 1/s}]\n");
    assert_string_equal(loading_told_file(folder), "");
    loading_write(folder, "c.yaml", "server: {memory: 30kB}\n"); /* less than the text has */
    assert_null(strstr(loading_told_file(folder), "files that need 0"));
    loading_write(folder, "c.yaml", "server: {memory: 200kB}\n");
    const char *told = loading_told_file(folder);
    assert_non_null(strstr(told, "1:14: "));
    assert_non_null(strstr(told, "long.txt: found more than fits into the 200KB of server.memory"));
    free(list);
}

/* As a deployment does: the name leads to another file, which is seen whole or not at all. */
static void a_link_that_is_swapped_is_read_anew(void **state)
{
    struct weir_rules *rules;
    struct weir_error error;
    struct weir_rules_stats stats = {.size = sizeof stats};
    loading_write(folder, "v1.yaml", GOOD);
    loading_write(folder, "v2.yaml",
                  "limits: [{name: z, key: [], rate: 1/s}, {name: y, key: [], rate: 1/s}]\n");
    loading_write(folder, "v3.yaml", "limits: [\n");
    char *link = unit_path(folder, "weir.yaml");
    char *next = unit_path(folder, "next");
    assert_int_equal(symlink("v1.yaml", link), 0);
    assert_int_equal(weir_rules_open(&rules, link, NULL, &error), 0);
    static const char *const versions[] = {"v2.yaml", "v3.yaml", "v1.yaml", "gone.yaml"};
    static const int results[] = {0, WEIR_ERULES, 0, WEIR_ERULES};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(symlink(versions[i], next), 0);
        assert_int_equal(rename(next, link), 0);
        assert_int_equal(weir_rules_reload(rules, NULL, &error), results[i]);
    }
    assert_int_equal(weir_rules_stats_read(rules, &stats), 0);
    assert_int_equal(stats.generation, 3);
    weir_rules_close(rules);
    free(link);
    free(next);
}

static void the_first_error_is_handed_back_with_its_place(void **state)
{
    struct weir_rules *rules = (struct weir_rules *)1;
    struct weir_error error = {0};
    static const char yaml[] = "limits: []\nfoo: 1\nserver: 5\n";
    assert_int_equal(weir_rules_open_text(&rules, "my.yaml", yaml, strlen(yaml), NULL, &error),
                     WEIR_ERULES);
    assert_null(rules);
    assert_int_equal(error.code, WEIR_ERULES);
    assert_int_equal(strncmp(error.text, "my.yaml:2:1: unknown key 'foo'", 30), 0);
    assert_int_equal(weir_rules_open_text(&rules, "my.yaml", yaml, strlen(yaml), NULL, NULL),
                     WEIR_ERULES);
}

static void a_text_of_nothing_is_no_rules(void **state)
{
    assert_string_equal(loading_told((struct weir_text){NULL, 0}),
                        "1:1: found nothing, expected rules\n");
}

static char *many_limits(unsigned n)
{
    char *yaml = malloc(80 * (size_t)n + 16);
    assert_non_null(yaml);
    size_t len = (size_t)sprintf(yaml, "limits:\n");
    for (unsigned i = 0; i < n; i++) {
        len += (size_t)sprintf(yaml + len,
                               "- {name: l%u, when: {path: /%u}, key: [], rate: 5/min}\n", i, i);
    }
    return yaml;
}

static void one_limit_too_many_is_refused_also_when_it_is_put(void **state)
{
    struct problems problems = {0};
    struct config config = {0};
    struct config next;
    char *yaml = many_limits(CONFIG_LIMITS_MAX);
    assert_int_equal(config_read_text(&config, "f", text_of(yaml), &problems), 0);
    assert_int_equal(
        config_put(&config, TEXT("{name: more, key: [], rate: 5/min}"), &next, &problems),
        WEIR_ERULES);
    config_finish(&next);
    problems_finish(&problems);
    problems = (struct problems){0};
    assert_int_equal(
        config_put(&config, TEXT("{name: l7, key: [], rate: 6/min}"), &next, &problems), 0);
    assert_int_equal(next.limits_count, CONFIG_LIMITS_MAX);
    assert_int_equal(next.limits[7]->base.rate.count, 6);
    config_finish(&next);
    problems_finish(&problems);
    config_finish(&config);
    free(yaml);
}

/* Behind the text: n times a number between two texts. */
static size_t repeat(char *yaml, size_t len, unsigned n, const char *before, const char *after)
{
    for (unsigned i = 0; i < n; i++) {
        len += (size_t)sprintf(yaml + len, "%s%u%s", before, i, after);
    }
    return len;
}

static void as_many_of_everything_as_there_may_be_are_accepted(void **state)
{
    char yaml[16384];
    size_t n = (size_t)sprintf(yaml, "attributes:\n");
    n = repeat(yaml, n, CONFIG_ATTRIBUTES_MAX, "  a",
               ": ['query:a', 'query:b', 'query:c', 'query:d', 'query:e', 'query:f', 'query:g', "
               "'query:h']\n");
    n += (size_t)sprintf(yaml + n, "limits:\n- name: %063d\n  rate: 5/min\n  max_keys: 1\n  key: [",
                         7);
    n = repeat(yaml, n, CONFIG_KEY_PARTS_MAX, "a", ", ");
    n += (size_t)sprintf(yaml + n, "]\n  tiers:\n    by: a2\n");
    n = repeat(yaml, n, CONFIG_TIERS_MAX, "    t", ": {}\n");
    n += (size_t)sprintf(yaml + n, "  overrides: {by: a1, file: %s}\n", in_folder("o.csv"));
    char *rows = malloc(CONFIG_RATES_MAX * 32);
    assert_non_null(rows);
    size_t len = 0;
    for (unsigned i = 0; i < CONFIG_RATES_MAX; i++) {
        len += (size_t)sprintf(rows + len, "u%u,%u/min\n", i, i + 1);
    }
    loading_write(folder, "o.csv", rows);
    free(rows);
    assert_string_equal(loading_told_of(yaml), "");
}

/* What a reload compares, and the server uses, must not depend on the rules that it came with. */
static void settings_outlive_the_rules_that_they_came_with(void **state)
{
    static const char yaml[] =
        "server: {http: '127.0.0.1:1', memory: 300MB, hosts: &h [a.example],\n"
        "  admin_secrets: secrets, trusted_proxies: [10.0.0.0/8]}\n"
        "adhoc: off\nstore: {url: 'redis://s', prefix: p}\n"
        "attributes: {user: request}\nenvoy: {charge: each}\n"
        "limits: [{name: a, key: [user], rate: 5/min, when: {host: *h}}]\n";
    struct config config = {.fleet = FLEET_AS_FILE};
    struct config head;
    struct problems problems = {0};
    assert_int_equal(config_read_text(&config, "/etc/w/f", text_of(yaml), &problems), 0);
    assert_int_equal(config_read_head(&config, &head), 0);
    config_compare(&head, &config, "f", &problems);
    assert_int_equal(problems.warnings, 0);
    config_finish(&config);
    problems_finish(&problems);
    assert_true(text_is(head.server.http, "127.0.0.1:1"));
    assert_true(text_is(head.server.hosts.at[0], "a.example"));
    assert_true(text_is(head.server.admin_secrets, "secrets"));
    assert_true(text_is(head.folder, "/etc/w/"));
    assert_true(text_is(head.store.prefix, "p"));
    assert_int_equal(head.server.trusted.count, 1);
    assert_int_equal(head.server.memory, 300000000);
    assert_int_equal(head.envoy.charge, CHARGE_EACH);
    assert_true(head.adhoc.off);
    assert_int_equal(head.limits_count, 0);
    config_finish(&head);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(line_ends_a_byte_order_mark_and_a_missing_last_line_end_change_nothing),
        TEST(anchors_save_writing),
        TEST(files_of_a_folder_are_read_in_the_order_of_their_names),
        TEST(paths_of_a_list_are_read_in_its_order),
        TEST(a_path_with_a_colon_that_exists_is_one_path),
        TEST(a_list_of_unless_has_entries),
        TEST(a_section_or_a_name_may_stand_in_one_file_only),
        TEST(all_files_of_a_folder_are_told_of),
        TEST(messages_come_in_the_order_of_the_file),
        TEST(a_file_that_cannot_be_read_is_told),
        TEST(a_socket_is_no_rule_file),
        TEST(without_permission_a_file_or_folder_is_told),
        TEST(files_are_looked_for_beside_the_rule_file),
        TEST(attributes_are_declared_in_any_file_of_a_folder),
        TEST(a_limit_that_is_put_uses_declared_attributes_only),
        TEST(a_limit_that_is_put_names_no_files),
        TEST(files_count_against_the_memory_that_another_file_of_the_folder_states),
        TEST(a_link_that_is_swapped_is_read_anew),
        TEST(the_first_error_is_handed_back_with_its_place),
        TEST(a_text_of_nothing_is_no_rules),
        TEST(one_limit_too_many_is_refused_also_when_it_is_put),
        TEST(as_many_of_everything_as_there_may_be_are_accepted),
        TEST(settings_outlive_the_rules_that_they_came_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
