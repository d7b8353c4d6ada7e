/*
 * The bytes of a limiter's file, as a copy, a power cut or another boot would leave them. A test
 * changes them by hand and writes them to a file.
 */
#ifndef WEIR_TESTS_PROCESS_IMAGE_H
#define WEIR_TESTS_PROCESS_IMAGE_H

#include <stdint.h>

#include "support/engine/process_scene.h"
#include "table/region.h"

struct image {
    unsigned char *bytes;
    size_t size;
    struct table table; /* view of `bytes` */
};

/* Copies the present contents of the file, which may be in use. */
void image_take(struct image *i, const char *path);
void image_free(struct image *i);

struct region_header *image_head(const struct image *i);
struct region_anchor *image_anchor(const struct image *i); /* the anchor in force */

/* Makes the image one of another boot, whose clock stood at unix_ns. */
void image_of_other_boot(struct image *i, uint64_t unix_ns);

/* Return the unmarked slot of a key, and an empty slot in its other line. NULL if there is none. */
struct pair *image_slot(const struct image *i, struct table_key key);
struct pair *image_room(const struct image *i, struct table_key key);

/* The points at which a move can be interrupted. Each needs image_room(). */
enum image_mark { IMAGE_M1, IMAGE_M2, IMAGE_M4, IMAGE_TORN };
bool image_interrupt_move(struct image *i, struct table_key key, enum image_mark at);

/* Marks all locks as held by the last process that opened the file before the image was taken. */
void image_hold_locks(struct image *i);

#endif
