/*
 * The bytes of a limiter's file, as a copy, a power cut or another boot would
 * leave them: to be changed by hand and written somewhere.
 */
#ifndef WEIR_TESTS_PROCESS_IMAGE_H
#define WEIR_TESTS_PROCESS_IMAGE_H

#include <stdint.h>

#include "support/process_scene.h"
#include "table/region.h"

struct image {
    unsigned char *bytes;
    size_t size;
    struct table table; /* over bytes */
};

/* Copies what is in the file at this moment, also while it is in use. */
void image_take(struct image *i, const char *path);
void image_free(struct image *i);

struct region_header *image_head(const struct image *i);
struct region_anchor *image_anchor(const struct image *i); /* the one in force */

/* Makes the image one of another boot, in which time stood at unix_ns. */
void image_of_other_boot(struct image *i, uint64_t unix_ns);

/* The clean slot of a key, and an empty one in its other line. NULL if there is none. */
struct pair *image_slot(const struct image *i, struct table_key key);
struct pair *image_room(const struct image *i, struct table_key key);

/* The places at which a move can be interrupted; each needs image_room(). */
enum image_mark { IMAGE_M1, IMAGE_M2, IMAGE_M4, IMAGE_TORN };
bool image_interrupt_move(struct image *i, struct table_key key, enum image_mark at);

/* All locks are held by the process that opened the file last before the image was taken. */
void image_hold_locks(struct image *i);

#endif
