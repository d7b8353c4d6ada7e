/* gRPC calls of the load generator: the bytes of a call, and what it makes of frames. */
#include "load/load_connection.h"
#include "support/engine/unit_limiter.h"

#define PATH "/weir.v1.Limiter/Check"
#define DEPTH 4

static struct load_request request;
static struct load_connection connection;

static int set_up(void **state)
{
    struct weir_error error;
    assert_int_equal(load_grpc_make(&request, PATH, "1210{key}", &error), 0);
    assert_int_equal(load_connection_init(&connection, &request, DEPTH), 0);
    connection.streams = load_streams_create(DEPTH);
    assert_non_null(connection.streams);
    return 0;
}

static int tear_down(void **state)
{
    load_connection_finish(&connection);
    load_request_finish(&request);
    memset(&request, 0, sizeof request);
    return 0;
}

/* ---- requests ---- */

static void a_call_refers_to_the_fields_of_the_opening(void **state)
{
    static const char head[] = "\0\0\6\1\4\0\0\0\7"; /* HEADERS: six fields of a byte each */
    static const char data[] = "\0\0\x17\0\1\0\0\0\7\0\0\0\0\x12\x12\x10key:000000000042";
    struct weir_text opening = {request.opening, request.opening_len};
    assert_true(text_starts(opening, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    assert_non_null(memmem(opening.at, opening.len, "key:999999999999", LOAD_KEY_BYTES));
    load_connection_put(&connection, &request, 0, 1);
    load_connection_put(&connection, &request, 1, 1);
    load_connection_put(&connection, &request, 42, 1);
    assert_int_equal(connection.made, 3 * request.len);
    const char *third = connection.out + 2 * request.len;
    assert_int_equal(request.len, 9 + 6 + sizeof data - 1);
    assert_memory_equal(third, head, 9);
    assert_memory_equal(third + 9 + 6, data, sizeof data - 1);
}

static void what_is_not_a_message_is_refused(void **state)
{
    static const char *const wrong[] = {"1", "0g", "12 10", "{key}{",
                                        "{key}{key}{key}{key}{key}{key}{key}{key}{key}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct load_request r = {0};
        struct weir_error error = {0};
        assert_int_equal(load_grpc_make(&r, PATH, wrong[i], &error), WEIR_EINVAL);
        assert_true(error.text[0] != 0);
    }
}

/* ---- replies ---- */

#define HEADERS(stream) "\0\0\1\1\4\0\0\0" stream "\x88" /* :status 200 */
#define ANSWER(stream, verdict) "\0\0\7\0\0\0\0\0" stream "\0\0\0\0\2\x08" verdict
#define TRAILERS(stream, status) "\0\0\xf\1\5\0\0\0" stream "\0\xbgrpc-status\1" status
#define RESET(stream, code) "\0\0\4\3\0\0\0\0" stream "\0\0\0" code
#define INPUT(literal) ((struct weir_text){(literal), sizeof(literal) - 1})

static void put_calls(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        load_connection_put(&connection, &request, i, 100 + i);
    }
}

/* Reads all frames of the input. Returns the last call that has ended. */
static struct load_ended read_all(struct weir_text input)
{
    struct load_ended last = {.due_ns = 0};
    while (input.len > 0) {
        struct load_ended ended;
        int64_t used = load_grpc_read(&connection, input, &ended);
        assert_true(used > 0);
        last = ended.due_ns != 0 ? ended : last;
        input = text_after(input, (size_t)used);
    }
    return last;
}

static void calls_end_in_any_order(void **state)
{
    put_calls(3); /* streams 3, 5 and 7 */
    struct load_ended ended = read_all(INPUT(HEADERS("\7") ANSWER("\7", "\1") TRAILERS("\7", "0")));
    assert_int_equal(ended.due_ns, 102);
    assert_int_equal(ended.verdict, LOAD_ALLOWED);
    assert_int_equal(connection.in_flight, 3); /* it stays in the ring after the other two */
    ended = read_all(INPUT(HEADERS("\3") HEADERS("\5") ANSWER("\5", "\1") ANSWER("\3", "\2")
                               TRAILERS("\3", "0")));
    assert_int_equal(ended.due_ns, 100);
    assert_int_equal(ended.verdict, LOAD_DENIED);
    assert_int_equal(connection.in_flight, 2);
    put_calls(2); /* streams 9 and 11, of which the second takes the place of stream 3 */
    ended = read_all(INPUT(TRAILERS("\5", "0")));
    assert_int_equal(ended.due_ns, 101);
    assert_int_equal(ended.verdict, LOAD_ALLOWED);
    assert_int_equal(connection.in_flight, 2);
    ended = read_all(INPUT(HEADERS("\xb") ANSWER("\xb", "\1") TRAILERS("\xb", "0")));
    assert_int_equal(ended.due_ns, 101);
    ended = read_all(INPUT(TRAILERS("\x9", "0")));
    assert_int_equal(ended.verdict, LOAD_OTHER); /* no message */
    assert_int_equal(connection.in_flight, 0);
}

static void a_call_without_an_answer_is_an_error_or_refused(void **state)
{
    put_calls(4);
    assert_int_equal(read_all(INPUT(TRAILERS("\3", "5"))).verdict, LOAD_ERROR);
    assert_int_equal(read_all(INPUT(RESET("\5", "\7"))).verdict, LOAD_REFUSED);
    assert_int_equal(read_all(INPUT(RESET("\7", "\2"))).verdict, LOAD_ERROR);
    assert_int_equal(read_all(INPUT("\0\0\x10\1\5\0\0\0\x9\0\xbgrpc-status\00214")).verdict,
                     LOAD_REFUSED);
    assert_int_equal(connection.in_flight, 0);
    assert_int_equal(read_all(INPUT(TRAILERS("\3", "0"))).due_ns, 0); /* ended before */
}

static void a_frame_is_read_when_all_of_it_is_there(void **state)
{
    static const char bytes[] = TRAILERS("\3", "0");
    struct load_ended ended;
    put_calls(1);
    for (size_t n = 0; n < sizeof bytes - 1; n++) {
        assert_int_equal(load_grpc_read(&connection, (struct weir_text){bytes, n}, &ended), 0);
    }
    assert_int_equal(load_grpc_read(&connection, INPUT(bytes), &ended), sizeof bytes - 1);
    assert_int_equal(ended.due_ns, 100);
}

static void settings_and_pings_are_acknowledged_once(void **state)
{
    static const char expected[] = "\0\0\0\4\1\0\0\0\0"
                                   "\0\0\10\6\1\0\0\0\0abcdefgh";
    (void)read_all(INPUT("\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64" /* SETTINGS */
                         "\0\0\0\4\1\0\0\0\0"               /* acknowledges ours */
                         "\0\0\10\6\0\0\0\0\0abcdefgh"      /* PING */
                         "\0\0\4\10\0\0\0\0\0\0\0\0\1"));   /* WINDOW_UPDATE */
    assert_int_equal(connection.made, sizeof expected - 1);
    assert_memory_equal(connection.out, expected, sizeof expected - 1);
}

static void padding_is_skipped(void **state)
{
    put_calls(1);
    struct load_ended ended = read_all(INPUT("\0\0\xa\0\x8\0\0\0\3\2\0\0\0\0\2\x8\1xx" /* DATA */
                                             "\0\0\x15\1\x2d\0\0\0\3\0\0\0\0\0\1"      /* HEADERS */
                                             "\0\xbgrpc-status\1"
                                             "0"));
    assert_int_equal(ended.verdict, LOAD_ALLOWED);
}

static void what_is_not_a_frame_is_refused(void **state)
{
    static const struct weir_text wrong[] = {
        INPUT("-ERR unknown command\r\n"), /* too long */
        INPUT("\0\0\1\0\x8\0\0\0\3\5"),    /* more padding than bytes */
        INPUT("\0\0\0\0\x8\0\0\0\3"),      /* no length of the padding */
        INPUT("\0\0\1\1\x24\0\0\0\3\x88"), /* no priority */
        INPUT("\0\0\1\1\4\0\0\0\3\xff"),   /* a field that ends too early */
        INPUT("\0\0\1\1\0\0\0\0\3\x88"),   /* more fields follow */
        INPUT("\0\0\1\6\0\0\0\0\0a"),      /* a short PING */
        INPUT("\0\0\1\3\0\0\0\0\3a"),      /* a short RST_STREAM */
    };
    put_calls(1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct load_ended ended;
        assert_int_equal(load_grpc_read(&connection, wrong[i], &ended), LOAD_BROKEN);
    }
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_call_refers_to_the_fields_of_the_opening),
        STORY(what_is_not_a_message_is_refused),
        STORY(calls_end_in_any_order),
        STORY(a_call_without_an_answer_is_an_error_or_refused),
        STORY(a_frame_is_read_when_all_of_it_is_there),
        STORY(settings_and_pings_are_acknowledged_once),
        STORY(padding_is_skipped),
        STORY(what_is_not_a_frame_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
