/* Sentences about limits: "login denies all, search is divided by 2 nodes". */
#ifndef WEIR_SERVER_STATUS_SENTENCE_H
#define WEIR_SERVER_STATUS_SENTENCE_H

#include <stddef.h>

#include "common/buffer.h"

#define PHRASE_NAMES 3 /* limits that a phrase names; of the others it says how many they are */

/* What is said of some limits. */
struct phrase {
    const char *one;  /* "denies all" */
    const char *many; /* "deny all" */
    const char *names[PHRASE_NAMES];
    size_t count; /* of limits; 0: the phrase is left out */
};

/* Adds a limit. The name is kept by reference. */
void phrase_add(struct phrase *p, const char *name);

/* Puts the names: "a", "a and b", "a, b and c", "a, b, c and 9 more". */
void phrase_put_names(struct buffer *out, const struct phrase *p);

/* Puts the phrases. Returns false if there was none to put. */
bool sentence_put(struct buffer *out, const struct phrase *phrases, size_t count);

#endif
