/* Shared by region.c and region_file.c only. */
#ifndef WEIR_TABLE_REGION_FILE_H
#define WEIR_TABLE_REGION_FILE_H

#include "table/region.h"

#define REGION_MAGIC "weir\r\n\x1a" /* 7 bytes and the terminator; a text-mode copy breaks it */
#define REGION_FORMAT 1u

uint64_t region_check(const struct region_fixed *fixed);
void region_set_anchor(struct region *r, const struct region_anchor *anchor);
int region_anchor_now(const struct region_fixed *fixed, struct region_anchor *anchor,
                      struct weir_error *error);
int region_map(struct region *r, uint64_t bytes, int flags, int fd, struct weir_error *error);
int region_fill(struct region *r, const struct region_fixed *fixed,
                const struct region_hooks *hooks, struct weir_error *error);

#endif
