/* New files: made aside, complete, and then put into their place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "table/region_file.h"

#define HANDLE_BYTES 128

/* The directory of `path`, with its slash; "./" if it has none. path is shorter than PATH_MAX - 2. */
static void directory_of(const char *path, char directory[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    memcpy(directory, path, n);
    memcpy(directory + n, "./", 3);
}

/*
 * Without a name if the file system can (O_TMPFILE) and /proc is there to link it by; else with a
 * hidden one beside its place, which a kill at the wrong moment leaves there.
 */
int draft_open(struct draft *d, bool named)
{
    char directory[PATH_MAX];
    int fd = -1;
    directory_of(d->path, directory);
    d->name[0] = '\0';
    if (!named && access("/proc/self/fd", F_OK) == 0) {
        fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) {
            return fd;
        }
    }
    (void)snprintf(d->name, sizeof d->name, "%s.weir-XXXXXX", directory);
    fd = mkostemp(d->name, O_CLOEXEC);
    if (fd < 0) {
        d->name[0] = '\0';
    }
    return fd;
}

/* Without real blocks a full disk would be a SIGBUS at some later store. */
int region_allocate(int fd, uint64_t bytes, const char *path, struct weir_error *error)
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

int draft_map(struct region *r, uint64_t bytes, const char *path, struct weir_error *error)
{
    int e = region_allocate(r->fd, bytes, path, error);
    e = e != 0 ? e : region_map(r, bytes, MAP_SHARED, r->fd, error);
    return e != 0 ? e : region_identify(r, path, error);
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

static int give_place(const struct draft *d, int fd, bool replace)
{
    char self[32];
    if (replace) {
        return rename(d->name, d->path);
    }
    if (d->name[0] != '\0') {
        return link(d->name, d->path);
    }
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, d->path, AT_SYMLINK_FOLLOW);
}

/* Without the first sync a power cut may leave the name and lose what it names. */
int draft_place(struct draft *d, int fd, bool replace, struct weir_error *error)
{
    if (fsync(fd) != 0) {
        return fail_errno(error, "cannot sync the new file", d->path);
    }
    if (give_place(d, fd, replace) != 0) {
        return errno == EEXIST ? 1
                               : fail_errno(error, "cannot link the new file into place", d->path);
    }
    if (replace) {
        d->name[0] = '\0';
    }
    sync_directory(d->path);
    return 0;
}

void draft_discard(const struct draft *d)
{
    if (d->name[0] != '\0') {
        (void)unlink(d->name);
    }
}

/* ---- identity ---- */

static uint64_t born_ns(int fd)
{
#ifdef STATX_BTIME /* a C library without statx() leaves the handle to tell files apart */
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

int region_identify(struct region *r, const char *path, struct weir_error *error)
{
    struct stat st;
    if (fstat(r->fd, &st) != 0) {
        return fail_errno(error, "cannot stat", path);
    }
    r->identity = (struct region_identity){(uint64_t)st.st_dev, (uint64_t)st.st_ino, born_ns(r->fd),
                                           handle_of(r->fd)};
    return 0;
}
