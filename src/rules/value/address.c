#include "rules/value/address.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/error.h"
#include "rules/value/quote.h"

/* Longer than any address with brackets, zone and port. */
#define TEXT_MAX 128

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- reading ---- */

/* Reads 1 to `digits` decimal digits. Returns -1 for anything else, and for more than `most`. */
static int read_decimal(struct weir_text text, size_t digits, int most)
{
    uint64_t number;
    return text.len <= digits && text_to_u64(text, &number) && number <= (uint64_t)most
               ? (int)number
               : -1;
}

/*
 * Reads an address at the beginning of the text; *rest is what follows it. Written by hand, because
 * inet_pton() takes half as long again, and most addresses are IPv4.
 */
static bool read_ipv4(struct weir_text text, uint8_t *bytes, struct weir_text *rest)
{
    const char *at = text.at;
    const char *end = text.at + text.len;
    for (int i = 0; i < 4; i++) {
        const char *first = at;
        unsigned value = 0;
        while (at < end && at < first + 3 && is_digit(*at)) {
            value = value * 10 + (unsigned)(*at++ - '0');
        }
        if (at == first || value > 255 || (*first == '0' && at > first + 1) ||
            (i < 3 && (at == end || *at++ != '.'))) {
            return false;
        }
        bytes[i] = (uint8_t)value;
    }
    *rest = text_after(text, (size_t)(at - text.at));
    return true;
}

static bool read_ipv6(struct weir_text text, uint8_t *bytes)
{
    char copy[INET6_ADDRSTRLEN];
    if (text.len >= sizeof copy || memchr(text.at, 0, text.len) != NULL) {
        return false;
    }
    memcpy(copy, text.at, text.len);
    copy[text.len] = 0;
    return inet_pton(AF_INET6, copy, bytes) == 1;
}

/* Returns the family by the first '.' or ':'; 0 for neither. */
static uint8_t family_of(struct weir_text text)
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
static bool read_plain(struct weir_text text, struct address *out)
{
    struct weir_text rest = {text.at, 0};
    *out = (struct address){.family = family_of(text)};
    return out->family == 4 ? read_ipv4(text, out->bytes, &rest) && rest.len == 0
                            : out->family == 6 && read_ipv6(text, out->bytes);
}

/*
 * True for "%eth0", or nothing: the name of an interface of the machine that wrote it, which is no
 * part of the client's address.
 */
static bool is_zone(struct weir_text text)
{
    for (size_t i = 1; i < text.len; i++) {
        char c = text.at[i];
        if (c <= ' ' || c > '~' || c == '[' || c == ']' || c == '/') {
            return false;
        }
    }
    return text.len != 1;
}

bool port_is_good(struct weir_text text)
{
    return read_decimal(text, 5, 65535) >= 0;
}

bool port_complete(struct weir_text text, char address[PORT_ADDRESS_MAX])
{
    struct weir_text port = text_after(text, text_starts(text, ":"));
    if (!port_is_good(port)) {
        return false;
    }
    (void)snprintf(address, PORT_ADDRESS_MAX, "127.0.0.1:%.*s", TEXT_ARGS(port));
    return true;
}

bool host_split(const char *text, char *host, size_t size, const char **port)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : 0;
    size_t brackets = n >= 2 && text[0] == '[' && text[n - 1] == ']';
    if (n == 2 * brackets || n >= size || !port_is_good(text_of(colon + 1))) {
        return false;
    }
    memcpy(host, text + brackets, n - 2 * brackets);
    host[n - 2 * brackets] = 0;
    *port = colon + 1;
    return true;
}

/* True for ":443", or nothing. */
static bool is_port(struct weir_text text)
{
    return text.len == 0 || (text.at[0] == ':' && port_is_good(text_after(text, 1)));
}

static bool read_any(struct weir_text text, struct address *out)
{
    struct weir_text port = {text.at, 0};
    *out = (struct address){.family = family_of(text)};
    if (out->family == 4) {
        return read_ipv4(text, out->bytes, &port) && is_port(port);
    }
    bool brackets = text.at[0] == '[';
    struct weir_text inside = brackets ? text_before(text_after(text, 1), ']') : text;
    struct weir_text host = text_before(inside, '%');
    if (!is_zone(text_after(inside, host.len))) {
        return false;
    }
    if (!brackets) {
        return read_plain(host, out);
    }
    port = text_after(text, 1 + inside.len);
    out->family = 6;
    return port.len > 0 && is_port(text_after(port, 1)) && read_ipv6(host, out->bytes);
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
static bool has_leading_zero(struct weir_text text)
{
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.at[i] == '0' && is_digit(text.at[i + 1]) &&
            (i == 0 || !is_digit(text.at[i - 1]))) {
            return true;
        }
    }
    return false;
}

static int refuse_address(struct weir_text text, struct weir_error *error)
{
    char found[QUOTE_MAX];
    if (error == NULL) {
        return WEIR_EINVAL;
    }
    if (text.len <= TEXT_MAX && family_of(text) == 4 && has_leading_zero(text)) {
        return fail(error, WEIR_EINVAL,
                    "found %s with a leading zero, which some programs read as octal, expected "
                    "four decimal numbers without",
                    quote(text, found));
    }
    return fail(error, WEIR_EINVAL,
                "found %s, expected an IP address such as 203.0.113.7 or 2001:db8::1",
                quote(text, found));
}

int address_parse(struct weir_text text, struct address *out, struct weir_error *error)
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

void address_cut_bytes(uint8_t *bytes, size_t len, unsigned prefix)
{
    size_t whole = prefix / 8;
    if (whole < len) {
        bytes[whole] = (uint8_t)(bytes[whole] & (0xff00u >> prefix % 8));
        memset(bytes + whole + 1, 0, len - whole - 1);
    }
}

void address_cut(struct address *a, unsigned ipv4_prefix, unsigned ipv6_prefix)
{
    address_cut_bytes(a->bytes, a->family == 4 ? 4 : 16,
                      a->family == 4 ? ipv4_prefix : ipv6_prefix);
}

const char *address_print(const struct address *a, char *buffer)
{
    return inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, buffer, ADDRESS_MAX);
}

/* ---- networks ---- */

/* Reads the number after the slash; -1 if it is no number, or more than `most`. */
static int read_prefix(struct weir_text text, int most)
{
    return text.len > 1 && text.at[0] == '0' ? -1 : read_decimal(text, 3, most);
}

static int refuse_network(struct weir_text text, struct weir_error *error)
{
    char found[QUOTE_MAX];
    if (text.len <= TEXT_MAX && has_leading_zero(text)) {
        return refuse_address(text, error);
    }
    return fail(error, WEIR_EINVAL, "found %s, expected a network such as 10.0.0.0/8 or ::1",
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

int cidr_parse(struct weir_text text, struct cidr *out, struct weir_error *error)
{
    char found[QUOTE_MAX];
    char meant[CIDR_MAX];
    struct cidr c;
    struct weir_text address = text_before(text, '/');
    struct weir_text after = text_after(text, address.len);
    if (!read_plain(address, &c.network)) {
        return refuse_network(text, error);
    }
    int most = c.network.family == 4 ? 32 : 128;
    int prefix = after.len == 0 ? most : read_prefix(text_after(after, 1), most);
    if (prefix < 0) {
        return fail(error, WEIR_EINVAL, "found %s, expected a prefix from /0 to /%d",
                    quote(text, found), most);
    }
    struct address written = c.network;
    struct address cut = written;
    address_cut(&cut, (unsigned)prefix, (unsigned)prefix);
    c.prefix = (uint8_t)prefix;
    settle(&c);
    if (memcmp(&cut, &written, sizeof cut) != 0) {
        return fail(error, WEIR_EINVAL, "found %s with bits set after its prefix, expected %s",
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
