#include "load/load_progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/maths.h"
#include "cli/output/progress_bar.h"

/* Returns the sum of the replies of all threads. */
static uint64_t replies_of(const struct load_progress *p)
{
    uint64_t replies = 0;
    for (unsigned i = 0; i < p->plan->threads; i++) {
        replies += load_relaxed(&p->generators[i]->replies);
    }
    return replies;
}

/* Draws the share of the requests, if the plan has a number of them, otherwise that of the time. */
static void draw(const struct load_progress *p, uint64_t drawn, uint64_t elapsed_ns)
{
    const struct load_plan *plan = p->plan;
    uint64_t replies = replies_of(p);
    char text[96];
    (void)snprintf(text, sizeof text, "%" PRIu64 " replies, %" PRIu64 "/s", replies,
                   mul_div(replies - drawn, WEIR_SECOND, PROGRESS_BAR_NS));
    if (plan->requests > 0) {
        progress_bar_draw(replies, plan->requests, text);
    } else {
        progress_bar_draw(elapsed_ns, plan->warmup_ns + plan->duration_ns, text);
    }
}

static void *run(void *arg)
{
    struct load_progress *p = arg;
    uint64_t next_ns = p->begin_ns;
    uint64_t drawn = 0;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->ended) {
        next_ns += PROGRESS_BAR_NS;
        struct timespec until = {(time_t)(next_ns / WEIR_SECOND), (long)(next_ns % WEIR_SECOND)};
        while (!p->ended && clock_monotonic_ns() < next_ns) {
            (void)pthread_cond_timedwait(&p->changed, &p->lock, &until);
        }
        draw(p, drawn, next_ns - p->begin_ns);
        drawn = replies_of(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    progress_bar_clear();
    return NULL;
}

void load_progress_begin(struct load_progress *p)
{
    pthread_condattr_t clock;
    p->begin_ns = clock_monotonic_ns();
    if (!progress_bar_is_seen() || pthread_condattr_init(&clock) != 0) {
        return;
    }
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    p->is_on = pthread_create(&p->id, NULL, run, p) == 0;
}

void load_progress_end(struct load_progress *p)
{
    if (!p->is_on) {
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    p->ended = true;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->id, NULL);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
}
