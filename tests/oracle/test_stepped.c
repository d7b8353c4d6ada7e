/*
 * The stepped bucket of `weir replay` against the textbook's, over small numbers, where tokens
 * come and go, and over the whole of 64 bits, where products are large.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/replay_engine.h"
#include "support/oracle/oracle_vector.h"

#if defined(WEIR_LONG)
#define TRACES 200000
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_EMULATED)
#define TRACES 200
#else
#define TRACES 20000
#endif

#define REQUESTS 500

struct stepped_rule {
    int64_t capacity;
    int64_t window;
};

static int64_t random_size(struct oracle_random *g)
{
    return oracle_once_in(g, 2) ? (int64_t)oracle_between(g, 0, 20)
                                : (int64_t)oracle_magnitude(g, 0, INT64_MAX);
}

static int64_t random_time(struct oracle_random *g, struct stepped_rule rule, int64_t now)
{
    int64_t by = 0;
    switch (oracle_between(g, 0, 9)) {
    case 0:
        return (int64_t)oracle_next(g); /* anywhere, also backwards */
    case 1:
        by = rule.window;
        break;
    case 2:
    case 3:
        by = rule.capacity == 0 ? 1 : rule.window / rule.capacity;
        break;
    case 4:
        by = (int64_t)oracle_between(g, 0, 5);
        break;
    case 5:
        by = (int64_t)oracle_magnitude(g, 0, (uint64_t)rule.window);
        break;
    default:
        break;
    }
    return now > INT64_MAX - by ? now : now + by;
}

static struct replay_engine *create(struct stepped_rule rule)
{
    struct replay_limit limit = {.capacity = rule.capacity, .window = rule.window, .unit_ns = 1};
    struct replay_engine *e;
    assert_int_equal(replay_engine_create(&e, &limit, NULL), 0);
    return e;
}

static bool allows(struct replay_engine *e, const char *client, int64_t time)
{
    struct replay_request q = {text_of(client), time, 1};
    struct replay_ask ask = replay_engine_prepare(e, &q);
    struct replay_answer a;
    assert_int_equal(replay_engine_decide(e, &ask, &a, NULL), 0);
    return a.allow;
}

/* True if the engine and the oracle agree on all of it. */
static bool agree(const struct oracle_trace *t, struct stepped_rule rule)
{
    struct oracle_stepped clients[ORACLE_KEYS] = {{0}};
    struct replay_engine *e = create(rule);
    bool same = true;
    for (size_t i = 0; i < t->n && same; i++) {
        const struct oracle_op *op = &t->ops[i];
        int64_t time = (int64_t)op->time_ns;
        bool allow = oracle_stepped_take(&clients[op->key], rule.capacity, rule.window, time);
        same = allows(e, oracle_key_names[op->key], time) == allow;
    }
    replay_engine_destroy(e);
    return same;
}

static void shrink(struct oracle_trace *t, struct stepped_rule rule)
{
    for (size_t at = 0; at < t->n;) {
        struct oracle_op kept = t->ops[at];
        memmove(&t->ops[at], &t->ops[at + 1], (t->n - at - 1) * sizeof kept);
        t->n--;
        if (agree(t, rule)) {
            memmove(&t->ops[at + 1], &t->ops[at], (t->n - at) * sizeof kept);
            t->ops[at++] = kept;
            t->n++;
        }
    }
}

static void replay_is_the_textbooks_stepped_bucket(void **state)
{
    static struct oracle_op ops[REQUESTS];
    const char *given = getenv("WEIR_SEED");
    struct oracle_random g = {given != NULL ? strtoull(given, NULL, 0) : 1};
    print_message("# WEIR_SEED=%" PRIu64 "\n", g.state);
    for (size_t i = 0; i < TRACES; i++) {
        struct oracle_trace t = {.ops = ops, .n = REQUESTS};
        struct stepped_rule rule = {random_size(&g), random_size(&g)};
        int64_t now = oracle_once_in(&g, 2) ? 0 : (int64_t)oracle_next(&g);
        for (size_t j = 0; j < REQUESTS; j++) {
            now = random_time(&g, rule, now);
            ops[j] = (struct oracle_op){.key = (unsigned)oracle_between(&g, 0, ORACLE_KEYS - 1),
                                        .time_ns = (uint64_t)now};
        }
        if (!agree(&t, rule)) {
            shrink(&t, rule);
            oracle_vector_print_stepped(stderr, &t, rule.capacity, rule.window);
            fail_msg("the engine differs in the last line");
        }
    }
}

/* The example that everybody knows. */
static void three_tokens_in_ten_seconds(void **state)
{
    static const int expected[] = {1, 1, 1, 0, 1, 1, 1, 0};
    struct replay_engine *e = create((struct stepped_rule){3, 10});
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(allows(e, "alice", i < 4 ? 0 : 10), expected[i]);
    }
    assert_int_equal(replay_engine_clients(e), 1);
    replay_engine_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_is_the_textbooks_stepped_bucket),
        cmocka_unit_test(three_tokens_in_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
