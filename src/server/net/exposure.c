/*
 * Checks that a listener which other machines can reach needs a secret. The address is read from
 * the socket itself, because a host name may mean any address, and a socket may come from the
 * caller.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/error.h"
#include "server/net/access.h"
#include "server/net/worker.h"

/* The option and the variable that give the secrets of a role, for messages. */
static const struct {
    const char *option;
    const char *variable;
} secrets[ROLES] = {
    [ROLE_CHECK] = {"--check-secrets", "WEIR_CHECK_SECRETS"},
    [ROLE_ADMIN] = {"--admin-secrets", "WEIR_ADMIN_SECRETS"},
};

/* The roles that use a listener. Without secrets, a role would be open or could not be used. */
static const struct {
    const char *name;
    bool has[ROLES];
} listeners[PROTOCOLS] = {
    [PROTOCOL_RESP] = {"resp", {[ROLE_CHECK] = true}},
    [PROTOCOL_HTTP] = {"http", {[ROLE_CHECK] = true}},
    [PROTOCOL_ADMIN] = {"admin", {[ROLE_CHECK] = true, [ROLE_ADMIN] = true}}, /* it shows keys */
};

static bool is_loopback_six(const struct in6_addr *a)
{
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

/* Returns whether only this machine can connect to the socket. Writes its address into `text`. */
static bool is_local(int fd, char *text, size_t size)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof bound;
    char host[INET6_ADDRSTRLEN] = "?";
    (void)snprintf(text, size, "an unknown address");
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
        return false;
    }
    if (bound.ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&bound;
        (void)inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        (void)snprintf(text, size, "%s:%u", host, ntohs(four->sin_port));
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (bound.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&bound;
        (void)inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        (void)snprintf(text, size, "[%s]:%u", host, ntohs(six->sin6_port));
        return is_loopback_six(&six->sin6_addr);
    }
    return bound.ss_family == AF_UNIX;
}

/* Returns a role of the listener that has no secrets; ROLE_NONE if there is none. */
static enum role missing_of(const struct server_options *o, unsigned protocol)
{
    for (enum role role = ROLE_ADMIN; role > ROLE_NONE; role--) {
        if (listeners[protocol].has[role] && !access_has_secrets(o->access, role)) {
            return role;
        }
    }
    return ROLE_NONE;
}

int exposure_check(const struct server_options *o, const int *sockets, struct weir_error *error)
{
    char address[INET6_ADDRSTRLEN + 16];
    for (unsigned i = 0; i < PROTOCOLS && !o->insecure; i++) {
        enum role missing = missing_of(o, i);
        if (sockets[i] >= 0 && missing != ROLE_NONE &&
            !is_local(sockets[i], address, sizeof address)) {
            return fail(error, WEIR_EINVAL,
                        "%s is to listen on %s, beyond this machine, and there are no %s secrets: "
                        "give %s FILE or %s, listen on 127.0.0.1, or say --insecure",
                        listeners[i].name, address, role_names[missing], secrets[missing].option,
                        secrets[missing].variable);
        }
    }
    return 0;
}
