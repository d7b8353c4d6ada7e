#include "redis/slots.h"

#include <string.h>

#include "redis/reply.h"
#include "redis/url.h"
#include "wire/resp.h"

#define PORT_MAX 65535

bool slots_is_host(struct weir_text host)
{
    for (size_t i = 0; i < host.len; i++) {
        if (host.at[i] <= ' ' || host.at[i] > '~' || host.at[i] == '/') {
            return false;
        }
    }
    return host.len <= SLOTS_HOST_MAX;
}

/* ---- the slot of a key ---- */

/* CRC16-XMODEM: polynomial 0x1021, from 0, bit by bit. A key is a few dozen bytes. */
static uint16_t crc16(struct weir_text t)
{
    unsigned crc = 0;
    for (size_t i = 0; i < t.len; i++) {
        crc ^= (unsigned)(unsigned char)t.at[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021u : 0);
        }
        crc &= 0xffff;
    }
    return (uint16_t)crc;
}

unsigned cluster_slot(struct weir_text key)
{
    struct weir_text rest = key;
    (void)text_cut(&rest, '{');
    struct weir_text tag = text_before(rest, '}');
    bool tagged = tag.len > 0 && tag.len < rest.len;
    return crc16(tagged ? tag : key) % SLOTS;
}

/* ---- CLUSTER SLOTS ---- */

bool slots_begin(struct slots_reader *r, struct weir_text reply)
{
    r->rest = reply;
    r->left = value_array(&r->rest);
    return r->left >= 0;
}

/* Reads a host. A null reply is an empty host. "?" means that the node has no name although nodes
 * should be known by name; then host->at is NULL. */
static bool read_host(struct weir_text *rest, struct weir_text *host)
{
    struct store_value v;
    if (!value_next(rest, &v) || (v.type != '$' && v.type != '+' && v.type != '_')) {
        return false;
    }
    *host = v.type == '_' ? (struct weir_text){"", 0} : v.text;
    if (text_is(*host, "?")) {
        *host = (struct weir_text){NULL, 0};
    }
    return slots_is_host(*host);
}

/* Reads a node: its host and its port; skips its other fields. */
static bool read_node(struct weir_text *rest, struct slots_range *out)
{
    int64_t fields = value_array(rest);
    int64_t port;
    if (fields < 2 || !read_host(rest, &out->host) || (port = value_integer(rest)) <= 0 ||
        port > PORT_MAX) {
        return false;
    }
    out->port = (unsigned)port;
    for (int64_t i = 2; i < fields && rest->len > 0; i++) {
        value_pass(rest);
    }
    return true;
}

int slots_next(struct slots_reader *r, struct slots_range *out)
{
    if (r->left <= 0) {
        return 0;
    }
    r->left--;
    int64_t fields = value_array(&r->rest);
    int64_t first = value_integer(&r->rest);
    int64_t last = value_integer(&r->rest);
    if (fields < 3 || first < 0 || last < first || last >= SLOTS || !read_node(&r->rest, out)) {
        return -1;
    }
    out->first = (unsigned)first;
    out->last = (unsigned)last;
    for (int64_t i = 3; i < fields && r->rest.len > 0; i++) { /* replicas */
        value_pass(&r->rest);
    }
    return 1;
}

/* ---- MOVED, ASK ---- */

bool redirect_read(struct weir_text error, struct redirect *out)
{
    struct weir_text rest = error;
    uint64_t slot;
    unsigned port;
    (void)text_cut(&rest, ' ');
    if (!resp_to_u64(text_cut(&rest, ' '), &slot) || slot >= SLOTS) {
        return false;
    }
    struct weir_text address = text_cut(&rest, ' ');
    const char *colon = address.len > 0 ? memrchr(address.at, ':', address.len) : NULL;
    size_t len = colon != NULL ? (size_t)(colon - address.at) : 0;
    if (colon == NULL || !store_port_read(text_after(address, len + 1), &port)) {
        return false;
    }
    *out = (struct redirect){(unsigned)slot, {address.at, len}, port};
    return slots_is_host(out->host);
}
