#include "wire/http_response.h"

#include <llhttp.h>

struct reading {
    llhttp_t llhttp;
    struct http_response *out;
    struct text field; /* name of the field being read */
    bool in_body;
    bool complete;
};

static struct reading *reading_of(llhttp_t *llhttp)
{
    return llhttp->data;
}

static int refuse(llhttp_t *llhttp, const char *complaint)
{
    reading_of(llhttp)->out->complaint = complaint;
    return -1;
}

static int on_field(llhttp_t *llhttp, const char *at, size_t len)
{
    reading_of(llhttp)->field = (struct text){at, len};
    return 0;
}

static int on_value(llhttp_t *llhttp, const char *at, size_t len)
{
    struct reading *r = reading_of(llhttp);
    if (http_same_name(r->field, "content-type") && !r->in_body) {
        r->out->type = text_trim((struct text){at, len});
    }
    return 0;
}

static int on_head(llhttp_t *llhttp)
{
    struct reading *r = reading_of(llhttp);
    r->in_body = true;
    r->out->status = llhttp->status_code;
    if ((llhttp->flags & F_CONTENT_LENGTH) != 0 &&
        llhttp->content_length > HTTP_RESPONSE_BODY_MAX) {
        return refuse(llhttp, "the answer is longer than 8 MiB");
    }
    return 0;
}

static int on_body(llhttp_t *llhttp, const char *at, size_t len)
{
    struct reading *r = reading_of(llhttp);
    if ((llhttp->flags & F_CHUNKED) == 0) { /* a body in one piece is not copied */
        r->out->body = (struct text){at, len};
        return len > HTTP_RESPONSE_BODY_MAX ? refuse(llhttp, "the answer is longer than 8 MiB") : 0;
    }
    buffer_put(&r->out->joined, (struct text){at, len});
    r->out->body = buffer_text(&r->out->joined);
    return r->out->joined.full ? refuse(llhttp, "the answer is longer than 8 MiB") : 0;
}

static int on_complete(llhttp_t *llhttp)
{
    reading_of(llhttp)->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {.on_header_field = on_field,
                                           .on_header_value = on_value,
                                           .on_headers_complete = on_head,
                                           .on_body = on_body,
                                           .on_message_complete = on_complete};

void http_response_init(struct http_response *r)
{
    *r = (struct http_response){.status = 0};
    buffer_init(&r->joined, HTTP_RESPONSE_BODY_MAX);
}

void http_response_finish(struct http_response *r)
{
    buffer_finish(&r->joined);
}

static void clear(struct http_response *r)
{
    struct buffer joined = r->joined;
    buffer_take(&joined, buffer_len(&joined));
    joined.full = false;
    *r = (struct http_response){.type = {"", 0}, .body = {"", 0}, .joined = joined};
}

static int bad(struct http_response *out, const char *complaint)
{
    out->complaint = complaint;
    return HTTP_BAD;
}

/* Handles an incomplete response. */
static int more(const struct reading *r, struct text input, bool ended)
{
    struct http_response *out = r->out;
    if (!r->in_body && input.len >= HTTP_RESPONSE_HEAD_MAX) {
        return bad(out, "the head of the answer is longer than 64 KiB");
    }
    if (input.len >= HTTP_RESPONSE_MAX) {
        return bad(out, "the answer is longer than 8 MiB");
    }
    if (ended) {
        return bad(out, input.len == 0 ? "the connection ended without an answer"
                                       : "the connection ended in the middle of the answer");
    }
    if (r->in_body && (r->llhttp.flags & F_CONTENT_LENGTH) != 0) {
        out->needed = input.len + (size_t)r->llhttp.content_length;
    }
    return HTTP_MORE;
}

int http_response_parse(struct text input, bool ended, struct http_response *out)
{
    struct reading r = {.out = out};
    clear(out);
    llhttp_init(&r.llhttp, HTTP_RESPONSE, &settings);
    r.llhttp.data = &r;
    llhttp_errno_t e = llhttp_execute(&r.llhttp, input.at, input.len);
    if (ended && e == HPE_OK) {
        (void)llhttp_finish(&r.llhttp); /* a body without a length ends here */
    }
    if (r.complete) {
        return HTTP_READ;
    }
    if (out->complaint != NULL) {
        return HTTP_BAD;
    }
    if (e != HPE_OK) {
        return bad(out, "the answer is not HTTP/1.1");
    }
    return more(&r, input, ended);
}
