/* The real program gives up system calls, unless it is told not to: /proc says so. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_program.h"
#include "support/engine/threads_run.h"

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/week}]\n";

/* Returns a number of /proc/PID/status. */
static unsigned status_of(pid_t pid, const char *name)
{
    char path[64];
    char line[256];
    unsigned value = 99;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "r");
    threads_require(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = (unsigned)strtoul(line + strlen(name), NULL, 10);
        }
    }
    (void)fclose(f);
    return value;
}

static void the_server_runs_under_a_filter(void **state)
{
    struct server_program p;
    struct server_client c;
    server_program_init(&p, rules);
    threads_require(server_program_start(&p));
    assert_int_equal(status_of(p.pid, "Seccomp:"), 2);
    assert_int_equal(status_of(p.pid, "NoNewPrivs:"), 1);
    assert_true(server_program_connect(&p, &c));
    assert_memory_equal(server_ask(&c, "WEIR.CHECK api alice"), "['allow' ", 9);
    server_disconnect(&c);
    server_program_signal(&p, SIGHUP); /* a reload and an orderly end work under it */
    server_program_await(&p, "rules reloaded", 0);
    assert_int_equal(server_program_logged(&p, "warning"), 0);
    server_program_signal(&p, SIGTERM);
    server_program_finish(&p);
}

static void the_filter_can_be_turned_off(void **state)
{
    struct server_program p;
    server_program_init(&p, rules);
    threads_require(setenv("WEIR_SECCOMP", "off", 1) == 0);
    threads_require(server_program_start(&p));
    assert_int_equal(status_of(p.pid, "Seccomp:"), status_of(getpid(), "Seccomp:"));
    threads_require(unsetenv("WEIR_SECCOMP") == 0);
    server_program_signal(&p, SIGTERM);
    server_program_finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_runs_under_a_filter),
        cmocka_unit_test(the_filter_can_be_turned_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
