/*
 * Handshakes of TLS that do not end keep nobody out, whether they come from nine addresses or each
 * from another one. The oldest of them make room, and never the connection in hand: that was freed,
 * and stayed in the lists of its address.
 */
// test-timeout: 600
// test-serial: yes
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/loop/worker.h"
#include "support/engine/threads_run.h"
#include "support/server/server_client.h"
#include "support/tls/tls_client.h"

#define FLOOD 4400 /* handshakes that are open at the client, three times what a thread keeps */
#define BURST 40   /* begun between two steps of an honest handshake */
#define HONEST 60  /* handshakes that must succeed */
#define RECONNECTS 1500  /* of an innocent address during the flood */
#define PER_ADDRESS 1000 /* connections that an address may have */
#define SUBNETS 2500     /* of IPv6: a network has a bound on its routes */
#ifdef WEIR_LONG
#define ROUNDS 20 /* a connection that stays in a list when it is freed ends the server in some */
#else
#define ROUNDS 1
#endif

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/day}]";

static struct certificates files;
static struct tls_context *client_context;
static struct buffer hello; /* what a client says first */
static struct server_world world;
static bool own_network; /* where this program may add addresses of IPv6 */

/* ---- bytes that OpenSSL holds ---- */

static uint64_t held_bytes;

static void *hold(size_t size, const char *file, int line)
{
    uint64_t *at = malloc(size + 16);
    (void)file;
    (void)line;
    if (at == NULL) {
        return NULL;
    }
    *at = size;
    threads_add(&held_bytes, size);
    return at + 2;
}

static void let_go(void *p, const char *file, int line)
{
    uint64_t *at = p;
    (void)file;
    (void)line;
    if (at != NULL) {
        threads_add(&held_bytes, 0 - at[-2]);
        free(at - 2);
    }
}

static void *hold_more(void *p, size_t size, const char *file, int line)
{
    void *more = size > 0 ? hold(size, file, line) : NULL;
    if (p != NULL && more != NULL) {
        size_t before = ((uint64_t *)p)[-2];
        memcpy(more, p, before < size ? before : size);
    }
    if (more != NULL || size == 0) {
        let_go(p, file, line);
    }
    return more;
}

/* ---- the network ---- */

/* Takes a network of its own, where it may have addresses. Returns false if that is not allowed. */
static bool take_network(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return false;
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
    (void)close(fd);
    return up;
}

/* Returns the first address of the i-th /64 of fd00::/32. */
static struct sockaddr_in6 in_subnet(unsigned i)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    a.sin6_addr.s6_addr[0] = 0xfd;
    a.sin6_addr.s6_addr[6] = (uint8_t)(i >> 8);
    a.sin6_addr.s6_addr[7] = (uint8_t)i;
    a.sin6_addr.s6_addr[15] = 1;
    return a;
}

static void add_subnets(unsigned n)
{
    struct {
        struct in6_addr address;
        uint32_t prefix;
        int interface;
    } request = {.prefix = 128, .interface = (int)if_nametoindex("lo")};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < n; i++) {
        request.address = in_subnet(i).sin6_addr;
        assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
    }
    (void)close(fd);
}

static unsigned short port(void)
{
    return (unsigned short)strtoul(strrchr(world.address, ':') + 1, NULL, 10);
}

/* Connects from the i-th address of IPv4, after 127.0.0.1. */
static int connect_v4(unsigned i)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000001u + i)}};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(port())};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        threads_fail(__FILE__, __LINE__, strerror(errno));
    }
    return fd;
}

static int connect_v6(unsigned i)
{
    struct sockaddr_in6 from = in_subnet(i);
    struct sockaddr_in6 to = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port())};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int e = bind(fd, (struct sockaddr *)&from, sizeof from);
    for (unsigned n = 0; e != 0 && errno == EADDRNOTAVAIL && n < 10000; n++) {
        (void)poll(NULL, 0, 1); /* the kernel still checks that the address is nobody else's */
        e = bind(fd, (struct sockaddr *)&from, sizeof from);
    }
    if (e != 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        threads_fail(__FILE__, __LINE__, strerror(errno));
    }
    return fd;
}

/* ---- a server and a flood ---- */

static void start(const char *address)
{
    struct server_options o = server_world_options();
    o.listen[PROTOCOL_RESP] = address;
    o.threads = 1;
    o.connections = FLOOD + 1000;
    o.connections_per_address = PER_ADDRESS;
    o.request_ms = 3600000; /* nobody is closed because of the time */
    o.tls.cert = certificates_path(&files, "server.crt");
    o.tls.key = certificates_path(&files, "server.key");
    o.tls.listener[PROTOCOL_RESP] = true;
    server_world_start(&world, rules, &o);
}

static uint64_t count(const uint64_t *of)
{
    return threads_get((uint64_t *)(uintptr_t)of);
}

struct flood {
    int (*connect)(unsigned i);
    unsigned addresses; /* from the second on: the first one is honest */
    unsigned size;      /* connections that are open at once */
    unsigned begun;
    int fds[FLOOD];
};

static struct flood flood;

/* Waits until the server has accepted what was begun: its queue is short. */
static void let_accept(uint64_t more)
{
    const struct worker *w = &world.server.workers[0];
    static uint64_t expected;
    expected = more == 0 ? 0 : expected + more;
    while (count(&w->counts.accepted[PROTOCOL_RESP]) < expected) {
        (void)poll(NULL, 0, 1);
    }
}

static void make_hello(void)
{
    struct tls_session *s = tls_session_create(client_context, "localhost");
    struct weir_text none = TEXT("");
    struct buffer plain;
    struct weir_error error;
    buffer_init(&hello, 65536);
    buffer_init(&plain, 65536);
    assert_int_equal(tls_receive(s, &none, &plain, &hello, &error), TLS_OK);
    tls_session_destroy(s);
    buffer_finish(&plain);
}

/* Begins handshakes: silent ones, some with the first bytes of a record, some with all of a
 * ClientHello to which the server replies. */
static void begin_handshakes(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        int *fd = &flood.fds[flood.begun % flood.size];
        struct weir_text sent = buffer_text(&hello);
        sent.len = flood.begun % 4 == 1 ? 4 : flood.begun % 8 == 2 ? sent.len : 0;
        if (flood.begun >= flood.size) {
            (void)close(*fd);
        }
        *fd = flood.connect(1 + flood.begun % flood.addresses);
        (void)!send(*fd, sent.at, sent.len, MSG_NOSIGNAL);
        flood.begun++;
    }
    let_accept(n);
}

static void begin_flood(int (*connect)(unsigned i), unsigned addresses)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    flood = (struct flood){
        .connect = connect, .addresses = addresses, .size = addresses == SUBNETS ? SUBNETS : FLOOD};
    if (limit.rlim_cur < 2 * flood.size + 500) {
        flood.size = (unsigned)(limit.rlim_cur - 500) / 2;
    }
    let_accept(0);
    while (flood.begun < flood.size) {
        begin_handshakes(BURST);
    }
}

static void end_flood(void)
{
    unsigned n = flood.begun < flood.size ? flood.begun : flood.size;
    for (unsigned i = 0; i < n; i++) {
        (void)close(flood.fds[i]);
    }
    while (count(&world.server.connections) > 0) {
        (void)poll(NULL, 0, 1);
    }
}

/* Makes a handshake from the honest address, while the flood goes on. */
static bool succeeds(unsigned burst)
{
    struct tls_client c;
    tls_client_open(&c, flood.connect(0), client_context);
    let_accept(1);
    begin_handshakes(burst);
    bool good = tls_client_shake(&c);
    begin_handshakes(burst);
    good = good && strcmp(tls_client_ask(&c, "PING"), "+PONG\r\n") == 0;
    tls_client_close(&c);
    return good;
}

static unsigned count_successes(unsigned burst)
{
    unsigned good = 0;
    for (unsigned i = 0; i < HONEST; i++) {
        good += succeeds(burst);
    }
    return good;
}

/* Begins all honest handshakes at once, from one address, which then has the most. */
static unsigned count_parallel_successes(void)
{
    static struct tls_client clients[HONEST];
    unsigned good = 0;
    for (unsigned i = 0; i < HONEST; i++) {
        tls_client_open(&clients[i], flood.connect(0), client_context);
    }
    let_accept(HONEST);
    begin_handshakes(BURST);
    for (unsigned i = 0; i < HONEST; i++) {
        good += tls_client_shake(&clients[i]) &&
                strcmp(tls_client_ask(&clients[i], "PING"), "+PONG\r\n") == 0;
        begin_handshakes(1);
    }
    for (unsigned i = 0; i < HONEST; i++) {
        tls_client_close(&clients[i]);
    }
    return good;
}

/* Connects and leaves again and again, as a health check that knows no TLS does. */
static void reconnect(void)
{
    for (unsigned i = 0; i < RECONNECTS; i++) {
        (void)close(flood.connect(0));
        if (i % BURST == 0) {
            let_accept(i == 0 ? 1 : BURST);
            begin_handshakes(BURST);
        }
    }
    let_accept((RECONNECTS - 1) % BURST);
}

static void assert_nobody_is_kept_out(int (*connect)(unsigned i), unsigned addresses)
{
    const struct worker *w = &world.server.workers[0];
    begin_flood(connect, addresses);
    assert_int_equal(count_successes(BURST), HONEST);
    assert_int_equal(count_parallel_successes(), HONEST);
    assert_true(count(&w->counts.replaced_bytes) > 0);
    assert_true(count(&w->counts.handshakes) >= 2 * HONEST);
    reconnect();
    assert_int_equal(count(&w->counts.refused_address), 0);
    end_flood();
    assert_int_equal(count_successes(0), HONEST);
}

/* ---- promises ---- */

static void silent_handshakes_of_nine_addresses_keep_nobody_out(void **state)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        start("127.0.0.1:0");
        assert_nobody_is_kept_out(connect_v4, 9);
        server_world_stop(&world);
    }
}

static void handshakes_that_each_have_another_address_keep_nobody_out(void **state)
{
    start("127.0.0.1:0");
    assert_nobody_is_kept_out(connect_v4, 10 * FLOOD);
    server_world_stop(&world);
}

static void handshakes_of_many_subnets_keep_nobody_out(void **state)
{
    if (!own_network) {
        skip();
    }
    start("[::1]:0");
    add_subnets(1 + SUBNETS);
    assert_nobody_is_kept_out(connect_v6, SUBNETS);
    server_world_stop(&world);
}

/* Returns the bytes that OpenSSL holds for each of some handshakes that do not end. */
static uint64_t measure(struct tls_context *context, struct weir_text sent)
{
    struct tls_session *sessions[16];
    struct buffer plain;
    struct buffer out;
    struct weir_error error;
    buffer_init(&plain, 65536);
    buffer_init(&out, 1u << 20);
    uint64_t before = threads_get(&held_bytes);
    for (unsigned i = 0; i < 16; i++) {
        struct weir_text cipher = sent;
        sessions[i] = tls_session_create(context, NULL);
        assert_int_equal(tls_receive(sessions[i], &cipher, &plain, &out, &error), TLS_OK);
    }
    uint64_t bytes = (threads_get(&held_bytes) - before) / 16;
    for (unsigned i = 0; i < 16; i++) {
        tls_session_destroy(sessions[i]);
    }
    buffer_finish(&plain);
    buffer_finish(&out);
    return bytes;
}

static void a_handshake_holds_no_more_than_it_counts(void **state)
{
    static const char record[] = "\x16\x03\x01\x40";        /* of 16 KB, which do not come */
    static const char large[] = "\x16\x03\x01\0\4\1\0\x40"; /* the largest hello announced */
    static const char two[] = "\x16\x03\x01\0\4\1\0\x40\0\x16\x03\x01\x40"; /* in a second record */
    struct tls_options o = {.server = true,
                            .cert = certificates_path(&files, "server.crt"),
                            .key = certificates_path(&files, "server.key")};
    struct tls_context *context;
    struct weir_error error;
    const struct weir_text sent[] = {TEXT(""),
                                     {"\x16", 1},
                                     {record, sizeof record},
                                     buffer_text(&hello),
                                     {large, sizeof large},
                                     {two, sizeof two}};
    assert_int_equal(tls_context_create(&context, &o, &error), 0);
    (void)measure(context, buffer_text(&hello)); /* what all sessions share */
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        assert_in_range(measure(context, sent[i]), 16384, SERVER_HANDSHAKE_BYTES);
    }
    tls_context_unref(context);
}

static int set_up(void **state)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    certificates_make(&files);
    client_context = tls_client_context(&files, "ca", NULL);
    make_hello();
    return 0;
}

static int tear_down(void **state)
{
    buffer_finish(&hello);
    tls_context_unref(client_context);
    certificates_remove(&files);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_holds_no_more_than_it_counts),
        cmocka_unit_test(silent_handshakes_of_nine_addresses_keep_nobody_out),
        cmocka_unit_test(handshakes_that_each_have_another_address_keep_nobody_out),
        cmocka_unit_test(handshakes_of_many_subnets_keep_nobody_out),
    };
    own_network = take_network();
    if (CRYPTO_set_mem_functions(hold, hold_more, let_go) != 1) {
        return 1;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
