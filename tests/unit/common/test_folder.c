/* Folders that are listed while other threads open and close descriptors. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "common/folder.h"

#define OWN_FOLDER WEIR_SOURCE_DIR "/tests/unit/common"

static unsigned entries_named(DIR *folder, const char *name)
{
    unsigned n = 0;
    for (const struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        n += strcmp(e->d_name, name) == 0;
    }
    return n;
}

static void a_folder_is_listed(void **state)
{
    DIR *folder = folder_open(OWN_FOLDER);
    assert_non_null(folder);
    assert_int_equal(entries_named(folder, "test_folder.c"), 1);
    assert_int_equal(closedir(folder), 0);
}

static void a_file_or_an_absent_folder_is_refused(void **state)
{
    assert_null(folder_open(OWN_FOLDER "/test_folder.c"));
    assert_int_equal(errno, ENOTDIR);
    assert_null(folder_open(OWN_FOLDER "/nowhere"));
    assert_int_equal(errno, ENOENT);
}

/* Accessed relaxed, so that ThreadSanitizer sees no order between the two threads. */
static uint64_t closed_fd;

/* Reads from a descriptor and closes it as libuv does, which ThreadSanitizer does not notice. */
static void *read_and_close_unseen(void *arg)
{
    char byte;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool done = fd >= 0 && read(fd, &byte, 1) == 0 && syscall(SYS_close, fd) == 0;
    store_relaxed(&closed_fd, done ? (uint64_t)fd : UINT64_MAX);
    return NULL;
}

static void a_descriptor_number_that_another_thread_had_before_is_no_race(void **state)
{
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, read_and_close_unseen, NULL), 0);
    while (load_relaxed(&closed_fd) == 0) {
        (void)usleep(100);
    }
    DIR *folder = folder_open(OWN_FOLDER);
    assert_non_null(folder);
    assert_int_equal(dirfd(folder), load_relaxed(&closed_fd));
    assert_int_equal(closedir(folder), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_listed),
        cmocka_unit_test(a_file_or_an_absent_folder_is_refused),
        cmocka_unit_test(a_descriptor_number_that_another_thread_had_before_is_no_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
