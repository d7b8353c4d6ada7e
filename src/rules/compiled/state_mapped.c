/*
 * Which file of the state is mapped where, for the handler of a signal that reports an access to a
 * file that another program has truncated (SIGBUS).
 *
 * The handler takes no lock. So an entry stays linked as long as any state file is mapped: one
 * whose limiter is closed is used again for the next one. An entry in use does not change, and the
 * limiter of the interrupted code is in use.
 */
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "rules/compiled/state.h"

struct mapped {
    struct mapped *next;
    uint64_t begin; /* address of the first byte; 0: the entry is free */
    uint64_t bytes;
    char *path;
};

static struct lock changing;
static uint64_t first; /* address of the first entry */

static struct mapped *first_entry(void)
{
    return (struct mapped *)(uintptr_t)load_acquire(&first); /* pairs with take_entry() */
}

static struct mapped *find(uint64_t begin)
{
    struct mapped *m = first_entry();
    while (m != NULL && load_relaxed(&m->begin) != begin) {
        m = m->next;
    }
    return m;
}

/* Returns a free entry; NULL: no memory. */
static struct mapped *take_entry(void)
{
    struct mapped *m = find(0);
    if (m == NULL && (m = calloc(1, sizeof *m)) != NULL) {
        m->next = first_entry();
        store_release(&first, (uint64_t)(uintptr_t)m);
    }
    return m;
}

/* Without memory for an entry, a fault in this file has the default action. */
void state_mapped(const struct state *state, const char *name, const struct weir *limiter)
{
    char path[PATH_MAX];
    size_t bytes;
    const void *begin = weir_memory(limiter, &bytes);
    state_path(state, name, "", path);
    lock_take(&changing, &lock_private);
    struct mapped *m = take_entry();
    if (m != NULL) {
        m->path = strdup(path);
        m->bytes = bytes;
    }
    if (m != NULL && m->path != NULL) {
        store_release(&m->begin, (uint64_t)(uintptr_t)begin); /* pairs with state_file_at() */
    }
    lock_release(&changing);
}

/* Frees all entries if none is in use. */
static void free_unused(void)
{
    for (struct mapped *m = first_entry(); m != NULL; m = m->next) {
        if (load_relaxed(&m->begin) != 0) {
            return;
        }
    }
    struct mapped *m = first_entry();
    store_release(&first, 0);
    while (m != NULL) {
        struct mapped *next = m->next;
        free(m);
        m = next;
    }
}

void state_unmapped(const struct weir *limiter)
{
    size_t bytes;
    const void *begin = weir_memory(limiter, &bytes);
    lock_take(&changing, &lock_private);
    struct mapped *m = begin != NULL ? find((uint64_t)(uintptr_t)begin) : NULL;
    if (m != NULL) {
        store_release(&m->begin, 0);
        free(m->path);
        m->path = NULL;
    }
    free_unused();
    lock_release(&changing);
}

const char *state_file_at(const void *address)
{
    uint64_t at = (uint64_t)(uintptr_t)address;
    for (struct mapped *m = first_entry(); m != NULL; m = m->next) {
        uint64_t begin = load_acquire(&m->begin);
        if (begin != 0 && at >= begin && at - begin < m->bytes) {
            return m->path;
        }
    }
    return NULL;
}
