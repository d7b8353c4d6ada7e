/* `weir replay`, the classic form: what it prints, what it refuses, and how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/replay_run.h"

#define FOUR_AND_FOUR                                                                              \
    "request alice 0\nrequest alice 0\nrequest alice 0\nrequest alice 0\n"                         \
    "request alice 10\nrequest alice 10\nrequest alice 10\nrequest alice 10\n"

#define EXAMPLE "3\n10\n8\n" FOUR_AND_FOUR
#define EXAMPLE_OUT "allow\nallow\nallow\ndeny\nallow\nallow\nallow\ndeny\n"

static void the_example_of_the_manual_holds(void **state)
{
    replay_expect("", EXAMPLE, 0, EXAMPLE_OUT, "");
    replay_expect("-", EXAMPLE, 0, EXAMPLE_OUT, "");
    replay_expect("--algorithm stepped_bucket", EXAMPLE, 0, EXAMPLE_OUT, "");
    replay_expect("--unit ns", EXAMPLE, 0, EXAMPLE_OUT, "");
}

static void crlf_and_a_missing_final_newline_work(void **state)
{
    replay_expect("", "3\r\n10\r\n2\r\nrequest alice 0\r\nrequest alice 0\r\n", 0, "allow\nallow\n",
                  "");
    replay_expect("", "1\r\n10\r\n2\r\nrequest alice 0\r\nrequest alice 0", 0, "allow\ndeny\n", "");
    replay_expect("", "1\n10\n2\nrequest alice 0\nrequest alice 0", 0, "allow\ndeny\n", "");
    replay_expect("", "1\n10\n0", 0, "", "");
}

static void empty_lines_at_the_end_do_not_count(void **state)
{
    replay_expect("", "1\n10\n1\nrequest alice 0\n\n \t\n\r\n", 0, "allow\n", "");
    replay_expect("", "1\n10\n0\n\n\n", 0, "", "");
    replay_expect("", "1\n10\n2\nrequest alice 0\n\n", 2, "allow\n",
                  "weir replay: found 1 line of requests, expected 2 as line 3 says\n");
}

static void capacity_0_denies_all_and_window_0_never_refills(void **state)
{
    replay_expect("--explain", "0\n10\n2\nrequest a 0\nrequest a 100\n", 0,
                  "deny remaining=0 retry=never reset=0\ndeny remaining=0 retry=never reset=0\n",
                  "");
    replay_expect("--explain", "1\n0\n2\nrequest a 0\nrequest a 9223372036854775807\n", 0,
                  "allow remaining=0 retry=0 reset=never\ndeny remaining=0 retry=never "
                  "reset=never\n",
                  "");
}

static void a_decreasing_time_is_no_error_and_refills_nothing(void **state)
{
    replay_expect("", "1\n10\n4\nrequest a 100\nrequest a 50\nrequest a 109\nrequest a 110\n", 0,
                  "allow\ndeny\ndeny\nallow\n", "");
    replay_expect("--explain", "1\n10\n2\nrequest a 100\nrequest a -5\n", 0,
                  "allow remaining=0 retry=0 reset=10\ndeny remaining=0 retry=115 reset=115\n", "");
}

static void a_bad_line_is_reported_and_the_rest_goes_on(void **state)
{
    replay_expect("",
                  "1\n10\n9\nrequest a 0\nask a 0\nrequest a\nrequest\n\nrequest a zero\n"
                  "request a 0 2\nrequest a 0 1 x\nrequest b 0\n",
                  2, "allow\nallow\n",
                  "weir replay: line 5: found 'ask', expected 'request CLIENT TIMESTAMP'\n"
                  "weir replay: line 6: found the end of the line, expected a timestamp, a 64-bit "
                  "integer\n"
                  "weir replay: line 7: found the end of the line, expected a client\n"
                  "weir replay: line 8: found an empty line, expected 'request CLIENT TIMESTAMP'\n"
                  "weir replay: line 9: found 'zero', expected a timestamp, a 64-bit integer\n"
                  "weir replay: line 10: found a cost of 2, expected 1: a stepped bucket gives one "
                  "token at a time; other costs need --algorithm\n"
                  "weir replay: line 11: found 'x', expected the end of the line\n");
}

static void a_bad_line_changes_nothing(void **state)
{
    replay_expect("", "1\n10\n3\nrequest a x\nrequest a 0 7\nrequest a 0\n", 2, "allow\n",
                  "weir replay: line 4: found 'x', expected a timestamp, a 64-bit integer\n"
                  "weir replay: line 5: found a cost of 7, expected 1: a stepped bucket gives one "
                  "token at a time; other costs need --algorithm\n");
}

static void a_line_that_is_too_long_is_one_bad_line(void **state)
{
    size_t len = 300000;
    char *input = malloc(len + 100);
    int head = sprintf(input, "1\n10\n2\nrequest ");
    memset(input + head, 'x', len);
    strcpy(input + head + len - 20, " 0\nrequest a 0\n");
    replay_expect("", input, 2, "allow\n",
                  "weir replay: line 4: found a line of more than 65536 bytes, expected 'request "
                  "CLIENT TIMESTAMP'\n");
    free(input);
}

static void fewer_or_more_lines_than_promised_are_an_error(void **state)
{
    replay_expect("", "1\n10\n3\nrequest a 0\n", 2, "allow\n",
                  "weir replay: found 1 line of requests, expected 3 as line 3 says\n");
    replay_expect("", "1\n10\n3\nrequest a 0\nrequest b 0\n", 2, "allow\nallow\n",
                  "weir replay: found 2 lines of requests, expected 3 as line 3 says\n");
    replay_expect("", "1\n10\n1\nrequest a 0\nrequest b 0\n\nrequest c\n", 2, "allow\n",
                  "weir replay: found 4 lines of requests, expected 1 as line 3 says\n");
    replay_expect("", "1\n10\n0\nrequest a 0\n", 2, "",
                  "weir replay: found 1 line of requests, expected 0 as line 3 says\n");
    replay_expect("", "1\n10\n9223372036854775807\nrequest a 0\n", 2, "allow\n",
                  "weir replay: found 1 line of requests, expected 9223372036854775807 as line 3 "
                  "says\n");
}

static void a_bad_head_ends_the_replay(void **state)
{
    replay_expect("", "", 2, "",
                  "weir replay: line 1: found the end of the input, expected the capacity\n");
    replay_expect("", "3\n10\n", 2, "",
                  "weir replay: line 3: found the end of the input, expected the number of "
                  "requests\n");
    replay_expect("", "three\n10\n1\nrequest a 0\n", 2, "",
                  "weir replay: line 1: found 'three', expected the capacity, a whole number below "
                  "2^63\n");
    replay_expect("", "3\n-10\n1\nrequest a 0\n", 2, "",
                  "weir replay: line 2: found '-10', expected the window, a whole number below "
                  "2^63\n");
    replay_expect("", "3\n10\n1 2\nrequest a 0\n", 2, "",
                  "weir replay: line 3: found '2', expected nothing after the number of "
                  "requests\n");
    replay_expect("", "\n3\n10\n1\nrequest a 0\n", 2, "",
                  "weir replay: line 1: found the end of the line, expected the capacity, a whole "
                  "number below 2^63\n");
}

static void the_same_stream_goes_through_every_algorithm(void **state)
{
    replay_expect("--algorithm sliding_log --rate 3/10", EXAMPLE, 0, EXAMPLE_OUT, "");
    replay_expect("--algorithm fixed_window", EXAMPLE, 0, EXAMPLE_OUT, "");
    replay_expect("--algorithm sliding_window", EXAMPLE, 0,
                  "allow\nallow\nallow\ndeny\ndeny\ndeny\ndeny\ndeny\n", "");
    replay_expect("--algorithm token_bucket --rate 2/10 --burst 3", EXAMPLE, 0,
                  "allow\nallow\nallow\ndeny\nallow\nallow\ndeny\ndeny\n", "");
    replay_expect("--algorithm leaky_bucket --rate=2/10 --queue=1 --explain", EXAMPLE, 0,
                  "allow remaining=1 retry=0 reset=5 delay=0\n"
                  "allow remaining=0 retry=0 reset=10 delay=5\n"
                  "deny remaining=0 retry=5 reset=10 delay=0\n"
                  "deny remaining=0 retry=5 reset=10 delay=0\n"
                  "allow remaining=1 retry=0 reset=5 delay=0\n"
                  "allow remaining=0 retry=0 reset=10 delay=5\n"
                  "deny remaining=0 retry=5 reset=10 delay=0\n"
                  "deny remaining=0 retry=5 reset=10 delay=0\n",
                  "");
}

static void explanations_are_exact_in_the_unit_of_the_timestamps(void **state)
{
    const char *stream = "4\n14\n3\nrequest a 0 4\nrequest a 0\nrequest a 1 5\n";
    replay_expect("--algorithm token_bucket --explain", stream, 0,
                  "allow remaining=0 retry=0 reset=14\ndeny remaining=0 retry=3.5 reset=14\n"
                  "deny remaining=0 retry=never reset=13\n",
                  "");
    replay_expect("--algorithm token_bucket --unit us --explain", stream, 0,
                  "allow remaining=0 retry=0 reset=14\ndeny remaining=0 retry=3.5 reset=14\n"
                  "deny remaining=0 retry=never reset=13\n",
                  "");
    replay_expect("--algorithm token_bucket --unit ms --rate 8/1s --burst 1 --explain", stream, 0,
                  "deny remaining=1 retry=never reset=0\nallow remaining=0 retry=0 reset=125\n"
                  "deny remaining=0 retry=never reset=124\n",
                  "");
}

static void the_rate_replaces_capacity_and_window(void **state)
{
    replay_expect("--rate 1/10", EXAMPLE, 0, "allow\ndeny\ndeny\ndeny\nallow\ndeny\ndeny\ndeny\n",
                  "");
    replay_expect("--rate 1/10s --unit ms", EXAMPLE, 0,
                  "allow\ndeny\ndeny\ndeny\ndeny\ndeny\ndeny\ndeny\n", "");
    replay_expect("--algorithm fixed_window --rate 1/10", "0\n0\n1\nrequest a 5\n", 0, "allow\n",
                  "");
}

static void a_limit_that_cannot_be_is_refused(void **state)
{
    replay_expect("--algorithm token_bucket", "0\n10\n0\n", 2, "",
                  "weir replay: found a capacity of 0, expected at least 1 for token_bucket; see "
                  "--rate\n");
    replay_expect("--algorithm fixed_window", "1\n0\n0\n", 2, "",
                  "weir replay: found a window of 0, expected at least 1 for fixed_window; see "
                  "--rate\n");
    replay_expect("--algorithm fixed_window", "1\n9223372036854775807\n0\n", 2, "",
                  "weir replay: found a window of 9223372036854775807, expected at most 100 "
                  "years\n");
    replay_expect("--algorithm sliding_log", "65536\n10\n0\n", 2, "",
                  "weir replay: count 65536 is too large for a sliding log, expected at most "
                  "65535\n");
    replay_expect("--algorithm fixed_window --unit ns", "1\n10\n0\n", 2, "",
                  "weir replay: period_ns is 10, expected 1000 (1 us) to 3155760000000000000 (100 "
                  "years)\n");
}

static void times_that_the_algorithm_cannot_tell_apart_are_bad_lines(void **state)
{
    replay_expect("--algorithm sliding_window",
                  "1\n10\n4\nrequest a 9223372036854775807\nrequest a 100\nrequest a "
                  "1577880000\nrequest a -1577880000\n",
                  2, "allow\nallow\n",
                  "weir replay: line 4: found the time 9223372036854775807, expected one within "
                  "292 years of 0\n"
                  "weir replay: line 7: found the time -1577880000, expected -1577879900 to "
                  "1577880109: at this rate, times further from the first request do not fit\n");
}

static void bad_arguments_are_refused(void **state)
{
    replay_expect("one two", "", 2, "", "weir replay: found 'one' and 'two', expected one FILE\n");
    replay_expect("--algoritm token_bucket", "", 2, "",
                  "weir replay: unknown option '--algoritm'; did you mean '--algorithm'?\n");
    replay_expect("--algorithm token_buket", "", 2, "",
                  "weir replay: unknown algorithm 'token_buket'; did you mean 'token_bucket'?\n");
    replay_expect(
        "--algorithm steped_bucket", "", 2, "",
        "weir replay: unknown algorithm 'steped_bucket'; did you mean 'stepped_bucket'?\n");
    replay_expect("--algorithm wheel", "", 2, "",
                  "weir replay: unknown algorithm 'wheel'; 'weir replay --help' lists them\n");
    replay_expect("--unit min", "", 2, "",
                  "weir replay: --unit: found 'min', expected s, ms, us or ns\n");
    replay_expect("--burst 5", "", 2, "",
                  "weir replay: found --burst without --algorithm token_bucket, expected both\n");
    replay_expect("--algorithm token_bucket --queue 5", "", 2, "",
                  "weir replay: found --queue without --algorithm leaky_bucket, expected both\n");
    replay_expect("--algorithm token_bucket --burst 0", "", 2, "",
                  "weir replay: --burst: found '0', expected a whole number from 1 up\n");
    replay_expect("--rules x.yaml --rate 3/10", "", 2, "",
                  "weir replay: found --rate and --rules, expected one of them\n");
    replay_expect("--rate", "", 2, "", "weir replay: --rate: found no value, expected N/PERIOD\n");
    replay_expect("--explain=yes", "", 2, "",
                  "weir replay: --explain: found the value 'yes', expected none\n");
    replay_expect(
        "--rate 3/1500ms", "1\n1\n0\n", 2, "",
        "weir replay: --rate: found a period of 1500000000 ns, expected a multiple of the unit, "
        "1000000000 ns, for stepped_bucket; see --unit\n");
}

static void rates_and_counts_that_are_none_are_refused(void **state)
{
    static const char *const words[] = {"--rate x", "--rate 0/10", "--rate 3",
                                        "--algorithm token_bucket --burst many",
                                        "--algorithm leaky_bucket --queue -1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct replay_result r = replay_run(words[i], EXAMPLE, strlen(EXAMPLE));
        assert_int_equal(r.code, 2);
        assert_string_equal(r.out, "");
        assert_non_null(strstr(r.err, "weir replay: --"));
        replay_result_finish(&r);
    }
}

static void a_file_is_read_as_standard_input_is(void **state)
{
    char path[] = "/tmp/weir-replay-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, EXAMPLE, strlen(EXAMPLE)), strlen(EXAMPLE));
    close(fd);
    replay_expect(path, "nothing of this", 0, EXAMPLE_OUT, "");
    unlink(path);
    struct replay_result r = replay_run(path, "", 0);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "weir replay: "));
    assert_non_null(strstr(r.err, path));
    replay_result_finish(&r);
    r = replay_run("/", "", 0);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "directory"));
    replay_result_finish(&r);
}

static void the_summary_counts_and_gives_requests_per_second(void **state)
{
    struct replay_result r = replay_run("", EXAMPLE, strlen(EXAMPLE));
    unsigned requests, clients, allowed, denied;
    double seconds;
    unsigned long rate;
    assert_int_equal(sscanf(r.err,
                            "weir replay: %u requests of %u client, %u allowed, %u denied; %lf s, "
                            "%lu requests/s\n",
                            &requests, &clients, &allowed, &denied, &seconds, &rate),
                     6);
    assert_int_equal(requests, 8);
    assert_int_equal(clients, 1);
    assert_int_equal(allowed, 6);
    assert_int_equal(denied, 2);
    assert_string_equal(r.out, EXAMPLE_OUT);
    replay_result_finish(&r);
}

static void clients_may_be_any_bytes(void **state)
{
    static const char input[] = "1\n10\n4\nrequest \0 0\nrequest \0\0 0\nrequest \xff 0\n"
                                "request \0 0\n";
    struct replay_result r = replay_run("--quiet", input, sizeof input - 1);
    assert_int_equal(r.code, 0);
    assert_string_equal(r.out, "allow\nallow\nallow\ndeny\n");
    replay_result_finish(&r);
}

static void help_lists_the_options(void **state)
{
    struct replay_result r = replay_run("--help", "", 0);
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "usage: weir replay [options] [FILE]\n"));
    assert_non_null(strstr(r.out, "--explain"));
    assert_string_equal(r.err, "");
    replay_result_finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_manual_holds),
        cmocka_unit_test(crlf_and_a_missing_final_newline_work),
        cmocka_unit_test(empty_lines_at_the_end_do_not_count),
        cmocka_unit_test(capacity_0_denies_all_and_window_0_never_refills),
        cmocka_unit_test(a_decreasing_time_is_no_error_and_refills_nothing),
        cmocka_unit_test(a_bad_line_is_reported_and_the_rest_goes_on),
        cmocka_unit_test(a_bad_line_changes_nothing),
        cmocka_unit_test(a_line_that_is_too_long_is_one_bad_line),
        cmocka_unit_test(fewer_or_more_lines_than_promised_are_an_error),
        cmocka_unit_test(a_bad_head_ends_the_replay),
        cmocka_unit_test(the_same_stream_goes_through_every_algorithm),
        cmocka_unit_test(explanations_are_exact_in_the_unit_of_the_timestamps),
        cmocka_unit_test(the_rate_replaces_capacity_and_window),
        cmocka_unit_test(a_limit_that_cannot_be_is_refused),
        cmocka_unit_test(times_that_the_algorithm_cannot_tell_apart_are_bad_lines),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(rates_and_counts_that_are_none_are_refused),
        cmocka_unit_test(a_file_is_read_as_standard_input_is),
        cmocka_unit_test(the_summary_counts_and_gives_requests_per_second),
        cmocka_unit_test(clients_may_be_any_bytes),
        cmocka_unit_test(help_lists_the_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
