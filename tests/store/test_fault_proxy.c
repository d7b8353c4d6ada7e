/*
 * Tests the fault proxy from both ends of a connection through it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/store/fault_proxy.h"
#include "support/store/redis_node.h"

#define SOON_MS 10000 /* for events that must happen */
#define NEVER_MS 50   /* for events that must not happen */

static struct fault_proxy *proxy;
static int listener;
static unsigned listener_port;

/* The two ends of a connection through the proxy. */
static int client;
static int server;

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_somewhere(unsigned *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int dial(int flags)
{
    struct sockaddr_in address = loopback(fault_proxy_port(proxy));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    int e = connect(fd, (struct sockaddr *)&address, sizeof address);
    assert_true(e == 0 || errno == EINPROGRESS);
    return fd;
}

static bool happens(int fd, short events, int within_ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, within_ms) == 1;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads that many bytes, in any number of pieces, and compares them. */
static void hears(int fd, const char *text)
{
    char got[4096];
    size_t want = strlen(text);
    size_t have = 0;
    while (have < want) {
        assert_true(happens(fd, POLLIN, SOON_MS));
        ssize_t n = read(fd, got + have, want - have);
        assert_true(n > 0);
        have += (size_t)n;
    }
    assert_memory_equal(got, text, want);
}

static void hears_nothing(int fd)
{
    assert_false(happens(fd, POLLIN, NEVER_MS));
}

static void hears_the_end(int fd, int error)
{
    char byte;
    assert_true(happens(fd, POLLIN, SOON_MS));
    assert_int_equal(read(fd, &byte, 1), error != 0 ? -1 : 0);
    assert_true(error == 0 || errno == error);
}

/* Also waits until the proxy has handled and counted everything that came before. */
static void set(struct faults faults)
{
    fault_proxy_set(proxy, &faults);
}

static int join(void **state)
{
    listener = listen_somewhere(&listener_port);
    proxy = fault_proxy_start(listener_port);
    client = dial(0);
    server = accept(listener, NULL, NULL);
    return server < 0;
}

static int part(void **state)
{
    (void)close(client);
    (void)close(server);
    (void)close(listener);
    fault_proxy_stop(proxy);
    return 0;
}

/* ---- */

static void without_faults_bytes_and_ends_pass_both_ways(void **state)
{
    say(client, "ping");
    hears(server, "ping");
    say(server, "pong");
    hears(client, "pong");
    set((struct faults){0});
    struct fault_counts c = fault_proxy_counts(proxy);
    assert_int_equal(c.accepted, 1);
    assert_int_equal(c.open, 1);
    assert_int_equal(c.to_server, 4);
    assert_int_equal(c.to_client, 4);
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    hears_the_end(server, 0);
    say(server, "last");
    hears(client, "last");
    (void)close(server);
    server = -1;
    hears_the_end(client, 0);
}

static void what_is_delayed_comes_later_and_not_earlier(void **state)
{
    uint64_t begin = redis_now_ms();
    set((struct faults){.delay_us = 30000});
    say(client, "ping");
    hears(server, "ping");
    assert_true(redis_now_ms() - begin >= 29);
}

static void what_is_delayed_by_chance_keeps_its_order(void **state)
{
    char all[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    set((struct faults){.delay_us = 1000, .jitter_us = 5000});
    for (size_t i = 0; all[i] != 0; i++) {
        assert_int_equal(send(client, &all[i], 1, MSG_NOSIGNAL), 1);
        (void)usleep(300);
    }
    hears(server, all);
}

static void slices_are_packets_of_their_own(void **state)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    set((struct faults){.slice = 1});
    say(client, "*1\r\n$4\r\nPING\r\n");
    hears(server, "*1\r\n$4\r\nPING\r\n");
    assert_int_equal(getsockopt(server, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    assert_int_equal(info.tcpi_data_segs_in, 14);
}

static void what_is_held_comes_when_it_is_let_go(void **state)
{
    set((struct faults){.to_client = FAULT_HOLD});
    say(client, "ping");
    hears(server, "ping");
    say(server, "pong");
    hears_nothing(client);
    set((struct faults){0});
    hears(client, "pong");
}

static void what_is_dropped_one_way_is_lost_and_the_other_way_goes_on(void **state)
{
    set((struct faults){.to_client = FAULT_DROP});
    say(server, "lost");
    say(client, "ping");
    hears(server, "ping");
    hears_nothing(client);
    set((struct faults){0});
    say(server, "lost too");
    hears_nothing(client);
    set((struct faults){0});
    assert_int_equal(fault_proxy_counts(proxy).dropped, 12);
}

static void half_open_connections_are_made_and_never_answered_nor_ended(void **state)
{
    set((struct faults){.half_open = true});
    int fd = dial(0);
    say(fd, "ping");
    say(client, "ping");
    hears_nothing(fd);
    hears_nothing(server);
    assert_false(happens(listener, POLLIN, 0));
    (void)close(client);
    client = -1;
    hears_nothing(server);
    set((struct faults){0});
    say(fd, "still nobody");
    hears_nothing(fd);
    (void)close(fd);
}

static void a_black_hole_neither_takes_nor_refuses_connections(void **state)
{
    set((struct faults){.black_hole = true});
    int fd = dial(SOCK_NONBLOCK);
    say(client, "ping");
    assert_false(happens(fd, POLLOUT, NEVER_MS));
    hears_nothing(server);
    set((struct faults){0});
    hears(server, "ping");
    assert_true(happens(fd, POLLOUT, SOON_MS)); /* by the kernel's own second attempt */
    int other = accept(listener, NULL, NULL);
    say(fd, "hello");
    hears(other, "hello");
    assert_int_equal(fault_proxy_counts(proxy).accepted, 2);
    (void)close(other);
    (void)close(fd);
}

static void a_reset_ends_both_sides_at_once(void **state)
{
    fault_proxy_reset(proxy);
    hears_the_end(client, ECONNRESET);
    hears_the_end(server, ECONNRESET);
    assert_int_equal(fault_proxy_counts(proxy).open, 0);
}

static void refused_connections_are_reset_and_others_stay(void **state)
{
    set((struct faults){.refuse = true});
    int fd = dial(0);
    hears_the_end(fd, ECONNRESET);
    say(client, "ping");
    hears(server, "ping");
    (void)close(fd);
}

static void new_connections_are_led_elsewhere(void **state)
{
    unsigned port;
    int elsewhere = listen_somewhere(&port);
    fault_proxy_lead_to(proxy, port);
    int fd = dial(0);
    int other = accept(elsewhere, NULL, NULL);
    say(fd, "hello");
    hears(other, "hello");
    (void)close(elsewhere);
    (void)close(other);
    (void)close(fd);
    fd = dial(0);
    hears_the_end(fd, ECONNRESET); /* there is no listener any more */
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_faults_bytes_and_ends_pass_both_ways, join, part),
        cmocka_unit_test_setup_teardown(what_is_delayed_comes_later_and_not_earlier, join, part),
        cmocka_unit_test_setup_teardown(what_is_delayed_by_chance_keeps_its_order, join, part),
        cmocka_unit_test_setup_teardown(slices_are_packets_of_their_own, join, part),
        cmocka_unit_test_setup_teardown(what_is_held_comes_when_it_is_let_go, join, part),
        cmocka_unit_test_setup_teardown(what_is_dropped_one_way_is_lost_and_the_other_way_goes_on,
                                        join, part),
        cmocka_unit_test_setup_teardown(half_open_connections_are_made_and_never_answered_nor_ended,
                                        join, part),
        cmocka_unit_test_setup_teardown(a_black_hole_neither_takes_nor_refuses_connections, join,
                                        part),
        cmocka_unit_test_setup_teardown(a_reset_ends_both_sides_at_once, join, part),
        cmocka_unit_test_setup_teardown(refused_connections_are_reset_and_others_stay, join, part),
        cmocka_unit_test_setup_teardown(new_connections_are_led_elsewhere, join, part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
