/* Reads the target of a request, its query, and its host (RFC 9112, 3.2 and RFC 3986, 3.2.2). */
#include <strings.h>

#include "wire/http_request.h"

static bool is_port(struct weir_text text)
{
    size_t n = text.len > 0 && text.at[0] == ':' ? 1 : 0;
    while (n < text.len && n > 0 && text.at[n] >= '0' && text.at[n] <= '9') {
        n++;
    }
    return n == text.len;
}

bool http_read_host(struct weir_text host, struct weir_text *name)
{
    if (host.len > 0 && host.at[0] == '[') {
        struct weir_text rest = text_after(host, 1);
        *name = text_cut(&rest, ']');
        return name->len + 2 <= host.len && text_is_made_of(*name, ":.") && is_port(rest);
    }
    *name = text_before(host, ':');
    return (name->len == 0 || text_is_made_of(*name, "-._~%!$&'()*+,;=")) &&
           is_port(text_after(host, name->len));
}

/* Takes "http://host" off the front of a target. Returns false if it has no such beginning. */
static bool take_authority(struct weir_text *target, struct weir_text *authority)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t n = strlen(schemes[i]);
        if (target->len >= n && strncasecmp(target->at, schemes[i], n) == 0) {
            struct weir_text rest = text_after(*target, n);
            *authority = text_before(text_before(rest, '/'), '?');
            *target = text_after(rest, authority->len);
            return true;
        }
    }
    return false;
}

static void replace_host(struct http_request *r)
{
    for (unsigned i = 0; i < r->fields_count; i++) {
        if (http_same_name(r->fields[i].name, "host")) {
            r->fields[i].value = r->host;
        }
    }
}

bool http_read_target(struct http_request *r)
{
    bool absolute =
        r->target.len > 0 && r->target.at[0] != '/' && take_authority(&r->target, &r->host);
    if (absolute) {
        replace_host(r);
    }
    r->query = r->target;
    r->path = text_cut(&r->query, '?');
    r->path = absolute && r->path.len == 0 ? TEXT("/") : r->path;
    return http_read_host(r->host, &r->host_name) && (!absolute || r->host_name.len > 0);
}

/* ---- the query ---- */

/* Decodes %XX and '+'. A '%' without two digits stands for itself. */
static struct weir_text decode(struct weir_text from, char *room)
{
    size_t n = 0;
    for (size_t i = 0; i < from.len; i++) {
        int byte = text_percent_byte(from, i);
        room[n++] = (char)(byte >= 0 ? byte : from.at[i] == '+' ? ' ' : from.at[i]);
        i += byte >= 0 ? 2 : 0;
    }
    return (struct weir_text){room, n};
}

bool http_next_pair(struct weir_text *query, char *room, struct http_pair *pair)
{
    struct weir_text part = {"", 0};
    while (part.len == 0 && query->len > 0) {
        part = text_cut(query, '&');
    }
    if (part.len == 0) {
        return false;
    }
    struct weir_text name = text_cut(&part, '=');
    pair->name = decode(name, room);
    pair->value = decode(part, room + name.len);
    return true;
}
