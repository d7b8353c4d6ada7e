/* Tests calls of scripts as bytes, and the parsing of their replies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/script_put.h"

static const struct store_params bucket = {
    .algorithm = WEIR_TOKEN_BUCKET, .quota = 150, .max_debt = 150, .a = 600000, .kind = "t"};
static const struct store_params log_of_5 = {
    .algorithm = WEIR_SLIDING_LOG, .quota = 5, .a = 1000000, .kind = "g"};

static const char *find(struct weir_text in, const char *what)
{
    return memmem(in.at, in.len, what, strlen(what));
}

/* ---- calls ---- */

static void assert_call(unsigned verb, const struct store_part *parts, size_t n,
                        const char *behind_the_sha)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    const struct script *script = script_for(&store_scripts, parts, n);
    script_put_call(&b, script, SCRIPT_BY_SHA, verb, parts, n);
    struct weir_text got = buffer_text(&b);
    const char *sha = find(got, script->sha1);
    assert_non_null(sha);
    got = text_after(got, (size_t)(sha + SCRIPT_SHA + 2 - got.at));
    if (!text_is(got, behind_the_sha)) {
        fail_msg("got %.*s", TEXT_ARGS(got));
    }
    buffer_finish(&b);
}

static void a_call_is_a_verb_and_seven_numbers_for_each_key(void **state)
{
    struct store_part parts[] = {{&bucket, TEXT("k"), 2, 1500}, {&log_of_5, TEXT("j"), 1, 0}};
    assert_call(REMOTE_CHECK, parts, 1,
                "$1\r\n1\r\n$1\r\nk\r\n$5\r\ncheck\r\n"
                "$1\r\n1\r\n$3\r\n150\r\n$3\r\n150\r\n$6\r\n600000\r\n$1\r\n0\r\n$1\r\n2\r\n"
                "$1\r\n2\r\n");
    assert_call(REMOTE_PEEK, parts, 2,
                "$1\r\n2\r\n$1\r\nk\r\n$1\r\nj\r\n$4\r\npeek\r\n"
                "$1\r\n1\r\n$3\r\n150\r\n$3\r\n150\r\n$6\r\n600000\r\n$1\r\n0\r\n$1\r\n2\r\n"
                "$1\r\n2\r\n"
                "$1\r\n5\r\n$1\r\n5\r\n$1\r\n0\r\n$7\r\n1000000\r\n$1\r\n0\r\n$1\r\n1\r\n"
                "$1\r\n0\r\n");
}

/* A check that cannot wait, of a cost within the quota, may be answered in short. */
static void a_plain_check_has_a_verb_of_its_own(void **state)
{
    struct store_params month = {.algorithm = WEIR_FIXED_WINDOW,
                                 .quota = 5,
                                 .a = WEIR_MONTH / WEIR_MICROSECOND,
                                 .kind = "f"};
    struct store_params leased = bucket;
    store_params_lease(&leased);
    const struct {
        const struct store_params *params;
        uint64_t cost;
        uint64_t wait_ns;
        bool plain;
    } calls[] = {{&bucket, 150, 0, true},  {&bucket, 151, 0, false}, {&bucket, 1, 1000, false},
                 {&log_of_5, 1, 0, false}, {&month, 1, 0, false},    {&leased, 1, 0, false}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct store_part part = {calls[i].params, TEXT("k"), calls[i].cost, calls[i].wait_ns};
        struct buffer b;
        buffer_init(&b, 1 << 20);
        (void)script_put_arguments(&b, REMOTE_CHECK, &part, 1);
        bool plain = find(buffer_text(&b), "$5\r\nplain\r\n") != NULL;
        assert_int_equal(plain, calls[i].plain);
        assert_int_equal(plain, find(buffer_text(&b), "$5\r\ncheck\r\n") == NULL);
        buffer_finish(&b);
    }
}

static void numbers_beyond_doubles_become_the_largest_that_is_exact(void **state)
{
    struct store_part part = {&log_of_5, TEXT("k"), UINT64_MAX, WEIR_FOREVER};
    assert_call(SCRIPT_BLOCK_UNTIL, &part, 1,
                "$1\r\n1\r\n$1\r\nk\r\n$5\r\nblock\r\n"
                "$1\r\n5\r\n$1\r\n5\r\n$1\r\n0\r\n$7\r\n1000000\r\n$1\r\n0\r\n"
                "$16\r\n9007199254740992\r\n$16\r\n9007199254740992\r\n");
}

static void the_text_can_take_the_place_of_the_name(void **state)
{
    struct store_part part = {&bucket, TEXT("k"), 1, 0};
    struct buffer b;
    buffer_init(&b, 1 << 20);
    const struct script *script = script_for(&store_scripts, &part, 1);
    assert_string_equal(script->name, "token_bucket");
    script_put_call(&b, script, SCRIPT_BY_TEXT, REMOTE_RESET, &part, 1);
    assert_true(text_starts(buffer_text(&b), "*12\r\n$4\r\nEVAL\r\n$"));
    assert_true(buffer_len(&b) > script->text.len);
    buffer_finish(&b);
}

static void limits_of_one_algorithm_are_a_call_of_its_script(void **state)
{
    struct store_part parts[] = {
        {&log_of_5, TEXT("a"), 1, 0}, {&log_of_5, TEXT("b"), 1, 0}, {&bucket, TEXT("c"), 1, 0}};
    assert_string_equal(script_for(&store_scripts, parts, 2)->name, "sliding_log");
    assert_string_equal(script_for(&store_scripts, parts, 3)->name, "several");
}

/* A fleet's time is the store's: the program sends no other clock. */
static void every_script_begins_with_the_stores_clock(void **state)
{
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        struct weir_text text = store_scripts.row[i].text;
        const char *time = find(text, "redis.call('TIME')");
        const char *next = find(text, "redis.call('");
        assert_non_null(time);
        assert_ptr_equal(time, next);
    }
}

static void each_key_has_windows_of_its_own_that_every_node_agrees_on(void **state)
{
    struct store_params p = {
        .algorithm = WEIR_FIXED_WINDOW, .align_key = true, .quota = 5, .a = 60000000, .kind = "f"};
    struct store_part parts[] = {{&p, TEXT("alice"), 1, 0}, {&p, TEXT("bob"), 1, 0}};
    struct buffer b[3];
    for (size_t i = 0; i < 3; i++) {
        buffer_init(&b[i], 1 << 20);
        script_put_call(&b[i], script_for(&store_scripts, parts, 1), SCRIPT_BY_SHA, REMOTE_CHECK,
                        &parts[i % 2], 1);
    }
    assert_true(text_equal(buffer_text(&b[0]), buffer_text(&b[2])));
    assert_null(find(buffer_text(&b[0]), "60000000\r\n$1\r\n0\r\n"));
    for (size_t i = 0; i < 3; i++) {
        buffer_finish(&b[i]);
    }
}

/* ---- replies ---- */

static struct store_reply read_all(const char *bytes)
{
    struct store_reply r;
    struct weir_text input = text_of(bytes);
    for (size_t i = 0; i < input.len; i++) { /* every prefix needs more bytes */
        assert_int_equal(store_reply_read((struct weir_text){bytes, i}, &r), STORE_MORE);
    }
    assert_int_equal(store_reply_read(input, &r), STORE_REPLY);
    assert_int_equal(r.whole.len, input.len);
    return r;
}

static void an_answer_is_nine_numbers(void **state)
{
    struct store_part part = {&bucket, TEXT("k"), 2, 0};
    struct store_reply r =
        read_all("*9\r\n:2\r\n:1\r\n:0\r\n:0\r\n:-1\r\n:1500\r\n:0\r\n:1786400000123456\r\n:0\r\n");
    struct weir_answer a;
    uint64_t stamp;
    assert_int_equal(script_answer(&r, &part, 1, &a, &stamp), 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(a.quota, 150);
    assert_true(a.retry_after_ns == WEIR_FOREVER);
    assert_int_equal(a.reset_after_ns, 1500000);
    assert_int_equal(stamp, UINT64_C(1786400000123456));
}

/* Of 150 at one in 0.6 s, ten are taken; then 141 are too many. */
static void a_short_answer_is_a_state_out_of_which_the_rest_follows(void **state)
{
    struct store_part part = {&bucket, TEXT("k"), 10, 0};
    struct store_reply r = read_all("*3\r\n:1786400000123456\r\n:6000000\r\n:0\r\n");
    struct weir_answer a;
    uint64_t stamp;
    assert_int_equal(script_answer(&r, &part, 1, &a, &stamp), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.quota, 150);
    assert_int_equal(a.granted, 10);
    assert_int_equal(a.remaining, 140);
    assert_int_equal(a.retry_after_ns, 0);
    assert_int_equal(a.reset_after_ns, 6 * WEIR_SECOND);
    assert_int_equal(stamp, UINT64_C(1786400000123456));
    part.cost = 141;
    r = read_all("*3\r\n:1786400000123456\r\n:-6000001\r\n:0\r\n");
    assert_int_equal(script_answer(&r, &part, 1, &a, &stamp), 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.granted, 0);
    assert_int_equal(a.remaining, 140);
    assert_int_equal(a.retry_after_ns, 600 * WEIR_MILLISECOND);
    assert_int_equal(a.reset_after_ns, 6 * WEIR_SECOND);
}

static void a_short_answer_of_a_window_says_when_it_ends(void **state)
{
    static const struct store_params window = {
        .algorithm = WEIR_FIXED_WINDOW, .quota = 5, .a = 1000000, .kind = "f"};
    struct store_part part = {&window, TEXT("k"), 2, 0};
    struct store_reply r = read_all("*3\r\n:1786400000123456\r\n:-8\r\n:876544\r\n");
    struct weir_answer a;
    assert_int_equal(script_answer(&r, &part, 1, &a, NULL), 0);
    assert_int_equal(a.verdict, WEIR_DENY); /* 7 of 5 are taken, after a penalty */
    assert_int_equal(a.remaining, 0);
    assert_int_equal(a.retry_after_ns, 876544 * WEIR_MICROSECOND);
    assert_int_equal(a.reset_after_ns, 876544 * WEIR_MICROSECOND);
}

/* A verdict that does not follow from the state that comes with it is no answer. */
static void short_answers_that_contradict_themselves_are_no_answer(void **state)
{
    static const char *const bad[] = {
        "*3\r\n:-1\r\n:6000000\r\n:0\r\n",     /* a time before all times */
        "*3\r\n:1\r\n:5999999\r\n:127999\r\n", /* allowed, and less than the cost is taken */
        "*3\r\n:1\r\n:90000000\r\n:1\r\n",     /* allowed beyond the quota */
        "*3\r\n:1\r\n:-84000001\r\n:0\r\n",    /* denied, and there is room */
        "*3\r\n:1\r\n:-90000001\r\n:1\r\n",    /* denied beyond the span */
        "*3\r\n:1\r\n:6000000\r\n:128000\r\n", /* a remainder of one or more */
        "*3\r\n:1\r\n:6000000\r\n:-1\r\n",
        "*3\r\n:1\r\n:-9223372036854775808\r\n:0\r\n",
        "*3\r\n:1\r\n:9223372036854775807\r\n:0\r\n",
    };
    struct store_part parts[] = {{&bucket, TEXT("k"), 10, 0}, {&bucket, TEXT("j"), 10, 0}};
    struct weir_answer a;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct store_reply r = read_all(bad[i]);
        assert_int_equal(script_answer(&r, parts, 1, &a, NULL), WEIR_EIO);
    }
    struct store_reply good = read_all("*3\r\n:1\r\n:6000000\r\n:0\r\n");
    assert_int_equal(script_answer(&good, parts, 1, &a, NULL), 0);
    assert_int_equal(script_answer(&good, parts, 2, &a, NULL), WEIR_EIO);
    struct store_part log = {&log_of_5, TEXT("k"), 1, 0};
    assert_int_equal(script_answer(&good, &log, 1, &a, NULL), WEIR_EIO);
}

static void numbers_that_no_script_answers_are_no_answer(void **state)
{
    static const char too_many[] = "*17\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n"
                                   ":0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n";
    static const char *const bad[] = {
        ":1\r\n",
        too_many,
        "$2\r\nOK\r\n",
        "*0\r\n",
        "*2\r\n+a\r\n:1\r\n",
        "*2\r\n:1\r\n*1\r\n:2\r\n",
        "*9\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n+0\r\n",
        "*8\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
        "*9\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n",  /* no verdict */
        "*9\r\n:4\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n",  /* no such verdict */
        "*9\r\n:1\r\n:0\r\n:-1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n", /* remaining < 0 */
        "*9\r\n:1\r\n:0\r\n:0\r\n:0\r\n:-2\r\n:0\r\n:0\r\n:0\r\n:0\r\n", /* retry < -1 */
        "*9\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:1\r\n",  /* no such limit */
        "*9\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n:9223372036854775807\r\n:0\r\n:0\r\n",
    };
    struct store_part part = {&bucket, TEXT("k"), 2, 0};
    struct weir_answer a;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct store_reply r = read_all(bad[i]);
        assert_int_equal(script_answer(&r, &part, 1, &a, NULL), WEIR_EIO);
    }
}

static void a_verb_is_done_or_not(void **state)
{
    struct store_reply yes = read_all(":1\r\n");
    struct store_reply no = read_all(":0\r\n");
    struct store_reply odd = read_all(":2\r\n");
    assert_int_equal(script_done(&yes, REMOTE_RESET), 1);
    assert_int_equal(script_done(&no, REMOTE_UNBLOCK), 0);
    assert_int_equal(script_done(&yes, SCRIPT_BLOCK_UNTIL), 0);
    assert_int_equal(script_done(&no, SCRIPT_BLOCK_UNTIL), WEIR_ETIME);
    assert_int_equal(script_done(&odd, REMOTE_RESET), WEIR_EIO);
}

#define WRAPPED "-ERR Error running script (call to f_71d0461831aa): @user_script:12: "

static void errors_are_known_by_their_first_word(void **state)
{
    static const struct {
        const char *line;
        enum store_refusal refusal;
        bool ran;
    } errors[] = {
        {"-NOSCRIPT No matching script. Please use EVAL.\r\n", STORE_NOSCRIPT, false},
        {"-MOVED 3999 127.0.0.1:6381\r\n", STORE_MOVED, false},
        {"-ASK 3999 127.0.0.1:6381\r\n", STORE_ASK, false},
        {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", STORE_TRYAGAIN, false},
        {"-CLUSTERDOWN Hash slot not served\r\n", STORE_CLUSTERDOWN, false},
        {"-LOADING Redis is loading the dataset in memory\r\n", STORE_LOADING, false},
        {"-READONLY You can't write against a read only replica.\r\n", STORE_READONLY, false},
        {"-BUSY Redis is busy running a script.\r\n", STORE_BUSY, false},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", STORE_OOM, false},
        {"-MASTERDOWN Link with MASTER is down\r\n", STORE_MASTERDOWN, false},
        {"-NOREPLICAS Not enough good replicas to write.\r\n", STORE_NOREPLICAS, false},
        {"-ERR unknown command\r\n", STORE_REFUSED, true},
        {"-MOVEDX 1\r\n", STORE_REFUSED, true},
        {"-\r\n", STORE_REFUSED, true},
        /* Redis 6.2 */
        {WRAPPED "@user_script: 12: -READONLY You can't write\r\n", STORE_READONLY, false},
        {WRAPPED "@user_script: 12: -OOM command not allowed\r\n", STORE_OOM, false},
        {WRAPPED "user_script:12: key: @user_script: 12: -OOM\r\n", STORE_REFUSED, true},
        {WRAPPED "@user_script: 12: \r\n", STORE_REFUSED, true},
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct store_reply r = read_all(errors[i].line);
        assert_int_equal(r.type, '-');
        assert_int_equal(r.refusal, errors[i].refusal);
        assert_int_equal(store_did_not_run(r.refusal), !errors[i].ran);
    }
}

static void what_is_no_reply_is_refused(void **state)
{
    static const char *const bad[] = {
        "\r\n",       "hello\r\n",    ":x\r\n", ":1\rx",   "*-2\r\n", "$-2\r\n",
        "$65537\r\n", "$1\r\nab\r\n", "_x\r\n", "$1x\r\n", "*x\r\n",  "*1\r\n:\r\n",
    };
    struct store_reply r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(store_reply_read(text_of(bad[i]), &r), STORE_BAD);
    }
    assert_int_equal(read_all("$-1\r\n").type, '_');
    assert_int_equal(read_all("*-1\r\n").type, '_');
    assert_int_equal(read_all("_\r\n").type, '_');
}

static void a_line_without_an_end_is_not_waited_for_for_ever(void **state)
{
    size_t n = STORE_TEXT_MAX + 2;
    char *line = malloc(n);
    memset(line, 'x', n);
    struct store_reply r;
    assert_int_equal(store_reply_read((struct weir_text){line, n}, &r), STORE_BAD);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_a_verb_and_seven_numbers_for_each_key),
        cmocka_unit_test(numbers_beyond_doubles_become_the_largest_that_is_exact),
        cmocka_unit_test(the_text_can_take_the_place_of_the_name),
        cmocka_unit_test(limits_of_one_algorithm_are_a_call_of_its_script),
        cmocka_unit_test(every_script_begins_with_the_stores_clock),
        cmocka_unit_test(each_key_has_windows_of_its_own_that_every_node_agrees_on),
        cmocka_unit_test(an_answer_is_nine_numbers),
        cmocka_unit_test(a_plain_check_has_a_verb_of_its_own),
        cmocka_unit_test(a_short_answer_is_a_state_out_of_which_the_rest_follows),
        cmocka_unit_test(a_short_answer_of_a_window_says_when_it_ends),
        cmocka_unit_test(short_answers_that_contradict_themselves_are_no_answer),
        cmocka_unit_test(numbers_that_no_script_answers_are_no_answer),
        cmocka_unit_test(a_verb_is_done_or_not),
        cmocka_unit_test(errors_are_known_by_their_first_word),
        cmocka_unit_test(what_is_no_reply_is_refused),
        cmocka_unit_test(a_line_without_an_end_is_not_waited_for_for_ever),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
