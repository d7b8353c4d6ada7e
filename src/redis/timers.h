/*
 * What is due when. Calls have few different deadlines, so what is due after about the same time, within
 * a factor of two, shares a list in order of time: a new one nearly always belongs at its end. Setting
 * and clearing cost a few ns; of lengths that are mixed within a list a walk, in a right order still.
 */
#ifndef WEIR_REDIS_TIMERS_H
#define WEIR_REDIS_TIMERS_H

#include <stdint.h>

#include "redis/list.h"

#define TIMERS_LISTS 65

struct timers {
    struct list by_length[TIMERS_LISTS]; /* bits of the length */
    uint64_t used[2];                    /* a bit for each list that may hold something */
};

struct timer {
    struct list node;
    uint64_t due_ns;
    int kind; /* the owner's */
};

void timers_init(struct timers *t);

static inline void timer_init(struct timer *timer, int kind)
{
    list_init(&timer->node);
    timer->due_ns = UINT64_MAX;
    timer->kind = kind;
}

/* Set before or not. UINT64_MAX: clear it. */
void timer_set(struct timers *t, struct timer *timer, uint64_t due_ns, uint64_t now_ns);

static inline void timer_clear(struct timer *timer)
{
    list_take(&timer->node);
    timer->due_ns = UINT64_MAX;
}

uint64_t timers_due(const struct timers *t); /* UINT64_MAX: nothing is */

/* One that is due by now, cleared; NULL: none. */
struct timer *timers_pop(struct timers *t, uint64_t now_ns);

#endif
