#include "redis/reply.h"

#include "base/maths.h"
#include "wire/resp.h"

/* ---- errors ---- */

static const struct {
    const char *word;
    enum store_refusal refusal;
} refusals[] = {
    {"MISCONF", STORE_MISCONF},   {"NOSCRIPT", STORE_NOSCRIPT},
    {"MOVED", STORE_MOVED},       {"ASK", STORE_ASK},
    {"TRYAGAIN", STORE_TRYAGAIN}, {"CLUSTERDOWN", STORE_CLUSTERDOWN},
    {"LOADING", STORE_LOADING},   {"MASTERDOWN", STORE_MASTERDOWN},
    {"READONLY", STORE_READONLY}, {"NOREPLICAS", STORE_NOREPLICAS},
    {"BUSY", STORE_BUSY},         {"OOM", STORE_OOM},
};

static enum store_refusal refusal_of(struct text error)
{
    const char *space = error.len != 0 ? memchr(error.at, ' ', error.len) : NULL;
    struct text word = {error.at, space != NULL ? (size_t)(space - error.at) : error.len};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (text_is(word, refusals[i].word)) {
            return refusals[i].refusal;
        }
    }
    return STORE_REFUSED;
}

bool store_did_not_run(enum store_refusal refusal)
{
    return refusal >= STORE_NOSCRIPT;
}

bool store_is_failure(enum store_refusal refusal)
{
    static const bool failures[] = {
        [STORE_MISCONF] = true,    [STORE_CLUSTERDOWN] = true, [STORE_LOADING] = true,
        [STORE_MASTERDOWN] = true, [STORE_READONLY] = true,    [STORE_NOREPLICAS] = true,
        [STORE_BUSY] = true,       [STORE_OOM] = true,
    };
    return failures[refusal];
}

/* ---- reading ---- */

/* A type, a text and its CR. */
#define REPLY_LINE_MAX (STORE_TEXT_MAX + 2)

struct cursor {
    struct text input;
    size_t at;
};

/* Reads a type and the rest of its line. */
static int read_line(struct cursor *c, char *type, struct text *line)
{
    struct text rest = text_after(c->input, c->at);
    const char *end =
        rest.len != 0 ? memchr(rest.at, '\r', min_u64(rest.len, REPLY_LINE_MAX)) : NULL;
    if (end == NULL) {
        return rest.len >= REPLY_LINE_MAX ? STORE_BAD : STORE_MORE;
    }
    if (end + 1 == rest.at + rest.len) {
        return STORE_MORE;
    }
    size_t len = (size_t)(end - rest.at);
    if (len == 0 || end[1] != '\n') {
        return STORE_BAD;
    }
    *type = rest.at[0];
    *line = (struct text){rest.at + 1, len - 1};
    c->at += len + 2;
    return STORE_REPLY;
}

static int read_bulk(struct cursor *c, struct text line, struct store_reply *out)
{
    int64_t len;
    if (!resp_to_i64(line, &len) || len < -1 || len > STORE_TEXT_MAX) {
        return STORE_BAD;
    }
    if (len < 0) {
        out->type = '_';
        return STORE_REPLY;
    }
    struct text rest = text_after(c->input, c->at);
    if (rest.len < (size_t)len + 2) {
        return STORE_MORE;
    }
    if (memcmp(rest.at + len, "\r\n", 2) != 0) {
        return STORE_BAD;
    }
    out->text = (struct text){rest.at, (size_t)len};
    c->at += (size_t)len + 2;
    return STORE_REPLY;
}

static int read_integers(struct cursor *c, struct text line, struct store_reply *out)
{
    int64_t n;
    if (!resp_to_i64(line, &n) || n < -1 || n > STORE_INTEGERS_MAX) {
        return STORE_BAD;
    }
    out->type = n < 0 ? '_' : ':';
    out->n = n < 0 ? 0 : (size_t)n;
    for (size_t i = 0; i < out->n; i++) {
        char type;
        struct text number;
        int e = read_line(c, &type, &number);
        if (e != STORE_REPLY) {
            return e;
        }
        if (type != ':' || !resp_to_i64(number, &out->integers[i])) {
            return STORE_BAD;
        }
    }
    return STORE_REPLY;
}

static int read_value(struct cursor *c, char type, struct text line, struct store_reply *out)
{
    switch (type) {
    case ':':
        out->n = 1;
        return resp_to_i64(line, &out->integers[0]) ? STORE_REPLY : STORE_BAD;
    case '*':
        return read_integers(c, line, out);
    case '$':
        return read_bulk(c, line, out);
    case '+':
        out->text = line;
        return STORE_REPLY;
    case '_':
        return line.len == 0 ? STORE_REPLY : STORE_BAD;
    case '-':
        out->text = line;
        out->refusal = refusal_of(line);
        return STORE_REPLY;
    default:
        return STORE_BAD;
    }
}

int store_reply_read(struct text input, struct store_reply *out)
{
    struct cursor c = {input, 0};
    struct text line;
    char type;
    int e = read_line(&c, &type, &line);
    if (e != STORE_REPLY) {
        return e;
    }
    out->type = type;
    out->n = 0;
    out->text = (struct text){"", 0};
    out->refusal = STORE_REFUSED_NOT;
    e = read_value(&c, type, line, out);
    out->used = c.at;
    return e;
}
