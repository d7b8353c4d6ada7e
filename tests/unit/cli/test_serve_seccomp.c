/*
 * Tries each system call that the filter denies, in a child process under the filter. The filter is
 * made with an errno that no kernel returns, so that a call that fails for another reason (a
 * missing right, a bad argument) does not count as denied.
 */
#include "cli/serve/serve_seccomp.h"
#include "support/engine/unit_limiter.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OURS 4000

static int run(int (*act)(void))
{
    int status = -1;
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(act());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static bool fails_with(long result, int error)
{
    return result == -1 && errno == error;
}

/* Returns how many calls are not denied, and names them. */
static int try_each(int error)
{
    int open = 0;
    long number;
    const char *name;
    for (size_t i = 0; (name = seccomp_denied(i, &number)) != NULL; i++) {
        errno = 0;
        /* Arguments with which none of them has an effect. */
        if (!fails_with(syscall(number, -1L, -1L, -1L, -1L, -1L, -1L), error)) {
            (void)fprintf(stderr, "%s is not denied: %s\n", name, strerror(errno));
            open++;
        }
    }
    return open;
}

static int each_under_the_filter(void)
{
    return seccomp_install(OURS) ? try_each(OURS) : 100;
}

static void each_call_is_denied(void **state)
{
    assert_int_equal(run(each_under_the_filter), 0);
}

static int each_as_the_server(void)
{
    char *argv[] = {"/bin/true", NULL};
    serve_seccomp(SECCOMP_ON);
    (void)execv(argv[0], argv);
    return errno == EPERM && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? try_each(EPERM) : 100;
}

static void a_server_gets_eperm(void **state)
{
    assert_int_equal(run(each_as_the_server), 0);
}

static int no_filter(void)
{
    char *argv[] = {"/bin/true", NULL};
    serve_seccomp(SECCOMP_OFF);
    (void)execv(argv[0], argv);
    return 1;
}

static void the_filter_can_be_off(void **state)
{
    assert_int_equal(run(no_filter), 0);
}

/* ---- ways around it ---- */

static int new_namespaces(void)
{
    static const unsigned long flags[] = {CLONE_NEWNS,  CLONE_NEWUSER, CLONE_NEWPID,   CLONE_NEWNET,
                                          CLONE_NEWIPC, CLONE_NEWUTS,  CLONE_NEWCGROUP};
    int open = seccomp_install(OURS) ? 0 : 100;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        open += !fails_with(syscall(SYS_clone, flags[i] | SIGCHLD, 0L, 0L, 0L, 0L), OURS);
    }
    return open + !fails_with(syscall(SYS_clone3, -1L, -1L), ENOSYS);
}

static void a_process_in_new_namespaces_is_denied(void **state)
{
    assert_int_equal(run(new_namespaces), 0);
}

#ifdef __x86_64__
static int x32(void)
{
    return seccomp_install(OURS) && fails_with(syscall(0x40000000L | SYS_getpid), OURS) ? 0 : 1;
}

static void a_call_with_the_numbers_of_x32_is_denied(void **state)
{
    assert_int_equal(run(x32), 0);
}

static int i386(void)
{
    long result = 20; /* getpid() */
    bool installed = seccomp_install(OURS);
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return installed && (int)result == -OURS ? 0 : 1;
}

static void a_call_with_the_numbers_of_i386_is_denied(void **state)
{
    int status = run(i386);
    if (WIFSIGNALED(status)) {
        skip(); /* the kernel has no such calls */
    }
    assert_int_equal(status, 0);
}
#endif

/* ---- what a server does ---- */

static void *answer(void *arg)
{
    return arg;
}

static int ordinary_work(void)
{
    pthread_t thread;
    void *result = NULL;
    int number = 7;
    int ends[2];
    int status = -1;
    char byte = 'x';
    if (!seccomp_install(OURS) || pthread_create(&thread, NULL, answer, &number) != 0 ||
        pthread_join(thread, &result) != 0 || result != &number || pipe(ends) != 0 ||
        write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1) {
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(3);
    }
    return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3 ? 0 : 2;
}

static void threads_files_and_children_still_work(void **state)
{
    assert_int_equal(run(ordinary_work), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_is_denied),
        cmocka_unit_test(a_server_gets_eperm),
        cmocka_unit_test(the_filter_can_be_off),
        cmocka_unit_test(a_process_in_new_namespaces_is_denied),
#ifdef __x86_64__
        cmocka_unit_test(a_call_with_the_numbers_of_x32_is_denied),
        cmocka_unit_test(a_call_with_the_numbers_of_i386_is_denied),
#endif
        cmocka_unit_test(threads_files_and_children_still_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
