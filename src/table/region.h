/*
 * Where a table lives: private memory, shared memory or a file, always after the same header.
 *
 * A FILE is made aside and linked into place complete. Every opener holds a shared flock for as
 * long as it has the file open. Within one boot nothing has to be put right on open: locks inside
 * the file survive their owners (base/lock.h). An opener that gets the flock exclusively is alone,
 * so every lock in the file is a dead process's: it frees them all. In another boot, or in a copy,
 * it also repairs what was being moved and re-anchors time. The new anchor, which names boot and
 * file, is committed last: if the opener is killed before, the next one does it all again.
 *
 * ONE REGION PER FILE AND PROCESS. Closing any descriptor of a file drops the record locks by which
 * others see that the process lives. So a file that is opened twice is one region with one
 * descriptor, closed with the last of its users. (A program that opens and closes the file itself
 * loses those locks; weir.h says so.)
 */
#ifndef WEIR_TABLE_REGION_H
#define WEIR_TABLE_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/clock.h"
#include "base/hash.h"
#include "table/table.h"

/* What is fixed when a limiter is made. Compared by openers, protected by a checksum. */
struct region_fixed {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t total_bytes;
    struct table_shape shape;
    int32_t algorithm;
    int32_t hash;
    int32_t align;
    uint32_t explicit_time;
    uint32_t shift;
    uint32_t padding;
    uint64_t capacity;
    uint64_t period_ns;
    uint64_t offset_ns;
    int64_t epoch_ns;    /* time 0 of the words, in Unix ns; below 0 only for explicit times */
    uint64_t generation; /* random */
    struct hash_secret secret;
    uint64_t check; /* over all of the above */
};

/*
 * Which file this is. A file system may give a new file the inode number of a removed one; the time
 * of birth and the kernel's handle of the file, which has a generation, tell them apart.
 */
struct region_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t born_ns; /* 0: not known */
    uint64_t handle;  /* a hash of it; 0: not known */
};

/* Ties the time line to a boot of a machine, and the bytes to their file. */
struct region_anchor {
    struct boot_id boot;
    struct region_identity identity;
    uint64_t unix_ns; /* the time line's value ... */
    uint64_t boot_ns; /* ... at this CLOCK_BOOTTIME of the first time namespace */
};

#define REGION_VERSIONS 16
#define REGION_SPEC_MAX 64

/* One immutable version of the limit; the bytes are the upper layer's. */
struct region_spec {
    unsigned char bytes[REGION_SPEC_MAX];
} __attribute__((aligned(64)));

struct region_header {
    struct region_fixed fixed;
    struct region_anchor anchor[2];
    uint64_t anchor_commit; /* anchor[anchor_commit & 1] is in force */
    uint64_t last_opener;   /* the last number that was given to a process (base/lock.h) */
    struct lock change;     /* serialises changes of the limit */
    /*
     * spec[version % REGION_VERSIONS] is in force. Written before the version is stored, and not
     * again for REGION_VERSIONS - 1 changes.
     */
    uint64_t version __attribute__((aligned(64)));
    struct region_spec spec[REGION_VERSIONS];
    struct table_counts counts;
};

struct region {
    struct region *next; /* files: of those that this process has open ... */
    struct region_identity identity;
    unsigned users; /* ... and by how many limiters */
    struct region_header *head;
    void *body; /* table_bytes(shape) */
    uint64_t bytes;
    int fd; /* -1: private memory */
    struct lock_owner own;
    struct lock_owner *owner; /* &own; private memory: &lock_private */
};

/*
 * What the layer above does to regions:
 * fill      a new one, before anybody else can see it: the first version of the limit.
 * examine   an existing one: is it what the caller wants? Changes nothing.
 * recover   one of another boot or a copy, with nobody else using it, which will
 *           get `anchor`: an error leaves it as it was, so check before acting.
 */
struct region_hooks {
    int (*fill)(void *arg, struct region *r, struct weir_error *error);
    int (*examine)(void *arg, struct region *r, struct weir_error *error);
    int (*recover)(void *arg, struct region *r, const struct region_anchor *anchor,
                   struct weir_error *error);
    void *arg;
    bool always_recover; /* also what is of this boot, if nobody else has it open */
};

/* Bytes in front of the body. */
#define REGION_HEADER_BYTES ((sizeof(struct region_header) + 4095) & ~(size_t)4095)

/* Completes magic, version, sizes, secret, generation and check of *fixed. 0 or WEIR_EIO. */
int region_fixed_finish(struct region_fixed *fixed, struct weir_error *error);

/* WEIR_ENOMEM, WEIR_EIO. flags: WEIR_PREFAULT, WEIR_HUGE_PAGES. */
int region_make_memory(struct region **r, const struct region_fixed *fixed, bool shared,
                       unsigned flags, const struct region_hooks *hooks, struct weir_error *error);

/*
 * Opens the file, or makes it from *fixed. *made tells which. An existing file is validated in
 * itself but not compared with *fixed: that is the caller's.
 */
int region_open_file(struct region **r, const char *path, const struct region_fixed *fixed,
                     unsigned flags, const struct region_hooks *hooks, bool *made,
                     struct weir_error *error);

/* Unmaps and closes with the last user. A file stays. NULL is allowed. */
void region_close(struct region *r);

/* The anchor in force. */
const struct region_anchor *region_anchor(const struct region *r);

/* True if the wall clock had not been set when the anchor was made: it said less than the epoch. */
bool region_is_adrift(const struct region *r);

/*
 * Anchors time anew if it is adrift and the wall clock has been set since, to what lies ahead of the
 * time line and at most at `last_ns`. Under head->change.
 */
void region_anchor_again(struct region *r, uint64_t last_ns);

#endif
