#include "cli/replay/replay_reader.h"

#include <stdio.h>

#include "base/error.h"
#include "rules/value/quote.h"

/* ---- lines ---- */

enum replay_outcome replay_reader_next(struct replay_reader *r, struct weir_text bytes, bool end,
                                       size_t *used, struct weir_text *line)
{
    size_t left = bytes.len - r->searched;
    const char *lf = left > 0 ? memchr(bytes.at + r->searched, '\n', left) : NULL;
    size_t len = lf != NULL ? (size_t)(lf - bytes.at) : bytes.len;
    bool too_long = r->dropped + len > REPLAY_LINE_MAX + 1; /* there may be a CR */
    *used = 0;
    if (lf == NULL && (!end || (len == 0 && r->dropped == 0))) {
        *used = too_long ? len : 0;
        r->dropped += *used;
        r->searched = len - *used;
        return REPLAY_MORE;
    }
    *used = len + (lf != NULL);
    r->line++;
    r->dropped = 0;
    r->searched = 0;
    len -= len > 0 && bytes.at[len - 1] == '\r';
    *line = (struct weir_text){bytes.at, len};
    return too_long || len > REPLAY_LINE_MAX ? REPLAY_TOO_LONG : REPLAY_LINE;
}

/* ---- words ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes the next word from *rest and returns it; empty at the end of the line. */
static inline struct weir_text next_word(struct weir_text *rest)
{
    const char *p = rest->at;
    const char *end = p + rest->len;
    while (p < end && is_blank(*p)) {
        p++;
    }
    const char *begin = p;
    while (p < end && !is_blank(*p)) {
        p++;
    }
    *rest = (struct weir_text){p, (size_t)(end - p)};
    return (struct weir_text){begin, (size_t)(p - begin)};
}

bool replay_line_is_blank(struct weir_text line)
{
    return next_word(&line).len == 0;
}

/* Returns true if the whole word is a decimal number that fits in an int64_t. */
static inline bool parse_integer(struct weir_text word, int64_t *out)
{
    bool negative = word.len > 0 && word.at[0] == '-';
    uint64_t n;
    if (!text_to_u64(negative ? text_after(word, 1) : word, &n) ||
        n > (uint64_t)INT64_MAX + negative) {
        return false;
    }
    *out = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

/* ---- errors ---- */

static int found(struct weir_error *error, struct weir_text word, const char *expected)
{
    char quoted[QUOTE_MAX];
    if (word.len == 0) {
        return fail(error, WEIR_EINVAL, "found the end of the line, expected %s", expected);
    }
    return fail(error, WEIR_EINVAL, "found %s, expected %s", quote(word, quoted), expected);
}

/* ---- whole lines ---- */

int replay_number_parse(struct weir_text line, const char *what, int64_t *out,
                        struct weir_error *error)
{
    char expected[64];
    struct weir_text word = next_word(&line);
    struct weir_text more = next_word(&line);
    (void)snprintf(expected, sizeof expected, "%s, a whole number below 2^63", what);
    if (!parse_integer(word, out) || *out < 0) {
        return found(error, word, expected);
    }
    if (more.len > 0) {
        (void)snprintf(expected, sizeof expected, "nothing after %s", what);
        return found(error, more, expected);
    }
    return 0;
}

int replay_request_parse(struct weir_text line, struct replay_request *out,
                         struct weir_error *error)
{
    struct weir_text command = next_word(&line);
    if (!text_equal(command, TEXT("request"))) {
        return found(error, command, "'request CLIENT TIMESTAMP'");
    }
    out->client = next_word(&line);
    if (out->client.len == 0) {
        return found(error, out->client, "a client");
    }
    if (out->client.len > WEIR_KEY_MAX) {
        return fail(error, WEIR_EINVAL, "found a client of %zu bytes, expected at most %d",
                    out->client.len, WEIR_KEY_MAX);
    }
    struct weir_text time = next_word(&line);
    if (!parse_integer(time, &out->time)) {
        return found(error, time, "a timestamp, a 64-bit integer");
    }
    struct weir_text cost = next_word(&line);
    out->cost = 1;
    if (cost.len > 0 && (!text_to_u64(cost, &out->cost) || out->cost == 0)) {
        return found(error, cost, "a cost, a whole number from 1 up");
    }
    struct weir_text more = next_word(&line);
    return more.len > 0 ? found(error, more, "the end of the line") : 0;
}
