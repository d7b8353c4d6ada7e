/*
 * Clients of the operator's own address cannot lock it out: 40, 60 and 1,000 connections that guess
 * secrets, stay silent, send one byte or many, or a mixture of these, and that come again when they
 * are closed. The operator, and health checks, connect anew for each request.
 */
// test-timeout: 600
// test-serial: yes
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/loop/worker.h"
#include "support/engine/threads_run.h"
#include "support/server/access_secrets.h"
#include "support/server/server_admin.h"
#include "support/server/server_client.h"

#define CROWD_MOST 1000
#define CHANGES 100 /* PUT /v1/mode that must succeed */
#define CHECKS 50   /* GET /readyz */

static const char rules[] = "limits: [{name: api, key: [user], rate: 1M/day}]\n";

static struct admin_world world;
static struct http_answer answer;

/* ---- the other process ---- */

enum deed { GUESS, SILENT, BYTE, BYTES, MIXTURE };

static const char *const names[] = {"guess", "stay silent", "send one byte", "send byte after byte",
                                    "do all of these"};

/* What one connection of the crowd sends when it is open, and after each answer. */
static const char *words_of(unsigned deed)
{
    return deed == GUESS
               ? "PUT /v1/mode HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer no\r\n"
                 "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
           : deed == BYTE || deed == BYTES ? "P"
                                           : "";
}

static int begin(unsigned short port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct linger none = {.l_onoff = 1}; /* no port stays in use after a close */
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        perror("crowd");
        _exit(1);
    }
    return fd;
}

/* Handles one event of a connection; a connection that has ended is begun anew. */
static void go_on(struct pollfd *p, unsigned deed, unsigned short port)
{
    char heard[4096];
    const char *words = words_of(deed);
    bool opened = (p->revents & POLLOUT) != 0;
    bool ended = (p->revents & (POLLERR | POLLHUP)) != 0;
    ssize_t n = (p->revents & POLLIN) != 0 ? recv(p->fd, heard, sizeof heard, 0) : 0;
    ended = ended || ((p->revents & POLLIN) != 0 && n <= 0);
    if (ended) {
        (void)close(p->fd);
        *p = (struct pollfd){.fd = begin(port), .events = POLLIN | POLLOUT};
    } else if (opened || n > 0) {
        p->events = POLLIN;
        (void)!send(p->fd, words, strlen(words), MSG_NOSIGNAL);
    }
}

/* Does what it is told until the orders end: "deed number port\n". */
static void be_a_crowd(int orders)
{
    static struct pollfd all[1 + CROWD_MOST];
    char line[64] = "";
    unsigned deed = 0;
    unsigned n = 0;
    unsigned port = 0;
    all[0] = (struct pollfd){.fd = orders, .events = POLLIN};
    for (;;) {
        (void)poll(all, 1 + n, deed == BYTES ? 1 : -1);
        for (unsigned i = 1; i <= n && deed == BYTES; i++) {
            (void)!send(all[i].fd, "P", 1, MSG_NOSIGNAL);
        }
        if (all[0].revents != 0) {
            for (unsigned i = 1; i <= n; i++) {
                (void)close(all[i].fd);
            }
            if (read(orders, line, sizeof line) <= 0 ||
                sscanf(line, "%u %u %u", &deed, &n, &port) != 3) {
                _exit(0);
            }
            for (unsigned i = 1; i <= n; i++) {
                all[i] =
                    (struct pollfd){.fd = begin((unsigned short)port), .events = POLLIN | POLLOUT};
            }
            continue;
        }
        for (unsigned i = 1; i <= n; i++) {
            if (all[i].revents != 0) {
                go_on(&all[i], deed == MIXTURE ? i % 3 : deed, (unsigned short)port);
            }
        }
    }
}

static pid_t crowd;
static int orders;

/* Called before there are threads. */
static void gather(void)
{
    int ends[2];
    struct rlimit limit;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (pipe(ends) != 0) {
        exit(1);
    }
    crowd = fork();
    if (crowd == 0) {
        (void)close(ends[1]);
        (void)!nice(19); /* it would be another machine, and take no time from the operator */
        be_a_crowd(ends[0]);
    }
    (void)close(ends[0]);
    orders = ends[1];
}

/* Lets the crowd do this, and waits until the listener has accepted as many connections. */
static void let_them(enum deed deed, unsigned n, enum server_protocol listener)
{
    const char *port = strrchr(world.address[listener], ':') + 1;
    const struct worker *w = &world.server.workers[world.server.threads];
    assert_true(dprintf(orders, "%u %u %s\n", deed, n, port) > 0);
    while (threads_get((uint64_t *)(uintptr_t)&w->counts.accepted[listener]) < n) {
        (void)poll(NULL, 0, 1);
    }
}

/* ---- the operator ---- */

/* Sends a request on a connection of its own. Returns the status; 0: there was no answer; -1: there
 * was none, and this process had to wait for a processor for so long that its connection was no
 * longer a fresh one when it sent the request. */
static int ask(enum server_protocol listener, const char *request)
{
    struct server_client c;
    uint64_t begun_ns = clock_monotonic_ns();
    server_connect(&c, world.address[listener]);
    bool sent = server_send(&c, request, strlen(request));
    bool slow = clock_monotonic_ns() - begun_ns > CROWD_FRESH_MS / 2 * WEIR_MILLISECOND;
    int status = sent && http_receive(c.fd, &answer) ? answer.status : slow ? -1 : 0;
    server_disconnect(&c);
    return status;
}

/* Returns how many of n requests were answered; those of a slow process are sent again. */
static unsigned count_good(enum server_protocol listener, const char *request, unsigned n)
{
    unsigned good = 0;
    unsigned slow = 0;
    for (unsigned i = 0; i < n;) {
        int status = ask(listener, request);
        bool again = status < 0 && slow++ < n;
        i += !again;
        good += status == 200;
    }
    return good;
}

static void assert_operable(enum deed deed, unsigned n)
{
    static const char put[] =
        "PUT /v1/mode HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin-1\r\n"
        "Content-Type: application/json\r\nContent-Length: 18\r\n\r\n{\"mode\":\"enforce\"}";
    static const char ready[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    unsigned changes = count_good(PROTOCOL_ADMIN, put, CHANGES);
    unsigned checks = count_good(PROTOCOL_ADMIN, ready, CHECKS);
    unsigned metrics = count_good(PROTOCOL_METRICS, ready, CHECKS);
    if (changes < CHANGES || checks < CHECKS || metrics < CHECKS) {
        fail_msg("beside %u connections that %s: %u of %u changes, %u and %u of %u checks", n,
                 names[deed], changes, CHANGES, checks, metrics, CHECKS);
    }
}

/* ---- promises ---- */

static void assert_operable_beside(enum deed deed, unsigned n, unsigned operators)
{
    struct server_options o = {.access = secrets("check-1", "admin-1"), .operators = operators};
    admin_world_start(&world, rules, &o);
    let_them(deed, n, PROTOCOL_ADMIN);
    assert_operable(deed, n);
    assert_true(dprintf(orders, "0 0 0\n") > 0);
    admin_world_stop(&world);
    access_close(o.access);
}

static void the_operator_is_answered_beside_many_of_its_address(void **state)
{
    static const unsigned sizes[] = {40, 60, CROWD_MOST};
    for (enum deed deed = GUESS; deed <= MIXTURE; deed++) {
        for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            assert_operable_beside(deed, sizes[i], 0);
        }
    }
}

/* Their address has 32 connections, all of which are taken. */
static void those_that_guess_make_room_where_there_are_few_places(void **state)
{
    assert_operable_beside(GUESS, 40, 64);
    assert_operable_beside(GUESS, 60, 64);
}

static int disperse(void **state)
{
    int status;
    (void)close(orders);
    return waitpid(crowd, &status, 0) == crowd && status == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_operator_is_answered_beside_many_of_its_address),
        cmocka_unit_test(those_that_guess_make_room_where_there_are_few_places),
    };
    gather();
    return cmocka_run_group_tests(tests, NULL, disperse);
}
