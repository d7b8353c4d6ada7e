/* What rules with a folder for their state keep over a restart, what starts afresh, what goes. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rules/loading.h"
#include "support/rules/rules_ask.h"
#include "support/rules/state_world.h"
#include "support/engine/unit_limiter.h"

#define T0 RULES_T0

#define LIMIT(more) "limits: [{name: api, key: [user], rate: 10/min" more "}]"

static uint64_t left(struct state_world *w, const char *words)
{
    return rules_peek(w->rules, T0, words).answer.remaining;
}

static void take(struct state_world *w, const char *words, unsigned n)
{
    assert_int_equal(rules_allowed(w->rules, T0, words, n), n);
}

static void assert_told(const struct state_world *w, const char *text)
{
    if (strstr(w->told, text) == NULL) {
        fail_msg("told:\n%sexpected: %s", w->told, text);
    }
}

static bool has_file(struct state_world *w, const char *shown)
{
    return strstr(state_world_files(w), shown) != NULL;
}

/* ---- kept ---- */

static void every_key_of_every_algorithm_is_as_it_was_after_a_restart(void **state)
{
    static const char *const algorithms[] = {"token_bucket", "leaky_bucket, queue: 9",
                                             "fixed_window", "sliding_window", "sliding_log"};
    struct state_world *w = *state;
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        char yaml[256];
        char words[32];
        (void)snprintf(yaml, sizeof yaml,
                       "limits: [{name: a%zu, key: [user], rate: 10/min, algorithm: %s}]", i,
                       algorithms[i]);
        state_world_open(w, yaml);
        for (unsigned user = 0; user < 300; user++) {
            (void)snprintf(words, sizeof words, "user=u%u", user);
            take(w, words, user % 10);
        }
        state_world_restart(w, yaml);
        for (unsigned user = 0; user < 300; user++) {
            (void)snprintf(words, sizeof words, "user=u%u", user);
            assert_int_equal(left(w, words), 10 - user % 10);
        }
        state_world_close(w);
    }
}

static void tiers_and_overrides_have_files_of_their_own(void **state)
{
    struct state_world *w = *state;
    char *csv = unit_path(w->folder, "overrides.csv");
    char yaml[1024];
    loading_write(w->folder, "overrides.csv", "user,rate\nolga,7/min\nolaf,8/min\n");
    (void)snprintf(yaml, sizeof yaml,
                   "limits: [{name: api, key: [user], rate: 10/min, tiers: {default: free, free: "
                   "{}, pro: {rate: 20/min}}, overrides: {by: user, file: %s}}]",
                   csv);
    state_world_open(w, yaml);
    assert_string_equal(state_world_files(w),
                        "api=7-60000000000-7~.weir api=8-60000000000-8~.weir api@free~.weir "
                        "api@pro~.weir overrides.csv");
    take(w, "user=alice", 1);
    take(w, "user=paul tier=pro", 2);
    take(w, "user=olga", 3);
    take(w, "user=olaf", 4);
    state_world_restart(w, yaml);
    assert_string_equal(w->told, "");
    assert_int_equal(left(w, "user=alice"), 9);
    assert_int_equal(left(w, "user=paul tier=pro"), 18);
    assert_int_equal(left(w, "user=olga"), 4);
    assert_int_equal(left(w, "user=olaf"), 4);
    free(csv);
}

static void overrides_keep_their_keys_while_rows_come_and_go(void **state)
{
    struct state_world *w = *state;
    char *csv = unit_path(w->folder, "overrides.csv");
    char yaml[1024];
    char rows[4096] = "user,rate\nolga,7/min\n";
    for (unsigned i = 0; i < 100; i++) {
        size_t n = strlen(rows);
        (void)snprintf(rows + n, sizeof rows - n, "u%u,7/min\n", i);
    }
    loading_write(w->folder, "overrides.csv", rows);
    (void)snprintf(yaml, sizeof yaml,
                   "limits: [{name: api, key: [user], rate: 10/min, overrides: {by: user, file: "
                   "%s}}]",
                   csv);
    state_world_open(w, yaml);
    take(w, "user=olga", 3);
    loading_write(w->folder, "overrides.csv", "user,rate\nolga,7/min\n");
    state_world_reload(w, yaml);
    assert_int_equal(left(w, "user=olga"), 4);
    state_world_restart(w, yaml);
    assert_string_equal(w->told, "");
    assert_int_equal(left(w, "user=olga"), 4);
    free(csv);
}

static void a_changed_count_applies_to_the_keys_that_are_there(void **state)
{
    struct state_world *w = *state;
    state_world_open(w, LIMIT(""));
    take(w, "user=alice", 5);
    state_world_restart(w, "limits: [{name: api, key: [user], rate: 20/min}]");
    assert_string_equal(w->told, "");
    assert_int_equal(left(w, "user=alice"), 10); /* half of it, as in a reload */
    state_world_reload(w, LIMIT(", burst: 4"));
    state_world_restart(w, LIMIT(", burst: 4"));
    assert_int_equal(rules_peek(w->rules, T0, "user=bob").answer.quota, 4);
}

static void a_reload_and_a_put_go_on_in_the_same_files(void **state)
{
    struct state_world *w = *state;
    static const char item[] = "{name: late, key: [user], when: {path: /late}, rate: 5/min}";
    static const char both[] = "limits: [{name: api, key: [user], rate: 10/min}, {name: late, key: "
                               "[user], when: {path: /late}, rate: 5/min}]";
    state_world_open(w, LIMIT(""));
    take(w, "user=alice", 3);
    state_world_reload(w, LIMIT(", group: g"));
    assert_int_equal(weir_rules_put(w->rules, item, strlen(item), NULL), 0);
    take(w, "user=alice path=/late", 4);
    state_world_restart(w, both);
    assert_string_equal(w->told, "");
    assert_int_equal(left(w, "user=alice"), 3);
    assert_int_equal(left(w, "user=alice path=/late"), 1);
}

/* ---- afresh ---- */

static void what_would_start_afresh_in_a_reload_does_so_in_a_restart_and_is_told(void **state)
{
    static const struct {
        const char *yaml;
        const char *told;
    } rows[] = {
        {LIMIT(", max_keys: 200k"), "has max_keys 100000, expected 200000: its keys start afresh"},
        {LIMIT(", algorithm: sliding_log"), "has algorithm token_bucket, expected sliding_log"},
        {LIMIT(", on_full: deny"), "has on_full 0, expected 1: its keys start afresh"},
        {"limits: [{name: api, key: [user], rate: 600/h}]", "has period_ns 60000000000, expected"},
        {"limits: [{name: api, key: [user|ip], rate: 10/min}]", "because its key, tiers,"},
        {LIMIT(", ipv6_prefix: 48"),
         "because its key, tiers, overrides or consistency have changed"},
    };
    struct state_world *w = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned by_reload = 0; by_reload < 2; by_reload++) {
            state_world_open(w, LIMIT(""));
            take(w, "user=alice", 7);
            if (by_reload) {
                state_world_reload(w, rows[i].yaml);
            } else {
                state_world_restart(w, rows[i].yaml);
                assert_told(w, rows[i].told);
                assert_int_equal(state_world_unusable(w), 0);
            }
            struct weir_answer a = rules_peek(w->rules, T0, "user=alice").answer;
            assert_int_equal(a.remaining, a.quota);
            assert_string_equal(state_world_files(w), "api~.weir");
            take(w, "user=alice", 1); /* and what is fresh is kept from now on */
            state_world_restart(w, rows[i].yaml);
            assert_string_equal(w->told, "");
            assert_int_equal(left(w, "user=alice"), a.quota - 1);
            state_world_reload(w, "limits: []");
            assert_string_equal(state_world_files(w), "");
            state_world_close(w);
        }
    }
}

/* Earlier versions began weeks on Thursday. This is what an offset of three days does now. */
static void a_state_whose_weeks_began_on_thursday_starts_afresh_and_is_told(void **state)
{
    static const char weeks[] =
        "limits: [{name: api, key: [user], rate: 10/week, algorithm: fixed_window}]";
    struct state_world *w = *state;
    state_world_open(w, weeks);
    char *path = state_world_path(w, "api~.weir");
    state_world_close(w);
    assert_int_equal(unlink(path), 0);
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_FIXED_WINDOW;
    o.memory = WEIR_FILE;
    o.path = path;
    o.count = 10;
    o.period_ns = 7 * WEIR_DAY;
    o.offset_ns = 3 * WEIR_DAY;
    o.max_keys = 100000;
    o.flags = WEIR_EXPLICIT_TIME;
    struct weir *limiter;
    assert_int_equal(weir_open(&limiter, &o, NULL), 0);
    weir_close(limiter);
    state_world_open(w, weeks);
    assert_told(w, "has offset_ns 0, expected 345600000000000: its keys start afresh");
    assert_string_equal(state_world_files(w), "api~.weir");
    free(path);
}

static void a_changed_max_keys_is_told_by_a_reload_too(void **state)
{
    struct state_world *w = *state;
    state_world_open(w, LIMIT(""));
    take(w, "user=alice", 7);
    state_world_reload(w, LIMIT(", max_keys: 50k"));
    assert_told(w, "max_keys, max_blocks, on_full, align or undelayed has changed");
    assert_int_equal(left(w, "user=alice"), 10);
}

static void a_log_that_would_have_to_grow_starts_afresh_and_says_so(void **state)
{
    static const char more[] = "limits: [{name: api, key: [user], rate: 20/min, algorithm: "
                               "sliding_log}]";
    struct state_world *w = *state;
    state_world_open(w, LIMIT(", algorithm: sliding_log"));
    take(w, "user=alice", 7);
    state_world_restart(w, more);
    assert_told(w, "its keys start afresh");
    assert_int_equal(left(w, "user=alice"), 20);
    assert_string_equal(state_world_files(w), "api~.weir");
    take(w, "user=alice", 7);
    state_world_restart(w, LIMIT(", algorithm: sliding_log")); /* it may shrink */
    assert_string_equal(w->told, "");
    assert_int_equal(left(w, "user=alice"), 3);
}

/* ---- gone ---- */

static void a_limit_that_a_reload_or_a_remove_takes_away_takes_its_file_with_it(void **state)
{
    struct state_world *w = *state;
    state_world_open(w,
                     "limits: [{name: a, key: [user], rate: 5/min}, {name: b, key: [user], "
                     "rate: 5/min, tiers: {t: {}, u: {}}}, {name: c, key: [user], rate: 5/min}]");
    assert_string_equal(state_world_files(w), "a~.weir b@t~.weir b@u~.weir b~.weir c~.weir");
    state_world_reload(w, "limits: [{name: b, key: [user], rate: 5/min, tiers: {u: {}}}, {name: c, "
                          "key: [user], rate: 5/min}]");
    assert_string_equal(state_world_files(w), "b@u~.weir b~.weir c~.weir");
    assert_int_equal(weir_rules_remove(w->rules, "b", NULL), 0);
    assert_string_equal(state_world_files(w), "c~.weir");
}

static void files_of_limits_that_nobody_knows_are_told_and_left_alone(void **state)
{
    struct state_world *w = *state;
    state_world_open(w, LIMIT(""));
    take(w, "user=alice", 7);
    state_world_restart(w, "limits: [{name: other, key: [user], rate: 5/min}]");
    assert_told(w, "found files of limits that the rules do not have: 1, such as api~");
    assert_string_equal(state_world_files(w), "api~.weir other~.weir");
    state_world_reload(w, "limits: [{name: other, key: [user], rate: 6/min}]");
    assert_string_equal(w->told, "");
    state_world_restart(w, LIMIT("")); /* an old rule file again: its keys are still there */
    assert_int_equal(left(w, "user=alice"), 3);
}

static void a_load_that_fails_leaves_the_folder_as_it_was(void **state)
{
    struct state_world *w = *state;
    /* The second limit's file cannot be made: a name that is a full directory, again and again. */
    static const char two[] = "limits: [{name: api, key: [user], rate: 10/min, max_keys: 5k}, "
                              "{name: b, key: [user], rate: 5/min}, {name: c, key: [user], rate: "
                              "5/min}]";
    state_world_open(w, two);
    char *path = state_world_path(w, "c~.weir");
    state_world_reload(w, LIMIT(""));
    take(w, "user=alice", 7);
    for (unsigned i = 0; i <= 4; i++) {
        char name[4200];
        (void)snprintf(name, sizeof name,
                       i == 0   ? "mkdir -p %s/x"
                       : i == 1 ? "mkdir -p %s.bad/x"
                                : "mkdir -p %s.bad.%u/x",
                       path, i);
        assert_int_equal(system(name), 0); /* NOLINT(cert-env33-c) */
    }
    char before[4096];
    (void)snprintf(before, sizeof before, "%s", state_world_files(w));
    assert_int_equal(weir_rules_reload_text(w->rules, "test", two, strlen(two), &w->error),
                     WEIR_EIO);
    assert_non_null(strstr(w->error.text, "and cannot be renamed"));
    assert_string_equal(state_world_files(w), before);
    assert_int_equal(left(w, "user=alice"), 3);
    state_world_close(w);
    assert_int_equal(state_world_try(w, two), WEIR_EIO);
    assert_string_equal(state_world_files(w), before);
    state_world_open(w, LIMIT(""));
    assert_int_equal(left(w, "user=alice"), 3);
    free(path);
}

static void a_file_that_cannot_take_the_place_of_the_old_one_is_told(void **state)
{
    struct state_world *w = *state;
    char command[4300];
    state_world_open(w, LIMIT(""));
    char *path = state_world_path(w, "api~.weir");
    (void)snprintf(command, sizeof command, "rm %s && mkdir -p %s/x", path, path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
    state_world_reload(w, LIMIT(", max_keys: 5k"));
    assert_told(w, ".weir.new: cannot be renamed: Is a directory; a restart will forget its keys");
    free(path);
}

static unsigned open_files(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        n++;
    }
    (void)closedir(folder);
    return n;
}

static void a_reload_leaves_no_file_open(void **state)
{
    struct state_world *w = *state;
    state_world_open(w, LIMIT(""));
    unsigned before = open_files();
    state_world_reload(w, LIMIT(", burst: 4"));
    state_world_reload(w, LIMIT(", max_keys: 5k"));
    assert_int_equal(open_files(), before);
}

static void what_a_killed_process_left_half_made_is_cleared_away(void **state)
{
    struct state_world *w = *state;
    loading_write(w->folder, ".weir-AbCdEf", "half a table");
    loading_write(w->folder, "api~0123456789abcdef.weir.new", "a table that nobody switched to");
    loading_write(w->folder, "notes.txt", "of somebody else");
    state_world_open(w, LIMIT(""));
    assert_string_equal(state_world_files(w), "api~.weir notes.txt");
    assert_false(has_file(w, "new"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, state_world_make, state_world_remove)
    const struct CMUnitTest tests[] = {
        TEST(every_key_of_every_algorithm_is_as_it_was_after_a_restart),
        TEST(tiers_and_overrides_have_files_of_their_own),
        TEST(overrides_keep_their_keys_while_rows_come_and_go),
        TEST(a_changed_count_applies_to_the_keys_that_are_there),
        TEST(a_reload_and_a_put_go_on_in_the_same_files),
        TEST(what_would_start_afresh_in_a_reload_does_so_in_a_restart_and_is_told),
        TEST(a_state_whose_weeks_began_on_thursday_starts_afresh_and_is_told),
        TEST(a_changed_max_keys_is_told_by_a_reload_too),
        TEST(a_log_that_would_have_to_grow_starts_afresh_and_says_so),
        TEST(a_limit_that_a_reload_or_a_remove_takes_away_takes_its_file_with_it),
        TEST(files_of_limits_that_nobody_knows_are_told_and_left_alone),
        TEST(a_load_that_fails_leaves_the_folder_as_it_was),
        TEST(a_file_that_cannot_take_the_place_of_the_old_one_is_told),
        TEST(a_reload_leaves_no_file_open),
        TEST(what_a_killed_process_left_half_made_is_cleared_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
