/* A store whose calls, leases and exchanges the test controls (store_fakes.h), and questions to
 * it. */
#ifndef WEIR_TESTS_UNIT_STORE_STORY_H
#define WEIR_TESTS_UNIT_STORE_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shared/store/store_question.h"
#include "shared/store/store.h"
#include "unit/shared/store_fakes.h"

#define MS WEIR_MILLISECOND
#define NOW (1000 * WEIR_SECOND)

static struct {
    struct store_shared *shared;
    struct store *store;
    struct store_url url;
    struct store_limit *limits[4];
    unsigned limits_count;
    unsigned answers;
    unsigned wakes;
    int error;
    struct remote_answer answer;
} t;

static inline void count_wake(void *arg)
{
    t.wakes++;
}

static inline int open_with(enum store_kind kind, uint64_t nodes)
{
    memset(&fake, 0, sizeof fake);
    memset(&t, 0, sizeof t);
    fake.lease_answer.verdict = WEIR_ALLOW;
    fake.sync_answer.verdict = WEIR_ALLOW;
    fake.lease_says = LEASE_ANSWERED;
    fake.sync_says = SYNC_ANSWERED;
    t.url.kind = kind;
    struct store_shared_options shared = {
        .prefix = TEXT("weir"), .fleet_size = nodes, .node = 1, .wake = count_wake};
    struct client_options client = {.url = &t.url, .deadline_ns = 5 * MS};
    struct client_driver driver = {0};
    assert_int_equal(store_shared_create(&t.shared, &shared), 0);
    int e = store_create(&t.store, t.shared, &client, &driver, NOW);
    if (e == 0) {
        t.store->waits.took_ns = 1; /* calls are quick: questions may wait for them */
    }
    return e;
}

static inline int open_store(void **state)
{
    return open_with(STORE_ALONE, 2);
}

static inline int open_cluster(void **state)
{
    return open_with(STORE_CLUSTER, 2);
}

static inline int close_store(void **state)
{
    store_destroy(t.store, NOW);
    for (unsigned i = 0; i < t.limits_count; i++) {
        assert_int_equal(t.limits[i]->references, 1); /* all other references are released */
        store_limit_release(t.limits[i]);
    }
    store_shared_destroy(t.shared);
    return 0;
}

/* Opens a bucket or a queue of `count` that refills in a second. */
static inline struct store_limit *limit_of(int algorithm, const char *name, uint64_t count,
                                           int mode, int on_failure)
{
    struct weir_error error;
    struct remote_spec spec = {.name = text_of(name),
                               .options = WEIR_OPTIONS_INIT,
                               .mode = mode,
                               .on_failure = on_failure,
                               .deny_cache_ns = WEIR_SECOND,
                               .sync_ns = 100 * MS};
    spec.options.algorithm = algorithm;
    spec.options.queue = algorithm == WEIR_LEAKY_BUCKET ? count - 1 : 0;
    spec.options.count = count;
    spec.options.period_ns = WEIR_SECOND;
    if (store_limit_open(t.shared, &spec, &t.limits[t.limits_count], &error) != 0) {
        fail_msg("%s", error.text);
    }
    return t.limits[t.limits_count++];
}

static inline struct store_limit *limit(const char *name, uint64_t count, int mode, int on_failure)
{
    return limit_of(WEIR_TOKEN_BUCKET, name, count, mode, on_failure);
}

/* A question with the memory that it needs. */
struct asked {
    struct remote_question question;
    struct remote_part parts[8];
    remote_done_fn done;
    void *arg;
    _Alignas(16) char memory[8 * STORE_QUESTION_BYTES];
};

/* Frees the question before it passes the answer on: nothing may use it after `done`. */
static inline void pass_on(void *arg, int error, const struct remote_answer *answer)
{
    struct asked a = *(struct asked *)arg;
    free(arg);
    a.done(a.arg, error, answer);
}

static inline int ask_with(struct remote_question q, uint64_t now_ns, remote_done_fn done,
                           void *arg)
{
    struct asked *a = malloc(sizeof *a);
    assert_non_null(a);
    a->question = q;
    a->question.done = pass_on;
    a->question.arg = a;
    a->question.memory = a->memory;
    a->question.parts = a->parts;
    assert_true(q.n <= 8);
    memcpy(a->parts, q.parts, q.n * sizeof a->parts[0]);
    a->done = done;
    a->arg = arg;
    int e = store_ask(t.store, &a->question, now_ns, &t.answer);
    if (e != REMOTE_PENDING) {
        free(a);
    }
    return e;
}

static inline void hear(void *arg, int error, const struct remote_answer *answer)
{
    t.answers++;
    t.error = error;
    t.answer = *answer;
}

static inline struct remote_part part(struct store_limit *l, const char *key, uint64_t cost)
{
    return (struct remote_part){.limit = l, .key = text_of(key), .cost = cost};
}

static inline int ask_parts(int verb, const struct remote_part *parts, size_t n, uint64_t time_ns,
                            uint64_t now_ns)
{
    struct remote_question q = {
        .verb = verb, .parts = parts, .n = n, .time_ns = time_ns, .now_ns = now_ns};
    t.answers = 0;
    return ask_with(q, now_ns, hear, NULL);
}

static inline int ask(struct store_limit *l, uint64_t cost, uint64_t now_ns)
{
    struct remote_part p = part(l, "alice", cost);
    return ask_parts(REMOTE_CHECK, &p, 1, 0, now_ns);
}

static inline void reply(unsigned i, int verdict, int64_t remaining, int64_t retry_us,
                         int64_t bound)
{
    struct store_reply r = fake_reply(verdict, remaining, retry_us, bound);
    fake_end(i, CLIENT_REPLIED, &r, NOW);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_store, close_store)
#define IN_CLUSTER(f) cmocka_unit_test_setup_teardown(f, open_cluster, close_store)

#endif
