/* The header, the anchor, and regions of memory. Files are in region_file.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "table/region_file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14; musl 1.2.3 has no name for it */
#endif

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define PAGE_BYTES 4096

uint64_t region_check(const void *fixed, size_t bytes)
{
    /* The key is not secret: the check detects damage. A user who can write the file is trusted. */
    static const uint64_t key[2] = {0x7765697220636865, 0x636b73756d000000};
    return siphash128(key, fixed, bytes - sizeof(uint64_t), 1, 3).low;
}

void region_fixed_seal(struct region_fixed *fixed)
{
    memcpy(fixed->magic, REGION_MAGIC, sizeof fixed->magic);
    fixed->version = REGION_FORMAT;
    fixed->header_bytes = (uint32_t)REGION_HEADER_BYTES;
    fixed->total_bytes = add_sat(REGION_HEADER_BYTES, table_bytes(&fixed->shape));
    fixed->check = region_check(fixed, sizeof *fixed);
}

int region_fixed_finish(struct region_fixed *fixed, struct weir_error *error)
{
    struct hash_secret seed;
    if (hash_secret_init(&fixed->secret) != 0 || hash_secret_init(&seed) != 0) {
        return fail_errno(error, "getrandom", NULL);
    }
    fixed->generation = seed.sip[0] | 1;
    region_fixed_seal(fixed);
    return 0;
}

const struct region_anchor *region_anchor(const struct region *r)
{
    return &r->head->anchor[load_acquire(&r->head->anchor_commit) & 1];
}

void region_set_anchor(struct region *r, const struct region_anchor *anchor)
{
    uint64_t next = load_relaxed(&r->head->anchor_commit) + 1;
    r->head->anchor[next & 1] = *anchor;
    r->head->anchor[next & 1].identity = r->identity;
    store_release(&r->head->anchor_commit, next); /* pairs with region_anchor() */
}

/*
 * Time goes on from the wall clock, but at least from the epoch. Otherwise a machine whose clock
 * says 1970 after a boot would have no valid time.
 */
int region_anchor_now(const struct region_fixed *fixed, struct region_anchor *anchor,
                      struct weir_error *error)
{
    *anchor = (struct region_anchor){.unix_ns = clock_unix_ns(),
                                     .boot_ns = clock_boot_ns() - (uint64_t)clock_boot_offset_ns()};
    if (fixed->epoch_ns > 0) {
        anchor->unix_ns = max_u64(anchor->unix_ns, (uint64_t)fixed->epoch_ns);
    }
    return clock_boot_id(&anchor->boot) == 0 ? 0
                                             : fail_errno(error, "cannot read the boot id", NULL);
}

bool region_is_adrift(const struct region *r)
{
    int64_t epoch_ns = r->head->fixed.epoch_ns;
    return epoch_ns > 0 && region_anchor(r)->unix_ns <= (uint64_t)epoch_ns;
}

void region_anchor_again(struct region *r, uint64_t last_ns)
{
    const struct region_anchor *was = region_anchor(r);
    struct region_anchor now;
    if (region_is_adrift(r) && region_anchor_now(&r->head->fixed, &now, NULL) == 0 &&
        now.unix_ns - was->unix_ns > now.boot_ns - was->boot_ns && now.unix_ns <= last_ns) {
        region_set_anchor(r, &now);
    }
}

/* ---- in this process ---- */

struct region *region_create(struct weir_error *error)
{
    struct region *r = calloc(1, sizeof *r);
    if (r == NULL) {
        (void)fail(error, WEIR_ENOMEM, "out of memory for the limiter itself");
        return NULL;
    }
    r->users = 1;
    r->fd = -1;
    r->owner = &lock_private;
    return r;
}

void region_destroy(struct region *r)
{
    if (r == NULL) {
        return;
    }
    if (r->head != NULL) {
        (void)munmap(r->head, r->bytes);
    }
    if (r->fd >= 0) {
        (void)close(r->fd); /* also gives up the flock, unless a forked child still has it */
    }
    free(r);
}

int region_map(struct region *r, uint64_t bytes, int flags, struct weir_error *error)
{
    if (bytes > (uint64_t)PTRDIFF_MAX) {
        return fail(error, WEIR_ENOMEM, "the table would take more memory than there can be");
    }
    char what[64];
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, r->fd, 0);
    if (p == MAP_FAILED) {
        (void)snprintf(what, sizeof what, "cannot map %" PRIu64 " bytes", bytes);
        return fail_errno(error, what, NULL);
    }
    r->head = p;
    r->body = (unsigned char *)p + REGION_HEADER_BYTES;
    r->bytes = bytes;
    return 0;
}

int region_fill(struct region *r, const struct region_opening *o)
{
    struct region_anchor anchor;
    r->head->fixed = *o->fixed;
    int e = o->fill(o, r);
    e = e != 0 ? e : region_anchor_now(o->fixed, &anchor, o->error);
    if (e == 0) {
        region_set_anchor(r, &anchor);
    }
    return e;
}

int region_join(struct region *r, const struct region_opening *o)
{
    r->owner = &r->own;
    if (r->fd < 0 || lock_owner_join(r->owner, &r->head->last_opener, r->fd) != 0) {
        return fail_errno(o->error, "cannot take a record lock", NULL);
    }
    return 0;
}

/* ---- memory ---- */

static int touch_all(struct region *r, struct weir_error *error)
{
    if (madvise(r->head, r->bytes, MADV_POPULATE_WRITE) == 0) {
        return 0;
    }
    if (errno != EINVAL) {
        return fail_errno(error, "cannot touch all memory", NULL);
    }
    volatile unsigned char *p = (unsigned char *)r->head; /* the kernel is older than 5.14 */
    for (uint64_t i = 0; i < r->bytes; i += PAGE_BYTES) {
        p[i] = 0;
    }
    return 0;
}

static int map_memory(struct region *r, const struct region_opening *o)
{
    int sharing = o->shared ? MAP_SHARED : MAP_PRIVATE;
    int e = region_map(r, o->fixed->total_bytes, MAP_ANONYMOUS | sharing, o->error);
    if (e == 0 && (o->flags & WEIR_HUGE_PAGES) != 0 && r->bytes >= 2 * HUGE_PAGE_BYTES) {
        (void)madvise(r->head, r->bytes, MADV_HUGEPAGE); /* small pages work too */
    }
    if (e == 0 && (o->flags & WEIR_PREFAULT) != 0) {
        e = touch_all(r, o->error);
    }
    if (e == 0 && o->shared) {
        r->fd = memfd_create("weir", MFD_CLOEXEC); /* stays empty: only for the record locks */
        e = region_join(r, o);
    }
    return e != 0 || r->head == NULL ? e : region_fill(r, o);
}

int region_make_memory(struct region_opening *o, struct region **out)
{
    struct region *r = region_create(o->error);
    int e = r == NULL ? WEIR_ENOMEM : map_memory(r, o);
    if (e != 0) {
        region_destroy(r);
        return e;
    }
    o->made = true;
    *out = r;
    return 0;
}
