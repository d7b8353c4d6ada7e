/* Tests a fleet with a thread of its own and a real Redis: questions from different threads, and
 * their answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/atomic.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_alone.h"

/* ---- later answers ---- */

struct inbox {
    sem_t came;
    unsigned count;
    int error;
    pthread_t thread;
    struct weir_answer last;
};

static void note(void *arg, int error, const struct weir_answer *answer)
{
    struct inbox *in = arg;
    in->count++;
    in->error = error;
    in->thread = pthread_self();
    if (answer != NULL) {
        in->last = *answer;
    }
    (void)sem_post(&in->came);
}

static void inbox_init(struct inbox *in)
{
    memset(in, 0, sizeof *in);
    (void)sem_init(&in->came, 0, 0);
}

static struct weir_answer check(struct weir_fleet_limit *limit, const char *key, uint64_t cost)
{
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, key, strlen(key), cost, &a), 0);
    return a;
}

/* ---- one asker ---- */

static void a_check_waits_for_the_answer_of_the_store(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("waits", 5);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    assert_int_equal(weir_fleet_limit_consistency(limit), WEIR_FLEET_EXACT);
    for (uint64_t left = 5; left-- > 0;) {
        struct weir_answer a = check(limit, "alice", 1);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.flags, 0);
        assert_int_equal(a.remaining, left);
    }
    struct weir_answer a = check(limit, "alice", 1);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.flags, 0);
    assert_in_range(a.retry_after_ns, 1, WEIR_HOUR / 5);
    assert_int_equal(check(limit, "bob", 5).verdict, WEIR_ALLOW);
    assert_int_equal(check(limit, "bob", 6).verdict, WEIR_NEVER);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void a_limit_of_the_same_name_is_one_limit_for_all_fleets(void **state)
{
    struct weir_fleet *fleets[2] = {fleet_open_at(world.url, 0, 0), fleet_open_at(world.url, 0, 0)};
    struct weir_fleet_limit_options o = fleet_hourly("shared", 3);
    struct weir_fleet_limit *limits[2] = {fleet_limit_of(fleets[0], &o),
                                          fleet_limit_of(fleets[1], &o)};
    assert_int_equal(check(limits[0], "k", 2).remaining, 1);
    assert_int_equal(check(limits[1], "k", 1).remaining, 0);
    assert_int_equal(check(limits[0], "k", 1).verdict, WEIR_DENY);
    for (int i = 0; i < 2; i++) {
        weir_fleet_limit_close(limits[i]);
        weir_fleet_close(fleets[i]);
    }
}

static void a_question_is_answered_later_on_the_threads_of_the_fleet(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("later", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct weir_question q = {.key = "k", .key_len = 1, .cost = 4};
    struct weir_answer a;
    struct inbox in;
    inbox_init(&in);
    assert_int_equal(weir_fleet_ask(limit, &q, &a, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(in.error, 0);
    assert_int_equal(in.last.remaining, 6);
    assert_false(pthread_equal(in.thread, pthread_self()));
    q.mode = WEIR_UP_TO;
    q.cost = 100;
    assert_int_equal(weir_fleet_ask(limit, &q, &a, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(in.last.granted, 6);
    q.mode = WEIR_PEEK;
    q.cost = 0;
    assert_int_equal(weir_fleet_ask(limit, &q, &a, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(in.last.remaining, 0);
    assert_int_equal(in.count, 3);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void verbs_reach_the_store(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("verbs", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct inbox in;
    inbox_init(&in);
    assert_int_equal(check(limit, "k", 8).remaining, 2);
    assert_int_equal(weir_fleet_refund(limit, "k", 1, 3, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(in.last.remaining, 5);
    assert_int_equal(weir_fleet_penalize(limit, "k", 1, 4, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(in.last.remaining, 1);
    assert_int_equal(weir_fleet_block(limit, "k", 1, WEIR_MINUTE, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(check(limit, "k", 1).flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(weir_fleet_unblock(limit, "k", 1, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(check(limit, "k", 1).verdict, WEIR_ALLOW);
    assert_int_equal(check(limit, "k", 1).verdict, WEIR_DENY);
    assert_int_equal(weir_fleet_reset(limit, "k", 1, NULL, NULL), 0); /* no callback */
    assert_int_equal(weir_fleet_reset(limit, "k", 1, note, &in), 0);
    (void)sem_wait(&in.came);
    assert_int_equal(check(limit, "k", 10).verdict, WEIR_ALLOW);
    assert_int_equal(in.error, 0);
    assert_int_equal(in.count, 5);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void bad_questions_are_refused_at_once(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("bad", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    o.name = "bad window";
    o.limit.algorithm = WEIR_FIXED_WINDOW;
    struct weir_fleet_limit *window = fleet_limit_of(fleet, &o);
    struct weir_key hashed = {{0}};
    static char longest[WEIR_KEY_MAX + 1];
    const struct {
        struct weir_question q;
        int error;
    } bad[] = {
        {{.key = "k", .key_len = 0, .cost = 1}, WEIR_EKEY},
        {{.key = NULL, .key_len = 1, .cost = 1}, WEIR_EKEY},
        {{.key = longest, .key_len = sizeof longest, .cost = 1}, WEIR_EKEY},
        {{.key = "k", .key_len = 1, .cost = 0}, WEIR_ECOST},
        {{.key = "k", .key_len = 1, .cost = 1, .mode = 3}, WEIR_EINVAL},
        {{.key = "k", .key_len = 1, .cost = 1, .mode = -1}, WEIR_EINVAL},
        {{.key = "k", .key_len = 1, .cost = 1, .flags = 2}, WEIR_EINVAL},
        {{.key = "k", .key_len = 1, .cost = 1, .hashed = &hashed}, WEIR_EINVAL},
        {{.key = "k", .key_len = 1, .cost = 1, .mode = WEIR_UP_TO, .max_wait_ns = 1}, WEIR_EINVAL},
    };
    struct weir_answer a;
    struct inbox in;
    inbox_init(&in);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(weir_fleet_ask(limit, &bad[i].q, &a, note, &in), bad[i].error);
    }
    struct weir_question wait = {.key = "k", .key_len = 1, .cost = 1, .max_wait_ns = WEIR_SECOND};
    assert_int_equal(weir_fleet_ask(window, &wait, &a, note, &in), WEIR_ENOTSUP);
    assert_int_equal(weir_fleet_ask(limit, &wait, &a, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_fleet_ask(NULL, &wait, &a, note, &in), WEIR_EINVAL);
    assert_int_equal(weir_fleet_check(limit, "k", 1, 0, &a), WEIR_ECOST);
    assert_int_equal(weir_fleet_check(limit, NULL, 1, 1, &a), WEIR_EKEY);
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, NULL), WEIR_EINVAL);
    assert_int_equal(weir_fleet_block(limit, "k", 1, 0, note, &in), WEIR_ETIME);
    assert_int_equal(weir_fleet_refund(limit, "k", 1, 0, note, &in), WEIR_ECOST);
    assert_int_equal(weir_fleet_reset(limit, NULL, 1, note, &in), WEIR_EKEY);
    assert_int_equal(weir_fleet_fd(fleet), WEIR_ENOTSUP);
    assert_int_equal(weir_fleet_run(fleet), WEIR_ENOTSUP);
    assert_int_equal(weir_fleet_timeout_ms(fleet), -1);
    assert_int_equal(check(limit, "k", 1).remaining, 9); /* refused questions are free */
    assert_int_equal(in.count, 0);
    weir_fleet_limit_close(window);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

/* ---- many askers ---- */

#define QUOTA 1000
#define ASKS_EACH 200

struct asker {
    struct weir_fleet_limit *limit;
    unsigned allowed, degraded;
};

static void *keep_asking(void *arg)
{
    struct asker *a = arg;
    for (int i = 0; i < ASKS_EACH; i++) {
        struct weir_answer answer;
        assert_int_equal(weir_fleet_check(a->limit, "one key", 7, 1, &answer), 0);
        a->allowed += answer.verdict == WEIR_ALLOW;
        a->degraded += (answer.flags & WEIR_FLAG_DEGRADED) != 0;
    }
    return NULL;
}

/* Asks in `fleets` fleets with `threads` threads each. Returns how many were allowed. */
static unsigned ask_by_threads(unsigned fleets, unsigned threads)
{
    struct weir_fleet *fleet[4];
    struct weir_fleet_limit *limit[4];
    struct asker asker[4][4];
    pthread_t id[4][4];
    unsigned allowed = 0;
    struct weir_fleet_limit_options o = fleet_hourly("crowd", QUOTA);
    for (unsigned f = 0; f < fleets; f++) {
        fleet[f] = fleet_open_at(world.url, 0, 0);
        limit[f] = fleet_limit_of(fleet[f], &o);
        for (unsigned t = 0; t < threads; t++) {
            asker[f][t] = (struct asker){.limit = limit[f]};
            assert_int_equal(pthread_create(&id[f][t], NULL, keep_asking, &asker[f][t]), 0);
        }
    }
    for (unsigned f = 0; f < fleets; f++) {
        for (unsigned t = 0; t < threads; t++) {
            (void)pthread_join(id[f][t], NULL);
            assert_int_equal(asker[f][t].degraded, 0);
            allowed += asker[f][t].allowed;
        }
        weir_fleet_limit_close(limit[f]);
        weir_fleet_close(fleet[f]);
    }
    return allowed;
}

static void processes_and_threads_admit_exactly_the_limit(void **state)
{
    enum { PROCESSES = 3 };
    pid_t child[PROCESSES];
    int from[PROCESSES][2];
    unsigned total = 0;
    (void)redis_node_run(&world.node[0], "FLUSHALL");
    for (int p = 0; p < PROCESSES; p++) {
        assert_int_equal(pipe(from[p]), 0);
        child[p] = fork();
        if (child[p] == 0) {
            unsigned allowed = ask_by_threads(2, 2);
            _exit(write(from[p][1], &allowed, sizeof allowed) == sizeof allowed ? 0 : 1);
        }
    }
    for (int p = 0; p < PROCESSES; p++) {
        unsigned allowed;
        int status;
        assert_int_equal(read(from[p][0], &allowed, sizeof allowed), sizeof allowed);
        (void)waitpid(child[p], &status, 0);
        assert_int_equal(status, 0);
        (void)close(from[p][0]);
        (void)close(from[p][1]);
        total += allowed;
    }
    assert_true(PROCESSES * 4 * ASKS_EACH > 2 * QUOTA);
    assert_int_equal(total, QUOTA);
}

/* ---- the rules for callbacks and fork ---- */

struct nested {
    struct inbox in;
    struct weir_fleet_limit *limit;
    int check_said;
    unsigned left;
};

static void ask_again(void *arg, int error, const struct weir_answer *answer)
{
    struct nested *n = arg;
    struct weir_question q = {.key = "k", .key_len = 1, .cost = 1};
    struct weir_answer a;
    n->check_said = weir_fleet_check(n->limit, "k", 1, 1, &a);
    if (n->left-- > 0) {
        assert_int_equal(weir_fleet_ask(n->limit, &q, &a, ask_again, n), 0);
    } else {
        note(&n->in, error, answer);
    }
}

static void a_callback_may_ask_but_not_wait(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("again", 10);
    struct nested n = {.limit = fleet_limit_of(fleet, &o), .left = 6};
    struct weir_question q = {.key = "k", .key_len = 1, .cost = 1};
    struct weir_answer a;
    inbox_init(&n.in);
    assert_int_equal(weir_fleet_ask(n.limit, &q, &a, ask_again, &n), 0);
    (void)sem_wait(&n.in.came);
    assert_int_equal(n.in.last.remaining, 3);
    assert_int_equal(n.check_said, WEIR_ENOTSUP);
    weir_fleet_limit_close(n.limit);
    weir_fleet_close(fleet);
}

struct held {
    sem_t in, go;
};

static void hold_up(void *arg, int error, const struct weir_answer *answer)
{
    struct held *h = arg;
    (void)sem_post(&h->in);
    (void)sem_wait(&h->go);
}

static void what_the_queue_cannot_take_is_answered_without_the_store(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("full", 1000000);
    o.on_store_failure = WEIR_FLEET_OPEN;
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct weir_question q = {.key = "k", .key_len = 1, .cost = 1};
    struct weir_answer a;
    struct held h;
    struct inbox in;
    unsigned queued = 0;
    inbox_init(&in);
    (void)sem_init(&h.in, 0, 0);
    (void)sem_init(&h.go, 0, 0);
    assert_int_equal(weir_fleet_ask(limit, &q, &a, hold_up, &h), 0);
    (void)sem_wait(&h.in);
    while (weir_fleet_ask(limit, &q, &a, note, &in) == 0 && queued < 100000) {
        queued++;
    }
    assert_int_equal(queued, 16384);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.flags, WEIR_FLAG_DEGRADED);
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
    assert_int_equal(a.flags, WEIR_FLAG_DEGRADED);
    assert_int_equal(weir_fleet_reset(limit, "k", 1, note, &in), WEIR_EFULL);
    (void)sem_post(&h.go);
    for (unsigned i = 0; i < queued; i++) {
        (void)sem_wait(&in.came);
    }
    assert_int_equal(in.count, queued);
    assert_in_range(fleet_stats_of(fleet).degraded, 2, queued);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void a_forked_child_may_close_the_fleet_and_the_parent_goes_on(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("forked", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    int status;
    assert_int_equal(check(limit, "k", 1).remaining, 9);
    pid_t child = fork();
    if (child == 0) {
        weir_fleet_close(fleet);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(check(limit, "k", 1).remaining, 8);
    assert_int_equal(fleet_stats_of(fleet).unknown, 0);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void the_statistics_know_the_calls(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("counted", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct weir_fleet_stats wrong = {.size = 1};
    for (int i = 0; i < 5; i++) {
        (void)check(limit, "k", 1);
    }
    struct weir_fleet_stats s = fleet_stats_of(fleet);
    assert_int_equal(s.up, 1);
    assert_in_range(s.nodes, 1, 64);
    assert_in_range(s.calls, 4,
                    100); /* counters are updated a moment later; the heartbeat counts too */
    assert_int_equal(s.unknown, 0);
    assert_int_equal(s.degraded, 0);
    assert_int_equal(s.breakers_open, 0);
    assert_int_equal(weir_fleet_stats_read(fleet, &wrong), WEIR_EINVAL);
    assert_int_equal(weir_fleet_stats_read(NULL, &s), WEIR_EINVAL);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

/* That wake may end the loop before the wake of the close itself is sent. */
static void a_fleet_may_be_closed_while_a_wake_is_on_its_way(void **state)
{
    for (int i = 0; i < 200; i++) {
        struct weir_fleet *fleet = fleet_open_at("redis:///no/such/socket", 0, WEIR_MILLISECOND);
        struct weir_fleet_limit_options o = fleet_hourly("closed", 10);
        struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
        assert_int_equal(weir_fleet_refund(limit, "k", 1, 1, NULL, NULL), 0);
        weir_fleet_limit_close(limit);
        weir_fleet_close(fleet);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_check_waits_for_the_answer_of_the_store),
        cmocka_unit_test(a_limit_of_the_same_name_is_one_limit_for_all_fleets),
        cmocka_unit_test(a_question_is_answered_later_on_the_threads_of_the_fleet),
        cmocka_unit_test(verbs_reach_the_store),
        cmocka_unit_test(bad_questions_are_refused_at_once),
        cmocka_unit_test(processes_and_threads_admit_exactly_the_limit),
        cmocka_unit_test(a_callback_may_ask_but_not_wait),
        cmocka_unit_test(what_the_queue_cannot_take_is_answered_without_the_store),
        cmocka_unit_test(a_forked_child_may_close_the_fleet_and_the_parent_goes_on),
        cmocka_unit_test(the_statistics_know_the_calls),
        cmocka_unit_test(a_fleet_may_be_closed_while_a_wake_is_on_its_way),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
