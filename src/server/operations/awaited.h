/*
 * What a request keeps until its answer has come: the question of a struct pending (pending.h),
 * which holds it in its memory.
 */
#ifndef WEIR_SERVER_OPERATIONS_AWAITED_H
#define WEIR_SERVER_OPERATIONS_AWAITED_H

#include "server/loop/pending.h"
#include "server/operations/key_ask.h"

struct call;

struct awaited {
    struct answer answer;
    struct call *call;  /* the call of Envoy's rate limit service, if it is one */
    struct key_ask key; /* the question, if it is about one key of one limit */
};

static inline struct awaited *awaited_of(const struct pending *p)
{
    return p->question;
}

/* Returns a new object, or the thread's spare one; NULL if out of memory. */
static inline struct pending *awaited_create(struct worker *w)
{
    return pending_create(w, sizeof(struct awaited));
}

static inline struct pending *awaited_spare(struct worker *w)
{
    return pending_spare(w, sizeof(struct awaited));
}

#endif
