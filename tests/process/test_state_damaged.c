// test-labels: notsan
/*
 * State files that cannot be used, each in turn: the rules open, say so, the file is there under
 * another name, and its limit starts afresh; all others go on. What is damaged but can be put
 * right goes on too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_image.h"
#include "support/rules/rules_ask.h"
#include "support/rules/state_world.h"
#include "table/region_file.h"

#define T0 RULES_T0
#define NOBODY 65534

/* `victim` is damaged, `other` is not. */
static const char rules[] =
    "limits: [{name: victim, when: {path: /victim}, key: [user], rate: 10/min, max_keys: 100}, "
    "{name: other, when: {path: /other}, key: [user], rate: 20/min, "
    "max_keys: 100}]";

static uint64_t left(struct state_world *w, const char *limit)
{
    bool other = strcmp(limit, "other") == 0;
    return rules_peek(w->rules, T0, other ? "user=bob path=/other" : "user=al path=/victim")
        .answer.remaining;
}

/* A file with some keys, closed. Its path is to be freed. */
static char *make(struct state_world *w)
{
    state_world_open(w, rules);
    assert_int_equal(rules_allowed(w->rules, T0, "user=al path=/victim", 4), 4);
    assert_int_equal(rules_allowed(w->rules, T0, "user=bob path=/other", 6), 6);
    state_world_close(w);
    return state_world_path(w, "victim~.weir");
}

/* Opens, and says why the victim starts afresh; `other` does not. */
static void assert_aside(struct state_world *w, const char *why)
{
    state_world_open(w, rules);
    if (strstr(w->told, why) == NULL || strstr(w->told, "cannot be used: ") == NULL) {
        fail_msg("told '%s', expected '%s'", w->told, why);
    }
    assert_int_equal(state_world_unusable(w), 1);
    assert_int_equal(left(w, "victim"), 10);
    assert_int_equal(left(w, "other"), 14);
    assert_non_null(strstr(state_world_files(w), "victim~.weir victim~.weir.bad"));
    /* What is fresh is used, and kept. */
    assert_int_equal(rules_allowed(w->rules, T0, "user=al path=/victim", 2), 2);
    state_world_restart(w, rules);
    assert_string_equal(w->told, "");
    assert_int_equal(state_world_unusable(w), 0);
    assert_int_equal(left(w, "victim"), 8);
    state_world_close(w);
}

static void remove_bad(const char *path)
{
    char bad[4200];
    (void)snprintf(bad, sizeof bad, "%s.bad", path);
    assert_int_equal(remove(bad), 0);
}

/* Each time from the same good bytes. */
static void put_bytes(const char *path, const void *bytes, size_t size)
{
    assert_int_equal(unlink(path), 0);
    process_write(path, bytes, size);
    assert_int_equal(chmod(path, 0600), 0);
}

static void any_flipped_bit_of_the_fixed_header_moves_the_file_aside(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    struct image good;
    image_take(&good, path);
    for (size_t i = 0; i < sizeof(struct region_fixed); i += i < 128 ? 1 : 17) {
        bool version = i / sizeof(uint32_t) == offsetof(struct region_fixed, version) / 4;
        good.bytes[i] ^= (unsigned char)(1u << i % 8);
        put_bytes(path, good.bytes, good.size);
        good.bytes[i] ^= (unsigned char)(1u << i % 8);
        assert_aside(w, version ? "format " : i < 8 ? "not a weir file" : "damaged");
        remove_bad(path);
    }
    image_free(&good);
    free(path);
}

static void a_file_of_another_version_is_moved_aside(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    struct image next;
    image_take(&next, path);
    image_head(&next)->fixed.version = REGION_FORMAT + 1;
    image_head(&next)->fixed.check =
        region_check(&image_head(&next)->fixed, sizeof(struct region_fixed));
    put_bytes(path, next.bytes, next.size);
    assert_aside(w, "format 3, expected 2");
    image_free(&next);
    free(path);
}

/* Its keys are not lost: the file is there, unchanged, beside the new one. */
static void a_file_of_weir_0_1_is_moved_aside_unchanged(void **state)
{
    struct state_world *w = *state;
    char bad[4200];
    char *path = make(w);
    size_t size;
    unsigned char *bytes = process_read(WEIR_SOURCE_DIR "/tests/process/format1.weir", &size);
    put_bytes(path, bytes, size);
    assert_aside(w, "format 1, expected 2");
    (void)snprintf(bad, sizeof bad, "%s.bad", path);
    assert_true(process_same(bad, bytes, size));
    free(bytes);
    free(path);
}

static void damaged_parameters_move_the_file_aside(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    struct image bad;
    image_take(&bad, path);
    struct region_header *head = image_head(&bad);
    head->spec[head->version % REGION_VERSIONS].bytes[3] ^= 0x10;
    put_bytes(path, bad.bytes, bad.size);
    assert_aside(w, "the file's parameters are damaged");
    image_free(&bad);
    free(path);
}

static void a_file_cut_short_at_any_page_is_moved_aside(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    struct image good;
    image_take(&good, path);
    for (size_t size = 0; size < good.size; size += 4096) {
        put_bytes(path, good.bytes, size);
        assert_aside(w, size == 0 ? "not a weir file" : "expected ");
        remove_bad(path);
    }
    put_bytes(path, good.bytes, good.size - 1);
    assert_aside(w, "expected ");
    remove_bad(path);
    put_bytes(path, good.bytes, 100);
    assert_aside(w, "cut short: it has 100 bytes");
    image_free(&good);
    free(path);
}

static void what_is_no_file_of_ours_is_moved_aside(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    for (unsigned i = 0; i < 6; i++) {
        static const char *const why[] = {"s a directory",         "symbolic link",
                                          "not a regular file",    "expected no more than 0600",
                                          "belongs to user 65534", "not a weir file"};
        if (i == 4 && geteuid() != 0) {
            continue; /* only root gives files away */
        }
        assert_int_equal(i < 3 ? unlink(path) : 0, 0);
        int e = i == 0   ? mkdir(path, 0700)
                : i == 1 ? symlink("/etc/passwd", path)
                : i == 2 ? mkfifo(path, 0600)
                : i == 3 ? chmod(path, 0640)
                : i == 4 ? chown(path, NOBODY, NOBODY)
                         : truncate(path, 0);
        assert_int_equal(e, 0);
        assert_aside(w, why[i]);
        remove_bad(path);
    }
    assert_int_equal(access("/etc/passwd", F_OK), 0);
    free(path);
}

static void a_few_bad_files_are_kept_and_then_the_oldest_goes(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    for (unsigned i = 0; i < 7; i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "bad %u", i);
        put_bytes(path, text, (size_t)n);
        state_world_open(w, rules);
        assert_non_null(strstr(w->told, "not a weir file"));
        state_world_close(w);
        (void)usleep(20000); /* the oldest is known by a clock that ticks every 4 ms or so */
    }
    assert_string_equal(state_world_files(w),
                        "other~.weir victim~.weir victim~.weir.bad victim~.weir.bad.2 "
                        "victim~.weir.bad.3 victim~.weir.bad.4");
    char *names[4] = {
        state_world_path(w, "victim~.weir.bad"), state_world_path(w, "victim~.weir.bad.2"),
        state_world_path(w, "victim~.weir.bad.3"), state_world_path(w, "victim~.weir.bad.4")};
    static const char *const kept[4] = {"bad 4", "bad 5", "bad 6", "bad 3"};
    for (unsigned i = 0; i < 4; i++) {
        assert_true(process_same(names[i], kept[i], 5));
        free(names[i]);
    }
    free(path);
}

/* ---- what goes on ---- */

static void assert_goes_on(struct state_world *w)
{
    state_world_open(w, rules);
    assert_string_equal(w->told, "");
    assert_int_equal(left(w, "victim"), 6);
    assert_int_equal(left(w, "other"), 14);
    assert_string_equal(state_world_files(w), "other~.weir victim~.weir");
    state_world_close(w);
}

static void another_boot_goes_on_where_the_last_one_ended(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    struct image image;
    image_take(&image, path);
    image_of_other_boot(&image, T0);
    image_hold_locks(&image);
    process_write(path, image.bytes, image.size); /* in place: the same inode */
    assert_goes_on(w);
    assert_goes_on(w);
    image_free(&image);
    free(path);
}

static void a_copy_and_locks_that_nobody_holds_go_on(void **state)
{
    struct state_world *w = *state;
    char *path = make(w);
    struct image image;
    image_take(&image, path);
    image_hold_locks(&image);
    image_head(&image)->counts.keys = 12345;
    image_head(&image)->counts.blocks.count = 77;
    process_write(path, image.bytes, image.size);
    assert_goes_on(w);
    put_bytes(path, image.bytes, image.size);
    assert_goes_on(w);
    image_free(&image);
    free(path);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, state_world_make, state_world_remove)
    const struct CMUnitTest tests[] = {
        TEST(any_flipped_bit_of_the_fixed_header_moves_the_file_aside),
        TEST(a_file_of_another_version_is_moved_aside),
        TEST(a_file_of_weir_0_1_is_moved_aside_unchanged),
        TEST(damaged_parameters_move_the_file_aside),
        TEST(a_file_cut_short_at_any_page_is_moved_aside),
        TEST(what_is_no_file_of_ours_is_moved_aside),
        TEST(a_few_bad_files_are_kept_and_then_the_oldest_goes),
        TEST(another_boot_goes_on_where_the_last_one_ended),
        TEST(a_copy_and_locks_that_nobody_holds_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
