/*
 * A server that cannot start, for want of memory or of files, whichever comes to be missing: it
 * says so, and leaves nothing behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_client.h"
#include "support/engine/threads_run.h"
#include "support/engine/unit_limiter.h"

static const char rules_text[] = "limits: [{name: api, key: [user], rate: 1000/day}]";

/* ---- memory that is not there: for our own code. Without any libuv ends the program. ---- */

static __thread bool counting; /* of this thread, while the server starts */
static __thread unsigned left; /* so many times there is some */

#if !THREADS_ASAN && !THREADS_TSAN
#define CAN_RUN_OUT true

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *at, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static bool is_there(void)
{
    if (!counting) {
        return true;
    }
    if (left == 0) {
        errno = ENOMEM;
        return false;
    }
    left--;
    return true;
}

void *malloc(size_t size)
{
    return is_there() ? __libc_malloc(size) : NULL;
}

void *calloc(size_t n, size_t size)
{
    return is_there() ? __libc_calloc(n, size) : NULL;
}

void *realloc(void *at, size_t size)
{
    return is_there() ? __libc_realloc(at, size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return is_there() ? __libc_memalign(alignment, size) : NULL;
}
#else
#define CAN_RUN_OUT false
#endif

/* ---- the server ---- */

struct scene {
    struct server server;
    char *folder;
    char address[PROTOCOLS][256];
};

static struct server_options options_of(const struct scene *s)
{
    struct server_options o = server_world_options();
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        o.listen[i] = s->address[i];
    }
    o.connections_per_address = 10;
    return o;
}

static int begin(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct weir_error error;
    s->folder = unit_folder();
    (void)snprintf(s->address[PROTOCOL_RESP], sizeof s->address[0], "unix:%s/resp", s->folder);
    (void)snprintf(s->address[PROTOCOL_HTTP], sizeof s->address[0], "127.0.0.1:0");
    (void)snprintf(s->address[PROTOCOL_GRPC], sizeof s->address[0], "127.0.0.1:0");
    (void)snprintf(s->address[PROTOCOL_ADMIN], sizeof s->address[0], "unix:%s/admin", s->folder);
    (void)snprintf(s->address[PROTOCOL_METRICS], sizeof s->address[0], "127.0.0.1:0");
    if (weir_rules_open_text(&s->server.rules, "test", rules_text, strlen(rules_text), NULL,
                             &error) != 0) {
        fail_msg("%s", error.text);
    }
    *state = s;
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;
    weir_rules_close(s->server.rules);
    unit_folder_remove(s->folder);
    free(s);
    return 0;
}

static void start_anew(struct scene *s, int *e, struct weir_error *error)
{
    s->server = (struct server){.options = options_of(s), .rules = s->server.rules};
    *error = (struct weir_error){0};
    *e = server_start(&s->server, error);
}

static bool is_file(const char *address)
{
    return access(address + strlen("unix:"), F_OK) == 0;
}

/*
 * Nothing but the words that say why; and, where the loop itself could not be made, the descriptor
 * that libuv forgets then.
 */
static void require_nothing_left(const struct scene *s, unsigned files,
                                 const struct weir_error *error)
{
    threads_require(error->text[0] != 0);
    threads_require(server_open_files() <= files + 1);
    threads_require(!is_file(s->address[PROTOCOL_RESP]) && !is_file(s->address[PROTOCOL_ADMIN]));
    threads_require(s->server.workers == NULL && s->server.adhoc == NULL);
}

static void require_service(const struct scene *s)
{
    struct server_client c;
    server_connect(&c, s->address[PROTOCOL_RESP]);
    threads_require(strcmp(server_ask(&c, "PING"), "+PONG") == 0);
    server_disconnect(&c);
}

/* ---- the stories ---- */

static void start_and_stop(struct scene *s)
{
    struct weir_error error;
    int e;
    start_anew(s, &e, &error);
    threads_require(e == 0);
    require_service(s);
    server_stop(&s->server);
}

static void without_memory_nothing_is_left_behind(void **state)
{
    struct scene *s = *state;
    struct weir_error error;
    int e = CAN_RUN_OUT ? -1 : 0;
    unsigned failures = 0;
    start_and_stop(s); /* what is made once for all times */
    while (e != 0) {
        unsigned files = server_open_files();
        left = failures;
        counting = true;
        start_anew(s, &e, &error);
        counting = false;
        if (e != 0) {
            require_nothing_left(s, files, &error);
            failures++;
        }
    }
    if (CAN_RUN_OUT) {
        assert_true(failures > 7);
        require_service(s);
        server_stop(&s->server);
    }
}

/* All but so many descriptors; in a process of its own, since they are not given back. */
static int take_files(unsigned most)
{
    struct rlimit limit = {most, most};
    int last = -1;
    threads_require(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int fd; (fd = dup(0)) >= 0;) {
        last = fd;
    }
    return last;
}

static void starve_of_files(struct scene *s)
{
    struct weir_error error;
    int e = -1;
    unsigned failures = 0;
    start_and_stop(s);
    int last = take_files(server_open_files() + 150);
    while (e != 0) {
        (void)close(last--);
        (void)close(last--);  /* the one for that of libuv */
        if (failures++ > 0) { /* else they cannot even be counted */
            unsigned files = server_open_files();
            start_anew(s, &e, &error);
            if (e != 0) {
                require_nothing_left(s, files, &error);
            }
        }
    }
    threads_require(failures > 10);
    server_stop(&s->server);
}

static void without_files_nothing_is_left_behind(void **state)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        starve_of_files(*state);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_files_nothing_is_left_behind),
        TEST(without_memory_nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
