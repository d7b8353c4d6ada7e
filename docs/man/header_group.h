/* Declarations of a header that belong together, on its manual page. */
#ifndef WEIR_DOCS_HEADER_GROUP_H
#define WEIR_DOCS_HEADER_GROUP_H

#include "header.h"

#define HEADER_GROUP_MAX 32

/* Declarations without a blank line between them, and the comment before them. */
struct header_group {
    struct weir_text comment;
    struct header_item items[HEADER_GROUP_MAX];
    struct weir_text notes[HEADER_GROUP_MAX]; /* the comment beside each */
    size_t count;
    bool first; /* of its section */
};

/* Puts a group, and empties it. */
void header_group_put(struct header_group *g);

/* Begins an item of a list. */
void header_put_tag(struct weir_text tag);

/* Copies a text in one line to `to`. */
struct weir_text header_flat(struct weir_text text, char *to, size_t size);

#endif
