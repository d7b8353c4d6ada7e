// test-labels: notsan noasan
// (a sanitizer needs all the address space that a limit here takes away)
/*
 * What runs out is an error with a code of its own: disk, address space, file
 * size, file numbers. Nothing is left behind, nobody gets a SIGBUS, and once
 * there is room again the same call succeeds.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_fixture.h"

/* About two megabytes. */
static struct weir_options limit(int memory, const char *path)
{
    struct weir_options o = process_limit(WEIR_TOKEN_BUCKET, 5);
    o.memory = memory;
    o.path = path;
    o.max_keys = 100000;
    return o;
}

static void require_refused(const struct weir_options *o, int code)
{
    struct weir_error error = {0, ""};
    struct weir *w = (struct weir *)(uintptr_t)1;
    int e = weir_open(&w, o, &error);
    if (e != code) {
        fprintf(stderr, "%s, expected %s: %s\n", weir_errname(e), weir_errname(code), error.text);
    }
    REQUIRE(e == code);
    REQUIRE(w == NULL && error.code == code && error.text[0] != '\0');
}

/* All of the table, so that every page has been written. */
static void use_everywhere(const struct weir_options *o)
{
    struct weir *w = process_open(o);
    for (unsigned key = 0; key < 100000; key++) {
        REQUIRE(process_take(w, key, PROCESS_NOW) == WEIR_ALLOW);
    }
    weir_close(w);
}

/* ---- disk ---- */

static bool have_small_disk(const char *dir)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", dir, "tmpfs", 0, "size=4m") == 0;
}

#define NO_SMALL_DISK 77

static void fill_disk(void *arg)
{
    const char *dir = arg;
    struct weir_options o = limit(WEIR_FILE, process_path(dir, "limits"));
    struct weir_options second = limit(WEIR_FILE, process_path(dir, "second"));
    if (!have_small_disk(dir)) {
        _exit(NO_SMALL_DISK);
    }
    use_everywhere(&o);
    require_refused(&second, WEIR_ENOSPC);
    REQUIRE(process_dir_entries(dir) == 1);
    use_everywhere(&o); /* its space was its own from the beginning */
    REQUIRE(unlink(o.path) == 0);
    use_everywhere(&second);
}

static void a_full_disk_is_an_error_and_no_sigbus(void **state)
{
    if (geteuid() != 0) {
        skip();
    }
    pid_t probe = process_start(fill_disk, *state);
    siginfo_t info = {0};
    assert_int_equal(waitid(P_PID, (id_t)probe, &info, WEXITED | WNOWAIT), 0);
    bool possible = info.si_code != CLD_EXITED || info.si_status != NO_SMALL_DISK;
    bool well = process_ended_well(probe);
    if (!possible) {
        skip();
    }
    assert_true(well);
}

/* ---- limits of the process ---- */

static void set_limit(int what, rlim_t value)
{
    struct rlimit r;
    REQUIRE(getrlimit(what, &r) == 0);
    r.rlim_cur = value;
    REQUIRE(setrlimit(what, &r) == 0);
}

static void outgrow_file_size(void *arg)
{
    struct weir_options o = limit(WEIR_FILE, process_path(arg, "limits"));
    (void)signal(SIGXFSZ, SIG_IGN);
    set_limit(RLIMIT_FSIZE, 65536);
    require_refused(&o, WEIR_ENOSPC);
    REQUIRE(process_dir_entries(arg) == 0);
    set_limit(RLIMIT_FSIZE, RLIM_INFINITY);
    use_everywhere(&o);
}

static void a_file_beyond_the_size_limit_is_an_error(void **state)
{
    assert_true(process_run(outgrow_file_size, *state));
}

static rlim_t address_space_used(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    REQUIRE(f != NULL && fscanf(f, "%lu", &pages) == 1);
    (void)fclose(f);
    return (rlim_t)pages * 4096;
}

static void outgrow_address_space(void *arg)
{
    const int memories[] = {WEIR_PRIVATE, WEIR_SHARED, WEIR_FILE};
    for (unsigned i = 0; i < 3; i++) {
        bool file = memories[i] == WEIR_FILE;
        struct weir_options o = limit(memories[i], file ? process_path(arg, "limits") : NULL);
        set_limit(RLIMIT_AS, address_space_used() + (1 << 20));
        require_refused(&o, WEIR_ENOMEM);
        REQUIRE(process_dir_entries(arg) == 0);
        set_limit(RLIMIT_AS, RLIM_INFINITY);
        use_everywhere(&o);
    }
    struct weir_options o = limit(WEIR_FILE, process_path(arg, "limits"));
    set_limit(RLIMIT_AS, address_space_used() + (1 << 20));
    require_refused(&o, WEIR_ENOMEM); /* one that exists */
    set_limit(RLIMIT_AS, RLIM_INFINITY);
    use_everywhere(&o);
}

static void too_little_address_space_is_an_error(void **state)
{
    assert_true(process_run(outgrow_address_space, *state));
}

static void need_absurd_memory(void *arg)
{
    struct weir_options o = limit(WEIR_PRIVATE, NULL);
    o.max_keys = UINT64_C(1) << 40;
    require_refused(&o, WEIR_ENOMEM);
    o.memory = WEIR_SHARED;
    require_refused(&o, WEIR_ENOMEM);
    o.algorithm = WEIR_SLIDING_LOG;
    o.count = 65535;
    require_refused(&o, WEIR_ENOMEM);
}

static void more_memory_than_there_can_be_is_an_error(void **state)
{
    assert_true(process_run(need_absurd_memory, *state));
}

static void run_out_of_descriptors(void *arg)
{
    struct weir_options o = limit(WEIR_FILE, process_path(arg, "limits"));
    int first = dup(0); /* the lowest free number */
    REQUIRE(first >= 0 && close(first) == 0);
    for (int spare = 0; spare < 2; spare++) { /* none at all; one, but not two */
        set_limit(RLIMIT_NOFILE, (rlim_t)(first + spare));
        struct weir *w;
        struct weir_error error = {0, ""};
        int e = weir_open(&w, &o, &error);
        REQUIRE(e == WEIR_EIO && error.text[0] != '\0' && w == NULL);
        set_limit(RLIMIT_NOFILE, 256);
        REQUIRE(process_dir_entries(arg) == 0);
    }
    use_everywhere(&o);
}

static void no_free_descriptor_is_an_error(void **state)
{
    assert_true(process_run(run_out_of_descriptors, *state));
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, process_dir_make, process_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_full_disk_is_an_error_and_no_sigbus),
        IN_DIR(a_file_beyond_the_size_limit_is_an_error),
        IN_DIR(too_little_address_space_is_an_error),
        IN_DIR(more_memory_than_there_can_be_is_an_error),
        IN_DIR(no_free_descriptor_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
