/* Tests rules whose limits a fleet decides: both libraries together, with a real Redis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <semaphore.h>

#include <weir_rules.h>

#include "support/fleet/fleet_open.h"
#include "support/store/redis_alone.h"

static const char text[] =
    "limits:\n"
    "  - {name: here, key: [user], rate: 100/day, consistency: local}\n"
    "  - {name: everywhere, key: [user], rate: 10/day, consistency: exact, deny_cache: 1s}\n"
    "  - {name: watched, key: [user], rate: 4/day, consistency: exact, shadow: true}\n";

struct inbox {
    sem_t came;
    unsigned answered, allowed, denied, errors;
    char limit[64];    /* the limit of the last answer */
    uint64_t delay_ns; /* its delay */
    struct weir_rules_shown shown;
};

static void note(void *arg, int error, const struct weir_rules_answer *answer)
{
    struct inbox *in = arg;
    in->answered++;
    in->errors += error != 0;
    if (error == 0) {
        in->allowed += answer->answer.verdict == WEIR_ALLOW;
        in->denied += answer->answer.verdict == WEIR_DENY;
        (void)snprintf(in->limit, sizeof in->limit, "%s", answer->limit);
        in->delay_ns = answer->answer.delay_ns;
        in->shown = answer->shown;
    }
    (void)sem_post(&in->came);
}

static struct weir_rules *open_text(struct weir_fleet *fleet, const char *yaml)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules;
    struct weir_error error;
    o.fleet = fleet;
    if (weir_rules_open_text(&rules, "text", yaml, strlen(yaml), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static struct weir_rules *open_rules(struct weir_fleet *fleet)
{
    return open_text(fleet, text);
}

static void ask_with(struct weir_rules *rules, struct weir_rules_question q, struct inbox *in)
{
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("user", "alice")};
    q.attributes = with;
    q.attributes_count = 1;
    struct weir_rules_answer a;
    struct weir_error error;
    uint64_t now_ns;
    assert_int_equal(weir_rules_now(rules, &now_ns), 0);
    int e = weir_rules_ask_async(rules, NULL, &q, now_ns, &a, note, in, &error);
    if (e == 1) {
        note(in, 0, &a);
    } else {
        assert_int_equal(e, 0);
    }
}

static void ask_waiting(struct weir_rules *rules, uint64_t max_wait_ns, struct inbox *in)
{
    ask_with(rules, (struct weir_rules_question){.max_wait_ns = max_wait_ns}, in);
}

static void ask(struct weir_rules *rules, struct inbox *in)
{
    ask_waiting(rules, 0, in);
}

static void rules_of_two_nodes_share_what_their_fleet_decides(void **state)
{
    struct weir_fleet *fleet[2];
    struct weir_rules *rules[2];
    struct inbox in = {0};
    (void)sem_init(&in.came, 0, 0);
    for (int i = 0; i < 2; i++) {
        fleet[i] = fleet_open_at(world.url, 0, 0);
        rules[i] = open_rules(fleet[i]);
    }
    for (int i = 0; i < 16; i++) {
        ask(rules[i % 2], &in);
        (void)sem_wait(&in.came);
    }
    assert_int_equal(in.errors, 0);
    assert_int_equal(in.allowed, 10);
    assert_int_equal(in.denied, 6);
    assert_string_equal(in.limit, "everywhere");
    for (int i = 0; i < 2; i++) {
        weir_rules_close(rules[i]);
        weir_fleet_close(fleet[i]);
    }
}

/* Both shared limits are asked in one call. The rates are so low that the test's own time does not
 * matter. */
static void a_question_waits_for_the_slowest_of_shared_and_local_limits(void **state)
{
    static const char waiting[] =
        "limits:\n"
        "  - {name: local, key: [user], rate: 2/h, consistency: local}\n"
        "  - {name: slow, key: [user], rate: 1/day, algorithm: leaky_bucket, queue: 9,"
        " consistency: exact}\n"
        "  - {name: window, key: [user], rate: 3/week, algorithm: fixed_window,"
        " consistency: exact}\n";
    struct inbox in = {0};
    (void)sem_init(&in.came, 0, 0);
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_rules *rules = open_text(fleet, waiting);
    for (int i = 0; i < 3; i++) {
        ask_waiting(rules, 36 * WEIR_HOUR, &in);
        (void)sem_wait(&in.came);
        if (i == 1) {
            assert_in_range(in.delay_ns, 23 * WEIR_HOUR, 24 * WEIR_HOUR);
        }
    }
    assert_int_equal(in.errors, 0);
    assert_int_equal(in.allowed, 2);
    assert_int_equal(in.denied, 1);
    assert_string_equal(in.limit, "slow");
    ask_waiting(rules, 72 * WEIR_HOUR, &in); /* the denied one has charged no window */
    (void)sem_wait(&in.came);
    assert_int_equal(in.allowed, 3);
    assert_in_range(in.delay_ns, 47 * WEIR_HOUR, 48 * WEIR_HOUR);
    weir_rules_close(rules);
    weir_fleet_close(fleet);
}

/* A synced limit and an exact one are asked apart from each other. */
static void clients_are_told_an_exposed_limit_whoever_decides_it(void **state)
{
    static const char hidden[] =
        "limits:\n"
        "  - {name: all, key: [], rate: 3/week, consistency: exact}\n"
        "  - {name: own, key: [user], rate: 5/week, consistency: exact}\n"
        "  - {name: seen, key: [user], rate: 9/week, consistency: synced}\n"
        "  - {name: near, key: [user], rate: 7/week, consistency: local}\n";
    struct inbox in = {0};
    (void)sem_init(&in.came, 0, 0);
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 10 * WEIR_SECOND);
    struct weir_rules *rules = open_text(fleet, hidden);
    for (unsigned i = 0; i < 4; i++) {
        ask_with(rules, (struct weir_rules_question){.flags = WEIR_RULES_SHOW}, &in);
        (void)sem_wait(&in.came);
        assert_string_equal(in.limit, "all");
        assert_string_equal(in.shown.limit, i < 3 ? "own" : ""); /* in the end only "all" denies */
        if (i < 3) {
            assert_int_equal(in.shown.quota, 5);
            assert_int_equal(in.shown.remaining, 4 - i);
        }
    }
    assert_int_equal(in.allowed, 3);
    assert_int_equal(in.denied, 1);
    weir_rules_close(rules);
    weir_fleet_close(fleet);
}

/* Their limits live until these questions are answered. */
static void questions_that_are_out_when_rules_and_fleet_close_are_answered(void **state)
{
    enum { N = 50 };
    struct inbox in = {0};
    (void)sem_init(&in.came, 0, 0);
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_rules *rules = open_rules(fleet);
    redis_node_pause(&world.node[0]);
    for (int i = 0; i < N; i++) {
        ask(rules, &in);
    }
    weir_rules_close(rules);
    weir_fleet_close(fleet);
    redis_node_resume(&world.node[0]);
    assert_int_equal(in.answered, N);
    assert_int_equal(in.errors, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_two_nodes_share_what_their_fleet_decides),
        cmocka_unit_test(a_question_waits_for_the_slowest_of_shared_and_local_limits),
        cmocka_unit_test(clients_are_told_an_exposed_limit_whoever_decides_it),
        cmocka_unit_test(questions_that_are_out_when_rules_and_fleet_close_are_answered),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
