/*
 * Reads replies, with as little work as possible: only where a reply ends and whether it allows.
 * The generator must be faster than the server that it drives.
 */
#include "load/load.h"
#include "redis/reply.h"

/* ---- RESP ---- */

static enum load_verdict verdict_of_word(struct weir_text word)
{
    return text_is(word, "allow")                            ? LOAD_ALLOWED
           : text_is(word, "deny") || text_is(word, "never") ? LOAD_DENIED
                                                             : LOAD_OTHER;
}

/* Returns the verdict of a value. The first value of an array decides: 0 or "allow" allows. */
static enum load_verdict judge(const struct store_value *v, bool inside)
{
    if (v->type == '-') {
        return text_starts(v->text, "OVERLOAD") ? LOAD_REFUSED : LOAD_ERROR;
    }
    if (inside && v->type == ':') {
        return v->number == 0 ? LOAD_ALLOWED : LOAD_DENIED;
    }
    return inside && v->type == '$' ? verdict_of_word(v->text) : LOAD_OTHER;
}

static int64_t read_resp(struct weir_text input, enum load_verdict *verdict)
{
    struct store_value v = {.type = '_'};
    struct store_reply reply;
    bool inside = false;
    int got = store_reply_read(input, &reply);
    if (got != STORE_REPLY) {
        return got == STORE_MORE ? 0 : LOAD_BROKEN;
    }
    input = reply.whole;
    while (value_next(&input, &v) && v.type == '*') {
        inside = true;
    }
    *verdict = judge(&v, inside);
    return (int64_t)reply.whole.len;
}

/* ---- HTTP ---- */

/* Returns the value of Content-Length; -1: there is none. */
static int64_t content_length(struct weir_text head)
{
    static const char name[] = "content-length:";
    const size_t n = sizeof name - 1;
    for (const char *at = head.at; at != NULL; at = memchr(at, '\n', head.len)) {
        at += at == head.at ? 0 : 1;
        head = text_after(head, (size_t)(at - head.at));
        if (head.len > n && (at[0] | 0x20) == 'c' && strncasecmp(at, name, n) == 0) {
            int64_t number = 0;
            size_t i = n + (at[n] == ' ');
            for (; i < head.len && at[i] >= '0' && at[i] <= '9' && number < INT32_MAX; i++) {
                number = number * 10 + (at[i] - '0');
            }
            return number;
        }
        if (head.len == 0) {
            break;
        }
    }
    return -1;
}

static enum load_verdict verdict_of_status(int status)
{
    switch (status) {
    case 200:
        return LOAD_ALLOWED;
    case 403:
    case 422:
    case 429:
        return LOAD_DENIED;
    case 503:
        return LOAD_REFUSED;
    default:
        return LOAD_ERROR;
    }
}

static int64_t read_http(struct weir_text input, enum load_verdict *verdict)
{
    static const char begin[] = "HTTP/1.";
    const char *blank = memmem(input.at, input.len, "\r\n\r\n", 4);
    if (input.len >= sizeof begin - 1 && !text_starts(input, begin)) {
        return LOAD_BROKEN;
    }
    if (blank == NULL) {
        return 0;
    }
    struct weir_text head = {input.at, (size_t)(blank - input.at) + 2};
    int64_t length = content_length(head);
    if (length < 0 || head.len < sizeof "HTTP/1.1 200" - 1) {
        return LOAD_BROKEN; /* chunked, or ended by closing the connection: not supported here */
    }
    int status = (head.at[9] - '0') * 100 + (head.at[10] - '0') * 10 + (head.at[11] - '0');
    *verdict = verdict_of_status(status);
    size_t all = head.len + 2 + (size_t)length;
    return all <= input.len ? (int64_t)all : 0;
}

int64_t load_read_reply(enum load_wire wire, struct weir_text input, enum load_verdict *verdict)
{
    return wire == LOAD_RESP ? read_resp(input, verdict) : read_http(input, verdict);
}
