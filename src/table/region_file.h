/* Shared by region.c, region_file.c and format1.c only. */
#ifndef WEIR_TABLE_REGION_FILE_H
#define WEIR_TABLE_REGION_FILE_H

#include <limits.h>

#include "table/region.h"

#define REGION_MAGIC "weir\r\n\x1a" /* 7 bytes and the terminator; a text-mode copy breaks it */
#define REGION_FORMAT 2u

/* Of everything in front of the checksum, which is the last word of `bytes`. */
uint64_t region_check(const void *fixed, size_t bytes);
void region_set_anchor(struct region *r, const struct region_anchor *anchor);
int region_anchor_now(const struct region_fixed *fixed, struct region_anchor *anchor,
                      struct weir_error *error);
struct region *region_create(struct weir_error *error);
void region_destroy(struct region *r);
int region_map(struct region *r, uint64_t bytes, int flags, int fd, struct weir_error *error);

/* ---- new files (region_draft.c) ---- */

/* A file on its way to `path`. */
struct draft {
    const char *path;
    char name[PATH_MAX + 16]; /* empty: it has none, and a kill leaves nothing behind */
};

/* A descriptor, or -1. `named`: it will replace a file, which takes a name of its own. */
int draft_open(struct draft *d, bool named);

/* Gives the file its space and its size, and maps it. */
int draft_map(struct region *r, uint64_t bytes, const char *path, struct weir_error *error);

/* Syncs the file and gives it its place. 0; 1 if the place is taken; or an error. */
int draft_place(struct draft *d, int fd, bool replace, struct weir_error *error);
void draft_discard(const struct draft *d);

int region_allocate(int fd, uint64_t bytes, const char *path, struct weir_error *error);

/* Finds out which file r->fd is. 0 or WEIR_EIO. */
int region_identify(struct region *r, const char *path, struct weir_error *error);

/* ---- files of an earlier version (format1.c) ---- */

/*
 * Puts a file of the present format, with all keys and blocks, in the place of the file of format 1 that fd
 * is. The caller has the flock of fd exclusively. *wanted: the caller's, of which max_blocks counts.
 * 0 when done, or an error that leaves the file as it was.
 */
int format1_convert(int fd, uint64_t size, const char *path, const struct region_fixed *wanted,
                    const struct region_hooks *hooks, struct weir_error *error);

#endif
