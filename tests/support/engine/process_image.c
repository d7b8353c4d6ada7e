#include "support/engine/process_image.h"

#include <stdlib.h>
#include <string.h>

#include "table/region_file.h"

void image_take(struct image *i, const char *path)
{
    i->bytes = process_read(path, &i->size);
    /* Slots are swapped as 16-byte pairs, so they need the alignment that they have in a
     * mapping. */
    void *aligned = aligned_alloc(4096, (i->size + 4095) & ~(size_t)4095);
    REQUIRE(aligned != NULL);
    memcpy(aligned, i->bytes, i->size);
    free(i->bytes);
    i->bytes = aligned;
    struct region_header *head = image_head(i);
    table_attach(&i->table, &head->fixed.shape, i->bytes + REGION_HEADER_BYTES, &head->counts,
                 &lock_private, NULL, NULL);
}

void image_free(struct image *i)
{
    free(i->bytes);
}

struct region_header *image_head(const struct image *i)
{
    return (struct region_header *)(void *)i->bytes;
}

struct region_anchor *image_anchor(const struct image *i)
{
    struct region_header *head = image_head(i);
    return &head->anchor[head->anchor_commit & 1];
}

void image_of_other_boot(struct image *i, uint64_t unix_ns)
{
    struct region_anchor *anchor = image_anchor(i);
    anchor->boot.word[0] ^= 0x1234;
    anchor->unix_ns = unix_ns;
    anchor->boot_ns = 0;
}

static struct pair *find_in(const struct image *i, uint64_t line, uint64_t tag)
{
    return line_find(&i->table.lines[line], tag);
}

struct pair *image_slot(const struct image *i, struct table_key key)
{
    struct pair *slot = find_in(i, key.line, key.tag);
    return slot != NULL ? slot
                        : find_in(i, table_other_line(&i->table, key.line, key.tag), key.tag);
}

struct pair *image_room(const struct image *i, struct table_key key)
{
    uint64_t second = table_other_line(&i->table, key.line, key.tag);
    return find_in(i, find_in(i, key.line, key.tag) != NULL ? second : key.line, 0);
}

bool image_interrupt_move(struct image *i, struct table_key key, enum image_mark at)
{
    struct pair *from = image_slot(i, key);
    struct pair *to = from != NULL ? image_room(i, key) : NULL;
    if (to == NULL) {
        return false;
    }
    if (at != IMAGE_M1) {
        *to = *from;
        if (i->table.record_bytes != 0) {
            memcpy(table_record(&i->table, to), table_record(&i->table, from),
                   i->table.record_bytes);
        }
    }
    if (at == IMAGE_M2) {
        to->tag |= TAG_ARRIVING;
    }
    if (at != IMAGE_TORN) {
        from->tag |= TAG_LEAVING;
    }
    return true;
}

void image_hold_locks(struct image *i)
{
    uint64_t held = image_head(i)->last_opener << 1;
    for (uint64_t s = 0; s <= i->table.stripe_mask; s++) {
        i->table.stripes[s].word = held;
    }
    image_head(i)->counts.blocks.lock.word = held;
    image_head(i)->change.word = held;
}
