/*
 * Files of format 1 (weir 0.1). They have mutexes of the C library inside, compiled parameters in
 * the header, and blocks among the keys. A conversion makes a file of the present format and
 * renames it over the old one, so a kill leaves either the one or the other.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "table/region_file.h"

#define SPEC_BYTES 56 /* the parameters begin with the spec that the present format keeps */
#define TAG_BLOCK UINT64_C(4)

/* The fields are the present ones without the two about blocks. */
#define BLOCKS_AT offsetof(struct region_fixed, shape.max_blocks)
#define AFTER_BLOCKS offsetof(struct region_fixed, algorithm)
#define FIXED_BYTES (BLOCKS_AT + sizeof(struct region_fixed) - AFTER_BLOCKS)

struct anchor1 {
    struct boot_id boot;
    uint64_t device, inode, unix_ns, boot_ns;
};

struct header1 {
    unsigned char fixed[FIXED_BYTES];
    struct anchor1 anchor[2];
    uint64_t anchor_commit;
    uint64_t version __attribute__((aligned(256)));
    unsigned char params[REGION_VERSIONS][192] __attribute__((aligned(64)));
};
_Static_assert(offsetof(struct header1, version) == 512 && offsetof(struct header1, params) == 576,
               "the layout of format 1");

uint64_t format1_widen(struct region_fixed *f)
{
    uint64_t check = region_check(f, FIXED_BYTES);
    memmove(&f->algorithm, &f->shape.max_blocks, FIXED_BYTES - BLOCKS_AT);
    f->shape.max_blocks = 0;
    f->shape.block_lines = 0;
    return check;
}

static uint64_t count_blocks(const struct table *old)
{
    uint64_t blocks = 0;
    for (uint64_t i = 0; i < old->all * LINE_SLOTS; i++) {
        blocks += (table_slot(old, i)->tag & TAG_BLOCK) != 0;
    }
    return blocks;
}

/* Blocks did not move in format 1, so their tags have no marks. */
static void copy_slots(const struct table *old, const struct table *t)
{
    for (uint64_t i = 0; i < t->all * LINE_SLOTS; i++) {
        struct pair slot = *table_slot(old, i);
        if ((slot.tag & TAG_BLOCK) == 0) {
            *table_slot(t, i) = slot;
        } else if (slot.word != 0) {
            uint64_t tag = table_block_tag_at(t, slot.tag, i / LINE_SLOTS);
            (void)blocks_set(&t->blocks, tag, block_end(slot.word, false, 0), 0);
        }
    }
    memcpy(t->records, old->records, t->all * LINE_SLOTS * t->record_bytes);
}

static void copy_header(const struct header1 *old, struct region *r)
{
    const struct anchor1 *a = &old->anchor[old->anchor_commit & 1];
    memcpy(r->head->spec[1].bytes, old->params[old->version % REGION_VERSIONS], SPEC_BYTES);
    r->head->version = 1;
    region_set_anchor(
        r, &(struct region_anchor){.boot = a->boot, .unix_ns = a->unix_ns, .boot_ns = a->boot_ns});
}

/* Makes the same limiter: keys keep their hashes and slots, and handles stay valid. */
static int build(struct region *r, const struct region_fixed *fixed, unsigned char *old,
                 const struct region_opening *o)
{
    static struct table_counts none; /* nothing reads the counts of the old table */
    struct draft d = {.replaces = true};
    struct table from;
    struct table to;
    struct region_fixed next = *fixed;
    table_attach(&from, &fixed->shape, old + FORMAT1_HEADER_BYTES, &none, NULL, NULL, NULL);
    next.shape =
        table_shape(fixed->shape.max_keys, max_u64(o->fixed->shape.max_blocks, count_blocks(&from)),
                    fixed->shape.record_bytes);
    region_fixed_seal(&next);
    int e = draft_begin(&d, r, o, next.total_bytes);
    if (e == 0) {
        r->head->fixed = next;
        copy_header((const struct header1 *)(const void *)old, r);
        table_attach(&to, &next.shape, r->body, &r->head->counts, r->owner, NULL, NULL);
        copy_slots(&from, &to);
        table_recover(&to);
        e = o->examine(o, r);
    }
    return draft_end(&d, r, o, e);
}

int format1_convert(int fd, const struct region_fixed *old, const struct region_opening *o)
{
    void *bytes = mmap(NULL, old->total_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        return fail_errno(o->error, "cannot map", NULL);
    }
    struct region *r = region_create(o->error);
    int e = r == NULL ? WEIR_ENOMEM : build(r, old, bytes, o);
    region_destroy(r);
    (void)munmap(bytes, old->total_bytes);
    return e;
}
