/*
 * Faults of mapped files, in child processes with the handlers of the server: that of a state file
 * is reported and has its own exit status, that of any other file has the default action.
 */
#include "cli/cli.h"
#include "cli/serve/serve_signals.h"
#include "common/log.h"
#include "rules/compiled/state.h"
#include "support/engine/unit_limiter.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-signals-XXXXXX";
static int log_ends[2];

static int begin(void **state)
{
    (void)snprintf(folder, sizeof folder, "/tmp/weir-signals-XXXXXX");
    return mkdtemp(folder) != NULL && pipe(log_ends) == 0 ? 0 : -1;
}

static int finish(void **state)
{
    char path[64];
    static const char *const names[] = {".lock", "a.weir", "b.weir"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)close(log_ends[0]);
    (void)close(log_ends[1]);
    return rmdir(folder);
}

static int run(void (*act)(void))
{
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)alarm(60);
        (void)signal(SIGBUS, SIG_DFL); /* cmocka has a handler of its own */
        sigset_t all;                  /* a parent may block what it likes */
        (void)sigfillset(&all);
        (void)sigprocmask(SIG_BLOCK, &all, NULL);
        log_init(log_ends[1], LOG_AS_JSON, LOG_KEYS_CUT);
        if (serve_signals_open() >= 0) {
            act();
        }
        _exit(100);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Opens the limiter of a state file. */
static struct weir *open_limiter(struct state *state, const char *name)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct problems problems = {0};
    struct state_file file = {0};
    struct weir *limiter = NULL;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 10;
    o.period_ns = WEIR_SECOND;
    o.max_keys = 1000;
    (void)snprintf(file.name, sizeof file.name, "%s", name);
    if (state_limiter(state, &o, false, &problems, &file, &limiter, NULL) != 0) {
        _exit(101);
    }
    return limiter;
}

static void ask(struct weir *limiter)
{
    struct weir_answer answer;
    (void)weir_check(limiter, "alice", 5, 1, &answer);
}

static void truncate_file(const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    if (truncate(path, 0) != 0) {
        _exit(102);
    }
}

static void fault_in_a_state_file(void)
{
    struct state *state;
    if (state_open(&state, folder, NULL) != 0) {
        _exit(103);
    }
    struct weir *a = open_limiter(state, "a.weir");
    struct weir *b = open_limiter(state, "b.weir");
    state_limiter_close(a); /* its entry is used again, for the same file */
    a = open_limiter(state, "a.weir");
    truncate_file("b.weir");
    ask(a);
    ask(b);
}

static void a_fault_in_a_state_file_is_reported(void **state)
{
    char line[1024] = "";
    char expected[96];
    int status = run(fault_in_a_state_file);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CLI_STATE);
    assert_true(read(log_ends[0], line, sizeof line - 1) > 0);
    (void)snprintf(expected, sizeof expected, "\"file\":\"%s/b.weir\"}\n", folder);
    assert_non_null(strstr(line, expected));
    assert_non_null(strstr(line, "\"level\":\"error\",\"message\":\"ended: a state file"));
}

/* A script that took the server for another one, or kill -USR1 of a log rotation, ended it. */
static void signals_of_strangers(void)
{
    static const int numbers[] = {SIGALRM,   SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ,
                                  SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,  SIGSTKFLT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)kill(getpid(), numbers[i]);
    }
    (void)kill(getpid(), SIGRTMIN);
    (void)kill(getpid(), SIGRTMAX);
}

static void signals_without_a_meaning_are_ignored(void **state)
{
    int status = run(signals_of_strangers);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 100);
}

static void fault_elsewhere(void)
{
    struct state *state;
    int fd = memfd_create("other", MFD_CLOEXEC);
    if (state_open(&state, folder, NULL) != 0 || fd < 0 || ftruncate(fd, 4096) != 0) {
        _exit(103);
    }
    struct weir *a = open_limiter(state, "a.weir");
    ask(a);
    state_limiter_close(a);
    volatile char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || ftruncate(fd, 0) != 0) {
        _exit(104);
    }
    at[0] = 1;
}

static void assert_default_action(int status)
{
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void a_fault_elsewhere_has_the_default_action(void **state)
{
    assert_default_action(run(fault_elsewhere));
}

static void send_it(void)
{
    (void)kill(getpid(), SIGBUS);
}

static void a_signal_that_was_sent_has_the_default_action(void **state)
{
    assert_default_action(run(send_it));
}

static void stop_twice_and_stay(void)
{
    (void)raise(SIGTERM);
    (void)raise(SIGTERM);
    (void)raise(SIGALRM); /* not the timer's */
    (void)setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, 1000}}, NULL); /* not 5 s */
    for (;;) {
        (void)pause();
    }
}

static void a_server_that_does_not_stop_ends_with_a_message(void **state)
{
    char line[1024] = "";
    int status = run(stop_twice_and_stay);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CLI_FAILED);
    assert_true(read(log_ends[0], line, sizeof line - 1) > 0);
    assert_non_null(strstr(line, "did not stop in time"));
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_fault_in_a_state_file_is_reported),
        STORY(a_fault_elsewhere_has_the_default_action),
        STORY(a_signal_that_was_sent_has_the_default_action),
        STORY(signals_without_a_meaning_are_ignored),
        STORY(a_server_that_does_not_stop_ends_with_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
