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
    struct text word = text_before(error, ' ');
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

/* ---- one value ---- */

#define LINE_MAX_BYTES (STORE_TEXT_MAX + 2) /* a type, a text and its CR */

/* Takes a line from the front: its type and the rest of it. */
static int take_line(struct text *rest, struct store_value *out)
{
    const char *end =
        rest->len != 0 ? memchr(rest->at, '\r', min_u64(rest->len, LINE_MAX_BYTES)) : NULL;
    if (end == NULL) {
        return rest->len >= LINE_MAX_BYTES ? STORE_BAD : STORE_MORE;
    }
    size_t len = (size_t)(end - rest->at);
    if (len + 1 == rest->len) {
        return STORE_MORE;
    }
    if (len == 0 || end[1] != '\n') {
        return STORE_BAD;
    }
    *out = (struct store_value){.type = rest->at[0], .text = {rest->at + 1, len - 1}};
    *rest = text_after(*rest, len + 2);
    return STORE_REPLY;
}

/* Takes the bytes of a bulk string, whose length was read, and their line end. */
static int take_bulk(struct text *rest, struct store_value *out)
{
    size_t len = (size_t)out->number;
    if (len > STORE_TEXT_MAX) {
        return STORE_BAD;
    }
    if (rest->len < len + 2) {
        return STORE_MORE;
    }
    out->text = (struct text){rest->at, len};
    *rest = text_after(*rest, len + 2);
    return memcmp(out->text.at + len, "\r\n", 2) == 0 ? STORE_REPLY : STORE_BAD;
}

/* Takes an integer, or a value that begins with its length. A length of -1 is a null value. */
static int take_number(struct text *rest, struct store_value *out)
{
    bool good = resp_to_i64(out->text, &out->number);
    out->text = (struct text){"", 0};
    if (!good || out->type == ':') {
        return good ? STORE_REPLY : STORE_BAD;
    }
    if (out->number < 0) {
        out->type = '_';
        return out->number == -1 ? STORE_REPLY : STORE_BAD;
    }
    if (out->type == '*') {
        return out->number <= (int64_t)VALUE_BYTES_MAX ? STORE_REPLY : STORE_BAD;
    }
    return take_bulk(rest, out);
}

/* Takes one value from the front. For an array that is only its length. */
static int take(struct text *rest, struct store_value *out)
{
    int e = take_line(rest, out);
    if (e != STORE_REPLY) {
        return e;
    }
    switch (out->type) {
    case '+':
    case '-':
        return STORE_REPLY;
    case '_':
        return out->text.len == 0 ? STORE_REPLY : STORE_BAD;
    case ':':
    case '*':
    case '$':
        return take_number(rest, out);
    default:
        return STORE_BAD;
    }
}

/* ---- replies of scripts ---- */

#define SHORT_DIGITS 18 /* any number of so many digits fits in 64 bits */

/* Takes a short integer that is complete, quickly. Returns false for anything else. */
static bool take_short(struct text *rest, int64_t *number)
{
    const char *at = rest->at;
    bool negative = rest->len > 1 && at[1] == '-';
    size_t first = 1 + negative;
    size_t i = first;
    int64_t n = 0;
    for (; i < rest->len && i - first < SHORT_DIGITS && at[i] >= '0' && at[i] <= '9'; i++) {
        n = n * 10 + (at[i] - '0');
    }
    if (i + 1 >= rest->len || i == first || at[0] != ':' || at[i] != '\r' || at[i + 1] != '\n') {
        return false;
    }
    *number = negative ? -n : n;
    *rest = text_after(*rest, i + 2);
    return true;
}

static int read_integers(struct text *rest, size_t n, struct store_reply *out)
{
    struct store_value v;
    int e = n <= STORE_INTEGERS_MAX ? STORE_REPLY : STORE_BAD;
    for (size_t i = 0; e == STORE_REPLY && i < n; i++) {
        if (take_short(rest, &out->integers[i])) {
            continue;
        }
        e = take(rest, &v);
        if (e == STORE_REPLY && v.type != ':') {
            return STORE_BAD;
        }
        out->integers[i] = v.number;
    }
    out->type = ':';
    out->n = n;
    return e;
}

int store_reply_read(struct text input, struct store_reply *out)
{
    struct text rest = input;
    struct store_value v;
    int e = take(&rest, &v);
    if (e != STORE_REPLY) {
        return e;
    }
    out->type = v.type;
    out->n = v.type == ':';
    out->integers[0] = v.number;
    out->text = v.text;
    out->refusal = v.type == '-' ? refusal_of(v.text) : STORE_REFUSED_NOT;
    if (v.type == '*') {
        e = read_integers(&rest, (size_t)v.number, out);
    }
    out->used = input.len - rest.len;
    return e;
}

/* ---- replies of any form ---- */

int value_whole(struct text input, size_t *used)
{
    int64_t left[VALUE_DEPTH_MAX + 1] = {1}; /* values that follow, at each depth */
    size_t depth = 0;
    struct text rest = input;
    while (depth > 0 || left[0] > 0) {
        struct store_value v;
        if (left[depth] == 0) {
            depth--;
            continue;
        }
        int e = take(&rest, &v);
        if (e != STORE_REPLY) {
            return e == STORE_MORE && input.len > VALUE_BYTES_MAX ? STORE_BAD : e;
        }
        left[depth]--;
        if (v.type == '*') {
            if (++depth > VALUE_DEPTH_MAX) {
                return STORE_BAD;
            }
            left[depth] = v.number;
        }
    }
    *used = input.len - rest.len;
    return STORE_REPLY;
}

bool value_next(struct text *rest, struct store_value *out)
{
    return take(rest, out) == STORE_REPLY;
}

struct text value_text(struct text *rest)
{
    struct store_value v;
    bool is = value_next(rest, &v) && (v.type == '$' || v.type == '+');
    return is ? v.text : (struct text){"", 0};
}

static int64_t number_of(struct text *rest, char type)
{
    struct store_value v;
    return value_next(rest, &v) && v.type == type ? v.number : -1;
}

int64_t value_integer(struct text *rest)
{
    return number_of(rest, ':');
}

int64_t value_array(struct text *rest)
{
    return number_of(rest, '*');
}

void value_pass(struct text *rest)
{
    size_t used = 0;
    if (value_whole(*rest, &used) == STORE_REPLY) {
        *rest = text_after(*rest, used);
    } else {
        rest->len = 0;
    }
}
