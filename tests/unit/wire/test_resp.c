/* RESP requests, each parsed as a copy of its exact size: AddressSanitizer sees a byte too far. */
#include "wire/resp.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 2000
#else
#define ROUNDS 20000
#endif

static const struct resp_limits usual = {.args_max = 16, .bulk_max = 4096, .request_max = 65536};
static const struct resp_limits with_inline = {
    .args_max = 16, .bulk_max = 4096, .request_max = 65536, .inline_commands = true};

/* The last request or complaint, and the bytes that it points into. */
static struct resp_request request;
static const char *complaint;
static char *held;

static int parse(struct weir_text input, const struct resp_limits *limits)
{
    free(held);
    held = malloc(input.len > 0 ? input.len : 1);
    assert_non_null(held);
    memcpy(held, input.at, input.len);
    complaint = NULL;
    memset(&request, 0x55, sizeof request);
    int e = resp_parse((struct weir_text){held, input.len}, limits, &request, &complaint);
    assert_true((e == RESP_BAD) == (complaint != NULL));
    return e;
}

static int let_go(void **state)
{
    free(held);
    held = NULL;
    return 0;
}

#define assert_arg(i, literal) assert_true(text_equal(request.argv[i], TEXT(literal)))

static void assert_bad(struct weir_text input, const struct resp_limits *limits, const char *why)
{
    assert_int_equal(parse(input, limits), RESP_BAD);
    assert_string_equal(complaint, why);
}

/* Each beginning is RESP_MORE, whatever the whole of it is. */
static void assert_more_until_all_is_there(struct weir_text input, const struct resp_limits *limits)
{
    for (size_t n = 0; n < input.len; n++) {
        assert_int_equal(parse((struct weir_text){input.at, n}, limits), RESP_MORE);
    }
}

/* A request without arguments that takes the first `used` bytes. */
static void assert_passed_over(struct weir_text input, const struct resp_limits *limits,
                               size_t used)
{
    assert_more_until_all_is_there((struct weir_text){input.at, used}, limits);
    assert_int_equal(parse(input, limits), RESP_REQUEST);
    assert_int_equal(request.argc, 0);
    assert_int_equal(request.used, used);
}

static const struct weir_text throttle = TEXT(
    "*6\r\n$11\r\nCL.THROTTLE\r\n$5\r\nalice\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n1\r\n");

static void assert_is_throttle(void)
{
    assert_int_equal(request.argc, 6);
    assert_arg(0, "CL.THROTTLE");
    assert_arg(1, "alice");
    assert_arg(2, "15");
    assert_arg(3, "30");
    assert_arg(4, "60");
    assert_arg(5, "1");
    assert_int_equal(request.used, throttle.len);
}

static void an_array_of_bulk_strings_is_a_request(void **state)
{
    assert_int_equal(parse(throttle, &usual), RESP_REQUEST);
    assert_is_throttle();
    for (unsigned i = 0; i < request.argc; i++) {
        assert_true(request.argv[i].at > held && request.argv[i].at < held + throttle.len);
    }
}

static void a_request_cut_at_any_byte_waits_for_the_rest(void **state)
{
    assert_more_until_all_is_there(throttle, &usual);
    assert_int_equal(parse(throttle, &usual), RESP_REQUEST);
    assert_is_throttle();
}

static void bytes_after_a_request_change_nothing(void **state)
{
    char bytes[200];
    memcpy(bytes, throttle.at, throttle.len);
    for (int c = 0; c < 256; c++) {
        memset(bytes + throttle.len, c, 50);
        assert_int_equal(parse((struct weir_text){bytes, throttle.len + 50}, &usual), RESP_REQUEST);
        assert_is_throttle();
    }
}

static void an_argument_may_hold_any_byte_or_none(void **state)
{
    char bytes[300];
    int head = sprintf(bytes, "*3\r\n$0\r\n\r\n$256\r\n");
    for (int c = 0; c < 256; c++) {
        bytes[head + c] = (char)c;
    }
    memcpy(bytes + head + 256, "\r\n$4\r\n\r\n\r\n\r\n", 12);
    struct weir_text input = {bytes, (size_t)head + 256 + 12};
    assert_more_until_all_is_there(input, &usual);
    assert_int_equal(parse(input, &usual), RESP_REQUEST);
    assert_int_equal(request.argc, 3);
    assert_arg(0, "");
    assert_true(text_equal(request.argv[1], (struct weir_text){bytes + head, 256}));
    assert_arg(2, "\r\n\r\n");
    assert_int_equal(request.used, input.len);
}

static void a_length_may_have_any_number_of_digits(void **state)
{
    static const struct resp_limits wide = {
        .args_max = 16, .bulk_max = 2000000, .request_max = 4000000};
    struct buffer b;
    buffer_init(&b, 4000000);
    for (size_t len = 1; len <= 1000000; len *= 10) {
        for (size_t by = 0; by < 2; by++) {
            char *bytes = calloc(1, len);
            assert_non_null(bytes);
            resp_put_array(&b, 2);
            resp_put_bulk(&b, (struct weir_text){bytes, len - by});
            resp_put_bulk(&b, TEXT("end"));
            assert_int_equal(parse(buffer_text(&b), &wide), RESP_REQUEST);
            assert_int_equal(request.argv[0].len, len - by);
            assert_arg(1, "end");
            buffer_take(&b, request.used);
            assert_int_equal(buffer_len(&b), 0);
            free(bytes);
        }
    }
    buffer_finish(&b);
}

static void empty_requests_and_empty_lines_are_passed_over(void **state)
{
    const struct resp_limits *each[] = {&usual, &with_inline};
    for (int i = 0; i < 2; i++) {
        assert_passed_over(TEXT("*0\r\n*1\r\n"), each[i], 4);
        assert_passed_over(TEXT("*-1\r\n$"), each[i], 5);
        assert_passed_over(TEXT("*-5\r\n\r\n"), each[i], 5);
        assert_passed_over(TEXT("*-9223372036854775808\r\n"), each[i], 23);
        assert_passed_over(TEXT("\r\n*1\r\n"), each[i], 2);
        assert_passed_over(TEXT("\n\n"), each[i], 1);
    }
}

static void a_pipeline_is_taken_apart_request_by_request(void **state)
{
    static const char names[][8] = {"PING", "ECHO", "", "INFO"};
    struct buffer pipe;
    buffer_init(&pipe, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        resp_put_array(&pipe, 1 + i % 3);
        resp_put_bulk(&pipe, text_of(names[i % 4]));
        for (int k = 0; k < i % 3; k++) {
            resp_put_bulk(&pipe, text_of("value"));
        }
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(resp_parse(buffer_text(&pipe), &usual, &request, &complaint), 1);
        assert_int_equal(request.argc, 1 + i % 3);
        assert_true(text_is(request.argv[0], names[i % 4]));
        buffer_take(&pipe, request.used);
    }
    assert_int_equal(buffer_len(&pipe), 0);
    buffer_finish(&pipe);
}

static void nothing_is_a_request_of_its_own(void **state)
{
    assert_int_equal(parse(TEXT(""), &usual), RESP_MORE);
    assert_int_equal(resp_parse((struct weir_text){NULL, 0}, &usual, &request, &complaint),
                     RESP_MORE);
}

#define COUNT_32 "-0000000000000000000000000000001"

/* What is not a request, with all that must have arrived to know it, and what Redis calls it. */
static const struct {
    struct weir_text input;
    const char *complaint;
} bombs[] = {
    {TEXT("*1000000000\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*17\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*2147483648\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*9223372036854775807\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*9223372036854775808\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*18446744073709551617\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*4294967297\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*-\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*-0\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*+1\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("* 1\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*1 \r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*01\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*00\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*0x1\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*1\0\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*abc\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*1\r$"), "Protocol error: invalid multibulk length"},
    {TEXT("*16\r$"), "Protocol error: invalid multibulk length"},
    {TEXT("*:\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*1:\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*1\r\r"), "Protocol error: invalid multibulk length"},
    {TEXT("*" COUNT_32 "\r\n"), "Protocol error: invalid multibulk length"},
    {TEXT("*" COUNT_32 "0"), "Protocol error: too big mbulk count string"},
    {TEXT("*111111111111111111111111111111111"), "Protocol error: too big mbulk count string"},
    {TEXT("*1\n$4\nPING\n$4\nPING\n$4\nPING\n*1\n$4\nP"),
     "Protocol error: too big mbulk count string"},
    {TEXT("*1\r\n$536870912\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$536870913\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$4097\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$4294967300\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$9223372036854775807\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$18446744073709551615\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$18446744073709551620\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$-9223372036854775808\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$04\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$+4\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$:\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$:5\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$4x\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$4\rP"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$" COUNT_32 "\r\n"), "Protocol error: invalid bulk length"},
    {TEXT("*1\r\n$" COUNT_32 "0"), "Protocol error: too big bulk count string"},
    {TEXT("*1\r\nx"), "Protocol error: expected '$', got 'x'"},
    {TEXT("*1\r\n*"), "Protocol error: expected '$', got '*'"},
    {TEXT("*1\r\n:"), "Protocol error: expected '$', got ':'"},
    {TEXT("*1\r\n "), "Protocol error: expected '$', got ' '"},
    {TEXT("*1\r\n\r"), "Protocol error: expected '$', got '\\x0d'"},
    {TEXT("*1\r\n\0"), "Protocol error: expected '$', got '\\x00'"},
    {TEXT("*1\r\n\xff"), "Protocol error: expected '$', got '\\xff'"},
    {TEXT("*2\r\n$4\r\nECHO\r\nx"), "Protocol error: expected '$', got 'x'"},
    {TEXT("*1\r\n$4\r\nPING$4"), "Protocol error: expected CR LF after a bulk string"},
    {TEXT("*1\r\n$4\r\nPINGS\r"), "Protocol error: expected CR LF after a bulk string"},
    {TEXT("*1\r\n$4\r\nPING\r\r"), "Protocol error: expected CR LF after a bulk string"},
    {TEXT("*1\r\n$4\r\nPING\n\n"), "Protocol error: expected CR LF after a bulk string"},
    {TEXT("*1\r\n$5\r\nPING\r\n*"), "Protocol error: expected CR LF after a bulk string"},
};

static void a_bomb_is_refused_as_soon_as_its_line_is_there(void **state)
{
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        assert_more_until_all_is_there(bombs[i].input, &usual);
        assert_bad(bombs[i].input, &usual, bombs[i].complaint);
        assert_bad(bombs[i].input, &with_inline, bombs[i].complaint);
        assert_int_equal(request.argc, 0);
        assert_int_equal(request.used, 0);
    }
}

static void a_refused_request_stays_refused_whatever_follows(void **state)
{
    char bytes[128];
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        memcpy(bytes, bombs[i].input.at, bombs[i].input.len);
        memcpy(bytes + bombs[i].input.len, "\r\n*1\r\n$4\r\nPING\r\n", 16);
        assert_bad((struct weir_text){bytes, bombs[i].input.len + 16}, &usual, bombs[i].complaint);
    }
}

#define OFF "; inline commands other than HELLO and PING are off"

static void without_inline_commands_a_request_begins_with_a_star(void **state)
{
    assert_bad(TEXT("PO"), &usual, "Protocol error: expected '*', got 'P'" OFF);
    assert_bad(TEXT("GET / HTTP/1.1\r\n"), &usual, "Protocol error: expected '*', got 'G'" OFF);
    assert_bad(TEXT("\x16\x03\x01"), &usual, "Protocol error: expected '*', got '\\x16'" OFF);
    assert_bad(TEXT(" \r\n"), &usual, "Protocol error: expected '*', got ' '" OFF);
    assert_bad(TEXT("\rPING"), &usual, "Protocol error: expected '*', got '\\x0d'" OFF);
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        bool fine = c != 0 && strchr("*\r\nHhPp", c) != NULL;
        assert_int_equal(parse((struct weir_text){&byte, 1}, &usual) == RESP_BAD, !fine);
    }
}

static void hello_and_ping_are_always_accepted_as_lines(void **state)
{
    static const struct {
        struct weir_text line;
        unsigned argc;
    } greetings[] = {
        {TEXT("PING\r\n"), 1},  {TEXT("ping\n"), 1},      {TEXT("PING hello\r\n"), 2},
        {TEXT("HELLO\r\n"), 1}, {TEXT("hello 3\r\n"), 2}, {TEXT("Hello\t3 SETNAME 'a b'\r\n"), 4},
    };
    static const struct weir_text others[] = {TEXT("PINGS\r\n"),    TEXT("PIN\r\n"),
                                              TEXT("HELL\r\n"),     TEXT("HELLO3\r\n"),
                                              TEXT("\"PING\"\r\n"), TEXT("p0ng\r\n")};
    for (size_t i = 0; i < sizeof greetings / sizeof greetings[0]; i++) {
        assert_more_until_all_is_there(greetings[i].line, &usual);
        assert_int_equal(parse(greetings[i].line, &usual), RESP_REQUEST);
        assert_int_equal(request.argc, greetings[i].argc);
        assert_int_equal(request.used, greetings[i].line.len);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(parse(others[i], &usual), RESP_BAD);
    }
}

static void limits_are_exact(void **state)
{
    struct resp_limits limits = {.args_max = 2, .bulk_max = 3, .request_max = 22};
    struct weir_text most = TEXT("*2\r\n$3\r\nabc\r\n$3\r\ndef\r\n");
    assert_int_equal(most.len, 22);
    assert_int_equal(parse(most, &limits), RESP_REQUEST);
    assert_bad(TEXT("*3\r\n"), &limits, "Protocol error: invalid multibulk length");
    assert_bad(TEXT("*2\r\n$4\r\n"), &limits, "Protocol error: invalid bulk length");
    limits.request_max = 21;
    assert_bad(TEXT("*2\r\n$3\r\nabc\r\n$3\r\n"), &limits, "Protocol error: too big request");
    assert_bad(most, &limits, "Protocol error: too big request");
}

static void the_room_for_arguments_is_a_limit_too(void **state)
{
    const struct resp_limits none = {.args_max = UINT32_MAX,
                                     .bulk_max = SIZE_MAX,
                                     .request_max = SIZE_MAX,
                                     .inline_commands = 1};
    char bytes[2 * RESP_ARGS_MAX + 4];
    memset(bytes, ' ', sizeof bytes);
    for (int i = 0; i <= RESP_ARGS_MAX; i++) {
        bytes[2 * i] = 'a';
    }
    bytes[2 * RESP_ARGS_MAX + 1] = '\n';
    assert_bad((struct weir_text){bytes, 2 * RESP_ARGS_MAX + 2}, &none,
               "Protocol error: too big inline request");
    bytes[2 * RESP_ARGS_MAX - 1] = '\n';
    assert_int_equal(parse((struct weir_text){bytes, 2 * RESP_ARGS_MAX}, &none), RESP_REQUEST);
    assert_int_equal(request.argc, RESP_ARGS_MAX);
    assert_bad(TEXT("*129\r\n"), &none, "Protocol error: invalid multibulk length");
    assert_int_equal(parse(TEXT("*128\r\n"), &none), RESP_MORE);
    assert_int_equal(parse(TEXT("*1\r\n$9223372036854775807\r\nabc"), &none), RESP_MORE);
}

static void a_full_buffer_is_never_asked_for_more(void **state)
{
    for (size_t most = 0; most < throttle.len; most++) {
        struct resp_limits limits = usual;
        limits.request_max = most;
        assert_bad((struct weir_text){throttle.at, most}, &limits,
                   "Protocol error: too big request");
        assert_bad(throttle, &limits, "Protocol error: too big request");
    }
}

static void counts_beyond_the_limits_are_invalid(void **state)
{
    struct resp_limits limits = usual;
    limits.args_max = 10;
    assert_bad(TEXT("*11\r\n"), &limits, "Protocol error: invalid multibulk length");
    assert_bad(TEXT("*2147483648\r\n"), &limits, "Protocol error: invalid multibulk length");
    assert_bad(TEXT("*x\r\n"), &limits, "Protocol error: invalid multibulk length");
    assert_bad(TEXT("*1\r\n$4097\r\n"), &limits, "Protocol error: invalid bulk length");
    assert_bad(TEXT("*1\r\n$-1\r\n"), &limits, "Protocol error: invalid bulk length");
}

static size_t below(unsigned *seed, size_t n)
{
    return (size_t)rand_r(seed) % n;
}

static void any_request_reads_back_as_it_was_written(void **state)
{
    static const size_t sizes[] = {1, 4, 12, 120, 1200};
    unsigned seed = 4;
    char bytes[1200];
    struct buffer b;
    buffer_init(&b, 1 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        struct weir_text args[16];
        size_t argc = 1 + below(&seed, 16);
        for (size_t i = 0; i < sizeof bytes; i += 1 + below(&seed, 20)) {
            bytes[i] = (char)rand_r(&seed);
        }
        resp_put_array(&b, argc);
        for (size_t i = 0; i < argc; i++) {
            size_t len = below(&seed, sizes[below(&seed, 5)]);
            args[i] = (struct weir_text){bytes + below(&seed, sizeof bytes - len), len};
            resp_put_bulk(&b, args[i]);
        }
        struct weir_text all = buffer_text(&b);
        assert_int_equal(parse((struct weir_text){all.at, below(&seed, all.len)}, &usual),
                         RESP_MORE);
        assert_int_equal(parse(all, &usual), RESP_REQUEST);
        assert_int_equal(request.argc, argc);
        assert_int_equal(request.used, all.len);
        for (size_t i = 0; i < argc; i++) {
            assert_true(text_equal(request.argv[i], args[i]));
        }
        buffer_take(&b, all.len);
    }
    buffer_finish(&b);
}

static void numbers_are_read_as_redis_reads_them(void **state)
{
    static const struct {
        struct weir_text text;
        bool fine;
        int64_t number;
    } rows[] = {
        {TEXT("0"), true, 0},
        {TEXT("7"), true, 7},
        {TEXT("-7"), true, -7},
        {TEXT("1234567890123"), true, 1234567890123},
        {TEXT("9223372036854775807"), true, INT64_MAX},
        {TEXT("-9223372036854775808"), true, INT64_MIN},
        {TEXT("9223372036854775808"), false, 0},
        {TEXT("-9223372036854775809"), false, 0},
        {TEXT("18446744073709551616"), false, 0},
        {TEXT("-18446744073709551615"), false, 0},
        {TEXT("-18446744073709551616"), false, 0},
        {TEXT("99999999999999999999999"), false, 0},
        {TEXT("184467440737095516165"), false, 0},
        {TEXT("-184467440737095516165"), false, 0},
        {TEXT(""), false, 0},
        {TEXT("-"), false, 0},
        {TEXT("-0"), false, 0},
        {TEXT("--1"), false, 0},
        {TEXT("+1"), false, 0},
        {TEXT(" 1"), false, 0},
        {TEXT("1 "), false, 0},
        {TEXT("01"), false, 0},
        {TEXT("00"), false, 0},
        {TEXT("1.0"), false, 0},
        {TEXT("1e3"), false, 0},
        {TEXT("0x1"), false, 0},
        {TEXT("1\0"), false, 0},
        {TEXT("/"), false, 0},
        {TEXT(":"), false, 0},
        {TEXT("1:"), false, 0},
        {TEXT("1/1"), false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t number = 0;
        uint64_t natural = 0;
        assert_int_equal(resp_to_i64(rows[i].text, &number), rows[i].fine);
        assert_true(number == rows[i].number);
        if (rows[i].fine) {
            assert_int_equal(resp_to_u64(rows[i].text, &natural), rows[i].number >= 0);
            assert_true(natural == (uint64_t)(rows[i].number > 0 ? rows[i].number : 0));
        }
    }
}

static void numbers_without_sign_reach_to_the_last(void **state)
{
    uint64_t number = 0;
    assert_true(resp_to_u64(TEXT("18446744073709551615"), &number));
    assert_true(number == UINT64_MAX);
    for (int digit = 6; digit <= 9; digit++) {
        char digits[] = "1844674407370955161.";
        digits[19] = (char)('0' + digit);
        assert_false(resp_to_u64(text_of(digits), &number));
    }
    assert_false(resp_to_u64(TEXT("28446744073709551615"), &number));
    assert_false(resp_to_u64(TEXT("184467440737095516165"), &number));
    assert_false(resp_to_u64(TEXT("-1"), &number));
}

static void a_word_is_known_in_any_case(void **state)
{
    assert_true(text_is_word(TEXT("cl.throttle"), "CL.THROTTLE"));
    assert_true(text_is_word(TEXT("Cl.Throttle"), "CL.THROTTLE"));
    assert_true(text_is_word(TEXT(""), ""));
    assert_false(text_is_word(TEXT("cl.throttl"), "CL.THROTTLE"));
    assert_false(text_is_word(TEXT("cl.throttles"), "CL.THROTTLE"));
    assert_false(text_is_word(TEXT("cl\x0ethrottle"), "CL.THROTTLE"));
    assert_false(text_is_word(TEXT("ping\0"), "PING"));
    assert_false(text_is_word(TEXT("ping\0x"), "PING"));
    assert_false(text_is_word(TEXT("{"), "["));
    assert_false(text_is_word(TEXT(""), "PING"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_of_bulk_strings_is_a_request),
        cmocka_unit_test(a_request_cut_at_any_byte_waits_for_the_rest),
        cmocka_unit_test(bytes_after_a_request_change_nothing),
        cmocka_unit_test(an_argument_may_hold_any_byte_or_none),
        cmocka_unit_test(a_length_may_have_any_number_of_digits),
        cmocka_unit_test(empty_requests_and_empty_lines_are_passed_over),
        cmocka_unit_test(a_pipeline_is_taken_apart_request_by_request),
        cmocka_unit_test(nothing_is_a_request_of_its_own),
        cmocka_unit_test(a_bomb_is_refused_as_soon_as_its_line_is_there),
        cmocka_unit_test(a_refused_request_stays_refused_whatever_follows),
        cmocka_unit_test(without_inline_commands_a_request_begins_with_a_star),
        cmocka_unit_test(hello_and_ping_are_always_accepted_as_lines),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(the_room_for_arguments_is_a_limit_too),
        cmocka_unit_test(a_full_buffer_is_never_asked_for_more),
        cmocka_unit_test(counts_beyond_the_limits_are_invalid),
        cmocka_unit_test(any_request_reads_back_as_it_was_written),
        cmocka_unit_test(numbers_are_read_as_redis_reads_them),
        cmocka_unit_test(numbers_without_sign_reach_to_the_last),
        cmocka_unit_test(a_word_is_known_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, let_go);
}
