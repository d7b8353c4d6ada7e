/* Opens files: checks them, puts them in order, and knows which ones this process has open. */
#include "table/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

/* How often to look again at a file that was made, replaced or removed meanwhile. */
#define ATTEMPTS 16
/* How often to look again at a file that other processes have open, until we are alone. */
#define ATTEMPTS_ALONE 1000
/* After so many looks where the boot is not known, assume that the others are of this boot. */
#define ATTEMPTS_UNKNOWN 100

/* ---- the files of this process ---- */

/* Held while a file is opened or a region closed. */
static struct lock files_lock;
static struct region *files;

static struct region *find_open(const struct stat *st)
{
    struct region *r = files;
    while (r != NULL && (r->identity.device != (uint64_t)st->st_dev ||
                         r->identity.inode != (uint64_t)st->st_ino)) {
        r = r->next;
    }
    return r;
}

void region_close(struct region *r)
{
    if (r == NULL) {
        return;
    }
    lock_take(&files_lock, &lock_private);
    if (--r->users == 0) {
        struct region **link = &files;
        while (*link != NULL && *link != r) {
            link = &(*link)->next;
        }
        if (*link == r) {
            *link = r->next;
        }
        region_destroy(r);
    }
    lock_release(&files_lock);
}

/*
 * Gives up a file that could not be opened. A child that was forked meanwhile has the flock too; it
 * ends here for both. If this process has the file open under another path, the close drops its
 * record lock, which is then taken again.
 */
static void abandon(struct region *r)
{
    struct stat st;
    struct region *other = NULL;
    if (r->fd >= 0) {
        (void)flock(r->fd, LOCK_UN);
        other = fstat(r->fd, &st) == 0 ? find_open(&st) : NULL;
    }
    region_destroy(r);
    if (other != NULL) {
        lock_owner_renew(other->owner);
    }
}

/* ---- the flock ---- */

static int flock_retry(int fd, int operation)
{
    int result;
    do {
        result = flock(fd, operation);
    } while (result != 0 && errno == EINTR);
    return result;
}

static int lock_shared(const struct region *r, const struct region_opening *o)
{
    return flock_retry(r->fd, LOCK_SH) == 0 ? 0 : fail_errno(o->error, "cannot lock", NULL);
}

/* Takes a lock on the file. Sets *alone if no other process has one. */
static int lock_file(const struct region *r, const struct region_opening *o, bool *alone)
{
    *alone = flock_retry(r->fd, LOCK_EX | LOCK_NB) == 0;
    return *alone ? 0 : lock_shared(r, o);
}

/* Gives the lock up for a moment. If others wait to be alone too, one of them will be. */
static int lock_again(const struct region *r, const struct region_opening *o, bool *alone)
{
    (void)flock_retry(r->fd, LOCK_UN);
    lock_pause(8);
    return lock_file(r, o, alone);
}

/* ---- making ---- */

/* Returns 0, AGAIN if another process was faster, or an error. */
static int make_file(struct region *r, struct region_opening *o)
{
    struct draft d;
    int e = draft_begin(&d, r, o);
    e = e != 0 ? e : lock_shared(r, o);
    e = e != 0 ? e : region_fill(r, o);
    e = e != 0 ? e : region_join(r, o);
    e = draft_end(&d, r, o, e);
    o->made = e == 0;
    return e;
}

/* ---- checking ---- */

static int check_file(const struct stat *st, const struct region_opening *o)
{
    if (!S_ISREG(st->st_mode)) {
        return fail(o->error, WEIR_EACCES, "is not a regular file");
    }
    if (st->st_uid != geteuid()) {
        return fail(o->error, WEIR_EACCES, "belongs to user %u, expected %u", (unsigned)st->st_uid,
                    (unsigned)geteuid());
    }
    if ((st->st_mode & 077) != 0) {
        return fail(o->error, WEIR_EACCES, "mode is %04o, expected no more than 0600",
                    (unsigned)(st->st_mode & 07777));
    }
    return 0;
}

static bool is_sound(const struct region_fixed *f)
{
    struct table_shape shape =
        table_shape(f->shape.max_keys, f->shape.max_blocks, f->shape.record_bytes);
    return f->check == region_check(f, sizeof *f) && f->header_bytes == REGION_HEADER_BYTES &&
           memcmp(&f->shape, &shape, sizeof shape) == 0 &&
           f->total_bytes == add_sat(REGION_HEADER_BYTES, table_bytes(&shape));
}

static int check_header(int fd, uint64_t size, const struct region_opening *o,
                        struct region_fixed *f)
{
    ssize_t got = pread(fd, f, sizeof *f, 0);
    if (got < 0) {
        return fail_errno(o->error, "cannot read", NULL);
    }
    if ((size_t)got < sizeof f->magic || memcmp(f->magic, REGION_MAGIC, sizeof f->magic) != 0) {
        return fail(o->error, WEIR_EDAMAGED, "is not a weir file");
    }
    if ((size_t)got < sizeof *f) {
        return fail(o->error, WEIR_EDAMAGED, "is cut short: it has %zd bytes", got);
    }
    if (f->version != REGION_FORMAT) {
        return fail(o->error, WEIR_EVERSION,
                    "has format %u, expected %u (to start afresh, remove the file; to keep its "
                    "keys, use the version of weir that made it)",
                    (unsigned)f->version, REGION_FORMAT);
    }
    if (!is_sound(f)) {
        return fail(o->error, WEIR_EDAMAGED, "the header is damaged");
    }
    if (size != f->total_bytes) {
        return fail(o->error, WEIR_EDAMAGED, "has %" PRIu64 " bytes, expected %" PRIu64, size,
                    f->total_bytes);
    }
    return 0;
}

/* ---- files of this boot and place, and others ---- */

/* An opener without /proc does not know its boot, and writes an anchor without one. */
static bool is_known(const struct boot_id *id)
{
    return (id->word[0] | id->word[1]) != 0;
}

static bool same_boot(const struct region_anchor *a, const struct region_anchor *now)
{
    return is_known(&now->boot) && memcmp(&a->boot, &now->boot, sizeof a->boot) == 0 &&
           a->boot_ns <= now->boot_ns;
}

/* A value that one of two openers does not know (a sandbox may hide it) is no difference. */
static bool same_or_unknown(uint64_t a, uint64_t b)
{
    return a == 0 || b == 0 || a == b;
}

/* Returns whether the file was used last in this boot and is no copy. */
static bool at_home(const struct region *r, const struct region_anchor *now)
{
    const struct region_anchor *anchor = region_anchor(r);
    const struct region_identity *a = &anchor->identity;
    const struct region_identity *b = &r->identity;
    return same_boot(anchor, now) && a->device == b->device && a->inode == b->inode &&
           same_or_unknown(a->born_ns, b->born_ns) && same_or_unknown(a->handle, b->handle);
}

/*
 * Waits until the file is at home, or until this process is its only user and may recover it. If
 * it is not at home and has other users, these are opening it too, because the process that was
 * recovering it has died: one of them will recover it.
 */
static int come_home(const struct region *r, const struct region_opening *o, bool *alone,
                     struct region_anchor *now)
{
    for (int i = 0; i < ATTEMPTS_ALONE; i++) {
        /* Read each time: an anchor that was made just now is later than an earlier reading. */
        int e = region_anchor_now(&r->head->fixed, now, o->error);
        if (e != 0 || *alone || at_home(r, now)) {
            return e;
        }
        if (i >= ATTEMPTS_UNKNOWN &&
            (!is_known(&now->boot) || !is_known(&region_anchor(r)->boot))) {
            return 0;
        }
        e = lock_again(r, o, alone);
        if (e != 0) {
            return e;
        }
    }
    return fail(o->error, WEIR_EIO, "is in use by a process of another boot or machine");
}

/* Frees all locks, and recovers a file that is not at home. No other process has the file open. */
static int put_in_order(struct region *r, const struct region_opening *o,
                        const struct region_anchor *now)
{
    const struct region_anchor *old = region_anchor(r);
    if (r->head->last_opener >= UINT64_MAX / 4) {
        r->head->last_opener = 0; /* damaged; all locks will be free, so numbers may begin again */
    }
    if (at_home(r, now) && (o->flags & WEIR_RECOVER) == 0) {
        return o->recover(o, r, NULL);
    }
    /* A copy made in this boot keeps its time line; after a boot the wall clock gives a new one. */
    struct region_anchor next = same_boot(old, now) ? *old : *now;
    /* A copy may be sparse. On some file systems this writes into the holes: we must be alone. */
    int e = region_allocate(r, o);
    e = e != 0 ? e : o->recover(o, r, &next);
    if (e == 0) {
        region_set_anchor(r, &next); /* last: until here the next opener repeats it all */
    }
    return e;
}

/* ---- opening ---- */

static int settle_in(struct region *r, const struct region_opening *o, bool alone)
{
    struct region_anchor now;
    int e = o->examine(o, r);
    e = e != 0 ? e : come_home(r, o, &alone, &now);
    if (e == 0 && alone) {
        e = put_in_order(r, o, &now);
        e = e != 0 ? e : lock_shared(r, o);
    }
    return e != 0 ? e : region_join(r, o);
}

/* Returns whether the path still leads to the file that was opened. It may have been replaced. */
static bool still_there(const struct region_opening *o, const struct stat *opened)
{
    struct stat st;
    return lstat(o->path, &st) == 0 && st.st_dev == opened->st_dev && st.st_ino == opened->st_ino;
}

static int attach_file(struct region *r, const struct region_opening *o)
{
    struct stat st;
    struct region_fixed fixed;
    bool alone;
    int e = region_identify(r, &st, o);
    if (e == 0 && find_open(&st) != NULL) {
        return AGAIN; /* renamed to this path just now */
    }
    e = e != 0 ? e : lock_file(r, o, &alone);
    e = e != 0 ? e : check_file(&st, o);
    if (e == 0 && !still_there(o, &st)) {
        return AGAIN;
    }
    e = e != 0 ? e : check_header(r->fd, (uint64_t)st.st_size, o, &fixed);
    e = e != 0 ? e : region_map(r, fixed.total_bytes, MAP_SHARED, o->error);
    return e != 0 ? e : settle_in(r, o, alone);
}

/* Looks once for the file and opens it, or makes it. */
static int look(struct region *r, struct region_opening *o)
{
    r->fd = open(o->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (r->fd >= 0) {
        return attach_file(r, o);
    }
    if (errno == ELOOP) {
        return fail(o->error, WEIR_EACCES, "is a symbolic link");
    }
    if (errno != ENOENT) {
        return fail_errno(o->error, "cannot open", NULL);
    }
    if ((o->flags & WEIR_MUST_EXIST) != 0) {
        return fail(o->error, WEIR_ENOENT, "does not exist");
    }
    return make_file(r, o);
}

static int open_once(struct region_opening *o, struct region **out)
{
    struct stat st;
    struct region *r = lstat(o->path, &st) == 0 ? find_open(&st) : NULL;
    if (r != NULL) { /* this process has it open already */
        int e = o->examine(o, r);
        r->users += e == 0;
        *out = e == 0 ? r : NULL;
        return e;
    }
    r = region_create(o->error);
    if (r == NULL) {
        return WEIR_ENOMEM;
    }
    int e = look(r, o);
    if (e != 0) {
        abandon(r);
        return e;
    }
    r->next = files;
    files = r; /* in one store, so that a child that is forked now has a sound list */
    *out = r;
    return 0;
}

int region_open_file(struct region_opening *o, struct region **out)
{
    int e = AGAIN;
    if (strlen(o->path) + 3 > PATH_MAX) {
        return fail(o->error, WEIR_EINVAL, "the path is too long");
    }
    o->made = false;
    lock_take(&files_lock, &lock_private);
    for (int i = 0; e == AGAIN && i < ATTEMPTS; i++) {
        e = open_once(o, out);
    }
    lock_release(&files_lock);
    return e != AGAIN ? e : fail(o->error, WEIR_EIO, "keeps appearing and disappearing");
}
