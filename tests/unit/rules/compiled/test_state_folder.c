/* Whose folder the state may live in, who has it, and by which clock it goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rules/loading.h"
#include "support/rules/rules_ask.h"
#include "support/rules/state_world.h"
#include "support/engine/unit_limiter.h"

#define T0 RULES_T0

static const char rules[] = "limits: [{name: api, key: [user], rate: 10/min}]";

static void assert_refused(struct state_world *w, int code, const char *text)
{
    assert_int_equal(state_world_try(w, rules), code);
    assert_null(w->rules);
    if (strstr(w->error.text, text) == NULL) {
        fail_msg("found '%s', expected '%s'", w->error.text, text);
    }
}

static void a_folder_that_is_not_there_is_said(void **state)
{
    struct state_world *w = *state;
    char *real = w->folder;
    w->folder = unit_path(real, "nowhere");
    assert_refused(w, WEIR_ENOENT, "nowhere: cannot be used as the folder of the state: No such");
    free(w->folder);
    w->folder = real;
}

static void a_file_is_no_folder(void **state)
{
    struct state_world *w = *state;
    char *real = w->folder;
    loading_write(real, "file", "");
    w->folder = unit_path(real, "file");
    assert_refused(w, WEIR_EACCES, "file: found no folder, expected one for the state");
    free(w->folder);
    w->folder = real;
}

static void a_folder_that_others_may_write_to_is_refused(void **state)
{
    struct state_world *w = *state;
    assert_int_equal(chmod(w->folder, 0775), 0);
    assert_refused(w, WEIR_EACCES, "found mode 0775, expected no more than 0755");
    assert_int_equal(chmod(w->folder, 0755), 0);
    state_world_open(w, rules);
}

static void a_folder_of_somebody_else_is_refused(void **state)
{
    struct state_world *w = *state;
    if (geteuid() != 0) {
        skip(); /* nobody else may give a folder away */
    }
    assert_int_equal(chown(w->folder, 65534, 65534), 0);
    assert_refused(w, WEIR_EACCES, "found owner 65534, expected user 0");
}

static void what_a_killed_process_left_unfinished_is_removed_without_a_word(void **state)
{
    struct state_world *w = *state;
    loading_write(w->folder, ".weir-Ab3dEf", "x");
    loading_write(w->folder, "api~0123456789abcdef.weir.new", "x");
    state_world_open(w, rules);
    assert_string_equal(w->told, "");
    assert_string_equal(state_world_files(w), "api~.weir");
}

static void one_process_has_the_folder_and_the_next_is_told_which(void **state)
{
    struct state_world *w = *state;
    char text[64];
    state_world_open(w, rules);
    struct weir_rules *first = w->rules;
    w->rules = NULL;
    (void)snprintf(text, sizeof text, "found a folder in use by process %ld", (long)getpid());
    assert_refused(w, WEIR_EACCES, text);
    weir_rules_close(first);
    state_world_open(w, rules);
}

static void a_folder_with_a_long_name_is_refused_clearly(void **state)
{
    struct state_world *w = *state;
    char *real = w->folder;
    w->folder = malloc(6000);
    memset(w->folder, 'x', 5999);
    w->folder[5999] = '\0';
    assert_refused(w, WEIR_EINVAL, "folder has 5999 bytes, expected at most");
    free(w->folder);
    w->folder = real;
}

/* ---- fork ---- */

static int use_in_child(struct state_world *w)
{
    struct weir_error error = {0};
    bool shares = rules_allowed(w->rules, T0, "user=alice", 20) == 7;
    bool refused =
        weir_rules_reload_text(w->rules, "test", rules, strlen(rules), &error) == WEIR_ENOTSUP &&
        weir_rules_remove(w->rules, "api", &error) == WEIR_ENOTSUP &&
        strstr(error.text, "belongs to process") != NULL;
    weir_rules_close(w->rules); /* takes nothing away from the parent */
    return shares && refused ? 0 : 1;
}

static void a_child_shares_the_keys_but_does_not_change_the_rules(void **state)
{
    struct state_world *w = *state;
    int status = -1;
    state_world_open(w, rules);
    assert_int_equal(rules_allowed(w->rules, T0, "user=alice", 3), 3);
    pid_t child = fork();
    if (child == 0) {
        _exit(use_in_child(w));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rules_allowed(w->rules, T0, "user=alice", 1), 0);
    state_world_reload(w, rules);
    struct weir_rules *first = w->rules;
    w->rules = NULL;
    assert_refused(w, WEIR_EACCES, "in use by process");
    w->rules = first;
}

/* ---- server.state ---- */

static int open_named(struct weir_rules **out, const char *yaml, const char *name, unsigned flags,
                      struct weir_error *error)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    o.flags = WEIR_EXPLICIT_TIME | flags;
    return weir_rules_open_text(out, name, yaml, strlen(yaml), &o, error);
}

static void the_files_own_folder_counts_only_where_that_is_asked_for(void **state)
{
    struct state_world *w = *state;
    static const char yaml[] = "server: {state: kept}\n"
                               "limits: [{name: api, key: [user], rate: 10/min}]";
    char *name = unit_path(w->folder, "weir.yaml");
    char *kept = unit_path(w->folder, "kept");
    struct weir_rules *r;
    struct weir_error error;
    assert_int_equal(open_named(&r, yaml, name, 0, &error), 0);
    weir_rules_close(r);
    assert_int_equal(open_named(&r, yaml, name, WEIR_RULES_SERVER_STATE, &error), WEIR_ENOENT);
    assert_int_equal(mkdir(kept, 0700), 0); /* beside the rule file */
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(open_named(&r, yaml, name, WEIR_RULES_SERVER_STATE, &error), 0);
        assert_int_equal(rules_peek(r, T0, "user=alice").answer.remaining, 10 - 4 * i);
        assert_int_equal(rules_allowed(r, T0, "user=alice", 4), 4);
        weir_rules_close(r);
    }
    free(name);
    free(kept);
}

/* ---- time ---- */

static void rules_go_on_by_their_own_clock(void **state)
{
    struct state_world *w = *state;
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules_attribute alice[] = {WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question q = {.attributes = alice, .attributes_count = 1};
    static const char slow[] = "limits: [{name: api, key: [user], rate: 10/day}]";
    o.state = w->folder;
    for (unsigned i = 0; i < 10; i++) {
        struct weir_rules_answer a;
        struct weir_rules *r;
        assert_int_equal(weir_rules_open_text(&r, "test", slow, strlen(slow), &o, &w->error), 0);
        assert_int_equal(weir_rules_ask(r, &q, &a, &w->error), 0);
        assert_int_equal(a.answer.verdict, WEIR_ALLOW);
        assert_int_equal(a.answer.remaining, 9 - i);
        weir_rules_close(r);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, state_world_make, state_world_remove)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_that_is_not_there_is_said),
        TEST(a_file_is_no_folder),
        TEST(a_folder_that_others_may_write_to_is_refused),
        TEST(a_folder_of_somebody_else_is_refused),
        TEST(what_a_killed_process_left_unfinished_is_removed_without_a_word),
        TEST(one_process_has_the_folder_and_the_next_is_told_which),
        TEST(a_folder_with_a_long_name_is_refused_clearly),
        TEST(a_child_shares_the_keys_but_does_not_change_the_rules),
        TEST(the_files_own_folder_counts_only_where_that_is_asked_for),
        TEST(rules_go_on_by_their_own_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
