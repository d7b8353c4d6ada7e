#include "support/oracle/oracle_trace.h"

#include <string.h>

/* One in this many answers is also checked by peeks of the library. */
#define PROBE_ONE_IN 4

const char *const oracle_key_names[ORACLE_KEYS] = {"alice", "bob", "carol", "dave", "erin"};

struct run {
    const struct oracle_trace *trace;
    struct weir *w;
    struct oracle_key keys[ORACLE_KEYS];
    struct oracle_difference *found;
};

static bool begin(struct run *run, const struct oracle_trace *t, struct oracle_difference *d)
{
    struct weir_options o = oracle_options(&t->rule);
    *run = (struct run){.trace = t, .found = d};
    *d = (struct oracle_difference){.at = t->n};
    return weir_open(&run->w, &o, NULL) == 0;
}

static void end(struct run *run)
{
    weir_close(run->w);
    for (size_t i = 0; i < ORACLE_KEYS; i++) {
        oracle_key_finish(&run->keys[i]);
    }
}

/* Records the first difference. */
static void differ(struct run *run, size_t at, const char *what, const struct weir_answer *library,
                   const struct weir_answer *oracle)
{
    if (run->found->at == run->trace->n) {
        *run->found = (struct oracle_difference){at, what, *library, *oracle};
    }
}

static const char *first_difference(const struct weir_answer *a, const struct weir_answer *b)
{
    return a->verdict != b->verdict                 ? "verdict"
           : a->flags != b->flags                   ? "flags"
           : a->quota != b->quota                   ? "quota"
           : a->granted != b->granted               ? "granted"
           : a->remaining != b->remaining           ? "remaining"
           : a->retry_after_ns != b->retry_after_ns ? "retry_after"
           : a->reset_after_ns != b->reset_after_ns ? "reset_after"
           : a->delay_ns != b->delay_ns             ? "delay"
                                                    : NULL;
}

static void compare(struct run *run, size_t at, const struct weir_answer *library,
                    const struct weir_answer *oracle)
{
    const char *what = first_difference(library, oracle);
    if (what != NULL) {
        differ(run, at, what, library, oracle);
    }
}

/* ---- the calls ---- */

static int mode_of(const struct oracle_op *op)
{
    return op->verb == ORACLE_CHECK ? WEIR_CHECK : op->verb == ORACLE_PEEK ? WEIR_PEEK : WEIR_UP_TO;
}

static struct weir_question ask_of(const char *key, const struct oracle_op *op)
{
    return (struct weir_question){
        .key = key,
        .key_len = strlen(key),
        .cost = op->cost,
        .max_wait_ns = op->wait_ns,
        .mode = mode_of(op),
    };
}

int oracle_call(struct weir *w, const char *key, const struct oracle_op *op, struct weir_answer *a)
{
    struct weir_question ask = ask_of(key, op);
    size_t len = ask.key_len;
    switch (op->verb) {
    case ORACLE_REFUND:
        return weir_refund_at(w, key, len, op->cost, op->charged_ns, op->time_ns, a);
    case ORACLE_PENALIZE:
        return weir_penalize_at(w, key, len, op->cost, op->time_ns, a);
    case ORACLE_CHECK:
        if (op->wait_ns == 0) {
            return weir_check_at(w, key, len, op->cost, op->time_ns, a);
        }
        return weir_ask_at(w, &ask, op->time_ns, a);
    default:
        return weir_ask_at(w, &ask, op->time_ns, a);
    }
}

void oracle_apply(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_op *op,
                  struct weir_answer *a)
{
    if (op->verb == ORACLE_REFUND) {
        oracle_refund(r, k, op->cost, op->charged_ns, op->time_ns, a);
    } else if (op->verb == ORACLE_PENALIZE) {
        oracle_penalize(r, k, op->cost, op->time_ns, a);
    } else {
        oracle_ask(r, k, mode_of(op), op->cost, op->wait_ns, op->time_ns, a);
    }
}

/* ---- checks by the library itself ---- */

/* Returns the verdict of a peek; -1 after the end of the time line. The oracle peeks too, because
 * both may pull a state down. */
static int peeked(struct run *run, const struct oracle_op *op, uint64_t cost, uint64_t time_ns,
                  uint64_t wait_ns)
{
    struct oracle_op peek = {ORACLE_PEEK, op->key, time_ns, cost, wait_ns, 0};
    struct weir_answer a;
    if (oracle_call(run->w, oracle_key_names[op->key], &peek, &a) != 0) {
        return -1;
    }
    int verdict = a.verdict;
    oracle_apply(&run->trace->rule, &run->keys[op->key], &peek, &a);
    return verdict;
}

/* P3: denied one nanosecond before retry_after, allowed at it. */
static void probe_retry(struct run *run, size_t at, const struct weir_answer *a)
{
    const struct oracle_op *op = &run->trace->ops[at];
    uint64_t cost = op->verb == ORACLE_CHECK || op->verb == ORACLE_PEEK ? op->cost : 1;
    uint64_t then = op->time_ns + a->retry_after_ns;
    if (a->verdict != WEIR_DENY) {
        return;
    }
    if (a->retry_after_ns == 0 || peeked(run, op, cost, then - 1, op->wait_ns) == WEIR_ALLOW ||
        peeked(run, op, cost, then, op->wait_ns) == WEIR_DENY) {
        differ(run, at, "P3: retry_after is not the first moment", a, a);
    }
}

static void probe_remaining(struct run *run, size_t at, const struct weir_answer *a)
{
    const struct oracle_op *op = &run->trace->ops[at];
    if ((a->remaining != 0 && peeked(run, op, a->remaining, op->time_ns, 0) != WEIR_ALLOW) ||
        peeked(run, op, a->remaining + 1, op->time_ns, 0) == WEIR_ALLOW) {
        differ(run, at, "remaining is not the most that can be taken", a, a);
    }
}

/*
 * P4 needs no check of its own: after a peek or a denial the oracle has not changed, except for a
 * state from beyond the slack, and the library must continue to answer like it.
 */
static void probe(struct run *run, size_t at, const struct weir_answer *a)
{
    if (at % PROBE_ONE_IN == 0) {
        probe_retry(run, at, a);
        probe_remaining(run, at, a);
    }
}

/* ---- running ---- */

static void step(struct run *run, size_t at)
{
    const struct oracle_op *op = &run->trace->ops[at];
    struct weir_answer library;
    struct weir_answer oracle;
    memset(&library, 0xA5, sizeof library);
    oracle_apply(&run->trace->rule, &run->keys[op->key], op, &oracle);
    if (oracle_call(run->w, oracle_key_names[op->key], op, &library) != 0) {
        differ(run, at, "the call failed", &library, &oracle);
        return;
    }
    compare(run, at, &library, &oracle);
    probe(run, at, &library);
}

bool oracle_run(const struct oracle_trace *t, struct oracle_difference *d)
{
    struct run run;
    if (!begin(&run, t, d)) {
        return false;
    }
    for (size_t i = 0; i < t->n && d->at == t->n; i++) {
        step(&run, i);
    }
    end(&run);
    return true;
}

#define BATCH_MOST 16

static bool can_batch(const struct oracle_op *op)
{
    return op->verb <= ORACLE_UP_TO;
}

/* Returns the number of questions from `at` on that can go into one batch. */
static size_t batch_at(const struct oracle_trace *t, size_t at)
{
    size_t n = 0;
    while (n < BATCH_MOST && at + n < t->n && can_batch(&t->ops[at + n]) &&
           t->ops[at + n].time_ns == t->ops[at].time_ns) {
        n++;
    }
    return n;
}

static void step_batch(struct run *run, size_t at, size_t n)
{
    const struct oracle_op *ops = &run->trace->ops[at];
    struct weir_question asks[BATCH_MOST];
    struct weir_answer library[BATCH_MOST];
    struct weir_answer oracle[BATCH_MOST];
    memset(library, 0xA5, sizeof library);
    for (size_t i = 0; i < n; i++) {
        asks[i] = ask_of(oracle_key_names[ops[i].key], &ops[i]);
        oracle_apply(&run->trace->rule, &run->keys[ops[i].key], &ops[i], &oracle[i]);
    }
    if (weir_ask_batch_at(run->w, asks, n, ops[0].time_ns, library, NULL) != 0) {
        differ(run, at, "the batch failed", &library[0], &oracle[0]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        compare(run, at + i, &library[i], &oracle[i]);
    }
}

bool oracle_run_batched(const struct oracle_trace *t, struct oracle_difference *d)
{
    struct run run;
    if (!begin(&run, t, d)) {
        return false;
    }
    for (size_t i = 0; i < t->n && d->at == t->n;) {
        size_t n = batch_at(t, i);
        if (n == 0) {
            step(&run, i);
        } else {
            step_batch(&run, i, n);
        }
        i += n == 0 ? 1 : n;
    }
    end(&run);
    return true;
}
