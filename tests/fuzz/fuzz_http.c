/*
 * HTTP requests. No byte beyond the input is read (copies of the exact size); what is said of some
 * bytes is said with more behind them; of HTTP_REQUEST_MAX bytes more are never wanted, and never
 * fewer than `needed`; the parts of a request lie where they should; written again from its parts,
 * without the host of its target, empty lines and extensions of chunks, a request reads the same;
 * the end of a chunked body is found without parsing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/buffer.h"
#include "wire/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

struct outcome {
    int result;
    char *copy;
    size_t len;
    struct http_request request;
};

static bool lies_in(struct weir_text part, const char *at, size_t len)
{
    return part.len == 0 ||
           (part.at >= at && part.len <= len && (size_t)(part.at - at) <= len - part.len);
}

static void require_within(const struct outcome *o)
{
    const struct http_request *r = &o->request;
    require(r->used > 0 && r->used <= o->len && r->used <= HTTP_REQUEST_MAX);
    require(r->fields_count <= HTTP_FIELDS_MAX && r->body.len <= HTTP_BODY_MAX);
    require(lies_in(r->method, o->copy, r->used) && lies_in(r->target, o->copy, r->used));
    require(lies_in(r->host, o->copy, r->used) && lies_in(r->query, o->copy, r->used));
    require(lies_in(r->path, o->copy, r->used) || text_is(r->path, "/"));
    require(lies_in(r->body, o->copy, r->used) || lies_in(r->body, r->chunked, HTTP_CHUNKED_MAX));
    for (unsigned i = 0; i < r->fields_count; i++) {
        require(r->fields[i].name.len > 0 && lies_in(r->fields[i].name, o->copy, r->used));
        require(lies_in(r->fields[i].value, o->copy, r->used));
        require(memchr(r->fields[i].value.at, '\n', r->fields[i].value.len) == NULL);
        require(memchr(r->fields[i].value.at, 0, r->fields[i].value.len) == NULL);
    }
}

/* The caller does not parse a chunked body before http_skip_chunks() finds its end. */
static void require_end_is_found(const struct outcome *o)
{
    size_t at = o->request.body_at;
    require(at > 0 && at <= o->request.used);
    if (http_value(&o->request, "transfer-encoding").at != NULL) {
        require(http_skip_chunks((struct weir_text){o->copy, o->request.used}, &at) != HTTP_MORE);
    }
}

static void parse(struct weir_text input, struct outcome *o)
{
    o->copy = malloc(input.len > 0 ? input.len : 1);
    o->len = input.len;
    require(o->copy != NULL);
    if (input.len > 0) {
        memcpy(o->copy, input.at, input.len);
    }
    o->result = http_parse((struct weir_text){o->copy, input.len}, &o->request);
    require((o->result == HTTP_BAD) == (o->request.status != 0));
    require((o->result == HTTP_BAD) == (o->request.complaint != NULL));
    require(o->result != HTTP_MORE || input.len < HTTP_REQUEST_MAX);
    require(o->request.needed == 0 || (o->result == HTTP_MORE && o->request.needed > input.len));
    if (o->result == HTTP_READ) {
        require_within(o);
        require_end_is_found(o);
    }
}

static void require_same(const struct http_request *a, const struct http_request *b)
{
    require(text_equal(a->method, b->method) && text_equal(a->path, b->path));
    require(text_equal(a->query, b->query));
    require(text_equal(a->host, b->host) || a->old); /* HTTP/1.0 needs no Host field */
    require(text_equal(a->body, b->body) && a->keep_alive == b->keep_alive);
    require(a->fields_count == b->fields_count);
    for (unsigned i = 0; i < a->fields_count; i++) {
        require(text_equal(a->fields[i].name, b->fields[i].name));
        require(text_equal(a->fields[i].value, b->fields[i].value));
    }
}

/* What the beginnings of the input are, against what all of it is. */
static void require_decided_once(struct weir_text input, const struct outcome *all)
{
    static struct outcome part;
    bool decided = false;
    size_t step = input.len / 50 + 1;
    for (size_t n = 0; n < input.len; n += step) {
        parse((struct weir_text){input.at, n}, &part);
        require(!decided || part.result != HTTP_MORE);
        decided = part.result != HTTP_MORE;
        if (part.result == HTTP_BAD) {
            require(all->result == HTTP_BAD);
        } else if (part.result == HTTP_READ) {
            require(all->result == HTTP_READ && part.request.used == all->request.used);
            require_same(&part.request, &all->request);
        } else {
            require(all->result != HTTP_READ || part.request.needed <= all->request.used);
        }
        free(part.copy);
    }
}

static void put_request(struct buffer *b, const struct http_request *r)
{
    buffer_put(b, r->method);
    buffer_put_char(b, ' ');
    buffer_put(b, r->path);
    buffer_put(b, r->query.len > 0 ? TEXT("?") : TEXT(""));
    buffer_put(b, r->query);
    buffer_put(b, r->old ? TEXT(" HTTP/1.0\r\n") : TEXT(" HTTP/1.1\r\n"));
    for (unsigned i = 0; i < r->fields_count; i++) {
        buffer_put(b, r->fields[i].name);
        buffer_put(b, TEXT(":"));
        buffer_put(b, r->fields[i].value);
        buffer_put(b, TEXT("\r\n"));
    }
    buffer_put(b, TEXT("\r\n"));
    if (http_value(r, "transfer-encoding").at == NULL) {
        buffer_put(b, r->body);
        return;
    }
    char line[32];
    if (r->body.len > 0) {
        buffer_put(b, (struct weir_text){line, (size_t)sprintf(line, "%zx\r\n", r->body.len)});
        buffer_put(b, r->body);
        buffer_put(b, TEXT("\r\n"));
    }
    buffer_put(b, TEXT("0\r\n\r\n"));
}

static void require_reads_back(const struct http_request *r)
{
    static struct outcome again;
    struct buffer b;
    buffer_init(&b, SIZE_MAX / 4);
    put_request(&b, r);
    parse(buffer_text(&b), &again);
    require(again.result == HTTP_READ && again.request.used == buffer_len(&b));
    require_same(r, &again.request);
    free(again.copy);
    buffer_finish(&b);
}

static void require_query_decodes(struct weir_text query)
{
    struct http_pair pair;
    while (query.len > 0) {
        size_t before = query.len;
        char *room = malloc(before);
        require(room != NULL);
        if (http_next_pair(&query, room, &pair)) {
            require(lies_in(pair.name, room, before) && lies_in(pair.value, room, before));
            require(query.len < before);
        }
        free(room);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome o;
    struct weir_text input = {(const char *)data, size};
    for (int requests = 0; requests < 50; requests++) {
        parse(input, &o);
        require_decided_once(input, &o);
        bool read = o.result == HTTP_READ;
        if (read) {
            require_reads_back(&o.request);
            require_query_decodes(o.request.query);
        }
        free(o.copy);
        if (!read) {
            break;
        }
        input = text_after(input, o.request.used);
    }
    return 0;
}
