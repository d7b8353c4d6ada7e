/* Shared by region.c, region_draft.c, region_file.c and format1.c only. */
#ifndef WEIR_TABLE_REGION_FILE_H
#define WEIR_TABLE_REGION_FILE_H

#include <limits.h>
#include <sys/stat.h>

#include "table/region.h"

#define REGION_MAGIC "weir\r\n\x1a" /* 7 bytes and the terminator; a text-mode copy breaks it */
#define REGION_FORMAT 2u

/* One call of region_open_file(). */
struct file_opening {
    const char *path;
    const struct region_fixed *fixed; /* for a new file */
    unsigned flags;
    const struct region_hooks *hooks;
    bool *made;
    struct weir_error *error;
};

/* Beside 0 and errors: the file was made, replaced or removed meanwhile; look again. */
enum { AGAIN = 1 };

/* Of everything in front of the checksum, which is the last word of `bytes`. */
uint64_t region_check(const void *fixed, size_t bytes);

/* Completes magic, version, sizes and check of *fixed. */
void region_fixed_seal(struct region_fixed *fixed);

void region_set_anchor(struct region *r, const struct region_anchor *anchor);
int region_anchor_now(const struct region_fixed *fixed, struct region_anchor *anchor,
                      struct weir_error *error);

struct region *region_create(struct weir_error *error);
void region_destroy(struct region *r);
int region_map(struct region *r, uint64_t bytes, int flags, struct weir_error *error);

/* Gives a new region its header, its limit and its anchor. */
int region_fill(struct region *r, const struct region_fixed *fixed,
                const struct region_hooks *hooks, struct weir_error *error);

/* Joins the processes that have their record locks on r->fd. path: for the error, or NULL. */
int region_join(struct region *r, const char *path, struct weir_error *error);

/* ---- new files (region_draft.c) ---- */

/* A file on its way to its path. */
struct draft {
    bool replaces; /* the file that is there, which takes a name to rename from */
    char directory[PATH_MAX];
    char name[PATH_MAX + 16]; /* empty: it has none, and a kill leaves nothing behind */
};

/* Makes the file with all its space and maps it. After an error, too, draft_end() is due. */
int draft_begin(struct draft *d, struct region *r, const struct file_opening *o, uint64_t bytes);

/*
 * Syncs the file and gives it its place, if `e`, the result so far, is 0; otherwise removes it.
 * Returns e, AGAIN if the place is taken, or an error.
 */
int draft_end(struct draft *d, const struct region *r, const struct file_opening *o, int e);

/* Gives the whole file real blocks: without, a full disk would be a SIGBUS at some later store. */
int region_allocate(const struct region *r, const struct file_opening *o);

/* Finds out which file r->fd is. 0 or WEIR_EIO. */
int region_identify(struct region *r, struct stat *st, const struct file_opening *o);

/* ---- files of an earlier version (format1.c) ---- */

#define FORMAT1_HEADER_BYTES 4096

/* Makes the present layout of a header of format 1, and returns the check that it should have. */
uint64_t format1_widen(struct region_fixed *f);

/*
 * Puts a file of the present format, with all keys and blocks, in the place of the file of format 1
 * that fd is and that has the widened header *old. The caller has the flock of fd exclusively. 0,
 * or an error that leaves the file as it was.
 */
int format1_convert(int fd, const struct region_fixed *old, const struct file_opening *o);

#endif
