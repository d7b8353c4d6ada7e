/* Tests questions that wait for a call in flight (lease_wait.h). The test controls calls and
 * replies. */
#include <stdlib.h>

#include "lease_replies.h"
#include "shared/leased/lease_wait.h"

#define DEADLINE (10 * MS)
#define MOST 64
#define BOB TEXT("bob")

static struct lease_waits waits;
static struct lease_flight *out[MOST]; /* in the order in which they were sent */
static unsigned sent;
static uint64_t deadline;
static unsigned refused; /* how many of the next calls cannot be sent */

/* A question, and how it ended. */
static struct asked {
    struct remote_part part;
    struct lease_question lease;
    struct weir_answer answer;
    unsigned turn; /* position at which it ended among the others; 0: not yet */
} asked[MOST];
static unsigned asked_count;
static unsigned turns;

static int send_it(void *arg, struct lease_question *q, const struct lease_call *c, uint64_t at)
{
    if (refused > 0) {
        refused--;
        lease_unsent(keys, c, at);
        return WEIR_EIO;
    }
    assert_true(sent < MOST);
    out[sent] = calloc(1, sizeof *out[sent]);
    assert_non_null(out[sent]);
    lease_flight_begin(&waits, out[sent++], q, c);
    return 0;
}

static void hear(struct list *ended)
{
    struct lease_question *q;
    while ((q = lease_question_next(ended)) != NULL) {
        LIST_OF(q, struct asked, lease)->turn = ++turns;
    }
}

/* Ends the i-th call, with a reply or without. */
static void land(unsigned i, const struct store_reply *r)
{
    struct lease_flight *f = out[i];
    struct asked *own = f->question != NULL ? LIST_OF(f->question, struct asked, lease) : NULL;
    struct list ended;
    list_init(&ended);
    if (r != NULL) {
        assert_int_equal(lease_reply(keys, &f->call, r, now, own != NULL ? &own->answer : NULL), 0);
    } else {
        lease_lost(keys, &f->call, now);
    }
    out[i] = NULL;
    lease_flight_end(&waits, f, r != NULL, now, &ended);
    free(f);
    if (own != NULL) {
        own->turn = ++turns;
        own->lease.state = r != NULL ? LEASE_DECIDED : LEASE_FAILED;
    }
    hear(&ended);
}

static void land_with(unsigned i, uint64_t granted, uint64_t remaining)
{
    const struct lease_call *c = &out[i]->call;
    bool holds = granted + c->keep != 0;
    struct store_reply r = reply_of(WEIR_ALLOW, remaining, 0, granted, holds ? MARK + i : 0,
                                    holds ? LIFE_US : 0, c->lease != 0);
    land(i, &r);
}

static void land_denied(unsigned i, uint64_t retry_us)
{
    struct store_reply r = reply_of(WEIR_DENY, 0, retry_us, 0, 0, 0, out[i]->call.lease != 0);
    land(i, &r);
}

static void tick(void)
{
    struct list ended;
    list_init(&ended);
    lease_waits_tick(&waits, now, &ended);
    hear(&ended);
}

static struct asked *put_of(struct weir_text key, uint64_t cost)
{
    struct asked *a = &asked[asked_count++];
    assert_true(asked_count <= MOST);
    *a = (struct asked){0};
    a->part = *PART(&limit, key, cost);
    lease_question_init(&a->lease, &a->part, now + deadline, &a->answer);
    unsigned said = lease_ask(keys, &a->part, LEASE_ASK, now, &a->answer, &call);
    if ((said & LEASE_ANSWERED) != 0) {
        a->turn = ++turns;
        a->lease.state = LEASE_DECIDED;
        if ((said & LEASE_SEND) != 0) {
            (void)send_it(NULL, NULL, &call, now);
        }
    } else if (lease_waits_take(&waits, &a->lease, said, &call, now) != 0) {
        a->turn = ++turns;
        a->lease.state = LEASE_FAILED;
    }
    return a;
}

static struct asked *put(uint64_t cost)
{
    return put_of(ALICE, cost);
}

static bool is_allowed(const struct asked *a)
{
    return a->turn != 0 && a->lease.state == LEASE_DECIDED && a->answer.verdict == WEIR_ALLOW;
}

static bool is_denied(const struct asked *a)
{
    return a->turn != 0 && a->lease.state == LEASE_DECIDED && a->answer.verdict == WEIR_DENY;
}

/* Makes the key one that is in demand and has nothing left. No call is in flight. */
static void be_dry(void)
{
    (void)put(1);
    land_with(0, 0, 500);
    now += MS;
    (void)put(1);
    assert_int_equal(sent, 2);
    land_with(1, 1, 500);
    (void)put(1);
    while (sent > 2 && out[sent - 1] != NULL) { /* renewals */
        land_with(sent - 1, 0, 500);
    }
    sent = 0;
    turns = 0;
    asked_count = 0;
    waits.took_ns = 1; /* calls are quick */
}

static int begin(void **state)
{
    (void)setup(state);
    sent = 0;
    deadline = DEADLINE;
    refused = 0;
    turns = 0;
    asked_count = 0;
    lease_waits_init(&waits, keys, send_it, NULL);
    be_dry();
    return 0;
}

/* Loses the calls in flight, and requires that no question waits any more. */
static int end(void **state)
{
    for (unsigned i = 0; i < sent; i++) {
        if (out[i] != NULL) {
            land(i, NULL);
        }
    }
    assert_int_equal(waits.count, 0);
    return teardown(state);
}

static void nobody_waits_before_it_is_known_how_long_calls_take(void **state)
{
    waits.took_ns = 0;
    (void)put(1);
    (void)put(1);
    assert_int_equal(sent, 2);
    assert_int_equal(waits.count, 0);
    land_with(0, 5, 500);
    assert_true(waits.took_ns > 0);
}

/* ---- what waiting achieves ---- */

static void questions_of_a_dry_key_make_one_call_and_share_what_it_brings(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        (void)put(1);
    }
    assert_int_equal(sent, 1);
    assert_int_equal(waits.count, 19);
    now += MS;
    land_with(0, 30, 500);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(is_allowed(&asked[i]));
        assert_int_equal(asked[i].answer.granted, i == 0 ? 0 : 1); /* 0 in the first reply */
        assert_true(i < 1 || asked[i].turn > asked[i - 1].turn);
    }
    assert_int_equal(asked[19].answer.remaining, 500 + 11);
    assert_int_equal(lease_waits_due(&waits), UINT64_MAX);
}

static void who_finds_nothing_left_makes_the_next_call_and_the_rest_wait_for_that(void **state)
{
    for (unsigned i = 0; i < 10; i++) {
        (void)put(1);
    }
    land_with(0, 3, 0 + 500);
    assert_true(is_allowed(&asked[3]) && asked[4].turn == 0);
    assert_int_equal(sent, 2); /* the renewal at half: the rest wait for it */
    assert_int_equal(waits.count, 6);
    assert_null(out[1]->question);
    land_with(1, 0, 500);
    assert_int_equal(sent, 3); /* it brought nothing: only the next in the row asks */
    assert_ptr_equal(out[2]->question, &asked[4].lease);
    assert_int_equal(waits.count, 5);
    land_with(2, 5, 500);
    assert_true(is_allowed(&asked[9]));
    assert_int_equal(waits.count, 0);
}

static void what_the_store_denies_is_denied_to_all_who_cost_as_much(void **state)
{
    (void)put(5);
    (void)put(5);
    (void)put(9);
    struct asked *less = put(4);
    land_denied(0, 3000);
    assert_true(is_denied(&asked[1]) && is_denied(&asked[2]));
    assert_in_range(asked[1].answer.retry_after_ns, 3 * MS,
                    20 * MS); /* or until the store is asked again */
    assert_int_equal(asked[1].answer.remaining, 0);
    assert_int_equal(less->turn, 0);
    assert_int_equal(sent, 2);
    assert_ptr_equal(out[1]->question, &less->lease);
}

static void a_store_that_has_no_more_has_none_for_those_who_wait(void **state)
{
    for (unsigned i = 0; i < 8; i++) {
        (void)put(1);
    }
    land_with(0, 4, 0);
    assert_true(is_allowed(&asked[4]) && is_denied(&asked[5]) && is_denied(&asked[7]));
    assert_int_equal(sent, 1);
}

static void other_keys_do_not_wait(void **state)
{
    (void)put(1);
    (void)put_of(BOB, 1);
    (void)put_of(BOB, 1);
    assert_int_equal(sent, 3); /* bob's first call wants no lease: one question is not a demand */
    assert_int_equal(waits.count, 0);
    (void)put_of(BOB, 1);
    assert_int_equal(waits.count, 1);
    land_with(0, 9, 500);
    assert_int_equal(asked[3].turn, 0);
    land_with(2, 9, 500);
    assert_true(is_allowed(&asked[3]));
}

/* ---- when questions do not wait ---- */

static void a_call_that_was_of_no_use_is_the_last_that_is_waited_for(void **state)
{
    for (unsigned i = 0; i < 6; i++) {
        (void)put(10);
    }
    assert_int_equal(sent, 1);
    land_with(0, 7, 500); /* less than one question needs */
    assert_int_equal(sent, 6);
    assert_int_equal(waits.count, 0);
}

static void nobody_waits_for_what_brings_nothing(void **state)
{
    (void)put(1);
    (void)put(1001); /* more than the quota: NEVER */
    assert_int_equal(sent, 2);
    lease_forget(keys, PART(&limit, ALICE, 1)); /* what the call brings is dropped */
    (void)put(1);
    assert_int_equal(sent, 3);
    node_keys_stop(keys);
    (void)put(1);
    assert_int_equal(sent, 4);
    assert_int_equal(waits.count, 0);
}

static void what_is_forgotten_while_they_wait_is_not_spent(void **state)
{
    (void)put(1);
    (void)put(1);
    (void)put(1);
    lease_forget(keys, PART(&limit, ALICE, 1));
    land_with(0, 30, 500);
    assert_int_equal(asked[1].turn, 0);
    assert_int_equal(asked[2].turn, 0);
    assert_int_equal(out[1]->call.back, 30);
}

static void a_node_that_ends_serves_those_who_wait_of_what_comes(void **state)
{
    (void)put(1);
    (void)put(1);
    node_keys_stop(keys);
    land_with(0, 30, 500);
    assert_true(is_allowed(&asked[1]));
    assert_true(lease_next(keys, now, &call));
    assert_int_equal(call.back, 29);
    lease_lost(keys, &call, now);
}

/* ---- time ---- */

static void who_still_waits_at_its_deadline_has_failed_and_is_never_charged(void **state)
{
    (void)put(1);
    now += MS;
    struct asked *a = put(1);
    assert_int_equal(lease_waits_due(&waits), now + DEADLINE);
    now += DEADLINE - 1;
    tick();
    assert_int_equal(a->turn, 0);
    now++;
    tick();
    assert_int_equal(a->lease.state, LEASE_FAILED);
    assert_int_equal(a->turn, 1);
    assert_int_equal(sent, 1);
    land_with(0, 30, 500); /* too late */
    assert_int_equal(a->turn, 1);
    assert_int_equal(spendable(), 30);
}

static void who_has_waited_has_the_rest_of_its_time_for_its_own_call(void **state)
{
    (void)put(10);
    struct asked *a = put(10);
    uint64_t due = now + DEADLINE;
    now += MS;
    land_with(0, 7, 500);
    assert_ptr_equal(out[1]->question, &a->lease);
    assert_int_equal(a->lease.deadline_ns, due);
    assert_int_equal(lease_waits_due(&waits), UINT64_MAX);
}

static void nobody_waits_where_calls_take_a_third_of_the_time(void **state)
{
    (void)put(1);
    now += DEADLINE / 3 + 1;
    land_with(0, 0, 500);
    (void)put(1);
    (void)put(1);
    assert_int_equal(waits.count, 0);
    assert_int_equal(sent, 3);
}

static void nobody_waits_for_a_call_that_is_late(void **state)
{
    deadline = WEIR_SECOND;
    waits.took_ns = 2 * MS;
    (void)put(1);
    now += 16 * MS - 1;
    (void)put(1);
    assert_int_equal(waits.count, 1);
    now++;
    (void)put(1);
    assert_int_equal(waits.count, 1);
    assert_int_equal(sent, 2);
    deadline = 20 * MS;
    waits.took_ns = MS;
    (void)put_of(BOB, 1);
    (void)put_of(BOB, 1);
    now += 10 * MS - 1; /* half of the next question's time */
    (void)put_of(BOB, 1);
    assert_int_equal(waits.count, 2);
    now++;
    (void)put_of(BOB, 1);
    assert_int_equal(waits.count, 2);
}

/* ---- failures ---- */

static void a_lost_call_is_lost_for_all_who_waited_and_nothing_is_charged(void **state)
{
    for (unsigned i = 0; i < 5; i++) {
        (void)put(1);
    }
    land(0, NULL);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(asked[i].turn, i + 1);
        assert_int_equal(asked[i].lease.state, LEASE_FAILED);
    }
    assert_int_equal(sent, 1);
    assert_int_equal(waits.count, 0);
}

static void who_cannot_make_the_next_call_has_failed_and_the_next_one_tries(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        (void)put(10);
    }
    refused = 1;
    land_with(0, 7, 500);
    assert_int_equal(asked[1].lease.state, LEASE_FAILED);
    assert_int_not_equal(asked[1].turn, 0);
    assert_int_equal(sent, 3);
}

static void there_is_a_bound_to_those_who_wait(void **state)
{
    (void)put(1);
    waits.count = LEASE_WAITING_MOST;
    (void)put(1);
    assert_int_equal(sent, 2);
    waits.count = 0;
    assert_int_equal(lease_waits_due(&waits), UINT64_MAX);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(nobody_waits_before_it_is_known_how_long_calls_take),
        TEST(questions_of_a_dry_key_make_one_call_and_share_what_it_brings),
        TEST(who_finds_nothing_left_makes_the_next_call_and_the_rest_wait_for_that),
        TEST(what_the_store_denies_is_denied_to_all_who_cost_as_much),
        TEST(a_store_that_has_no_more_has_none_for_those_who_wait),
        TEST(other_keys_do_not_wait),
        TEST(a_call_that_was_of_no_use_is_the_last_that_is_waited_for),
        TEST(nobody_waits_for_what_brings_nothing),
        TEST(what_is_forgotten_while_they_wait_is_not_spent),
        TEST(a_node_that_ends_serves_those_who_wait_of_what_comes),
        TEST(who_still_waits_at_its_deadline_has_failed_and_is_never_charged),
        TEST(who_has_waited_has_the_rest_of_its_time_for_its_own_call),
        TEST(nobody_waits_where_calls_take_a_third_of_the_time),
        TEST(nobody_waits_for_a_call_that_is_late),
        TEST(a_lost_call_is_lost_for_all_who_waited_and_nothing_is_charged),
        TEST(who_cannot_make_the_next_call_has_failed_and_the_next_one_tries),
        TEST(there_is_a_bound_to_those_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
