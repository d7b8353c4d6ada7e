/*
 * Notes about the blocked keys of one limiter: the keys themselves, the client or limit that
 * blocked them, and the reason. The limiter's table has only hashes and ends. Operators read lists
 * of these notes; no decision depends on them. A limiter has at most BLOCK_NOTES_MAX notes; a block
 * for which there is no room is in force all the same, and `dropped` counts it.
 *
 * Any thread may call these functions; all take one lock. The list is changed by one store each, so
 * that a child of fork() finds it whole.
 */
#ifndef WEIR_COMMON_BLOCK_NOTES_H
#define WEIR_COMMON_BLOCK_NOTES_H

#include <stdbool.h>

#include "common/text.h"

#define BLOCK_NOTES_MAX 1000
#define BLOCK_BY_MAX 80 /* bytes, with the 0 after them; longer texts are cut */
#define BLOCK_WHY_MAX 128

struct block_note {
    struct block_note *next; /* made before this one */
    uint64_t since_ns;       /* Unix time */
    uint64_t until_ns;       /* WEIR_FOREVER: until it is unblocked */
    bool ban;
    char by[BLOCK_BY_MAX];
    char why[BLOCK_WHY_MAX]; /* "": not said */
    size_t key_len;
    char key[];
};

/* All 0: no notes. */
struct block_notes {
    struct block_note *first;
    uint64_t count;
    uint64_t dropped;
};

/* Notes the block of a key, in place of the key's last one. `about` has neither key nor next. */
void block_notes_put(struct block_notes *notes, struct weir_text key,
                     const struct block_note *about);

/* Drops the note of a key, if there is one. */
void block_notes_drop(struct block_notes *notes, struct weir_text key);

/*
 * Calls fn with each note that is not over at now_ns, the newest first, under the lock. Stops if fn
 * does not return 0. Returns the last result of fn.
 */
typedef int (*block_note_fn)(void *arg, const struct block_note *note);
int block_notes_each(struct block_notes *notes, uint64_t now_ns, block_note_fn fn, void *arg);

void block_notes_finish(struct block_notes *notes);

#endif
