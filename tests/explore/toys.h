/* Programs so small that what can come of them is known. */
#ifndef WEIR_EXPLORE_TOYS_H
#define WEIR_EXPLORE_TOYS_H

#include "explore/search.h"

struct toy {
    unsigned users;
    void (*body)(unsigned user);
    bool mute; /* leave the note out of what a state is */
};

/* What toys play with. `note` is a user's own. */
struct toy_memory {
    uint64_t a __attribute__((aligned(16)));
    uint64_t b __attribute__((aligned(16)));
    uint64_t told[USERS_MAX];
    struct lock first, second;
    uint64_t note;
};
extern struct toy_memory toy_memory;

struct subject toy_subject(const struct toy *toy);

extern const struct toy toy_add;     /* reads, then writes one more */
extern const struct toy toy_swap;    /* adds by compare-and-swap, twice */
extern const struct toy toy_cross;   /* writes its own, reads the other's */
extern const struct toy toy_guarded; /* adds to both under a lock */
extern const struct toy toy_wait;    /* one waits a while for the other, pausing */
extern const struct toy toy_embrace; /* takes two locks, each in its own order */
extern const struct toy toy_spin;    /* waits for what nobody does */
extern const struct toy toy_forget;  /* keeps what it read in the note, for later */

#endif
