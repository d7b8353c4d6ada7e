/*
 * Linearizability of short histories: three threads do a few operations each on
 * one key, and for every history there must be an order of the calls, one after
 * the other, that explains all the answers. And a limiter that reads, thinks and
 * stores must not get through.
 */
// test-timeout: 300
// test-serial: yes
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_linear.h"
#include "support/engine/threads_run.h"

#define QUOTA 5
#define DEBT 3
#define CALLS 6    /* of each thread in a history */
#define BATCH 2000 /* histories between two looks at them */
/* Stepping times: a unit comes back every five ticks, a window ends within every second history. */
#define TICK_NS UINT64_C(300)
#define PERIOD_NS (25 * TICK_NS)

/* What is asked: weir, or something that should be caught. */
struct subject {
    struct weir *w;
    bool queue;       /* it gives back places, which are more than a count */
    uint64_t *broken; /* a counter for each history, if this is the broken limiter */
};

struct recording {
    struct subject subject;
    bool stepping;
    uint64_t first; /* number of the first history, for names and seeds */
    uint64_t ticket;
    struct threads_barrier barrier;
    struct linear_history history[BATCH];
};

/* ---- the broken limiter ---- */

/* Two threads that read the same count both take what one could have. */
static void broken_check(uint64_t *count, uint64_t cost, struct weir_answer *told)
{
    uint64_t used = threads_get(count);
    told->verdict = cost > QUOTA ? WEIR_NEVER : used + cost <= QUOTA ? WEIR_ALLOW : WEIR_DENY;
    if (told->verdict == WEIR_ALLOW) {
        (void)sched_yield();
        used += cost;
        told->granted = cost;
        threads_set(count, used);
    }
    told->remaining = QUOTA - used;
}

/* ---- recording ---- */

static struct linear_op *next_op(struct linear_history *h, unsigned t)
{
    struct linear_op *op = &h->op[t][h->count[t]++];
    memset(op, 0, sizeof *op);
    return op;
}

/* Refund and penalize answer with a peek: a second operation, some time before the return. */
static void add_peek(struct linear_history *h, unsigned t, const struct weir_answer *told)
{
    struct linear_op verb = h->op[t][h->count[t] - 1];
    struct linear_op *peek = next_op(h, t);
    *peek = verb;
    peek->kind = LINEAR_PEEK;
    peek->cost = 1;
    peek->told = *told;
    peek->told.granted = 0;
}

static void call_verb(struct weir *w, const struct threads_key *key, struct linear_op *op,
                      struct weir_answer *a)
{
    size_t len = strlen(key->name);
    if (op->kind == LINEAR_REFUND) {
        threads_require(weir_refund_at(w, key->name, len, op->cost, op->now, op->now, a) == 0);
    } else {
        threads_require(weir_penalize_at(w, key->name, len, op->cost, op->now, a) == 0);
        op->told.granted = a->granted;
    }
}

static void call(const struct subject *s, uint64_t number, const struct threads_key *key,
                 struct linear_op *op, struct weir_answer *a)
{
    int mode = op->kind == LINEAR_PEEK    ? WEIR_PEEK
               : op->kind == LINEAR_UP_TO ? WEIR_UP_TO
                                          : WEIR_CHECK;
    if (s->broken != NULL) {
        broken_check(&s->broken[number], op->cost, &op->told);
    } else if (op->kind <= LINEAR_UP_TO) {
        op->told = threads_ask(s->w, key->name, op->cost, mode, op->now);
    } else if (op->kind == LINEAR_RESET) {
        op->told.granted = weir_reset(s->w, key->name, strlen(key->name)) == 1;
    } else {
        call_verb(s->w, key, op, a);
    }
}

static enum linear_kind choose_kind(const struct subject *s, uint64_t r)
{
    static const enum linear_kind often[] = {
        LINEAR_CHECK,  LINEAR_CHECK,  LINEAR_CHECK,    LINEAR_CHECK, LINEAR_UP_TO,
        LINEAR_REFUND, LINEAR_REFUND, LINEAR_PENALIZE, LINEAR_PEEK,  LINEAR_RESET,
    };
    enum linear_kind kind = often[r % (sizeof often / sizeof often[0])];
    bool never = s->broken != NULL || (s->queue && kind == LINEAR_REFUND);
    return never ? LINEAR_CHECK : kind;
}

static void do_one(struct recording *rec, uint64_t number, unsigned t, uint64_t r)
{
    struct linear_history *h = &rec->history[number];
    struct threads_key key = threads_key("history", rec->first + number);
    struct linear_op *op = next_op(h, t);
    struct weir_answer a;
    op->kind = choose_kind(&rec->subject, r);
    op->cost = (r >> 16) % 16 == 0 ? QUOTA + 1 : (r >> 20) % 3 + 1;
    op->invoked = threads_add(&rec->ticket, 1);
    op->now = THREADS_T0 + (rec->stepping ? op->invoked * TICK_NS : 0);
    call(&rec->subject, number, &key, op, &a);
    op->returned = threads_add(&rec->ticket, 1);
    if (op->kind == LINEAR_REFUND || op->kind == LINEAR_PENALIZE) {
        add_peek(h, t, &a);
    }
}

/* A history is shorter than it takes to wake a thread: dawdling lets the others catch up. */
static void dawdle(uint64_t r)
{
    for (uint64_t i = r % 64; i > 0; i--) {
        threads_pause();
    }
    if ((r >> 32) % 16 == 0) {
        (void)sched_yield(); /* lets a thread run that has to share this processor */
    }
}

static void record(unsigned t, void *arg)
{
    struct recording *rec = arg;
    uint64_t random = rec->first << 2 | t;
    for (uint64_t i = 0; i < BATCH; i++) {
        threads_meet(&rec->barrier, LINEAR_THREADS);
        for (unsigned n = 0; n < CALLS; n++) {
            dawdle(threads_random(&random));
            do_one(rec, i, t, threads_random(&random));
        }
    }
}

/* ---- judging ---- */

struct verdicts {
    uint64_t histories;
    uint64_t unexplained;
    uint64_t overlapping; /* in which two calls of different threads overlapped */
};

static bool two_overlap(const struct linear_history *h, unsigned t, unsigned u)
{
    for (unsigned i = 0; i < h->count[t]; i++) {
        for (unsigned j = 0; j < h->count[u]; j++) {
            if (h->op[t][i].invoked < h->op[u][j].returned &&
                h->op[u][j].invoked < h->op[t][i].returned) {
                return true;
            }
        }
    }
    return false;
}

static bool overlaps(const struct linear_history *h)
{
    return two_overlap(h, 0, 1) || two_overlap(h, 1, 2) || two_overlap(h, 0, 2);
}

static void judge(const struct linear_model *m, const struct recording *rec, struct verdicts *v,
                  bool print)
{
    for (uint64_t i = 0; i < BATCH; i++) {
        bool explained = linear_explains(m, &rec->history[i]);
        if (!explained && print && v->unexplained == 0) {
            linear_print(&rec->history[i]);
        }
        v->histories++;
        v->unexplained += !explained;
        v->overlapping += overlaps(&rec->history[i]);
    }
}

static struct weir_options small(int algorithm, bool stepping)
{
    struct weir_options o = threads_options(algorithm, QUOTA, stepping ? PERIOD_NS : WEIR_HOUR);
    o.max_debt = algorithm == WEIR_SLIDING_LOG ? 0 : DEBT;
    o.max_keys = BATCH;
    return o;
}

static void compile(const struct weir_options *o, struct algo_params *params)
{
    struct limit_spec spec = {.algorithm = o->algorithm, .count = o->count, .burst = o->count};
    struct algo_layout layout = {.fixed = false};
    spec.period_ns = o->period_ns;
    spec.queue = o->queue;
    spec.max_debt = o->max_debt;
    memset(params, 0, sizeof *params);
    params->spec = spec;
    assert_int_equal(algo_by_id(o->algorithm)->compile(&spec, &layout, params, NULL), 0);
}

static struct linear_model model_of(const struct weir_options *o, bool stepping,
                                    struct algo_params *params)
{
    struct linear_model m = {.quota = QUOTA, .max_debt = o->max_debt, .apply = linear_by_counter};
    if (stepping) {
        compile(o, params);
        m.apply = linear_by_algorithm;
        m.ops = algo_by_id(o->algorithm);
        m.params = params;
        m.times = true;
    }
    return m;
}

static void run_algorithm(int algorithm, bool stepping, uint64_t histories)
{
    struct recording *rec = malloc(sizeof *rec);
    struct verdicts v = {0, 0, 0};
    struct algo_params params;
    struct weir_options o = small(algorithm, stepping);
    struct linear_model m = model_of(&o, stepping, &params);
    assert_non_null(rec);
    while (v.histories < histories) {
        memset(rec, 0, sizeof *rec);
        rec->stepping = stepping;
        rec->first = v.histories;
        rec->subject.w = threads_open(&o);
        rec->subject.queue = algorithm == WEIR_LEAKY_BUCKET && !stepping;
        threads_run(LINEAR_THREADS, record, rec);
        judge(&m, rec, &v, true);
        weir_close(rec->subject.w);
    }
    free(rec);
    print_message("%s, %s time: %llu histories, %llu with an overlap\n",
                  weir_algorithm_name(algorithm), stepping ? "stepping" : "frozen",
                  (unsigned long long)v.histories, (unsigned long long)v.overlapping);
    assert_int_equal(v.unexplained, 0);
}

static void histories_at_a_frozen_time_are_those_of_a_counter(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        run_algorithm(algorithm, false, THREADS_ROUNDS(12000, 4000, 2000));
    }
}

static void histories_while_time_advances_are_those_of_the_algorithm(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        run_algorithm(algorithm, true, THREADS_ROUNDS(12000, 4000, 2000));
    }
}

/* ---- the checker can fail ---- */

static void a_limiter_that_reads_thinks_and_stores_is_found_out(void **state)
{
    struct recording *rec = malloc(sizeof *rec);
    struct linear_model m = {.quota = QUOTA, .apply = linear_by_counter};
    struct verdicts v = {0, 0, 0};
    assert_non_null(rec);
    memset(rec, 0, sizeof *rec);
    rec->subject.broken = calloc(BATCH, sizeof *rec->subject.broken);
    assert_non_null(rec->subject.broken);
    threads_run(LINEAR_THREADS, record, rec);
    judge(&m, rec, &v, false);
    print_message("%llu of %llu histories of the broken limiter are refused\n",
                  (unsigned long long)v.unexplained, (unsigned long long)v.histories);
    assert_true(v.unexplained > 0);
    free(rec->subject.broken);
    free(rec);
}

static void add_check(struct linear_history *h, unsigned t, uint64_t cost, uint64_t granted,
                      uint64_t remaining, uint64_t invoked, uint64_t returned)
{
    struct linear_op *op = next_op(h, t);
    op->cost = cost;
    op->invoked = invoked;
    op->returned = returned;
    op->told.granted = granted;
    op->told.remaining = remaining;
    op->told.verdict = granted != 0 ? WEIR_ALLOW : WEIR_DENY;
}

static void calls_may_be_reordered_only_while_they_overlap(void **state)
{
    struct linear_model m = {.quota = QUOTA, .apply = linear_by_counter};
    struct linear_history h;
    memset(&h, 0, sizeof h);
    add_check(&h, 0, 3, 3, 0, 0, 10); /* took 3 after the 2 of ... */
    add_check(&h, 1, 2, 2, 3, 1, 9);  /* ... a call that overlaps: explained */
    assert_true(linear_explains(&m, &h));
    add_check(&h, 2, 1, 0, 0, 2, 3); /* denied while they were under way: explained */
    assert_true(linear_explains(&m, &h));
    h.op[0][0].invoked = 4; /* but not if the 3 began after it had been denied */
    assert_false(linear_explains(&m, &h));
    h.op[2][0].invoked = 20; /* afterwards nothing is left */
    h.op[2][0].returned = 21;
    assert_true(linear_explains(&m, &h));
    h.op[2][0].told.granted = 1; /* and a unit out of nowhere is refused */
    h.op[2][0].told.verdict = WEIR_ALLOW;
    assert_false(linear_explains(&m, &h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_may_be_reordered_only_while_they_overlap),
        cmocka_unit_test(a_limiter_that_reads_thinks_and_stores_is_found_out),
        cmocka_unit_test(histories_at_a_frozen_time_are_those_of_a_counter),
        cmocka_unit_test(histories_while_time_advances_are_those_of_the_algorithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
