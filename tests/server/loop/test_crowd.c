/*
 * A crowd that means no good, held by a process of its own: ten thousand
 * connections that say nothing, requests that come byte by byte, pipelines whose
 * replies nobody fetches. Who comes in peace is served meanwhile, and the
 * server's memory stays within what it promises.
 */
// test-timeout: 240
// test-serial: yes
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/loop/worker.h"
#include "support/server/server_client.h"
#include "support/server/server_memory.h"
#include "support/engine/threads_run.h"

#define IDLE_MOST 10000
#define IDLE_BYTES 2048 /* of one idle connection, in our memory */
#define PROBES 200
#define PATIENCE_MS 500 /* of who comes in peace: far above what it takes, on any machine */

enum { SANITIZED = THREADS_ASAN + THREADS_TSAN };

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000000/day}]";

/* ---- the other process ---- */

struct visitors {
    pid_t pid;
    int orders; /* "what how-many port port\n" */
    int news;   /* a line when it is done */
};

/* Sources differ, as they would outside: a port range is finite. */
static int connect_from(unsigned i, unsigned short port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000002u + i % 16)}};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(port)};
    if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        perror("crowd");
        _exit(1);
    }
    return fd;
}

static void stay_silent(int fd, bool http)
{
    (void)fd;
    (void)http;
}

static void begin_and_stop(int fd, bool http)
{
    const char *words =
        http ? "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n{"
             : "*128\r\n$16384\r\nWEIR.";
    (void)!send(fd, words, strlen(words), MSG_NOSIGNAL);
}

/* As much as the connection takes, and no reply is fetched. */
static void flood(int fd, bool http)
{
    static char many[1 << 16];
    const char *one = http ? "GET /v1/none HTTP/1.1\r\nHost: localhost\r\n\r\n"
                           : "*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n";
    size_t n = strlen(one);
    size_t len = 0;
    for (; len + n <= sizeof many; len += n) {
        memcpy(many + len, one, n);
    }
    for (unsigned i = 0; i < 64 && send(fd, many, len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0; i++) {
    }
}

static void (*const deeds[])(int fd, bool http) = {stay_silent, begin_and_stop, flood};

enum deed { SILENT, SLOW, GREEDY };

/* Does what it is told until it is told no more; connections stay open until then. */
static void be_a_crowd(int orders, int news)
{
    FILE *in = fdopen(orders, "r");
    unsigned what;
    unsigned n;
    unsigned ports[2];
    while (in != NULL && fscanf(in, "%u %u %u %u", &what, &n, &ports[0], &ports[1]) == 4) {
        for (unsigned i = 0; i < n; i++) {
            deeds[what](connect_from(i, (unsigned short)ports[i % 2]), i % 2 == 1);
        }
        (void)!write(news, "\n", 1);
    }
    _exit(0);
}

/* Before there are threads. */
static void gather(struct visitors *c)
{
    int orders[2];
    int news[2];
    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(news), 0);
    c->pid = fork();
    if (c->pid == 0) {
        (void)close(orders[1]);
        (void)close(news[0]);
        be_a_crowd(orders[0], news[1]);
    }
    (void)close(orders[0]);
    (void)close(news[1]);
    c->orders = orders[1];
    c->news = news[0];
}

static unsigned port_of(const struct server *s, enum server_protocol protocol)
{
    char text[128];
    return (unsigned)atoi(strrchr(server_address(s, protocol, text, sizeof text), ':') + 1);
}

static void let_them(const struct visitors *c, const struct server *s, enum deed what, unsigned n)
{
    char done;
    assert_true(dprintf(c->orders, "%u %u %u %u\n", what, n, port_of(s, PROTOCOL_RESP),
                        port_of(s, PROTOCOL_HTTP)) > 0);
    assert_int_equal(read(c->news, &done, 1), 1);
}

static void disperse(struct visitors *c)
{
    int status;
    (void)close(c->orders);
    (void)close(c->news);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- what they may cost ---- */

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Nearly every answer comes in time; one in twenty may meet the machine's own pauses. */
static void assert_served(const char *address)
{
    struct server_client c;
    unsigned late = 0;
    server_connect(&c, address);
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t asked = now_ms();
        assert_int_equal(strncmp(server_ask(&c, "WEIR.CHECK api peace"), "['allow' ", 9), 0);
        late += now_ms() - asked > PATIENCE_MS;
    }
    server_disconnect(&c);
    assert_true(late <= PROBES / 20);
}

static void wait_for_connections(const struct server *s, uint64_t n)
{
    while (threads_get((uint64_t *)(uintptr_t)&s->connections) != n) {
        struct timespec t = {0, 1000000};
        (void)nanosleep(&t, NULL);
    }
}

static struct server_options options(void)
{
    struct server_options o = server_world_options();
    o.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    o.connections = IDLE_MOST + 100;
    return o;
}

static void ten_thousand_that_say_nothing_cost_next_to_nothing(void **state)
{
    struct rlimit files;
    struct server_options o = options();
    struct server_world w;
    struct visitors crowd;
    unsigned n = SANITIZED ? 1000 : IDLE_MOST;
    (void)state;
    o.request_ms = 120000; /* the crowd may take long to connect, and is to stay */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < n + 200) { /* where fewer files may be open */
        n = (unsigned)files.rlim_cur - 200;
    }
    gather(&crowd);
    server_world_start(&w, rules, &o);
    assert_served(w.address);
    size_t before = server_resident_bytes();
    let_them(&crowd, &w.server, SILENT, n);
    wait_for_connections(&w.server, n);
    assert_served(w.address);
    server_assert_grown_less(before, (size_t)n * IDLE_BYTES);
    disperse(&crowd);
    wait_for_connections(&w.server, 0);
    assert_served(w.address);
    server_world_stop(&w);
}

static void requests_that_do_not_go_on_hold_what_they_have_sent(void **state)
{
    struct server_options o = options();
    struct server_world w;
    struct visitors crowd;
    unsigned n = SANITIZED ? 100 : 1000;
    (void)state;
    o.request_ms = 1000;
    gather(&crowd);
    server_world_start(&w, rules, &o);
    assert_served(w.address);
    size_t before = server_resident_bytes();
    let_them(&crowd, &w.server, SLOW, n);
    assert_served(w.address);
    server_assert_grown_less(before, (size_t)n * 4 * IDLE_BYTES);
    wait_for_connections(&w.server, 0); /* they are cut off */
    disperse(&crowd);
    server_world_stop(&w);
}

static void unread_replies_are_bounded_for_all_connections_of_a_thread(void **state)
{
    struct server_options o = options();
    struct server_world w;
    struct visitors crowd;
    (void)state;
    o.write_ms = 1000;
    gather(&crowd);
    server_world_start(&w, rules, &o);
    assert_served(w.address);
    size_t before = server_resident_bytes();
    let_them(&crowd, &w.server, GREEDY, 100);
    assert_served(w.address);
    server_assert_grown_less(before,
                             (size_t)w.server.workers_count * 2 * SERVER_THREAD_OUTPUT_BYTES);
    wait_for_connections(&w.server, 0);
    disperse(&crowd);
    assert_served(w.address);
    server_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_that_say_nothing_cost_next_to_nothing),
        cmocka_unit_test(requests_that_do_not_go_on_hold_what_they_have_sent),
        cmocka_unit_test(unread_replies_are_bounded_for_all_connections_of_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
