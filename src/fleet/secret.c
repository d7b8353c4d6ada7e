/* Passwords of the store and of the Sentinels: from the options, wiped when the fleet is closed, or
 * from files, read for each connection and wiped after use. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fleet/fleet_thread.h"

/* The options of one of the two passwords, and the prefix of their names. */
struct secret {
    const char *prefix;
    const char *user;
    const char *password;
    const char *file;
};

static struct secret secret_of(const struct weir_fleet_options *o, bool sentinel)
{
    return sentinel ? (struct secret){"sentinel_", o->sentinel_user, o->sentinel_password,
                                      o->sentinel_password_file}
                    : (struct secret){"", o->user, o->password, o->password_file};
}

static int check(const struct secret *s, struct weir_error *error)
{
    if (s->password != NULL && s->file != NULL) {
        return fail(error, WEIR_EINVAL,
                    "found %spassword and %spassword_file, expected one of them", s->prefix,
                    s->prefix);
    }
    if (s->user != NULL && s->password == NULL && s->file == NULL) {
        return fail(error, WEIR_EINVAL, "found %suser, but neither %spassword nor a file with it",
                    s->prefix, s->prefix);
    }
    if (s->password != NULL && strlen(s->password) >= FLEET_SECRET_BYTES) {
        return fail(error, WEIR_EINVAL, "%spassword has %zu bytes, expected at most %d", s->prefix,
                    strlen(s->password), FLEET_SECRET_BYTES - 1);
    }
    return 0;
}

int fleet_secrets_check(const struct weir_fleet_options *o, struct weir_error *error)
{
    struct secret store = secret_of(o, false);
    struct secret sentinel = secret_of(o, true);
    int e = check(&store, error);
    return e != 0 ? e : check(&sentinel, error);
}

/* Reads up to `most` bytes of a file. Returns their number; -1 with errno on failure. */
static ssize_t read_file(const char *path, char *room, size_t most)
{
    size_t n = 0;
    ssize_t got;
    /* O_NONBLOCK: opening a pipe must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

static int first_line(const struct secret *s, char room[FLEET_SECRET_BYTES],
                      struct weir_text *secret, struct weir_error *error)
{
    const char *path = s->file;
    ssize_t n = read_file(path, room, FLEET_SECRET_BYTES);
    if (n < 0) {
        return fail(error, WEIR_EIO, "%spassword_file %.100s: %s", s->prefix, path,
                    strerror(errno));
    }
    const char *end = memchr(room, '\n', (size_t)n);
    if (end == NULL && n == FLEET_SECRET_BYTES) {
        return fail(error, WEIR_EIO,
                    "%spassword_file %.100s: the first line is longer than %d bytes", s->prefix,
                    path, FLEET_SECRET_BYTES - 1);
    }
    size_t len = end != NULL ? (size_t)(end - room) : (size_t)n;
    len -= len > 0 && room[len - 1] == '\r';
    if (len == 0) {
        return fail(error, WEIR_EIO,
                    "%spassword_file %.100s: the first line is empty, expected a password",
                    s->prefix, path);
    }
    *secret = (struct weir_text){room, len};
    return 0;
}

int fleet_secret_read(const struct weir_fleet *fleet, bool sentinel, char room[FLEET_SECRET_BYTES],
                      struct weir_text *secret, struct weir_error *error)
{
    struct secret s = secret_of(&fleet->options, sentinel);
    *secret = s.password != NULL ? text_of(s.password) : TEXT("");
    return s.file != NULL ? first_line(&s, room, secret, error) : 0;
}
