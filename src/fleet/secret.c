/* The password: copied or read from its file, looked at for a moment, wiped. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fleet/thread.h"

/* Up to `most` bytes of the file; -1 and errno. */
static ssize_t read_file(const char *path, char *room, size_t most)
{
    size_t n = 0;
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* nobody waits for a pipe's writer */
    if (fd < 0) {
        return -1;
    }
    while ((got = read(fd, room + n, most - n)) != 0 && n < most) {
        if (got < 0 && errno != EINTR) {
            break;
        }
        n += got > 0 ? (size_t)got : 0;
    }
    int e = errno;
    (void)close(fd);
    errno = e;
    return got < 0 ? -1 : (ssize_t)n;
}

static int first_line(const char *path, char room[FLEET_SECRET_BYTES], struct text *secret,
                      struct weir_error *error)
{
    ssize_t n = read_file(path, room, FLEET_SECRET_BYTES);
    if (n < 0) {
        return fail(error, WEIR_EIO, "password_file %.100s: %s", path, strerror(errno));
    }
    const char *end = memchr(room, '\n', (size_t)n);
    if (end == NULL && n == FLEET_SECRET_BYTES) {
        return fail(error, WEIR_EIO, "password_file %.100s: its first line is longer than %d bytes",
                    path, FLEET_SECRET_BYTES - 1);
    }
    size_t len = end != NULL ? (size_t)(end - room) : (size_t)n;
    len -= len > 0 && room[len - 1] == '\r';
    if (len == 0) {
        return fail(error, WEIR_EIO, "password_file %.100s: its first line is empty", path);
    }
    *secret = (struct text){room, len};
    return 0;
}

int fleet_secret_read(const struct weir_fleet *fleet, char room[FLEET_SECRET_BYTES],
                      struct text *secret, struct weir_error *error)
{
    const struct weir_fleet_options *o = &fleet->options;
    *secret = TEXT("");
    if (o->password_file != NULL) {
        return first_line(o->password_file, room, secret, error);
    }
    if (o->password != NULL) {
        *secret = text_of(o->password);
    }
    return 0;
}
