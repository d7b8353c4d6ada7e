/*
 * Finds limits that do not limit, because the requests that they are for have no value for their
 * key.
 *
 * That a limit is skipped is no fault by itself: in a group, [user] is skipped for anonymous
 * requests, and [ip] applies in its place. A fault is a limit that matched more than
 * UNCOVERED_REQUESTS requests in ten minutes, and was skipped for more than UNCOVERED_PERCENT
 * percent of them while no other limit of its group applied
 * (docs/explanation/decisions/087-a-limit-that-does-not-limit.md). Each such limit gets a warning
 * in the log after each ten minutes. The alert WeirLimitSkipped has the same bounds.
 *
 * Belongs to one thread.
 */
#ifndef WEIR_SERVER_ADMIN_UNCOVERED_H
#define WEIR_SERVER_ADMIN_UNCOVERED_H

#include "server/admin/limit_counts.h"

#define UNCOVERED_NS (10 * 60 * WEIR_SECOND)
#define UNCOVERED_REQUESTS 100
#define UNCOVERED_PERCENT 99
#define UNCOVERED_LINES 20 /* limits that get a line each time; the last line counts the others */

struct uncovered {
    uint64_t due_ns;              /* when the present ten minutes end */
    struct limits_counted before; /* at their beginning */
};

/* Returns the first ten minutes, which begin when a server starts, with all counts at 0. */
static inline struct uncovered uncovered_begin(uint64_t now_ns)
{
    return (struct uncovered){.due_ns = now_ns + UNCOVERED_NS};
}

/*
 * Looks at the limits if that is due, and logs the faults. While the rules are being changed, or
 * without memory, it is due again after a second.
 */
void uncovered_look(struct uncovered *u, const struct server *server, uint64_t now_ns);

void uncovered_finish(struct uncovered *u);

#endif
