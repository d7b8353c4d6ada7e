/* What somebody probably meant to write. */
#ifndef WEIR_RULES_VALUE_SUGGEST_H
#define WEIR_RULES_VALUE_SUGGEST_H

#include "common/text.h"

/*
 * The number of letters to insert, delete, change or swap with a neighbour; at
 * most SUGGEST_FAR, also for words too long to be misspelt.
 */
#define SUGGEST_FAR 255
unsigned suggest_distance(struct text a, const char *b);

/* A third of the word may be wrong, at least a letter: "brust" is "burst", "ttl" not "tiers". */
static inline unsigned suggest_limit(struct text word)
{
    return word.len < 3 ? 1 : (unsigned)word.len / 3;
}

/* The nearest of the words that were offered so far, NULL if none is near. */
struct suggestion {
    struct text word; /* what was written */
    const char *nearest;
    unsigned distance; /* of it; at first, one more than near */
};

static inline struct suggestion suggest_begin(struct text word)
{
    return (struct suggestion){word, NULL, suggest_limit(word) + 1};
}

/* Of two that are as near the first counts. */
void suggest_offer(struct suggestion *s, const char *known);

#endif
