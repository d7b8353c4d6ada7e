/*
 * What fork does to private tables: the child gets a copy as of one moment, in
 * which locks may be held by threads that do not exist there. A fork handler
 * makes the locks of the copy anew; what those threads were doing is repaired by
 * whoever looks, as after a kill (G5). The handler holds no stripe over fork: it
 * would deadlock with an application that has a lock of its own both over fork
 * and over its calls.
 */
#ifndef WEIR_TABLE_FORK_H
#define WEIR_TABLE_FORK_H

#include "table/table.h"

/* A private table in the list of this process. Zero it before fork_watch(). */
struct fork_watch {
    struct fork_watch *next;
    struct fork_watch *previous;
    struct table *table; /* NULL: not in the list */
    struct lock *change;
};

/* 0 or WEIR_ENOMEM. */
int fork_watch(struct fork_watch *watch, struct table *table, struct lock *change);
void fork_unwatch(struct fork_watch *watch);

#endif
