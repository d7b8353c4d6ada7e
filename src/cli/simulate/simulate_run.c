/* Runs one traffic against one subject. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/maths.h"
#include "cli/simulate/simulate.h"
#include "common/array.h"

/*
 * A client that asks, for the first time or again. Denied ones wait in a heap, ordered by the
 * time when they ask again; of equal times, the one that has asked first comes first.
 */
struct caller {
    struct sim_request request; /* its time is when the client asks, or asks again */
    uint64_t first_ns;          /* time of the first question */
    uint64_t turn;              /* unique, so that the order is the same on every machine */
};

struct run {
    struct sim_subject *subject;
    const struct sim_traffic *traffic;
    struct sim_result *result;
    struct caller *heap;
    size_t heap_count;
    struct sim_release *releases;
    size_t releases_count;
    uint64_t asked;
};

static bool before(const struct caller *a, const struct caller *b)
{
    return a->request.time_ns != b->request.time_ns ? a->request.time_ns < b->request.time_ns
                                                    : a->turn < b->turn;
}

static int push(struct run *run, const struct caller *caller)
{
    if (!array_append(&run->heap, &run->heap_count, sizeof *caller, caller)) {
        return WEIR_ENOMEM;
    }
    size_t i = run->heap_count - 1;
    for (; i > 0 && before(caller, &run->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        run->heap[i] = run->heap[(i - 1) / 2];
    }
    run->heap[i] = *caller;
    return 0;
}

static struct caller pop(struct run *run)
{
    struct caller first = run->heap[0];
    struct caller last = run->heap[--run->heap_count];
    size_t i = 0;
    for (size_t child = 1; child < run->heap_count; child = 2 * i + 1) {
        if (child + 1 < run->heap_count && before(&run->heap[child + 1], &run->heap[child])) {
            child++;
        }
        if (!before(&run->heap[child], &last)) {
            break;
        }
        run->heap[i] = run->heap[child];
        i = child;
    }
    run->heap[i] = last;
    return first;
}

static int note_release(struct run *run, const struct sim_request *r, uint64_t delay_ns)
{
    struct sim_release release = {r->time_ns + delay_ns, r->cost, r->client};
    return array_append(&run->releases, &run->releases_count, sizeof release, &release)
               ? 0
               : WEIR_ENOMEM;
}

static void note_wait(struct sim_result *result, uint64_t wait_ns)
{
    result->longest_wait_ns = max_u64(result->longest_wait_ns, wait_ns);
}

static int note_denied(struct run *run, const struct caller *caller, uint64_t retry_ns)
{
    run->result->denied += caller->request.cost;
    if (retry_ns == WEIR_FOREVER) {
        run->result->never += caller->request.cost;
        return 0;
    }
    struct caller again = *caller;
    again.request.time_ns += retry_ns;
    note_wait(run->result, again.request.time_ns - caller->first_ns);
    if (!run->traffic->come_back || again.request.time_ns >= run->traffic->duration_ns) {
        return 0;
    }
    return push(run, &again);
}

static int ask(struct run *run, const struct caller *caller, struct weir_error *error)
{
    const struct sim_request *r = &caller->request;
    size_t bin = sim_bin(r->time_ns, run->traffic->duration_ns);
    struct weir_answer a;
    if (++run->asked > SIM_REQUESTS_MAX) {
        return fail(error, WEIR_EINVAL,
                    "found more than %u requests, with those that come back; use a shorter "
                    "--duration, a lower --rate or --load, or fewer --clients",
                    (unsigned)SIM_REQUESTS_MAX);
    }
    int e = sim_subject_ask(run->subject, run->traffic, r, &a, error);
    if (e != 0) {
        return e;
    }
    run->result->offered += r->cost;
    run->result->offered_in[bin] += r->cost;
    if (a.verdict == WEIR_ALLOW) {
        run->result->admitted += r->cost;
        run->result->admitted_in[bin] += r->cost;
        note_wait(run->result, r->time_ns + a.delay_ns - caller->first_ns);
        e = note_release(run, r, a.delay_ns);
    } else {
        e = note_denied(run, caller, a.retry_after_ns);
    }
    return e == 0 ? 0 : fail(error, e, "out of memory");
}

/*
 * Asks the requests of the traffic in their order, and in between those that come back. At the
 * same time a returning request goes first.
 */
static int ask_all(struct run *run, struct weir_error *error)
{
    const struct sim_traffic *t = run->traffic;
    size_t next = 0;
    int e = 0;
    while (e == 0 && (next < t->count || run->heap_count > 0)) {
        struct caller caller;
        if (run->heap_count > 0 &&
            (next == t->count || run->heap[0].request.time_ns <= t->requests[next].time_ns)) {
            caller = pop(run);
        } else {
            caller = (struct caller){t->requests[next], t->requests[next].time_ns, next};
            next++;
        }
        e = ask(run, &caller, error);
    }
    return e;
}

int sim_run(struct sim_subject *subject, const struct sim_traffic *traffic, uint64_t period_ns,
            struct sim_result *result, struct weir_error *error)
{
    struct run run = {.subject = subject, .traffic = traffic, .result = result};
    *result = (struct sim_result){.name = subject->name};
    int e = ask_all(&run, error);
    if (e == 0) {
        sim_windows(run.releases, run.releases_count, period_ns, traffic->duration_ns, result);
        result->bindings_count = subject->bindings_count;
        memcpy(result->bindings, subject->bindings, sizeof result->bindings);
    }
    free(run.releases);
    free(run.heap);
    return e;
}
