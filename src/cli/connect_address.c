#include "cli/connect_address.h"

#include "base/error.h"
#include "rules/value/address.h"

#define HOST_MAX 256

static int read_unix(struct connect_address *a, const char *path, struct weir_error *error)
{
    if (path[0] == 0 || strlen(path) >= sizeof a->local.sun_path) {
        return fail(error, WEIR_EINVAL, "unix:%s: found a path of %zu bytes, expected 1 to %zu",
                    path, strlen(path), sizeof a->local.sun_path - 1);
    }
    memcpy(a->local.sun_path, path, strlen(path) + 1);
    a->local.sun_family = AF_UNIX;
    a->one = (struct addrinfo){.ai_family = AF_UNIX,
                               .ai_addr = (struct sockaddr *)&a->local,
                               .ai_addrlen = sizeof a->local};
    a->found = &a->one;
    return 0;
}

int connect_address_read(struct connect_address *a, const char *text, struct weir_error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char host[HOST_MAX];
    const char *port;
    if (is_unix_address(text)) {
        return read_unix(a, text + 5, error);
    }
    if (!host_split(text, host, sizeof host, &port)) {
        return fail(error, WEIR_EINVAL, "found '%s', expected ADDRESS:PORT or unix:PATH", text);
    }
    int e = getaddrinfo(host, port, &hints, &a->found);
    return e == 0 ? 0 : fail(error, WEIR_EIO, "%s: %s", text, gai_strerror(e));
}

void connect_address_finish(struct connect_address *a)
{
    if (a->found != &a->one) {
        freeaddrinfo(a->found);
    }
}
