/* Bans of limits that a fleet decides: each node counts what it answers, and the store is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/faked_world.h"

#define BAN "ban: {denials: 3, within: 1min, for: 10min}"
static const char rules[] =
    "limits: [{name: l, key: [tenant, user], shard_by: [tenant], rate: 1/h, "
    "consistency: exact, " BAN "}]";
#define ALICE "tenant=t user=alice"

static const unsigned banned = WEIR_FLAG_BLOCKED | WEIR_FLAG_BANNED;

struct numbers {
    uint64_t bans, failed, bytes;
};

static int read_numbers(void *arg, const struct weir_rules_limit *limit)
{
    *(struct numbers *)arg = (struct numbers){limit->bans, limit->bans_failed, limit->stats.bytes};
    return 0;
}

static struct numbers numbers_of(struct faked_world *w)
{
    struct numbers n = {0};
    assert_int_equal(weir_rules_limits(w->rules, read_numbers, &n), 0);
    return n;
}

static int count_block(void *arg, const struct weir_rules_block *b)
{
    assert_true(b->banned);
    (*(unsigned *)arg)++;
    return 0;
}

static unsigned listed(struct faked_world *w)
{
    unsigned n = 0;
    assert_int_equal(weir_rules_blocks(w->rules, RULES_T0, count_block, &n), 0);
    return n;
}

/* Every question is denied from now on. */
static void deny_all(struct faked_world *w, unsigned flags, unsigned at_once)
{
    fake_set_plan(&w->fleet, (struct fake_plan){.planned = true,
                                                .verdict = WEIR_DENY,
                                                .flags = flags,
                                                .retry_ns = WEIR_SECOND,
                                                .at_once = at_once});
}

static void denials_that_come_later_ban_the_key_in_the_store(void **state)
{
    struct faked_world w;
    faked_begin(&w, rules);
    deny_all(&w, 0, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(faked_settle(&w, ALICE)->answer.flags, 0);
    }
    assert_int_equal(faked_ask(&w, ALICE), 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.done, 3); /* before the store has heard of the ban */
    assert_int_equal(w.answer.answer.verdict, WEIR_DENY);
    assert_int_equal(w.answer.answer.flags, banned);
    assert_int_equal(w.answer.reason, WEIR_REASON_BAN);
    assert_int_equal(w.answer.answer.retry_after_ns, 10 * WEIR_MINUTE);
    assert_int_equal(fake_out(&w.fleet), 1);
    assert_int_equal(w.fleet.last.verb, REMOTE_BAN);
    assert_int_equal(w.fleet.last.time_ns, 10 * WEIR_MINUTE);
    assert_ptr_equal(fake_where(&w.fleet), &w);
    assert_int_equal(strncmp(w.fleet.told[0], "l t ", 4), 0); /* the same shard */
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(numbers_of(&w).bans, 1);
    assert_int_equal(listed(&w), 1);
    faked_end(&w);
}

static void denials_that_a_node_remembers_count_as_well(void **state)
{
    struct faked_world w;
    faked_begin(&w, rules);
    deny_all(&w, 0, 1); /* answered at once, as from the cache of denials */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(faked_ask(&w, ALICE), 1);
        assert_int_equal(w.answer.answer.flags, 0);
    }
    assert_int_equal(faked_ask(&w, ALICE), 1);
    assert_int_equal(w.answer.answer.flags, banned);
    assert_int_equal(numbers_of(&w).bans, 1);
    faked_end(&w);
}

static void blocked_calls_and_answers_without_the_store_do_not_count(void **state)
{
    static const unsigned flags[] = {WEIR_FLAG_BLOCKED, REMOTE_DEGRADED,
                                     REMOTE_DEGRADED | REMOTE_CLOSED, WEIR_FLAG_FULL};
    struct faked_world w;
    faked_begin(&w, rules);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        deny_all(&w, flags[i], 0);
        for (int j = 0; j < 5; j++) {
            assert_int_equal(faked_settle(&w, ALICE)->answer.flags, flags[i]);
        }
    }
    assert_int_equal(numbers_of(&w).bans + numbers_of(&w).failed, 0);
    faked_end(&w);
}

static void a_ban_that_the_store_does_not_take_is_counted_as_failed_and_not_listed(void **state)
{
    struct faked_world w;
    faked_begin(&w, rules);
    deny_all(&w, 0, 0);
    for (int i = 0; i < 2; i++) {
        (void)faked_settle(&w, ALICE);
    }
    assert_int_equal(faked_ask(&w, ALICE), 0);
    assert_true(fake_answer(&w.fleet));
    assert_true(fake_fail(&w.fleet, WEIR_EIO));
    assert_int_equal(numbers_of(&w).bans, 0);
    assert_int_equal(numbers_of(&w).failed, 1);
    assert_int_equal(listed(&w), 0);
    assert_int_equal(faked_settle(&w, ALICE)->answer.flags, 0); /* the window has banned */
    faked_end(&w);
}

static void a_ban_on_its_way_outlives_its_limit_and_the_rules(void **state)
{
    struct faked_world w;
    faked_begin(&w, rules);
    deny_all(&w, 0, 0);
    for (int i = 0; i < 2; i++) {
        (void)faked_settle(&w, ALICE);
    }
    assert_int_equal(faked_ask(&w, ALICE), 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(weir_rules_remove(w.rules, "l", NULL), 0);
    weir_rules_close(w.rules);
    assert_int_equal(fake_out(&w.fleet), 1);
    assert_true(fake_answer(&w.fleet));
    fake_finish(&w.fleet); /* no limit is open any more */
}

static void a_reload_that_changes_the_ban_does_not_disturb_pending_questions(void **state)
{
    static const char more[] = "limits: [{name: l, key: [tenant, user], shard_by: [tenant], "
                               "rate: 1/h, consistency: exact, ban: {denials: 1, within: 1h, "
                               "for: 1h}}]";
    struct faked_world w;
    faked_begin(&w, rules);
    deny_all(&w, 0, 0);
    assert_int_equal(faked_ask(&w, ALICE), 0);
    assert_int_equal(weir_rules_reload_text(w.rules, "test", more, strlen(more), NULL), 0);
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.answer.answer.flags, banned); /* by the new number */
    assert_true(fake_answer(&w.fleet));
    assert_int_equal(w.fleet.opened, 1); /* the limit was kept */
    faked_end(&w);
}

static void the_memory_for_counting_is_here(void **state)
{
    struct faked_world w;
    faked_begin(&w, rules);
    assert_true(numbers_of(&w).bytes > 100000 * 16);
    faked_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(denials_that_come_later_ban_the_key_in_the_store),
        cmocka_unit_test(denials_that_a_node_remembers_count_as_well),
        cmocka_unit_test(blocked_calls_and_answers_without_the_store_do_not_count),
        cmocka_unit_test(a_ban_that_the_store_does_not_take_is_counted_as_failed_and_not_listed),
        cmocka_unit_test(a_ban_on_its_way_outlives_its_limit_and_the_rules),
        cmocka_unit_test(a_reload_that_changes_the_ban_does_not_disturb_pending_questions),
        cmocka_unit_test(the_memory_for_counting_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
