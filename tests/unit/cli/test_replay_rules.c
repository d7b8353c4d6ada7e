/* `weir replay --rules`: a trace of attributes, and who decided on each line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/replay_run.h"

static const char rules[] =
    "version: 1\n"
    "allow: [{path: /healthz}]\n"
    "block: [{user: [mallory]}]\n"
    "limits:\n"
    "  - {name: login, when: {method: POST, path: /login}, key: [ip], rate: 2/min, group: one}\n"
    "  - name: search\n"
    "    when: {path: /search/**}\n"
    "    key: [user|ip]\n"
    "    rate: 1/s\n"
    "    tiers: {by: tier, default: free, free: {}, pro: {rate: 2/s}}\n"
    "  - {name: chat, when: {path: /chat}, key: [user], rate: 100/day, algorithm: fixed_window,\n"
    "     cost: 'attribute:tokens'}\n"
    "  - {name: export, when: {path: /export}, key: [user], rate: 2/s, algorithm: leaky_bucket,\n"
    "     queue: 2}\n"
    "  - {name: strict, when: {path: /strict}, key: [user], rate: 2/s, on_missing: deny}\n"
    "  - {name: fast, when: {path: /fast}, key: [ip], rate: 100M/s, burst: 2}\n"
    "  - {name: small, when: {path: /small}, key: [user], rate: 1/day, max_keys: 100}\n"
    "  - {name: everyone, when: {path: /export}, key: [], rate: 1/s, shadow: true}\n";

static char path[] = "/tmp/weir-replay-XXXXXX";

static int write_rules(void **state)
{
    int fd = mkstemp(path);
    assert_int_equal(write(fd, rules, sizeof rules - 1), sizeof rules - 1);
    close(fd);
    return 0;
}

static int remove_rules(void **state)
{
    return unlink(path);
}

static void expect(const char *words, const char *trace, int code, const char *out, const char *err)
{
    char all[256];
    snprintf(all, sizeof all, "--rules %s %s", path, words);
    replay_expect(all, trace, code, out, err);
}

static void the_binding_limit_is_named(void **state)
{
    expect("",
           "{\"time\":0,\"method\":\"POST\",\"path\":\"/login\",\"ip\":\"10.0.0.1\"}\n"
           "{\"time\":1,\"method\":\"POST\",\"path\":\"//login/\",\"ip\":\"::ffff:10.0.0.1\"}\r\n"
           "\n"
           "{\"time\":2,\"method\":\"POST\",\"path\":\"/login?x\",\"ip\":\"10.0.0.1\"}\n"
           "{\"time\":2,\"method\":\"GET\",\"path\":\"/login\",\"ip\":\"10.0.0.1\"}\n"
           "{\"time\":2,\"path\":\"/healthz\"}\n"
           "{\"time\":2,\"path\":\"/healthz\",\"user\":\"mallory\"}\n"
           "{\"time\":2,\"path\":\"/strict\"}",
           0,
           "allow login\nallow login\ndeny login\nallow -\nallow (allow-list)\ndeny (block-list)\n"
           "deny strict\n",
           "");
}

static void explained_it_has_tier_remaining_retry_and_reset(void **state)
{
    expect("--explain",
           "{\"time\":10.25,\"path\":\"/search/x\",\"ip\":\"10.0.0.1\",\"tier\":\"pro\"}\n"
           "{\"time\":10.25,\"path\":\"/search/x\",\"ip\":\"10.0.0.1\",\"tier\":\"pro\"}\n"
           "{\"time\":10.5,\"path\":\"/search/x\",\"ip\":\"10.0.0.1\",\"tier\":\"pro\"}\n"
           "{\"time\":10.5,\"path\":\"/search/x\",\"ip\":\"10.0.0.1\"}\n"
           "{\"time\":10.5,\"path\":\"/search/x\",\"ip\":\"10.0.0.1\",\"cost\":2}\n"
           "{\"time\":10.5,\"path\":\"/search/x\"}\n"
           "{\"time\":10.5,\"path\":\"/chat\",\"user\":\"a\",\"tokens\":70}\n"
           "{\"time\":10.5,\"path\":\"/chat\",\"user\":\"a\",\"tokens\":\"40\"}\n",
           0,
           "allow search tier=pro remaining=1 retry=0 reset=0.5\n"
           "allow search tier=pro remaining=0 retry=0 reset=1\n"
           "deny search tier=pro remaining=0 retry=0.25 reset=0.75\n"
           "allow search tier=free remaining=0 retry=0 reset=1\n"
           "deny search tier=free remaining=0 retry=never reset=1\n"
           "allow - missing=1\n"
           "allow chat remaining=30 retry=0 reset=86389.5\n"
           "deny chat remaining=30 retry=86389.5 reset=86389.5\n",
           "");
}

static void delays_and_shadow_limits_are_told(void **state)
{
    expect("--explain --unit ms",
           "{\"time\":0,\"path\":\"/export\",\"user\":\"a\"}\n"
           "{\"time\":0,\"path\":\"/export\",\"user\":\"a\"}\n"
           "{\"time\":\"0.5\",\"path\":\"/export\",\"user\":\"a\"}\n"
           "{\"time\":1,\"path\":\"/export\",\"user\":\"a\"}\n",
           0,
           "allow export remaining=2 retry=0 reset=500\n"
           "allow export remaining=1 retry=0 reset=1000 delay=500 shadow=everyone\n"
           "allow export remaining=0 retry=0 reset=1499.5 delay=999.5 shadow=everyone\n"
           "deny export remaining=0 retry=499 reset=1499\n",
           "");
}

static void unix_times_work_for_fast_limits_too(void **state)
{
    expect(
        "--explain",
        "{\"time\":1763230000.000000001,\"path\":\"/fast\",\"ip\":\"::1\",\"cost\":2}\n"
        "{\"time\":1763230000.000000002,\"path\":\"/fast\",\"ip\":\"::1\"}\n"
        "{\"time\":1763230000.000000011,\"path\":\"/fast\",\"ip\":\"::1\"}\n"
        "{\"time\":5,\"path\":\"/fast\",\"ip\":\"::1\"}\n",
        2,
        "allow fast remaining=0 retry=0 reset=0.00000002\n"
        "deny fast remaining=0 retry=0.000000009 reset=0.000000019\n"
        "allow fast remaining=0 retry=0 reset=0.00000002\n",
        "weir replay: line 4: found a \"time\" outside the range of a limit, expected from a day "
        "before the first one to some years later\n");
    expect("",
           "{\"time\":5,\"path\":\"/fast\",\"ip\":\"::1\"}\n"
           "{\"time\":1763230000,\"path\":\"/fast\",\"ip\":\"::1\"}\n",
           2, "allow fast\n",
           "weir replay: line 2: found a \"time\" outside the range of a limit, expected from 0 to "
           "some years later\n");
}

static void a_bad_line_is_reported_and_the_rest_goes_on(void **state)
{
    expect("",
           "{\"time\":1,\"path\":\"/x\"\n"
           "{\"path\":\"/x\"}\n"
           "{\"time\":1,\"path\":\"/login\",\"method\":\"POST\",\"ip\":\"nowhere\"}\n"
           "{\"time\":1,\"path\":\"/chat\",\"user\":\"a\"}\n"
           "request alice 1\n"
           "{\"time\":1,\"path\":\"/x\"}\n",
           2, "allow -\n",
           "weir replay: line 1: found no JSON object: '}' expected near end of file, at byte 21; "
           "expected one\n"
           "weir replay: line 2: found no \"time\", expected one\n"
           "weir replay: line 3: ip: found 'nowhere', expected an IP address such as "
           "203.0.113.7 or 2001:db8::1\n"
           "weir replay: line 4: tokens: missing, but limit 'chat' needs it as a cost\n"
           "weir replay: line 5: found no JSON object: '[' or '{' expected near 'request', at byte "
           "7; expected one\n");
}

static void a_line_that_is_too_long_is_one_bad_line(void **state)
{
    size_t len = 100000;
    char *trace = malloc(len + 100);
    memset(trace, ' ', len);
    strcpy(trace + len, "\n{\"time\":1,\"path\":\"/x\"}\n");
    expect("", trace, 2, "allow -\n",
           "weir replay: line 1: found a line of more than 65536 bytes, expected less\n");
    free(trace);
}

static void keys_that_found_no_room_are_told(void **state)
{
    char *trace;
    size_t size;
    char words[256];
    FILE *out = open_memstream(&trace, &size);
    for (int i = 0; i < 1000; i++) {
        fprintf(out, "{\"time\":1,\"path\":\"/small\",\"user\":\"u%d\"}\n", i);
    }
    fclose(out);
    snprintf(words, sizeof words, "--quiet --rules %s", path);
    struct replay_result r = replay_run(words, trace, size);
    assert_int_equal(r.code, 0);
    assert_memory_equal(r.err, "weir replay: limit small had no room for ", 40);
    replay_result_finish(&r);
    free(trace);
}

static void a_bad_rule_file_ends_the_replay(void **state)
{
    char bad[] = "/tmp/weir-replay-XXXXXX";
    char words[256];
    int fd = mkstemp(bad);
    assert_int_equal(write(fd, "limits: [{name: a, rate: x}]\n", 29), 29);
    close(fd);
    snprintf(words, sizeof words, "--rules %s", bad);
    struct replay_result r = replay_run(words, "{\"time\":1}\n", 11);
    assert_int_equal(r.code, 2);
    assert_string_equal(r.out, "");
    assert_memory_equal(r.err, bad, strlen(bad));
    assert_memory_equal(r.err + strlen(bad), ":1:", 3);
    replay_result_finish(&r);
    unlink(bad);
    r = replay_run(words, "{\"time\":1}\n", 11);
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, bad));
    replay_result_finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_binding_limit_is_named),
        cmocka_unit_test(explained_it_has_tier_remaining_retry_and_reset),
        cmocka_unit_test(delays_and_shadow_limits_are_told),
        cmocka_unit_test(unix_times_work_for_fast_limits_too),
        cmocka_unit_test(a_bad_line_is_reported_and_the_rest_goes_on),
        cmocka_unit_test(a_line_that_is_too_long_is_one_bad_line),
        cmocka_unit_test(keys_that_found_no_room_are_told),
        cmocka_unit_test(a_bad_rule_file_ends_the_replay),
    };
    return cmocka_run_group_tests(tests, write_rules, remove_rules);
}
