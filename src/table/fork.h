/*
 * What fork does to private tables: the child gets a copy. Pages are copied one
 * after the other while other threads run, so the fork handler holds every
 * stripe meanwhile: no resident is half-way between two pages, no record half
 * written. In the child the locks, held by a thread that does not exist there,
 * are made anew.
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
