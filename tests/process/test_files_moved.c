// test-labels: notsan
/*
 * Files that were copied, that saw a power cut, that come from another boot, or
 * whose machine woke up with a wrong clock: they open, nobody hangs, keys keep
 * their state, and nobody is locked out for longer than the time to full.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_image.h"

#define QUOTA 5
#define KEYS 40

static struct weir_options file_limit(int algorithm, const char *path)
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.memory = WEIR_FILE;
    o.path = path;
    o.flags = 0;
    return o;
}

/* Key i has taken i mod (QUOTA + 1) units. Returns the time at which. */
static uint64_t populate(struct weir *w)
{
    uint64_t now;
    REQUIRE(weir_now(w, &now) == 0);
    for (unsigned i = 0; i < KEYS; i++) {
        for (unsigned n = 0; n < i % (QUOTA + 1); n++) {
            REQUIRE(process_take(w, i, now) == WEIR_ALLOW);
        }
    }
    return now;
}

static void require_populated(struct weir *w, uint64_t now)
{
    for (unsigned i = 0; i < KEYS; i++) {
        REQUIRE(process_left(w, i, now) == QUOTA - i % (QUOTA + 1));
        REQUIRE(scene_slots_of(w, scene_place(w, i).tag, false) == (i % (QUOTA + 1) != 0));
    }
    REQUIRE(scene_slots_of(w, 0, true) == 0);
}

/* ---- copies ---- */

struct user {
    struct weir_options o;
    volatile int *ready;
};

static void hold_all_locks(void *arg)
{
    struct user *u = arg;
    struct weir *w = process_open(&u->o);
    for (uint64_t i = 0; i <= w->table.stripe_mask; i++) {
        lock_take(&w->table.stripes[i], w->table.owner);
    }
    lock_take(&w->head->change, w->table.owner);
    *u->ready = 1;
    for (;;) {
        (void)pause();
    }
}

static void insert_for_ever(void *arg)
{
    struct user *u = arg;
    struct weir *w = process_open(&u->o);
    for (unsigned i = 1000;; i++) {
        (void)process_take(w, i, PROCESS_NOW);
        unsigned old = i - 40;
        (void)weir_reset(w, &old, sizeof old);
        *u->ready = 1;
    }
}

static pid_t start_user(struct user *u, void (*fn)(void *))
{
    *u->ready = 0;
    pid_t pid = process_start(fn, u);
    while (*u->ready == 0) {
        (void)usleep(100);
    }
    return pid;
}

static void end_user(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

struct copy_case {
    struct weir_options o;
    uint64_t then;
    bool others; /* who open it at the same time: do not change it for them */
};

static void use_populated_copy(void *arg)
{
    struct copy_case *c = arg;
    struct weir *w = process_open(&c->o);
    uint64_t now;
    require_populated(w, c->then);
    REQUIRE(weir_now(w, &now) == 0 && now >= c->then);
    REQUIRE(process_take(w, 12345, now) == WEIR_ALLOW);
    REQUIRE(c->others || weir_change(w, QUOTA - 1, c->o.queue, NULL) == 0);
    REQUIRE(c->others || weir_change(w, QUOTA, c->o.queue, NULL) == 0);
    weir_close(w);
}

static void a_copy_made_while_locks_are_held_inside_opens_and_works(void **state)
{
    struct user u = {.ready = process_shared_memory(sizeof(int))};
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct weir_options o = file_limit(algorithm, process_path(*state, "limits"));
        struct weir *w = process_open(&o);
        struct copy_case c = {o, populate(w), false};
        weir_close(w);
        u.o = o;
        pid_t pid = start_user(&u, hold_all_locks);
        c.o.path = process_path(*state, "copy");
        process_copy(o.path, c.o.path);
        assert_true(process_run(use_populated_copy, &c));
        end_user(pid);
        c.o.path = o.path; /* and the original, which its user died with */
        assert_true(process_run(use_populated_copy, &c));
        assert_int_equal(unlink(o.path), 0);
        assert_int_equal(unlink(process_path(*state, "copy")), 0);
    }
    process_shared_free((void *)(uintptr_t)u.ready, sizeof(int));
}

static void use_any_copy(void *arg)
{
    struct weir_options *o = arg;
    struct weir *w = process_open(o);
    uint64_t capacity = 2 * w->table.half * LINE_SLOTS;
    REQUIRE(scene_slots_of(w, 0, true) == 0);
    for (uint64_t i = 0; i < capacity; i++) {
        uint64_t tag = w->table.lines[i / LINE_SLOTS].slot[i % LINE_SLOTS].tag;
        REQUIRE(tag == 0 || scene_slots_of(w, tag, false) == 1);
    }
    for (unsigned key = 0; key < 2 * capacity; key++) {
        REQUIRE(process_take(w, key, PROCESS_NOW) == WEIR_ALLOW);
    }
    weir_close(w);
}

static void a_copy_made_in_the_middle_of_everything_opens_and_works(void **state)
{
    struct user u = {.ready = process_shared_memory(sizeof(int))};
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_LOG; algorithm += 2) {
        struct weir_options o = file_limit(algorithm, process_path(*state, "limits"));
        o.flags = WEIR_EXPLICIT_TIME;
        u.o = o;
        pid_t pid = start_user(&u, insert_for_ever);
        struct weir_options copy = o;
        copy.path = process_path(*state, "copy");
        for (unsigned i = 0; i < 50 / PROCESS_SCALE; i++) {
            process_copy(o.path, copy.path);
            assert_true(process_run(use_any_copy, &copy));
            assert_int_equal(unlink(copy.path), 0);
        }
        end_user(pid);
        assert_true(process_run(use_any_copy, &o));
        assert_int_equal(unlink(o.path), 0);
    }
    process_shared_free((void *)(uintptr_t)u.ready, sizeof(int));
}

/* ---- boots ---- */

static void a_power_cut_in_every_state_of_a_move_loses_nobody(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct weir_options o = file_limit(algorithm, process_path(*state, "limits"));
        struct weir *w = process_open(&o);
        struct copy_case c = {o, populate(w), false};
        struct image image;
        unsigned interrupted = 0;
        image_take(&image, o.path);
        for (unsigned i = 0; i < KEYS; i++) {
            interrupted +=
                image_interrupt_move(&image, scene_place(w, i), (enum image_mark)(i % 4));
        }
        assert_true(interrupted >= 4);
        weir_close(w);
        image_hold_locks(&image);
        image_head(&image)->counts.blocks.count = 77;
        image_of_other_boot(&image, c.then);
        process_write(o.path, image.bytes, image.size);
        assert_true(process_run(use_populated_copy, &c));
        image_free(&image);
        assert_int_equal(unlink(o.path), 0);
    }
}

static void blocks_outlive_a_boot(void **state)
{
    struct weir_options o = file_limit(WEIR_TOKEN_BUCKET, process_path(*state, "limits"));
    struct weir *w = process_open(&o);
    struct image image;
    uint64_t now;
    assert_int_equal(weir_now(w, &now), 0);
    assert_int_equal(weir_block(w, "alice", 5, now + WEIR_HOUR), 0);
    image_take(&image, o.path);
    weir_close(w);
    image_of_other_boot(&image, now);
    image_head(&image)->counts.blocks.count = 0; /* were never written back */
    image_head(&image)->counts.blocks.last_end = 0;
    process_write(o.path, image.bytes, image.size);
    image_free(&image);
    w = process_open(&o);
    struct weir_answer a;
    assert_int_equal(weir_check_at(w, "alice", 5, 1, now + WEIR_MINUTE, &a), 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    weir_close(w);
}

/*
 * Before the boot, time stood a thousand hours later than it does now: states
 * are of a far future. At most one extra quota, and no wait beyond time to full
 * plus debt: two periods, since max_debt is a quota.
 */
static void after_a_boot_with_a_clock_set_back_nobody_waits_beyond_time_to_full(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct weir_options o = file_limit(algorithm, process_path(*state, "limits"));
        struct weir *w = process_open(&o);
        struct image image;
        uint64_t now;
        uint64_t got = 0;
        assert_int_equal(weir_now(w, &now), 0);
        uint64_t wrong = now + 1000 * WEIR_HOUR;
        while (process_take(w, 1, wrong) == WEIR_ALLOW) {
        }
        image_take(&image, o.path);
        weir_close(w);
        image_of_other_boot(&image, wrong);
        process_write(o.path, image.bytes, image.size);
        image_free(&image);
        w = process_open(&o);
        uint64_t again;
        assert_int_equal(weir_now(w, &again), 0);
        assert_true(again >= now && again < now + WEIR_HOUR);
        while (process_take(w, 1, again) == WEIR_ALLOW) {
            got++;
        }
        assert_true(got <= QUOTA);
        assert_int_equal(process_take(w, 1, again + 2 * WEIR_HOUR + WEIR_SECOND), WEIR_ALLOW);
        weir_close(w);
        assert_int_equal(unlink(o.path), 0);
    }
}

/* Anchored in this boot, by a clock that was a year ahead or half a day behind: time goes on. */
static void a_time_line_under_a_wrong_clock_goes_on_evenly(void **state)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct weir_options o = file_limit(WEIR_SLIDING_LOG, process_path(*state, "limits"));
        struct weir *w = process_open(&o);
        struct image image;
        uint64_t a;
        uint64_t b;
        uint64_t wall;
        assert_int_equal(weir_now(w, &wall), 0);
        weir_close(w);
        image_take(&image, o.path);
        image_anchor(&image)->unix_ns += ahead != 0 ? 365 * WEIR_DAY : -12 * WEIR_HOUR;
        process_write(o.path, image.bytes, image.size);
        image_free(&image);
        w = process_open(&o);
        struct weir *second = process_open(&o);
        assert_int_equal(weir_now(w, &a), 0);
        assert_int_equal(weir_now(second, &b), 0);
        assert_true(b >= a && b - a < WEIR_MINUTE);
        assert_true(ahead != 0 ? a > wall + 364 * WEIR_DAY : a < wall - 11 * WEIR_HOUR);
        struct weir_answer answer;
        for (unsigned i = 0; i < QUOTA; i++) {
            assert_int_equal(weir_check(w, "bob", 3, 1, &answer), 0);
            assert_int_equal(answer.verdict, WEIR_ALLOW);
        }
        assert_int_equal(weir_check(second, "bob", 3, 1, &answer), 0);
        assert_int_equal(answer.verdict, WEIR_DENY);
        assert_true(answer.retry_after_ns <= WEIR_HOUR);
        weir_close(second);
        weir_close(w);
        assert_int_equal(unlink(o.path), 0);
    }
}

/* ---- several openers of a file of another boot ---- */

static bool waits_for_a_lock(pid_t pid)
{
    char path[64];
    char text[64] = "";
    snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
    FILE *f = fopen(path, "r");
    size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f != NULL) {
        (void)fclose(f);
    }
    return n > 0 && (strstr(text, "lock") != NULL || strcmp(text, "0") == 0);
}

/* Stands in for one who is recovering the file, and never comes to an end. */
static void lock_and_wait(void *arg)
{
    struct user *u = arg;
    int fd = open(u->o.path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
    *u->ready = 1;
    for (;;) {
        (void)pause();
    }
}

static void those_who_wait_take_over_when_the_one_who_recovers_is_killed(void **state)
{
    struct weir_options o = file_limit(WEIR_TOKEN_BUCKET, process_path(*state, "limits"));
    struct user u = {o, process_shared_memory(sizeof(int))};
    struct weir *w = process_open(&o);
    struct copy_case c = {o, populate(w), true};
    struct image image;
    pid_t pid[4];
    unsigned well = 0;
    weir_close(w);
    image_take(&image, o.path);
    image_of_other_boot(&image, c.then);
    image_hold_locks(&image);
    process_write(o.path, image.bytes, image.size);
    image_free(&image);
    pid_t first = start_user(&u, lock_and_wait);
    for (unsigned i = 0; i < 4; i++) {
        pid[i] = process_start(use_populated_copy, &c);
    }
    for (unsigned tries = 0; tries < 2000 && !waits_for_a_lock(pid[3]); tries++) {
        (void)usleep(100);
    }
    end_user(first);
    for (unsigned i = 0; i < 4; i++) {
        well += process_ended_well(pid[i]);
    }
    assert_int_equal(well, 4);
    process_shared_free((void *)(uintptr_t)u.ready, sizeof(int));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_copy_made_while_locks_are_held_inside_opens_and_works,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(a_copy_made_in_the_middle_of_everything_opens_and_works,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(a_power_cut_in_every_state_of_a_move_loses_nobody,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(blocks_outlive_a_boot, process_dir_make,
                                        process_dir_remove),
        cmocka_unit_test_setup_teardown(
            after_a_boot_with_a_clock_set_back_nobody_waits_beyond_time_to_full, process_dir_make,
            process_dir_remove),
        cmocka_unit_test_setup_teardown(a_time_line_under_a_wrong_clock_goes_on_evenly,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(
            those_who_wait_take_over_when_the_one_who_recovers_is_killed, process_dir_make,
            process_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
