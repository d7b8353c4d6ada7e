// test-labels: long
// test-timeout: 600
/*
 * Tests the cost of a store that is gone for a minute, at 10,000 questions per second. Answers are
 * no later than a bare timer of the same length in the same process, plus one deadline; threads,
 * files and memory do not grow.
 */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

#define DEADLINE_NS (5 * WEIR_MILLISECOND)
#define OUTAGE_NS (60 * WEIR_SECOND)
#define EACH_MS 10 /* questions in each millisecond */

static struct redis_world world;

/* ---- durations ---- */

#define SAMPLES_MAX 1000000

struct samples {
    uint32_t us[SAMPLES_MAX];
    size_t count;
};

static void add(struct samples *s, uint64_t ns)
{
    if (s->count < SAMPLES_MAX) {
        s->us[s->count++] = (uint32_t)(ns / WEIR_MICROSECOND);
    }
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint64_t p999_ns(struct samples *s)
{
    qsort(s->us, s->count, sizeof s->us[0], by_size);
    return s->count > 0 ? s->us[s->count - 1 - s->count / 1000] * WEIR_MICROSECOND : 0;
}

/* ---- a bare timer, again and again ---- */

struct timers {
    uint64_t stop;
    struct samples took;
};

static void *sleep_on(void *arg)
{
    struct timers *t = arg;
    while (load_acquire(&t->stop) == 0) {
        struct timespec time = {0, (long)DEADLINE_NS};
        uint64_t began_ns = clock_boot_ns();
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
        add(&t->took, clock_boot_ns() - began_ns);
    }
    return NULL;
}

/* ---- questions ---- */

struct asker {
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit;
    uint64_t out;
    uint64_t asked;
    uint64_t degraded;
    uint64_t longest_ns;
    struct samples took;
};

struct question {
    struct asker *asker;
    uint64_t asked_ns;
};

static void note(struct asker *a, uint64_t asked_ns, const struct weir_answer *answer)
{
    uint64_t ns = clock_boot_ns() - asked_ns;
    add(&a->took, ns);
    a->longest_ns = ns > a->longest_ns ? ns : a->longest_ns;
    a->degraded += (answer->flags & WEIR_FLAG_DEGRADED) != 0;
}

static void on_answer(void *arg, int error, const struct weir_answer *answer)
{
    struct question *q = arg;
    assert_int_equal(error, 0);
    q->asker->out--;
    note(q->asker, q->asked_ns, answer);
    free(q);
}

static void ask(struct asker *a, uint64_t number)
{
    char key[32];
    int len = snprintf(key, sizeof key, "%llu", (unsigned long long)(number % 1000));
    struct weir_question ask = {.key = key, .key_len = (size_t)len, .cost = 1};
    struct question *q = malloc(sizeof *q);
    struct weir_answer answer;
    *q = (struct question){a, clock_boot_ns()};
    a->asked++;
    int said = weir_fleet_ask(a->limit, &ask, &answer, on_answer, q);
    assert_true(said >= 0);
    if (said == 1) {
        note(a, q->asked_ns, &answer);
        free(q);
    } else {
        a->out++;
    }
}

/* Asks for that long. It does not wait in poll(), but runs the loop every 100 us. */
static void ask_for(struct asker *a, uint64_t ns)
{
    uint64_t began_ns = clock_boot_ns();
    uint64_t due = 0;
    for (uint64_t now_ns = began_ns; now_ns < began_ns + ns; now_ns = clock_boot_ns()) {
        for (; due < (now_ns - began_ns) / WEIR_MILLISECOND * EACH_MS; due++) {
            ask(a, due);
        }
        (void)weir_fleet_run(a->fleet);
        (void)usleep(100);
    }
}

/* ---- the cost ---- */

static unsigned entries(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n;
}

struct cost {
    unsigned threads;
    unsigned files;
    size_t bytes;
};

static struct cost cost_now(void)
{
    return (struct cost){entries("/proc/self/task"), entries("/proc/self/fd"),
                         mallinfo2().uordblks};
}

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

static void a_minute_without_the_store_costs_nothing_but_its_answers(void **state)
{
    static struct timers timers;
    static struct asker a;
    pthread_t thread;
    redis_world_alone(&world, NULL);
    a.fleet = fleet_open_at(world.url, WEIR_FLEET_CALLERS_LOOP, DEADLINE_NS);
    struct weir_fleet_limit_options o = fleet_hourly("outage", 1000000);
    a.limit = fleet_limit_of(a.fleet, &o);
    ask_for(&a, 2 * WEIR_SECOND);
    uint64_t before = a.asked;
    uint64_t degraded = a.degraded;
    a.took.count = 0;
    a.longest_ns = 0;
    assert_int_equal(pthread_create(&thread, NULL, sleep_on, &timers), 0);
    redis_node_pause(&world.node[0]);
    ask_for(&a, 2 * WEIR_SECOND);
    struct cost early = cost_now();
    ask_for(&a, OUTAGE_NS);
    struct cost late = cost_now();
    redis_node_resume(&world.node[0]);
    uint64_t began_ns = clock_boot_ns();
    for (uint64_t seen = ~UINT64_C(0); seen != a.degraded;) {
        seen = a.degraded;
        ask_for(&a, 20 * WEIR_MILLISECOND);
    }
    uint64_t recovered_ns = clock_boot_ns() - began_ns;
    store_release(&timers.stop, 1);
    (void)pthread_join(thread, NULL);
    uint64_t answer_ns = p999_ns(&a.took);
    uint64_t timer_ns = p999_ns(&timers.took);
    printf("%llu asked, %llu degraded; p99.9 of answers %.2f ms, of a bare timer of %.0f ms %.2f "
           "ms; longest "
           "%.2f ms; good after %.0f ms\n",
           (unsigned long long)(a.asked - before), (unsigned long long)(a.degraded - degraded),
           ms(answer_ns), ms(DEADLINE_NS), ms(timer_ns), ms(a.longest_ns), ms(recovered_ns));
    assert_true(a.degraded - degraded > (a.asked - before) / 2);
    assert_true(a.longest_ns < 10 * DEADLINE_NS + timer_ns);
    assert_true(answer_ns <= timer_ns + DEADLINE_NS);
    assert_int_equal(early.threads, late.threads);
    assert_in_range(late.files, 0, early.files + 1); /* a probe may be in progress */
    assert_true(late.bytes < early.bytes + 65536);
    weir_fleet_limit_close(a.limit);
    weir_fleet_close(a.fleet);
    redis_world_stop(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_without_the_store_costs_nothing_but_its_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
