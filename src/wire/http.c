/* Reads requests and responses with llhttp. */
#include <llhttp.h> /* defines an HTTP_REQUEST of its own */
#include <strings.h>

#include "wire/http_request.h"
#include "wire/http_response.h"

/* ---- what both have in common ---- */

struct message_reading {
    llhttp_t llhttp;
    struct http_request *request; /* one of the two is read; the other is NULL */
    struct http_response *response;
    bool in_body;
    bool complete;
};

static struct message_reading *reading_of(llhttp_t *llhttp)
{
    return llhttp->data;
}

static int on_complete(llhttp_t *llhttp)
{
    reading_of(llhttp)->complete = true;
    return HPE_PAUSED;
}

static llhttp_errno_t execute(struct message_reading *r, const llhttp_settings_t *settings,
                              struct weir_text input)
{
    llhttp_init(&r->llhttp, r->request != NULL ? HTTP_REQUEST : HTTP_RESPONSE, settings);
    r->llhttp.data = r;
    return llhttp_execute(&r->llhttp, input.at, input.len);
}

/* ---- requests: checks of the head's lines, before llhttp reads them ---- */

/* True if a line like "GET / HTTP/1.1" has exactly two blanks; llhttp accepts more. */
static bool has_two_spaces(struct weir_text line)
{
    unsigned n = 0;
    for (size_t i = 0; i < line.len; i++) {
        n += line.at[i] == ' ' || line.at[i] == '\t';
    }
    return n == 2;
}

/* Checks one line, which has its LF at line.at[line.len]. */
static int check_line(struct http_request *r, struct weir_text line, bool first)
{
    if (line.len == 0 || line.at[line.len - 1] != '\r') {
        return http_bad(r, 400, "found a line that does not end with CR LF");
    }
    if (memchr(line.at, '\r', line.len - 1) != NULL || memchr(line.at, 0, line.len) != NULL) {
        return http_bad(r, 400, "found CR or NUL inside a line");
    }
    if (first && !has_two_spaces(line)) {
        return http_bad(r, 400, "expected an HTTP/1.1 request");
    }
    if (!first && (line.at[0] == ' ' || line.at[0] == '\t')) {
        return http_bad(r, 400, "found a header field that is folded over two lines");
    }
    if (!first && line.at[0] == ':') { /* llhttp would append its value to the previous field */
        return http_bad(r, 400, "found a header field without a name");
    }
    return HTTP_READ;
}

/* Checks that the head is complete, and each of its lines good. The head may have `most` bytes. */
static int check_lines(struct http_request *r, struct weir_text input, size_t most)
{
    size_t bound = input.len < most ? input.len : most;
    size_t at = 0;
    for (unsigned lines = 0;; lines++) {
        const char *end = memchr(input.at + at, '\n', bound - at);
        if (end == NULL) {
            break;
        }
        struct weir_text line = {input.at + at, (size_t)(end - input.at) - at};
        int got = check_line(r, line, lines == 0);
        if (got == HTTP_BAD) {
            return got;
        }
        at += line.len + 1;
        if (line.len == 1) {
            r->body_at = at;
            return HTTP_READ;
        }
        if (lines > HTTP_FIELDS_MAX) {
            return http_bad(r, 431, "found more than 64 header fields");
        }
    }
    if (bound == most) {
        return http_bad(r, 431, "found a head of more than 16384 bytes");
    }
    return HTTP_MORE;
}

/* ---- requests: callbacks of llhttp ---- */

static int on_url(llhttp_t *llhttp, const char *at, size_t len)
{
    reading_of(llhttp)->request->target = (struct weir_text){at, len};
    return 0;
}

static int on_method(llhttp_t *llhttp, const char *at, size_t len)
{
    reading_of(llhttp)->request->method = (struct weir_text){at, len};
    return 0;
}

static int refuse(llhttp_t *llhttp, int status, const char *complaint)
{
    (void)http_bad(reading_of(llhttp)->request, status, complaint);
    return -1;
}

static int on_field(llhttp_t *llhttp, const char *at, size_t len)
{
    struct http_request *out = reading_of(llhttp)->request;
    if (out->fields_count == HTTP_FIELDS_MAX) {
        return refuse(llhttp, 431, "found more than 64 header fields");
    }
    out->fields[out->fields_count++] = (struct http_field){{at, len}, {"", 0}};
    return 0;
}

static int on_value(llhttp_t *llhttp, const char *at, size_t len)
{
    struct http_request *out = reading_of(llhttp)->request;
    out->fields[out->fields_count - 1].value = text_trim((struct weir_text){at, len});
    return 0;
}

/* The fields that say where the request goes and where it ends. */
struct framing {
    unsigned hosts;
    unsigned lengths; /* both kinds: Content-Length and Transfer-Encoding */
    struct weir_text coding;
    struct weir_text expect;
};

/* Finds these fields in one pass; r->host is the last Host. */
static void find_framing(struct http_request *r, struct framing *f)
{
    *f = (struct framing){.hosts = 0};
    for (unsigned i = 0; i < r->fields_count; i++) {
        const struct http_field *field = &r->fields[i];
        switch (field->name.len) {
        case 4:
            if (http_same_name(field->name, "host")) {
                r->host = field->value;
                f->hosts++;
            }
            break;
        case 6:
            f->expect = http_same_name(field->name, "expect") ? field->value : f->expect;
            break;
        case 14:
            f->lengths += http_same_name(field->name, "content-length");
            break;
        case 17:
            if (http_same_name(field->name, "transfer-encoding")) {
                f->coding = field->value;
                f->lengths++;
            }
            break;
        default:
            break;
        }
    }
}

/* Checks the head as a whole. llhttp refuses most of this too; here all of it is in one place. */
static int check_head(llhttp_t *llhttp, const struct framing *f)
{
    struct http_request *r = reading_of(llhttp)->request;
    if (llhttp->http_major != 1) {
        return refuse(llhttp, 400, "expected HTTP/1.1");
    }
    if (f->hosts > 1 || (llhttp->http_minor > 0 && f->hosts == 0)) {
        return refuse(llhttp, 400, "expected exactly one Host field");
    }
    if (!http_read_target(r)) {
        return refuse(llhttp, 400, "found a Host that is no host name or address");
    }
    if (f->lengths > 1) {
        return refuse(llhttp, 400, "expected one Content-Length or Transfer-Encoding");
    }
    if (f->coding.at != NULL && (!text_is_word(f->coding, "CHUNKED") || llhttp->http_minor == 0)) {
        return refuse(llhttp, 400, "found a transfer coding, expected none or chunked");
    }
    if (llhttp->content_length > HTTP_BODY_MAX) {
        return refuse(llhttp, 413, "found a body of more than 262144 bytes");
    }
    return 0;
}

static int on_head(llhttp_t *llhttp)
{
    struct http_request *r = reading_of(llhttp)->request;
    struct framing framing;
    reading_of(llhttp)->in_body = true;
    find_framing(r, &framing);
    r->old = llhttp->http_minor == 0;
    r->wants_continue = !r->old && text_is_word(framing.expect, "100-CONTINUE");
    int e = check_head(llhttp, &framing);
    return e == 0 && (llhttp->flags & F_CHUNKED) != 0 ? HPE_PAUSED : e; /* http_read_chunks() */
}

const char http_chunked_too_long[] = "found a chunked body of more than 65536 bytes";

static int on_body(llhttp_t *llhttp, const char *at, size_t len)
{
    reading_of(llhttp)->request->body = (struct weir_text){at, len};
    return 0;
}

static const llhttp_settings_t request_settings = {.on_url = on_url,
                                                   .on_method = on_method,
                                                   .on_header_field = on_field,
                                                   .on_header_value = on_value,
                                                   .on_headers_complete = on_head,
                                                   .on_body = on_body,
                                                   .on_message_complete = on_complete};

/* ---- one request ---- */

/* Returns whether llhttp reads requests with this method in the usual way. It refuses methods that
 * it does not know, and reads some others in their own ways. */
static bool is_usual(struct weir_text input)
{
    return text_starts(input, "POST ") || text_starts(input, "GET ") ||
           text_starts(input, "HEAD ") || text_starts(input, "PUT ") ||
           text_starts(input, "DELETE ") || text_starts(input, "PATCH ") ||
           text_starts(input, "OPTIONS ");
}

/* Lets llhttp read the input, with POST in place of a method that is not usual. */
static void read_with(struct message_reading *r, struct weir_text input)
{
    if (is_usual(input)) {
        (void)execute(r, &request_settings, input);
        return;
    }
    struct weir_text method = text_before(input, ' ');
    if (text_is(method, "CONNECT") && input.at[method.len + 1] != '/') {
        (void)http_bad(r->request, 501, "CONNECT is not supported");
    } else if (text_is_made_of(method, HTTP_TOKEN)) {
        (void)execute(r, &request_settings, TEXT("POST"));
        (void)llhttp_execute(&r->llhttp, input.at + method.len, input.len - method.len);
        r->request->method = method;
    }
}

/* Reads a request whose head is complete. */
static int read_request(struct weir_text input, struct http_request *out)
{
    struct message_reading r = {.request = out};
    read_with(&r, input);
    if (out->status != 0) {
        return HTTP_BAD;
    }
    bool chunked = (r.llhttp.flags & F_CHUNKED) != 0;
    int e = (int)llhttp_get_errno(&r.llhttp);
    if (!r.in_body || (e != HPE_OK && e != HPE_PAUSED && !r.complete)) {
        return http_bad(out, 400, "expected an HTTP/1.1 request");
    }
    out->keep_alive = llhttp_should_keep_alive(&r.llhttp) != 0;
    if (chunked) {
        int got = http_read_chunks(text_after(input, out->body_at), out, &out->used);
        out->used = got == HTTP_READ ? out->body_at + out->used : 0;
        return got;
    }
    out->used = r.complete ? (size_t)(llhttp_get_error_pos(&r.llhttp) - input.at) : 0;
    out->needed = r.complete ? 0 : input.len + (size_t)r.llhttp.content_length;
    return r.complete ? HTTP_READ : HTTP_MORE;
}

static void clear(struct http_request *r)
{
    r->method = r->target = r->path = r->query = r->host = r->host_name = r->body =
        (struct weir_text){"", 0};
    r->fields_count = 0;
    r->keep_alive = r->old = r->wants_continue = false;
    r->used = r->needed = r->body_at = 0;
    r->status = 0;
    r->complaint = NULL;
}

int http_parse(struct weir_text input, struct http_request *out)
{
    clear(out);
    input.len = input.len < HTTP_REQUEST_MAX ? input.len : HTTP_REQUEST_MAX;
    size_t empty = 0;
    while (empty + 2 <= HTTP_HEAD_MAX && input.len - empty >= 2 &&
           memcmp(input.at + empty, "\r\n", 2) == 0) {
        empty += 2;
    }
    int got = check_lines(out, text_after(input, empty), HTTP_HEAD_MAX - empty);
    if (got == HTTP_READ) {
        got = read_request(text_after(input, empty), out);
    }
    if (got == HTTP_MORE && out->needed == 0 && input.len >= HTTP_HEAD_MAX + HTTP_CHUNKED_MAX) {
        return http_bad(out, 413, http_chunked_too_long);
    }
    out->used += got == HTTP_READ ? empty : 0;
    out->body_at += out->body_at > 0 ? empty : 0;
    out->needed += out->needed > 0 ? empty : 0;
    return got;
}

/* ---- fields ---- */

bool http_same_name(struct weir_text name, const char *lower)
{
    return name.len == strlen(lower) && strncasecmp(name.at, lower, name.len) == 0;
}

struct weir_text http_value(const struct http_request *request, const char *lower)
{
    for (unsigned i = 0; i < request->fields_count; i++) {
        if (http_same_name(request->fields[i].name, lower)) {
            return request->fields[i].value;
        }
    }
    return (struct weir_text){NULL, 0};
}

/* ---- responses ---- */

static const char response_too_long[] = "the answer is longer than 8 MiB";

/* Returns 0 to go on, or -1 and the complaint if the body is too long. */
static int bound_response(struct message_reading *r, bool too_long)
{
    r->response->complaint = too_long ? response_too_long : NULL;
    return too_long ? -1 : 0;
}

static int on_response_head(llhttp_t *llhttp)
{
    struct message_reading *r = reading_of(llhttp);
    r->in_body = true;
    r->response->status = llhttp->status_code;
    return bound_response(r, (llhttp->flags & F_CONTENT_LENGTH) != 0 &&
                                 llhttp->content_length > HTTP_RESPONSE_BODY_MAX);
}

static int on_response_body(llhttp_t *llhttp, const char *at, size_t len)
{
    struct message_reading *r = reading_of(llhttp);
    if ((llhttp->flags & F_CHUNKED) == 0) { /* a body in one piece is not copied */
        r->response->body = (struct weir_text){at, len};
        return bound_response(r, len > HTTP_RESPONSE_BODY_MAX);
    }
    buffer_put(&r->response->joined, (struct weir_text){at, len});
    r->response->body = buffer_text(&r->response->joined);
    return bound_response(r, r->response->joined.full);
}

static const llhttp_settings_t response_settings = {.on_headers_complete = on_response_head,
                                                    .on_body = on_response_body,
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

static void clear_response(struct http_response *r)
{
    struct buffer joined = r->joined;
    buffer_take(&joined, buffer_len(&joined));
    joined.full = false;
    *r = (struct http_response){.body = {"", 0}, .joined = joined};
}

static int bad_response(struct http_response *out, const char *complaint)
{
    out->complaint = complaint;
    return HTTP_BAD;
}

/* Handles an incomplete response. */
static int more(const struct message_reading *r, struct weir_text input, bool ended)
{
    struct http_response *out = r->response;
    if (!r->in_body && input.len >= HTTP_RESPONSE_HEAD_MAX) {
        return bad_response(out, "the head of the answer is longer than 64 KiB");
    }
    if (input.len >= HTTP_RESPONSE_MAX) {
        return bad_response(out, response_too_long);
    }
    if (ended) {
        return bad_response(out, input.len == 0
                                     ? "the connection ended without an answer"
                                     : "the connection ended in the middle of the answer");
    }
    if (r->in_body && (r->llhttp.flags & F_CONTENT_LENGTH) != 0) {
        out->needed = input.len + (size_t)r->llhttp.content_length;
    }
    return HTTP_MORE;
}

int http_response_parse(struct weir_text input, bool ended, struct http_response *out)
{
    struct message_reading r = {.response = out};
    clear_response(out);
    llhttp_errno_t e = execute(&r, &response_settings, input);
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
        return bad_response(out, "the answer is not HTTP/1.1");
    }
    return more(&r, input, ended);
}
