#include "common/block_notes.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/lock.h"

/* One for the notes of all limiters: blocks are rare, and it takes a cache line of its own. */
static struct lock notes_lock;

/* Removes and frees the note that *at points to. */
static void remove_note(struct block_notes *notes, struct block_note **at)
{
    struct block_note *note = *at;
    *at = note->next;
    notes->count--;
    free(note);
}

static void remove_key(struct block_notes *notes, struct weir_text key)
{
    struct block_note **at = &notes->first;
    while (*at != NULL && ((*at)->key_len != key.len || memcmp((*at)->key, key.at, key.len) != 0)) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        remove_note(notes, at);
    }
}

static void remove_over(struct block_notes *notes, uint64_t now_ns)
{
    for (struct block_note **at = &notes->first; *at != NULL;) {
        if ((*at)->until_ns <= now_ns) {
            remove_note(notes, at);
        } else {
            at = &(*at)->next;
        }
    }
}

static void insert(struct block_notes *notes, struct weir_text key, const struct block_note *about)
{
    struct block_note *note = malloc(sizeof *note + key.len);
    if (note == NULL) {
        count_shared(&notes->dropped, 1);
        return;
    }
    *note = *about;
    note->key_len = key.len;
    memcpy(note->key, key.at, key.len);
    note->next = notes->first;
    notes->first = note;
    notes->count++;
}

void block_notes_put(struct block_notes *notes, struct weir_text key,
                     const struct block_note *about)
{
    lock_take(&notes_lock, &lock_private);
    remove_key(notes, key);
    if (notes->count >= BLOCK_NOTES_MAX) {
        remove_over(notes, about->since_ns);
    }
    if (notes->count < BLOCK_NOTES_MAX) {
        insert(notes, key, about);
    } else {
        count_shared(&notes->dropped, 1);
    }
    lock_release(&notes_lock);
}

void block_notes_drop(struct block_notes *notes, struct weir_text key)
{
    lock_take(&notes_lock, &lock_private);
    remove_key(notes, key);
    lock_release(&notes_lock);
}

int block_notes_each(struct block_notes *notes, uint64_t now_ns, block_note_fn fn, void *arg)
{
    int e = 0;
    lock_take(&notes_lock, &lock_private);
    for (const struct block_note *n = notes->first; e == 0 && n != NULL; n = n->next) {
        e = n->until_ns > now_ns ? fn(arg, n) : 0;
    }
    lock_release(&notes_lock);
    return e;
}

void block_notes_finish(struct block_notes *notes)
{
    while (notes->first != NULL) {
        remove_note(notes, &notes->first);
    }
}
