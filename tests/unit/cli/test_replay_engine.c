/*
 * Who decides in `weir replay`: equal to the textbook's stepped bucket, to the library
 * call by call, and to the shared vectors; for any number of clients.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/replay_engine.h"
#include "support/oracle/oracle_vector.h"
#include "support/server/replay_run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACES 300
#define MANY 30000
#else
#define TRACES 4000
#define MANY 200000
#endif
#define REQUESTS 200

static struct replay_engine *create(const struct replay_limit *limit)
{
    struct replay_engine *e;
    struct weir_error error = {0, ""};
    if (replay_engine_create(&e, limit, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return e;
}

static struct replay_answer decide(struct replay_engine *e, const char *client, int64_t time,
                                   uint64_t cost)
{
    struct replay_request q = {text_of(client), time, cost};
    struct replay_answer a;
    struct weir_error error = {0, ""};
    struct replay_ask ask = replay_engine_prepare(e, &q);
    if (replay_engine_decide(e, &ask, &a, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return a;
}

/* ---- stepped_bucket ---- */

static int64_t random_size(struct oracle_random *g)
{
    return oracle_once_in(g, 2) ? (int64_t)oracle_between(g, 0, 20)
                                : (int64_t)oracle_magnitude(g, 0, INT64_MAX);
}

static int64_t random_time(struct oracle_random *g, const struct replay_limit *l, int64_t now)
{
    uint64_t by = 0;
    switch (oracle_between(g, 0, 5)) {
    case 0:
        return (int64_t)oracle_next(g); /* anywhere, also backwards */
    case 1:
        by = (uint64_t)(l->capacity == 0 ? l->window : l->window / l->capacity);
        break;
    case 2:
        by = oracle_magnitude(g, 0, (uint64_t)l->window);
        break;
    default:
        break;
    }
    return (uint64_t)INT64_MAX - (uint64_t)now < by ? now : (int64_t)((uint64_t)now + by);
}

/* What is said of the future holds, if nothing else happens: the oracle is asked. */
static void check_future(const struct replay_limit *l, struct oracle_stepped s, int64_t now,
                         const struct replay_answer *a)
{
    if (!a->allow && a->retry != REPLAY_NEVER) {
        struct oracle_stepped before = s;
        int64_t at = (int64_t)((uint64_t)now + a->retry);
        assert_true(a->retry > 0);
        assert_false(oracle_stepped_take(&before, l->capacity, l->window, at - 1));
        assert_true(oracle_stepped_take(&s, l->capacity, l->window, at));
    } else if (!a->allow) {
        assert_false(oracle_stepped_take(&s, l->capacity, l->window, INT64_MAX));
    } else {
        assert_true(a->retry == 0);
    }
}

static void check_reset(const struct replay_limit *l, struct oracle_stepped s, int64_t now,
                        const struct replay_answer *a)
{
    if (a->reset == 0) {
        /* With several tokens a tick, one that was just taken may be back with the next call. */
        bool taken = oracle_stepped_take(&s, l->capacity, l->window, now);
        assert_true(s.tokens + taken == l->capacity);
        return;
    }
    assert_true(s.tokens < l->capacity);
    if (a->reset == REPLAY_NEVER) {
        bool taken = oracle_stepped_take(&s, l->capacity, l->window, INT64_MAX);
        assert_true(s.tokens + taken < l->capacity);
        return;
    }
    struct oracle_stepped before = s;
    int64_t at = (int64_t)((uint64_t)now + a->reset);
    bool taken = oracle_stepped_take(&before, l->capacity, l->window, at - 1);
    assert_true(before.tokens + taken < l->capacity);
    assert_true(oracle_stepped_take(&s, l->capacity, l->window, at));
    assert_true(s.tokens == l->capacity - 1);
}

static void replay_random_stream(struct oracle_random *g)
{
    struct replay_limit l = {.capacity = random_size(g), .window = random_size(g), .unit_ns = 1};
    struct replay_engine *e = create(&l);
    struct oracle_stepped clients[ORACLE_KEYS] = {{0}};
    int64_t now = random_size(g) - random_size(g);
    for (int i = 0; i < REQUESTS; i++) {
        unsigned key = (unsigned)oracle_between(g, 0, ORACLE_KEYS - 1);
        now = random_time(g, &l, now);
        struct replay_answer a = decide(e, oracle_key_names[key], now, 1);
        struct oracle_stepped *s = &clients[key];
        assert_int_equal(a.allow, oracle_stepped_take(s, l.capacity, l.window, now));
        assert_true(a.remaining == (uint64_t)s->tokens);
        check_future(&l, *s, now, &a);
        check_reset(&l, *s, now, &a);
    }
    replay_engine_destroy(e);
}

static void a_random_stream_is_decided_as_the_textbook_says(void **state)
{
    struct oracle_random g = {20260101};
    for (int i = 0; i < TRACES; i++) {
        replay_random_stream(&g);
    }
}

static struct replay_engine *stepped(int64_t capacity, int64_t window)
{
    return create(
        &(struct replay_limit){.capacity = capacity, .window = window, .unit_ns = WEIR_SECOND});
}

static void a_client_starts_full_at_its_first_request(void **state)
{
    struct replay_engine *e = stepped(3, 60);
    char client[32];
    for (int64_t first = -1000; first <= 1000; first += 500) {
        snprintf(client, sizeof client, "%" PRId64, first);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(decide(e, client, first, 1).allow, i < 3);
        }
        assert_false(decide(e, client, first + 19, 1).allow);
        assert_true(decide(e, client, first + 20, 1).allow);
        assert_false(decide(e, client, first + 20, 1).allow);
    }
    assert_int_equal(replay_engine_clients(e), 5);
    replay_engine_destroy(e);
}

static void capacity_0_denies_everything(void **state)
{
    struct replay_engine *e = stepped(0, 60);
    assert_false(decide(e, "k", 0, 1).allow);
    assert_false(decide(e, "k", INT64_MAX, 1).allow);
    replay_engine_destroy(e);
}

static void window_0_never_refills(void **state)
{
    struct replay_engine *e = stepped(2, 0);
    assert_true(decide(e, "k", 0, 1).allow);
    assert_true(decide(e, "k", 1000, 1).allow);
    assert_false(decide(e, "k", INT64_MAX, 1).allow);
    replay_engine_destroy(e);
}

static void a_decreasing_time_refills_nothing(void **state)
{
    struct replay_engine *e = stepped(1, 10);
    assert_true(decide(e, "k", 100, 1).allow);
    assert_false(decide(e, "k", 50, 1).allow);
    assert_false(decide(e, "k", INT64_MIN, 1).allow);
    assert_false(decide(e, "k", 109, 1).allow);
    assert_true(decide(e, "k", 110, 1).allow);
    replay_engine_destroy(e);
}

static void extreme_numbers_do_not_overflow(void **state)
{
    static const int64_t odd[] = {0, 1, 2, INT32_MAX, INT64_MAX - 1, INT64_MAX};
    static const int64_t times[] = {INT64_MIN, -1, 0, 1, INT64_MAX, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 36; i++) {
        struct replay_engine *e = stepped(odd[i / 6], odd[i % 6]);
        for (int j = 0; j < 7; j++) {
            bool allowed = decide(e, "k", times[j], 1).allow;
            assert_true(odd[i / 6] != 0 || !allowed);
        }
        replay_engine_destroy(e);
    }
}

/* ---- the algorithms of the library ---- */

struct both {
    struct weir *w;
    struct replay_engine *e;
    int64_t shift_ns; /* the engine's times are so much later */
};

static struct both open_both(struct oracle_random *g, const struct oracle_rule *r)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct replay_limit l = {.algorithm = r->algorithm,
                             .rate = {r->count, r->period_ns},
                             .burst = r->burst,
                             .queue = r->queue,
                             .undelayed = r->undelayed,
                             .unit_ns = 1};
    struct both b;
    struct weir_error error;
    o.algorithm = r->algorithm;
    o.count = r->count;
    o.period_ns = r->period_ns;
    o.burst = r->burst;
    o.queue = r->queue;
    o.undelayed = r->undelayed;
    o.max_keys = 1000;
    o.flags = WEIR_EXPLICIT_TIME;
    if (weir_open(&b.w, &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    b.e = create(&l);
    /* Windows begin at multiples of their period, whatever the times; but months differ. */
    bool months = r->period_ns == WEIR_MONTH;
    int64_t periods = months ? 0 : (int64_t)(50 * 365 * WEIR_DAY / r->period_ns);
    b.shift_ns = (int64_t)oracle_between(g, 0, 2) * (periods / 2) * (int64_t)r->period_ns;
    return b;
}

static void same(const struct weir_answer *a, const struct replay_answer *b)
{
    assert_int_equal(a->verdict == WEIR_ALLOW, b->allow);
    assert_true(a->remaining == b->remaining);
    assert_true(a->retry_after_ns == b->retry);
    assert_true(a->reset_after_ns == b->reset);
    assert_true(a->delay_ns == b->delay);
}

/* Until the end of either's line of times. */
static size_t replay_both(const struct both *b, const struct oracle_trace *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct oracle_op *op = &t->ops[i];
        const char *key = oracle_key_names[op->key];
        struct replay_request q = {text_of(key), (int64_t)op->time_ns + b->shift_ns,
                                   op->cost > 0 ? op->cost : 1};
        struct replay_ask ask = replay_engine_prepare(b->e, &q);
        struct weir_answer a;
        struct replay_answer mine;
        if (op->time_ns > INT64_MAX / 2 ||
            weir_check_at(b->w, key, strlen(key), q.cost, op->time_ns, &a) != 0 ||
            replay_engine_decide(b->e, &ask, &mine, NULL) != 0) {
            return i;
        }
        same(&a, &mine);
    }
    return t->n;
}

static void every_algorithm_decides_as_weir_check_at(void **state)
{
    struct oracle_random g = {20260102};
    struct oracle_op ops[REQUESTS];
    size_t compared = 0;
    size_t tried = 0;
    for (int i = 0; i < TRACES / 2; i++) {
        struct oracle_trace t = {.ops = ops, .n = REQUESTS};
        t.rule = oracle_random_rule(&g, 1 + i % 5);
        t.rule.max_debt = 0;
        t.rule.offset_ns = 0;
        oracle_random_ops(&g, &t, REQUESTS, oracle_once_in(&g, 3));
        struct both b = open_both(&g, &t.rule);
        compared += replay_both(&b, &t);
        tried += t.n;
        weir_close(b.w);
        replay_engine_destroy(b.e);
    }
    print_message("# %zu of %zu calls\n", compared, tried);
    assert_true(compared > tried / 2);
}

/* ---- times that go back ---- */

#define BACKWARD 40 /* requests of a stream */

struct timed {
    int64_t time;
    uint64_t cost;
};

/* Decides the first n requests again, and then one more; returns the answer to it. */
static struct replay_answer decide_after(const struct replay_limit *l, const struct timed *before,
                                         size_t n, struct timed then)
{
    struct replay_engine *e = create(l);
    for (size_t i = 0; i < n; i++) {
        (void)decide(e, "alice", before[i].time, before[i].cost);
    }
    struct replay_answer a = decide(e, "alice", then.time, then.cost);
    replay_engine_destroy(e);
    return a;
}

static int64_t random_step(struct oracle_random *g, const struct replay_limit *l)
{
    int64_t step = (int64_t)oracle_magnitude(g, 1, 3 * (l->rate.period_ns + WEIR_SECOND));
    return oracle_once_in(g, 3) ? -step : oracle_once_in(g, 2) ? step / 50 : 0;
}

/* Returns how many denials were looked at. */
static size_t check_retries(struct oracle_random *g, const struct replay_limit *l)
{
    struct timed asked[BACKWARD];
    int64_t now = 0;
    size_t denied = 0;
    for (size_t i = 0; i < BACKWARD; i++) {
        now += random_step(g, l);
        asked[i] = (struct timed){now, l->algorithm == 0 ? 1 : oracle_between(g, 1, 3)};
        struct replay_answer a = decide_after(l, asked, i, asked[i]);
        if (a.allow || a.retry == REPLAY_NEVER) {
            continue;
        }
        denied++;
        struct timed then = {now + (int64_t)a.retry, asked[i].cost};
        assert_true(a.retry > 0);
        assert_true(decide_after(l, asked, i + 1, then).allow);
        then.time--;
        assert_false(decide_after(l, asked, i + 1, then).allow);
    }
    return denied;
}

static void after_a_time_that_goes_back_the_retry_is_true(void **state)
{
    struct oracle_random g = {20260103};
    size_t denied = 0;
    for (int i = 0; i < TRACES / 10; i++) {
        struct replay_limit l = {.algorithm = i % 6, .unit_ns = 1};
        l.rate.count = oracle_between(&g, 1, 5);
        l.rate.period_ns = oracle_magnitude(&g, 1000, WEIR_HOUR);
        l.capacity = (int64_t)l.rate.count;
        l.window = (int64_t)l.rate.period_ns;
        l.queue = l.algorithm == WEIR_LEAKY_BUCKET ? l.rate.count - 1 : 0;
        denied += check_retries(&g, &l);
    }
    assert_true(denied > TRACES / 10);
}

/* ---- many clients ---- */

static void no_client_is_forgotten(const struct replay_limit *l)
{
    struct replay_engine *e = create(l);
    char name[32];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "client-%d", i);
            assert_int_equal(decide(e, name, 1000, 1).allow, round < 2);
        }
        decide(e, "late", 1000000000, 1); /* to whom all of them look fresh */
    }
    assert_int_equal(replay_engine_clients(e), MANY + 1);
    replay_engine_destroy(e);
}

static void no_client_is_forgotten_however_many_come(void **state)
{
    no_client_is_forgotten(&(struct replay_limit){.capacity = 2, .window = 9, .unit_ns = 1});
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        no_client_is_forgotten(
            &(struct replay_limit){.algorithm = algorithm,
                                   .rate = {2, 1000 * WEIR_SECOND},
                                   .queue = algorithm == WEIR_LEAKY_BUCKET ? 1 : 0,
                                   .unit_ns = WEIR_MILLISECOND});
    }
}

/* ---- the vectors, through the command ---- */

/* The stream of a section; peeks, which a stream does not have, change nothing and are left out. */
static char *stream_of(const struct oracle_vector *v)
{
    char *text;
    size_t size;
    size_t n = 0;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < v->trace.n; i++) {
        n += v->trace.ops[i].verb == ORACLE_CHECK;
    }
    if (v->stepped) {
        fprintf(out, "%" PRId64 "\n%" PRId64 "\n%zu\n", v->capacity, v->window, n);
    } else {
        fprintf(out, "%" PRIu64 "\n%" PRIu64 "\n%zu\n", v->trace.rule.count,
                v->trace.rule.period_ns / v->unit, n);
    }
    for (size_t i = 0; i < v->trace.n; i++) {
        const struct oracle_op *op = &v->trace.ops[i];
        if (op->verb == ORACLE_CHECK) {
            fprintf(out, "request %s %" PRId64 " %" PRIu64 "\n", v->keys[op->key],
                    (int64_t)op->time_ns / (v->stepped ? 1 : v->unit), op->cost);
        }
    }
    fclose(out);
    return text;
}

/* A whole number of the unit, rounded up as in the vectors. */
static uint64_t read_duration(const char **at, const char *name)
{
    char *end;
    assert_memory_equal(*at, name, strlen(name));
    *at += strlen(name);
    if (strncmp(*at, "never", 5) == 0) {
        *at += 5;
        return WEIR_FOREVER;
    }
    uint64_t n = strtoull(*at, &end, 10);
    if (*end == '.') {
        n++;
        end += 1 + strspn(end + 1, "0123456789");
    }
    *at = end;
    return n;
}

static void expect_line(const char **at, const struct oracle_expected *x, bool delay)
{
    bool allow = x->verdict == WEIR_ALLOW;
    const char *word = allow ? "allow" : "deny";
    assert_memory_equal(*at, word, strlen(word));
    *at += strlen(word);
    assert_true(read_duration(at, " remaining=") == x->remaining);
    assert_true(read_duration(at, " retry=") == x->retry);
    assert_true(read_duration(at, " reset=") == x->reset);
    assert_true(!delay || read_duration(at, " delay=") == x->delay);
    assert_int_equal(*(*at)++, '\n');
}

static void expect_output(const struct oracle_vector *v, const char *at)
{
    for (size_t i = 0; i < v->trace.n; i++) {
        if (v->trace.ops[i].verb != ORACLE_CHECK) {
            continue;
        }
        if (v->stepped) {
            const char *line = v->expected[i].verdict == WEIR_ALLOW ? "allow\n" : "deny\n";
            assert_memory_equal(at, line, strlen(line));
            at += strlen(line);
        } else {
            expect_line(&at, &v->expected[i], v->trace.rule.algorithm == WEIR_LEAKY_BUCKET);
        }
    }
    assert_int_equal(*at, 0);
}

static void words_of(const struct oracle_vector *v, char *words, size_t size)
{
    const struct oracle_rule *r = &v->trace.rule;
    int n = snprintf(words, size, "--quiet");
    if (!v->stepped) {
        n += snprintf(words + n, size - n, " --explain --unit %s --algorithm %s",
                      v->unit == ORACLE_US ? "us" : "ns", weir_algorithm_name(r->algorithm));
    }
    if (r->burst != 0) {
        n += snprintf(words + n, size - n, " --burst %" PRIu64, r->burst);
    }
    if (r->queue != 0) {
        n += snprintf(words + n, size - n, " --queue %" PRIu64, r->queue);
    }
    if (r->undelayed != 0) {
        snprintf(words + n, size - n, " --undelayed %" PRIu64, r->undelayed);
    }
}

/* Not to be said on a command line, or verbs that a stream does not have. */
static bool can_be_replayed(const struct oracle_vector *v)
{
    const struct oracle_rule *r = &v->trace.rule;
    for (size_t i = 0; i < v->trace.n; i++) {
        if (v->trace.ops[i].verb > ORACLE_PEEK || v->trace.ops[i].wait_ns != 0) {
            return false;
        }
    }
    return r->max_debt == 0 && r->offset_ns == 0 && r->undelayed == 0;
}

static size_t replay_file(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/vectors/%s.vec", WEIR_SOURCE_DIR, name);
    struct oracle_reader reader = {.in = fopen(path, "r")};
    struct oracle_vector v;
    size_t sections = 0;
    assert_non_null(reader.in);
    while (oracle_vector_read(&reader, &v) == 1) {
        if (can_be_replayed(&v)) {
            char words[256];
            words_of(&v, words, sizeof words);
            char *stream = stream_of(&v);
            struct replay_result r = replay_run(words, stream, strlen(stream));
            assert_string_equal(r.err, "");
            assert_int_equal(r.code, 0);
            expect_output(&v, r.out);
            replay_result_finish(&r);
            free(stream);
            sections++;
        }
        oracle_vector_finish(&v);
    }
    fclose(reader.in);
    return sections;
}

/* Not skew: there peeks pull states down. */
static void the_command_reproduces_the_vectors(void **state)
{
    static const char *const names[] = {"token_bucket",   "leaky_bucket", "fixed_window",
                                        "sliding_window", "sliding_log",  "stepped_bucket"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t sections = replay_file(names[i]);
        print_message("# %s: %zu sections\n", names[i], sections);
        assert_true(sections > 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_random_stream_is_decided_as_the_textbook_says),
        cmocka_unit_test(a_client_starts_full_at_its_first_request),
        cmocka_unit_test(capacity_0_denies_everything),
        cmocka_unit_test(window_0_never_refills),
        cmocka_unit_test(a_decreasing_time_refills_nothing),
        cmocka_unit_test(extreme_numbers_do_not_overflow),
        cmocka_unit_test(every_algorithm_decides_as_weir_check_at),
        cmocka_unit_test(after_a_time_that_goes_back_the_retry_is_true),
        cmocka_unit_test(no_client_is_forgotten_however_many_come),
        cmocka_unit_test(the_command_reproduces_the_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
