/* Writes replies: the status line, the header fields, and an answer or a problem as JSON. */
#include <stdio.h>
#include <time.h>

#include "base/atomic.h"
#include "base/maths.h"
#include "common/utf8.h"
#include "server/http/http_routes.h"
#include "wire/jsontext.h"

struct status_row {
    int status;
    const char *words;
    const char *type; /* type of the problem; NULL: about:blank */
    const char *title;
};

#define PROBLEM(name) "https://iana.org/assignments/http-problem-types#" name

static const struct status_row statuses[] = {
    {200, "OK", NULL, NULL},
    {201, "Created", NULL, NULL},
    {204, "No Content", NULL, NULL},
    {304, "Not Modified", NULL, NULL},
    {400, "Bad Request", NULL, NULL},
    {401, "Unauthorized", NULL, NULL},
    {403, "Forbidden", NULL, NULL},
    {404, "Not Found", NULL, NULL},
    {405, "Method Not Allowed", NULL, NULL},
    {409, "Conflict", NULL, NULL},
    {413, "Content Too Large", NULL, NULL},
    {415, "Unsupported Media Type", NULL, NULL},
    {422, "Unprocessable Content", NULL, NULL},
    {429, "Too Many Requests", PROBLEM("quota-exceeded"), "Quota Exceeded"},
    {431, "Request Header Fields Too Large", NULL, NULL},
    {500, "Internal Server Error", NULL, NULL},
    {501, "Not Implemented", NULL, NULL},
    {503, "Service Unavailable", PROBLEM("temporary-reduced-capacity"),
     "Temporary Reduced Capacity"},
};

/* Returns the row of a status, or a general one: operators may choose the status of denials. */
static const struct status_row *row_of(int status)
{
    static const struct status_row other = {0, "Denied", NULL, NULL};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == status) {
            return &statuses[i];
        }
    }
    return &other;
}

/* ---- JSON ---- */

static void put_flags(struct buffer *b, unsigned flags)
{
    const char *between = "";
    buffer_put_char(b, '[');
    for (unsigned i = 0; i < ANSWER_FLAGS; i++) {
        if ((flags >> i & 1) != 0) {
            buffer_put(b, text_of(between));
            jsontext_put_string(b, text_of(answer_flag_names[i]));
            between = ",";
        }
    }
    buffer_put_char(b, ']');
}

static void put_name(struct buffer *b, const char *name)
{
    if (name[0] != 0) {
        jsontext_put_string(b, text_of(name));
    } else {
        buffer_put(b, TEXT("null"));
    }
}

static void put_reason(struct buffer *b, int reason)
{
    buffer_put(b, TEXT(",\"reason\":"));
    jsontext_put_string(b, text_of(weir_rules_reason_name(reason)));
}

/* Puts the members of an answer and the end of the object. */
static void put_members(struct buffer *b, const struct answer *a, enum operation operation)
{
    enum operation_extra extra = operation_rows[operation].extra;
    buffer_put(b, TEXT("\"verdict\":"));
    jsontext_put_string(b, text_of(answer_verdict_names[a->verdict]));
    buffer_put(b, TEXT(",\"limit\":"));
    put_name(b, a->limit);
    buffer_put(b, TEXT(",\"quota\":"));
    buffer_put_u64(b, a->quota);
    buffer_put(b, TEXT(",\"remaining\":"));
    buffer_put_i64(b, a->remaining);
    buffer_put(b, TEXT(",\"retry_after_ms\":"));
    if (a->retry_after_ms >= 0) {
        buffer_put_i64(b, a->retry_after_ms);
    } else {
        buffer_put(b, TEXT("null"));
    }
    buffer_put(b, TEXT(",\"reset_after_ms\":"));
    buffer_put_u64(b, a->reset_after_ms);
    buffer_put(b, TEXT(",\"delay_ms\":"));
    buffer_put_u64(b, a->delay_ms);
    buffer_put(b, TEXT(",\"flags\":"));
    put_flags(b, a->flags);
    if (extra == EXTRA_BLOCKED) {
        buffer_put(b, TEXT(",\"blocked_ms\":"));
        buffer_put_i64(b, a->blocked_ms);
    } else if (extra == EXTRA_RESERVATION) {
        buffer_put(b, TEXT(",\"reservation\":"));
        put_name(b, a->reservation);
    }
    put_reason(b, a->reason);
    buffer_put_char(b, '}');
}

void http_put_answer(struct buffer *body, const struct answer *a, enum operation operation)
{
    buffer_put_char(body, '{');
    put_members(body, a, operation);
}

/* Puts {"type":...,"title":...,"status":... without the end of the object. */
static void begin_problem(struct buffer *b, int status)
{
    const struct status_row *row = row_of(status);
    buffer_put(b, TEXT("{\"type\":"));
    jsontext_put_string(b, text_of(row->type != NULL ? row->type : "about:blank"));
    buffer_put(b, TEXT(",\"title\":"));
    jsontext_put_string(b, text_of(row->title != NULL ? row->title : row->words));
    buffer_put(b, TEXT(",\"status\":"));
    buffer_put_i64(b, status);
}

static void put_detail(struct buffer *b, const char *detail)
{
    buffer_put(b, TEXT(",\"detail\":"));
    jsontext_put_string(b, text_of(detail));
}

void http_put_problem(struct buffer *body, int status, const char *detail, int reason)
{
    begin_problem(body, status);
    put_detail(body, detail);
    if (reason != 0) {
        put_reason(body, reason);
    }
    buffer_put_char(body, '}');
}

static void put_denial(struct exchange *x, int status, const struct answer *a)
{
    struct buffer *b = &x->body;
    begin_problem(b, status);
    if (x->detail != NULL) {
        put_detail(b, x->detail);
    }
    if (row_of(status)->type != NULL && a->limit[0] != 0) {
        buffer_put(b, TEXT(",\"violated-policies\":["));
        jsontext_put_string(b, text_of(a->limit));
        buffer_put_char(b, ']');
    }
    buffer_put_char(b, ',');
    put_members(b, a, x->operation);
}

/* ---- header fields ---- */

/* Puts the Date field, "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale. Each thread
 * formats it once a second. */
static void put_date(struct buffer *b, uint64_t now_s)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static __thread char text[64];
    static __thread uint64_t written_s = UINT64_MAX;
    if (written_s != now_s) {
        time_t seconds = (time_t)now_s;
        struct tm t;
        if (gmtime_r(&seconds, &t) == NULL) {
            return;
        }
        (void)snprintf(text, sizeof text, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                       days[t.tm_wday], t.tm_mday, months[t.tm_mon], t.tm_year + 1900, t.tm_hour,
                       t.tm_min, t.tm_sec);
        written_s = now_s;
    }
    buffer_put(b, text_of(text));
}

static void put_field(struct buffer *b, struct weir_text name, struct weir_text value)
{
    buffer_put(b, name);
    buffer_put(b, value);
    buffer_put(b, TEXT("\r\n"));
}

static void put_connection(const struct exchange *x)
{
    if (x->allow.len > 0) {
        put_field(x->out, TEXT("Allow: "), x->allow);
    }
    if (x->close) {
        buffer_put(x->out, TEXT("Connection: close\r\n"));
    } else if (x->request->old) {
        buffer_put(x->out, TEXT("Connection: keep-alive\r\n"));
    }
}

/* Returns how a request counts that is being answered. */
static enum request_result result_of(const struct exchange *x, int status, const struct answer *a)
{
    if (x->result != REQUEST_OTHER) {
        return x->result;
    }
    if (a != NULL) {
        return operation_result(x->operation, 0, a);
    }
    return status >= 400 ? REQUEST_ERROR : REQUEST_OTHER;
}

/* Counts a request that is being answered. */
static void count(const struct exchange *x, int status, const struct answer *a)
{
    enum request_result result = result_of(x, status, a);
    if (x->connection != NULL) {
        worker_count_requests(x->connection->worker, x->connection->protocol->kind, result, 1);
        if (a != NULL) {
            worker_count_reason(x->connection->worker, x->connection->protocol->kind, result,
                                a->reason, a->limit);
        }
    }
}

void http_reply(struct exchange *x, int status, const char *type, const struct answer *a)
{
    struct buffer *out = x->out;
    count(x, status, a);
    buffer_put(out, TEXT("HTTP/1.1 "));
    buffer_put_i64(out, status);
    buffer_put_char(out, ' ');
    buffer_put(out, text_of(row_of(status)->words));
    buffer_put(out, TEXT("\r\n"));
    put_date(out, x->now_ns / WEIR_SECOND);
    if (type != NULL) {
        put_field(out, TEXT("Content-Type: "), text_of(type));
    }
    if (status != 204 && status != 304 && !x->endless) {
        buffer_put(out, TEXT("Content-Length: "));
        buffer_put_u64(out, buffer_len(&x->body));
        buffer_put(out, TEXT("\r\n"));
    }
    if (x->fields == NULL) {
        buffer_put(out, TEXT("Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"));
    } else {
        buffer_put(out, text_of(x->fields));
        buffer_put(out, TEXT("X-Content-Type-Options: nosniff\r\n"));
    }
    if (a != NULL) {
        answer_put_fields(x->out, a, status != 200, x->style.headers, x->now_ns);
    } else if (status == 503) {
        buffer_put(out, TEXT("Retry-After: "));
        ratelimit_put_retry_after(out, SERVER_RETRY_MS);
        buffer_put(out, TEXT("\r\n"));
    }
    if (status == 401) {
        buffer_put(out, TEXT("WWW-Authenticate: Bearer realm=\"weir\"\r\n"
                             "WWW-Authenticate: Basic realm=\"weir\"\r\n"));
    }
    put_connection(x);
    buffer_put(out, TEXT("\r\n"));
    if (!text_is(x->request->method, "HEAD")) {
        buffer_put(out, buffer_text(&x->body));
    }
    out->full = out->full || x->body.full;
}

/* ---- answers and problems ---- */

int http_status_of_answer(const struct answer *a)
{
    bool blocked = a->reason == WEIR_REASON_BLOCKED || a->reason == WEIR_REASON_BAN;
    if (a->reason == WEIR_REASON_BLOCK_LIST || (blocked && a->verdict == WEIR_NEVER)) {
        return 403;
    }
    if (a->reason == WEIR_REASON_STORE) { /* not the client's fault */
        return 503;
    }
    static const int by_verdict[] = {[WEIR_ALLOW] = 200, [WEIR_DENY] = 429, [WEIR_NEVER] = 422};
    return by_verdict[a->verdict];
}

void http_reply_answer(struct exchange *x, int status, const struct answer *a)
{
    if (status == 200) {
        http_put_answer(&x->body, a, x->operation);
        http_reply(x, status, "application/json", a);
    } else {
        put_denial(x, status, a);
        http_reply(x, status, "application/problem+json", a);
    }
}

static void reply_problem(struct exchange *x, int status, const char *detail, int reason)
{
    http_put_problem(&x->body, status, detail, reason);
    http_reply(x, status, "application/problem+json", NULL);
}

void http_reply_problem(struct exchange *x, int status, const char *detail)
{
    reply_problem(x, status, detail, status == 503 ? WEIR_REASON_OVERLOAD : 0);
}

void http_reply_failure(struct exchange *x, int e, const struct weir_error *error)
{
    const struct answer_error *row = answer_error(e);
    reply_problem(x, row->status, answer_words_of_error(e, error), row->reason);
}
