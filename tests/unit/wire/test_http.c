/* HTTP/1.1 requests: what is read, what is waited for, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/http_request.h"

static struct http_request request;

static int parse(const char *text)
{
    return http_parse(text_of(text), &request);
}

static void assert_text(struct weir_text found, const char *expected)
{
    assert_int_equal(found.len, strlen(expected));
    assert_memory_equal(found.at, expected, found.len);
}

static void assert_bad(const char *text, int status)
{
    if (parse(text) != HTTP_BAD || request.status != status) {
        fail_msg("not refused with %d: %s", status, text);
    }
    assert_non_null(request.complaint);
}

static void a_request_is_read_as_it_was_written(void **state)
{
    const char *text = "POST /v1/check?a=b&c HTTP/1.1\r\nHost: x\r\nX-One:  two words \r\n"
                       "Content-Length: 4\r\n\r\nbody";
    assert_int_equal(parse(text), HTTP_READ);
    assert_text(request.method, "POST");
    assert_text(request.target, "/v1/check?a=b&c");
    assert_text(request.path, "/v1/check");
    assert_text(request.query, "a=b&c");
    assert_int_equal(request.fields_count, 3);
    assert_text(http_value(&request, "x-one"), "two words");
    assert_null(http_value(&request, "x-on").at);
    assert_text(request.body, "body");
    assert_true(request.keep_alive);
    assert_int_equal(request.used, strlen(text));
}

static void one_request_is_taken_from_a_pipeline(void **state)
{
    const char *one = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    char two[128];
    (void)snprintf(two, sizeof two, "%s\r\n%s", one, one);
    assert_int_equal(parse(two), HTTP_READ);
    assert_int_equal(request.used, strlen(one));
    assert_int_equal(parse(two + request.used), HTTP_READ);
    assert_int_equal(request.used, strlen(one) + 2); /* with the empty line before it */
}

static void each_beginning_of_a_request_is_waited_for(void **state)
{
    const char *texts[] = {
        "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"};
    for (size_t i = 0; i < 2; i++) {
        for (size_t n = 0; n < strlen(texts[i]); n++) {
            assert_int_equal(http_parse((struct weir_text){texts[i], n}, &request), HTTP_MORE);
            assert_true(request.needed <= strlen(texts[i]));
        }
        assert_int_equal(parse(texts[i]), HTTP_READ);
    }
}

static void the_length_of_a_body_tells_how_much_is_needed(void **state)
{
    const char *text = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nbody";
    assert_int_equal(parse(text), HTTP_MORE);
    assert_int_equal(request.needed, strlen(text) + 96);
    assert_int_equal(parse("POST / HTTP/1.1\r\nHost: x\r\nConten"), HTTP_MORE);
    assert_int_equal(request.needed, 0);
}

static void chunks_become_one_body(void **state)
{
    assert_int_equal(parse("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
                           "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET"),
                     HTTP_READ);
    assert_text(request.body, "abcde");
}

/* Chunks of few bytes have a path of their own, which leaves the last ones to the usual path. */
static void small_chunks_are_read_as_others_are(void **state)
{
    char text[1024];
    char body[400];
    size_t len = 0;
    size_t head =
        (size_t)sprintf(text, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    char *to = text + head;
    for (unsigned i = 0; i < 40; i++) {
        unsigned size = 1 + i * 7 % 18;
        memset(body + len, 'a' + (int)(i % 26), size);
        to += sprintf(to, "%x\r\n%.*s\r\n", size, (int)size, body + len);
        len += size;
    }
    size_t all = (size_t)(stpcpy(to, "0\r\n\r\n") - text);
    assert_int_equal(parse(text), HTTP_READ);
    assert_int_equal(request.used, all);
    assert_int_equal(request.body.len, len);
    assert_memory_equal(request.body.at, body, len);
    for (size_t n = head; n < all; n++) {
        size_t at = head;
        assert_int_equal(http_skip_chunks((struct weir_text){text, n}, &at), HTTP_MORE);
        assert_int_equal(http_parse((struct weir_text){text, n}, &request), HTTP_MORE);
    }
    for (size_t n = head; n < all; n++) { /* each CR and LF is needed */
        char was = text[n];
        text[n] = was < ' ' ? 'x' : was;
        assert_int_equal(parse(text), was < ' ' ? HTTP_BAD : HTTP_READ);
        text[n] = was;
    }
}

/* RFC 9112, 7.1.1: a recipient ignores extensions that it does not know. */
static void extensions_of_chunks_are_ignored(void **state)
{
    static const char *const bodies[] = {
        "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        "3;a\r\nabc\r\n2;b=\"c d; \\\" e\"\r\nde\r\n0;last\r\n\r\n",
        "3;a=b;c=d\r\nabc\r\n2;e\r\nde\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%s",
                       bodies[i]);
        assert_int_equal(parse(text), HTTP_READ);
        assert_text(request.body, "abcde");
        assert_int_equal(request.used, strlen(text));
        for (size_t n = 0; n < strlen(text); n++) {
            assert_int_equal(http_parse((struct weir_text){text, n}, &request), HTTP_MORE);
        }
    }
}

/* RFC 9112, 3.2.2: a server must accept it, and use its host in place of the Host field. */
static void a_target_may_have_a_host(void **state)
{
    static const struct {
        const char *target, *path, *query, *host;
    } cases[] = {
        {"http://shop.example/v1/auth?a=b", "/v1/auth", "a=b", "shop.example"},
        {"HTTPS://shop.example:8443/", "/", "", "shop.example:8443"},
        {"http://[::1]:80/a", "/a", "", "[::1]:80"},
        {"http://shop.example", "/", "", "shop.example"},
        {"http://shop.example?a=b", "/", "a=b", "shop.example"},
        {"/http://a/b", "/http://a/b", "", "other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: other\r\n\r\n",
                       cases[i].target);
        assert_int_equal(parse(text), HTTP_READ);
        assert_text(request.path, cases[i].path);
        assert_text(request.query, cases[i].query);
        assert_text(request.host, cases[i].host);
        assert_text(http_value(&request, "host"), cases[i].host);
    }
}

static void a_method_that_is_not_known_is_read_too(void **state)
{
    static const char *const methods[] = {
        "NONSENSE", "get", "BREW", "ANNOUNCE", "M-SEARCH", "PRI", "X!#$%&'*+-.^_`|~"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "%s /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbodyGET", methods[i]);
        assert_int_equal(parse(text), HTTP_READ);
        assert_text(request.method, methods[i]);
        assert_text(request.path, "/a");
        assert_text(request.body, "body");
        assert_int_equal(request.used, strlen(text) - 3);
        assert_true(request.keep_alive);
    }
}

static void empty_lines_before_a_request_are_skipped(void **state)
{
    const char *text = "\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_int_equal(parse(text), HTTP_READ);
    assert_text(request.path, "/a");
    assert_int_equal(request.used, strlen(text));
    for (size_t n = 0; n < strlen(text); n++) {
        assert_int_equal(http_parse((struct weir_text){text, n}, &request), HTTP_MORE);
    }
}

static void a_host_is_a_name_or_an_address_with_or_without_a_port(void **state)
{
    static const struct {
        const char *host, *name; /* NULL: it is none */
    } cases[] = {
        {"a.example", "a.example"},
        {"a_b-c.example:80", "a_b-c.example"},
        {"127.0.0.1:", "127.0.0.1"},
        {"[::1]", "::1"},
        {"[::1]:8080", "::1"},
        {"", ""},
        {"[::1]evil.example", NULL},
        {"[::1]:80evil", NULL},
        {"[::1", NULL},
        {"[]", NULL},
        {"[a b]", NULL},
        {"a b", NULL},
        {"a@b", NULL},
        {"a/b", NULL},
        {"a:b", NULL},
        {"::1", NULL},
        {"a:80:90", NULL},
        {"a?b", NULL},
        {"a#b", NULL},
        {"a\\b", NULL},
        {"b\xc3\xbc", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_text name;
        char text[256];
        assert_int_equal(http_read_host(text_of(cases[i].host), &name), cases[i].name != NULL);
        (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", cases[i].host);
        if (cases[i].name != NULL) {
            assert_text(name, cases[i].name);
            assert_int_equal(parse(text), HTTP_READ);
            assert_text(request.host, cases[i].host);
        } else {
            assert_bad(text, 400);
        }
    }
}

static void a_client_that_waits_for_100_continue_is_recognised_by_the_head(void **state)
{
    const char *text =
        "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    assert_int_equal(parse(text), HTTP_MORE);
    assert_true(request.wants_continue);
    assert_int_equal(http_parse((struct weir_text){text, strlen(text) - 1}, &request), HTTP_MORE);
    assert_false(request.wants_continue);
}

static void connections_are_kept_or_ended_as_asked(void **state)
{
    static const struct {
        const char *text;
        bool keep;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].text), HTTP_READ);
        assert_int_equal(request.keep_alive, cases[i].keep);
    }
}

/* Each is read in one way by some servers and in another by others. */
static void ambiguous_requests_are_refused(void **state)
{
    static const char *const texts[] = {
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
        "chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: "
        "4\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4, 4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\nGET",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0;a\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
        "chunked\r\n\r\n3;a\rb\r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
        "chunked\r\n\r\n3;a=\"\nb\"\r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n;a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Forwarded-For: "
        "y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\tA: b\r\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\rContent-Length: 4\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\rA: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n: c\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET /\r\n\r\n",
        "NON(SENSE / HTTP/1.1\r\nHost: x\r\n\r\n",
        " / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http:/// HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://user@x/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://x:y/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://x/ HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "*1\r\n$4\r\nPING\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_bad(texts[i], 400);
    }
}

static void a_nul_is_refused_wherever_it_stands(void **state)
{
    static const char good[] = "GET /ab HTTP/1.1\r\nHost: x\r\nName: value\r\n\r\n";
    for (size_t i = 0; i < sizeof good - 1; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        text[i] = 0;
        assert_int_not_equal(http_parse((struct weir_text){text, sizeof good - 1}, &request),
                             HTTP_READ);
    }
}

/* "GET / HTTP/1.1", Host, and n fields of that many bytes each. */
static char *make_head(unsigned n, size_t each)
{
    char *text = malloc(256 + n * (each + 8));
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (unsigned i = 0; i < n; i++) {
        memcpy(text + at, "a: ", 3);
        memset(text + at + 3, 'b', each);
        memcpy(text + at + 3 + each, "\r\n", 3);
        at += each + 5;
    }
    memcpy(text + at, "\r\n", 3);
    return text;
}

static void a_head_has_64_fields_and_16_kilobytes_and_no_more(void **state)
{
    static const struct {
        unsigned n;
        size_t each;
        int got;
    } cases[] = {{63, 10, HTTP_READ},
                 {64, 10, HTTP_BAD},
                 {1000, 1, HTTP_BAD},
                 {1, 16353, HTTP_BAD},
                 {1, 16352, HTTP_READ}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = make_head(cases[i].n, cases[i].each);
        assert_int_equal(parse(text), cases[i].got);
        assert_int_equal(request.status, cases[i].got == HTTP_BAD ? 431 : 0);
        free(text);
    }
}

static void a_head_that_never_ends_is_refused_at_16_kilobytes(void **state)
{
    char *text = make_head(1, 20000);
    assert_int_equal(http_parse((struct weir_text){text, HTTP_HEAD_MAX - 1}, &request), HTTP_MORE);
    assert_int_equal(http_parse((struct weir_text){text, HTTP_HEAD_MAX}, &request), HTTP_BAD);
    assert_int_equal(request.status, 431);
    free(text);
}

static void a_body_that_is_announced_too_large_is_refused_before_it_comes(void **state)
{
    assert_int_equal(parse("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\n\r\n"),
                     HTTP_MORE);
    assert_bad("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 262145\r\n\r\n", 413);
    assert_bad("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n", 413);
    assert_bad("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400);
    assert_bad(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        400);
}

static void a_body_has_at_most_2048_chunks(void **state)
{
    static char text[HTTP_HEAD_MAX + HTTP_CHUNKED_MAX];
    for (unsigned chunks = HTTP_CHUNKS_MAX; chunks <= HTTP_CHUNKS_MAX + 1; chunks++) {
        char *end =
            stpcpy(text, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (unsigned i = 0; i < chunks; i++) {
            end = stpcpy(end, "1\r\na\r\n");
        }
        end = stpcpy(end, "0\r\n\r\n");
        int got = http_parse((struct weir_text){text, (size_t)(end - text)}, &request);
        assert_int_equal(got, chunks == HTTP_CHUNKS_MAX ? HTTP_READ : HTTP_BAD);
    }
    assert_int_equal(request.status, 413);
}

static void chunks_that_never_end_are_refused_within_the_bound(void **state)
{
    enum { BOUND = HTTP_HEAD_MAX + HTTP_CHUNKED_MAX };
    static char text[BOUND + 128];
    size_t n =
        (size_t)sprintf(text, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (n + 72 <=
           sizeof text) { /* extensions make up half of it, so that few bytes are copied */
        n += (size_t)sprintf(text + n, "%x;%030d\r\n%032d\r\n", 32, 0, 0);
    }
    assert_int_equal(http_parse((struct weir_text){text, BOUND - 1}, &request), HTTP_MORE);
    assert_int_equal(http_parse((struct weir_text){text, n}, &request), HTTP_BAD);
    assert_int_equal(request.status, 413);
}

static void an_empty_line_before_the_largest_request_counts_as_part_of_its_head(void **state)
{
    static char text[HTTP_REQUEST_MAX + 2];
    static const char begin[] = "\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 262144\r\na: ";
    for (size_t spare = 0; spare <= 2; spare++) {
        size_t head = HTTP_HEAD_MAX + 2 - spare; /* with the empty line */
        memset(text, 'b', sizeof text);
        memcpy(text, begin, sizeof begin - 1);
        memcpy(text + head - 4, "\r\n\r\n", 4);
        struct weir_text whole = {text, head + HTTP_BODY_MAX};
        assert_int_equal(http_parse(whole, &request), spare == 2 ? HTTP_READ : HTTP_BAD);
        assert_int_equal(request.status, spare == 2 ? 0 : 431);
    }
}

static void a_query_is_taken_apart_and_decoded(void **state)
{
    static const char *const expected[][2] = {{"a", "b c"},  {"api_key", "x=y"}, {"empty", ""},
                                              {"alone", ""}, {"bad", "%zz%4"},   {"", "v"}};
    struct weir_text query = TEXT("a=b+c&&api%5Fkey=x=y&empty=&alone&bad=%zz%4&=v&");
    char room[128];
    struct http_pair pair;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(http_next_pair(&query, room, &pair));
        assert_text(pair.name, expected[i][0]);
        assert_text(pair.value, expected[i][1]);
    }
    assert_false(http_next_pair(&query, room, &pair));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read_as_it_was_written),
        cmocka_unit_test(one_request_is_taken_from_a_pipeline),
        cmocka_unit_test(each_beginning_of_a_request_is_waited_for),
        cmocka_unit_test(the_length_of_a_body_tells_how_much_is_needed),
        cmocka_unit_test(chunks_become_one_body),
        cmocka_unit_test(small_chunks_are_read_as_others_are),
        cmocka_unit_test(a_body_has_at_most_2048_chunks),
        cmocka_unit_test(extensions_of_chunks_are_ignored),
        cmocka_unit_test(a_target_may_have_a_host),
        cmocka_unit_test(a_method_that_is_not_known_is_read_too),
        cmocka_unit_test(empty_lines_before_a_request_are_skipped),
        cmocka_unit_test(a_host_is_a_name_or_an_address_with_or_without_a_port),
        cmocka_unit_test(a_client_that_waits_for_100_continue_is_recognised_by_the_head),
        cmocka_unit_test(connections_are_kept_or_ended_as_asked),
        cmocka_unit_test(ambiguous_requests_are_refused),
        cmocka_unit_test(a_nul_is_refused_wherever_it_stands),
        cmocka_unit_test(a_head_has_64_fields_and_16_kilobytes_and_no_more),
        cmocka_unit_test(a_head_that_never_ends_is_refused_at_16_kilobytes),
        cmocka_unit_test(a_body_that_is_announced_too_large_is_refused_before_it_comes),
        cmocka_unit_test(chunks_that_never_end_are_refused_within_the_bound),
        cmocka_unit_test(an_empty_line_before_the_largest_request_counts_as_part_of_its_head),
        cmocka_unit_test(a_query_is_taken_apart_and_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
