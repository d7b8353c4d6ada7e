/* Tests `on_store_failure: local`: what a key has when the store goes, and what it keeps. */
#include <dlfcn.h>

#include "shared/store/stores.h"
#include "unit/shared/store_story.h"

/* Opens a store that counts its nodes. */
static int open_counted(void **state)
{
    return open_with(STORE_ALONE, 0);
}

static void be_nodes(uint64_t n)
{
    t.shared->members.nodes = n;
}

/* The store allows the first call; nothing remains until a second from now. */
static void reply_empty(uint64_t now_ns)
{
    struct store_reply r = fake_reply(WEIR_ALLOW, 0, 0, 0);
    fake_end(0, CLIENT_REPLIED, &r, now_ns);
}

/* Returns how many of 100 questions are allowed now. */
static unsigned allowed_of(struct store_limit *l, uint64_t now_ns)
{
    unsigned n = 0;
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(ask(l, 1, now_ns), REMOTE_ANSWERED);
        assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
        n += t.answer.answer.verdict == WEIR_ALLOW;
    }
    return n;
}

static void a_stranger_has_this_nodes_part(void **state)
{
    static const struct {
        uint64_t nodes;
        unsigned part;
    } rows[] = {{1, 10}, {3, 3}, {10, 1}, {100, 1}};
    static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_LEAKY_BUCKET, WEIR_FIXED_WINDOW,
                                     WEIR_SLIDING_WINDOW};
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < 4; k++) {
            (void)close_store(NULL);
            (void)open_counted(NULL);
            be_nodes(rows[i].nodes);
            struct store_limit *l =
                limit_of(algorithms[k], "api", 10, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
            fake.refuse = WEIR_EIO;
            assert_int_equal(allowed_of(l, NOW), rows[i].part);
        }
    }
}

static void what_was_spent_stays_spent_when_the_number_of_nodes_changes(void **state)
{
    struct store_limit *l = limit("api", 12, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    fake.refuse = WEIR_EIO;
    be_nodes(3);
    assert_int_equal(allowed_of(l, NOW), 4);
    be_nodes(2);
    assert_int_equal(allowed_of(l, NOW), 2); /* 6, less the 4 */
    be_nodes(4);
    assert_int_equal(allowed_of(l, NOW), 0);
    be_nodes(1);
    assert_int_equal(allowed_of(l, NOW), 9); /* its part was 3 of 12, and spent */
}

/* Called once, when a fallback is about to take its lock: acts as another thread. */
static void (*meanwhile)(void);

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    union {
        void *found;
        int (*lock)(pthread_rwlock_t *lock);
    } real = {dlsym(RTLD_NEXT, "pthread_rwlock_rdlock")};
    void (*other)(void) = meanwhile;
    meanwhile = NULL;
    if (other != NULL) {
        other();
    }
    return real.lock(lock);
}

/* Another thread hears of a second node, and asks for another key. */
static void hear_of_a_node(void)
{
    struct remote_part part = {.limit = t.limits[0], .key = TEXT("another"), .cost = 1};
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = &part, .n = 1};
    struct remote_answer answer;
    be_nodes(2);
    assert_int_equal(store_ask_failed(&q, NOW, &answer), REMOTE_ANSWERED);
}

static void a_thread_that_was_late_to_hear_of_a_node_forgets_nothing(void **state)
{
    struct store_limit *l = limit("api", 12, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    fake.refuse = WEIR_EIO;
    be_nodes(1);
    assert_int_equal(allowed_of(l, NOW), 12);
    meanwhile = hear_of_a_node;
    assert_int_equal(allowed_of(l, NOW), 0);
    assert_null(meanwhile);
}

static void what_was_spent_stays_spent_in_the_next_outage(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    be_nodes(2);
    fake.refuse = WEIR_EIO;
    assert_int_equal(allowed_of(l, NOW), 5);
    assert_int_equal(allowed_of(l, NOW + WEIR_SECOND), 5); /* 5 a second */
    assert_int_equal(allowed_of(l, NOW + 3 * WEIR_SECOND), 5);
    assert_int_equal(allowed_of(l, NOW + 3200 * MS), 1);
}

/* The key is used up, and the store stalls for 15 ms every 0.5 s. */
static void short_stalls_add_what_refills_while_they_last(void **state)
{
    struct store_limit *l = limit("api", 1000, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    unsigned allowed = 0;
    be_nodes(1);
    for (unsigned stall = 0; stall < 20; stall++) {
        uint64_t now_ns = NOW + stall * 500 * MS;
        fake.refuse = 0;
        assert_int_equal(ask(l, 1, now_ns), REMOTE_PENDING);
        reply_empty(now_ns);
        fake.refuse = WEIR_EIO;
        for (unsigned i = 1; i <= 15; i++) {
            allowed += allowed_of(l, now_ns + i * MS);
        }
    }
    assert_in_range(allowed, 20 * 14, 20 * 15); /* 1 in a millisecond */
}

/* The store's number replaces an older one, also if it comes after the deadline. */
static void a_late_reply_says_what_remains(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    be_nodes(1);
    fake.may_be_late = true;
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW + 5 * MS);
    assert_int_equal(t.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(t.answer.answer.remaining, 9);
    assert_non_null(fake.late);
    struct store_reply r = fake_reply(WEIR_ALLOW, 3, 0, 0);
    fake.late->fn(fake.late, &r, NOW + 15 * MS);
    fake.refuse = WEIR_EIO;
    assert_int_equal(allowed_of(l, NOW + 15 * MS), 3);
    fake.refuse = 0;
    assert_int_equal(ask(l, 1, NOW + 20 * MS), REMOTE_PENDING);
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW + 25 * MS);
    fake.late->fn(fake.late, NULL, NOW + 30 * MS); /* the connection has ended */
}

/* Of a window nothing comes back before its end. */
static void a_window_that_is_used_up_stays_so_until_its_end(void **state)
{
    struct store_limit *l = limit_of(WEIR_FIXED_WINDOW, "api", 10, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    be_nodes(2);
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    reply_empty(NOW);
    fake.refuse = WEIR_EIO;
    assert_int_equal(allowed_of(l, NOW + 300 * MS), 0);
    assert_int_equal(allowed_of(l, NOW + 1001 * MS), 5);
}

int main(void)
{
#define COUNTED(name) cmocka_unit_test_setup_teardown(name, open_counted, close_store)
    const struct CMUnitTest tests[] = {
        COUNTED(a_stranger_has_this_nodes_part),
        COUNTED(what_was_spent_stays_spent_when_the_number_of_nodes_changes),
        COUNTED(a_thread_that_was_late_to_hear_of_a_node_forgets_nothing),
        COUNTED(what_was_spent_stays_spent_in_the_next_outage),
        COUNTED(short_stalls_add_what_refills_while_they_last),
        COUNTED(a_late_reply_says_what_remains),
        COUNTED(a_window_that_is_used_up_stays_so_until_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
