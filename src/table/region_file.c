#include "table/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* Somebody else made or removed the file while we looked; look again this often. */
#define ATTEMPTS 16
#define ATTEMPTS_ALONE 1000

void region_close(struct region *r)
{
    if (r->head != NULL) {
        (void)munmap(r->head, r->bytes);
    }
    if (r->fd >= 0) {
        (void)close(r->fd); /* also gives up the flock, unless a forked child still has it */
    }
    r->head = NULL;
    r->fd = -1;
}

static int flock_retry(int fd, int operation)
{
    int result;
    do {
        result = flock(fd, operation);
    } while (result != 0 && errno == EINTR);
    return result;
}

/* The directory of `path`, with its slash; "./" if it has none. path is shorter than PATH_MAX - 2. */
static void directory_of(const char *path, char directory[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    memcpy(directory, path, n);
    memcpy(directory + n, "./", 3);
}

/* ---- making ---- */

/* A file on its way to `path`. */
struct draft {
    const char *path;
    char name[PATH_MAX + 16]; /* empty: it has none, and a kill leaves nothing behind */
};

/*
 * Without a name if the file system can (O_TMPFILE); else a hidden one beside
 * its place, which a kill at the wrong moment leaves there.
 */
static int open_draft(struct draft *d)
{
    char directory[PATH_MAX];
    directory_of(d->path, directory);
    d->name[0] = '\0';
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        (void)snprintf(d->name, sizeof d->name, "%s.weir-XXXXXX", directory);
        fd = mkostemp(d->name, O_CLOEXEC);
    }
    return fd;
}

static int link_draft(const struct draft *d, int fd)
{
    char self[32];
    if (d->name[0] != '\0') {
        return link(d->name, d->path);
    }
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, d->path, AT_SYMLINK_FOLLOW);
}

static void discard_draft(const struct draft *d)
{
    if (d->name[0] != '\0') {
        (void)unlink(d->name);
    }
}

/* Without this a power cut may leave the name and lose what it names. */
static int sync_file(int fd, const char *path, struct weir_error *error)
{
    return fsync(fd) == 0 ? 0 : fail_errno(error, "cannot sync the new file", path);
}

/* The name itself; a file system that cannot sync directories keeps its own order. */
static void sync_directory(const char *path)
{
    char directory[PATH_MAX];
    directory_of(path, directory);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

static void set_file_anchor(struct region *r, const struct stat *st,
                            const struct region_anchor *anchor)
{
    struct region_anchor a = *anchor;
    a.device = (uint64_t)st->st_dev;
    a.inode = (uint64_t)st->st_ino;
    region_set_anchor(r, &a);
}

/* Without real blocks a full disk would be a SIGBUS at some later store. */
static int allocate(int fd, uint64_t bytes, const char *path, struct weir_error *error)
{
    if (bytes > (uint64_t)PTRDIFF_MAX) {
        return fail(error, WEIR_ENOMEM, "the table would take more memory than there can be");
    }
    int number;
    do {
        number = posix_fallocate(fd, 0, (off_t)bytes);
    } while (number == EINTR);
    errno = number;
    return number == 0 ? 0 : fail_errno(error, "cannot allocate the file's space", path);
}

/* Everything about a new file except its name. */
static int build_file(struct region *r, int fd, const char *path, const struct region_fixed *fixed,
                      const struct region_hooks *hooks, struct weir_error *error)
{
    struct stat st;
    struct region_anchor anchor;
    int e = allocate(fd, fixed->total_bytes, path, error);
    e = e != 0 ? e : region_map(r, fixed->total_bytes, MAP_SHARED, fd, error);
    e = e != 0 ? e : region_fill(r, fixed, hooks, error);
    e = e != 0 ? e : region_anchor_now(fixed, &anchor, error);
    if (e != 0) {
        return e;
    }
    if (fstat(fd, &st) != 0 || flock_retry(fd, LOCK_SH) != 0) {
        return fail_errno(error, "cannot stat or lock the new file", path);
    }
    set_file_anchor(r, &st, &anchor);
    return sync_file(fd, path, error);
}

/* 0; 1 if somebody else was faster; or an error. */
static int make_file(struct region *r, const char *path, const struct region_fixed *fixed,
                     const struct region_hooks *hooks, struct weir_error *error)
{
    struct draft d = {.path = path};
    int fd = open_draft(&d);
    if (fd < 0) {
        return fail_errno(error, "cannot make a file in this directory", path);
    }
    r->fd = fd;
    int e = build_file(r, fd, path, fixed, hooks, error);
    if (e == 0 && link_draft(&d, fd) != 0) {
        e = errno == EEXIST ? 1 : fail_errno(error, "cannot link the new file into place", path);
    }
    discard_draft(&d);
    if (e != 0) {
        region_close(r);
    } else {
        sync_directory(path);
    }
    return e;
}

/* ---- opening ---- */

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
    struct table_shape s = table_shape(f->shape.max_keys, f->shape.record_bytes);
    return s.lines == f->shape.lines && s.stripes == f->shape.stripes &&
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
    if (f->version != REGION_FORMAT) {
        return fail(error, WEIR_EVERSION, "%s: format %u, expected %u", path, (unsigned)f->version,
                    REGION_FORMAT);
    }
    if (f->check != region_check(f) || f->header_bytes != REGION_HEADER_BYTES ||
        !shape_is_sound(f)) {
        return fail(error, WEIR_EDAMAGED, "%s: the header is damaged", path);
    }
    if (size != f->total_bytes) {
        return fail(error, WEIR_EDAMAGED, "%s: has %" PRIu64 " bytes, expected %" PRIu64, path,
                    size, f->total_bytes);
    }
    return 0;
}

/* Where the kernel does not tell, no boot is known to be the same. */
static bool same_boot(const struct region_anchor *a, const struct region_anchor *now)
{
    return (now->boot.word[0] | now->boot.word[1]) != 0 && a->boot.word[0] == now->boot.word[0] &&
           a->boot.word[1] == now->boot.word[1] && a->boot_ns <= now->boot_ns;
}

/* Same boot, same inode: the locks inside are those of living processes, or of noticed dead ones. */
static bool at_home(const struct region *r, const struct stat *st, const struct region_anchor *now)
{
    const struct region_anchor *a = region_anchor(r);
    return same_boot(a, now) && a->device == (uint64_t)st->st_dev &&
           a->inode == (uint64_t)st->st_ino;
}

static int recover_file(struct region *r, const char *path, const struct stat *st,
                        const struct region_anchor *now, const struct region_hooks *hooks,
                        struct weir_error *error)
{
    const struct region_anchor *old = region_anchor(r);
    /* A copy made in this boot keeps its time line; after a boot the wall clock gives a new one. */
    struct region_anchor next = same_boot(old, now) ? *old : *now;
    /* A copy may be sparse. Here we are alone: on some file systems this writes into the holes. */
    int e = allocate(r->fd, r->bytes, path, error);
    e = e != 0 ? e : hooks->recover(hooks->arg, r, &next, error);
    if (e == 0 && lock_init(&r->head->change) != 0) {
        e = fail(error, WEIR_EIO, "cannot make a robust lock");
    }
    if (e == 0) {
        set_file_anchor(r, st, &next); /* last: until here the next opener does it all again */
    }
    return e;
}

/* A lock of our own on the file: *alone if nobody else has one. */
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
 * home and not alone means that the others are openers too and that whoever was
 * recovering the file has died: one of us will do it.
 */
static int come_home(struct region *r, int fd, const char *path, const struct stat *st, bool *alone,
                     struct region_anchor *now, struct weir_error *error)
{
    for (int i = 0; i < ATTEMPTS_ALONE; i++) {
        /* Read anew: an anchor that somebody has just made is later than an earlier reading. */
        int e = region_anchor_now(&r->head->fixed, now, error);
        if (e != 0 || *alone || at_home(r, st, now)) {
            return e;
        }
        (void)flock_retry(fd, LOCK_UN);
        (void)usleep(1000);
        e = lock_file(fd, path, alone, error);
        if (e != 0) {
            return e;
        }
    }
    return fail(error, WEIR_EIO, "%s: in use by a process of another boot or machine", path);
}

static int settle_in(struct region *r, int fd, const char *path, const struct stat *st, bool alone,
                     const struct region_hooks *hooks, struct weir_error *error)
{
    struct region_anchor now;
    int e = hooks->examine(hooks->arg, r, error);
    e = e != 0 ? e : come_home(r, fd, path, st, &alone, &now, error);
    if (e == 0 && (!at_home(r, st, &now) || (alone && hooks->always_recover))) {
        e = recover_file(r, path, st, &now, hooks, error);
    }
    if (e == 0 && alone && flock_retry(fd, LOCK_SH) != 0) {
        e = fail_errno(error, "cannot lock", path);
    }
    return e;
}

static int attach_file(struct region *r, int fd, const char *path, const struct region_hooks *hooks,
                       struct weir_error *error)
{
    struct stat st;
    struct region_fixed fixed;
    bool alone = false;
    int e = lock_file(fd, path, &alone, error);
    if (e == 0 && fstat(fd, &st) != 0) {
        e = fail_errno(error, "cannot stat", path);
    }
    e = e != 0 ? e : check_file(&st, path, error);
    e = e != 0 ? e : check_header(fd, (uint64_t)st.st_size, path, &fixed, error);
    e = e != 0 ? e : region_map(r, fixed.total_bytes, MAP_SHARED, fd, error);
    return e != 0 ? e : settle_in(r, fd, path, &st, alone, hooks, error);
}

static int open_existing(struct region *r, const char *path, const struct region_hooks *hooks,
                         struct weir_error *error)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ELOOP) {
            return fail(error, WEIR_EACCES, "%s: is a symbolic link", path);
        }
        return errno == ENOENT ? 1 : fail_errno(error, "cannot open", path);
    }
    r->fd = fd;
    int e = attach_file(r, fd, path, hooks, error);
    if (e != 0) {
        region_close(r);
    }
    return e;
}

int region_open_file(struct region *r, const char *path, const struct region_fixed *fixed,
                     unsigned flags, const struct region_hooks *hooks, bool *made,
                     struct weir_error *error)
{
    if (strlen(path) + 3 > PATH_MAX) {
        return fail(error, WEIR_EINVAL, "the path is too long");
    }
    for (int i = 0; i < ATTEMPTS; i++) {
        int e = open_existing(r, path, hooks, error);
        *made = false;
        if (e != 1) {
            return e;
        }
        if ((flags & WEIR_MUST_EXIST) != 0) {
            return fail(error, WEIR_ENOENT, "%s: does not exist", path);
        }
        e = make_file(r, path, fixed, hooks, error);
        *made = e == 0;
        if (e != 1) {
            return e;
        }
    }
    return fail(error, WEIR_EIO, "%s: keeps appearing and disappearing", path);
}
