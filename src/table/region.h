/*
 * A region is where a table lives: private memory, shared memory or a file, always after the same
 * header.
 *
 * A FILE is made without a name and linked into place when it is complete. Every opener holds a
 * shared flock for as long as it has the file open. Within one boot nothing has to be repaired on
 * open, because locks inside the file survive their owners (base/lock.h). An opener that gets the
 * flock exclusively is alone, so every lock in the file belongs to a dead process: it frees them
 * all. In another boot, or in a copy, it also repairs interrupted moves and anchors time again. The
 * new anchor, which names boot and file, is committed last: if the opener is killed before that,
 * the next one repeats all of it.
 *
 * ONE REGION PER FILE AND PROCESS. Closing any descriptor of a file drops the record locks by which
 * other processes see that this one lives. So a file that is opened twice is one region with one
 * descriptor, which is closed with its last user. (A program that opens and closes the file itself
 * loses those locks; weir.h says so.)
 */
#ifndef WEIR_TABLE_REGION_H
#define WEIR_TABLE_REGION_H

#include <weir.h>

#include "base/clock.h"
#include "table/table.h"

/* What is fixed when a limiter is made. Openers compare it; a checksum protects it. */
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
 * Identifies a file. A file system may give a new file the inode number of a removed one. The time
 * of birth and the kernel's handle of the file, which has a generation, tell the two apart.
 */
struct region_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t born_ns; /* 0 if not known */
    uint64_t handle;  /* a hash of the handle; 0 if not known */
};

/* Ties the time line to a boot of a machine, and the bytes to their file. */
struct region_anchor {
    struct boot_id boot;
    struct region_identity identity;
    uint64_t unix_ns; /* the time line's value at boot_ns */
    uint64_t boot_ns; /* CLOCK_BOOTTIME of the first time namespace */
};

#define REGION_VERSIONS 16
#define REGION_SPEC_MAX 64

/* One immutable version of the limit. The layer above gives the bytes their meaning. */
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
     * spec[version % REGION_VERSIONS] is in force. It is written before the version is stored, and
     * not again for REGION_VERSIONS - 1 changes.
     */
    uint64_t version __attribute__((aligned(64)));
    struct region_spec spec[REGION_VERSIONS];
    struct table_counts counts;
};

struct region {
    struct region *next; /* the next one of the files that this process has open */
    struct region_identity identity;
    unsigned users; /* limiters of this process that share the region */
    struct region_header *head;
    void *body; /* table_bytes(shape) */
    uint64_t bytes;
    int fd; /* -1 for private memory */
    struct lock_owner own;
    struct lock_owner *owner; /* &own, or &lock_private for private memory */
};

/* What to open, and what the layer above does to the region before anybody can use it. */
struct region_opening {
    const struct region_fixed *fixed; /* the header of a new region */
    const char *path;                 /* of a file */
    bool shared;                      /* of memory */
    unsigned flags;                   /* options.flags */
    bool made;                        /* result: the region is new */
    struct weir_error *error;         /* its text does not name the file */
    void *arg;                        /* for the functions below */

    /* Writes the first version of the limit into a new region. */
    int (*fill)(const struct region_opening *o, struct region *r);

    /* Returns an error if an existing region is not what the caller wants. Changes nothing. */
    int (*examine)(const struct region_opening *o, struct region *r);

    /*
     * Frees the locks of a region that no other process uses. With an anchor, which the region will
     * get, also repairs it: it is a copy, or of another boot. An error leaves the region as it was.
     */
    int (*recover)(const struct region_opening *o, struct region *r,
                   const struct region_anchor *anchor);
};

/* The bytes before the body. */
#define REGION_HEADER_BYTES ((sizeof(struct region_header) + 4095) & ~(size_t)4095)

/* Fills in magic, version, sizes, secret, generation and check of *fixed. 0 or WEIR_EIO. */
int region_fixed_finish(struct region_fixed *fixed, struct weir_error *error);

/* Makes a region of memory. WEIR_ENOMEM, WEIR_EIO, or what fill() says. */
int region_make_memory(struct region_opening *o, struct region **r);

/*
 * Opens the file, or makes it. The header of an existing file is checked, but examine() compares it
 * with what the caller wants.
 */
int region_open_file(struct region_opening *o, struct region **r);

/* Unmaps and closes the region with its last user. A file stays. NULL is allowed. */
void region_close(struct region *r);

/* Returns the anchor in force. */
const struct region_anchor *region_anchor(const struct region *r);

/* Returns whether the wall clock was not set when the anchor was made: it was before the epoch. */
bool region_is_adrift(const struct region *r);

/*
 * Anchors time again if it is adrift and the wall clock has been set since, to a time that is ahead
 * of the time line and at most `last_ns`. The caller holds head->change.
 */
void region_anchor_again(struct region *r, uint64_t last_ns);

#endif
