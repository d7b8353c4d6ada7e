/* Tests questions about a dry key that wait for another question's call in flight:
 * shared/leased/lease_wait.h. */
#include "unit/shared/store_story.h"

/* Questions by number, and the order in which they are answered. */
static struct {
    unsigned order[8];
    unsigned count;
    struct weir_answer answer[8];
    struct store_limit *again; /* the first callback asks again about this limit */
} row;

static void hear_in_row(void *arg, int error, const struct remote_answer *answer)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    assert_int_equal(error, 0);
    row.answer[i] = answer->answer;
    row.order[row.count++] = i;
    if (row.again != NULL) {
        struct remote_part p = part(row.again, "alice", 1);
        struct remote_question q = {.verb = REMOTE_CHECK, .parts = &p, .n = 1};
        row.again = NULL;
        fake.lease_says = LEASE_WAIT; /* nothing is left for the new question */
        assert_int_equal(ask_with(q, NOW, hear_in_row, (void *)(uintptr_t)7), REMOTE_PENDING);
    }
}

static void ask_in_row(unsigned i, const struct remote_part *parts, size_t n)
{
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = parts, .n = n};
    assert_int_equal(ask_with(q, NOW, hear_in_row, (void *)(uintptr_t)i), REMOTE_PENDING);
}

/* Question 0 makes the call, and the other `n` - 1 wait for it. */
static struct store_limit *have_row(unsigned n, int on_failure)
{
    memset(&row, 0, sizeof row);
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, on_failure);
    struct remote_part p = part(l, "alice", 1);
    fake.lease_id = 5;
    for (unsigned i = 0; i < n; i++) {
        fake.lease_says = i == 0 ? LEASE_SEND : LEASE_WAIT;
        ask_in_row(i, &p, 1);
    }
    assert_int_equal(fake.count, 1);
    return l;
}

static void who_waits_is_decided_before_anybody_hears_and_hears_in_order(void **state)
{
    row.again = have_row(4, REMOTE_FAIL_CLOSED);
    fake.lease_says = LEASE_ANSWERED;
    fake.lease_answer.remaining = 42;
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(row.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(row.order[i], i);
        assert_int_equal(row.answer[i].remaining, 42);
        assert_int_equal(row.answer[i].flags, 0);
    }
    assert_int_equal(fake.count, 1); /* for the question asked in between: nothing to wait for */
    assert_int_equal(t.limits[0]->counts.allowed, 4);
}

static void who_waits_fails_with_the_call_by_its_policy(void **state)
{
    struct store_limit *l = have_row(4, REMOTE_FAIL_OPEN);
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW);
    assert_int_equal(row.count, 4);
    assert_int_equal(row.answer[3].flags, REMOTE_DEGRADED);
    assert_int_equal(l->counts.degraded[REMOTE_FAIL_OPEN], 4);
    assert_int_equal(fake.leases_lost, 1); /* no other call was ever in flight */
}

static void who_still_waits_at_its_deadline_is_answered_by_its_policy(void **state)
{
    struct store_limit *l = have_row(2, REMOTE_FAIL_CLOSED);
    assert_int_equal(store_tick(t.store, NOW), NOW + 5 * MS);
    unsigned before = fake.count;
    (void)store_tick(t.store, NOW + 5 * MS);
    assert_int_equal(fake.count, before);
    assert_int_equal(row.count, 1);
    assert_int_equal(row.order[0], 1);
    assert_int_equal(row.answer[1].flags, REMOTE_DEGRADED | REMOTE_CLOSED);
    assert_int_equal(l->counts.degraded[REMOTE_FAIL_CLOSED], 1);
}

static void of_several_limits_each_waits_for_its_own_and_a_denial_gives_back(void **state)
{
    struct store_limit *l = have_row(1, REMOTE_FAIL_CLOSED);
    struct store_limit *e = limit("exact", 10, REMOTE_EXACT, REMOTE_FAIL_CLOSED);
    struct remote_part both[] = {part(l, "alice", 1), part(e, "alice", 1)};
    fake.lease_says = LEASE_WAIT;
    ask_in_row(1, both, 2);
    assert_int_equal(fake.count, 2);
    fake.lease_says = LEASE_ANSWERED;
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(row.count, 1);
    reply(0, WEIR_DENY, 0, 1000, 0);
    assert_int_equal(row.count, 2);
    assert_int_equal(row.answer[1].verdict, WEIR_DENY);
    assert_int_equal(row.answer[1].limit, 1);
    assert_int_equal(fake.lease_refunds, 1);
}

static void a_call_that_another_thread_has_left_is_sent_for_who_waits_for_it(void **state)
{
    memset(&row, 0, sizeof row);
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, REMOTE_FAIL_CLOSED);
    struct remote_part p = part(l, "alice", 1);
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = &p, .n = 1};
    fake.lease_id = 5;
    fake.lease_says = LEASE_ANSWERED | LEASE_SEND;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_ANSWERED);
    fake.lease_says = LEASE_WAIT;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_PENDING);
    assert_int_equal(fake.leases_lost, 0);
    ask_in_row(0, &p, 1);
    assert_int_equal(fake.count, 1);
    fake.lease_says = LEASE_ANSWERED;
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(row.count, 1);
}

static void closing_fails_those_who_wait(void **state)
{
    (void)have_row(4, REMOTE_FAIL_CLOSED);
    store_destroy(t.store, NOW);
    t.store = NULL;
    assert_int_equal(row.count, 4);
    assert_int_equal(row.answer[3].flags, REMOTE_DEGRADED | REMOTE_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_waits_is_decided_before_anybody_hears_and_hears_in_order),
        TEST(who_waits_fails_with_the_call_by_its_policy),
        TEST(who_still_waits_at_its_deadline_is_answered_by_its_policy),
        TEST(of_several_limits_each_waits_for_its_own_and_a_denial_gives_back),
        TEST(a_call_that_another_thread_has_left_is_sent_for_who_waits_for_it),
        TEST(closing_fails_those_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
