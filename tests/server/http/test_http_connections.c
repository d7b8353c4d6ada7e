/* Connections of the HTTP listener: pipelines, pieces, bounds, and when they end. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/http_story.h"

static void a_pipeline_is_answered_in_its_order(void **state)
{
    int fd = http_connect(server);
    char text[256];
    for (int cost = 1; cost <= 200; cost++) {
        char body[64];
        int n = sprintf(body, "{\"limit\":\"api\",\"key\":\"pipeline\",\"cost\":%d}", 1 + cost % 3);
        n = sprintf(text,
                    "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", n,
                    body);
        http_send(fd, text, (size_t)n);
    }
    int left = 1000;
    for (int cost = 1; cost <= 200; cost++) {
        assert_true(http_receive(fd, &a));
        left -= 1 + cost % 3;
        char expected[64];
        (void)sprintf(expected, "\"remaining\":%d,", left);
        assert_body_has(expected);
    }
    (void)close(fd);
}

/* Each as large as may be, so that the beginning of the next is always among what was read. */
static void large_bodies_may_be_pipelined(void **state)
{
    static char text[HTTP_REQUEST_MAX];
    int n = sprintf(text,
                    "POST /v1/check/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nA: ",
                    HTTP_BODY_MAX);
    size_t head = HTTP_HEAD_MAX;
    memset(text + n, 'a', head - 4 - (size_t)n);
    memcpy(text + head - 4, "\r\n\r\n", 4);
    memset(text + head, ' ', HTTP_BODY_MAX);
    memcpy(text + head, "{\"requests\":[]}", 15);
    int fd = http_connect(server);
    for (int i = 0; i < 10; i++) {
        http_send(fd, text, sizeof text);
    }
    for (int i = 0; i < 10; i++) {
        assert_true(http_receive(fd, &a));
        assert_status(200);
    }
    (void)close(fd);
}

/* Each piece looks like the end of the body. */
static void a_chunked_body_may_come_in_many_pieces(void **state)
{
    static const char head[] =
        "POST /v1/peek HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        "1a\r\n{\"limit\":\"api\",\"key\":\"pp\"}\r\n";
    int fd = http_connect(server);
    int one = 1;
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
    http_send(fd, head, strlen(head));
    for (unsigned i = 0; i < 2000; i++) {
        http_send(fd, "1\r\n\n\r\n", 6);
    }
    http_send(fd, "0\r\n\r\n", 5);
    assert_true(http_receive(fd, &a));
    assert_status(200);
    (void)close(fd);
}

static void a_chunked_body_beyond_the_bound_is_a_413(void **state)
{
    static const char head[] =
        "POST /v1/peek HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    int fd = http_connect(server);
    struct pollfd answered = {.fd = fd, .events = POLLIN};
    http_send(fd, head, strlen(head));
    for (unsigned i = 0; i < 20000 && poll(&answered, 1, 0) == 0; i++) {
        http_send(fd, "1\r\n\n\r\n", 6);
    }
    assert_true(http_receive(fd, &a));
    assert_status(413);
    (void)close(fd);
}

static void a_request_may_come_byte_by_byte(void **state)
{
    static const char *const texts[] = {
        "POST /v1/peek HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        "27\r\n\r\n{\"limit\":\"api\",\"key\":\"pp\"}\n",
        "POST /v1/peek HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        "10\r\n{\"limit\":\"api\",\"\r\na\r\nkey\":\"pp\"}\r\n0\r\n\r\n"};
    int fd = http_connect(server);
    for (size_t i = 0; i < 2; i++) {
        for (size_t n = 0; n < strlen(texts[i]); n++) {
            http_send(fd, texts[i] + n, 1);
        }
        assert_true(http_receive(fd, &a));
        assert_status(200);
    }
    (void)close(fd);
}

static void who_expects_a_100_gets_one_and_then_the_answer(void **state)
{
    const char *head = "POST /v1/peek HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                       "Content-Length: 26\r\n\r\n";
    int fd = http_connect(server);
    for (int i = 0; i < 2; i++) {
        http_send(fd, head, strlen(head));
        assert_true(http_receive(fd, &a));
        assert_status(100);
        http_send(fd, "{\"limit\":\"api\",\"key\":\"pp\"}", 26);
        assert_true(http_receive(fd, &a));
        assert_status(200);
    }
    (void)close(fd);
}

static void the_connection_ends_when_the_client_says_so(void **state)
{
    const char *text = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                       "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd = http_connect(server);
    http_send(fd, text, strlen(text));
    assert_true(http_receive(fd, &a));
    assert_true(http_has_line(&a, "Connection: close"));
    assert_false(http_receive(fd, &a));
    (void)close(fd);
}

static void a_bad_request_gets_its_status_and_the_connection_ends(void **state)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         400},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400},
        {"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: x\n\n", 400},
        {"*1\r\n$4\r\nPING\r\n", 400},
        {"POST /v1/check/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 262145\r\n\r\n", 413},
        {"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n", 413},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = http_connect(server);
        http_send(fd, cases[i].text, strlen(cases[i].text));
        assert_true(http_receive(fd, &a));
        assert_status(cases[i].status);
        assert_true(http_has_line(&a, "Connection: close"));
        assert_false(http_receive(fd, &a));
        (void)close(fd);
    }
}

static void a_head_beyond_the_bound_is_a_431(void **state)
{
    static char text[HTTP_HEAD_MAX];
    int fd = http_connect(server);
    memset(text, 'a', sizeof text);
    memcpy(text, "GET / HTTP/1.1\r\nA: ", 19);
    http_send(fd, text, sizeof text / 2);
    http_send(fd, text + sizeof text / 2, sizeof text / 2);
    assert_true(http_receive(fd, &a));
    assert_status(431);
    (void)close(fd);
}

static void health_is_asked_by_get_and_head(void **state)
{
    http_ask(server, "GET /healthz", "", "", &a);
    assert_status(200);
    assert_string_equal(a.body, "ok\n");
    http_ask(server, "GET /readyz?verbose=1", "", "", &a);
    assert_status(200);
    int fd = http_connect(server);
    http_send(fd, "HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 55);
    char reply[1024];
    ssize_t n = recv(fd, reply, sizeof reply - 1, MSG_WAITALL);
    assert_true(n > 4);
    assert_memory_equal(reply + n - 4, "\r\n\r\n", 4); /* no body */
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_is_answered_in_its_order),
        cmocka_unit_test(large_bodies_may_be_pipelined),
        cmocka_unit_test(a_request_may_come_byte_by_byte),
        cmocka_unit_test(a_chunked_body_may_come_in_many_pieces),
        cmocka_unit_test(a_chunked_body_beyond_the_bound_is_a_413),
        cmocka_unit_test(who_expects_a_100_gets_one_and_then_the_answer),
        cmocka_unit_test(the_connection_ends_when_the_client_says_so),
        cmocka_unit_test(a_bad_request_gets_its_status_and_the_connection_ends),
        cmocka_unit_test(a_head_beyond_the_bound_is_a_431),
        cmocka_unit_test(health_is_asked_by_get_and_head),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
