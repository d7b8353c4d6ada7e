#include "rules/value/normalize.h"

#include "rules/value/address.h"

const char *const attribute_names[ATTRIBUTE_PLAIN] = {"path", "method", "host", "ip"};

enum attribute_kind attribute_kind_of(struct weir_text name)
{
    unsigned kind = 0;
    while (kind < ATTRIBUTE_PLAIN && !text_is(name, attribute_names[kind])) {
        kind++;
    }
    return (enum attribute_kind)kind;
}

void normalize_method(struct weir_text from, char *to)
{
    for (size_t i = 0; i < from.len; i++) {
        char c = from.at[i];
        to[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
}

void normalize_lower(struct weir_text from, char *to)
{
    for (size_t i = 0; i < from.len; i++) {
        char c = from.at[i];
        to[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
}

/* Cuts ":443", and ":x", because servers do not read what follows a name and a colon. The colons of
 * an IPv6 address are in brackets, or the host is the address. */
static struct weir_text without_port(struct weir_text host)
{
    struct address address;
    struct weir_text name = text_before(host, ':');
    if (host.len > 0 && host.at[0] == '[') {
        name.len = text_before(host, ']').len + 1;
        return name.len < host.len && host.at[name.len] == ':' ? name : host;
    }
    struct weir_text port = text_after(host, name.len);
    bool colons = port.len > 0 && memchr(port.at + 1, ':', port.len - 1) != NULL;
    return colons && address_parse(host, &address, NULL) == 0 ? host : name;
}

static struct weir_text without_dot(struct weir_text host)
{
    while (host.len > 1 && host.at[host.len - 1] == '.') {
        host.len--;
    }
    return host;
}

size_t normalize_host(struct weir_text from, char *to)
{
    size_t before;
    do { /* repeated, because "a:80." has one end after the other */
        before = from.len;
        from = without_dot(without_port(from));
    } while (from.len != before);
    normalize_lower(from, to);
    return from.len;
}

bool is_host(struct weir_text host)
{
    size_t i = 0;
    while (i < host.len && (unsigned char)host.at[i] > ' ' &&
           strchr("\"#,/<>?@\\^`{|}\177", host.at[i]) == NULL) {
        i++;
    }
    return i == host.len;
}

static size_t address_bytes(const struct address *a, char *to)
{
    size_t len = a->family == 4 ? 4 : 16;
    memcpy(to, a->bytes, len);
    return len;
}

int normalize_value(enum attribute_kind kind, struct weir_text from, char *to, size_t *len,
                    struct weir_error *error)
{
    struct address address;
    int e = 0;
    switch (kind) {
    case ATTRIBUTE_PATH:
        return path_normalise(from, to, len, error);
    case ATTRIBUTE_IP:
        e = address_parse(from, &address, error);
        *len = e == 0 ? address_bytes(&address, to) : 0;
        return e;
    case ATTRIBUTE_HOST:
        *len = normalize_host(from, to);
        return 0;
    case ATTRIBUTE_METHOD:
        normalize_method(from, to);
        *len = from.len;
        return 0;
    default:
        memcpy(to, from.len > 0 ? from.at : "", from.len);
        *len = from.len;
        return 0;
    }
}
