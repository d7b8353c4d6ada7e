/* What a reload reads again: overrides, folders, links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rules/live/live.h"
#include "support/rules/rules_ask.h"

struct folder_place {
    char folder[64];
};

static struct folder_place make_folder(void)
{
    struct folder_place p;
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(p.folder, sizeof p.folder, "%s/weir-reload-XXXXXX",
                   tmp != NULL && strlen(tmp) < 30 ? tmp : "/tmp");
    assert_non_null(mkdtemp(p.folder));
    return p;
}

static const char *path_in(const struct folder_place *p, const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", p->folder, name);
    return path;
}

static void write_file(const struct folder_place *p, const char *name, const char *content)
{
    FILE *file = fopen(path_in(p, name), "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void remove_folder(const struct folder_place *p)
{
    static const char *const names[] = {"rules.yaml", "o.csv", "one", "two", "a.yaml", "b.yaml"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(path_in(p, names[i]));
    }
    assert_int_equal(rmdir(p->folder), 0);
}

static struct weir_rules *open_path(const char *path)
{
    struct weir_error error = {0};
    struct weir_rules *rules = NULL;
    if (weir_rules_open(&rules, path, NULL, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static void reload_path(struct weir_rules *rules, const char *path)
{
    struct weir_error error = {0};
    if (weir_rules_reload(rules, path, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

/* The present, for rules that live by the system's clock. */
static uint64_t left_now(struct weir_rules *rules, const char *user, int mode)
{
    struct weir_rules_attribute with[] = {{"user", 4, user, strlen(user)}};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 1, .mode = mode};
    struct weir_rules_answer a;
    assert_int_equal(weir_rules_ask(rules, &q, &a, NULL), 0);
    return a.answer.remaining;
}

static const char with_overrides[] =
    "limits: [{name: l, key: [user], rate: 10/week, algorithm: fixed_window, "
    "overrides: {by: user, file: o.csv}}]";

static struct weir_rules *use_overrides(struct folder_place *p)
{
    *p = make_folder();
    write_file(p, "rules.yaml", with_overrides);
    write_file(p, "o.csv", "alice,20/week\nbob,20/week\ncarol,30/week\n");
    struct weir_rules *r = open_path(path_in(p, "rules.yaml"));
    assert_int_equal(left_now(r, "alice", WEIR_CHECK), 19);
    assert_int_equal(left_now(r, "bob", WEIR_CHECK), 19);
    assert_int_equal(left_now(r, "carol", WEIR_CHECK), 29);
    assert_int_equal(left_now(r, "dave", WEIR_CHECK), 9);
    return r;
}

static void overrides_are_read_again_and_a_key_whose_numbers_change_starts_afresh(void **state)
{
    struct folder_place p;
    struct weir_rules *r = use_overrides(&p);
    write_file(&p, "o.csv", "alice,20/week\nbob,40/week\ndave,30/week\n");
    reload_path(r, NULL);
    assert_int_equal(left_now(r, "bob", WEIR_PEEK), 40);
    assert_int_equal(left_now(r, "carol", WEIR_PEEK), 10);
    assert_int_equal(left_now(r, "dave", WEIR_PEEK), 30);
    weir_rules_close(r);
    remove_folder(&p);
}

static void rows_of_overrides_that_come_and_go_leave_the_other_keys_alone(void **state)
{
    struct folder_place p;
    struct weir_rules *r = use_overrides(&p);
    write_file(&p, "o.csv", "alice,20/week\nbob,20/week\neve,20/week\ncarol,30/week\n");
    reload_path(r, NULL);
    assert_int_equal(left_now(r, "bob", WEIR_PEEK), 19);
    assert_int_equal(left_now(r, "carol", WEIR_PEEK), 29);
    assert_int_equal(left_now(r, "eve", WEIR_PEEK), 20);
    write_file(&p, "o.csv", "alice,20/week\n");
    reload_path(r, NULL);
    assert_int_equal(left_now(r, "alice", WEIR_PEEK), 19);
    assert_int_equal(left_now(r, "bob", WEIR_PEEK), 10);
    assert_int_equal(left_now(r, "dave", WEIR_PEEK), 9);
    weir_rules_close(r);
    remove_folder(&p);
}

static void a_swapped_symlink_is_followed(void **state)
{
    struct folder_place p = make_folder();
    write_file(&p, "one", "limits: [{name: l, key: [user], rate: 10/h}]");
    write_file(&p, "two",
               "limits: [{name: l, key: [user], rate: 20/h, burst: 10}, "
               "{name: m, key: [], rate: 5/h}]");
    assert_int_equal(symlink("one", path_in(&p, "rules.yaml")), 0);
    struct weir_rules *r = open_path(path_in(&p, "rules.yaml"));
    assert_int_equal(left_now(r, "alice", WEIR_CHECK), 9);
    assert_int_equal(unlink(path_in(&p, "rules.yaml")), 0);
    assert_int_equal(symlink("two", path_in(&p, "rules.yaml")), 0);
    reload_path(r, NULL);
    assert_int_equal(left_now(r, "alice", WEIR_PEEK), 5);
    assert_int_equal(weir_rules_remove(r, "m", NULL), 0);
    assert_true(left_now(r, "alice", WEIR_PEEK) < 10);
    weir_rules_close(r);
    remove_folder(&p);
}

static void another_path_becomes_the_one_that_is_read_again(void **state)
{
    struct folder_place p = make_folder();
    write_file(&p, "one", "limits: [{name: l, key: [user], rate: 1/h}]");
    write_file(&p, "two", "limits: [{name: l, key: [user], rate: 2/h}]");
    struct weir_rules *r = open_path(path_in(&p, "one"));
    reload_path(r, path_in(&p, "two"));
    assert_int_equal(left_now(r, "new", WEIR_PEEK), 2);
    write_file(&p, "two", "limits: [{name: l, key: [user], rate: 3/h}]");
    reload_path(r, NULL);
    assert_int_equal(left_now(r, "newer", WEIR_PEEK), 3);
    assert_int_equal(weir_rules_reload(r, path_in(&p, "none"), NULL), WEIR_ERULES);
    reload_path(r, NULL); /* from where the rules in force came, not from where none did */
    weir_rules_close(r);
    remove_folder(&p);
}

static void a_folder_is_read_in_the_order_of_names(void **state)
{
    struct folder_place p = make_folder();
    write_file(&p, "b.yaml", "limits: [{name: last, key: [], rate: 1/h, group: g}]");
    write_file(&p, "a.yaml", "limits: [{name: first, key: [user], rate: 2/h, group: g}]");
    struct weir_rules *r = open_path(p.folder);
    assert_int_equal(left_now(r, "alice", WEIR_CHECK), 1);
    assert_int_equal(unlink(path_in(&p, "a.yaml")), 0);
    reload_path(r, NULL);
    assert_int_equal(left_now(r, "alice", WEIR_PEEK), 1);
    assert_int_equal(weir_rules_remove(r, "last", NULL), 0);
    assert_int_equal(weir_rules_remove(r, "first", NULL), WEIR_ENOLIMIT);
    weir_rules_close(r);
    remove_folder(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrides_are_read_again_and_a_key_whose_numbers_change_starts_afresh),
        cmocka_unit_test(rows_of_overrides_that_come_and_go_leave_the_other_keys_alone),
        cmocka_unit_test(a_swapped_symlink_is_followed),
        cmocka_unit_test(another_path_becomes_the_one_that_is_read_again),
        cmocka_unit_test(a_folder_is_read_in_the_order_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
