/* Runs the load: starts the threads and adds up their results. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/load/load_zipf.h"
#include "cli/load/load_generator.h"

#define ZIPF_DRAWS (UINT64_C(1) << 20)

static void *run_thread(void *arg)
{
    (void)prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul); /* do not sleep longer than asked */
    generator_run(arg);
    return NULL;
}

/* ---- the whole run ---- */

static void add_result(struct load_result *to, const struct generator *g)
{
    const struct load_result *from = &g->result;
    uint64_t elapsed_ns = g->last_reply_ns - g->count_ns;
    load_latency_merge(&to->latency, &from->latency);
    for (unsigned i = 0; i < LOAD_VERDICTS; i++) {
        to->verdicts[i] += from->verdicts[i];
    }
    to->within += from->within;
    to->lost += from->lost;
    to->unsent += from->unsent;
    to->elapsed_ns = elapsed_ns > to->elapsed_ns ? elapsed_ns : to->elapsed_ns;
}

static int explain(const struct load_plan *plan, int why, struct weir_error *error)
{
    if (why == -1) {
        return fail(error, WEIR_EIO, "what %s answers is not a reply of %s", plan->address,
                    plan->wire == LOAD_RESP ? "RESP" : "HTTP with a Content-Length");
    }
    return fail(error, WEIR_EIO, "%s: %s", plan->address, strerror(why));
}

static void start_and_join(struct generator *all, unsigned n)
{
    pthread_t threads[LOAD_THREADS_MAX];
    uint64_t begin_ns = clock_boot_ns();
    unsigned started = 1;
    for (unsigned i = 0; i < n; i++) {
        generator_set_times(&all[i], begin_ns, i);
    }
    while (started < n && pthread_create(&threads[started], NULL, run_thread, &all[started]) == 0) {
        started++;
    }
    (void)run_thread(&all[0]);
    for (unsigned i = 1; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (unsigned i = started; i < n; i++) {
        all[i].error = EAGAIN;
    }
}

int load_run(const struct load_plan *plan, struct load_result *result, struct weir_error *error)
{
    struct load_target target;
    *result = (struct load_result){.within = 0};
    int e = load_target_parse(plan->address, &target, error);
    if (e != 0) {
        return e;
    }
    struct generator *all = calloc(plan->threads, sizeof *all);
    uint32_t *zipf = NULL;
    if (plan->order == LOAD_ZIPF) {
        zipf = zipf_list(ZIPF_DRAWS, plan->keys);
    }
    if (all == NULL || (plan->order == LOAD_ZIPF && zipf == NULL)) {
        free(all);
        return fail(error, WEIR_ENOMEM, "out of memory");
    }
    int why = 0;
    for (unsigned i = 0; i < plan->threads && why == 0; i++) {
        why = generator_init(&all[i], plan, &target, i) == 0 ? 0 : all[i].error;
        all[i].keys.zipf = zipf;
        all[i].keys.zipf_n = ZIPF_DRAWS;
        all[i].keys.next =
            plan->order == LOAD_ZIPF ? ZIPF_DRAWS / plan->threads * i : all[i].keys.next;
    }
    if (why == 0) {
        start_and_join(all, plan->threads);
    }
    for (unsigned i = 0; i < plan->threads; i++) {
        add_result(result, &all[i]);
        why = why != 0 || all[i].open > 0 ? why : all[i].error;
        why = all[i].error == -1 ? -1 : why;
        generator_finish(&all[i]);
    }
    free(zipf);
    free(all);
    return why == 0 ? 0 : explain(plan, why, error);
}
