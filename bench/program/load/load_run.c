/* Runs the load: starts the threads and adds up their results. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/error.h"
#include "load/load_progress.h"
#include "load/load_zipf.h"

#define ZIPF_DRAWS (UINT64_C(1) << 20)

/* The threads wait until all of them exist. They run only if none is missing. */
struct start {
    pthread_mutex_t closed; /* held until then */
    bool go;
};

struct thread {
    pthread_t id;
    struct start *start;
    struct generator generator;
};

static void run(struct generator *g)
{
    (void)prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul); /* do not sleep longer than asked */
    generator_run(g);
}

static void *run_thread(void *arg)
{
    struct thread *t = arg;
    (void)pthread_mutex_lock(&t->start->closed);
    bool go = t->start->go;
    (void)pthread_mutex_unlock(&t->start->closed);
    if (go) {
        run(&t->generator);
    }
    return NULL;
}

/* Runs all generators, the first one on this thread. Returns 0 or WEIR_E... */
static int start_and_join(struct thread *all, unsigned n, struct weir_error *error)
{
    struct start start = {.closed = PTHREAD_MUTEX_INITIALIZER};
    struct load_progress progress = {.plan = all[0].generator.plan};
    unsigned started = 1;
    int why = 0;
    (void)pthread_mutex_lock(&start.closed);
    for (; started < n && why == 0; started += why == 0) {
        all[started].start = &start;
        why = pthread_create(&all[started].id, NULL, run_thread, &all[started]);
    }
    uint64_t begin_ns = clock_boot_ns();
    for (unsigned i = 0; i < n; i++) {
        generator_set_times(&all[i].generator, begin_ns, i);
        progress.generators[i] = &all[i].generator;
    }
    start.go = why == 0;
    (void)pthread_mutex_unlock(&start.closed);
    if (start.go) {
        load_progress_begin(&progress);
        run(&all[0].generator);
    }
    for (unsigned i = 1; i < started; i++) {
        (void)pthread_join(all[i].id, NULL);
    }
    load_progress_end(&progress);
    return why == 0 ? 0
                    : fail(error, WEIR_EIO, "cannot start thread %u of %u: %s", started + 1, n,
                           strerror(why));
}

/* ---- the whole run ---- */

static void add_result(struct load_result *to, const struct generator *g)
{
    const struct load_result *from = &g->result;
    /* The last reply is of the warm-up if the server went away in it. */
    uint64_t elapsed_ns = g->last_reply_ns > g->count_ns ? g->last_reply_ns - g->count_ns : 0;
    load_latency_merge(&to->latency, &from->latency);
    for (unsigned i = 0; i < LOAD_VERDICTS; i++) {
        to->verdicts[i] += from->verdicts[i];
    }
    to->within += from->within;
    to->lost += from->lost;
    to->unsent += from->unsent;
    to->elapsed_ns = elapsed_ns > to->elapsed_ns ? elapsed_ns : to->elapsed_ns;
}

/* Returns WEIR_EIO if a generator has lost all its connections or received something else. */
static int check(const struct load_plan *plan, const struct generator *g, struct weir_error *error)
{
    static const char *const expected[] = {"RESP", "HTTP with a Content-Length", "gRPC"};
    if (g->error == -1) {
        return fail(error, WEIR_EIO, "%s: found bytes that are not a reply, expected %s",
                    plan->address, expected[plan->wire]);
    }
    return g->open > 0 || g->error == 0
               ? 0
               : fail(error, WEIR_EIO, "%s: %s", plan->address, strerror(g->error));
}

static int run_all(const struct load_plan *plan, const struct addrinfo *target, struct thread *all,
                   const uint32_t *zipf, struct weir_error *error)
{
    int e = 0;
    for (unsigned i = 0; i < plan->threads && e == 0; i++) {
        struct generator *g = &all[i].generator;
        if (generator_init(g, plan, target, i) != 0) {
            e = fail(error, WEIR_EIO, "%s: %s", plan->address, strerror(g->error));
        }
        if (zipf != NULL) {
            g->keys.zipf = zipf;
            g->keys.zipf_n = ZIPF_DRAWS;
            g->keys.next = ZIPF_DRAWS / plan->threads * i;
        }
    }
    return e == 0 ? start_and_join(all, plan->threads, error) : e;
}

int load_run(const struct load_plan *plan, struct load_result *result, struct weir_error *error)
{
    struct connect_address address;
    *result = (struct load_result){.within = 0};
    int e = connect_address_read(&address, plan->address, error);
    if (e != 0) {
        return e;
    }
    struct thread *all = calloc(plan->threads, sizeof *all);
    uint32_t *zipf =
        all != NULL && plan->order == LOAD_ZIPF ? zipf_list(ZIPF_DRAWS, plan->keys) : NULL;
    bool memory = all != NULL && (plan->order != LOAD_ZIPF || zipf != NULL);
    e = memory ? run_all(plan, address.found, all, zipf, error)
               : fail(error, WEIR_ENOMEM, "out of memory");
    for (unsigned i = 0; memory && i < plan->threads; i++) {
        add_result(result, &all[i].generator);
        e = e != 0 ? e : check(plan, &all[i].generator, error);
        generator_finish(&all[i].generator);
    }
    free(zipf);
    free(all);
    connect_address_finish(&address);
    return e;
}
