// test-labels: notsan
/*
 * Every way to open a limiter or a replay, with the n-th call to the system
 * failing, for every n: once, and from then on for ever. The caller gets an
 * error with a text or a limiter that works; nothing leaks, nothing is left
 * behind, and the next try without the fault succeeds.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/replay/replay_engine.h"
#include "process/faults.h"
#include "support/engine/process_fixture.h"

#define QUOTA 5

/* One trial, in a process of its own: what is done once per process fails there too. */
struct trial {
    struct weir_options o;
    const char *dir;
    const char *image; /* the file to start with; NULL: none */
    unsigned n;        /* which call fails */
    bool for_ever;
    unsigned *failed; /* shared: how many did */
};

static bool same_holdings(struct holdings a, struct holdings b)
{
    return a.allocations == b.allocations && a.descriptors == b.descriptors &&
           a.mappings == b.mappings;
}

/* The whole quota of a new key, and not more. */
static void require_works(struct weir *w, unsigned key)
{
    uint64_t now;
    REQUIRE(weir_now(w, &now) == 0);
    uint64_t quota = process_left(w, key, now);
    REQUIRE(quota >= QUOTA);
    for (uint64_t got = 0; got < quota; got++) {
        REQUIRE(process_take(w, key, now) == WEIR_ALLOW);
    }
    REQUIRE(process_take(w, key, now) == WEIR_DENY);
}

static void require_opens(const struct weir_options *o, unsigned key)
{
    struct weir *w = process_open(o);
    require_works(w, key);
    weir_close(w);
}

static void require_nothing_left_behind(const struct trial *t, bool opened)
{
    unsigned files = (t->image != NULL) + (t->image != NULL || (opened && t->o.path != NULL));
    REQUIRE(process_dir_entries(t->dir) == files);
}

static void open_with_a_fault(void *arg)
{
    struct trial *t = arg;
    struct weir_error error = {0, ""};
    struct weir *w = (struct weir *)(uintptr_t)1;
    struct holdings before = faults_holdings();
    faults_arm(t->n, t->for_ever);
    int e = weir_open(&w, &t->o, &error);
    *t->failed = faults_disarm();
    require_nothing_left_behind(t, e == 0);
    if (e != 0) {
        REQUIRE(w == NULL && error.code == e && error.text[0] != '\0');
        REQUIRE(same_holdings(before, faults_holdings()));
    } else {
        require_works(w, 1);
        if (t->o.path != NULL) {
            require_opens(&t->o, 2); /* another user beside the one who had the fault */
        }
        weir_close(w);
        REQUIRE(same_holdings(before, faults_holdings()));
    }
    require_opens(&t->o, 3);
    REQUIRE(same_holdings(before, faults_holdings()));
}

/* Starts from the same file each time, or from none. */
static void set_stage(const struct trial *t, bool as_it_was)
{
    size_t bytes;
    if (t->o.path == NULL) {
        return;
    }
    if (t->image == NULL || !as_it_was) {
        (void)unlink(t->o.path); /* a new inode: a copy */
    }
    if (t->image != NULL) {
        unsigned char *data = process_read(t->image, &bytes);
        process_write(t->o.path, data, bytes);
        free(data);
    }
}

static unsigned fail_each_call(struct trial *t, void (*run)(void *), bool as_it_was)
{
    unsigned calls = 0;
    t->failed = process_shared_memory(sizeof *t->failed);
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        t->for_ever = for_ever != 0;
        for (t->n = 1;; t->n++) {
            set_stage(t, as_it_was);
            bool well = process_run(run, t);
            if (!well) {
                fprintf(stderr, "call %u failing %s\n", t->n, t->for_ever ? "for ever" : "once");
            }
            assert_true(well);
            if (*t->failed == 0) {
                break;
            }
            calls++;
        }
    }
    process_shared_free(t->failed, sizeof *t->failed);
    return calls;
}

static struct trial trial_of(int algorithm, int memory, const char *dir)
{
    struct trial t = {.o = process_limit(algorithm, QUOTA), .dir = dir};
    t.o.memory = memory;
    t.o.path = memory == WEIR_FILE ? process_path(dir, "limits") : NULL;
    t.o.flags = 0;
    return t;
}

static void private_memory_survives_each_failing_call(void **state)
{
    struct trial t = trial_of(WEIR_TOKEN_BUCKET, WEIR_PRIVATE, *state);
    assert_in_range(fail_each_call(&t, open_with_a_fault, false), 20, 200);
    t.o.flags = WEIR_PREFAULT | WEIR_HUGE_PAGES;
    t.o.algorithm = WEIR_SLIDING_LOG;
    t.o.count = 5000; /* records large enough for large pages */
    assert_in_range(fail_each_call(&t, open_with_a_fault, false), 20, 200);
}

static void shared_memory_survives_each_failing_call(void **state)
{
    struct trial t = trial_of(WEIR_SLIDING_LOG, WEIR_SHARED, *state);
    assert_in_range(fail_each_call(&t, open_with_a_fault, false), 20, 200);
}

static void making_a_file_survives_each_failing_call(void **state)
{
    struct trial t = trial_of(WEIR_TOKEN_BUCKET, WEIR_FILE, *state);
    assert_in_range(fail_each_call(&t, open_with_a_fault, false), 25, 200);
}

/* A file to copy, beside the one that is opened. */
static void make_image(struct trial *t)
{
    struct weir_options o = t->o;
    o.path = t->image = process_path(t->dir, "image");
    weir_close(process_open(&o));
}

static void opening_a_copy_survives_each_failing_call(void **state)
{
    struct trial t = trial_of(WEIR_TOKEN_BUCKET, WEIR_FILE, *state);
    make_image(&t);
    assert_in_range(fail_each_call(&t, open_with_a_fault, false), 25, 200);
}

static void opening_a_file_survives_each_failing_call(void **state)
{
    struct trial t = trial_of(WEIR_TOKEN_BUCKET, WEIR_FILE, *state);
    weir_close(process_open(&t.o)); /* at home, with the inode that it keeps */
    t.image = process_path(t.dir, "image");
    process_copy(t.o.path, t.image);
    assert_in_range(fail_each_call(&t, open_with_a_fault, true), 10, 100);
}

static void changing_a_file_survives_each_failing_call(void **state)
{
    struct trial t = trial_of(WEIR_TOKEN_BUCKET, WEIR_FILE, *state);
    t.o.count = QUOTA + 3;
    weir_close(process_open(&t.o));
    t.image = process_path(t.dir, "image");
    process_copy(t.o.path, t.image);
    t.o.count = QUOTA;
    t.o.flags = WEIR_CHANGE;
    assert_in_range(fail_each_call(&t, open_with_a_fault, true), 10, 100);
}

/* ---- a refused open changes nothing ---- */

static void open_and_compare(void *arg)
{
    struct trial *t = arg;
    size_t bytes;
    unsigned char *before = process_read(t->o.path, &bytes);
    struct weir *w;
    faults_arm(t->n, t->for_ever);
    int e = weir_open(&w, &t->o, NULL);
    *t->failed = faults_disarm();
    REQUIRE(e == 0 || process_same(t->o.path, before, bytes));
    weir_close(w);
    free(before);
}

static void an_open_that_fails_leaves_the_file_as_it_was(void **state)
{
    struct trial t = trial_of(WEIR_FIXED_WINDOW, WEIR_FILE, *state);
    weir_close(process_open(&t.o));
    t.image = process_path(t.dir, "image");
    process_copy(t.o.path, t.image);
    assert_in_range(fail_each_call(&t, open_and_compare, true), 10, 100);
}

/* ---- threads, whose numbers are a convenience ---- */

static void *take_in_thread(void *arg)
{
    require_works(arg, 7);
    return NULL;
}

/* The first use in this process, so that it has to get thread numbers first. */
static void use_in_threads_with_a_fault(void *arg)
{
    struct trial *t = arg;
    struct weir_stats stats = {.size = sizeof stats};
    pthread_t thread;
    struct weir *w;
    faults_arm(t->n, t->for_ever);
    int e = weir_open(&w, &t->o, NULL);
    if (e == 0) {
        require_works(w, 5);
    }
    *t->failed = faults_disarm();
    if (e != 0) {
        w = process_open(&t->o);
        require_works(w, 5);
    }
    REQUIRE(pthread_create(&thread, NULL, take_in_thread, w) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    require_works(w, 6);
    REQUIRE(weir_stats_read(w, &stats) == 0 && stats.allowed == 3 * QUOTA && stats.denied == 3);
    weir_close(w);
}

static void decisions_are_made_and_counted_without_a_thread_number(void **state)
{
    struct trial t = trial_of(WEIR_TOKEN_BUCKET, WEIR_SHARED, *state);
    assert_in_range(fail_each_call(&t, use_in_threads_with_a_fault, false), 20, 200);
}

/* ---- replay ---- */

#define CLIENTS 3000u

/* Large blocks of the heap come and go as mappings; that is the allocator's affair. */
static bool same_but_mappings(struct holdings a, struct holdings b)
{
    b.mappings = a.mappings;
    return same_holdings(a, b);
}

static const struct replay_limit one_in_100 = {.capacity = 1, .window = 100, .unit_ns = 1};

/* Returns 1 if the client's request is allowed, 0 if not, or WEIR_E... */
static int decide(struct replay_engine *e, unsigned client)
{
    struct replay_request q = {{(const char *)&client, sizeof client}, 0, 1};
    struct replay_ask ask = replay_engine_prepare(e, &q);
    struct replay_answer a;
    int failed = replay_engine_decide(e, &ask, &a, NULL);
    return failed != 0 ? failed : a.allow;
}

static void replay_with_a_fault(void *arg)
{
    struct trial *t = arg;
    struct holdings before = faults_holdings();
    struct weir_error error = {0, ""};
    struct replay_engine *r;
    unsigned refused = 0;
    faults_arm(t->n, t->for_ever);
    int e = replay_engine_create(&r, &one_in_100, &error);
    for (unsigned i = 0; i < CLIENTS && e == 0; i++) {
        int verdict = decide(r, i);
        REQUIRE(verdict == 1 || verdict == WEIR_ENOMEM);
        refused += verdict == WEIR_ENOMEM;
    }
    *t->failed = faults_disarm();
    if (e != 0) {
        REQUIRE(r == NULL && error.code == e && error.text[0] != '\0');
        REQUIRE(same_but_mappings(before, faults_holdings()));
        e = replay_engine_create(&r, &one_in_100, &error);
        REQUIRE(e == 0);
        refused = CLIENTS;
    }
    for (unsigned i = 0; i < CLIENTS;
         i++) { /* who was refused is new, the others have had theirs */
        refused -= decide(r, i) == 1;
    }
    REQUIRE(refused == 0 && replay_engine_clients(r) == CLIENTS);
    replay_engine_destroy(r);
    REQUIRE(same_but_mappings(before, faults_holdings()));
}

static void a_replay_survives_each_failing_call(void **state)
{
    struct trial t = {.dir = *state};
    assert_in_range(fail_each_call(&t, replay_with_a_fault, false), 6, 30);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, process_dir_make, process_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(decisions_are_made_and_counted_without_a_thread_number), /* first: see there */
        IN_DIR(private_memory_survives_each_failing_call),
        IN_DIR(shared_memory_survives_each_failing_call),
        IN_DIR(making_a_file_survives_each_failing_call),
        IN_DIR(opening_a_copy_survives_each_failing_call),
        IN_DIR(opening_a_file_survives_each_failing_call),
        IN_DIR(changing_a_file_survives_each_failing_call),
        IN_DIR(an_open_that_fails_leaves_the_file_as_it_was),
        IN_DIR(a_replay_survives_each_failing_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
