/* Delta debugging: removes calls that are not needed, then makes the numbers small. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "support/oracle/oracle_trace.h"
#include "support/oracle/oracle_vector.h"

static bool fails(const struct oracle_trace *t, oracle_run_fn run)
{
    struct oracle_difference d;
    return run(t, &d) && d.at < t->n;
}

/* Removes the calls after the failure. */
static void cut(struct oracle_trace *t, oracle_run_fn run)
{
    struct oracle_difference d;
    if (run(t, &d) && d.at < t->n) {
        t->n = d.at + 1;
    }
}

static struct oracle_trace copy_of(const struct oracle_trace *t)
{
    struct oracle_trace copy = {t->rule, malloc((t->n + 1) * sizeof t->ops[0]), t->n};
    if (copy.ops == NULL) {
        abort();
    }
    memcpy(copy.ops, t->ops, t->n * sizeof t->ops[0]);
    return copy;
}

/* Replaces the trace by *changed, a copy, if that fails too. Frees the copy. */
static bool adopt_if_failing(struct oracle_trace *t, struct oracle_trace *changed,
                             oracle_run_fn run)
{
    bool failing = fails(changed, run);
    if (failing) {
        memcpy(t->ops, changed->ops, changed->n * sizeof t->ops[0]);
        t->n = changed->n;
    }
    free(changed->ops);
    return failing;
}

/* Removes n calls if the trace still fails without them. */
static bool leave_out(struct oracle_trace *t, size_t at, size_t n, oracle_run_fn run)
{
    struct oracle_trace less = copy_of(t);
    memmove(&less.ops[at], &less.ops[at + n], (t->n - at - n) * sizeof less.ops[0]);
    less.n -= n;
    return adopt_if_failing(t, &less, run);
}

static void leave_out_all(struct oracle_trace *t, oracle_run_fn run)
{
    for (size_t size = t->n / 2; size > 0; size /= 2) {
        for (size_t at = 0; at + size <= t->n;) {
            if (!leave_out(t, at, size, run)) {
                at += size;
            }
        }
    }
}

/* Lowers *number by smaller and smaller amounts while the trace still fails. */
static bool lower(struct oracle_trace *t, uint64_t *number, uint64_t least, oracle_run_fn run)
{
    bool any = false;
    for (uint64_t by = *number - least; by > 0 && *number > least;) {
        uint64_t before = *number;
        by = by < before - least ? by : before - least;
        *number = before - by;
        oracle_rule_init(&t->rule);
        if (fails(t, run)) {
            any = true;
        } else {
            *number = before;
            by /= 2;
        }
    }
    oracle_rule_init(&t->rule);
    return any;
}

/* Moves the whole trace to an earlier time. */
static bool move_earlier(struct oracle_trace *t, oracle_run_fn run)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < t->n; i++) {
        first = t->ops[i].time_ns < first ? t->ops[i].time_ns : first;
    }
    for (uint64_t by = first; by > 0; by /= 2) {
        struct oracle_trace earlier = copy_of(t);
        for (size_t i = 0; i < t->n; i++) {
            earlier.ops[i].time_ns -= by;
            earlier.ops[i].charged_ns -= by < earlier.ops[i].charged_ns ? by : 0;
        }
        if (adopt_if_failing(t, &earlier, run)) {
            return true;
        }
    }
    return false;
}

static void use_one_key(struct oracle_trace *t, oracle_run_fn run)
{
    struct oracle_trace one = copy_of(t);
    for (size_t i = 0; i < one.n; i++) {
        one.ops[i].key = 0;
    }
    (void)adopt_if_failing(t, &one, run);
}

static bool lower_all(struct oracle_trace *t, oracle_run_fn run)
{
    bool any = move_earlier(t, run);
    for (size_t i = 0; i < t->n; i++) {
        struct oracle_op *op = &t->ops[i];
        any |= lower(t, &op->cost, op->verb == ORACLE_PEEK ? 0 : 1, run);
        any |= lower(t, &op->wait_ns, 0, run);
        any |= lower(t, &op->charged_ns, 0, run);
        any |= lower(t, &op->time_ns, 0, run);
    }
    any |= lower(t, &t->rule.max_debt, 0, run);
    any |= lower(t, &t->rule.offset_ns, 0, run);
    any |= t->rule.burst != 0 && lower(t, &t->rule.burst, 1, run);
    any |= lower(t, &t->rule.queue, 0, run);
    any |= lower(t, &t->rule.count, 1, run);
    any |= lower(t, &t->rule.period_ns, WEIR_MICROSECOND, run);
    return any;
}

void oracle_shrink(struct oracle_trace *t, oracle_run_fn run)
{
    cut(t, run);
    leave_out_all(t, run);
    use_one_key(t, run);
    for (int round = 0; round < 5 && lower_all(t, run); round++) {
        leave_out_all(t, run);
    }
}

static void print_answer(FILE *out, const char *who, const struct weir_answer *a)
{
    fprintf(out,
            "#   %-8s verdict %d flags %u granted %" PRIu64 " remaining %" PRIu64 " retry %" PRIu64
            " reset %" PRIu64 " delay %" PRIu64 "\n",
            who, a->verdict, a->flags, a->granted, a->remaining, a->retry_after_ns,
            a->reset_after_ns, a->delay_ns);
}

void oracle_report(FILE *out, const struct oracle_trace *t, oracle_run_fn run)
{
    struct oracle_difference d;
    fprintf(out, "# A trace on which the library differs from the oracle, as a vector:\n");
    oracle_vector_print(out, t, ORACLE_NS);
    if (run(t, &d) && d.at < t->n) {
        fprintf(out, "# call %zu: %s\n", d.at + 1, d.what);
        print_answer(out, "library", &d.library);
        print_answer(out, "oracle", &d.oracle);
    }
}
