#include "redis/timers.h"

void timers_init(struct timers *t)
{
    for (size_t i = 0; i < TIMERS_LISTS; i++) {
        list_init(&t->by_length[i]);
    }
    t->used = 0;
}

/* Returns the list whose first timer is due first; NULL if all are empty. */
static const struct list *soonest(const struct timers *t)
{
    const struct list *best = NULL;
    for (uint64_t left = t->used; left != 0; left &= left - 1) {
        const struct list *head = &t->by_length[__builtin_ctzll(left)];
        if (!list_is_empty(head) &&
            (best == NULL || timer_at(head->next)->due_ns < timer_at(best->next)->due_ns)) {
            best = head;
        }
    }
    return best;
}

/* Clears the `used` bits of lists that have become empty. */
static void tidy(struct timers *t)
{
    for (uint64_t left = t->used; left != 0; left &= left - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(left);
        if (list_is_empty(&t->by_length[bit])) {
            t->used &= ~(UINT64_C(1) << bit);
        }
    }
}

uint64_t timers_due(const struct timers *t)
{
    const struct list *head = soonest(t);
    return head != NULL ? timer_at(head->next)->due_ns : UINT64_MAX;
}

struct timer *timers_pop(struct timers *t, uint64_t now_ns)
{
    const struct list *head = soonest(t);
    if (head == NULL || timer_at(head->next)->due_ns > now_ns) {
        tidy(t);
        return NULL;
    }
    struct timer *timer = timer_at(head->next);
    timer_clear(timer);
    return timer;
}
