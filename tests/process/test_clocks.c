// test-labels: notsan
/*
 * A machine that wakes up with a wrong wall clock. Its time line goes on from
 * there, nobody is locked out for longer than the time to full plus debt, and a
 * clock that the file cannot use is not written into it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "process/faults.h"
#include "support/engine/process_image.h"

#define QUOTA 5
#define YEAR_S (INT64_C(365) * 86400)

static struct weir_options file_limit(int algorithm, const char *path)
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.memory = WEIR_FILE;
    o.path = path;
    o.flags = 0;
    return o;
}

static unsigned take_all(struct weir *w, uint64_t now)
{
    unsigned n = 0;
    while (process_take(w, 1, now) == WEIR_ALLOW) {
        n++;
    }
    return n;
}

/* A file whose key 1 is exhausted, as a reboot finds it. Returns when that was. */
static uint64_t exhaust_and_reboot(const struct weir_options *o)
{
    struct weir *w = process_open(o);
    struct image image;
    uint64_t then;
    assert_int_equal(weir_now(w, &then), 0);
    assert_int_equal(take_all(w, then), QUOTA);
    weir_close(w);
    image_take(&image, o->path);
    image_of_other_boot(&image, then);
    process_write(o->path, image.bytes, image.size);
    image_free(&image);
    return then;
}

static void set_wall_clock(int64_t off_s)
{
    faults_wall_clock_off_s = off_s;
}

static void wake_up_in(int64_t off_s, const char *dir)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct weir_options o = file_limit(algorithm, process_path(dir, "limits"));
        uint64_t now;
        uint64_t later;
        set_wall_clock(0);
        (void)exhaust_and_reboot(&o);
        set_wall_clock(off_s);
        struct weir *w = process_open(&o);
        assert_int_equal(weir_now(w, &now), 0);
        assert_true(take_all(w, now) <= QUOTA); /* at most one extra burst */
        assert_true(take_all(w, now + 2 * WEIR_HOUR + WEIR_SECOND) >= 1);
        /*
         * Whoever puts the clock right moves nobody who has the file open, or opens it later;
         * unless it was set for the first time, from before the file's own beginning.
         */
        set_wall_clock(0);
        now = off_s < 0 ? clock_unix_ns() : now;
        assert_int_equal(weir_now(w, &later), 0);
        assert_true(later >= now && later - now < WEIR_HOUR);
        weir_close(w);
        w = process_open(&o);
        assert_int_equal(weir_now(w, &later), 0);
        assert_true(later >= now && later - now < WEIR_HOUR);
        weir_close(w);
        assert_int_equal(unlink(o.path), 0);
    }
}

static void a_boot_in_the_distant_past_locks_nobody_out(void **state)
{
    wake_up_in(-50 * YEAR_S, *state);
}

static void a_boot_some_years_ahead_locks_nobody_out(void **state)
{
    wake_up_in(3 * YEAR_S, *state);
}

/* Then the clock is right again at the next boot: all states are of the future. */
static void the_boot_after_a_boot_ahead_locks_nobody_out(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct weir_options o = file_limit(algorithm, process_path(*state, "limits"));
        uint64_t wrong;
        uint64_t now;
        set_wall_clock(3 * YEAR_S);
        wrong = exhaust_and_reboot(&o);
        set_wall_clock(0);
        /* Its time line began when it was made, by the wrong clock: it goes on from there. */
        struct weir *w = process_open(&o);
        assert_int_equal(weir_now(w, &now), 0);
        assert_true(now <= wrong);
        assert_true(take_all(w, now) <= QUOTA);
        assert_true(take_all(w, now + 2 * WEIR_HOUR + WEIR_SECOND) >= 1);
        weir_close(w);
        assert_int_equal(unlink(o.path), 0);
    }
}

/* Words of ten million a second last some years; in 2080 they have run out. */
static void a_clock_beyond_the_time_line_is_refused_and_not_kept(void **state)
{
    struct weir_options o = file_limit(WEIR_TOKEN_BUCKET, process_path(*state, "limits"));
    size_t bytes;
    o.count = 10000000;
    o.burst = QUOTA;
    o.period_ns = WEIR_SECOND;
    set_wall_clock(0);
    (void)exhaust_and_reboot(&o);
    unsigned char *before = process_read(o.path, &bytes);
    set_wall_clock(54 * YEAR_S);
    struct weir_error error = {0, ""};
    struct weir *w;
    assert_int_equal(weir_open(&w, &o, &error), WEIR_ETIME);
    assert_null(w);
    assert_true(error.text[0] != '\0');
    assert_true(process_same(o.path, before, bytes));
    set_wall_clock(0); /* in the same boot */
    w = process_open(&o);
    uint64_t now;
    assert_int_equal(weir_now(w, &now), 0);
    assert_int_equal(process_take(w, 1, now), WEIR_ALLOW);
    weir_close(w);
    free(before);
}

static int right_clock(void **state)
{
    set_wall_clock(0);
    return process_dir_make(state);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, right_clock, process_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_boot_in_the_distant_past_locks_nobody_out),
        IN_DIR(a_boot_some_years_ahead_locks_nobody_out),
        IN_DIR(the_boot_after_a_boot_ahead_locks_nobody_out),
        IN_DIR(a_clock_beyond_the_time_line_is_refused_and_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
