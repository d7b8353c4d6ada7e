/* Opening files: what is checked, who may put one in order, and which ones this process has open. */
#include "table/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* The file was made, replaced or removed while we looked; look again this often. */
#define ATTEMPTS 16
#define ATTEMPTS_ALONE 1000
/* Where a boot is not known: after so many, the others that have the file open are of ours. */
#define ATTEMPTS_UNKNOWN 100

/* Results of one look at a path, beside 0 and errors. */
enum { ABSENT = 1, AGAIN = 2 };

/* ---- the files of this process ---- */

/* Held while a file is opened or closed. In a forked child, a parent's thread that held it is dead. */
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

/* One store each, so that a child forked in between has a sound list. */
static void enlist(struct region *r)
{
    r->next = files;
    files = r;
}

static void delist(const struct region *r)
{
    struct region **link = &files;
    while (*link != NULL && *link != r) {
        link = &(*link)->next;
    }
    if (*link == r) {
        *link = r->next;
    }
}

void region_close(struct region *r)
{
    if (r == NULL) {
        return;
    }
    bool file = r->identity.inode != 0;
    if (file) {
        lock_take(&files_lock, &lock_private);
    }
    if (--r->users == 0) {
        delist(r);
        region_destroy(r);
    }
    if (file) {
        lock_release(&files_lock);
    }
}

/*
 * Gives up a file that was not opened in the end. A child forked meanwhile has the flock too: it ends here for both. If
 * this process has the file open under another path, the close drops its record lock, which is taken again.
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

/* Joins the processes that use the file. */
static int join(struct region *r, const char *path, struct weir_error *error)
{
    r->owner = &r->own;
    return lock_owner_join(r->owner, &r->head->last_opener, r->fd) == 0
               ? 0
               : fail_errno(error, "cannot take a record lock", path);
}

static int flock_retry(int fd, int operation)
{
    int result;
    do {
        result = flock(fd, operation);
    } while (result != 0 && errno == EINTR);
    return result;
}

/* ---- making ---- */

/* Everything about a new file except its place. */
static int build_file(struct region *r, const char *path, const struct region_fixed *fixed,
                      const struct region_hooks *hooks, struct weir_error *error)
{
    struct region_anchor anchor;
    int e = draft_map(r, fixed->total_bytes, path, error);
    if (e != 0) {
        return e;
    }
    r->head->fixed = *fixed;
    e = hooks->fill(hooks->arg, r, error);
    e = e != 0 ? e : region_anchor_now(fixed, &anchor, error);
    if (e != 0) {
        return e;
    }
    if (flock_retry(r->fd, LOCK_SH) != 0) {
        return fail_errno(error, "cannot lock the new file", path);
    }
    region_set_anchor(r, &anchor);
    return join(r, path, error);
}

/* 0; AGAIN if another process was faster; or an error. */
static int make_file(struct region *r, const char *path, const struct region_fixed *fixed,
                     const struct region_hooks *hooks, struct weir_error *error)
{
    struct draft d = {.path = path};
    r->fd = draft_open(&d, false);
    if (r->fd < 0) {
        return fail_errno(error, "cannot make a file in this directory", path);
    }
    int e = build_file(r, path, fixed, hooks, error);
    e = e != 0 ? e : draft_place(&d, r->fd, false, error);
    draft_discard(&d);
    return e == 1 ? AGAIN : e;
}

/* ---- checking ---- */

static int check_file(const struct stat *st, const char *path, struct weir_error *error)
{
    if (!S_ISREG(st->st_mode)) {
        return fail(error, WEIR_EACCES, "%s: not a regular file", path);
    }
    if (st->st_uid != geteuid()) {
        return fail(error, WEIR_EACCES, "%s: belongs to user %u, expected %u", path,
                    (unsigned)st->st_uid, (unsigned)geteuid());
    }
    if ((st->st_mode & 077) != 0) {
        return fail(error, WEIR_EACCES, "%s: mode is %04o, expected no more than 0600", path,
                    (unsigned)(st->st_mode & 07777));
    }
    return 0;
}

static bool shape_is_sound(const struct region_fixed *f)
{
    struct table_shape s =
        table_shape(f->shape.max_keys, f->shape.max_blocks, f->shape.record_bytes);
    return s.lines == f->shape.lines && s.stripes == f->shape.stripes &&
           s.block_lines == f->shape.block_lines &&
           f->total_bytes == add_sat(REGION_HEADER_BYTES, table_bytes(&s));
}

static int check_header(int fd, uint64_t size, const char *path, struct region_fixed *f,
                        struct weir_error *error)
{
    ssize_t got = pread(fd, f, sizeof *f, 0);
    if (got < 0) {
        return fail_errno(error, "cannot read", path);
    }
    if ((size_t)got < sizeof f->magic || memcmp(f->magic, REGION_MAGIC, sizeof f->magic) != 0) {
        return fail(error, WEIR_EDAMAGED, "%s: not a weir file", path);
    }
    if ((size_t)got < sizeof *f) {
        return fail(error, WEIR_EDAMAGED, "%s: cut short, has %zd bytes", path, got);
    }
    if (f->version == 1) {
        return 0; /* format1.c looks at the rest */
    }
    if (f->version != REGION_FORMAT) {
        return fail(error, WEIR_EVERSION, "%s: format %u, expected %u", path, (unsigned)f->version,
                    REGION_FORMAT);
    }
    if (f->check != region_check(f, sizeof *f) || f->header_bytes != REGION_HEADER_BYTES ||
        !shape_is_sound(f)) {
        return fail(error, WEIR_EDAMAGED, "%s: the header is damaged", path);
    }
    if (size != f->total_bytes) {
        return fail(error, WEIR_EDAMAGED, "%s: has %" PRIu64 " bytes, expected %" PRIu64, path,
                    size, f->total_bytes);
    }
    return 0;
}

/* ---- at home, or not ---- */

static bool is_known(const struct boot_id *id)
{
    return (id->word[0] | id->word[1]) != 0;
}

/* An opener without /proc is not told its boot, and leaves an anchor without one. */
static bool boots_are_known(const struct region *r, const struct region_anchor *now)
{
    return is_known(&now->boot) && is_known(&region_anchor(r)->boot);
}

static bool same_boot(const struct region_anchor *a, const struct region_anchor *now)
{
    return is_known(&now->boot) && a->boot.word[0] == now->boot.word[0] &&
           a->boot.word[1] == now->boot.word[1] && a->boot_ns <= now->boot_ns;
}

/* What one of two openers was not told (a sandbox may hide it) does not make them differ. */
static bool same_or_unknown(uint64_t a, uint64_t b)
{
    return a == 0 || b == 0 || a == b;
}

static bool same_file(const struct region_identity *a, const struct region_identity *b)
{
    return a->device == b->device && a->inode == b->inode &&
           same_or_unknown(a->born_ns, b->born_ns) && same_or_unknown(a->handle, b->handle);
}

/* Same boot, same file: nothing in it is of another time or place. */
static bool at_home(const struct region *r, const struct region_anchor *now)
{
    const struct region_anchor *a = region_anchor(r);
    return same_boot(a, now) && same_file(&a->identity, &r->identity);
}

static int recover_file(struct region *r, const char *path, const struct region_anchor *now,
                        const struct region_hooks *hooks, struct weir_error *error)
{
    const struct region_anchor *old = region_anchor(r);
    /* A copy made in this boot keeps its time line; after a boot the wall clock gives a new one. */
    struct region_anchor next = same_boot(old, now) ? *old : *now;
    /* A copy may be sparse. Here we are alone: on some file systems this writes into the holes. */
    int e = region_allocate(r->fd, r->bytes, path, error);
    e = e != 0 ? e : hooks->recover(hooks->arg, r, &next, error);
    if (e == 0) {
        region_set_anchor(r, &next); /* last: until here the next opener does it all again */
    }
    return e;
}

/* Takes a lock on the file. *alone: no other process has one. */
static int lock_file(int fd, const char *path, bool *alone, struct weir_error *error)
{
    *alone = flock_retry(fd, LOCK_EX | LOCK_NB) == 0;
    if (!*alone && flock_retry(fd, LOCK_SH) != 0) {
        return fail_errno(error, "cannot lock", path);
    }
    return 0;
}

/*
 * Waits until the file is at home, or we are alone and may make it so. Not at
 * home and not alone means that the others are openers too and that the process which was
 * recovering the file has died: one of us will do it.
 */
static int come_home(struct region *r, const char *path, bool *alone, struct region_anchor *now,
                     struct weir_error *error)
{
    for (int i = 0; i < ATTEMPTS_ALONE; i++) {
        /* Read anew: an anchor that was made just now is later than an earlier reading. */
        int e = region_anchor_now(&r->head->fixed, now, error);
        if (e != 0 || *alone || at_home(r, now)) {
            return e;
        }
        if (!boots_are_known(r, now) && i >= ATTEMPTS_UNKNOWN) {
            return 0;
        }
        (void)flock_retry(r->fd, LOCK_UN);
        lock_pause(8);
        e = lock_file(r->fd, path, alone, error);
        if (e != 0) {
            return e;
        }
    }
    return fail(error, WEIR_EIO, "%s: in use by a process of another boot or machine", path);
}

/* All locks of a file that no other process has open belong to the dead. */
static int put_in_order(struct region *r, const char *path, const struct region_anchor *now,
                        const struct region_hooks *hooks, struct weir_error *error)
{
    if (r->head->last_opener >= UINT64_MAX / 4) {
        r->head->last_opener = 0; /* damaged; with all locks freed, numbers may begin anew */
    }
    if (!at_home(r, now) || hooks->always_recover) {
        return recover_file(r, path, now, hooks, error);
    }
    struct table t;
    table_attach(&t, &r->head->fixed.shape, r->body, &r->head->counts, r->owner, NULL, NULL);
    table_init_locks(&t);
    lock_init(&r->head->change);
    return 0;
}

static int settle_in(struct region *r, const char *path, bool alone,
                     const struct region_hooks *hooks, struct weir_error *error)
{
    struct region_anchor now;
    int e = hooks->examine(hooks->arg, r, error);
    e = e != 0 ? e : come_home(r, path, &alone, &now, error);
    if (e == 0 && alone) {
        e = put_in_order(r, path, &now, hooks, error);
    }
    if (e == 0 && alone && flock_retry(r->fd, LOCK_SH) != 0) {
        e = fail_errno(error, "cannot lock", path);
    }
    return e != 0 ? e : join(r, path, error);
}

/* ---- opening ---- */

/* True if the path still leads to the file that was opened; it may have been replaced since. */
static bool still_there(const char *path, const struct stat *opened)
{
    struct stat st;
    return lstat(path, &st) == 0 && st.st_dev == opened->st_dev && st.st_ino == opened->st_ino;
}

/* Others may be waiting to do the same: one of them will be alone, and the rest will find the path replaced. */
static int convert(const struct region *r, const struct stat *st, const char *path, bool alone,
                   const struct region_fixed *wanted, const struct region_hooks *hooks,
                   struct weir_error *error)
{
    int e = 0;
    for (int i = 0; e == 0 && !alone && i < ATTEMPTS_ALONE; i++) {
        (void)flock_retry(r->fd, LOCK_UN);
        lock_pause(8);
        e = lock_file(r->fd, path, &alone, error);
        if (e == 0 && !still_there(path, st)) {
            return AGAIN;
        }
    }
    if (e == 0 && !alone) {
        e = fail(error, WEIR_EVERSION,
                 "%s: format 1, and another process has it open; it is converted to format %u "
                 "when no process has",
                 path, REGION_FORMAT);
    }
    e = e != 0 ? e : format1_convert(r->fd, (uint64_t)st->st_size, path, wanted, hooks, error);
    return e != 0 ? e : AGAIN;
}

static int attach_file(struct region *r, const char *path, const struct region_fixed *wanted,
                       const struct region_hooks *hooks, struct weir_error *error)
{
    struct stat st;
    struct region_fixed fixed;
    bool alone = false;
    if (fstat(r->fd, &st) != 0) {
        return fail_errno(error, "cannot stat", path);
    }
    if (find_open(&st) != NULL) {
        return AGAIN; /* renamed to this path just now */
    }
    int e = lock_file(r->fd, path, &alone, error);
    e = e != 0 ? e : check_file(&st, path, error);
    if (e == 0 && !still_there(path, &st)) {
        return AGAIN;
    }
    e = e != 0 ? e : check_header(r->fd, (uint64_t)st.st_size, path, &fixed, error);
    if (e == 0 && fixed.version == 1) {
        return convert(r, &st, path, alone, wanted, hooks, error);
    }
    e = e != 0 ? e : region_map(r, fixed.total_bytes, MAP_SHARED, r->fd, error);
    e = e != 0 ? e : region_identify(r, path, error);
    return e != 0 ? e : settle_in(r, path, alone, hooks, error);
}

static int open_existing(struct region *r, const char *path, const struct region_fixed *wanted,
                         const struct region_hooks *hooks, struct weir_error *error)
{
    r->fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (r->fd < 0) {
        if (errno == ELOOP) {
            return fail(error, WEIR_EACCES, "%s: is a symbolic link", path);
        }
        return errno == ENOENT ? ABSENT : fail_errno(error, "cannot open", path);
    }
    return attach_file(r, path, wanted, hooks, error);
}

/* One look: the file as it is, or else a new one. On 0, *r has it. */
static int look(struct region *r, const char *path, const struct region_fixed *fixed,
                unsigned flags, const struct region_hooks *hooks, bool *made,
                struct weir_error *error)
{
    *made = false;
    int e = open_existing(r, path, fixed, hooks, error);
    if (e == ABSENT && (flags & WEIR_MUST_EXIST) != 0) {
        return fail(error, WEIR_ENOENT, "%s: does not exist", path);
    }
    if (e == ABSENT) {
        e = make_file(r, path, fixed, hooks, error);
        *made = e == 0;
    }
    return e;
}

/* This process has the file open already. */
static int share(struct region *r, const struct region_hooks *hooks, struct region **out,
                 struct weir_error *error)
{
    int e = hooks->examine(hooks->arg, r, error);
    if (e == 0) {
        r->users++;
        *out = r;
    }
    return e;
}

static int open_locked(struct region **out, const char *path, const struct region_fixed *fixed,
                       unsigned flags, const struct region_hooks *hooks, bool *made,
                       struct weir_error *error)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        struct stat st;
        struct region *r = lstat(path, &st) == 0 ? find_open(&st) : NULL;
        if (r != NULL) {
            *made = false;
            return share(r, hooks, out, error);
        }
        r = region_create(error);
        int e = r == NULL ? WEIR_ENOMEM : look(r, path, fixed, flags, hooks, made, error);
        if (e == 0) {
            enlist(r);
            *out = r;
            return 0;
        }
        if (r != NULL) {
            abandon(r);
        }
        if (e != AGAIN) {
            return e;
        }
    }
    return fail(error, WEIR_EIO, "%s: keeps appearing and disappearing", path);
}

int region_open_file(struct region **out, const char *path, const struct region_fixed *fixed,
                     unsigned flags, const struct region_hooks *hooks, bool *made,
                     struct weir_error *error)
{
    if (strlen(path) + 3 > PATH_MAX) {
        return fail(error, WEIR_EINVAL, "the path is too long");
    }
    lock_take(&files_lock, &lock_private);
    int e = open_locked(out, path, fixed, flags, hooks, made, error);
    lock_release(&files_lock);
    return e;
}
