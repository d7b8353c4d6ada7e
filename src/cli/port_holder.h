/* Which process of this machine listens at an address. */
#ifndef WEIR_CLI_PORT_HOLDER_H
#define WEIR_CLI_PORT_HOLDER_H

#include <stdbool.h>

#define PORT_HOLDER_MAX 160

/*
 * Writes "process 1234 (weir)"; or, if that process belongs to another user, whose it is and how to
 * find it. Returns false, with an empty text, if no socket of this network namespace listens there:
 * the address is a unix socket's, or another machine's.
 */
bool port_holder(const char *address, char text[PORT_HOLDER_MAX]);

#endif
