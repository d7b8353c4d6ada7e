/* A batch is the same as asking one by one. */
#include "support/engine/unit_limiter.h"

#include <stdio.h>

#define START (120 * WEIR_SECOND)
#define MOST 200

static void bad_arguments_are_refused(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    struct weir_answer a;
    size_t bad = 77;
    assert_int_equal(weir_ask_batch_at(NULL, &ask, 1, START, &a, &bad), WEIR_EINVAL);
    assert_int_equal(weir_ask_batch_at(w, NULL, 1, START, &a, &bad), WEIR_EINVAL);
    assert_int_equal(weir_ask_batch_at(w, &ask, 1, START, NULL, &bad), WEIR_EINVAL);
    assert_int_equal(weir_ask_batch(NULL, &ask, 1, &a, &bad), WEIR_EINVAL);
    assert_int_equal(weir_ask_batch_at(w, NULL, 0, START, NULL, NULL), 0);
    assert_int_equal(unit_stats(w).keys, 0);
    weir_close(w);
}

/* One bad question, at any place: nothing is decided, and its index is told. */
static void one_bad_question_stops_all_before_anything_is_decided(void **state)
{
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 10, WEIR_MINUTE);
    struct weir_question asks[MOST];
    struct weir_answer answers[MOST];
    const struct weir_question wrong[] = {
        unit_question("k", 0, WEIR_CHECK),
        unit_question("", 1, WEIR_CHECK),
        unit_question("k", 1, 9),
        {.key = "k", .key_len = 1, .cost = 1, .max_wait_ns = 5},
    };
    const int codes[] = {WEIR_ECOST, WEIR_EKEY, WEIR_EINVAL, WEIR_ENOTSUP};
    for (size_t at = 0; at < MOST; at += 33) {
        for (int i = 0; i < 4; i++) {
            size_t bad = 0;
            for (size_t j = 0; j < MOST; j++) {
                asks[j] = unit_question("k", 1, WEIR_CHECK);
            }
            asks[at] = wrong[i];
            assert_int_equal(weir_ask_batch_at(w, asks, MOST, START, answers, &bad), codes[i]);
            assert_int_equal(bad, at);
            assert_int_equal(weir_ask_batch_at(w, asks, MOST, START, answers, NULL), codes[i]);
        }
    }
    asks[0] = unit_question("k", 1, WEIR_CHECK);
    size_t bad = 5;
    assert_int_equal(weir_ask_batch_at(w, asks, 1, UINT64_MAX, answers, &bad), WEIR_ETIME);
    assert_int_equal(bad, 0);
    assert_int_equal(unit_stats(w).keys + unit_stats(w).allowed, 0);
    weir_close(w);
}

struct twins {
    struct weir *batch;
    struct weir *single;
    bool waits;
};

static void fill_questions(const struct twins *t, struct weir_question *asks, size_t n,
                           char names[][8], uint64_t *seed)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], 8, "k%u", (unsigned)(unit_random(seed) % 60));
        asks[i] = unit_question(names[i], 1 + unit_random(seed) % 7, unit_random(seed) % 3);
        if (t->waits && asks[i].mode != WEIR_UP_TO && unit_random(seed) % 4 == 0) {
            asks[i].max_wait_ns = unit_random(seed) % WEIR_MINUTE;
        }
    }
}

static void compare(const struct twins *t, uint64_t rounds)
{
    uint64_t seed = 51;
    uint64_t now = START;
    for (uint64_t round = 0; round < rounds; round++) {
        struct weir_question asks[MOST];
        struct weir_answer answers[MOST];
        char names[MOST][8];
        size_t n = unit_random(&seed) % MOST;
        now += unit_random(&seed) % (30 * WEIR_SECOND);
        fill_questions(t, asks, n, names, &seed);
        memset(answers, 0xa5, sizeof answers);
        assert_int_equal(weir_ask_batch_at(t->batch, asks, n, now, answers, NULL), 0);
        for (size_t i = 0; i < n; i++) {
            struct weir_answer one = unit_ask(t->single, &asks[i], now);
            unit_assert_same(&one, &answers[i]);
        }
    }
}

static void a_batch_answers_as_if_asked_one_by_one(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct twins t = {unit_limit(unit_algorithms[i], 6, WEIR_MINUTE),
                          unit_limit(unit_algorithms[i], 6, WEIR_MINUTE),
                          unit_algorithms[i] <= WEIR_LEAKY_BUCKET};
        assert_int_equal(weir_block_at(t.batch, "k7", 2, START + WEIR_HOUR, START), 0);
        assert_int_equal(weir_block_at(t.single, "k7", 2, START + WEIR_HOUR, START), 0);
        compare(&t, unit_scale(300));
        struct weir_stats a = unit_stats(t.batch);
        struct weir_stats b = unit_stats(t.single);
        assert_int_equal(a.allowed, b.allowed);
        assert_int_equal(a.denied, b.denied);
        assert_int_equal(a.never, b.never);
        assert_int_equal(a.keys, b.keys);
        weir_close(t.batch);
        weir_close(t.single);
    }
}

static void the_same_key_many_times_in_a_batch_is_charged_each_time(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 40, WEIR_MINUTE);
        struct weir_question asks[100];
        struct weir_answer answers[100];
        for (int j = 0; j < 100; j++) {
            asks[j] = unit_question("k", 1, WEIR_CHECK);
        }
        assert_int_equal(weir_ask_batch_at(w, asks, 100, START, answers, NULL), 0);
        for (int j = 0; j < 100; j++) {
            assert_int_equal(answers[j].verdict, j < 40 ? WEIR_ALLOW : WEIR_DENY);
            assert_int_equal(answers[j].remaining, j < 40 ? 39 - j : 0);
        }
        weir_close(w);
    }
}

static void hashed_keys_work_in_batches(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 4, WEIR_MINUTE);
    struct weir *other = unit_limit(WEIR_TOKEN_BUCKET, 4, WEIR_MINUTE);
    struct weir_key key;
    struct weir_answer answers[2];
    size_t bad = 9;
    assert_int_equal(weir_key_init(w, "k", 1, &key), 0);
    struct weir_question asks[2] = {unit_question("k", 1, WEIR_CHECK), {.hashed = &key, .cost = 3}};
    assert_int_equal(weir_ask_batch_at(w, asks, 2, START, answers, &bad), 0);
    assert_int_equal(answers[1].remaining, 0);
    assert_int_equal(weir_ask_batch_at(other, asks, 2, START, answers, &bad), WEIR_ESTALE);
    assert_int_equal(bad, 1);
    weir_close(w);
    weir_close(other);
}

static uint64_t told(void *arg)
{
    return *(uint64_t *)arg;
}

static void the_short_form_reads_the_clock_once(void **state)
{
    uint64_t now = 1700000000 * WEIR_SECOND;
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND);
    o.flags = 0;
    o.clock = told;
    o.clock_arg = &now;
    struct weir *w = unit_open(&o);
    struct weir_question asks[2] = {unit_question("k", 1, WEIR_CHECK),
                                    unit_question("k", 1, WEIR_CHECK)};
    struct weir_answer answers[2];
    assert_int_equal(weir_ask_batch(w, asks, 2, answers, NULL), 0);
    assert_int_equal(answers[0].verdict, WEIR_ALLOW);
    assert_int_equal(answers[1].retry_after_ns, WEIR_SECOND);
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(one_bad_question_stops_all_before_anything_is_decided),
        cmocka_unit_test(a_batch_answers_as_if_asked_one_by_one),
        cmocka_unit_test(the_same_key_many_times_in_a_batch_is_charged_each_time),
        cmocka_unit_test(hashed_keys_work_in_batches),
        cmocka_unit_test(the_short_form_reads_the_clock_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
