/*
 * Timers in order of their due times. Calls have few different deadlines, so timers with about the
 * same length, within a factor of two, share a list that is sorted by time: a new one nearly always
 * belongs at its end. Setting and clearing cost a few ns. If different lengths are mixed within a
 * list, setting walks back through it to keep it sorted.
 */
#ifndef WEIR_REDIS_TIMERS_H
#define WEIR_REDIS_TIMERS_H

#include <stdint.h>

#include "base/maths.h"
#include "redis/list.h"

#define TIMERS_LISTS 64

struct timers {
    struct list by_length[TIMERS_LISTS]; /* index: number of bits of the length, at most 63 */
    uint64_t used;                       /* a bit for each list that may hold something */
};

struct timer {
    struct list node;
    uint64_t due_ns;
    int kind; /* chosen by the owner */
};

void timers_init(struct timers *t);

static inline void timer_init(struct timer *timer, int kind)
{
    list_init(&timer->node);
    timer->due_ns = UINT64_MAX;
    timer->kind = kind;
}

static inline struct timer *timer_at(struct list *node)
{
    return LIST_OF(node, struct timer, node);
}

/* Sets a timer, whether it was set before or not. UINT64_MAX clears it. */
static inline void timer_set(struct timers *t, struct timer *timer, uint64_t due_ns,
                             uint64_t now_ns)
{
    list_take(&timer->node);
    timer->due_ns = due_ns;
    if (due_ns == UINT64_MAX) {
        return;
    }
    uint64_t bits = min_u64(bits_for(sub_floor0(due_ns, now_ns)), TIMERS_LISTS - 1);
    struct list *head = &t->by_length[bits];
    struct list *before = head->prev;
    while (before != head && timer_at(before)->due_ns > due_ns) {
        before = before->prev;
    }
    list_put(before, &timer->node);
    t->used |= UINT64_C(1) << bits;
}

static inline void timer_clear(struct timer *timer)
{
    list_take(&timer->node);
    timer->due_ns = UINT64_MAX;
}

uint64_t timers_due(const struct timers *t); /* first due time; UINT64_MAX: no timer is set */

/* Clears and returns a timer that is due by now_ns; NULL: none. */
struct timer *timers_pop(struct timers *t, uint64_t now_ns);

#endif
