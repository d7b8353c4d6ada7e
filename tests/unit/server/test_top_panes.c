/*
 * Who was denied most in the last 1, 5 or 15 minutes: what the panes say against an exact list of
 * all denials with their times. Streams are random; the seed is printed, and WEIR_SEED repeats it.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <weir_rules.h>

#include "base/atomic.h"
#include "rules/file/config.h"
#include "server/record/limit_reasons.h"
#include "server/record/top_panes.h"

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define THREADS 3
#define KEYS 4000
#define REASONS 3
#define ROWS (KEYS * REASONS)
#define DENIALS_MOST 400000

static const int reasons[REASONS] = {WEIR_REASON_LIMIT, WEIR_REASON_STORE, WEIR_REASON_BAN};
static const char *const limits[2] = {"api", "login"};

struct denial {
    uint64_t at_ns;
    unsigned row;
};

static struct hash_secret secret;
static struct top_panes *panes;
static struct top *tops[THREADS];
static uint64_t now_ns;
static struct denial *denials;
static size_t denials_count;
static unsigned set_of_row[ROWS];

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* ---- rows: a key with a reason; half of the keys are of each limit ---- */

static const char *limit_of(unsigned row)
{
    return limits[row / REASONS % 2];
}

static size_t key_of(unsigned row, char text[32])
{
    return (size_t)snprintf(text, 32, "key-%u", row / REASONS);
}

static unsigned row_of(const struct top_row *row)
{
    unsigned key = (unsigned)strtoul(row->key + 4, NULL, 10);
    for (unsigned i = 0; i < REASONS; i++) {
        if (reasons[i] == (int)row->reason) {
            assert_string_equal(row->limit, limit_of(key * REASONS + i));
            return key * REASONS + i;
        }
    }
    fail_msg("found reason %u", row->reason);
    return 0;
}

static void add(struct top *top, unsigned row)
{
    char key[32];
    size_t len = key_of(row, key);
    top_add(top, limit_of(row), key, len, reasons[row % REASONS]);
}

/* Finds the set that counts each row: its denial is the first of another turn. */
static void find_sets(void)
{
    uint64_t turn = 1;
    struct top *probe = top_create(&secret, &turn);
    struct top_set found;
    assert_non_null(probe);
    for (unsigned row = 0; row < ROWS; row++, turn++) {
        add(probe, row);
        unsigned set = 0;
        for (top_read_set(probe, turn, 0, &found); found.count == 0;) {
            assert_true(++set < TOP_SETS);
            top_read_set(probe, turn, set, &found);
        }
        set_of_row[row] = set;
    }
    top_destroy(probe);
}

/* ---- the world ---- */

static int make(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof secret.xxh3; i++) {
        secret.xxh3[i] = (unsigned char)(i * i * 37 + 11 * i + 5);
    }
    now_ns = 1000 * SECOND;
    panes = top_panes_create(now_ns);
    assert_non_null(panes);
    for (unsigned i = 0; i < THREADS; i++) {
        tops[i] = top_create(&secret, top_panes_turn(panes));
        assert_non_null(tops[i]);
    }
    denials = calloc(DENIALS_MOST, sizeof *denials);
    assert_non_null(denials);
    denials_count = 0;
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        top_destroy(tops[i]);
    }
    top_panes_destroy(panes);
    free(denials);
    return 0;
}

static void deny(unsigned thread, unsigned row)
{
    assert_true(denials_count < DENIALS_MOST);
    denials[denials_count++] = (struct denial){now_ns, row};
    add(tops[thread], row);
}

static void pass(uint64_t ns)
{
    now_ns += ns;
    top_panes_tick(panes, tops, THREADS, now_ns);
}

/* ---- what must hold ---- */

static void count_exactly(uint64_t since_ns, uint64_t *truth, uint64_t *of_sets)
{
    memset(truth, 0, ROWS * sizeof *truth);
    memset(of_sets, 0, TOP_SETS * sizeof *of_sets);
    for (size_t i = denials_count; i > 0 && denials[i - 1].at_ns >= since_ns; i--) {
        truth[denials[i - 1].row]++;
        of_sets[set_of_row[denials[i - 1].row]]++;
    }
}

/* E1 to E3, for the time that the list says it is of. */
static void assert_list(const struct top_list *list)
{
    static uint64_t truth[ROWS];
    static unsigned char told[ROWS];
    uint64_t of_sets[TOP_SETS];
    uint64_t most = 0;
    count_exactly(list->from_ns, truth, of_sets);
    memset(told, 0, sizeof told);
    for (unsigned s = 0; s < TOP_SETS; s++) {
        most = of_sets[s] > most ? of_sets[s] : most;
    }
    assert_true(list->lost <= most / TOP_WAYS);
    for (size_t i = 0; i < list->count; i++) {
        unsigned row = row_of(list->rows[i]);
        uint64_t error = list->rows[i]->high - list->rows[i]->low;
        assert_in_range(truth[row], list->rows[i]->low, list->rows[i]->high);
        assert_true(error <= of_sets[set_of_row[row]] / TOP_WAYS);
        assert_true(i == 0 || list->rows[i]->high <= list->rows[i - 1]->high);
        assert_int_equal(told[row]++, 0);
    }
    for (unsigned row = 0; row < ROWS; row++) {
        uint64_t bound = of_sets[set_of_row[row]] / TOP_WAYS;
        assert_true(told[row] != 0 || truth[row] <= (bound < list->lost ? bound : list->lost));
    }
}

/* Also, the list is of at least the time asked for, unless the start is nearer, and of at most the
 * time of a joined pane more. `late_ns`: by so much a tick may have come late. */
static void assert_window(unsigned minutes, uint64_t late_ns)
{
    struct top_list list;
    uint64_t window_ns = minutes * MINUTE;
    top_panes_list(panes, tops, THREADS, window_ns, now_ns, &list);
    uint64_t since_ns = now_ns - 1000 * SECOND > window_ns ? now_ns - window_ns : 1000 * SECOND;
    uint64_t pane_ns = TOP_TURN_S * SECOND + late_ns;
    assert_true(list.from_ns <= since_ns);
    assert_true(since_ns - list.from_ns <= (minutes == 1 ? 1 : TOP_JOINED) * pane_ns);
    assert_list(&list);
}

static void assert_windows(uint64_t late_ns)
{
    assert_window(1, late_ns);
    assert_window(5, late_ns);
    assert_window(15, late_ns);
}

/* ---- streams ---- */

/* Zipf with exponent 1, beginning with another key every few minutes. */
static unsigned drifting(uint64_t *random)
{
    double u = (double)(next(random) >> 11) / 9007199254740992.0;
    unsigned key = (unsigned)exp(u * log(ROWS)) - 1;
    return (key + (unsigned)(now_ns / (4 * MINUTE)) * 977) % ROWS;
}

static unsigned any_row(uint64_t *random)
{
    return (unsigned)(next(random) % ROWS);
}

/* A few rows again and again among strangers that come once. */
static unsigned crowded(uint64_t *random)
{
    return next(random) % 2 == 0 ? (unsigned)(next(random) % 20) : any_row(random);
}

typedef unsigned (*stream_fn)(uint64_t *random);

/* Lets about 40 minutes pass; all threads deny, at a rate that changes. Ticks may be late. */
static void run(stream_fn stream, uint64_t seed, bool late)
{
    uint64_t random = seed | 1;
    uint64_t late_ns = late ? 7 * SECOND : SECOND;
    for (unsigned second = 0; second < 2400; second++) {
        unsigned n = (unsigned)(next(&random) % (second / 300 % 2 == 0 ? 250 : 10));
        for (unsigned i = 0; i < n; i++) {
            deny((unsigned)next(&random) % THREADS, stream(&random));
        }
        if (late) {
            now_ns += next(&random) % (6 * SECOND);
        }
        pass(SECOND);
        if (next(&random) % 40 == 0) {
            assert_windows(late_ns);
        }
    }
    assert_windows(late_ns);
}

static uint64_t seed(void)
{
    static uint64_t chosen;
    const char *given = getenv("WEIR_SEED");
    if (chosen == 0) {
        chosen = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
        print_message("# WEIR_SEED=%" PRIu64 "\n", chosen);
    }
    return chosen * UINT64_C(0x9e3779b97f4a7c15);
}

static void the_stated_error_holds_when_offenders_change(void **state)
{
    (void)state;
    run(drifting, seed(), false);
}

static void the_stated_error_holds_in_a_flood_of_strangers(void **state)
{
    (void)state;
    run(any_row, seed() ^ 2, false);
}

static void the_stated_error_holds_when_ticks_are_late(void **state)
{
    (void)state;
    run(crowded, seed() ^ 4, true);
}

/* ---- times ---- */

static size_t listed(unsigned minutes, struct top_list *list)
{
    top_panes_list(panes, tops, THREADS, minutes * MINUTE, now_ns, list);
    return list->count;
}

static void pass_seconds(unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        pass(SECOND);
    }
}

static void a_denial_is_listed_at_once_and_forgotten_in_time(void **state)
{
    static const unsigned minutes[] = {1, 5, 15};
    struct top_list list;
    (void)state;
    for (unsigned age = 0; age < 1000; age++) {
        if (age == 0) {
            deny(0, 7);
        }
        for (unsigned i = 0; i < 3; i++) {
            size_t n = listed(minutes[i], &list);
            assert_true(age > minutes[i] * 60 || n == 1);
            assert_true(age < minutes[i] * 60 + 45 || n == 0);
        }
        pass_seconds(1);
    }
}

static void few_rows_are_counted_exactly_in_every_window(void **state)
{
    struct top_list list;
    (void)state;
    for (unsigned second = 0; second < 900; second++) {
        deny(second % THREADS, 3);
        if (second % 2 == 0) {
            deny(second % THREADS, 4);
        }
        pass_seconds(1);
    }
    for (unsigned minutes = 1; minutes <= 15; minutes += minutes == 1 ? 4 : 10) {
        assert_int_equal(listed(minutes, &list), 2);
        assert_int_equal(list.lost, 0);
        assert_int_equal(row_of(list.rows[0]), 3);
        assert_int_equal(list.rows[0]->low, list.rows[0]->high);
        assert_list(&list);
    }
}

/* After a day, the list is as good as after the first minutes, whoever came before. */
static void the_past_does_not_hide_who_comes_now(void **state)
{
    struct top_list list;
    uint64_t random = seed() | 1;
    (void)state;
    for (unsigned second = 0; second < 3600; second++) {
        for (unsigned i = 0; i < 100; i++) {
            add(tops[0], any_row(&random));
        }
        pass_seconds(1);
    }
    pass_seconds(24 * 3600);
    for (unsigned i = 0; i < 5; i++) {
        deny(i % THREADS, 11);
    }
    assert_int_equal(listed(15, &list), 1);
    assert_int_equal(row_of(list.rows[0]), 11);
    assert_true(list.rows[0]->low == 5 && list.rows[0]->high == 5 && list.lost == 0);
}

static void a_clock_that_jumps_far_loses_nothing_that_is_recent(void **state)
{
    struct top_list list;
    (void)state;
    pass(3600 * SECOND);
    deny(0, 5);
    pass(30 * SECOND); /* the machine slept for half a minute */
    assert_int_equal(listed(1, &list), 1);
    assert_list(&list);
}

static void a_denial_of_an_interrupted_thread_does_no_harm(void **state)
{
    struct top_list list;
    uint64_t turn = *top_panes_turn(panes);
    struct top *slow = top_create(&secret, &turn); /* it never learns of another turn */
    (void)state;
    assert_non_null(slow);
    struct top *all[1] = {slow};
    for (unsigned i = 0; i < 100; i++) {
        now_ns += SECOND;
        top_panes_tick(panes, all, 1, now_ns);
        add(slow, 1);
        top_panes_list(panes, all, 1, MINUTE, now_ns, &list);
        assert_true(list.count == 0 || row_of(list.rows[0]) == 1);
    }
    assert_int_equal(list.count, 0); /* what it counts is of a turn that is over */
    top_destroy(slow);
}

/* ---- threads ---- */

#define FEW_ROWS TOP_WAYS /* they fit into one set, so that all is exact */
#define TURNS 80          /* less than 15 minutes */
#define DENIALS_EACH 100000

static uint64_t progress[THREADS]; /* denials of each thread */

static void *deny_on(void *arg)
{
    uint64_t *own = arg;
    struct top *top = tops[own - progress];
    for (uint64_t i = 0; i < DENIALS_EACH; i++) {
        add(top, (unsigned)(i % FEW_ROWS));
        store_release(own, i + 1);
    }
    return NULL;
}

/* Waits until each thread has denied something since the last turn, or is done: then none of them
 * still counts into a turn before that. */
static void await_progress(uint64_t *seen)
{
    for (unsigned i = 0; i < THREADS; i++) {
        while (load_acquire(&progress[i]) == seen[i] && seen[i] < DENIALS_EACH) {
            (void)sched_yield();
        }
        seen[i] = load_acquire(&progress[i]);
    }
}

static void no_denial_is_lost_when_turns_end_under_threads(void **state)
{
    pthread_t threads[THREADS];
    uint64_t seen[THREADS] = {0};
    struct top_list list;
    (void)state;
    memset(progress, 0, sizeof progress);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, deny_on, &progress[i]), 0);
    }
    for (unsigned turn = 0; turn < TURNS; turn++) {
        await_progress(seen);
        pass(TOP_TURN_S * SECOND);
        for (size_t i = 0, n = listed(15, &list); i < n; i++) {
            assert_true(row_of(list.rows[i]) < FEW_ROWS);
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(listed(15, &list), FEW_ROWS);
    for (unsigned i = 0; i < FEW_ROWS; i++) {
        assert_int_equal(list.rows[i]->high, THREADS * DENIALS_EACH / FEW_ROWS);
        assert_int_equal(list.rows[i]->low, list.rows[i]->high);
    }
}

/* ---- memory ---- */

static void all_of_it_takes_at_most_8_mb(void **state)
{
    size_t all = top_panes_bytes() + TOP_THREADS * top_bytes() + REASON_TABLE;
    (void)state;
    assert_true(all <= TOP_BYTES);
    assert_true(all > TOP_BYTES - TOP_BYTES / 8); /* what is counted in server.memory is near it */
    assert_int_equal(TOP_BYTES, CONFIG_TOP_BYTES);
    assert_int_equal(TOP_BYTES, 8000000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

static int prepare(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof secret.xxh3; i++) {
        secret.xxh3[i] = (unsigned char)(i * i * 37 + 11 * i + 5);
    }
    find_sets();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_stated_error_holds_when_offenders_change),
        TEST(the_stated_error_holds_in_a_flood_of_strangers),
        TEST(the_stated_error_holds_when_ticks_are_late),
        TEST(a_denial_is_listed_at_once_and_forgotten_in_time),
        TEST(few_rows_are_counted_exactly_in_every_window),
        TEST(the_past_does_not_hide_who_comes_now),
        TEST(a_clock_that_jumps_far_loses_nothing_that_is_recent),
        TEST(a_denial_of_an_interrupted_thread_does_no_harm),
        TEST(no_denial_is_lost_when_turns_end_under_threads),
        TEST(all_of_it_takes_at_most_8_mb),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
