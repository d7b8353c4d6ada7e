// test-labels: notsan
/*
 * The seams of a limiter's life: restored backups, opens that fail, forks during an open, machines
 * without /proc, files that somebody made up.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "algo/algo.h"
#include "support/engine/process_image.h"
#include "table/region_file.h"

#define QUOTA 5

static struct weir_options file_limit(const char *dir, int algorithm)
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.memory = WEIR_FILE;
    o.path = process_path(dir, "limits");
    return o;
}

/* ---- a backup that is moved back ---- */

static void use_all_stripes(void *arg)
{
    struct weir *w = process_open(arg);
    for (unsigned key = 0; key < 2000; key++) {
        REQUIRE(process_take(w, key, PROCESS_NOW) == WEIR_ALLOW);
    }
    REQUIRE(weir_change(w, QUOTA, 0, NULL) == 0);
    REQUIRE(weir_block_at(w, "x", 1, WEIR_FOREVER, PROCESS_NOW) == 0);
    weir_close(w);
}

static ino_t inode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_ino;
}

/* ext4 hands out the number of an inode that was just removed: the file then has the number
 * that its anchor names. */
static void a_backup_with_held_locks_that_gets_its_old_inode_number_does_not_hang(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_FIXED_WINDOW);
    o.max_keys = 4000;
    for (int i = 0; i < 5; i++) {
        struct weir *w = process_open(&o);
        ino_t before = inode_of(o.path);
        struct image image;
        image_take(&image, o.path);
        image_hold_locks(&image);
        weir_close(w);
        assert_int_equal(unlink(o.path), 0);
        process_write(o.path, image.bytes, image.size);
        print_message("inode %s\n", inode_of(o.path) == before ? "as before" : "another");
        assert_true(process_run(use_all_stripes, &o));
        image_free(&image);
        assert_int_equal(unlink(o.path), 0);
    }
}

/* ---- an open that fails ---- */

static uint64_t clock_of_test(void *arg)
{
    return *(uint64_t *)arg;
}

static void a_change_under_a_clock_beyond_time_changes_nothing(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET);
    uint64_t now = PROCESS_NOW;
    struct weir_error error;
    struct weir *w;
    o.flags = 0;
    o.clock = clock_of_test;
    o.clock_arg = &now;
    weir_close(process_open(&o));
    struct weir_options changed = o;
    changed.flags = WEIR_CHANGE;
    changed.count = 2 * QUOTA;
    changed.burst = 2 * QUOTA;
    now = UINT64_MAX;
    assert_int_equal(weir_open(&w, &changed, &error), WEIR_ETIME);
    now = PROCESS_NOW;
    w = process_open(&o); /* the old count is in force, or this would be a mismatch */
    assert_int_equal(process_left(w, 1, now), QUOTA);
    weir_close(w);
}

static void a_bad_clock_at_creation_leaves_no_file(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET);
    uint64_t now = UINT64_MAX;
    struct weir *w;
    o.flags = 0;
    o.clock = clock_of_test;
    o.clock_arg = &now;
    assert_int_equal(weir_open(&w, &o, NULL), WEIR_ETIME);
    assert_int_equal(process_dir_entries(*state), 0);
    now = PROCESS_NOW;
    weir_close(process_open(&o));
}

/* A default debt is halved until it fits; the attempts on the way are nobody's business. */
static void an_open_that_succeeds_leaves_the_error_alone(void **state)
{
    struct weir_options o = process_limit(WEIR_SLIDING_WINDOW, 65000);
    struct weir_error error = {77, "untouched"};
    struct weir *w;
    o.period_ns = WEIR_SECOND;
    assert_int_equal(weir_open(&w, &o, &error), 0);
    assert_int_equal(error.code, 77);
    assert_string_equal(error.text, "untouched");
    weir_close(w);
}

/* ---- a fork during an open ---- */

static volatile bool stop;

static void *open_and_close(void *arg)
{
    while (!stop) {
        weir_close(process_open(arg));
    }
    return NULL;
}

static void open_in_child(void *arg)
{
    struct weir *w = process_open(arg);
    REQUIRE(process_take(w, 1, PROCESS_NOW) != WEIR_NEVER);
    weir_close(w);
}

static void a_child_forked_during_an_open_can_open(void **state)
{
    struct weir_options options[2] = {process_limit(WEIR_TOKEN_BUCKET, QUOTA),
                                      file_limit(*state, WEIR_TOKEN_BUCKET)};
    for (int kind = 0; kind < 2; kind++) {
        pthread_t thread[2];
        stop = false;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&thread[i], NULL, open_and_close, &options[kind]), 0);
        }
        for (int i = 0; i < 200 / PROCESS_SCALE; i++) {
            assert_true(process_run(open_in_child, &options[kind]));
        }
        stop = true;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
        }
    }
}

/* ---- without /proc ---- */

static void open_beside_another(void *arg)
{
    struct weir_options *o = arg;
    struct weir *w = process_open(o);
    REQUIRE(process_take(w, 1, PROCESS_NOW) == WEIR_ALLOW);
    weir_close(w);
}

static void live_without_proc(void *arg)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        umount2("/proc", MNT_DETACH) != 0) {
        _exit(77);
    }
    REQUIRE(access("/proc/self", F_OK) != 0);
    struct weir *w = process_open(arg);
    REQUIRE(process_take(w, 1, PROCESS_NOW) == WEIR_ALLOW);
    REQUIRE(process_run(open_beside_another, arg));
    REQUIRE(process_left(w, 1, PROCESS_NOW) == QUOTA - 2);
    weir_close(w);
    w = process_open(arg);
    REQUIRE(process_left(w, 1, PROCESS_NOW) == QUOTA - 2);
    weir_close(w);
}

/* Makes the file and keeps it open until it is told to end. */
static void make_without_proc(void *arg)
{
    struct weir_options *o = arg;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        umount2("/proc", MNT_DETACH) != 0) {
        _exit(77);
    }
    (void)process_open(o);
    (void)pause();
}

static void a_file_made_without_proc_is_opened_by_one_with_proc(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET);
    int status = 0;
    pid_t child = process_start(make_without_proc, &o);
    while (access(o.path, F_OK) != 0 && waitpid(child, &status, WNOHANG) == 0) {
        (void)usleep(1000);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_true(process_run(open_beside_another, &o));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The child of a fork during an open that fails has the descriptor, but not the lock. */
static uint64_t fork_and_fail(void *arg)
{
    pid_t *idle = arg;
    if (*idle == 0) {
        *idle = fork();
        if (*idle == 0) {
            (void)alarm(PROCESS_DEADLINE_S);
            (void)pause();
            _exit(0);
        }
    }
    return UINT64_MAX; /* beyond time: the open fails */
}

static void a_fork_during_an_open_that_fails_does_not_hold_the_file(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET);
    pid_t idle = 0;
    struct weir *w;
    uint64_t now = PROCESS_NOW;
    o.flags = 0;
    o.clock = clock_of_test;
    o.clock_arg = &now;
    weir_close(process_open(&o));
    struct weir_options failing = o;
    failing.clock = fork_and_fail;
    failing.clock_arg = &idle;
    failing.flags = WEIR_MUST_EXIST;
    assert_int_equal(weir_open(&w, &failing, NULL), WEIR_ETIME);
    assert_true(idle > 0);
    assert_true(process_run(open_beside_another, &o));
    assert_int_equal(kill(idle, SIGKILL), 0);
    assert_int_equal(waitpid(idle, NULL, 0), idle);
}

static void a_file_is_made_and_shared_without_proc(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET);
    pid_t child = process_start(live_without_proc, &o);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(status, 0);
    assert_int_equal(process_dir_entries(*state), 1);
}

/* ---- files that somebody made up ---- */

/* Whole and with a good checksum, but with records that are not those of its log. */
static void records_that_do_not_fit_the_log_are_refused(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_SLIDING_LOG);
    struct image image;
    struct weir *w;
    const uint64_t capacities[] = {0, 1, 5, 7, 65537, UINT64_MAX};
    weir_close(process_open(&o));
    image_take(&image, o.path);
    struct region_fixed *f = &image_head(&image)->fixed;
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        f->capacity = capacities[i];
        f->check = region_check(f, sizeof *f);
        process_write(o.path, image.bytes, image.size);
        assert_int_equal(weir_open(&w, &o, NULL), WEIR_EDAMAGED);
    }
    image_free(&image);
}

static void a_time_unit_that_no_bucket_has_is_refused(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET);
    struct image image;
    struct weir *w;
    weir_close(process_open(&o));
    image_take(&image, o.path);
    struct region_fixed *f = &image_head(&image)->fixed;
    f->shift = 70;
    f->check = region_check(f, sizeof *f);
    process_write(o.path, image.bytes, image.size);
    assert_int_equal(weir_open(&w, &o, NULL), WEIR_EDAMAGED);
    image_free(&image);
}

/* ---- windows of a lifetime ---- */

static void a_window_of_a_hundred_years_lives_as_long(void **state)
{
    struct weir_options o = process_limit(WEIR_FIXED_WINDOW, QUOTA);
    uint64_t now = UINT64_C(1800000000) * WEIR_SECOND; /* 2027 */
    struct weir_answer a;
    o.flags = 0;
    o.clock = clock_of_test;
    o.clock_arg = &now;
    o.period_ns = ALGO_LIFE_NS;
    for (int align = 0; align < 2; align++) {
        o.align = align;
        /* The present window began just after `now`, a period ago. */
        o.offset_ns = align == 0 ? now % o.period_ns + 1 : 0;
        struct weir *w = process_open(&o);
        assert_int_equal(weir_check_at(w, "k", 1, 1, now + 30 * 365 * WEIR_DAY, &a), 0);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        weir_close(w);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, process_dir_make, process_dir_remove)
    const struct CMUnitTest tests[] = {
        TEST(a_backup_with_held_locks_that_gets_its_old_inode_number_does_not_hang),
        TEST(a_change_under_a_clock_beyond_time_changes_nothing),
        TEST(a_bad_clock_at_creation_leaves_no_file),
        TEST(an_open_that_succeeds_leaves_the_error_alone),
        TEST(a_child_forked_during_an_open_can_open),
        TEST(a_file_is_made_and_shared_without_proc),
        TEST(a_file_made_without_proc_is_opened_by_one_with_proc),
        TEST(a_fork_during_an_open_that_fails_does_not_hold_the_file),
        TEST(records_that_do_not_fit_the_log_are_refused),
        TEST(a_time_unit_that_no_bucket_has_is_refused),
        TEST(a_window_of_a_hundred_years_lives_as_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
