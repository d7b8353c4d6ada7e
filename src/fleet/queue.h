/*
 * Questions on their way from one thread to another: a stack, so that any thread pushes with one
 * compare-and-swap. The thread that takes them takes all at once and reverses them.
 *
 * queue_push() releases and queue_take() acquires: the taker sees a question, and its memory, as
 * they were when it was pushed.
 */
#ifndef WEIR_FLEET_QUEUE_H
#define WEIR_FLEET_QUEUE_H

#include "common/remote.h"

struct question_queue {
    struct remote_question *top;
};

/* Pushes a question. Returns true if the queue was empty: then the taker must be woken. */
static inline bool queue_push(struct question_queue *queue, struct remote_question *q)
{
    struct remote_question *top = __atomic_load_n(&queue->top, __ATOMIC_RELAXED);
    do {
        q->next = top;
    } while (!__atomic_compare_exchange_n(&queue->top, &top, q, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
    return top == NULL;
}

/* Takes all questions, and returns them with the oldest first. */
static inline struct remote_question *queue_take(struct question_queue *queue)
{
    struct remote_question *q = __atomic_exchange_n(&queue->top, NULL, __ATOMIC_ACQUIRE);
    struct remote_question *turned = NULL;
    while (q != NULL) {
        struct remote_question *next = q->next;
        q->next = turned;
        turned = q;
        q = next;
    }
    return turned;
}

#endif
