/* What operators do to one key, whatever the protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "server/operations/operations.h"

#define NOW (UINT64_C(1800000000) * WEIR_SECOND)

static const char rules_text[] =
    "limits:\n"
    "  - {name: api, key: [user], rate: 10/min}\n"
    "  - {name: pair, key: [tenant, user], rate: 10/min}\n"
    "  - {name: quiet, key: [user], rate: 1/min, shadow: true}\n"
    "  - {name: tiered, key: [user], rate: 10/min,"
    " tiers: {by: tier, default: free, free: {}, pro: {rate: 100/min}}}\n";

static struct server server; /* nothing of it runs */
static int log_pipe[2];

static int set_up(void **state)
{
    struct weir_error error = {0};
    if (weir_rules_open_text(&server.rules, "test", rules_text, sizeof rules_text - 1, NULL,
                             &error) != 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(pipe(log_pipe), 0);
    log_init(log_pipe[1], LOG_AS_TEXT, LOG_KEYS_CUT);
    return 0;
}

static int tear_down(void **state)
{
    weir_rules_close(server.rules);
    log_init(2, LOG_AS_TEXT, LOG_KEYS_CUT);
    (void)close(log_pipe[0]);
    (void)close(log_pipe[1]);
    return 0;
}

/* The log's next line. */
static const char *logged(void)
{
    static char line[1024];
    size_t n = 0;
    while (n + 1 < sizeof line && read(log_pipe[0], line + n, 1) == 1 && line[n] != '\n') {
        n++;
    }
    line[n] = 0;
    return line;
}

static struct ask ask_of(const char *limit)
{
    struct ask ask;
    ask_init(&ask);
    ask.text[ASK_LIMIT] = text_of(limit);
    ask.parts[ask.parts_count++] = (struct weir_text){"alice", 5};
    ask.given = ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY);
    return ask;
}

static const struct address unix_peer = {.family = 0};
static const struct address some_peer = {.family = 4, .bytes = {192, 0, 2, 7}};

static int run_at(enum operation operation, const struct ask *ask, const struct address *peer,
                  uint64_t now_ns, struct answer *a, struct weir_error *error)
{
    struct asker asker = {.server = &server, .by = {peer, ROLE_ADMIN}, .now_ns = now_ns};
    return operation_run(&asker, operation, ask, a, error);
}

static void no_operation_runs_without_the_role_that_it_needs(void **state)
{
    struct ask ask = ask_of("api");
    for (unsigned i = 0; i < OPERATIONS; i++) {
        for (unsigned role = 0; role < (unsigned)operation_rows[i].role; role++) {
            struct asker asker = {
                .server = &server, .by = {&unix_peer, (enum role)role}, .now_ns = NOW};
            struct answer a;
            struct weir_error error = {0};
            assert_int_equal(operation_run(&asker, (enum operation)i, &ask, &a, &error),
                             WEIR_EACCES);
            assert_non_null(strstr(error.text, operation_rows[i].name));
        }
    }
}

static struct answer did_at(enum operation operation, uint64_t amount, uint64_t now_ns)
{
    struct ask ask = ask_of("api");
    struct answer a;
    struct weir_error error = {0};
    ask.number[ASK_UNITS] = amount;
    ask.number[ASK_FOR] = amount;
    if (run_at(operation, &ask, &some_peer, now_ns, &a, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return a;
}

static struct answer did(enum operation operation, uint64_t amount)
{
    return did_at(operation, amount, NOW);
}

static struct answer take(const char *limit, uint64_t cost, enum operation operation)
{
    struct ask ask = ask_of(limit);
    struct answer a;
    struct weir_error error = {0};
    ask.number[ASK_COST] = cost;
    assert_int_equal(run_at(operation, &ask, &unix_peer, NOW, &a, &error), 0);
    return a;
}

static void units_are_given_back_and_taken_away(void **state)
{
    assert_int_equal(take("api", 6, OPERATION_CHECK).remaining, 4);
    assert_int_equal(did(OPERATION_REFUND, 2).remaining, 6);
    assert_int_equal(did(OPERATION_REFUND, 1000).remaining, 10);
    assert_int_equal(did(OPERATION_PENALIZE, 3).remaining, 7);
    struct answer a = did(OPERATION_PENALIZE, 1000); /* 7, and as much as the quota into debt */
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.remaining, 0);
    assert_int_equal(a.retry_after_ms, 11 * 6000);
}

static void a_block_ends_by_itself_or_by_unblocking(void **state)
{
    struct answer a = did(OPERATION_BLOCK, 90000);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ms, 90000);
    assert_int_equal(take("api", 1, OPERATION_CHECK).verdict, WEIR_DENY);
    assert_int_equal(did(OPERATION_UNBLOCK, 0).verdict, WEIR_ALLOW);
    assert_int_equal(take("api", 1, OPERATION_CHECK).remaining, 9);
}

static void a_block_for_ever_is_a_never_without_a_time_to_come_again(void **state)
{
    struct answer a = did(OPERATION_BLOCK, ASK_FOREVER);
    assert_int_equal(a.verdict, WEIR_NEVER);
    assert_int_equal(a.reason, WEIR_REASON_BLOCKED);
    assert_int_equal(a.retry_after_ms, -1);
    assert_int_equal(take("api", 1, OPERATION_CHECK).verdict, WEIR_NEVER);
    assert_int_equal(did(OPERATION_BLOCK, UINT64_MAX / 2).verdict, WEIR_NEVER); /* no overflow */
    assert_int_equal(did(OPERATION_UNBLOCK, 0).verdict, WEIR_ALLOW);
}

static void a_reset_forgets_the_key_and_leaves_its_block(void **state)
{
    (void)take("api", 10, OPERATION_CHECK);
    assert_int_equal(did(OPERATION_RESET, 0).remaining, 10);
    (void)take("api", 10, OPERATION_CHECK);
    (void)did(OPERATION_BLOCK, 1000);
    assert_int_equal(did(OPERATION_RESET, 0).retry_after_ms, 1000);
    assert_int_equal(did(OPERATION_UNBLOCK, 0).remaining, 10);
}

static void looking_tells_the_block_and_changes_nothing(void **state)
{
    struct answer a = did(OPERATION_INSPECT, 0);
    assert_int_equal(a.blocked_ms, 0);
    assert_int_equal(a.remaining, 10);
    (void)did(OPERATION_PENALIZE, 15);
    (void)did(OPERATION_BLOCK, 5);
    a = did(OPERATION_INSPECT, 0);
    assert_int_equal(a.blocked_ms, 5); /* the wait for the debt is longer, and another matter */
    assert_int_equal(a.retry_after_ms, 36000);
    assert_int_equal(did_at(OPERATION_INSPECT, 0, NOW + 1).blocked_ms, 5); /* rounded up */
    a = did_at(OPERATION_INSPECT, 0, NOW + 5 * WEIR_MILLISECOND);
    assert_int_equal(a.blocked_ms, 0);
    (void)did(OPERATION_BLOCK, ASK_FOREVER);
    assert_int_equal(did(OPERATION_INSPECT, 0).blocked_ms, -1);
}

static void a_shadow_limit_answers_that_it_would_have_denied(void **state)
{
    struct ask ask = ask_of("quiet");
    struct weir_error error = {0};
    struct answer a;
    ask.number[ASK_FOR] = 1000;
    assert_int_equal(run_at(OPERATION_BLOCK, &ask, &unix_peer, NOW, &a, &error), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.flags, ANSWER_SHADOW);
}

static void a_tier_has_keys_of_its_own(void **state)
{
    struct ask ask = ask_of("tiered");
    struct weir_error error = {0};
    struct answer a;
    ask.text[ASK_TIER] = TEXT("pro");
    ask.number[ASK_UNITS] = 5;
    assert_int_equal(run_at(OPERATION_PENALIZE, &ask, &unix_peer, NOW, &a, &error), 0);
    assert_int_equal(a.remaining, 95);
    assert_int_equal(take("tiered", 1, OPERATION_PEEK).remaining, 10);
}

static void what_cannot_be_done_says_why_and_changes_nothing(void **state)
{
    struct ask nowhere = ask_of("nowhere");
    struct ask pair = ask_of("pair");
    struct answer a;
    struct weir_error error = {0};
    assert_int_equal(run_at(OPERATION_RESET, &nowhere, &unix_peer, NOW, &a, &error), WEIR_ENOLIMIT);
    assert_string_equal(error.text, "no limit named 'nowhere'");
    assert_int_equal(run_at(OPERATION_RESET, &pair, &unix_peer, NOW, &a, &error), WEIR_EKEY);
    assert_int_equal(take("api", 1, OPERATION_PEEK).remaining, 10);
    (void)did(OPERATION_RESET, 0);
    assert_non_null(strstr(logged(), "verb=reset")); /* the first line: nothing before it */
}

static void every_change_is_logged_with_who_and_what(void **state)
{
    struct weir_error error = {0};
    struct answer a;
    struct ask ask = ask_of("pair");
    ask.parts[0] = (struct weir_text){"acme", 4};
    ask.parts[ask.parts_count++] = (struct weir_text){"al\nice", 6};
    ask.number[ASK_FOR] = 1500;
    (void)did(OPERATION_PENALIZE, 3);
    const char *line = logged();
    assert_non_null(strstr(line, " audit key changed verb=penalize address=192.0.2.7 role=admin "
                                 "limit=api key=alice units=3"));
    assert_int_equal(run_at(OPERATION_BLOCK, &ask, &unix_peer, NOW, &a, &error), 0);
    line = logged();
    assert_non_null(strstr(line, "verb=block address=unix role=admin limit=pair key="));
    assert_non_null(strstr(line, " for_ms=1500"));
    ask.number[ASK_FOR] = ASK_FOREVER;
    assert_int_equal(run_at(OPERATION_BLOCK, &ask, &unix_peer, NOW, &a, &error), 0);
    assert_non_null(strstr(logged(), " for_ms=forever"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(units_are_given_back_and_taken_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_block_ends_by_itself_or_by_unblocking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_block_for_ever_is_a_never_without_a_time_to_come_again,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reset_forgets_the_key_and_leaves_its_block, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(looking_tells_the_block_and_changes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_shadow_limit_answers_that_it_would_have_denied, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_operation_runs_without_the_role_that_it_needs, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_tier_has_keys_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_done_says_why_and_changes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_change_is_logged_with_who_and_what, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
