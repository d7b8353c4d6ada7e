/*
 * Another program changes a state file that the server has mapped. If the file is truncated, the
 * server says which one it was and ends with a status of its own; the next start moves the file
 * aside. If the file is overwritten so that its locks look held, threads wait for ever, but SIGTERM
 * still ends the server.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_program.h"
#include "support/engine/threads_run.h"
#include "table/region.h"

static struct server_program program;

static const char rules[] = "adhoc: {max_keys: 1k}\n"
                            "limits:\n"
                            "- {name: api, key: [user], rate: 1000/week, max_keys: 1k}\n";
static const char other_rules[] = "adhoc: {max_keys: 1k}\n"
                                  "limits:\n"
                                  "- {name: api, key: [user], rate: 2000/week, max_keys: 1k}\n";

static int begin(void **state)
{
    server_program_init(&program, rules);
    /* for the secret that the server makes */
    threads_require(unsetenv("RUNTIME_DIRECTORY") == 0 &&
                    setenv("XDG_RUNTIME_DIR", program.folder, 1) == 0);
    threads_require(server_program_start(&program));
    return 0;
}

static int finish(void **state)
{
    server_program_finish(&program);
    return 0;
}

/* Returns the path of the file in a folder of the server's whose name begins so; NULL if there is
 * none. */
static const char *find_file(const char *where, const char *beginning)
{
    static char path[600];
    char folder[512];
    (void)snprintf(folder, sizeof folder, "%s/%s", program.folder, where);
    DIR *dir = opendir(folder);
    struct dirent *entry;
    threads_require(dir != NULL);
    do {
        entry = readdir(dir);
    } while (entry != NULL && strncmp(entry->d_name, beginning, strlen(beginning)) != 0);
    (void)snprintf(path, sizeof path, "%s/%.80s", folder, entry != NULL ? entry->d_name : "");
    (void)closedir(dir);
    return entry != NULL ? path : NULL;
}

static const char *file_of(const char *beginning)
{
    const char *path = find_file("state", beginning);
    threads_require(path != NULL);
    return path;
}

/* The server has made a secret, whose file is in its runtime folder. */
static void assert_secret_removed(void)
{
    assert_int_equal(server_program_logged(&program, "/weir/admin-"), 1);
    assert_null(find_file("weir", "admin-"));
}

/* Asks for something that touches the file; the server may end meanwhile. */
static void ask(const char *words)
{
    struct server_client c;
    threads_require(server_program_connect(&program, &c));
    threads_require(server_say(&c, words));
    server_disconnect(&c);
}

static void assert_answers(const char *words, const char *beginning)
{
    struct server_client c;
    threads_require(server_program_connect(&program, &c));
    const char *reply = server_ask(&c, words);
    assert_memory_equal(reply, beginning, strlen(beginning));
    server_disconnect(&c);
}

static void truncate_and_ask(const char *file, const char *words)
{
    char line[700];
    const char *path = file_of(file);
    assert_answers(words, "[");
    assert_int_equal(truncate(path, 0), 0);
    ask(words);
    int status = server_program_end(&program);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    (void)snprintf(line, sizeof line, "error ended: a state file was truncated while in use");
    assert_int_equal(server_program_logged(&program, line), 1);
    (void)snprintf(line, sizeof line, "file=%s\n", path);
    assert_int_equal(server_program_logged(&program, line), 1);
    assert_secret_removed();
}

static void a_truncated_file_ends_the_server_which_names_it(void **state)
{
    truncate_and_ask("api~", "WEIR.CHECK api alice");
    assert_true(server_program_start(&program));
    assert_int_equal(server_program_logged(&program, ".weir.bad"), 1);
    assert_answers("WEIR.CHECK api alice", "['allow' 'api' 1000 999 ");
}

static void the_file_of_ad_hoc_limits_is_named_too(void **state)
{
    truncate_and_ask("adhoc.weir", "CL.THROTTLE alice 10 1 100");
}

static void a_file_that_a_reload_has_made_is_named_too(void **state)
{
    server_program_write_rules(&program,
                               "adhoc: {max_keys: 1k}\n"
                               "limits:\n"
                               "- {name: other, key: [user], rate: 1000/week, max_keys: 1k}\n"
                               "- {name: api, key: [user], rate: 1000/week, max_keys: 2k}\n");
    server_program_signal(&program, SIGHUP);
    server_program_await(&program, "rules reloaded", 0);
    truncate_and_ask("api~", "WEIR.CHECK api alice");
}

static void a_signal_that_another_process_sends_keeps_its_default_action(void **state)
{
    assert_int_equal(kill(program.pid, SIGBUS), 0);
    int status = server_program_end(&program);
    if (THREADS_ASAN || THREADS_TSAN) { /* they report it and exit */
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 3);
    } else {
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGBUS);
    }
    assert_int_equal(server_program_logged(&program, "state file"), 0);
}

/* ---- locks that look held ---- */

static void assert_ended_by_force(void)
{
    server_program_await(&program, "ended by force: a thread did not stop in time", 0);
    int status = server_program_end(&program);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_secret_removed();
}

/* Writes the word all over a part of the file. */
static void fill(int fd, size_t begin, size_t end, uint64_t word)
{
    for (size_t at = begin; at < end; at += sizeof word) {
        threads_require(pwrite(fd, &word, sizeof word, (off_t)at) == sizeof word);
    }
}

/* Waits until a thread waits for one of the locks: it has marked the lock's word (base/lock.h). */
static void await_waiter(int fd, size_t begin, size_t end, uint64_t held)
{
    for (unsigned tries = 0; tries < 6000; tries++) {
        for (size_t at = begin; at < end; at += sizeof held) {
            uint64_t word = 0;
            threads_require(pread(fd, &word, sizeof word, (off_t)at) == sizeof word);
            if (word == (held | 1)) {
                return;
            }
        }
        (void)usleep(10000);
    }
    threads_fail(__FILE__, __LINE__, "no thread waits for a lock");
}

/* Returns the open file of the limit, and the word of a lock that the server holds. */
static int open_file(uint64_t *held)
{
    struct region_header head;
    int fd = open(file_of("api~"), O_RDWR | O_CLOEXEC);
    threads_require(fd >= 0 && pread(fd, &head, sizeof head, 0) == sizeof head);
    *held = head.last_opener << 1;
    return fd;
}

static void a_server_whose_threads_wait_for_ever_ends_when_told(void **state)
{
    struct stat st;
    uint64_t held;
    int fd = open_file(&held);
    threads_require(fstat(fd, &st) == 0);
    fill(fd, REGION_HEADER_BYTES, (size_t)st.st_size, held);
    ask("WEIR.CHECK api nobody-yet");
    await_waiter(fd, REGION_HEADER_BYTES, (size_t)st.st_size, held);
    assert_int_equal(kill(program.pid, SIGTERM), 0);
    assert_ended_by_force();
    (void)close(fd);
}

static void a_server_that_waits_for_ever_in_a_reload_ends_when_told(void **state)
{
    uint64_t held;
    int fd = open_file(&held);
    size_t change = offsetof(struct region_header, change);
    fill(fd, change, change + sizeof held, held);
    server_program_write_rules(&program, other_rules);
    server_program_signal(&program, SIGHUP);
    await_waiter(fd, change, change + sizeof held, held);
    assert_int_equal(kill(program.pid, SIGTERM), 0);
    assert_ended_by_force();
    (void)close(fd);
}

static void a_server_whose_file_is_full_of_garbage_goes_on_and_ends_when_told(void **state)
{
    struct stat st;
    uint64_t held;
    int fd = open_file(&held);
    threads_require(fstat(fd, &st) == 0);
    fill(fd, REGION_HEADER_BYTES, (size_t)st.st_size, UINT64_MAX);
    assert_answers("WEIR.CHECK api nobody-yet", "['");
    server_program_signal(&program, SIGTERM);
    (void)close(fd);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_truncated_file_ends_the_server_which_names_it),
        STORY(the_file_of_ad_hoc_limits_is_named_too),
        STORY(a_file_that_a_reload_has_made_is_named_too),
        STORY(a_signal_that_another_process_sends_keeps_its_default_action),
        STORY(a_server_whose_threads_wait_for_ever_ends_when_told),
        STORY(a_server_that_waits_for_ever_in_a_reload_ends_when_told),
        STORY(a_server_whose_file_is_full_of_garbage_goes_on_and_ends_when_told),
    };
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* A server that ends by force waits for no thread. ThreadSanitizer calls that a leak. */
    char options[1024];
    const char *before = getenv("TSAN_OPTIONS");
    (void)snprintf(options, sizeof options, "%s:report_thread_leaks=0",
                   before != NULL ? before : "");
    (void)setenv("TSAN_OPTIONS", options, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
