/* New files: made without their name, completed, and then linked to their path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "table/region_file.h"

#define HANDLE_BYTES 128

/* Writes the directory of `path`, which is shorter than PATH_MAX - 2, with "./" at its end. */
static void directory_of(const char *path, char directory[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    memcpy(directory, path, n);
    memcpy(directory + n, "./", 3);
}

/*
 * Makes a file without a name, if the file system can (O_TMPFILE) and /proc is there to link it.
 * Otherwise the file gets a hidden name beside its place, where a kill may leave it.
 */
static int open_draft(struct draft *d)
{
    d->name[0] = '\0';
    if (access("/proc/self/fd", F_OK) == 0) {
        int fd = open(d->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) {
            return fd;
        }
    }
    (void)snprintf(d->name, sizeof d->name, "%s.weir-XXXXXX", d->directory);
    int fd = mkostemp(d->name, O_CLOEXEC);
    if (fd < 0) {
        d->name[0] = '\0';
    }
    return fd;
}

int region_allocate(const struct region *r, const struct region_opening *o)
{
    do {
        errno = posix_fallocate(r->fd, 0, (off_t)r->bytes);
    } while (errno == EINTR);
    return errno == 0 ? 0 : fail_errno(o->error, "cannot allocate the file's space", NULL);
}

int draft_begin(struct draft *d, struct region *r, const struct region_opening *o)
{
    struct stat st;
    directory_of(o->path, d->directory);
    r->fd = open_draft(d);
    if (r->fd < 0) {
        return fail_errno(o->error, "cannot make a file in this directory", NULL);
    }
    int e = region_map(r, o->fixed->total_bytes, MAP_SHARED, o->error);
    e = e != 0 ? e : region_allocate(r, o);
    return e != 0 ? e : region_identify(r, &st, o);
}

static int give_place(const struct draft *d, int fd, const char *path)
{
    char self[32];
    if (d->name[0] != '\0') {
        return link(d->name, path);
    }
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int draft_end(struct draft *d, const struct region *r, const struct region_opening *o, int e)
{
    /* Without this sync a power cut may leave the name and lose the contents. */
    if (e == 0 && fsync(r->fd) != 0) {
        e = fail_errno(o->error, "cannot sync the new file", NULL);
    }
    if (e == 0 && give_place(d, r->fd, o->path) != 0) {
        e = errno == EEXIST ? AGAIN
                            : fail_errno(o->error, "cannot link the new file into place", NULL);
    }
    int directory = e != 0 ? -1 : open(d->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        (void)fsync(directory); /* some file systems cannot, and keep their own order */
        (void)close(directory);
    }
    if (d->name[0] != '\0') {
        (void)unlink(d->name);
    }
    return e;
}

static uint64_t born_ns(int fd)
{
#ifdef STATX_BTIME /* without statx() in the C library, the handle tells files apart */
    struct statx s;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &s) == 0 && (s.stx_mask & STATX_BTIME) != 0) {
        return (uint64_t)s.stx_btime.tv_sec * WEIR_SECOND + s.stx_btime.tv_nsec;
    }
#endif
    (void)fd;
    return 0;
}

static uint64_t handle_of(int fd)
{
    static const uint64_t key[2] = {0x77656972, 0x68616e646c65};
    union {
        struct file_handle handle;
        unsigned char bytes[sizeof(struct file_handle) + HANDLE_BYTES];
    } h;
    int mount;
    memset(&h, 0, sizeof h);
    h.handle.handle_bytes = HANDLE_BYTES;
    if (name_to_handle_at(fd, "", &h.handle, &mount, AT_EMPTY_PATH) != 0) {
        return 0;
    }
    return siphash128(key, &h, sizeof(struct file_handle) + h.handle.handle_bytes, 1, 3).low;
}

int region_identify(struct region *r, struct stat *st, const struct region_opening *o)
{
    if (fstat(r->fd, st) != 0) {
        return fail_errno(o->error, "cannot stat", NULL);
    }
    r->identity = (struct region_identity){(uint64_t)st->st_dev, (uint64_t)st->st_ino,
                                           born_ns(r->fd), handle_of(r->fd)};
    return 0;
}
