#include "redis/reply.h"

#include <ctype.h>

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

/* Redis before 7.0 wraps the error of a command that a script calls: "ERR Error running script
 * (call to f_...): @user_script:12: @user_script: 12: -READONLY ...". Returns the error
 * inside, or the error itself. Nothing else is searched: an error of the script may name a
 * key, which clients choose. */
static struct weir_text unwrapped(struct weir_text error)
{
    static const char *const parts[] = {"ERR Error running script (call to f_",
                                        "): @user_script:", ": @user_script: ", ": -"};
    struct weir_text rest = error;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!text_starts(rest, parts[i])) {
            return error;
        }
        rest = text_after(rest, strlen(parts[i]));
        while (rest.len > 0 && isxdigit((unsigned char)rest.at[0]) &&
               i + 1 < sizeof parts / sizeof parts[0]) {
            rest = text_after(rest, 1); /* a hash or the number of a line */
        }
    }
    return rest;
}

static enum store_refusal refusal_of(struct weir_text error)
{
    struct weir_text word = text_before(unwrapped(error), ' ');
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
static int take_line(struct weir_text *rest, struct store_value *out)
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
static int take_bulk(struct weir_text *rest, struct store_value *out)
{
    size_t len = (size_t)out->number;
    if (len > STORE_TEXT_MAX) {
        return STORE_BAD;
    }
    if (rest->len < len + 2) {
        return STORE_MORE;
    }
    out->text = (struct weir_text){rest->at, len};
    *rest = text_after(*rest, len + 2);
    return memcmp(out->text.at + len, "\r\n", 2) == 0 ? STORE_REPLY : STORE_BAD;
}

/* Takes an integer, or a value that begins with its length. A length of -1 is a null value. */
static int take_number(struct weir_text *rest, struct store_value *out)
{
    bool good = resp_to_i64(out->text, &out->number);
    out->text = (struct weir_text){"", 0};
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

#define SHORT_DIGITS 18 /* any number of so many digits fits in 64 bits */

/* Takes a short integer that is complete, quickly: most values are such. Returns false for anything
 * else. */
static bool take_short(struct weir_text *rest, struct store_value *out)
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
    *out = (struct store_value){.type = ':', .number = negative ? -n : n, .text = {"", 0}};
    *rest = text_after(*rest, i + 2);
    return true;
}

/* Takes one value from the front. For an array that is only its length. */
static int take(struct weir_text *rest, struct store_value *out)
{
    if (take_short(rest, out)) {
        return STORE_REPLY;
    }
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

/* ---- whole replies ---- */

/* Takes n values, and all that is in them, from the front. If all are integers, and there is room
 * for them, they are set in out->integers, and out->type becomes ':'. */
static int take_values(struct weir_text *rest, int64_t n, unsigned depth, struct store_reply *out)
{
    struct store_value v = {.type = ':'};
    bool integers = n <= STORE_INTEGERS_MAX;
    int e = depth <= VALUE_DEPTH_MAX ? STORE_REPLY : STORE_BAD;
    for (int64_t i = 0; e == STORE_REPLY && i < n; i++) {
        e = take(rest, &v);
        integers = integers && v.type == ':';
        if (integers) {
            out->integers[i] = v.number;
        } else if (e == STORE_REPLY && v.type == '*') {
            struct store_reply inner;
            e = take_values(rest, v.number, depth + 1, &inner);
        }
    }
    out->type = integers ? ':' : '*';
    out->n = integers ? (size_t)n : 0;
    return e;
}

int store_reply_read(struct weir_text input, struct store_reply *out)
{
    struct weir_text rest = input;
    struct store_value v;
    int e = take(&rest, &v);
    if (e == STORE_REPLY) {
        out->type = v.type;
        out->n = v.type == ':';
        out->integers[0] = v.number;
        out->text = v.text;
        out->refusal = v.type == '-' ? refusal_of(v.text) : STORE_REFUSED_NOT;
        if (v.type == '*') {
            e = take_values(&rest, v.number, 1, out);
        }
        out->whole = (struct weir_text){input.at, input.len - rest.len};
    }
    return e == STORE_MORE && input.len > VALUE_BYTES_MAX ? STORE_BAD : e;
}

/* ---- the values of a whole reply ---- */

bool value_next(struct weir_text *rest, struct store_value *out)
{
    return take(rest, out) == STORE_REPLY;
}

struct weir_text value_text(struct weir_text *rest)
{
    struct store_value v;
    bool is = value_next(rest, &v) && (v.type == '$' || v.type == '+');
    return is ? v.text : (struct weir_text){"", 0};
}

static int64_t number_of(struct weir_text *rest, char type)
{
    struct store_value v;
    return value_next(rest, &v) && v.type == type ? v.number : -1;
}

int64_t value_integer(struct weir_text *rest)
{
    return number_of(rest, ':');
}

int64_t value_array(struct weir_text *rest)
{
    return number_of(rest, '*');
}

void value_pass(struct weir_text *rest)
{
    struct store_reply one;
    *rest =
        text_after(*rest, store_reply_read(*rest, &one) == STORE_REPLY ? one.whole.len : rest->len);
}
