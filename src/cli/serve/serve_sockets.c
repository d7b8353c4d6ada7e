#include "cli/serve/serve_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_FD 3

/* ---- one socket ---- */

static bool has_option(int fd, int option, int expected)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == expected;
}

static void print_unix(const struct sockaddr_un *from, socklen_t len, char *text, size_t size)
{
    size_t n = len - offsetof(struct sockaddr_un, sun_path);
    bool abstract = n > 0 && from->sun_path[0] == '\0';
    (void)snprintf(text, size, "unix:%s%.*s", abstract ? "@" : "", (int)(n - abstract),
                   from->sun_path + abstract);
}

static bool print_address(int fd, char *text, size_t size)
{
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof from;
    if (getsockname(fd, (struct sockaddr *)&from, &len) != 0) {
        return false;
    }
    if (from.ss_family == AF_UNIX) {
        print_unix((const struct sockaddr_un *)&from, len, text, size);
        return true;
    }
    return listener_print(&from, text, size);
}

static int take_one(struct socket_given *s, int fd)
{
    int flags = fcntl(fd, F_GETFD);
    s->fd = fd;
    if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0) {
        return cli_complain(&cli_serve, "LISTEN_FDS: descriptor %d: %s", fd, strerror(errno));
    }
    if (!has_option(fd, SO_TYPE, SOCK_STREAM) || !has_option(fd, SO_ACCEPTCONN, 1) ||
        !print_address(fd, s->address, sizeof s->address)) {
        return cli_complain(
            &cli_serve,
            "LISTEN_FDS: found no socket that can be used in descriptor %d, expected a listening "
            "stream socket of IPv4, IPv6 or unix",
            fd);
    }
    return CLI_OK;
}

/* ---- all of them ---- */

/* Copies the part of "resp:http:admin" before the next colon, and moves *names past that colon. */
static void take_name(const char **names, char *name, size_t size)
{
    size_t n = strcspn(*names, ":");
    (void)snprintf(name, size, "%.*s", (int)n, *names);
    *names += n + ((*names)[n] == ':');
}

static int take_all(struct sockets *sockets, const char *fds, const char *names)
{
    char *end;
    errno = 0;
    long n = strtol(fds, &end, 10);
    if (errno != 0 || *end != '\0' || n < 0 || n > SOCKETS_MAX) {
        return cli_complain(&cli_serve,
                            "LISTEN_FDS: found '%s', expected a whole number from 0 to %d", fds,
                            SOCKETS_MAX);
    }
    int code = CLI_OK;
    for (int i = 0; code == CLI_OK && i < n; i++) {
        struct socket_given *s = &sockets->at[sockets->count];
        take_name(&names, s->name, sizeof s->name);
        code = take_one(s, FIRST_FD + i);
        sockets->count += code == CLI_OK;
    }
    return code;
}

int sockets_take(struct sockets *sockets)
{
    const char *pid = getenv("LISTEN_PID");
    const char *fds = getenv("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    *sockets = (struct sockets){.count = 0};
    if (pid == NULL || fds == NULL || strtol(pid, NULL, 10) != (long)getpid()) {
        return CLI_OK;
    }
    int code = take_all(sockets, fds, names != NULL ? names : "");
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_PIDFDID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return code;
}

/* ---- which listener a socket belongs to ---- */

static const char *port_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    return strncmp(address, "unix:", 5) == 0 || colon == NULL ? NULL : colon;
}

/* Returns true if the socket has the listener's address or path, or its port at any address. */
static bool is_at(const struct socket_given *s, const char *listen)
{
    const char *port = port_of(s->address);
    const char *wanted = port_of(listen);
    return strcmp(s->address, listen) == 0 ||
           (port != NULL && wanted != NULL && strcmp(port, wanted) == 0);
}

/* Returns the listener that the socket belongs to; PROTOCOLS: none. */
static unsigned owner_of(const struct socket_given *s, const char *const *listen)
{
    unsigned i = 0;
    while (i < PROTOCOLS && strcmp(s->name, protocol_of(i)->name) != 0) {
        i++;
    }
    for (unsigned j = 0; i == PROTOCOLS && j < PROTOCOLS; j++) {
        i = is_at(s, listen[j]) ? j : i;
    }
    return i;
}

static int give(struct sockets *sockets, const struct socket_given *s, unsigned owner,
                struct serve_settings *settings)
{
    unsigned most = listener_is_for_clients(owner) ? SERVER_THREADS_MAX : 1;
    unsigned n = settings->server.given[owner].count;
    if (n == most) {
        return cli_complain(&cli_serve,
                            "found more than %u sockets for %s, expected at most that many", most,
                            protocol_of(owner)->name);
    }
    sockets->fds[owner][n] = s->fd;
    settings->server.given[owner].fds = sockets->fds[owner];
    settings->server.given[owner].count = n + 1;
    return CLI_OK;
}

int sockets_assign(struct sockets *sockets, struct serve_settings *settings)
{
    const char *listen[PROTOCOLS];
    memcpy(listen, settings->server.listen, sizeof listen);
    for (unsigned i = 0; i < sockets->count; i++) {
        const struct socket_given *s = &sockets->at[i];
        unsigned owner = owner_of(s, listen);
        if (owner == PROTOCOLS) {
            return cli_complain(
                &cli_serve,
                "found a socket at %s with the name '%s', expected the name of a listener, such as "
                "resp, or the port or path of one",
                s->address, s->name);
        }
        int code = give(sockets, s, owner, settings);
        if (code != CLI_OK) {
            return code;
        }
        if (settings->server.given[owner].count == 1) {
            memcpy(sockets->address[owner], s->address, sizeof s->address);
            settings->server.listen[owner] = sockets->address[owner];
            settings->listen_from[owner] = "LISTEN_FDS";
        }
    }
    return CLI_OK;
}

void sockets_close(struct sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++) {
        (void)close(sockets->at[i].fd);
    }
    sockets->count = 0;
}
