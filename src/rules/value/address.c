#include "rules/value/address.h"

#include <stdio.h>

#include "base/error.h"
#include "rules/value/hex.h"
#include "rules/value/quote.h"

/* Longer than any address with brackets, zone and port. */
#define TEXT_MAX 128

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- reading: each takes what it can from *at and returns whether that was valid ---- */

static bool read_byte(const char **at, const char *end, uint8_t *byte)
{
    const char *first = *at;
    const char *p = first;
    unsigned value = 0;
    while (p < end && p < first + 3 && is_digit(*p)) {
        value = value * 10 + (unsigned)(*p++ - '0');
    }
    *at = p;
    *byte = (uint8_t)value;
    return p > first && value <= 255 && (*first != '0' || p == first + 1);
}

static bool read_ipv4(const char **at, const char *end, uint8_t *bytes)
{
    for (int i = 0; i < 4; i++) {
        if (i > 0 && (*at == end || *(*at)++ != '.')) {
            return false;
        }
        if (!read_byte(at, end, &bytes[i])) {
            return false;
        }
    }
    return true;
}

/* Reads up to four hexadecimal digits; returns how many there were. */
static int read_group(const char **at, const char *end, unsigned *group)
{
    int digits = 0;
    *group = 0;
    for (; digits < 4 && *at < end; digits++, (*at)++) {
        int value = hex_value(**at);
        if (value < 0) {
            break;
        }
        *group = *group << 4 | (unsigned)value;
    }
    return digits;
}

/*
 * Reads the bytes that are written out and returns their number, or -1 if it is no address. Sets
 * *gap to how many of them come before "::", -1 if there is none.
 */
static int read_groups(const char **at, const char *end, uint8_t *bytes, int *gap)
{
    int n = 0;
    *gap = -1;
    if (end - *at >= 2 && (*at)[0] == ':' && (*at)[1] == ':') {
        *gap = 0;
        *at += 2;
    }
    while (n < 16) {
        const char *first = *at;
        unsigned group;
        if (read_group(at, end, &group) == 0) {
            return n == *gap ? n : -1; /* nothing has to follow "::" */
        }
        if (*at < end && **at == '.') {
            *at = first;
            return n <= 12 && read_ipv4(at, end, bytes + n) ? n + 4 : -1;
        }
        bytes[n++] = (uint8_t)(group >> 8);
        bytes[n++] = (uint8_t)group;
        if (*at == end || **at != ':' || n == 16) {
            break;
        }
        (*at)++;
        if (*at < end && **at == ':' && *gap < 0) {
            *gap = n;
            (*at)++;
        }
    }
    return n;
}

static bool read_ipv6(const char **at, const char *end, uint8_t *bytes)
{
    uint8_t written[16];
    int gap;
    int n = read_groups(at, end, written, &gap);
    if (n < 0 || (gap < 0) != (n == 16)) {
        return false; /* too few groups, or "::" that stands for no group */
    }
    size_t before = (size_t)(gap < 0 ? n : gap);
    size_t after = (size_t)n - before;
    memset(bytes, 0, 16);
    memcpy(bytes, written, before);
    memcpy(bytes + 16 - after, written + before, after);
    return true;
}

/*
 * Skips "%eth0": the name of an interface of the machine that wrote it, which is no part of the
 * client's address.
 */
static bool skip_zone(const char **at, const char *end)
{
    if (*at == end || **at != '%') {
        return true;
    }
    const char *first = ++*at;
    for (; *at < end && **at != ']'; (*at)++) {
        if (**at <= ' ' || **at > '~' || **at == '[' || **at == '/') {
            return false;
        }
    }
    return *at > first;
}

static bool skip_port(const char **at, const char *end)
{
    unsigned port = 0;
    if (*at == end || **at != ':') {
        return true;
    }
    const char *first = ++*at;
    while (*at < end && *at < first + 5 && is_digit(**at)) {
        port = port * 10 + (unsigned)(*(*at)++ - '0');
    }
    return *at > first && port <= 65535;
}

/* Returns the family by the first '.' or ':'; 0 for neither. */
static uint8_t family_of(struct text text)
{
    for (size_t i = 0; i < text.len && i < 5; i++) {
        if (text.at[i] == '.') {
            return 4;
        }
        if (text.at[i] == ':') {
            return 6;
        }
    }
    return 0;
}

/* Reads an address as it is written, without turning mapped addresses into IPv4. */
static bool read_plain(struct text text, struct address *out)
{
    const char *at = text.at;
    const char *end = text.at + text.len;
    memset(out, 0, sizeof *out);
    out->family = family_of(text);
    switch (out->family) {
    case 4:
        return read_ipv4(&at, end, out->bytes) && at == end;
    case 6:
        return read_ipv6(&at, end, out->bytes) && at == end;
    default:
        return false;
    }
}

static bool read_ipv6_in_brackets(const char **at, const char *end, uint8_t *bytes)
{
    (*at)++;
    return read_ipv6(at, end, bytes) && skip_zone(at, end) && *at < end && *(*at)++ == ']' &&
           skip_port(at, end);
}

static bool read_any(struct text text, struct address *out)
{
    const char *at = text.at;
    const char *end = text.at + text.len;
    memset(out, 0, sizeof *out);
    out->family = 6;
    if (*at == '[') {
        return read_ipv6_in_brackets(&at, end, out->bytes) && at == end;
    }
    out->family = family_of(text);
    if (out->family == 4) {
        return read_ipv4(&at, end, out->bytes) && skip_port(&at, end) && at == end;
    }
    return out->family == 6 && read_ipv6(&at, end, out->bytes) && skip_zone(&at, end) && at == end;
}

/* ---- the IPv4 address inside ---- */

static bool holds_ipv4(const struct address *a)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    return a->family == 6 && (memcmp(a->bytes, mapped, sizeof mapped) == 0 ||
                              memcmp(a->bytes, nat64, sizeof nat64) == 0);
}

static void take_ipv4_out(struct address *a)
{
    memcpy(a->bytes, a->bytes + 12, 4);
    memset(a->bytes + 4, 0, 12);
    a->family = 4;
}

/* ---- addresses ---- */

/* True if a byte of two digits or more begins with 0: the one mistake that needs an explanation. */
static bool has_leading_zero(struct text text)
{
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.at[i] == '0' && is_digit(text.at[i + 1]) &&
            (i == 0 || !is_digit(text.at[i - 1]))) {
            return true;
        }
    }
    return false;
}

static int refuse_address(struct text text, struct weir_error *error)
{
    char found[QUOTE_MAX];
    if (error == NULL) {
        return WEIR_EINVAL;
    }
    if (text.len <= TEXT_MAX && family_of(text) == 4 && has_leading_zero(text)) {
        return fail(error, WEIR_EINVAL,
                    "%s has a leading zero (octal to some), expected four decimal bytes",
                    quote(text, found));
    }
    return fail(error, WEIR_EINVAL,
                "%s is not an IP address, expected one like 203.0.113.7 or 2001:db8::1",
                quote(text, found));
}

int address_parse(struct text text, struct address *out, struct weir_error *error)
{
    struct address a;
    if (text.len == 0 || text.len > TEXT_MAX || !read_any(text, &a)) {
        return refuse_address(text, error);
    }
    if (holds_ipv4(&a)) {
        take_ipv4_out(&a);
    }
    *out = a;
    return 0;
}

void address_cut(struct address *a, unsigned ipv4_prefix, unsigned ipv6_prefix)
{
    unsigned prefix = a->family == 4 ? ipv4_prefix : ipv6_prefix;
    unsigned bytes = a->family == 4 ? 4 : 16;
    unsigned whole = prefix / 8;
    if (whole >= bytes) {
        return;
    }
    a->bytes[whole] = (uint8_t)(a->bytes[whole] & (0xff00u >> prefix % 8));
    memset(a->bytes + whole + 1, 0, bytes - whole - 1);
}

static unsigned group_at(const struct address *a, int i)
{
    return (unsigned)(a->bytes[2 * i] << 8 | a->bytes[2 * i + 1]);
}

/*
 * Returns the first of the longest runs of zero groups, if it has at least two (RFC 5952);
 * otherwise -1.
 */
static int longest_zeros(const struct address *a, int *length)
{
    int best = -1;
    int run = 0;
    *length = 1;
    for (int i = 0; i < 8; i++) {
        run = group_at(a, i) == 0 ? run + 1 : 0;
        if (run > *length) {
            *length = run;
            best = i + 1 - run;
        }
    }
    return best;
}

static void print_ipv6(const struct address *a, char *buffer)
{
    char *at = buffer;
    int length;
    int gap = longest_zeros(a, &length);
    for (int i = 0; i < 8; i++) {
        if (i == gap) {
            at += snprintf(at, 3, "::");
            i += length - 1;
            continue;
        }
        bool colon = at > buffer && at[-1] != ':';
        at += snprintf(at, 6, "%s%x", colon ? ":" : "", group_at(a, i));
    }
}

const char *address_print(const struct address *a, char *buffer)
{
    if (a->family == 4) {
        (void)snprintf(buffer, ADDRESS_MAX, "%u.%u.%u.%u", a->bytes[0], a->bytes[1], a->bytes[2],
                       a->bytes[3]);
    } else {
        print_ipv6(a, buffer);
    }
    return buffer;
}

/* ---- networks ---- */

/* Reads the number after the slash; -1 if it is no number, or more than `most`. */
static int read_prefix(struct text text, int most)
{
    int prefix = 0;
    if (text.len == 0 || text.len > 3 || (text.len > 1 && text.at[0] == '0')) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (!is_digit(text.at[i])) {
            return -1;
        }
        prefix = prefix * 10 + (text.at[i] - '0');
    }
    return prefix <= most ? prefix : -1;
}

static int refuse_network(struct text text, struct weir_error *error)
{
    char found[QUOTE_MAX];
    if (text.len <= TEXT_MAX && has_leading_zero(text)) {
        return refuse_address(text, error);
    }
    return fail(error, WEIR_EINVAL, "%s is not a network, expected one like 10.0.0.0/8 or ::1",
                quote(text, found));
}

/*
 * Brings a network to the form that is kept: IPv4 in IPv6 becomes IPv4, as the addresses of clients
 * do.
 */
static void settle(struct cidr *c)
{
    address_cut(&c->network, c->prefix, c->prefix);
    if (c->prefix >= 96 && holds_ipv4(&c->network)) {
        take_ipv4_out(&c->network);
        c->prefix = (uint8_t)(c->prefix - 96);
    }
}

int cidr_parse(struct text text, struct cidr *out, struct weir_error *error)
{
    char found[QUOTE_MAX];
    char meant[CIDR_MAX];
    struct cidr c;
    const char *slash = text.len == 0 ? NULL : memchr(text.at, '/', text.len);
    size_t length = slash == NULL ? text.len : (size_t)(slash - text.at);
    if (length == 0 || !read_plain((struct text){text.at, length}, &c.network)) {
        return refuse_network(text, error);
    }
    int most = c.network.family == 4 ? 32 : 128;
    int prefix = slash == NULL ? most : read_prefix(text_after(text, length + 1), most);
    if (prefix < 0) {
        return fail(error, WEIR_EINVAL, "%s has a bad prefix, expected /0 to /%d",
                    quote(text, found), most);
    }
    struct address written = c.network;
    struct address cut = written;
    address_cut(&cut, (unsigned)prefix, (unsigned)prefix);
    c.prefix = (uint8_t)prefix;
    settle(&c);
    if (memcmp(&cut, &written, sizeof cut) != 0) {
        return fail(error, WEIR_EINVAL, "%s has bits set behind its prefix, expected %s",
                    quote(text, found), cidr_print(&c, meant));
    }
    *out = c;
    return 0;
}

const char *cidr_print(const struct cidr *c, char *buffer)
{
    size_t n = strlen(address_print(&c->network, buffer));
    (void)snprintf(buffer + n, CIDR_MAX - n, "/%u", c->prefix);
    return buffer;
}
