/*
 * A second implementation of what src/rules/value does with addresses, paths and patterns: slow,
 * obvious, and for small inputs only. Unit tests and fuzz targets use it, so all of it is in this
 * header.
 */
#ifndef WEIR_TESTS_SUPPORT_POLICY_SLOW_H
#define WEIR_TESTS_SUPPORT_POLICY_SLOW_H

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "rules/value/address.h"
#include "rules/value/path.h"
#include "rules/value/pattern.h"

/* ---- addresses ---- */

/* Parses an address with inet_pton() and unwraps IPv4 inside IPv6. Returns false if it is no
 * address. */
static inline bool slow_address(const char *string, struct address *a)
{
    static const char *const prefixes[] = {"::ffff:0.0.0.0", "64:ff9b::"};
    memset(a, 0, sizeof *a);
    a->family = 4;
    if (inet_pton(AF_INET, string, a->bytes) == 1) {
        return true;
    }
    a->family = 6;
    if (inet_pton(AF_INET6, string, a->bytes) != 1) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        uint8_t prefix[16];
        if (inet_pton(AF_INET6, prefixes[i], prefix) == 1 && memcmp(prefix, a->bytes, 12) == 0) {
            struct address inside = {.family = 4};
            memcpy(inside.bytes, a->bytes + 12, 4);
            *a = inside;
            return true;
        }
    }
    return true;
}

static inline bool slow_same(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static inline bool slow_bit(const struct address *a, unsigned i)
{
    return a->bytes[i / 8] >> (7 - i % 8) & 1;
}

/* Compares bit by bit. */
static inline bool slow_in_network(const struct cidr *c, const struct address *a)
{
    for (unsigned i = 0; i < c->prefix; i++) {
        if (slow_bit(&c->network, i) != slow_bit(a, i)) {
            return false;
        }
    }
    return c->network.family == a->family;
}

/* ---- patterns: try everything ---- */

static inline bool slow_segment_match(struct weir_text p, struct weir_text s)
{
    if (p.len == 0) {
        return s.len == 0;
    }
    if (p.at[0] == '*') {
        return slow_segment_match(text_after(p, 1), s) ||
               (s.len > 0 && slow_segment_match(p, text_after(s, 1)));
    }
    if (text_starts(p, "\\*") || text_starts(p, "\\\\")) {
        p = text_after(p, 1);
    }
    return s.len > 0 && p.at[0] == s.at[0] &&
           slow_segment_match(text_after(p, 1), text_after(s, 1));
}

/* Cuts "/segment" off. Returns false at the end. */
static inline bool slow_cut_segment(struct weir_text *path, struct weir_text *segment)
{
    size_t n = 1;
    if (path->len <= 1) {
        return false;
    }
    while (n < path->len && path->at[n] != '/') {
        n++;
    }
    *segment = (struct weir_text){path->at + 1, n - 1};
    *path = text_after(*path, n);
    return true;
}

static inline bool slow_path_match(struct weir_text pattern, struct weir_text path)
{
    struct weir_text want;
    struct weir_text have;
    struct weir_text rest = path;
    if (!slow_cut_segment(&pattern, &want)) {
        return path.len <= 1;
    }
    if (!text_is(want, "**")) {
        return slow_cut_segment(&rest, &have) && slow_segment_match(want, have) &&
               slow_path_match(pattern, rest);
    }
    do {
        if (slow_path_match(pattern, rest)) {
            return true;
        }
    } while (slow_cut_segment(&rest, &have));
    return false;
}

/* ---- paths: one pass for each sentence of rules/value/path.h ---- */

#define SLOW_ENCODED 256 /* added to a byte that was written as %XX */

struct slow_path {
    unsigned at[PATH_BYTES_MAX + 1];
    size_t len;
};

static inline void slow_decode(struct weir_text in, struct slow_path *out)
{
    out->len = 0;
    for (size_t i = 0; i < in.len; i++) {
        const unsigned char *p = (const unsigned char *)in.at + i;
        char hex[3] = {0};
        unsigned c = *p;
        if (*p == '%' && in.len - i > 2 && isxdigit(p[1]) && isxdigit(p[2])) {
            memcpy(hex, p + 1, 2);
            c = SLOW_ENCODED + (unsigned)strtoul(hex, NULL, 16);
            i += 2;
        }
        out->at[out->len++] = c;
    }
}

/* Returns the part up to the next of two marks, and moves `at` behind that mark. */
static inline struct slow_path slow_split(const struct slow_path *in, size_t *at, unsigned mark,
                                          unsigned other)
{
    struct slow_path part = {.len = 0};
    while (*at < in->len && in->at[*at] != mark && in->at[*at] != other) {
        part.at[part.len++] = in->at[(*at)++];
    }
    ++*at;
    return part;
}

/* Returns 1 for "." and 2 for "..", followed by the end or any semicolon; otherwise 0. */
static inline unsigned slow_dots(const struct slow_path *in, bool *semicolon)
{
    unsigned dots = 0;
    while (dots < in->len && in->at[dots] % 256 == '.') {
        dots++;
    }
    *semicolon = dots < in->len && in->at[dots] % 256 == ';';
    return dots <= 2 && (dots == in->len || *semicolon) ? dots : 0;
}

/* Returns true if the path must be refused. */
static inline bool slow_refused(const struct slow_path *in)
{
    bool encoded_slash = false;
    bool dots = false;
    for (size_t i = 0; i < in->len; i++) {
        if (in->at[i] % 256 == 0) {
            return true;
        }
        encoded_slash |= in->at[i] == SLOW_ENCODED + '/';
    }
    for (size_t at = 0; at < in->len;) {
        struct slow_path segment = slow_split(in, &at, '/', SLOW_ENCODED + '/');
        bool semicolon;
        bool dot = slow_dots(&segment, &semicolon) > 0;
        dots |= dot;
        if ((dot && semicolon) || (dots && encoded_slash)) {
            return true;
        }
    }
    return false;
}

static inline void slow_append(const struct slow_path *segment, char *out, size_t *out_len)
{
    bool semicolon;
    unsigned dots = slow_dots(segment, &semicolon);
    if (dots == 2) {
        while (*out_len > 0 && out[--*out_len] != '/') {
        }
    }
    if (dots == 0 && segment->len > 0) {
        out[(*out_len)++] = '/';
        for (size_t i = 0; i < segment->len; i++) {
            out[(*out_len)++] = (char)segment->at[i];
        }
    }
}

/* Works like path_normalise() for a path that begins with a slash and has neither query nor
 * fragment. */
static inline bool slow_normalise(struct weir_text in, char *out, size_t *out_len)
{
    struct slow_path path;
    *out_len = 0;
    slow_decode(in, &path);
    if (slow_refused(&path)) {
        return false;
    }
    for (size_t at = 0; at < path.len;) {
        size_t name_at = 0;
        struct slow_path segment = slow_split(&path, &at, '/', '/');
        struct slow_path name = slow_split(&segment, &name_at, ';', ';');
        for (size_t part_at = 0; part_at < name.len;) {
            struct slow_path part = slow_split(&name, &part_at, SLOW_ENCODED + '/', '/');
            slow_append(&part, out, out_len);
        }
    }
    if (*out_len == 0) {
        out[(*out_len)++] = '/';
    }
    return true;
}

#endif
