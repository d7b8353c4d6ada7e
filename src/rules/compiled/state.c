/* The folder of the state: checks its owner, and locks it for one process. */
#include "rules/compiled/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* A server that was killed a moment ago may still hold the lock while it exits. */
#define LOCK_ATTEMPTS 50
#define LOCK_PAUSE_US 20000

void state_path(const struct state *state, const char *name, const char *suffix,
                char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%s/%s%s", state->folder, name, suffix);
}

/* Leaves room for a slash, the name of any file in the folder, and a suffix. */
static int check_length(const char *folder, struct weir_error *error)
{
    size_t most = PATH_MAX - NAME_MAX - sizeof "/.new";
    return strlen(folder) <= most
               ? 0
               : fail(error, WEIR_EINVAL,
                      "the path of the state's folder has %zu bytes, expected at most %zu",
                      strlen(folder), most);
}

static int check_folder(const char *folder, struct weir_error *error)
{
    struct stat st;
    if (stat(folder, &st) != 0) {
        return fail_errno(error, "cannot be used as the folder of the state", folder);
    }
    if (!S_ISDIR(st.st_mode)) {
        return fail(error, WEIR_EACCES, "%s: found no folder, expected one for the state", folder);
    }
    if (st.st_uid != geteuid()) {
        return fail(error, WEIR_EACCES, "%s: found owner %u, expected user %u", folder,
                    (unsigned)st.st_uid, (unsigned)geteuid());
    }
    if ((st.st_mode & 022) != 0) {
        return fail(error, WEIR_EACCES, "%s: found mode %04o, expected no more than 0755", folder,
                    (unsigned)(st.st_mode & 07777));
    }
    return 0;
}

static bool lock_now(int fd)
{
    for (unsigned i = 0; i < LOCK_ATTEMPTS; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return true;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return false;
        }
        (void)usleep(LOCK_PAUSE_US);
    }
    errno = EWOULDBLOCK;
    return false;
}

/*
 * Returns the number of the process that holds the folder, which it wrote into the file; 0 if it
 * has not.
 */
static long read_owner(int fd)
{
    char text[24] = "";
    return pread(fd, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

static void write_owner(int fd)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* For people only: if the disk is full, the limiters will report it. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) {
        return;
    }
}

static int lock_folder(struct state *state, struct weir_error *error)
{
    char path[PATH_MAX];
    state_path(state, ".lock", "", path);
    state->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (state->lock < 0) {
        return fail_errno(error, "cannot be made", path);
    }
    if (lock_now(state->lock)) {
        write_owner(state->lock);
        return 0;
    }
    if (errno != EWOULDBLOCK) {
        return fail_errno(error, "cannot be locked", path);
    }
    return fail(error, WEIR_EACCES,
                "%s: found a folder in use by process %ld, expected one that no other process uses",
                state->folder, read_owner(state->lock));
}

int state_open(struct state **out, const char *folder, struct weir_error *error)
{
    char path[PATH_MAX];
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for the state");
    }
    state->lock = -1;
    state->process = getpid();
    int e = check_length(folder, error);
    e = e != 0 ? e : check_folder(folder, error);
    if (e == 0 && realpath(folder, path) == NULL) {
        e = fail_errno(error, "cannot be found", folder);
    }
    e = e != 0 ? e : check_length(path, error);
    if (e == 0 && (state->folder = strdup(path)) == NULL) {
        e = fail(error, WEIR_ENOMEM, "out of memory for the state");
    }
    e = e != 0 ? e : lock_folder(state, error);
    if (e != 0) {
        state_close(state);
        return e;
    }
    *out = state;
    return 0;
}

void state_close(struct state *state)
{
    if (state != NULL) {
        if (state->lock >= 0) {
            (void)close(state->lock);
        }
        free(state->folder);
        free(state);
    }
}
