/* Opens and binds sockets for the addresses to listen on, and checks that a listener which other
 * machines can reach needs a secret. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "rules/file/config.h"
#include "rules/value/address.h"
#include "server/access/access.h"
#include "server/loop/worker.h"

#define GROUP_BYTES 4096            /* first room for a group and the names of its members */
#define GROUP_BYTES_MAX (64u << 20) /* most room for them */

#define ADDRESS_MAX_BYTES 256

/* Returns true if no process listens on this socket, because its server was killed. */
static bool is_left(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool left = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                errno == ECONNREFUSED;
    if (fd >= 0) {
        (void)close(fd);
    }
    return left;
}

static int open_unix(const char *path, int *out, struct weir_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof address.sun_path) {
        return fail(error, WEIR_EINVAL,
                    "%s: found %zu bytes, expected a socket path of fewer than %zu", path,
                    strlen(path), sizeof address.sun_path);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && is_left(&address)) {
        (void)unlink(path);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int e = fail_errno(error, "cannot be listened on", path);
        if (fd >= 0) {
            (void)close(fd);
        }
        return e;
    }
    *out = fd;
    return 0;
}

static bool set(int fd, int option)
{
    int one = 1;
    return setsockopt(fd, SOL_SOCKET, option, &one, sizeof one) == 0;
}

/* Binds a socket. With SO_REUSEPORT, bind() succeeds although another socket that has it too uses
 * the port. So the first socket sets it after bind(), which fails if another server has the port,
 * and the others set it before. */
static int bind_tcp(const struct addrinfo *info, enum listener_share share)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (!set(fd, SO_REUSEADDR) || (share == LISTENER_MORE && !set(fd, SO_REUSEPORT)) ||
        bind(fd, info->ai_addr, info->ai_addrlen) != 0 ||
        (share == LISTENER_FIRST && !set(fd, SO_REUSEPORT))) {
        int number = errno;
        (void)close(fd);
        errno = number;
        return -1;
    }
    return fd;
}

static int open_tcp(const char *address, enum listener_share share, int *out,
                    struct weir_error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    char host[ADDRESS_MAX_BYTES];
    const char *port;
    if (!host_split(address, host, sizeof host, &port)) {
        return fail(error, WEIR_EINVAL,
                    "found '%s', expected ADDRESS:PORT, PORT for 127.0.0.1, unix:PATH or off",
                    address);
    }
    int e = getaddrinfo(host, port, &hints, &found);
    if (e != 0) {
        return fail(error, WEIR_EINVAL, "%s: %s", address, gai_strerror(e));
    }
    int fd = -1;
    for (const struct addrinfo *a = found; fd < 0 && a != NULL; a = a->ai_next) {
        fd = bind_tcp(a, share);
    }
    e = fd >= 0 ? 0 : fail_errno(error, "cannot be listened on", address);
    freeaddrinfo(found);
    *out = fd;
    return e;
}

/* Finds a group by its name. The names of its members need as much room as there are members. */
static bool find_group_by_name(const char *name, gid_t *gid)
{
    struct group entry;
    struct group *found = NULL;
    int e = ERANGE;
    for (size_t size = GROUP_BYTES; e == ERANGE && size <= GROUP_BYTES_MAX; size *= 4) {
        char *room = malloc(size);
        e = room != NULL ? getgrnam_r(name, &entry, room, size, &found) : ENOMEM;
        free(room);
    }
    *gid = found != NULL ? entry.gr_gid : 0;
    return e == 0 && found != NULL;
}

/* Finds a group by its name or number. */
static bool find_group(const char *name, gid_t *gid)
{
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (find_group_by_name(name, gid)) {
        return true;
    }
    *gid = (gid_t)number;
    return name[0] >= '0' && name[0] <= '9' && *end == 0 && number < UINT32_MAX;
}

static int read_group(const struct server_options *o, gid_t *gid, struct weir_error *error)
{
    return find_group(o->socket_group, gid)
               ? 0
               : fail(error, WEIR_EINVAL,
                      "socket_group: found '%s', expected a group of this system", o->socket_group);
}

/* Returns whether the server makes a unix socket itself; the service manager permits its own. */
static bool makes_unix_socket(const struct server_options *o)
{
    bool makes = false;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        makes = makes || (o->given[i].count == 0 && listener_is_unix(o->listen[i]));
    }
    return makes;
}

int listener_check_permissions(const struct server_options *o, struct weir_error *error)
{
    static const char why[] = "no listener is a unix socket that this server makes";
    gid_t gid;
    bool useless = !makes_unix_socket(o);
    if (useless && o->socket_mode != 0 && o->socket_mode != SERVER_SOCKET_MODE) {
        LOG(LEVEL_WARNING, "socket_mode has no effect", LOG_STRING("why", why));
    }
    if (useless && o->socket_group != NULL) {
        LOG(LEVEL_WARNING, "socket_group has no effect", LOG_STRING("why", why));
    }
    return o->socket_group != NULL ? read_group(o, &gid, error) : 0;
}

int listener_permit(const char *address, const struct server_options *o, struct weir_error *error)
{
    const char *path = address + 5;
    mode_t mode = o->socket_mode != 0 ? o->socket_mode : SERVER_SOCKET_MODE;
    struct stat st;
    if (lstat(path, &st) != 0) {
        return fail_errno(error, "cannot be examined", path);
    }
    gid_t gid = st.st_gid;
    int e = o->socket_group != NULL ? read_group(o, &gid, error) : 0;
    if (e != 0) {
        return e;
    }
    if (gid != st.st_gid && lchown(path, (uid_t)-1, gid) != 0) {
        return fail_errno(error, "cannot be given to that group", path);
    }
    return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == 0
               ? 0
               : fail_errno(error, "cannot be given its mode", path);
}

bool listener_is_unix(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

int listener_open(const char *address, enum listener_share share, int *fd, struct weir_error *error)
{
    *fd = -1;
    if (strcmp(address, "off") == 0) {
        return 0;
    }
    if (listener_is_unix(address)) {
        return open_unix(address + 5, fd, error);
    }
    return open_tcp(address, share, fd, error);
}

bool listener_print(const struct sockaddr_storage *bound, char *text, size_t size)
{
    char host[NI_MAXHOST];
    char port[8];
    bool six = bound->ss_family == AF_INET6;
    if ((!six && bound->ss_family != AF_INET) ||
        getnameinfo((const struct sockaddr *)bound, sizeof *bound, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return false;
    }
    (void)snprintf(text, size, six ? "[%s]:%s" : "%s:%s", host, port);
    return true;
}

/* ---- exposure ---- */

bool listener_is_loopback(const struct sockaddr_storage *bound)
{
    if (bound->ss_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)bound)->sin_addr.s_addr) >> 24 == 127;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)bound)->sin6_addr;
    return bound->ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127));
}

uint16_t listener_port(const struct sockaddr_storage *bound)
{
    return bound->ss_family == AF_INET    ? ntohs(((const struct sockaddr_in *)bound)->sin_port)
           : bound->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)bound)->sin6_port)
                                          : 0;
}

/* Returns whether only this machine can connect to the socket. Writes its address into `text`. The
 * address is read from the socket itself, because a host name may mean any address, and a socket
 * may come from the caller. */
static bool is_local(int fd, char *text, size_t size)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof bound;
    (void)snprintf(text, size, "an unknown address");
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
        return false;
    }
    if (!listener_print(&bound, text, size)) {
        return bound.ss_family == AF_UNIX;
    }
    return listener_is_loopback(&bound);
}

/* Returns whether a listener gives the role by certificates: to those with certain names, or to all
 * clients, because all of them must have one. */
static bool is_certified(const struct server_options *o, unsigned protocol, enum role role)
{
    const struct server_tls_options *tls = &o->tls;
    bool named = tls->names[role] != NULL && tls->names[role]->count > 0;
    return tls->cert != NULL && tls->listener[protocol] &&
           (named || (role == ROLE_CHECK && tls->client_cert == CLIENT_CERT_REQUIRED));
}

/* Returns a role of the listener that has no secrets; ROLE_NONE if there is none. A secret that was
 * made is known on this machine only: other machines would have none. */
static enum role missing_of(const struct server_options *o, unsigned protocol)
{
    for (enum role role = ROLE_ADMIN; role > ROLE_NONE; role--) {
        bool given =
            (access_has_secrets(o->access, role) && !(role == ROLE_ADMIN && o->secret_made)) ||
            is_certified(o, protocol, role);
        if (protocol_of(protocol)->roles[role] && !given) {
            return role;
        }
    }
    return ROLE_NONE;
}

int exposure_check(const struct server_options *o, const int *sockets, struct weir_error *error)
{
    char address[SERVER_ADDRESS_MAX];
    for (unsigned i = 0; i < PROTOCOLS && !o->insecure; i++) {
        enum role missing = missing_of(o, i);
        if (sockets[i] >= 0 && missing != ROLE_NONE &&
            !is_local(sockets[i], address, sizeof address)) {
            return fail(
                error, WEIR_EINVAL,
                "%s would listen on %s, which other machines can reach, without %s secrets: "
                "give --%s-secrets FILE or set %s, listen on 127.0.0.1, or use --insecure",
                protocol_of(i)->name, address, role_names[missing], role_names[missing],
                role_variables[missing]);
        }
    }
    return 0;
}
