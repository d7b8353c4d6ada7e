/*
 * Files that weir 0.1 made (tests/process/format1): 30 keys of which key i took i mod 10
 * units at 1000 s, and 8 blocks, the odd ones without end. They are converted when they are
 * opened, and lose nothing.
 */
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_fixture.h"

#define NOW (1000 * WEIR_SECOND)
#define BLOCK_END (NOW + 1000000 * WEIR_SECOND)

static const char *const names[] = {"",
                                    "token_bucket.weir",
                                    "leaky_bucket.weir",
                                    "fixed_window.weir",
                                    "sliding_window.weir",
                                    "sliding_log.weir"};

static struct weir_options options_of(const char *dir, int algorithm)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.memory = WEIR_FILE;
    o.count = 10;
    o.period_ns = 60 * WEIR_SECOND;
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? 9 : 0;
    o.align = algorithm == WEIR_FIXED_WINDOW ? WEIR_ALIGN_KEY : WEIR_ALIGN_CLOCK;
    o.max_keys = 40;
    o.flags = WEIR_EXPLICIT_TIME;
    o.path = process_path(dir, "limits");
    return o;
}

static void lay_out(const struct weir_options *o, const char *name)
{
    char from[4096];
    (void)snprintf(from, sizeof from, "%s/tests/process/format1/%s", WEIR_SOURCE_DIR, name);
    (void)unlink(o->path);
    process_copy(from, o->path);
}

static struct weir_answer peek(struct weir *w, const char *kind, unsigned i, uint64_t now)
{
    char key[32];
    struct weir_answer a;
    struct weir_question q = {.key = key, .cost = 1, .mode = WEIR_PEEK};
    q.key_len = (size_t)snprintf(key, sizeof key, "%s-%u", kind, i);
    REQUIRE(weir_ask_at(w, &q, now, &a) == 0);
    return a;
}

static void require_everything(struct weir *w, uint64_t now)
{
    struct weir_stats s = {.size = sizeof s};
    for (unsigned i = 0; i < 30; i++) {
        REQUIRE(peek(w, "key", i, now).remaining == 10 - i % 10);
    }
    for (unsigned i = 0; i < 8; i++) {
        REQUIRE(peek(w, "blocked", i, now).flags == WEIR_FLAG_BLOCKED);
        REQUIRE((peek(w, "blocked", i, BLOCK_END).flags == WEIR_FLAG_BLOCKED) == (i % 2 != 0) ||
                now != NOW);
    }
    REQUIRE(peek(w, "stranger", 0, now).verdict == WEIR_ALLOW);
    REQUIRE(weir_stats_read(w, &s) == 0);
    REQUIRE(s.keys == 27 && s.blocks == 8);
}

static void every_key_and_block_of_format_1_is_kept(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct weir_options o = options_of(*state, algorithm);
        lay_out(&o, names[algorithm]);
        for (int again = 0; again < 3; again++) {
            struct weir *w = process_open(&o);
            require_everything(w, NOW);
            weir_close(w);
        }
        assert_int_equal(process_dir_entries(*state), 1); /* nothing is left beside it */
    }
}

/* A file whose time goes on: buckets refill in the years since it was made, blocks without end
 * last. */
static void a_file_of_format_1_goes_on_in_time(void **state)
{
    struct weir_options o = options_of(*state, WEIR_TOKEN_BUCKET);
    uint64_t now;
    o.flags = 0;
    lay_out(&o, "clock.weir");
    struct weir *w = process_open(&o);
    assert_int_equal(weir_now(w, &now), 0);
    assert_int_equal(peek(w, "key", 9, now + 60 * WEIR_SECOND).remaining, 10);
    assert_int_equal(peek(w, "blocked", 1, now + WEIR_DAY).flags, WEIR_FLAG_BLOCKED);
    weir_close(w);
}

static void a_file_of_format_1_that_is_in_use_is_refused_and_untouched(void **state)
{
    struct weir_options o = options_of(*state, WEIR_TOKEN_BUCKET);
    struct weir_error error;
    struct weir *w;
    size_t size;
    lay_out(&o, names[WEIR_TOKEN_BUCKET]);
    unsigned char *before = process_read(o.path, &size);
    FILE *user = fopen(o.path, "r");
    assert_non_null(user);
    assert_int_equal(flock(fileno(user), LOCK_SH), 0);
    assert_int_equal(weir_open(&w, &o, &error), WEIR_EVERSION);
    assert_non_null(strstr(error.text, "is open in another process"));
    assert_true(process_same(o.path, before, size));
    (void)fclose(user);
    o.count = 11; /* nor is it converted for a caller who wants something else */
    assert_int_equal(weir_open(&w, &o, &error), WEIR_EMISMATCH);
    assert_true(process_same(o.path, before, size));
    assert_int_equal(process_dir_entries(*state), 1);
    free(before);
}

static void open_it(void *arg)
{
    struct weir *w = process_open(arg);
    require_everything(w, NOW);
    weir_close(w);
}

/* A log cannot grow: the caller's change is impossible, and the file stays as it was. */
static void a_change_that_cannot_be_made_does_not_convert(void **state)
{
    struct weir_options o = options_of(*state, WEIR_SLIDING_LOG);
    struct weir *w;
    size_t size;
    lay_out(&o, names[WEIR_SLIDING_LOG]);
    unsigned char *before = process_read(o.path, &size);
    o.flags |= WEIR_CHANGE;
    o.count = 1000;
    assert_int_equal(weir_open(&w, &o, NULL), WEIR_EQUOTA);
    assert_true(process_same(o.path, before, size));
    free(before);
}

static void hold_exclusively(void *arg)
{
    FILE *f = fopen(((struct weir_options *)arg)->path, "r");
    REQUIRE(f != NULL && flock(fileno(f), LOCK_EX) == 0);
    (void)usleep(300000);
    (void)kill(getpid(), SIGKILL);
}

/* The one that converts dies; of those that waited for it one converts, and all open. */
static void openers_whose_converter_dies_convert_themselves(void **state)
{
    struct weir_options o = options_of(*state, WEIR_SLIDING_LOG);
    pid_t child[4];
    lay_out(&o, names[WEIR_SLIDING_LOG]);
    pid_t first = process_start(hold_exclusively, &o);
    (void)usleep(100000);
    for (int i = 0; i < 4; i++) {
        child[i] = process_start(open_it, &o);
    }
    assert_int_equal(waitpid(first, NULL, 0), first);
    for (int i = 0; i < 4; i++) {
        assert_true(process_ended_well(child[i]));
    }
}

static void damage_to_a_file_of_format_1_is_found(void **state)
{
    struct weir_options o = options_of(*state, WEIR_SLIDING_LOG);
    struct weir *w;
    size_t size;
    lay_out(&o, names[WEIR_SLIDING_LOG]);
    unsigned char *bytes = process_read(o.path, &size);
    for (size_t i = 12; i < 336; i++) {
        bytes[i] ^= 0x10;
        process_write(o.path, bytes, size);
        assert_int_equal(weir_open(&w, &o, NULL), WEIR_EDAMAGED);
        bytes[i] ^= 0x10;
    }
    process_write(o.path, bytes, size);
    assert_int_equal(truncate(o.path, (off_t)size - 1), 0);
    assert_int_equal(weir_open(&w, &o, NULL), WEIR_EDAMAGED);
    assert_int_equal(truncate(o.path, 400), 0);
    assert_int_equal(weir_open(&w, &o, NULL), WEIR_EDAMAGED);
    free(bytes);
}

/* Many at once: one converts, the others wait for it. */
static void openers_that_come_together_find_one_file(void **state)
{
    struct weir_options o = options_of(*state, WEIR_SLIDING_LOG);
    for (int round = 0; round < 20 / PROCESS_SCALE; round++) {
        pid_t child[6];
        lay_out(&o, names[WEIR_SLIDING_LOG]);
        for (int i = 0; i < 6; i++) {
            child[i] = process_start(open_it, &o);
        }
        for (int i = 0; i < 6; i++) {
            assert_true(process_ended_well(child[i]));
        }
    }
}

/* Killed at some moment of it: the next opener finds the old file or the new one. */
static void a_conversion_that_is_killed_loses_nothing(void **state)
{
    uint64_t seed = process_seed();
    struct weir_options o = options_of(*state, WEIR_SLIDING_LOG);
    for (int round = 0; round < 100 / PROCESS_SCALE; round++) {
        lay_out(&o, names[WEIR_SLIDING_LOG]);
        pid_t child = process_start(open_it, &o);
        (void)usleep((useconds_t)process_random(&seed, 3000));
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        open_it(&o);
    }
    /* A kill may leave the file that was being made, under a hidden name. */
    glob_t left;
    char pattern[4096];
    (void)snprintf(pattern, sizeof pattern, "%s/.weir-*", (const char *)*state);
    if (glob(pattern, 0, NULL, &left) == 0) {
        for (size_t i = 0; i < left.gl_pathc; i++) {
            assert_int_equal(unlink(left.gl_pathv[i]), 0);
        }
        globfree(&left);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, process_dir_make, process_dir_remove)
    const struct CMUnitTest tests[] = {
        TEST(every_key_and_block_of_format_1_is_kept),
        TEST(a_file_of_format_1_goes_on_in_time),
        TEST(a_file_of_format_1_that_is_in_use_is_refused_and_untouched),
        TEST(a_change_that_cannot_be_made_does_not_convert),
        TEST(openers_whose_converter_dies_convert_themselves),
        TEST(damage_to_a_file_of_format_1_is_found),
        TEST(openers_that_come_together_find_one_file),
        TEST(a_conversion_that_is_killed_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
