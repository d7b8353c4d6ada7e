/* A function for each notice that finds out whether it is there, and composes its sentence. */
#ifndef WEIR_SERVER_STATUS_NOTICE_FIND_H
#define WEIR_SERVER_STATUS_NOTICE_FIND_H

#include "server/status/notices.h"
#include "server/status/troubles.h"

/* A reload that has failed. */
struct failed_reload {
    bool is;
    uint64_t since_ns; /* when the first one failed after one that did not */
    char stays[64];    /* these two: of the last one */
    char why[sizeof((struct weir_error){0}.text)];
};

struct notice_view {
    const struct numbers *n;
    const struct failed_reload *reload;
    const struct troubles *troubles;
    uint64_t now_ns;
    struct buffer *text; /* what follows the title; empty at first */
    const char *why;     /* for the role admin; "" at first */
    uint64_t since_ns;   /* when it began; at first now_ns, for those that do not know */
};

/* Returns whether the store of a fleet is away. */
bool notice_store_away(const struct numbers *n);

/* Each returns whether the notice is there. If not, what it has put is not used. */
typedef bool (*notice_find_fn)(struct notice_view *v);
extern const notice_find_fn notice_finds[NOTICES];

#endif
