/* Tests the answer of the limit that clients may be told, for questions in which some are hidden:
 * remote_question.shown of common/remote.h. */
#include "unit/shared/store_story.h"

static struct weir_answer shown;

static int ask_shown(const struct remote_part *parts, size_t n, uint64_t now_ns)
{
    struct remote_question q = {
        .verb = REMOTE_CHECK, .parts = parts, .n = n, .now_ns = now_ns, .shown = &shown};
    memset(&shown, 0, sizeof shown);
    t.answers = 0;
    return ask_with(q, now_ns, hear, NULL);
}

static struct remote_part hidden(struct store_limit *l, const char *key)
{
    struct remote_part p = part(l, key, 1);
    p.hidden = true;
    return p;
}

/* Replies by limit `bound`, and with the numbers of limit `told` after it. */
static void reply_told(int verdict, int64_t bound, int64_t remaining, int64_t retry_us,
                       int64_t told)
{
    struct store_reply r = fake_reply(verdict, 0, verdict == WEIR_DENY ? 900000 : 0, bound);
    const int64_t more[] = {verdict, 0, remaining, retry_us, 50000, told};
    memcpy(r.integers + r.n, more, sizeof more);
    r.n += sizeof more / sizeof more[0];
    fake_end(0, CLIENT_REPLIED, &r, NOW);
}

static void the_store_says_what_clients_are_told_when_a_hidden_limit_binds(void **state)
{
    struct remote_part parts[] = {hidden(limit("all", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "all"),
                                  part(limit("a", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
                                  part(limit("b", 50, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1)};
    assert_int_equal(ask_shown(parts, 3, NOW), REMOTE_PENDING);
    assert_non_null(strstr(fake.calls[0].arguments, " 1 50 50 20000 0 1 0 0 0 0 0 1 1 "));
    reply_told(WEIR_ALLOW, 0, 7, 0, 2);
    assert_int_equal(t.answer.answer.limit, 0);
    assert_int_equal(shown.limit, 2);
    assert_int_equal(shown.verdict, WEIR_ALLOW);
    assert_int_equal(shown.quota, 50);
    assert_int_equal(shown.remaining, 7);
    assert_int_equal(shown.reset_after_ns, 50 * MS);
}

static void the_limit_that_binds_is_told_if_it_is_not_hidden(void **state)
{
    struct remote_part parts[] = {hidden(limit("all", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "all"),
                                  part(limit("a", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1)};
    assert_int_equal(ask_shown(parts, 2, NOW), REMOTE_PENDING);
    reply(0, WEIR_ALLOW, 4, 0, 1);
    assert_int_equal(shown.limit, 1);
    assert_int_equal(shown.remaining, 4);
}

static void a_call_whose_limits_are_all_exposed_or_all_hidden_says_nothing_more(void **state)
{
    struct remote_part parts[] = {part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
                                  part(limit("b", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1)};
    for (unsigned i = 0; i < 2; i++) {
        parts[0].hidden = i > 0;
        parts[1].hidden = i > 0;
        assert_int_equal(ask_shown(parts, 2, NOW), REMOTE_PENDING);
        assert_string_equal(fake.calls[0].arguments,
                            "2 weir:1:a:t:{ralice} weir:1:b:t:{ralice} check "
                            "1 10 10 100000 0 1 0 1 10 10 100000 0 1 0 ");
        reply(0, WEIR_ALLOW, 4, 0, 1);
        assert_int_equal(shown.verdict, i == 0 ? WEIR_ALLOW : 0);
    }
}

static void in_a_cluster_the_exposed_limit_that_binds_of_all_slots_is_told(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
        hidden(limit("b", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "tenant"),
        part(limit("c", 30, REMOTE_EXACT, REMOTE_FAIL_OPEN), "another", 1)};
    assert_int_equal(ask_shown(parts, 3, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 3);
    reply(0, WEIR_ALLOW, 9, 0, 0);
    reply(0, WEIR_ALLOW, 1, 0, 0);
    reply(0, WEIR_ALLOW, 3, 0, 0);
    assert_int_equal(t.answer.answer.limit, 1);
    assert_int_equal(shown.limit, 2);
    assert_int_equal(shown.remaining, 3);
}

static void leased_and_synced_limits_are_told_as_well(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 1000, REMOTE_LEASED, REMOTE_FAIL_OPEN), "alice", 1),
        part(limit("b", 1000, REMOTE_SYNCED, REMOTE_FAIL_OPEN), "alice", 1),
        hidden(limit("c", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "all")};
    fake.lease_answer.remaining = 90;
    fake.sync_answer.remaining = 80;
    assert_int_equal(ask_shown(parts, 3, NOW), REMOTE_PENDING);
    reply(0, WEIR_ALLOW, 3, 0, 0);
    assert_int_equal(t.answer.answer.limit, 2);
    assert_int_equal(shown.limit, 1);
    assert_int_equal(shown.remaining, 80);
}

static void a_remembered_denial_tells_what_the_store_has_told(void **state)
{
    struct remote_part parts[] = {hidden(limit("all", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "all"),
                                  part(limit("a", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1)};
    assert_int_equal(ask_shown(parts, 2, NOW), REMOTE_PENDING);
    reply_told(WEIR_DENY, 0, 0, 400000, 1);
    assert_int_equal(shown.limit, 1);
    assert_int_equal(shown.retry_after_ns, 400 * MS);
    assert_int_equal(ask_shown(parts, 2, NOW + 100 * MS), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.verdict, WEIR_DENY);
    assert_int_equal(t.answer.answer.limit, 0);
    assert_int_equal(shown.limit, 1);
    assert_int_equal(shown.verdict, WEIR_DENY);
    assert_int_equal(shown.retry_after_ns, 300 * MS);
    assert_int_equal(t.limits[0]->counts.remembered, 1);
    assert_int_equal(t.limits[1]->counts.remembered, 0); /* it has not answered the question */
    assert_int_equal(ask_shown(parts, 2, NOW + 500 * MS), REMOTE_ANSWERED);
    assert_int_equal(shown.verdict, 0); /* the exposed limit would allow it by now */
}

static void without_the_store_the_policy_of_each_limit_is_told(void **state)
{
    struct remote_part parts[] = {hidden(limit("all", 10, REMOTE_EXACT, REMOTE_FAIL_CLOSED), "all"),
                                  part(limit("a", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1)};
    fake.refuse = WEIR_EIO;
    assert_int_equal(ask_shown(parts, 2, NOW), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.limit, 0);
    assert_int_equal(shown.limit, 1);
    assert_int_equal(shown.verdict, WEIR_ALLOW);
    assert_int_equal(shown.flags, REMOTE_DEGRADED);
}

static void a_reply_with_impossible_numbers_is_no_answer(void **state)
{
    struct remote_part parts[] = {hidden(limit("all", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "all"),
                                  part(limit("a", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1)};
    assert_int_equal(ask_shown(parts, 2, NOW), REMOTE_PENDING);
    reply_told(WEIR_ALLOW, 0, 7, 0, 2); /* there are limits 0 and 1 */
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_store_says_what_clients_are_told_when_a_hidden_limit_binds),
        TEST(the_limit_that_binds_is_told_if_it_is_not_hidden),
        TEST(a_call_whose_limits_are_all_exposed_or_all_hidden_says_nothing_more),
        IN_CLUSTER(in_a_cluster_the_exposed_limit_that_binds_of_all_slots_is_told),
        TEST(leased_and_synced_limits_are_told_as_well),
        TEST(a_remembered_denial_tells_what_the_store_has_told),
        TEST(without_the_store_the_policy_of_each_limit_is_told),
        TEST(a_reply_with_impossible_numbers_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
