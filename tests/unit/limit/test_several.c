/* Several limits at once, all or nothing. */
#include "support/engine/unit_limiter.h"

#include <stdio.h>

#define START (120 * WEIR_SECOND)

static struct weir_part part(struct weir *w, const char *key, uint64_t cost)
{
    return (struct weir_part){w, unit_question(key, cost, WEIR_CHECK)};
}

static struct weir_answer ask_all(const struct weir_part *parts, size_t n, uint64_t now)
{
    struct weir_answer a;
    memset(&a, 0xa5, sizeof a);
    assert_int_equal(weir_check_several_at(parts, n, now, &a), 0);
    assert_true(a.limit < n);
    unit_assert_sound(&a, parts[a.limit].ask.cost, parts[0].ask.mode);
    return a;
}

static void bad_arguments_are_refused_and_charge_nothing(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_answer a;
    struct weir_part p[WEIR_SEVERAL_MAX + 1] = {part(w, "a", 1), part(w, "b", 1)};
    assert_int_equal(weir_check_several_at(NULL, 1, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_check_several_at(p, 2, START, NULL), WEIR_EINVAL);
    assert_int_equal(weir_check_several_at(p, 0, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_check_several_at(p, WEIR_SEVERAL_MAX + 1, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_check_several_at(p, 2, UINT64_MAX, &a), WEIR_ETIME);
    assert_int_equal(weir_check_several(NULL, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_check_several(p, 0, &a), WEIR_EINVAL);
    p[1].limiter = NULL;
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_EINVAL);
    p[1] = part(w, "b", 0);
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_ECOST);
    p[1] = part(w, "", 1);
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_EKEY);
    p[1] = part(w, "b", 1);
    p[1].ask.mode = WEIR_PEEK;
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_EINVAL);
    p[0].ask.mode = p[1].ask.mode = WEIR_UP_TO;
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_EINVAL);
    p[0] = part(w, "a", 1);
    p[1] = part(w, "b", 1);
    p[1] = part(w, "a", 1); /* the same state twice */
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_EINVAL);
    assert_int_equal(unit_stats(w).keys + unit_stats(w).allowed, 0);
    weir_close(w);
}

static void one_part_is_a_plain_check(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *one = unit_limit(unit_algorithms[i], 5, WEIR_MINUTE);
        struct weir *two = unit_limit(unit_algorithms[i], 5, WEIR_MINUTE);
        uint64_t seed = 3;
        uint64_t now = START;
        for (int j = 0; j < 2000; j++) {
            now += unit_random(&seed) % (20 * WEIR_SECOND);
            struct weir_part p = part(one, "k", 1 + unit_random(&seed) % 6);
            struct weir_answer a = ask_all(&p, 1, now);
            struct weir_answer b = unit_check(two, "k", p.ask.cost, now);
            unit_assert_same(&a, &b);
        }
        weir_close(one);
        weir_close(two);
    }
}

/* Every pair of algorithms: if one denies, the other is not charged. */
static void nothing_is_charged_if_one_denies(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS * UNIT_ALGORITHMS; i++) {
        struct weir *wide = unit_limit(unit_algorithms[i / UNIT_ALGORITHMS], 10, WEIR_MINUTE);
        struct weir *tight = unit_limit(unit_algorithms[i % UNIT_ALGORITHMS], 3, WEIR_MINUTE);
        struct weir_part p[2] = {part(wide, "k", 1), part(tight, "k", 1)};
        for (int j = 0; j < 3; j++) {
            struct weir_answer a = ask_all(p, 2, START);
            assert_int_equal(a.verdict, WEIR_ALLOW);
            assert_int_equal(a.limit, 1);
            assert_int_equal(a.remaining, 2 - j);
        }
        for (int j = 0; j < 5; j++) {
            struct weir_answer a = ask_all(p, 2, START);
            assert_int_equal(a.verdict, WEIR_DENY);
            assert_int_equal(a.limit, 1);
            assert_int_equal(a.flags, 0);
        }
        assert_int_equal(unit_peek(wide, "k", 1, START).remaining, 7);
        assert_int_equal(unit_peek(tight, "k", 1, START).remaining, 0);
        assert_int_equal(unit_stats(wide).spurious + unit_stats(tight).spurious, 0);
        weir_close(wide);
        weir_close(tight);
    }
}

/* P3 for several limits: the retry named is exact for all of them together. */
static void retry_is_exact_for_several_limits(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        for (int j = 0; j < UNIT_ALGORITHMS; j++) {
            struct weir *a = unit_limit(unit_algorithms[i], 4, 10 * WEIR_SECOND);
            struct weir *b = unit_limit(unit_algorithms[j], 7, 31 * WEIR_SECOND);
            uint64_t seed = 5;
            uint64_t now = START;
            for (uint64_t n = 0; n < unit_scale(1000); n++) {
                now += unit_random(&seed) % WEIR_SECOND;
                struct weir_part p[2] = {part(a, "k", 1 + unit_random(&seed) % 4),
                                         part(b, "k", 1 + unit_random(&seed) % 4)};
                struct weir_answer x = ask_all(p, 2, now);
                if (x.verdict == WEIR_DENY) {
                    p[0].ask.mode = p[1].ask.mode = WEIR_PEEK;
                    uint64_t at = now + x.retry_after_ns;
                    assert_int_equal(ask_all(p, 2, at - 1).verdict, WEIR_DENY);
                    assert_int_equal(ask_all(p, 2, at).verdict, WEIR_ALLOW);
                }
            }
            weir_close(a);
            weir_close(b);
        }
    }
}

static void the_answer_names_the_limit_that_bound(void **state)
{
    struct weir *slow = unit_limit(WEIR_TOKEN_BUCKET, 5, WEIR_DAY);
    struct weir *fast = unit_limit(WEIR_TOKEN_BUCKET, 5, WEIR_SECOND);
    struct weir *tiny = unit_limit(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND);
    (void)unit_drain(slow, "k", START);
    (void)unit_drain(fast, "k", START);
    struct weir_part largest_retry[2] = {part(fast, "k", 1), part(slow, "k", 1)};
    assert_int_equal(ask_all(largest_retry, 2, START).limit, 1);
    struct weir_part never_first[3] = {part(slow, "k", 1), part(tiny, "k", 2), part(fast, "k", 1)};
    struct weir_answer a = ask_all(never_first, 3, START);
    assert_int_equal(a.verdict, WEIR_NEVER);
    assert_int_equal(a.limit, 1);
    struct weir_part tie[3] = {part(fast, "new", 1), part(slow, "new", 1), part(fast, "other", 1)};
    a = ask_all(tie, 3, START);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.limit, 0); /* all have 4 left: the first in order */
    struct weir_part tied_denials[2] = {part(fast, "k", 1), part(fast, "x", 1)};
    (void)unit_drain(fast, "x", START);
    assert_int_equal(ask_all(tied_denials, 2, START).limit, 0);
    struct weir_part smallest[2] = {part(fast, "s", 1), part(tiny, "s", 1)};
    a = ask_all(smallest, 2, START);
    assert_int_equal(a.limit, 1);
    assert_int_equal(a.remaining, 0);
    weir_close(slow);
    weir_close(fast);
    weir_close(tiny);
}

static void a_peek_of_several_writes_nothing_and_counts_nothing(void **state)
{
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 5, WEIR_MINUTE);
    struct weir_part p[2] = {part(w, "a", 5), part(w, "b", 0)};
    p[0].ask.mode = p[1].ask.mode = WEIR_PEEK;
    struct weir_answer a = ask_all(p, 2, START);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.granted, 0);
    struct weir_stats s = unit_stats(w);
    assert_int_equal(s.allowed + s.denied + s.keys, 0);
    weir_close(w);
}

static void as_many_keys_of_one_limiter_as_there_may_be_parts(void **state)
{
    struct weir *w = unit_limit(WEIR_SLIDING_LOG, 2, WEIR_MINUTE);
    char names[WEIR_SEVERAL_MAX][8];
    struct weir_part p[WEIR_SEVERAL_MAX];
    for (int i = 0; i < WEIR_SEVERAL_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "k%d", i);
        p[i] = part(w, names[i], 1);
    }
    assert_int_equal(ask_all(p, WEIR_SEVERAL_MAX, START).verdict, WEIR_ALLOW);
    (void)unit_check(w, names[WEIR_SEVERAL_MAX - 1], 1, START);
    struct weir_answer a = ask_all(p, WEIR_SEVERAL_MAX, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.limit, WEIR_SEVERAL_MAX - 1);
    assert_int_equal(ask_all(p, WEIR_SEVERAL_MAX - 1, START).verdict, WEIR_ALLOW);
    assert_int_equal(ask_all(p, WEIR_SEVERAL_MAX - 1, START).verdict, WEIR_DENY);
    weir_close(w);
}

static void a_blocked_part_denies_all(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 5, WEIR_MINUTE);
    struct weir_part p[2] = {part(w, "a", 1), part(w, "b", 1)};
    assert_int_equal(weir_block_at(w, "b", 1, START + 78, START), 0);
    struct weir_answer a = ask_all(p, 2, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.limit, 1);
    assert_int_equal(a.retry_after_ns, 78);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(unit_peek(w, "a", 1, START).remaining, 5);
    weir_close(w);
}

static void hashed_keys_work_in_parts(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 5, WEIR_MINUTE);
    struct weir_key key;
    assert_int_equal(weir_key_init(w, "a", 1, &key), 0);
    struct weir_part p[2] = {part(w, "b", 2), part(w, "a", 3)};
    p[1].ask.hashed = &key;
    assert_int_equal(ask_all(p, 2, START).remaining, 2);
    assert_int_equal(unit_peek(w, "a", 1, START).remaining, 2);
    p[0] = part(w, "a", 1);
    struct weir_answer a;
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_EINVAL); /* the same key */
    weir_close(w);
}

/* Fills a table until it has no room for new keys; options.on_full says what those get. */
static struct weir *open_full(struct weir_options o, uint64_t now)
{
    o.max_keys = 1;
    struct weir *full = unit_open(&o);
    for (int i = 0; i < 5000; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "fill %d", i);
        (void)unit_check(full, key, 1, now);
    }
    return full;
}

static struct weir *full_table(int on_full)
{
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 5, WEIR_HOUR);
    o.on_full = on_full;
    return open_full(o, START);
}

static void a_part_that_a_full_table_did_not_charge_is_told_whichever_part_binds(void **state)
{
    struct weir *full = full_table(WEIR_ALLOW_NEW);
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 5, WEIR_HOUR);
    struct weir_part p[2] = {part(w, "k", 2), part(full, "k", 1)};
    struct weir_answer a;
    assert_int_equal(weir_check_several_at(p, 2, START, &a), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.granted, 2);
    assert_int_equal(a.limit, 0);
    assert_int_equal(a.flags, WEIR_FLAG_FULL);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 3);
    weir_close(full);
    weir_close(w);
}

/* A full table is no lost race: the other parts get their units back, nothing is spurious. */
static void a_full_table_denies_all_without_being_called_a_race(void **state)
{
    struct weir *full = full_table(WEIR_DENY_NEW);
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 5, WEIR_HOUR);
    struct weir_part p[2] = {part(w, "k", 2), part(full, "k", 1)};
    struct weir_answer a = ask_all(p, 2, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.limit, 1);
    assert_int_equal(a.flags, WEIR_FLAG_FULL);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 5);
    assert_int_equal(unit_stats(full).spurious, 0);
    weir_close(full);
    weir_close(w);
}

/* A clock of which the second reading comes 10 s later; meanwhile another caller has taken nine. */
struct stall {
    struct weir *w;
    uint64_t now;
    unsigned readings;
};

static uint64_t stalled_clock(void *arg)
{
    struct stall *s = arg;
    if (s->w != NULL && ++s->readings == 2) {
        s->now += 10 * WEIR_SECOND;
        assert_int_equal(unit_check(s->w, "k", 9, s->now).verdict, WEIR_ALLOW);
    }
    return s->now;
}

static void a_thread_that_was_stopped_before_its_roll_back_adds_nothing(void **state)
{
    struct stall s = {.now = 1000 * WEIR_SECOND};
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 10, 10 * WEIR_SECOND);
    struct weir_answer a;
    o.flags = 0;
    o.clock = stalled_clock;
    o.clock_arg = &s;
    struct weir *w = unit_open(&o);
    o.burst = 1000;
    o.on_full = WEIR_DENY_NEW;
    struct weir *full = open_full(o, s.now);
    struct weir_part p[2] = {part(w, "k", 10), part(full, "k", 1)};
    s.w = w;
    assert_int_equal(weir_check_several(p, 2, &a), 0);
    assert_int_equal(a.flags, WEIR_FLAG_FULL);
    assert_int_equal(s.readings, 2);
    assert_int_equal(unit_drain(w, "k", s.now), 1); /* ten refilled, nine are taken */
    weir_close(full);
    weir_close(w);
}

/* ---- waiting ---- */

static struct weir *queue_of(uint64_t places, uint64_t per_second)
{
    struct weir_options o = unit_options(WEIR_LEAKY_BUCKET, places + 1, WEIR_SECOND);
    o.count = per_second;
    o.period_ns = WEIR_SECOND;
    o.queue = places;
    return unit_open(&o);
}

static void a_call_waits_for_the_slowest(void **state)
{
    struct weir *slow = queue_of(10, 1);
    struct weir *fast = unit_limit(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND / 2);
    struct weir *window = unit_limit(WEIR_FIXED_WINDOW, 3, WEIR_MINUTE);
    struct weir_part p[] = {part(slow, "k", 1), part(fast, "k", 1), part(window, "k", 1)};
    p[0].ask.max_wait_ns = p[1].ask.max_wait_ns = 3 * WEIR_SECOND / 2;
    assert_int_equal(ask_all(p, 3, START).delay_ns, 0);
    struct weir_answer a = ask_all(p, 3, START);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.delay_ns, WEIR_SECOND); /* of the bucket it would be half a second */
    assert_int_equal(unit_peek(window, "k", 1, START).remaining, 1);
    weir_close(slow);
    weir_close(fast);
    weir_close(window);
}

static void if_one_part_takes_too_long_none_is_charged(void **state)
{
    struct weir *slow = queue_of(10, 1);
    struct weir *fast = unit_limit(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND / 2);
    struct weir_part p[] = {part(slow, "k", 1), part(fast, "k", 1)};
    p[0].ask.max_wait_ns = p[1].ask.max_wait_ns = 3 * WEIR_SECOND / 2;
    assert_int_equal(unit_check(slow, "k", 2, START).verdict, WEIR_ALLOW);
    struct weir_answer a = ask_all(p, 2, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.limit, 0);
    assert_int_equal(a.retry_after_ns, WEIR_SECOND / 2);
    assert_int_equal(unit_peek(slow, "k", 1, START).reset_after_ns, 2 * WEIR_SECOND);
    assert_int_equal(unit_peek(fast, "k", 1, START).remaining, 1);
    weir_close(slow);
    weir_close(fast);
}

static void a_part_that_cannot_wait_must_not_be_told_to(void **state)
{
    struct weir *w = unit_limit(WEIR_SLIDING_LOG, 3, WEIR_MINUTE);
    struct weir_part p[] = {part(w, "a", 1), part(w, "b", 1)};
    struct weir_answer a;
    p[1].ask.max_wait_ns = 1;
    assert_int_equal(weir_check_several_at(p, 2, START, &a), WEIR_ENOTSUP);
    weir_close(w);
}

/* What several parts say and do is what each of them says and does by itself, if all allow. */
static void a_random_call_is_allowed_if_each_part_would_be(void **state)
{
    struct weir *all[] = {queue_of(5, 3), queue_of(2, 7),
                          unit_limit(WEIR_TOKEN_BUCKET, 4, WEIR_SECOND),
                          unit_limit(WEIR_SLIDING_WINDOW, 9, WEIR_SECOND)};
    uint64_t seed = 8;
    uint64_t now = START;
    for (uint64_t i = 0; i < unit_scale(20000); i++) {
        struct weir_part p[4];
        struct weir_answer alone[4];
        bool allowed = true;
        uint64_t delay = 0;
        now += unit_random(&seed) % (WEIR_SECOND / 3);
        for (size_t j = 0; j < 4; j++) {
            p[j] = part(all[j], "k", 1 + unit_random(&seed) % 2);
            p[j].ask.max_wait_ns = j < 3 ? unit_random(&seed) % (2 * WEIR_SECOND) : 0;
            p[j].ask.mode = WEIR_PEEK;
            alone[j] = unit_ask(all[j], &p[j].ask, now);
            p[j].ask.mode = WEIR_CHECK;
            allowed = allowed && alone[j].verdict == WEIR_ALLOW;
            delay = alone[j].delay_ns > delay ? alone[j].delay_ns : delay;
        }
        struct weir_answer a = ask_all(p, 4, now);
        assert_int_equal(a.verdict == WEIR_ALLOW, allowed);
        assert_int_equal(a.delay_ns, allowed ? delay : 0);
        for (size_t j = 0; j < 4 && !allowed; j++) {
            p[j].ask.mode = WEIR_PEEK;
            struct weir_answer again = unit_ask(all[j], &p[j].ask, now);
            unit_assert_same(&again, &alone[j]);
        }
    }
    for (size_t j = 0; j < 4; j++) {
        weir_close(all[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused_and_charge_nothing),
        cmocka_unit_test(one_part_is_a_plain_check),
        cmocka_unit_test(nothing_is_charged_if_one_denies),
        cmocka_unit_test(retry_is_exact_for_several_limits),
        cmocka_unit_test(the_answer_names_the_limit_that_bound),
        cmocka_unit_test(a_peek_of_several_writes_nothing_and_counts_nothing),
        cmocka_unit_test(as_many_keys_of_one_limiter_as_there_may_be_parts),
        cmocka_unit_test(a_blocked_part_denies_all),
        cmocka_unit_test(hashed_keys_work_in_parts),
        cmocka_unit_test(a_part_that_a_full_table_did_not_charge_is_told_whichever_part_binds),
        cmocka_unit_test(a_full_table_denies_all_without_being_called_a_race),
        cmocka_unit_test(a_thread_that_was_stopped_before_its_roll_back_adds_nothing),
        cmocka_unit_test(a_call_waits_for_the_slowest),
        cmocka_unit_test(if_one_part_takes_too_long_none_is_charged),
        cmocka_unit_test(a_part_that_cannot_wait_must_not_be_told_to),
        cmocka_unit_test(a_random_call_is_allowed_if_each_part_would_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
