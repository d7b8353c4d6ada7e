/*
 * Addresses are compared by their bits, not by their text, so that one client is one client however
 * its address is written.
 *
 * IPv4-mapped (::ffff:a.b.c.d, in any spelling) and NAT64 (64:ff9b::/96, RFC 6052) addresses are
 * treated as the IPv4 address inside: cut to a /64 all of them would be one client. Everything else
 * with colons is IPv6.
 */
#ifndef WEIR_RULES_VALUE_ADDRESS_H
#define WEIR_RULES_VALUE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/text.h"

struct address {
    uint8_t bytes[16]; /* network order; IPv4 in the first four, the rest 0 */
    uint8_t family;    /* 4 or 6 */
};

/*
 * Reads "203.0.113.7", "203.0.113.7:443", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443" or
 * "fe80::1%eth0" (the zone is dropped). Strict: four decimal bytes without leading zeros (octal to
 * some, decimal to others), no spaces, no hex. Everything that inet_pton() accepts is accepted,
 * with the same bits. Returns 0, or WEIR_EINVAL with what was found; *out is written on success
 * only.
 */
int address_parse(struct weir_text text, struct address *out, struct weir_error *error);

/* True for a number from 0 to 65535, in up to five digits. */
bool port_is_good(struct weir_text text);

/*
 * Writes "127.0.0.1:6380" for "6380" and ":6380", a port without an address. Returns false and
 * writes nothing for other texts.
 */
#define PORT_ADDRESS_MAX 24
bool port_complete(struct weir_text text, char address[PORT_ADDRESS_MAX]);

/*
 * Splits "127.0.0.1:6380", "[::1]:6380" or "localhost:6380" into the host, without brackets, in a
 * buffer of `size` bytes, and the port. False if the text has another form or the host does not
 * fit.
 */
bool host_split(const char *text, char *host, size_t size, const char **port);

/* Zeroes the bits that follow the prefix in the 4 or 16 bytes of an address. */
void address_cut_bytes(uint8_t *bytes, size_t len, unsigned prefix);

/* Does the same with the prefix of the address's own family. */
void address_cut(struct address *a, unsigned ipv4_prefix, unsigned ipv6_prefix);

/* Writes the address as inet_ntop() does into a buffer of ADDRESS_MAX bytes, and returns it. */
#define ADDRESS_MAX 48
const char *address_print(const struct address *a, char *buffer);

struct cidr {
    struct address network;
    uint8_t prefix;
};

/*
 * Reads "10.0.0.0/8", "2001:db8::/32" or a bare address (/32, /128); no port, brackets or zone.
 * Bits set after the prefix are an error that shows the network that was meant (for "10.0.0.1/8":
 * expected 10.0.0.0/8). ::ffff:0:0/96 and the NAT64 prefix, and longer prefixes within them, become
 * IPv4; a shorter IPv6 prefix never contains IPv4 clients.
 */
int cidr_parse(struct weir_text text, struct cidr *out, struct weir_error *error);

#define CIDR_MAX (ADDRESS_MAX + 4)
const char *cidr_print(const struct cidr *c, char *buffer); /* buffer of CIDR_MAX bytes */

/* A set of many networks. A lookup searches sorted disjoint ranges: log n. Immutable once made. */
struct cidr_set;
int cidr_set_create(const struct cidr *cidrs, size_t n, struct cidr_set **out); /* 0, WEIR_ENOMEM */
bool cidr_set_has(const struct cidr_set *set, const struct address *a);
void cidr_set_destroy(struct cidr_set *set); /* NULL is allowed */

#endif
