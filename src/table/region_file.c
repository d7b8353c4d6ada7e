#include "table/region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* Somebody else made or removed the file while we looked; look again this often. */
#define ATTEMPTS 16

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

/* ---- making ---- */

/* A file without a name in the directory of `path`; a kill leaves nothing behind. */
static int open_nameless(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    memcpy(directory, path, n);
    memcpy(directory + n, ".", 2);
    return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int link_nameless(int fd, const char *path)
{
    char self[32];
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static void set_file_anchor(struct region *r, const struct stat *st,
                            const struct region_anchor *anchor)
{
    struct region_anchor a = *anchor;
    a.device = (uint64_t)st->st_dev;
    a.inode = (uint64_t)st->st_ino;
    region_set_anchor(r, &a);
}

/* Everything about a new file except its name. */
static int build_file(struct region *r, int fd, const char *path, const struct region_fixed *fixed,
                      const struct region_hooks *hooks, struct weir_error *error)
{
    struct stat st;
    if (fixed->total_bytes > (uint64_t)PTRDIFF_MAX) {
        return fail(error, WEIR_ENOMEM, "the table would take more memory than there can be");
    }
    /* Without real blocks a full disk would be a SIGBUS at some later store. */
    int number = posix_fallocate(fd, 0, (off_t)fixed->total_bytes);
    if (number != 0) {
        errno = number;
        return fail_errno(error, "cannot allocate the file's space", path);
    }
    int e = region_map(r, fixed->total_bytes, MAP_SHARED, fd, error);
    if (e == 0) {
        e = region_fill(r, fixed, hooks, error);
    }
    if (e != 0) {
        return e;
    }
    if (fstat(fd, &st) != 0 || flock_retry(fd, LOCK_SH) != 0) {
        return fail_errno(error, "cannot stat or lock the new file", path);
    }
    struct region_anchor anchor = region_anchor_now(fixed);
    set_file_anchor(r, &st, &anchor);
    return 0;
}

/* 0; 1 if somebody else was faster; or an error. */
static int make_file(struct region *r, const char *path, const struct region_fixed *fixed,
                     const struct region_hooks *hooks, struct weir_error *error)
{
    int fd = open_nameless(path);
    if (fd < 0) {
        return fail_errno(error, "cannot make a file in this directory", path);
    }
    r->fd = fd;
    int e = build_file(r, fd, path, fixed, hooks, error);
    if (e == 0 && link_nameless(fd, path) != 0) {
        e = errno == EEXIST ? 1 : fail_errno(error, "cannot link the new file into place", path);
    }
    if (e != 0) {
        region_close(r);
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

/* Same boot, same inode: the locks inside are those of living processes, or of noticed dead ones. */
static bool at_home(const struct region *r, const struct stat *st)
{
    const struct region_anchor *a = region_anchor(r);
    struct boot_id boot = clock_boot_id();
    return load_relaxed(&r->head->anchor_commit) != 0 && a->boot.word[0] == boot.word[0] &&
           a->boot.word[1] == boot.word[1] && a->boot_ns <= clock_boot_ns() &&
           a->device == (uint64_t)st->st_dev && a->inode == (uint64_t)st->st_ino;
}

/* A copy made in this boot keeps its time line; after a boot the wall clock gives a new one. */
static struct region_anchor next_anchor(const struct region *r)
{
    const struct region_anchor *old = region_anchor(r);
    struct region_anchor now = region_anchor_now(&r->head->fixed);
    if (old->boot.word[0] == now.boot.word[0] && old->boot.word[1] == now.boot.word[1] &&
        old->boot_ns <= now.boot_ns) {
        return *old;
    }
    return now;
}

static int recover_file(struct region *r, const struct stat *st, const struct region_hooks *hooks,
                        struct weir_error *error)
{
    if (lock_init(&r->head->change) != 0) {
        return fail(error, WEIR_EIO, "cannot make a robust lock");
    }
    int e = hooks->recover(hooks->arg, r, error);
    if (e == 0) {
        struct region_anchor anchor = next_anchor(r);
        set_file_anchor(r, st, &anchor); /* last: until here the next opener does it all again */
    }
    return e;
}

static int attach_file(struct region *r, int fd, const char *path, const struct region_hooks *hooks,
                       struct weir_error *error)
{
    struct stat st;
    struct region_fixed fixed;
    bool alone = flock_retry(fd, LOCK_EX | LOCK_NB) == 0;
    if (!alone && flock_retry(fd, LOCK_SH) != 0) {
        return fail_errno(error, "cannot lock", path);
    }
    if (fstat(fd, &st) != 0) {
        return fail_errno(error, "cannot stat", path);
    }
    int e = check_file(&st, path, error);
    if (e == 0) {
        e = check_header(fd, (uint64_t)st.st_size, path, &fixed, error);
    }
    if (e == 0) {
        e = region_map(r, fixed.total_bytes, MAP_SHARED, fd, error);
    }
    if (e == 0 && !at_home(r, &st)) {
        e = alone
                ? recover_file(r, &st, hooks, error)
                : fail(error, WEIR_EIO, "%s: in use by a process of another boot or machine", path);
    }
    if (e == 0 && alone && flock_retry(fd, LOCK_SH) != 0) {
        e = fail_errno(error, "cannot lock", path);
    }
    return e;
}

static int open_existing(struct region *r, const char *path, const struct region_hooks *hooks,
                         struct weir_error *error)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
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
    if (strlen(path) + 2 > PATH_MAX) {
        return fail(error, WEIR_EINVAL, "the path is too long");
    }
    for (int i = 0; i < ATTEMPTS; i++) {
        int e = open_existing(r, path, hooks, error);
        *made = false;
        if (e != 1) {
            return e;
        }
        if ((flags & WEIR_MUST_EXIST) != 0) {
            return fail(error, WEIR_EIO, "%s: does not exist", path);
        }
        e = make_file(r, path, fixed, hooks, error);
        *made = e == 0;
        if (e != 1) {
            return e;
        }
    }
    return fail(error, WEIR_EIO, "%s: keeps appearing and disappearing", path);
}
