/* The address of a server to connect to. */
#ifndef WEIR_CLI_CONNECT_ADDRESS_H
#define WEIR_CLI_CONNECT_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/un.h>

#include <weir.h>

struct connect_address {
    struct addrinfo *found; /* all addresses of a name, or `local` */
    struct addrinfo one;
    struct sockaddr_un local;
};

static inline bool is_unix_address(const char *text)
{
    return strncmp(text, "unix:", 5) == 0;
}

/*
 * Reads "127.0.0.1:8082", "[::1]:8082", "localhost:8082" or "unix:PATH". Returns 0; WEIR_EINVAL if
 * it has another form; WEIR_EIO if the name is not known. Call connect_address_finish() after 0;
 * the address must not be moved until then.
 */
int connect_address_read(struct connect_address *a, const char *text, struct weir_error *error);
void connect_address_finish(struct connect_address *a);

#endif
