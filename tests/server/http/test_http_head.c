/*
 * Work before thought: a request that leads nowhere, or that the client may not make, is refused at
 * the end of its head; a body is read once, however many pieces it comes in; JSON has a
 * bound on its values.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/maths.h"
#include "server/loop/access_story.h"
#include "support/server/server_http.h"
#include "support/engine/threads_run.h"
#include "wire/http_request.h"

static struct http_server server;
static struct http_answer a;

static int start_server(void **state)
{
    struct server_options o = {.access = secrets("check-1", "admin-1")};
    http_server_start(&server, rules, &o);
    return 0;
}

static int stop_server(void **state)
{
    http_server_stop(&server);
    access_close(server.server.options.access);
    return 0;
}

static void say(int fd, const char *text)
{
    http_send(fd, text, strlen(text));
}

static int connect_now(void)
{
    int one = 1;
    int fd = http_connect(&server);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
    return fd;
}

#define GOOD "Authorization: Bearer check-1\r\n"
#define CHECK_HEAD "POST /v1/check HTTP/1.1\r\nHost: localhost\r\n" GOOD
#define CHECK_BODY "{\"limit\":\"api\",\"key\":\"alice\"}"

/* ---- heads ---- */

static const struct {
    const char *head;
    int status;
} refused[] = {
    {"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n", 401},
    {"POST /v1/check HTTP/1.1\r\nHost: localhost\r\n", 401},
    {"POST /v1/chess HTTP/1.1\r\nHost: localhost\r\n" GOOD, 404},
    {"PUT /v1/check HTTP/1.1\r\nHost: localhost\r\n" GOOD, 405},
};

#define REFUSED (sizeof refused / sizeof refused[0])

static void assert_refused(int fd, int status)
{
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, status);
    assert_true(http_has_line(&a, "Connection: close"));
    assert_false(http_receive(fd, &a));
}

/* No byte of the body is sent: the reply cannot have waited for it. */
static void a_bad_head_is_refused_before_its_body(void **state)
{
    static const char *const bodies[] = {"Content-Length: 200000\r\n\r\n",
                                         "Transfer-Encoding: chunked\r\n\r\n",
                                         "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"};
    for (size_t i = 0; i < REFUSED; i++) {
        for (size_t k = 0; k < sizeof bodies / sizeof bodies[0]; k++) {
            int fd = connect_now();
            say(fd, refused[i].head);
            say(fd, bodies[k]);
            assert_refused(fd, refused[i].status);
            (void)close(fd);
        }
    }
    int fd = connect_now();
    say(fd, CHECK_HEAD "Content-Length: 65537\r\nExpect: 100-continue\r\n\r\n");
    assert_refused(fd, 413);
    (void)close(fd);
}

/* The client writes on, and then reads: what it has sent must not destroy the reply. */
static void a_client_that_sends_its_body_nevertheless_gets_the_reply(void **state)
{
    static char body[200000];
    for (size_t i = 0; i < REFUSED; i++) {
        int fd = connect_now();
        say(fd, refused[i].head);
        say(fd, "Content-Length: 200000\r\n\r\n");
        http_send(fd, body, sizeof body);
        assert_refused(fd, refused[i].status);
        (void)close(fd);
    }
}

/* A request that came as a whole is read as a whole, and the connection stays. */
static void a_complete_request_is_refused_without_ending_the_connection(void **state)
{
    int fd = connect_now();
    say(fd, "POST /v1/chess HTTP/1.1\r\nHost: localhost\r\n" GOOD "Content-Length: 2\r\n\r\n{}");
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 404);
    say(fd, CHECK_HEAD "Content-Length: 29\r\n\r\n" CHECK_BODY);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    (void)close(fd);
}

static void a_good_head_gets_a_100_and_then_the_answer(void **state)
{
    int fd = connect_now();
    say(fd, CHECK_HEAD "Content-Length: 29\r\nExpect: 100-continue\r\n\r\n");
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 100);
    say(fd, CHECK_BODY);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    (void)close(fd);
}

/* ---- chunks ---- */

static uint64_t cpu_ns(void)
{
    struct rusage r;
    assert_int_equal(getrusage(RUSAGE_SELF, &r), 0);
    return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * WEIR_SECOND +
           (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

#define CHUNKS 1750 /* with the pieces fewer than HTTP_CHUNKS_MAX */
#define PIECES 250
#define BODIES 10
#define CHUNK "1\r\n\n\r\n" /* it ends as a body may end */

/* A server with one thread: when it has answered on one connection, it has read what came before on
 * the other. */
static struct server_world world;
static struct server_client other;

/* Returns the CPU time that bodies of many small chunks take, the last of which come one by one, or
 * other bodies of the same size. That of this client is in it. */
static uint64_t send_bodies(int fd, bool chunked)
{
    static const char chunks[] =
        CHECK_HEAD "Transfer-Encoding: chunked\r\n\r\n1d\r\n" CHECK_BODY "\r\n";
    static char body[CHUNKS * 6 + 1];
    char head[256];
    uint64_t before = cpu_ns();
    for (unsigned i = 0; i < CHUNKS; i++) {
        memcpy(body + i * 6, chunked ? CHUNK : "\n\n\n\n\n\n", 6);
    }
    (void)snprintf(head, sizeof head, CHECK_HEAD "Content-Length: %u\r\n\r\n",
                   (CHUNKS + PIECES) * 6 + 29);
    for (unsigned b = 0; b < BODIES; b++) {
        say(fd, chunked ? chunks : head);
        http_send(fd, body, CHUNKS * 6);
        for (unsigned i = 0; i < PIECES; i++) {
            http_send(fd, body, 6);
            assert_string_equal(server_ask(&other, "PING"), "+PONG");
        }
        say(fd, chunked ? "0\r\n\r\n" : CHECK_BODY);
        assert_true(http_receive(fd, &a));
        assert_int_equal(a.status, 200);
    }
    return cpu_ns() - before;
}

/* When the whole body was read again for each piece, it took many times as long. */
static void a_chunked_body_in_pieces_costs_what_another_body_costs(void **state)
{
    struct server_options o = server_world_options();
    struct server_client c;
    char address[128];
    o.threads = 1;
    o.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    server_world_start(&world, rules, &o);
    server_connect(&other, world.address);
    server_connect(&c, server_address(&world.server, PROTOCOL_HTTP, address, sizeof address));
    (void)send_bodies(c.fd, true);
    uint64_t plain = UINT64_MAX;
    uint64_t chunked = UINT64_MAX;
    for (unsigned i = 0; i < 3; i++) {
        plain = min_u64(plain, send_bodies(c.fd, false));
        chunked = min_u64(chunked, send_bodies(c.fd, true));
    }
    if (chunked > 2 * plain) {
        fail_msg("%u chunked bodies in pieces took %llu us of CPU time, others %llu us", BODIES,
                 (unsigned long long)chunked / 1000, (unsigned long long)plain / 1000);
    }
    server_disconnect(&c);
    server_disconnect(&other);
    server_world_stop(&world);
}

/* ---- the OpenAPI document ---- */

/* Returns the CPU time of some requests, with that of this client. */
static uint64_t get_some(const char *path)
{
    char request[128];
    int fd = connect_now();
    uint64_t before = cpu_ns();
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    for (unsigned i = 0; i < 50; i++) {
        say(fd, request);
        assert_true(http_receive(fd, &a));
        assert_int_equal(a.status, 200);
    }
    (void)close(fd);
    return cpu_ns() - before;
}

/* When it was composed for each request, it took a hundred times as long as a short reply. Other
 * processes disturb CPU times, so the least of some counts. */
static void the_openapi_document_costs_little_more_than_a_short_reply(void **state)
{
    uint64_t brief = UINT64_MAX;
    uint64_t document = UINT64_MAX;
    (void)get_some("/openapi.json");
    for (unsigned i = 0; i < 5; i++) {
        brief = min_u64(brief, get_some("/healthz"));
        document = min_u64(document, get_some("/openapi.json"));
    }
    if (document > 10 * brief) {
        fail_msg("the document took %llu us of CPU time, a short reply %llu us",
                 (unsigned long long)document / 50000, (unsigned long long)brief / 50000);
    }
}

/* ---- JSON ---- */

/* Fills a body with as many values as fit into `len` bytes: {"limit":[1,1,...]}. */
static char *fill(size_t len, const char *front, const char *back)
{
    char *text = malloc(len + 1);
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "%s1", front);
    while (n + 2 + strlen(back) <= len) {
        n += (size_t)sprintf(text + n, ",1");
    }
    (void)strcpy(text + n, back);
    return text;
}

static void json_has_a_bound_on_its_values(void **state)
{
    char *one = fill(8000, "{\"limit\":[", "]}");
    char *batch = fill(200000, "{\"requests\":[", "]}");
    http_ask(&server, "POST /v1/check", GOOD, one, &a);
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(
        a.body, "the body is not JSON with at most 1024 values and names: line 1, column 2"));
    http_ask(&server, "POST /v1/check/batch", GOOD, batch, &a);
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(
        a.body, "the body is not JSON with at most 32000 values and names: line 1, column "));
    free(one);
    free(batch);
}

/* What looks like values inside of strings is none. */
static void the_largest_questions_are_within_the_bound(void **state)
{
    static char body[262144];
    size_t n = (size_t)sprintf(body, "{\"attributes\":{\"user\":\"\\\"[[[,,,:::{{{\\\\\"");
    for (unsigned i = 1; i < 256; i++) {
        n += (size_t)sprintf(body + n, ",\"a%u\":\",,,,,,,,,,:::::::::\"", i);
    }
    (void)strcpy(body + n, "},\"cost\":1}");
    http_ask(&server, "POST /v1/check", GOOD, body, &a);
    assert_int_equal(a.status, 200);
    n = (size_t)sprintf(body, "{\"requests\":[");
    for (unsigned i = 0; i < 1000; i++) {
        n +=
            (size_t)sprintf(body + n,
                            "%s{\"attributes\":{\"path\":\"/\",\"a\":\"b\",\"c\":\"d\",\"e\":\"f\","
                            "\"g\":\"h\",\"user\":\"%u\"},\"cost\":1}",
                            i > 0 ? "," : "", i);
    }
    (void)strcpy(body + n, "]}");
    http_ask(&server, "POST /v1/check/batch", GOOD, body, &a);
    assert_int_equal(a.status, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_head_is_refused_before_its_body),
        cmocka_unit_test(a_client_that_sends_its_body_nevertheless_gets_the_reply),
        cmocka_unit_test(a_complete_request_is_refused_without_ending_the_connection),
        cmocka_unit_test(a_good_head_gets_a_100_and_then_the_answer),
        cmocka_unit_test(a_chunked_body_in_pieces_costs_what_another_body_costs),
        cmocka_unit_test(the_openapi_document_costs_little_more_than_a_short_reply),
        cmocka_unit_test(json_has_a_bound_on_its_values),
        cmocka_unit_test(the_largest_questions_are_within_the_bound),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
