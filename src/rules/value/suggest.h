/* Finds the word that was probably meant. */
#ifndef WEIR_RULES_VALUE_SUGGEST_H
#define WEIR_RULES_VALUE_SUGGEST_H

#include "common/text.h"

/*
 * Returns the number of letters to insert, delete, change or swap with a neighbour; SUGGEST_FAR for
 * words that are too long to be misspelt.
 */
#define SUGGEST_FAR 255
unsigned suggest_distance(struct weir_text a, const char *b);

/*
 * Returns how many letters may be wrong: a third of the word, at least one. "brust" is near
 * "burst", "ttl" is not near "tiers".
 */
static inline unsigned suggest_limit(struct weir_text word)
{
    return word.len < 3 ? 1 : (unsigned)word.len / 3;
}

/* The nearest of the words that were offered so far; NULL if none is near. */
struct suggestion {
    struct weir_text word; /* what was written */
    const char *nearest;
    unsigned distance; /* of `nearest`; at first, one more than is near */
};

static inline struct suggestion suggest_begin(struct weir_text word)
{
    return (struct suggestion){word, NULL, suggest_limit(word) + 1};
}

/* Offers a word. If two words are equally near, the first is kept. */
void suggest_offer(struct suggestion *s, const char *known);

#endif
