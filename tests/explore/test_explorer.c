// test-labels: nosan
/*
 * The explorer itself. That states are merged must not lose anything: what can
 * be explored without merging comes to the same ends. (And so do runs at random
 * of everything else: test_two_users.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "explore/scenario.h"
#include "explore/toys.h"

#define STATES_MOST UINT64_C(100000000)

static struct found search(const struct subject *subject, unsigned kills, bool merge)
{
    struct how how = {kills, merge, STATES_MOST};
    return search_all(subject, &how);
}

static bool same_ends(const struct found *x, const struct found *y)
{
    return x->ends == y->ends && digest_same(x->all, y->all);
}

/* ---- toys ---- */

static uint64_t ends_of(const struct toy *toy, unsigned kills)
{
    struct subject subject = toy_subject(toy);
    struct found merged = search(&subject, kills, true);
    struct found plain = search(&subject, kills, false);
    assert_true(merged.complete && plain.complete);
    assert_true(same_ends(&merged, &plain));
    assert_true(merged.states <= plain.states);
    return merged.ends;
}

static void every_end_of_a_toy_is_found_and_no_other(void **state)
{
    assert_int_equal(ends_of(&toy_add, 0), 2);     /* 2, or 1: one update is lost */
    assert_int_equal(ends_of(&toy_swap, 0), 1);    /* 4 */
    assert_int_equal(ends_of(&toy_cross, 0), 3);   /* never that both see nothing */
    assert_int_equal(ends_of(&toy_guarded, 0), 1); /* 2 and 2 */
    assert_int_equal(ends_of(&toy_wait, 0), 2);    /* who is waited for may be slow */
}

static void a_death_is_tried_at_every_step(void **state)
{
    /* Also: one of the two has not written. */
    assert_int_equal(ends_of(&toy_add, 1), 2 + 2);
    /* Also: one has done nothing, half or all of it and dies; the other was before it, so that the
       lock is still held, or came after it. */
    assert_int_equal(ends_of(&toy_guarded, 1), 1 + 2 * 3 * 2);
    (void)ends_of(&toy_swap, 1);
    (void)ends_of(&toy_cross, 2);
    (void)ends_of(&toy_wait, 2);
    (void)ends_of(&toy_guarded, 2);
}

static const char *failure_of(const struct toy *toy, unsigned kills)
{
    struct subject subject = toy_subject(toy);
    return search(&subject, kills, true).failure;
}

static void a_deadlock_is_found(void **state)
{
    assert_non_null(strstr(failure_of(&toy_embrace, 0), "deadlock"));
}

static void a_user_who_goes_round_for_ever_is_found(void **state)
{
    assert_non_null(strstr(failure_of(&toy_spin, 0), "for ever"));
}

/* ---- the comparison can fail ---- */

static void a_state_that_leaves_something_out_is_noticed(void **state)
{
    struct toy whole = toy_forget;
    whole.mute = false;
    (void)ends_of(&whole, 0);
    struct subject subject = toy_subject(&toy_forget);
    struct found merged = search(&subject, 0, true);
    struct found plain = search(&subject, 0, false);
    assert_false(same_ends(&merged, &plain));
}

/* ---- the engine ---- */

static const struct scenario *known_key(struct op a, struct op b, struct op c)
{
    static struct scenario s;
    s = (struct scenario){
        .name = "small enough to be explored without merging",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {{0, 1, 0, ANY}},
                  .prepare = {{CHECK, 0, 3}}},
        .users = 2,
        .script = {{a, b}, {c}},
    };
    return &s;
}

static void compare(const struct scenario *s, unsigned kills)
{
    struct subject subject;
    assert_true(scenario_begin(s, &subject));
    struct found merged = search(&subject, kills, true);
    struct found plain = search(&subject, kills, false);
    printf("    %u deaths: %llu schedules, merged %llu, %llu ends\n", kills,
           (unsigned long long)plain.schedules, (unsigned long long)merged.schedules,
           (unsigned long long)merged.ends);
    assert_true(merged.complete && plain.complete);
    assert_true(same_ends(&merged, &plain));
}

static void all_schedules_of_the_engine_end_as_the_merged_ones_do(void **state)
{
    const struct op none = {END, 0, 0};
    const struct op one = {CHECK, 0, 1};
    const struct op many = {CHECK, 0, 12};
    for (unsigned kills = 0; kills <= 2; kills++) {
        compare(known_key(many, none, many), kills);
        compare(known_key(many, one, many), kills);
    }
    compare(known_key((struct op){REFUND, 0, 2}, none, many), 1);
    compare(known_key((struct op){RESET, 0, 0}, none, many), 1);
    compare(known_key((struct op){PENALIZE, 0, 2}, none, many), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_of_a_toy_is_found_and_no_other),
        cmocka_unit_test(a_death_is_tried_at_every_step),
        cmocka_unit_test(a_deadlock_is_found),
        cmocka_unit_test(a_user_who_goes_round_for_ever_is_found),
        cmocka_unit_test(a_state_that_leaves_something_out_is_noticed),
        cmocka_unit_test(all_schedules_of_the_engine_end_as_the_merged_ones_do),
    };
    return cmocka_run_group_tests_name("explorer", tests, NULL, NULL);
}
