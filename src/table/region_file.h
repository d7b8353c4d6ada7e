/* Shared by region.c, region_draft.c and region_file.c only. */
#ifndef WEIR_TABLE_REGION_FILE_H
#define WEIR_TABLE_REGION_FILE_H

#include <limits.h>
#include <sys/stat.h>

#include "table/region.h"

#define REGION_MAGIC "weir\r\n\x1a" /* 7 bytes and the terminator; a text-mode copy breaks it */
#define REGION_FORMAT 2u

/* Returned instead of 0 or an error if the file was made, replaced or removed meanwhile. */
enum { AGAIN = 1 };

/* Returns the checksum of all but the last word, which is the place of the checksum. */
uint64_t region_check(const void *fixed, size_t bytes);

/* Fills in magic, version, sizes and check of *fixed. */
void region_fixed_seal(struct region_fixed *fixed);

/* Puts a new anchor in force, with the identity of the region's own file. */
void region_set_anchor(struct region *r, const struct region_anchor *anchor);

/* Fills *anchor for this moment. */
int region_anchor_now(const struct region_fixed *fixed, struct region_anchor *anchor,
                      struct weir_error *error);

struct region *region_create(struct weir_error *error);
void region_destroy(struct region *r);
int region_map(struct region *r, uint64_t bytes, int flags, struct weir_error *error);

/* Gives a new region its header, its limit and its anchor. */
int region_fill(struct region *r, const struct region_opening *o);

/* Joins the processes whose record locks are on r->fd. */
int region_join(struct region *r, const struct region_opening *o);

/* ---- new files (region_draft.c) ---- */

/* A file that has no place yet. */
struct draft {
    char directory[PATH_MAX];
    char name[PATH_MAX + 16]; /* empty if it has none; then a kill leaves nothing behind */
};

/* Makes the file with all its space and maps it. draft_end() must follow, also after an error. */
int draft_begin(struct draft *d, struct region *r, const struct region_opening *o);

/*
 * If `e`, the result so far, is 0: syncs the file and links it to its path. Otherwise removes it.
 * Returns e, AGAIN if there is a file at the path, or an error.
 */
int draft_end(struct draft *d, const struct region *r, const struct region_opening *o, int e);

/* Allocates blocks for the whole file. Otherwise a full disk would be a SIGBUS at a later store. */
int region_allocate(const struct region *r, const struct region_opening *o);

/* Finds out which file r->fd is. 0 or WEIR_EIO. */
int region_identify(struct region *r, struct stat *st, const struct region_opening *o);

#endif
