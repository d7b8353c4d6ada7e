/* Files that must not be used: refused by name, with a text, and left unchanged. */
#include "table/region_file.h"
#include "support/engine/unit_limiter.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define START (120 * WEIR_SECOND)

static char *folder;
static char *path;
static struct weir_options options;

static int setup(void **state)
{
    folder = unit_folder();
    path = unit_path(folder, "limit");
    options = unit_options(WEIR_TOKEN_BUCKET, 10, WEIR_HOUR);
    options.max_keys = 10;
    options.memory = WEIR_FILE;
    options.path = path;
    return 0;
}

static int teardown(void **state)
{
    free(path);
    unit_folder_remove(folder);
    return 0;
}

static void make_file(void)
{
    struct weir *w = unit_open(&options);
    (void)unit_check(w, "k", 4, START);
    weir_close(w);
}

static void assert_refused(int code, const char *found, const char *expected)
{
    struct weir_error error = {0, ""};
    struct weir *w = (struct weir *)&error;
    assert_int_equal(weir_open(&w, &options, &error), code);
    assert_null(w);
    assert_int_equal(error.code, code);
    if (strstr(error.text, found) == NULL || strstr(error.text, expected) == NULL) {
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.text, found, expected);
    }
    assert_int_equal(weir_open(&w, &options, NULL), code);
}

/* The same, and the file is as it was. */
static void assert_refused_untouched(int code, const char *found, const char *expected)
{
    size_t size;
    size_t again;
    unsigned char *before = unit_read_file(path, &size);
    assert_refused(code, found, expected);
    unsigned char *after = unit_read_file(path, &again);
    assert_int_equal(size, again);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

static void assert_nothing_left_behind(void)
{
    assert_int_equal(rmdir(folder), 0); /* only an empty folder goes */
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void flip(size_t offset, unsigned char bits)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= bits;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    (void)close(fd);
}

/* ---- paths ---- */

static void must_exist_never_makes_a_file(void **state)
{
    options.flags |= WEIR_MUST_EXIST;
    assert_refused(WEIR_ENOENT, path, "does not exist");
    assert_nothing_left_behind();
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    char *nowhere = unit_path(folder, "no/such/folder");
    options.path = nowhere;
    assert_refused(WEIR_ENOENT, nowhere, "No such file or directory");
    free(nowhere);
    assert_nothing_left_behind();
}

static void a_path_through_a_file_is_an_error(void **state)
{
    make_file();
    char *below = unit_path(path, "below");
    options.path = below;
    assert_refused(WEIR_ENOENT, below, "Not a directory");
    free(below);
}

static void a_path_longer_than_the_system_takes_is_an_error(void **state)
{
    char *large = malloc(2 * PATH_MAX);
    memset(large, 'x', 2 * PATH_MAX);
    large[2 * PATH_MAX - 1] = '\0';
    options.path = large;
    assert_refused(WEIR_EINVAL, "path", "too long");
    large[PATH_MAX / 2] = '\0';
    assert_refused(WEIR_EIO, "xxxx", "");
    free(large);
}

static void a_folder_is_not_a_limit(void **state)
{
    options.path = folder;
    assert_refused(WEIR_EACCES, folder, "directory");
}

static void a_symbolic_link_is_not_followed(void **state)
{
    make_file();
    char *link = unit_path(folder, "link");
    assert_int_equal(symlink(path, link), 0);
    options.path = link;
    assert_refused(WEIR_EACCES, link, "symbolic link");
    char *dangling = unit_path(folder, "dangling");
    assert_int_equal(symlink("nowhere", dangling), 0);
    options.path = dangling;
    assert_refused(WEIR_EACCES, dangling, "symbolic link");
    free(link);
    free(dangling);
}

static void a_fifo_is_refused_without_hanging(void **state)
{
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(WEIR_EACCES, path, "not a regular file");
}

static void a_device_is_refused(void **state)
{
    options.path = "/dev/null";
    assert_refused(WEIR_EACCES, "/dev/null", "not a regular file");
}

static void a_socket_is_refused(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_refused(WEIR_EACCES, path, "cannot open");
    (void)close(fd);
}

static void a_file_that_others_may_use_is_refused(void **state)
{
    static const mode_t modes[] = {0601, 0602, 0604, 0610, 0620, 0640, 0666, 0777};
    make_file();
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char found[24];
        (void)snprintf(found, sizeof found, "mode is %04o", (unsigned)modes[i]);
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_refused_untouched(WEIR_EACCES, found, "expected no more than 0600");
    }
    assert_int_equal(chmod(path, 0600), 0);
    weir_close(unit_open(&options));
}

static void a_file_of_somebody_else_is_refused(void **state)
{
    if (geteuid() != 0) {
        skip();
    }
    make_file();
    assert_int_equal(chown(path, 12345, 0), 0);
    assert_refused_untouched(WEIR_EACCES, "belongs to user 12345", "expected 0");
}

/* ---- contents ---- */

static void what_is_not_a_weir_file_is_refused(void **state)
{
    static const char text[] = "#!/bin/sh\necho this is not a table\n";
    unit_write_file(path, "", 0);
    assert_refused_untouched(WEIR_EDAMAGED, path, "not a weir file");
    unit_write_file(path, text, sizeof text);
    assert_refused_untouched(WEIR_EDAMAGED, path, "not a weir file");
    unit_write_file(path, REGION_MAGIC, 7);
    assert_refused_untouched(WEIR_EDAMAGED, path, "not a weir file");
    unit_write_file(path, REGION_MAGIC, 8);
    assert_refused_untouched(WEIR_EDAMAGED, path, "cut short: it has 8 bytes");
}

static void a_file_that_was_cut_or_grown_is_refused(void **state)
{
    make_file();
    size_t size;
    unsigned char *bytes = unit_read_file(path, &size);
    char expected[40];
    (void)snprintf(expected, sizeof expected, "expected %zu", size);
    assert_int_equal(truncate(path, (off_t)size + 1), 0);
    assert_refused_untouched(WEIR_EDAMAGED, "bytes", expected);
    assert_int_equal(truncate(path, (off_t)size - 1), 0);
    assert_refused_untouched(WEIR_EDAMAGED, "bytes", expected);
    for (size_t left = size - 2; left > 0; left -= left > 1024 ? left / 3 : left > 99 ? 99 : 1) {
        assert_int_equal(truncate(path, (off_t)left), 0);
        assert_refused_untouched(WEIR_EDAMAGED, path, "");
    }
    free(bytes);
}

static void a_file_of_another_version_is_refused(void **state)
{
    make_file();
    size_t size;
    unsigned char *bytes = unit_read_file(path, &size);
    struct region_fixed *fixed = (struct region_fixed *)(void *)bytes;
    const uint32_t versions[] = {0, 1, 3, 77, UINT32_MAX};
    for (int i = 0; i < 5; i++) {
        char found[32];
        fixed->version = versions[i];
        fixed->check = region_check(fixed, sizeof *fixed);
        unit_write_file(path, bytes, size);
        (void)snprintf(found, sizeof found, "format %u", versions[i]);
        assert_refused_untouched(WEIR_EVERSION, found,
                                 "expected 2 (to start afresh, remove the file");
    }
    free(bytes);
}

/* Every byte of the checked part, one of its bits. */
static void a_header_with_any_flipped_bit_is_refused_and_untouched(void **state)
{
    make_file();
    for (size_t i = 0; i < sizeof(struct region_fixed); i++) {
        struct weir_error error;
        struct weir *w;
        size_t size;
        size_t again;
        flip(i, (unsigned char)(1u << i % 8));
        unsigned char *before = unit_read_file(path, &size);
        int e = weir_open(&w, &options, &error);
        assert_true(e == WEIR_EDAMAGED || e == WEIR_EVERSION);
        assert_non_null(strstr(error.text, path));
        unsigned char *after = unit_read_file(path, &again);
        assert_memory_equal(before, after, size);
        free(before);
        free(after);
        flip(i, (unsigned char)(1u << i % 8));
    }
    struct weir *w = unit_open(&options);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 6);
    weir_close(w);
}

/* The limit in force has no checksum, but must be one that can be, and the caller's. */
static void damaged_parameters_are_refused_or_harmless(void **state)
{
    make_file();
    size_t size;
    unsigned char *bytes = unit_read_file(path, &size);
    const struct region_header *head = (const struct region_header *)(const void *)bytes;
    size_t begin = offsetof(struct region_header, spec) +
                   head->version % REGION_VERSIONS * sizeof(struct region_spec);
    for (size_t i = begin; i < begin + REGION_SPEC_MAX; i++) {
        flip(i, 0x10);
        struct weir *w;
        int e = weir_open(&w, &options, NULL);
        assert_true(e == 0 || e == WEIR_EDAMAGED || e == WEIR_EMISMATCH);
        if (e == 0) { /* an unused byte */
            assert_int_equal(unit_peek(w, "k", 1, START).remaining, 6);
        }
        weir_close(w);
        flip(i, 0x10);
    }
    free(bytes);
}

/* The limits of a sound file that do not agree with the opener's, one by one. */
static void each_parameter_must_agree(void **state)
{
    struct weir_options made = options;
    make_file();
#define DIFFERS(field, value, has, wants)                                                          \
    do {                                                                                           \
        options = made;                                                                            \
        options.field = value;                                                                     \
        assert_refused_untouched(WEIR_EMISMATCH, has, wants);                                      \
    } while (0)
    DIFFERS(algorithm, WEIR_FIXED_WINDOW, "algorithm token_bucket", "expected fixed_window");
    if (hash_has_xxh3) {
        DIFFERS(hash, WEIR_XXH3, "hash 0", "expected 1");
    }
    DIFFERS(flags, 0, "explicit time 1", "expected 0");
    DIFFERS(period_ns, WEIR_MINUTE, "period_ns 3600000000000", "expected 60000000000");
    DIFFERS(max_keys, 11, "max_keys 10", "expected 11");
    DIFFERS(max_blocks, 65, "max_blocks 64", "expected 65");
    DIFFERS(count, 11, "count 10", "expected 11");
    DIFFERS(burst, 12, "burst 10", "expected 12");
    DIFFERS(max_debt, 3, "max_debt", "expected 3");
    DIFFERS(on_full, WEIR_DENY_NEW, "on_full 0", "expected 1");
    options = made;
    struct weir *w = unit_open(&options);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 6);
    weir_close(w);
}

static void each_parameter_of_windows_and_queues_must_agree(void **state)
{
    struct weir_options made = options;
    made.algorithm = WEIR_FIXED_WINDOW;
    options = made;
    make_file();
    DIFFERS(align, WEIR_ALIGN_KEY, "align 0", "expected 1");
    DIFFERS(offset_ns, 5, "offset_ns 0", "expected 5");
    assert_int_equal(unlink(path), 0);
    made.algorithm = WEIR_LEAKY_BUCKET;
    options = made;
    weir_close(unit_open(&options));
    DIFFERS(queue, 5, "queue 0", "expected 5");
}

static void a_change_that_does_not_fit_changes_nothing(void **state)
{
    make_file();
    struct weir_options made = options;
    options.flags |= WEIR_CHANGE;
    options.count = 3000000000000; /* needs a finer time unit than the file has */
    options.burst = 10;
    assert_refused(WEIR_ERATE, "finer time unit", "make a new one");
    options = made;
    struct weir *w = unit_open(&options);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 6);
    assert_int_equal(unit_peek(w, "k", 1, START).quota, 10);
    weir_close(w);
}

/* A limit on the size of files stands for a full disk; the attempt leaves nothing behind. */
static void a_file_that_cannot_be_allocated_is_an_error(void **state)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {1000, before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct weir_error error;
    struct weir *w;
    int e = weir_open(&w, &options, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(e, WEIR_ENOSPC);
    assert_null(w);
    assert_non_null(strstr(error.text, "cannot allocate the file's space"));
    assert_nothing_left_behind();
    weir_close(unit_open(&options));
}

static void a_file_larger_than_memory_can_be_is_an_error(void **state)
{
    options = unit_options(WEIR_SLIDING_LOG, 65535, WEIR_SECOND);
    options.memory = WEIR_FILE;
    options.path = path;
    options.max_keys = UINT64_C(1) << 40; /* 2^59 bytes */
    struct weir *w;
    int e = weir_open(&w, &options, NULL);
    assert_true(e == WEIR_ENOSPC || e == WEIR_ENOMEM);
    assert_nothing_left_behind();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(must_exist_never_makes_a_file),
        TEST(a_folder_that_is_not_there_is_an_error),
        TEST(a_path_through_a_file_is_an_error),
        TEST(a_path_longer_than_the_system_takes_is_an_error),
        TEST(a_folder_is_not_a_limit),
        TEST(a_symbolic_link_is_not_followed),
        TEST(a_fifo_is_refused_without_hanging),
        TEST(a_device_is_refused),
        TEST(a_socket_is_refused),
        TEST(a_file_that_others_may_use_is_refused),
        TEST(a_file_of_somebody_else_is_refused),
        TEST(what_is_not_a_weir_file_is_refused),
        TEST(a_file_that_was_cut_or_grown_is_refused),
        TEST(a_file_of_another_version_is_refused),
        TEST(a_header_with_any_flipped_bit_is_refused_and_untouched),
        TEST(damaged_parameters_are_refused_or_harmless),
        TEST(each_parameter_must_agree),
        TEST(each_parameter_of_windows_and_queues_must_agree),
        TEST(a_change_that_does_not_fit_changes_nothing),
        TEST(a_file_that_cannot_be_allocated_is_an_error),
        TEST(a_file_larger_than_memory_can_be_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
