/* Opening files: checking them, putting them in order, and which ones this process has open. */
#include "table/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

/* How often to look again at a file that was made, replaced or removed while we looked ... */
#define ATTEMPTS 16
/* ... and at one that other processes have open, until we are alone. */
#define ATTEMPTS_ALONE 1000
/* Where a boot is not known: after so many, the others that have the file open are of ours. */
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
 * Gives up a file that was not opened in the end. A child forked meanwhile has the flock too: it
 * ends here for both. If this process has the file open under another path, the close drops its
 * record lock, which is taken again.
 */
static void abandon(struct region *r)
{
    struct stat st;
    struct region *other = NULL;
    if (r != NULL && r->fd >= 0) {
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

static int lock_shared(const struct region *r, const struct file_opening *o)
{
    return flock_retry(r->fd, LOCK_SH) == 0 ? 0 : fail_errno(o->error, "cannot lock", o->path);
}

/* Takes a lock on the file. *alone: no other process has one. */
static int lock_file(const struct region *r, const struct file_opening *o, bool *alone)
{
    *alone = flock_retry(r->fd, LOCK_EX | LOCK_NB) == 0;
    return *alone ? 0 : lock_shared(r, o);
}

/* Gives the lock up for a moment. Others may be waiting to be alone, too: one of us will be. */
static int lock_again(const struct region *r, const struct file_opening *o, bool *alone)
{
    (void)flock_retry(r->fd, LOCK_UN);
    lock_pause(8);
    return lock_file(r, o, alone);
}

/* ---- making ---- */

/* 0; AGAIN if another process was faster; or an error. */
static int make_file(struct region *r, const struct file_opening *o)
{
    struct draft d = {.replaces = false};
    int e = draft_begin(&d, r, o, o->fixed->total_bytes);
    e = e != 0 ? e : lock_shared(r, o);
    e = e != 0 ? e : region_fill(r, o->fixed, o->hooks, o->error);
    e = e != 0 ? e : region_join(r, o->path, o->error);
    e = draft_end(&d, r, o, e);
    *o->made = e == 0;
    return e;
}

/* ---- checking ---- */

static int check_file(const struct stat *st, const struct file_opening *o)
{
    if (!S_ISREG(st->st_mode)) {
        return fail(o->error, WEIR_EACCES, "%s: not a regular file", o->path);
    }
    if (st->st_uid != geteuid()) {
        return fail(o->error, WEIR_EACCES, "%s: belongs to user %u, expected %u", o->path,
                    (unsigned)st->st_uid, (unsigned)geteuid());
    }
    if ((st->st_mode & 077) != 0) {
        return fail(o->error, WEIR_EACCES, "%s: mode is %04o, expected no more than 0600", o->path,
                    (unsigned)(st->st_mode & 07777));
    }
    return 0;
}

/* Is the header, of the present format or of format 1, sound in itself? Widens the latter. */
static bool is_sound(struct region_fixed *f)
{
    bool old = f->version == 1;
    uint64_t check = old ? format1_widen(f) : region_check(f, sizeof *f);
    uint64_t header_bytes = old ? FORMAT1_HEADER_BYTES : REGION_HEADER_BYTES;
    struct table_shape shape =
        table_shape(f->shape.max_keys, f->shape.max_blocks, f->shape.record_bytes);
    if (old) {
        shape.block_lines = 0;
    }
    return f->check == check && f->header_bytes == header_bytes &&
           memcmp(&f->shape, &shape, sizeof shape) == 0 &&
           f->total_bytes == add_sat(header_bytes, table_bytes(&shape));
}

static int check_header(int fd, uint64_t size, const struct file_opening *o, struct region_fixed *f)
{
    ssize_t got = pread(fd, f, sizeof *f, 0);
    if (got < 0) {
        return fail_errno(o->error, "cannot read", o->path);
    }
    if ((size_t)got < sizeof f->magic || memcmp(f->magic, REGION_MAGIC, sizeof f->magic) != 0) {
        return fail(o->error, WEIR_EDAMAGED, "%s: not a weir file", o->path);
    }
    if ((size_t)got < sizeof *f) {
        return fail(o->error, WEIR_EDAMAGED, "%s: cut short, has %zd bytes", o->path, got);
    }
    if (f->version != 1 && f->version != REGION_FORMAT) {
        return fail(o->error, WEIR_EVERSION, "%s: format %u, expected %u", o->path,
                    (unsigned)f->version, REGION_FORMAT);
    }
    if (!is_sound(f)) {
        return fail(o->error, WEIR_EDAMAGED, "%s: the header is damaged", o->path);
    }
    if (size != f->total_bytes) {
        return fail(o->error, WEIR_EDAMAGED, "%s: has %" PRIu64 " bytes, expected %" PRIu64,
                    o->path, size, f->total_bytes);
    }
    return 0;
}

/* ---- at home, or not ---- */

/* An opener without /proc is not told its boot, and leaves an anchor without one. */
static bool is_known(const struct boot_id *id)
{
    return (id->word[0] | id->word[1]) != 0;
}

static bool same_boot(const struct region_anchor *a, const struct region_anchor *now)
{
    return is_known(&now->boot) && memcmp(&a->boot, &now->boot, sizeof a->boot) == 0 &&
           a->boot_ns <= now->boot_ns;
}

/* What one of two openers was not told (a sandbox may hide it) does not make them differ. */
static bool same_or_unknown(uint64_t a, uint64_t b)
{
    return a == 0 || b == 0 || a == b;
}

/* Same boot, same file: nothing in it is of another time or place. */
static bool at_home(const struct region *r, const struct region_anchor *now)
{
    const struct region_anchor *anchor = region_anchor(r);
    const struct region_identity *a = &anchor->identity;
    const struct region_identity *b = &r->identity;
    return same_boot(anchor, now) && a->device == b->device && a->inode == b->inode &&
           same_or_unknown(a->born_ns, b->born_ns) && same_or_unknown(a->handle, b->handle);
}

/*
 * Waits until the file is at home, or we are alone and may make it so. Not at home and not alone
 * means that the others are openers too and that the process which was recovering the file has
 * died: one of us will do it.
 */
static int come_home(const struct region *r, const struct file_opening *o, bool *alone,
                     struct region_anchor *now)
{
    for (int i = 0; i < ATTEMPTS_ALONE; i++) {
        /* Read anew: an anchor that was made just now is later than an earlier reading. */
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
    return fail(o->error, WEIR_EIO, "%s: in use by a process of another boot or machine", o->path);
}

/* All locks of a file that no other process has open belong to the dead. */
static int put_in_order(struct region *r, const struct file_opening *o,
                        const struct region_anchor *now)
{
    const struct region_hooks *hooks = o->hooks;
    const struct region_anchor *old = region_anchor(r);
    if (r->head->last_opener >= UINT64_MAX / 4) {
        r->head->last_opener = 0; /* damaged; with all locks freed, numbers may begin anew */
    }
    if (at_home(r, now) && !hooks->always_recover) {
        struct table t;
        table_attach(&t, &r->head->fixed.shape, r->body, &r->head->counts, r->owner, NULL, NULL);
        table_init_locks(&t);
        lock_init(&r->head->change);
        return 0;
    }
    /* A copy made in this boot keeps its time line; after a boot the wall clock gives a new one. */
    struct region_anchor next = same_boot(old, now) ? *old : *now;
    /* A copy may be sparse. Here we are alone: on some file systems this writes into the holes. */
    int e = region_allocate(r, o);
    e = e != 0 ? e : hooks->recover(hooks->arg, r, &next, o->error);
    if (e == 0) {
        region_set_anchor(r, &next); /* last: until here the next opener does it all again */
    }
    return e;
}

/* ---- opening ---- */

static int settle_in(struct region *r, const struct file_opening *o, bool alone)
{
    struct region_anchor now;
    int e = o->hooks->examine(o->hooks->arg, r, o->error);
    e = e != 0 ? e : come_home(r, o, &alone, &now);
    if (e == 0 && alone) {
        e = put_in_order(r, o, &now);
        e = e != 0 ? e : lock_shared(r, o);
    }
    return e != 0 ? e : region_join(r, o->path, o->error);
}

/* True if the path still leads to the file that was opened; it may have been replaced since. */
static bool still_there(const struct file_opening *o, const struct stat *opened)
{
    struct stat st;
    return lstat(o->path, &st) == 0 && st.st_dev == opened->st_dev && st.st_ino == opened->st_ino;
}

static int convert(const struct region *r, const struct file_opening *o, bool alone,
                   const struct stat *st, const struct region_fixed *fixed)
{
    for (int i = 0; !alone && i < ATTEMPTS_ALONE; i++) {
        int e = lock_again(r, o, &alone);
        if (e != 0 || !still_there(o, st)) {
            return e != 0 ? e : AGAIN;
        }
    }
    if (!alone) {
        return fail(o->error, WEIR_EVERSION,
                    "%s: format 1, and another process has it open; it is converted to format %u "
                    "when no process has",
                    o->path, REGION_FORMAT);
    }
    int e = format1_convert(r->fd, fixed, o);
    return e != 0 ? e : AGAIN;
}

static int attach_file(struct region *r, const struct file_opening *o)
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
    if (e == 0 && fixed.version == 1) {
        return convert(r, o, alone, &st, &fixed);
    }
    e = e != 0 ? e : region_map(r, fixed.total_bytes, MAP_SHARED, o->error);
    return e != 0 ? e : settle_in(r, o, alone);
}

/* One look: the file as it is, or else a new one. On 0, *r has it. */
static int look(struct region *r, const struct file_opening *o)
{
    r->fd = open(o->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (r->fd >= 0) {
        return attach_file(r, o);
    }
    if (errno == ELOOP) {
        return fail(o->error, WEIR_EACCES, "%s: is a symbolic link", o->path);
    }
    if (errno != ENOENT) {
        return fail_errno(o->error, "cannot open", o->path);
    }
    if ((o->flags & WEIR_MUST_EXIST) != 0) {
        return fail(o->error, WEIR_ENOENT, "%s: does not exist", o->path);
    }
    return make_file(r, o);
}

static int open_once(struct region **out, const struct file_opening *o)
{
    struct stat st;
    struct region *r = lstat(o->path, &st) == 0 ? find_open(&st) : NULL;
    if (r != NULL) { /* this process has it open already */
        int e = o->hooks->examine(o->hooks->arg, r, o->error);
        if (e == 0) {
            r->users++;
            *out = r;
        }
        return e;
    }
    r = region_create(o->error);
    int e = r == NULL ? WEIR_ENOMEM : look(r, o);
    if (e != 0) {
        abandon(r);
        return e;
    }
    r->next = files;
    files = r; /* one store, so that a child forked in between has a sound list */
    *out = r;
    return 0;
}

int region_open_file(struct region **out, const char *path, const struct region_fixed *fixed,
                     unsigned flags, const struct region_hooks *hooks, bool *made,
                     struct weir_error *error)
{
    const struct file_opening o = {path, fixed, flags, hooks, made, error};
    int e = AGAIN;
    if (strlen(path) + 3 > PATH_MAX) {
        return fail(error, WEIR_EINVAL, "the path is too long");
    }
    *made = false;
    lock_take(&files_lock, &lock_private);
    for (int i = 0; e == AGAIN && i < ATTEMPTS; i++) {
        e = open_once(out, &o);
    }
    lock_release(&files_lock);
    return e != AGAIN ? e : fail(error, WEIR_EIO, "%s: keeps appearing and disappearing", path);
}
