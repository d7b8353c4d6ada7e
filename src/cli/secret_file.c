#include "cli/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/connect_address.h"
#include "server/loop/server.h"

bool secret_make(char secret[SECRET_HEX + 1])
{
    unsigned char bits[SECRET_HEX / 2];
    ssize_t got;
    do {
        got = getrandom(bits, sizeof bits, 0); /* all of it, because it is less than 256 bytes */
    } while (got < 0 && errno == EINTR);
    for (size_t i = 0; i < sizeof bits; i++) {
        (void)snprintf(secret + 2 * i, 3, "%02x", bits[i]);
    }
    explicit_bzero(bits, sizeof bits);
    return got == (ssize_t)sizeof bits;
}

/* ---- names ---- */

/* Writes "admin-ADDRESS.secret". Returns false if that is too long, or the socket is not there. */
static bool name_of(const char *address, char name[NAME_MAX + 1])
{
    char real[PATH_MAX];
    const char *from = address;
    size_t n = (size_t)snprintf(name, NAME_MAX + 1, "admin-");
    if (is_unix_address(address)) {
        if (realpath(address + 5, real) == NULL) {
            return false;
        }
        from = real;
        n += (size_t)snprintf(name + n, NAME_MAX + 1 - n, "unix:");
    }
    for (; *from != 0 && n + 3 + strlen("..secret") <= NAME_MAX; from++) {
        bool plain = *from != '/' && *from != '%';
        n += (size_t)snprintf(name + n, NAME_MAX + 1 - n, plain ? "%c" : "%%%02X",
                              (unsigned char)*from);
    }
    (void)snprintf(name + n, NAME_MAX + 1 - n, ".secret");
    return *from == 0;
}

/* ---- folders ---- */

#define SERVICE_STATE "/var/lib/weir" /* of the unit and of the container */

static const char *given_folder(const char *variable)
{
    const char *given = getenv(variable);
    return given != NULL && given[0] == '/' ? given : NULL;
}

/* Returns the first folder of $RUNTIME_DIRECTORY, which may list several. */
static const char *runtime_folder(char folder[PATH_MAX])
{
    const char *given = given_folder("RUNTIME_DIRECTORY");
    if (given == NULL) {
        return NULL;
    }
    (void)snprintf(folder, PATH_MAX, "%.*s", (int)strcspn(given, ":"), given);
    return folder;
}

/* A folder that the server makes, below one that is there. */
struct made_folder {
    const char *base; /* NULL: there is none */
    const char *below;
};

static struct made_folder session_folder(void)
{
    return (struct made_folder){given_folder("XDG_RUNTIME_DIR"), "weir"};
}

/* For users without a session. /run/weir belongs to the service, which may be another user's. */
static struct made_folder lasting_folder(void)
{
    return geteuid() == 0 ? (struct made_folder){"/run", "weir-root"}
                          : (struct made_folder){given_folder("HOME"), ".local/state/weir"};
}

/* Returns the path of a folder that is made; NULL if there is none. */
static const char *path_of(struct made_folder made, char folder[PATH_MAX])
{
    return made.base != NULL &&
                   snprintf(folder, PATH_MAX, "%s/%s", made.base, made.below) < PATH_MAX
               ? folder
               : NULL;
}

/* ---- writing ---- */

/* Opens a folder that no other user can write to, in the folder `at`; -1 if it is not one. */
static int open_folder(int at, const char *folder)
{
    struct stat st;
    int fd = openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || (st.st_uid != geteuid() && st.st_uid != 0) ||
                    (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Makes the folders below one that is there. Returns false if other users can write to one of them,
 * as to /tmp: they could put their own in its place. */
static bool make_folder(struct made_folder made)
{
    char name[NAME_MAX + 1];
    struct weir_text rest = text_of(made.below);
    int fd = made.base != NULL ? open_folder(AT_FDCWD, made.base) : -1;
    while (fd >= 0 && rest.len > 0) {
        struct weir_text one = text_cut(&rest, '/');
        (void)snprintf(name, sizeof name, "%.*s", TEXT_ARGS(one));
        (void)mkdirat(fd, name, 0700);
        int next = open_folder(fd, name);
        (void)close(fd);
        fd = next;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static bool write_all(int fd, const char *secret)
{
    char line[SECRET_HEX + 2];
    int n = snprintf(line, sizeof line, "%s\n", secret);
    bool written = write(fd, line, (size_t)n) == n && fchmod(fd, 0600) == 0;
    explicit_bzero(line, sizeof line);
    return close(fd) == 0 && written;
}

/* Writes a new file and renames it, so that readers see all of it or nothing, and a link that was
 * there is not followed. Other servers may do the same in this folder: the draft has the name of
 * the file, which they do not have. */
static bool write_in(const char *folder, const char *name, const char *secret)
{
    char draft[NAME_MAX + 2];
    int at = open_folder(AT_FDCWD, folder);
    if (at < 0) {
        return false;
    }
    (void)snprintf(draft, sizeof draft, ".%s", name);
    (void)unlinkat(at, draft, 0);
    int fd = openat(at, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool made = fd >= 0 && write_all(fd, secret) && renameat(at, draft, at, name) == 0;
    if (fd >= 0 && !made) {
        (void)unlinkat(at, draft, 0);
    }
    (void)close(at);
    return made;
}

bool secret_file_write(const char *address, const char *state, const char *secret,
                       char path[PATH_MAX])
{
    char name[NAME_MAX + 1];
    char runtime[PATH_MAX];
    char session[PATH_MAX];
    char lasting[PATH_MAX];
    bool known = state != NULL && strcmp(state, SERVICE_STATE) == 0;
    const struct made_folder of_session = session_folder();
    const struct made_folder of_user = lasting_folder();
    const struct {
        const char *path;
        const struct made_folder *made; /* NULL: it is there */
    } folders[] = {
        {runtime_folder(runtime), NULL},
        {path_of(of_session, session), &of_session},
        {known ? state : NULL, NULL},
        {path_of(of_user, lasting), &of_user},
        {state, NULL},
    };
    if (!name_of(address, name)) {
        return false;
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *folder = folders[i].path;
        if (folder != NULL && (folders[i].made == NULL || make_folder(*folders[i].made)) &&
            write_in(folder, name, secret)) {
            return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
        }
    }
    return false;
}

/* ---- finding ---- */

struct place_to_look {
    const char *folder;
    bool of_service; /* made by the service manager or an administrator, for the server's user */
};

/* Returns why the file is not used; NULL if it is. */
static const char *refusal_of(int fd, const struct place_to_look *place)
{
    struct stat st;
    struct stat folder;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return "is not a regular file";
    }
    if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return "is open to other users; expected mode 0600";
    }
    bool owned = st.st_uid == 0 || st.st_uid == geteuid();
    bool served = geteuid() == 0 && place->of_service && stat(place->folder, &folder) == 0 &&
                  folder.st_uid == st.st_uid;
    return owned || served ? NULL : "belongs to another user";
}

static void read_secret(int fd, struct secret_found *found)
{
    ssize_t n = read(fd, found->secret, SECRET_HEX);
    found->secret[n > 0 ? n : 0] = 0;
    found->secret[strcspn(found->secret, "\r\n")] = 0;
    found->refused = found->secret[0] == 0 ? "is empty" : NULL;
}

/* Returns whether there is such a file in this folder, which is used or not. */
static bool look_in(const struct place_to_look *place, const char *name, struct secret_found *found)
{
    if (snprintf(found->path, sizeof found->path, "%s/%s", place->folder, name) >= PATH_MAX) {
        return false;
    }
    int fd = open(found->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        found->refused = errno == ELOOP ? "is a symbolic link" : "cannot be read";
        return errno == ELOOP || errno == EACCES;
    }
    found->refused = refusal_of(fd, place);
    if (found->refused == NULL) {
        read_secret(fd, found);
    }
    (void)close(fd);
    return true;
}

/* Looks in every folder. Returns whether the search is over. */
static bool look_for(const char *address, struct secret_found *found)
{
    char name[NAME_MAX + 1];
    char runtime[PATH_MAX];
    char session[PATH_MAX];
    char lasting[PATH_MAX];
    char user[PATH_MAX];
    (void)snprintf(user, sizeof user, "/run/user/%u/weir", (unsigned)geteuid());
    const struct place_to_look places[] = {
        {runtime_folder(runtime), false},
        {path_of(session_folder(), session), false},
        {user, false}, /* of a session's server, if cron runs the command */
        {path_of(lasting_folder(), lasting), false},
        {"/run/weir", true},
        {getenv("WEIR_STATE"), false},
        {SERVICE_STATE, true},
    };
    bool there = false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (places[i].folder != NULL && found->secret[0] == 0 && name_of(address, name)) {
            struct secret_found here = {.path = ""};
            if (look_in(&places[i], name, &here) && (!there || here.refused == NULL)) {
                *found = here;
                there = true;
            }
        }
    }
    return there;
}

/* Looks for the file of a socket's address, and of a server that listens at every address. */
static bool look_for_tcp(const struct addrinfo *info, struct secret_found *found)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    char address[SERVER_ADDRESS_MAX];
    char every[SERVER_ADDRESS_MAX];
    memcpy(&bound, info->ai_addr, info->ai_addrlen);
    if (!listener_print(&bound, address, sizeof address)) {
        return false;
    }
    const char *port = strrchr(address, ':');
    bool there = look_for(address, found);
    (void)snprintf(every, sizeof every, "0.0.0.0%s", port);
    there = there || (bound.ss_family == AF_INET && look_for(every, found));
    (void)snprintf(every, sizeof every, "[::]%s", port);
    return there || look_for(every, found);
}

static bool is_loopback(const struct addrinfo *all)
{
    for (; all != NULL; all = all->ai_next) {
        struct sockaddr_storage one = {.ss_family = AF_UNSPEC};
        memcpy(&one, all->ai_addr, all->ai_addrlen);
        if (!listener_is_loopback(&one)) {
            return false;
        }
    }
    return true;
}

void secret_file_find(const char *address, struct secret_found *found)
{
    struct connect_address to;
    struct weir_error error;
    *found = (struct secret_found){.path = ""};
    if (is_unix_address(address)) {
        (void)look_for(address, found);
        return;
    }
    if (connect_address_read(&to, address, &error) != 0) {
        return;
    }
    bool there = false;
    for (const struct addrinfo *a = to.found; is_loopback(to.found) && !there && a != NULL;
         a = a->ai_next) {
        there = look_for_tcp(a, found);
    }
    connect_address_finish(&to);
}
