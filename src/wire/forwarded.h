/*
 * Lists of hops that proxies write into header fields, without I/O: X-Forwarded-For ("203.0.113.7,
 * 10.0.0.1") and Forwarded of RFC 7239 (for="[2001:db8::1]:4711";proto=https).
 *
 * They are read from the right, one hop at a time. Each proxy appends to what it received, so the
 * last hop was written by the proxy that sent the request, while anyone may have written those
 * before it. If the list were read from the left, a quote that is never closed would swallow the
 * hop that can be trusted.
 */
#ifndef WEIR_WIRE_FORWARDED_H
#define WEIR_WIRE_FORWARDED_H

#include <stdbool.h>

#include "common/text.h"

#define FORWARDED_NODE_MAX 128 /* bytes of a node: more than any address with a port */

/*
 * Takes the last hop off the list, without spaces around it; it may be empty. Returns false if
 * there is none. With `quotes`, for Forwarded, a comma within quotes does not end a hop; if a quote
 * is never closed, or never opened, the rest is one hop, which forwarded_node() refuses.
 */
bool forwarded_last(struct weir_text *list, bool quotes, struct weir_text *hop);

/*
 * Finds the node that a hop of Forwarded came from: the value of its `for`, without quotes, and
 * without a hidden port ("203.0.113.7:_web"), written into `room` of FORWARDED_NODE_MAX bytes. It
 * may be an address, "unknown" or hidden ("_gazonk"). Brackets and colons are accepted without
 * quotes too, because many proxies write them so. Returns false if there is no `for`, or two, or
 * the hop is malformed.
 */
bool forwarded_node(struct weir_text hop, char *room, struct weir_text *node);

#endif
