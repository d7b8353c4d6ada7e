// test-labels: notsan
/*
 * Rules with a folder for their state, opened and reloaded with the n-th call to the system
 * failing, for every n: once, and from then on for ever. The caller gets an error with a text, or
 * rules that work. No file is taken for damaged because the system had a bad moment, none is left
 * behind or lost, and when the moment is over every key is as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/faults.h"
#include "support/engine/process_fixture.h"
#include "support/rules/rules_ask.h"
#include "support/rules/state_world.h"

#define T0 RULES_T0

static const char first[] =
    "limits: [{name: a, when: {path: /a}, key: [user], rate: 10/min, max_keys: 64}, "
    "{name: b, when: {path: /b}, key: [user], rate: 20/min, max_keys: 64, tiers: {t: {}}}]";

/* `a` has another table, `b` is gone, `c` is new. */
static const char second[] =
    "limits: [{name: a, when: {path: /a}, key: [user], rate: 10/min, max_keys: 128}, "
    "{name: c, when: {path: /c}, key: [user], rate: 30/min, max_keys: 64}]";

static const char first_files[] = "a~.weir b@t~.weir b~.weir";
static const char second_files[] = "a~.weir c~.weir";

static uint64_t left(struct state_world *w, const char *words)
{
    return rules_peek(w->rules, T0, words).answer.remaining;
}

static void require_first(struct state_world *w, uint64_t a, uint64_t b)
{
    if (strcmp(state_world_files(w), first_files) != 0) {
        (void)fprintf(stderr, "%s failed: %s\n%s", faults_name(), state_world_files(w), w->told);
    }
    REQUIRE(strcmp(state_world_files(w), first_files) == 0);
    REQUIRE(left(w, "path=/a user=x") == a && left(w, "path=/b user=x") == b);
}

/* A full disk is called one; for the rest, whatever it is, there is a text. */
static void require_told(const struct state_world *w, int e)
{
    if (strcmp(faults_name(), "posix_fallocate") == 0) {
        REQUIRE(e == WEIR_ENOSPC && strstr(w->error.text, "No space left") != NULL);
    }
    REQUIRE(e < 0 && w->error.code == e && w->error.text[0] != '\0');
}

static void require_nothing_kept(struct holdings before)
{
    struct holdings after = faults_holdings();
    REQUIRE(before.allocations == after.allocations);
    REQUIRE(before.descriptors == after.descriptors);
    REQUIRE(before.mappings == after.mappings);
}

static unsigned open_again(struct state_world *w, unsigned n, bool for_ever)
{
    struct holdings before = faults_holdings();
    faults_arm(n, for_ever);
    int e = state_world_try(w, first);
    unsigned failed = faults_disarm();
    if (e != 0) {
        REQUIRE(failed > 0);
        require_told(w, e);
        require_nothing_kept(before);
        state_world_open(w, first);
    }
    require_first(w, 7, 16);
    state_world_close(w);
    return failed;
}

static void a_failing_call_at_the_start_costs_no_key(void **state)
{
    struct state_world *w = *state;
    unsigned calls = 0;
    state_world_open(w, first);
    REQUIRE(rules_allowed(w->rules, T0, "path=/a user=x", 3) == 3);
    REQUIRE(rules_allowed(w->rules, T0, "path=/b user=x", 4) == 4);
    state_world_close(w);
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (unsigned n = 1; open_again(w, n, for_ever != 0) > 0; n++) {
            calls++;
        }
    }
    assert_true(calls > 100);
}

static unsigned make_all(struct state_world *w, unsigned n, bool for_ever)
{
    struct holdings before = faults_holdings();
    faults_arm(n, for_ever);
    int e = state_world_try(w, first);
    unsigned failed = faults_disarm();
    if (e != 0) {
        require_told(w, e);
        require_nothing_kept(before);
        REQUIRE(state_world_files(w)[0] == '\0');
        return failed;
    }
    require_first(w, 10, 20);
    state_world_reload(w, "limits: []");
    state_world_close(w);
    return failed;
}

static void a_failing_call_at_the_first_start_leaves_nothing_behind(void **state)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (unsigned n = 1; make_all(*state, n, for_ever != 0) > 0;) {
            n++;
        }
    }
}

static unsigned reload(struct state_world *w, unsigned n, bool for_ever)
{
    state_world_open(w, first);
    REQUIRE(rules_allowed(w->rules, T0, "path=/a user=x", 3) == 3);
    faults_arm(n, for_ever);
    w->error = (struct weir_error){0};
    int e = weir_rules_reload_text(w->rules, "test", second, strlen(second), &w->error);
    unsigned failed = faults_disarm();
    if (e != 0) {
        require_told(w, e);
        require_first(w, 7, 20);
        state_world_restart(w, first);
        require_first(w, 7, 20);
    } else {
        REQUIRE(left(w, "path=/a user=x") == 10);
        REQUIRE(rules_allowed(w->rules, T0, "path=/c user=x", 5) == 5);
        state_world_restart(w, second);
        REQUIRE(left(w, "path=/c user=x") == 25);
        if (failed == 0) {
            REQUIRE(strcmp(state_world_files(w), second_files) == 0);
        }
    }
    state_world_reload(w, "limits: []");
    state_world_close(w);
    return failed;
}

static void after_a_reload_that_failed_the_old_files_are_in_force(void **state)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (unsigned n = 1; reload(*state, n, for_ever != 0) > 0;) {
            n++;
        }
    }
}

/* ---- the clock ---- */

static void hear(void *arg, const struct weir_rules_message *message)
{
    (void)snprintf(arg, 256, "%s", message->text);
}

/* One question by the rules' own clock: what is left. */
static uint64_t ask_by_clock(struct state_world *w, char told[256])
{
    static const char slow[] = "limits: [{name: slow, key: [user], rate: 10/week, max_keys: 64}]";
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules_attribute user[] = {WEIR_RULES_ATTRIBUTE("user", "x")};
    struct weir_rules_question q = {.attributes = user, .attributes_count = 1};
    struct weir_rules_answer a;
    told[0] = '\0';
    o.state = w->folder;
    o.message = hear;
    o.message_arg = told;
    REQUIRE(weir_rules_open_text(&w->rules, "test", slow, strlen(slow), &o, &w->error) == 0);
    REQUIRE(weir_rules_ask(w->rules, &q, &a, &w->error) == 0);
    state_world_close(w);
    return a.answer.remaining;
}

static void a_clock_that_was_set_back_by_days_neither_stops_nor_frees_anybody(void **state)
{
    char told[256];
    assert_int_equal(ask_by_clock(*state, told), 9);
    faults_wall_clock_off_s = -3 * 86400;
    assert_int_equal(ask_by_clock(*state, told), 8);
    assert_non_null(strstr(told, "behind the state: going on from there"));
    faults_wall_clock_off_s = 0;
    assert_int_equal(ask_by_clock(*state, told), 7);
    assert_string_equal(told, "");
}

int main(void)
{
    if (access("/dev/shm", W_OK) == 0) {
        (void)setenv("TMPDIR", "/dev/shm", 1); /* thousands of files, each of them synced */
    }
#define TEST(f) cmocka_unit_test_setup_teardown(f, state_world_make, state_world_remove)
    const struct CMUnitTest tests[] = {
        TEST(a_failing_call_at_the_start_costs_no_key),
        TEST(a_failing_call_at_the_first_start_leaves_nothing_behind),
        TEST(after_a_reload_that_failed_the_old_files_are_in_force),
        TEST(a_clock_that_was_set_back_by_days_neither_stops_nor_frees_anybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
