/* HTTP/1.1 responses: what is read, what is waited for, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/http_response.h"

static struct http_response response;

static int begin(void **state)
{
    http_response_init(&response);
    return 0;
}

static int end(void **state)
{
    http_response_finish(&response);
    return 0;
}

static int parse(const char *text, bool ended)
{
    return http_response_parse(text_of(text), ended, &response);
}

static void assert_text(struct weir_text found, const char *expected)
{
    assert_int_equal(found.len, strlen(expected));
    assert_memory_equal(found.at, expected, found.len);
}

static void a_response_with_a_length_is_read_as_soon_as_it_is_there(void **state)
{
    const char *text = "HTTP/1.1 429 Too Many Requests\r\nContent-Type:  application/json \r\n"
                       "Content-Length: 4\r\n\r\nbody";
    assert_int_equal(parse(text, false), HTTP_READ);
    assert_int_equal(response.status, 429);
    assert_text(response.body, "body");
}

static void an_incomplete_response_waits_and_its_end_is_reported(void **state)
{
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    for (size_t n = 0; n < strlen(text); n++) {
        assert_int_equal(http_response_parse((struct weir_text){text, n}, false, &response),
                         HTTP_MORE);
        assert_true(response.needed == 0 || response.needed == strlen(text));
        assert_int_equal(http_response_parse((struct weir_text){text, n}, true, &response),
                         HTTP_BAD);
        assert_string_equal(response.complaint,
                            n == 0 ? "the connection ended without an answer"
                                   : "the connection ended in the middle of the answer");
    }
    assert_int_equal(parse(text, false), HTTP_READ);
}

static void chunks_are_put_together(void **state)
{
    const char *text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    for (int again = 0; again < 3; again++) { /* nothing is left of the time before */
        assert_int_equal(
            http_response_parse((struct weir_text){text, strlen(text) - 1}, false, &response),
            HTTP_MORE);
        assert_int_equal(parse(text, false), HTTP_READ);
        assert_text(response.body, "abcde");
    }
}

static void without_a_length_the_end_of_the_connection_is_the_end(void **state)
{
    const char *text = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it";
    assert_int_equal(parse(text, false), HTTP_MORE);
    assert_int_equal(parse(text, true), HTTP_READ);
    assert_text(response.body, "all of it");
}

static void no_content_has_no_body(void **state)
{
    assert_int_equal(parse("HTTP/1.1 204 No Content\r\n\r\n", false), HTTP_READ);
    assert_int_equal(response.status, 204);
    assert_int_equal(response.body.len, 0);
}

static void bytes_that_are_not_http_are_refused_at_once(void **state)
{
    static const char *const texts[] = {"-ERR unknown command 'GET'\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                        "HTTP/1.1 2x0 OK\r\n\r\n", "<html>"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(parse(texts[i], false), HTTP_BAD);
        assert_string_equal(response.complaint, "the answer is not HTTP/1.1");
    }
}

static void an_answer_without_an_end_is_not_read_for_ever(void **state)
{
    char *text = malloc(HTTP_RESPONSE_MAX + 1);
    assert_non_null(text);
    assert_int_equal(parse("HTTP/1.1 200 OK\r\nContent-Length: 8388609\r\n\r\n", false), HTTP_BAD);
    memset(text, 'x', HTTP_RESPONSE_MAX);
    memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
    struct weir_text head = {text, HTTP_RESPONSE_HEAD_MAX};
    assert_int_equal(http_response_parse(head, false, &response), HTTP_BAD);
    assert_string_equal(response.complaint, "the head of the answer is longer than 64 KiB");
    memcpy(text, "HTTP/1.1 200 OK\r\n\r\n", 19);
    struct weir_text body = {text, HTTP_RESPONSE_MAX};
    assert_int_equal(http_response_parse(body, false, &response), HTTP_BAD);
    assert_string_equal(response.complaint, "the answer is longer than 8 MiB");
    memcpy(text, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFF\r\n", 55);
    assert_int_equal(http_response_parse(body, false, &response), HTTP_BAD);
    free(text);
}

static void chunks_that_are_too_many_are_refused_although_they_end(void **state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n800001\r\n";
    static const char end[] = "\r\n0\r\n\r\n";
    size_t room = sizeof head + sizeof end + HTTP_RESPONSE_BODY_MAX;
    char *text = malloc(room);
    assert_non_null(text);
    memset(text, 'x', room);
    memcpy(text, head, sizeof head - 1);
    size_t len = sizeof head - 1 + HTTP_RESPONSE_BODY_MAX + 1;
    memcpy(text + len, end, sizeof end - 1);
    struct weir_text all = {text, len + sizeof end - 1};
    assert_int_equal(http_response_parse(all, false, &response), HTTP_BAD);
    assert_string_equal(response.complaint, "the answer is longer than 8 MiB");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_response_with_a_length_is_read_as_soon_as_it_is_there),
        cmocka_unit_test(an_incomplete_response_waits_and_its_end_is_reported),
        cmocka_unit_test(chunks_are_put_together),
        cmocka_unit_test(without_a_length_the_end_of_the_connection_is_the_end),
        cmocka_unit_test(no_content_has_no_body),
        cmocka_unit_test(bytes_that_are_not_http_are_refused_at_once),
        cmocka_unit_test(an_answer_without_an_end_is_not_read_for_ever),
        cmocka_unit_test(chunks_that_are_too_many_are_refused_although_they_end),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
