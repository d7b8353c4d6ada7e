/* The real lock under the explorer: users take it, count, and may die anywhere. */
#ifndef WEIR_EXPLORE_LOCK_MODEL_H
#define WEIR_EXPLORE_LOCK_MODEL_H

#include "explore/search.h"

struct lock_model {
    struct lock lock;
    uint64_t count;  /* changed under the lock, without a compare-and-swap */
    uint64_t inside; /* the user that is, plus one */
    uint64_t told[USERS_MAX];
    uint64_t bed[USERS_MAX];
    unsigned rounds;
    bool wakes_only;
};
extern struct lock_model lock_model;

/* Each user takes the lock `rounds` times. Without kills a sleep ends by a wakeup only: a lost
 * one is a deadlock. */
struct found lock_model_explore(unsigned users, unsigned rounds, unsigned kills);

#endif
