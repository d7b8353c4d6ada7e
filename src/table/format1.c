/*
 * Files of format 1 (weir 0.1), which had mutexes of the C library inside, compiled parameters in the header and
 * blocks among the keys. A conversion makes a file of the present format beside it and renames that into
 * its place, so a kill leaves either the one or the other.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "base/error.h"
#include "table/region_file.h"

#define HEADER_BYTES 4096
#define LOCK_BYTES 64
#define SPEC_BYTES 56 /* of the parameters, which began with what the present format keeps */
#define TAG_BLOCK UINT64_C(4)

struct fixed1 {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint64_t total_bytes;
    uint64_t max_keys, lines, stripes, record_bytes;
    int32_t algorithm, hash, align;
    uint32_t explicit_time, shift, padding;
    uint64_t capacity, period_ns, offset_ns;
    int64_t epoch_ns;
    uint64_t generation;
    struct hash_secret secret;
    uint64_t check;
};

struct anchor1 {
    struct boot_id boot;
    uint64_t device, inode, unix_ns, boot_ns;
};

struct header1 {
    struct fixed1 fixed;
    struct anchor1 anchor[2];
    uint64_t anchor_commit;
    uint64_t version __attribute__((aligned(256)));
    unsigned char params[REGION_VERSIONS][192] __attribute__((aligned(64)));
};
_Static_assert(offsetof(struct header1, version) == 512 && offsetof(struct header1, params) == 576,
               "as format 1 laid it out");

/* An old file, mapped to be read. */
struct old {
    const struct header1 *head;
    const struct line *lines;
    const unsigned char *records;
};

static int check_old(const struct header1 *h, uint64_t size, const char *path,
                     struct weir_error *error)
{
    const struct fixed1 *f = &h->fixed;
    struct table_shape s = table_shape(f->max_keys, 0, f->record_bytes);
    u128 bytes = (u128)HEADER_BYTES + (u128)f->lines * LINE_SLOTS * (16 + (u128)f->record_bytes) +
                 (u128)f->stripes * LOCK_BYTES;
    if (f->check != region_check(f, sizeof *f) || f->header_bytes != HEADER_BYTES ||
        s.lines != f->lines || s.stripes != f->stripes || f->total_bytes != bytes) {
        return fail(error, WEIR_EDAMAGED, "%s: the header is damaged", path);
    }
    if (size != f->total_bytes) {
        return fail(error, WEIR_EDAMAGED, "%s: has %" PRIu64 " bytes, expected %" PRIu64, path,
                    size, f->total_bytes);
    }
    return 0;
}

static int map_old(int fd, uint64_t size, const char *path, struct old *o, struct weir_error *error)
{
    const unsigned char *p =
        size < HEADER_BYTES ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        return size < HEADER_BYTES
                   ? fail(error, WEIR_EDAMAGED, "%s: cut short, has %" PRIu64 " bytes", path, size)
                   : fail_errno(error, "cannot map", path);
    }
    o->head = (const struct header1 *)(const void *)p;
    int e = check_old(o->head, size, path, error);
    if (e != 0) {
        (void)munmap((void *)(uintptr_t)p, size);
        return e;
    }
    const struct fixed1 *f = &o->head->fixed;
    o->lines = (const struct line *)(const void *)(p + HEADER_BYTES);
    o->records = p + HEADER_BYTES + f->lines * sizeof(struct line) + f->stripes * LOCK_BYTES;
    return 0;
}

static uint64_t count_blocks(const struct old *o)
{
    uint64_t blocks = 0;
    for (uint64_t i = 0; i < o->head->fixed.lines * LINE_SLOTS; i++) {
        blocks += (o->lines[i / LINE_SLOTS].slot[i % LINE_SLOTS].tag & TAG_BLOCK) != 0;
    }
    return blocks;
}

/* The same limiter: its keys hash and lie as before, and its handles stay good. */
static struct region_fixed fixed_of(const struct old *o, const struct region_fixed *wanted)
{
    const struct fixed1 *f = &o->head->fixed;
    uint64_t max_blocks = max_u64(wanted->shape.max_blocks, count_blocks(o));
    struct region_fixed n;
    memset(&n, 0, sizeof n);
    memcpy(n.magic, REGION_MAGIC, sizeof n.magic);
    n.version = REGION_FORMAT;
    n.header_bytes = (uint32_t)REGION_HEADER_BYTES;
    n.shape = table_shape(f->max_keys, max_blocks, f->record_bytes);
    n.total_bytes = add_sat(REGION_HEADER_BYTES, table_bytes(&n.shape));
    n.algorithm = f->algorithm;
    n.hash = f->hash;
    n.align = f->align;
    n.explicit_time = f->explicit_time;
    n.shift = f->shift;
    n.capacity = f->capacity;
    n.period_ns = f->period_ns;
    n.offset_ns = f->offset_ns;
    n.epoch_ns = f->epoch_ns;
    n.generation = f->generation;
    n.secret = f->secret;
    n.check = region_check(&n, sizeof n);
    return n;
}

/* Blocks did not move: their tags have no marks. */
static void copy_slots(const struct old *o, const struct table *t)
{
    for (uint64_t i = 0; i < t->all * LINE_SLOTS; i++) {
        uint64_t line = i / LINE_SLOTS;
        struct pair old = o->lines[line].slot[i % LINE_SLOTS];
        if ((old.tag & TAG_BLOCK) == 0) {
            t->lines[line].slot[i % LINE_SLOTS] = old;
        } else if (old.word != 0) {
            (void)blocks_set(&t->blocks, table_block_tag_at(t, old.tag, line), old.word, 0);
        }
    }
    memcpy(t->records, o->records, t->all * LINE_SLOTS * t->record_bytes);
}

static void copy_header(const struct old *o, struct region *r)
{
    const struct anchor1 *a = &o->head->anchor[o->head->anchor_commit & 1];
    memcpy(r->head->spec[1].bytes, o->head->params[o->head->version % REGION_VERSIONS], SPEC_BYTES);
    r->head->version = 1;
    region_set_anchor(
        r, &(struct region_anchor){.boot = a->boot, .unix_ns = a->unix_ns, .boot_ns = a->boot_ns});
}

static int build(const struct old *o, struct region *r, const char *path,
                 const struct region_fixed *wanted, const struct region_hooks *hooks,
                 struct weir_error *error)
{
    struct region_fixed fixed = fixed_of(o, wanted);
    struct table t;
    int e = draft_map(r, fixed.total_bytes, path, error);
    if (e != 0) {
        return e;
    }
    r->head->fixed = fixed;
    copy_header(o, r);
    table_attach(&t, &fixed.shape, r->body, &r->head->counts, &lock_private, NULL, NULL);
    copy_slots(o, &t);
    table_recover(&t);
    return hooks->examine(hooks->arg, r, error);
}

/* Named: only a file with a name can replace another in one step. */
static int build_beside(const struct old *o, const char *path, const struct region_fixed *wanted,
                        const struct region_hooks *hooks, struct weir_error *error)
{
    struct draft d = {.path = path};
    struct region *r = region_create(error);
    if (r == NULL) {
        return WEIR_ENOMEM;
    }
    r->fd = draft_open(&d, true);
    int e = r->fd < 0 ? fail_errno(error, "cannot make a file in this directory", path)
                      : build(o, r, path, wanted, hooks, error);
    e = e != 0 ? e : draft_place(&d, r->fd, true, error);
    draft_discard(&d);
    region_destroy(r);
    return e;
}

int format1_convert(int fd, uint64_t size, const char *path, const struct region_fixed *wanted,
                    const struct region_hooks *hooks, struct weir_error *error)
{
    struct old o = {NULL, NULL, NULL};
    int e = map_old(fd, size, path, &o, error);
    if (e == 0 && o.lines != NULL) {
        e = build_beside(&o, path, wanted, hooks, error);
        (void)munmap((void *)(uintptr_t)o.head, size);
    }
    return e;
}
