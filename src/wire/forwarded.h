/*
 * Lists of hops that proxies write into header fields, without I/O: X-Forwarded-For
 * ("203.0.113.7, 10.0.0.1") and Forwarded of RFC 7239 (for="[2001:db8::1]:4711";proto=https).
 *
 * They are read from the right, one hop at a time. Each proxy adds behind what it was told, so the
 * last hop is written by the proxy that asks, and what stands before it by anybody: read from the
 * left, one quote that never ends would swallow the hop that can be believed.
 */
#ifndef WEIR_WIRE_FORWARDED_H
#define WEIR_WIRE_FORWARDED_H

#include <stdbool.h>

#include "common/text.h"

#define FORWARDED_NODE_MAX 128 /* bytes of a node: longer than any address with a port */

/*
 * Takes the last hop off the list, without spaces around it; it may be empty. False if there is no
 * more. Where quotes never end, or begin, the rest is one hop, and none that forwarded_node() takes.
 */
bool forwarded_last_plain(struct text *list, struct text *hop); /* X-Forwarded-For */
bool forwarded_last(struct text *list, struct text *hop);       /* Forwarded */

/*
 * Whom a hop of Forwarded came from: the value of its `for`, without quotes, and without a port that
 * is hidden ("203.0.113.7:_web"), written into `room` of FORWARDED_NODE_MAX bytes. It may be an
 * address, "unknown" or hidden ("_gazonk"). Brackets and colons are taken without quotes too, as
 * many a proxy writes them. False if there is none, or two, or the hop is no hop.
 */
bool forwarded_node(struct text hop, char *room, struct text *node);

#endif
