/*
 * Notices: what operators must know at once, such as a store that is away, as rows (notices.def),
 * and which of them there are now. The operators' thread looks about once a second, and
 * whenever it is asked for the status. Any thread may read the result. A server without a
 * listener for operators does not look: reading the numbers waits for reloads, for which
 * threads of clients must not wait.
 */
#ifndef WEIR_SERVER_STATUS_NOTICES_H
#define WEIR_SERVER_STATUS_NOTICES_H

#include <jansson.h>

#include "server/status/numbers.h"

/* A certificate that ends within this time has a notice; the alerts have the same bound. */
#define CERTIFICATE_SOON_NS (7 * WEIR_DAY)

/* The share of answers without the store, in percent, from which there is a notice. */
#define DEGRADED_PERCENT 1

enum notice {
#define NOTICE(id, ...) NOTICE_##id,
#include "server/status/notices.def"
#undef NOTICE
    NOTICES
};

struct notice_row {
    const char *name;
    const char *severity;
    const char *title;
    const char *open;
    bool since;
    const char *now;
    const char *act;
    const char *alert;
};

extern const struct notice_row notice_rows[NOTICES];

struct notices;

struct notices *notices_create(void); /* returns NULL if out of memory */
void notices_destroy(struct notices *c);

/*
 * Notes the end of a reload. `stays`: what it has left as it was, "the old rules stay", and why;
 * NULL: nothing. Any thread may call it.
 */
void notices_reloaded(struct notices *c, const char *stays, const char *why, uint64_t now_ns);

/* Finds out which notices there are at a Unix time, from numbers that were read just before. */
void notices_update(struct notices *c, const struct numbers *n, uint64_t now_ns);

/* Reads the numbers and does the same, if that is due. For the operators' thread. */
void notices_look(const struct server *server, uint64_t now_ns);

/*
 * Returns the notices in the order of the rows, for a role: an array of {"name","severity",
 * "title","since_ms" (null: it does not matter),"text","why" (null: not known, or not for the
 * role), "act"}. NULL: out of memory.
 */
json_t *notices_json(struct notices *c, enum role role);

/* Puts a line for each notice, in words for everybody: "store away since 2026-11-19T20:51:22Z". */
void notices_put_open(struct notices *c, struct buffer *out);

#endif
