/*
 * The smallest protocol that a server can speak, as an example and as a proof that a protocol needs
 * nothing but the interface of src/server. A request is a line: the name of an operation, then
 * NAME=VALUE for each member (names of operations and members are those of operation_rows); what is
 * not a member is an attribute. A key of several parts has several key=. The reply is a line too.
 *
 *     check limit=api key=alice cost=2          allow api 98 0
 *     ask path=/search user=alice               deny search 0 1200
 *     check limit=nowhere key=a                 error no limit named 'nowhere'
 */
#ifndef WEIR_TESTS_LINE_PROTOCOL_H
#define WEIR_TESTS_LINE_PROTOCOL_H

#include "server/loop/connection.h"

extern const struct protocol protocol_line; /* for server_options.speaks[PROTOCOL_RESP] */

#endif
