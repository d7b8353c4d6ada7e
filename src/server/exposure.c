/*
 * What others can reach needs a secret. Sockets are asked for their address, whoever has bound
 * them: a name may mean any address, and a socket may have been handed over.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/error.h"
#include "server/access.h"
#include "server/worker.h"

/* Who may use a listener at all, and how that is said to be wanted. */
static const struct {
    const char *name;
    enum role role;
    const char *option;
    const char *variable;
} listeners[PROTOCOLS] = {
    [PROTOCOL_RESP] = {"resp", ROLE_CHECK, "--check-secrets", "WEIR_CHECK_SECRETS"},
    [PROTOCOL_HTTP] = {"http", ROLE_CHECK, "--check-secrets", "WEIR_CHECK_SECRETS"},
    [PROTOCOL_ADMIN] = {"admin", ROLE_ADMIN, "--admin-secrets", "WEIR_ADMIN_SECRETS"},
};

static bool is_loopback_six(const struct in6_addr *a)
{
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

/* Only this machine can connect to it. *text is its address. */
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

int exposure_check(const struct server_options *o, const int *sockets, struct weir_error *error)
{
    char address[INET6_ADDRSTRLEN + 16];
    for (unsigned i = 0; i < PROTOCOLS && !o->insecure; i++) {
        if (sockets[i] >= 0 && !is_local(sockets[i], address, sizeof address) &&
            !access_has_secrets(o->access, listeners[i].role)) {
            return fail(error, WEIR_EINVAL,
                        "%s is to listen on %s, beyond this machine, and there are no %s secrets: "
                        "give %s FILE or %s, listen on 127.0.0.1, or say --insecure",
                        listeners[i].name, address, role_names[listeners[i].role],
                        listeners[i].option, listeners[i].variable);
        }
    }
    return 0;
}
