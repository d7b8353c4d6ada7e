#include "wire/resp.h"

#include <stdio.h>

#define COUNT_MAX 32 /* characters of a count; Redis accepts up to 65536 */

#define TOO_BIG "Protocol error: too big request"
#define NO_LINE_END "Protocol error: expected CR LF after a bulk string"
#define TOO_BIG_INLINE "Protocol error: too big inline request"
#define UNBALANCED "Protocol error: unbalanced quotes in request"
#define HTTP "Protocol error: found an HTTP request, expected RESP"

/* Messages about a wrong count. */
struct count_words {
    const char *too_long;
    const char *invalid;
};

static const struct count_words array_words = {
    "Protocol error: too big mbulk count string",
    "Protocol error: invalid multibulk length",
};

static const struct count_words bulk_words = {
    "Protocol error: too big bulk count string",
    "Protocol error: invalid bulk length",
};

static inline unsigned digit_of(char c)
{
    return (unsigned)(unsigned char)c - '0';
}

static inline bool read_number(struct weir_text text, uint64_t *number)
{
    if (text.len == 0 || text.len > 20 || (text.at[0] == '0' && text.len > 1)) {
        return false;
    }
    uint64_t value = 0;
    size_t last = text.len - 1;
    for (size_t i = 0; i < last; i++) { /* at most 19 digits: always in range */
        unsigned digit = digit_of(text.at[i]);
        if (digit > 9) {
            return false;
        }
        value = value * 10 + digit;
    }
    unsigned digit = digit_of(text.at[last]);
    if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
        return false;
    }
    *number = value * 10 + digit;
    return true;
}

bool resp_to_u64(struct weir_text text, uint64_t *number)
{
    return read_number(text, number);
}

bool resp_to_i64(struct weir_text text, int64_t *number)
{
    uint64_t size;
    if (text.len == 0 || text.at[0] != '-') {
        if (!read_number(text, &size) || size > INT64_MAX) {
            return false;
        }
        *number = (int64_t)size;
        return true;
    }
    if (!read_number(text_after(text, 1), &size) || size - 1 > INT64_MAX) { /* nor "-0" */
        return false;
    }
    *number = -(int64_t)(size - 1) - 1;
    return true;
}

static int bad(const char *why, const char **complaint)
{
    *complaint = why;
    return RESP_BAD;
}

/* Reports "expected '$', got 'x'". */
static int __attribute__((noinline, cold))
bad_byte(char expected, char got, const char *hint, struct resp_request *out,
         const char **complaint)
{
    char shown[8] = {got};
    if (got < ' ' || got > '~') {
        snprintf(shown, sizeof shown, "\\x%02x", (unsigned char)got);
    }
    snprintf(out->scratch, sizeof out->scratch, "Protocol error: expected '%c', got '%s'%s",
             expected, shown, hint);
    return bad(out->scratch, complaint);
}

/* Reads any count: also incomplete, negative, long and wrong ones. */
static int __attribute__((noinline))
read_rare_count(const char **at, const char *end, const struct count_words *words, int64_t *count,
                const char **complaint)
{
    struct weir_text line = {*at, 0};
    size_t there = (size_t)(end - *at);
    while (line.len < there && line.at[line.len] != '\r') {
        if (++line.len > COUNT_MAX) {
            return bad(words->too_long, complaint);
        }
    }
    if (there - line.len < 2) {
        return RESP_MORE;
    }
    if (line.at[line.len + 1] != '\n' || !resp_to_i64(line, count)) {
        return bad(words->invalid, complaint);
    }
    *at += line.len + 2;
    return RESP_REQUEST;
}

static inline bool is_line_end(const char *at)
{
    return memcmp(at, "\r\n", 2) == 0;
}

/*
 * Reads a count and its line end. *at is after the '*' or '$', and then after the line. One or two
 * digits, which nearly every count has, are read here.
 */
static inline int read_count(const char **at, const char *end, const struct count_words *words,
                             int64_t *count, const char **complaint)
{
    const char *p = *at;
    if (__builtin_expect(end - p >= 4, 1)) {
        unsigned first = digit_of(p[0]);
        if (first <= 9 && is_line_end(p + 1)) {
            *at = p + 3;
            *count = first;
            return RESP_REQUEST;
        }
        unsigned second = digit_of(p[1]);
        if (first - 1 <= 8 && second <= 9 && is_line_end(p + 2)) {
            *at = p + 4;
            *count = first * 10 + second;
            return RESP_REQUEST;
        }
    }
    /* Copies are passed, so that the values of the hot path stay in registers. */
    int64_t rare = 0;
    int e = read_rare_count(&p, end, words, &rare, complaint);
    *at = p;
    *count = rare;
    return e;
}

static int parse_array(struct weir_text input, const struct resp_limits *limits,
                       struct resp_request *out, const char **complaint)
{
    const char *at = input.at + 1;
    const char *end = input.at + input.len;
    unsigned args_max = limits->args_max < RESP_ARGS_MAX ? limits->args_max : RESP_ARGS_MAX;
    int64_t argc;
    int e = read_count(&at, end, &array_words, &argc, complaint);
    if (e != RESP_REQUEST) {
        return e;
    }
    if (argc > args_max) {
        return bad(array_words.invalid, complaint);
    }
    for (int64_t i = 0; i < argc; i++) {
        if (at == end) {
            return RESP_MORE;
        }
        if (*at != '$') {
            return bad_byte('$', *at, "", out, complaint);
        }
        at++;
        int64_t len;
        e = read_count(&at, end, &bulk_words, &len, complaint);
        if (e != RESP_REQUEST) {
            return e;
        }
        if ((uint64_t)len > limits->bulk_max) {
            return bad(bulk_words.invalid, complaint);
        }
        size_t needed = (size_t)len + 2;
        if ((size_t)(end - at) < needed) {
            size_t before = (size_t)(at - input.at);
            return needed > limits->request_max - before ? bad(TOO_BIG, complaint) : RESP_MORE;
        }
        if (!is_line_end(at + len)) {
            return bad(NO_LINE_END, complaint);
        }
        out->argv[i] = (struct weir_text){at, (size_t)len};
        at += needed;
    }
    out->argc = argc > 0 ? (unsigned)argc : 0;
    out->used = (size_t)(at - input.at);
    return RESP_REQUEST;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the characters after a backslash within double quotes, and returns what they stand for. */
static char unescape(struct weir_text *rest)
{
    static const char names[] = "nrtba";
    static const char values[] = "\n\r\t\b\a";
    char c = rest->at[0];
    int byte = c == 'x' ? text_hex_byte(*rest, 1) : -1;
    if (byte >= 0) {
        *rest = text_after(*rest, 3);
        return (char)byte;
    }
    *rest = text_after(*rest, 1);
    const char *found = c == 0 ? NULL : strchr(names, c);
    return found == NULL ? c : values[found - names];
}

/* Copies up to the closing quote, which must end the word; returns false if it does not. */
static bool copy_quoted(struct weir_text *rest, char **to)
{
    char quote = rest->at[0];
    *rest = text_after(*rest, 1);
    while (rest->len > 0 && rest->at[0] != quote) {
        char c = rest->at[0];
        *rest = text_after(*rest, 1);
        if (c == '\\' && rest->len > 0 && quote == '"') {
            c = unescape(rest);
        } else if (c == '\\' && rest->len > 0 && rest->at[0] == '\'') {
            c = '\'';
            *rest = text_after(*rest, 1);
        }
        *(*to)++ = c;
    }
    if (rest->len == 0) {
        return false;
    }
    *rest = text_after(*rest, 1);
    return rest->len == 0 || is_blank(rest->at[0]);
}

/* Copies a word, which may have quotes in it. The copy is never longer than the word as written. */
static bool copy_word(struct weir_text *rest, char **to)
{
    while (rest->len > 0 && !is_blank(rest->at[0])) {
        if (rest->at[0] == '"' || rest->at[0] == '\'') {
            return copy_quoted(rest, to);
        }
        *(*to)++ = rest->at[0];
        *rest = text_after(*rest, 1);
    }
    return true;
}

static int split_words(struct weir_text line, const struct resp_limits *limits,
                       struct resp_request *out, const char **complaint)
{
    unsigned args_max = limits->args_max < RESP_ARGS_MAX ? limits->args_max : RESP_ARGS_MAX;
    unsigned argc = 0;
    char *to = out->scratch;
    while (true) {
        while (line.len > 0 && is_blank(line.at[0])) {
            line = text_after(line, 1);
        }
        if (line.len == 0) {
            out->argc = argc;
            return RESP_REQUEST;
        }
        char *word = to;
        if (!copy_word(&line, &to)) {
            return bad(UNBALANCED, complaint);
        }
        if (argc == args_max || (size_t)(to - word) > limits->bulk_max) {
            return bad(TOO_BIG_INLINE, complaint);
        }
        out->argv[argc++] = (struct weir_text){word, (size_t)(to - word)};
    }
}

static int parse_inline(struct weir_text input, const struct resp_limits *limits,
                        struct resp_request *out, const char **complaint)
{
    size_t most = input.len < RESP_INLINE_MAX ? input.len : RESP_INLINE_MAX;
    const char *newline = memchr(input.at, '\n', most);
    if (newline == NULL) {
        return most == RESP_INLINE_MAX ? bad(TOO_BIG_INLINE, complaint) : RESP_MORE;
    }
    struct weir_text line = {input.at, (size_t)(newline - input.at)};
    int e = split_words(line, limits, out, complaint);
    if (e != RESP_REQUEST) {
        return e;
    }
    if (out->argc > 0 &&
        (text_is_word(out->argv[0], "POST") || text_is_word(out->argv[0], "HOST:"))) {
        out->argc = 0;
        return bad(HTTP, complaint);
    }
    out->used = line.len + 1;
    return RESP_REQUEST;
}

/* Returns RESP_REQUEST if the line begins with a word that is always accepted, RESP_MORE if it may
 * begin with one, otherwise RESP_BAD. */
static int find_greeting(struct weir_text input)
{
    static const char *const words[] = {"HELLO", "PING"};
    int found = RESP_BAD;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = 0;
        while (words[i][n] != 0 && n < input.len && (input.at[n] & ~0x20) == words[i][n]) {
            n++;
        }
        if (n == input.len) {
            found = RESP_MORE;
        } else if (words[i][n] == 0 && (is_blank(input.at[n]) || input.at[n] == '\n')) {
            return RESP_REQUEST;
        }
    }
    return found;
}

/*
 * Parses input that does not begin with '*'. An empty line, HELLO and PING are accepted even if
 * inline commands are off.
 */
static int parse_line(struct weir_text input, const struct resp_limits *limits,
                      struct resp_request *out, const char **complaint)
{
    size_t cr = input.at[0] == '\r';
    if (cr == 1 && input.len == 1) {
        return RESP_MORE;
    }
    if (input.at[cr] == '\n') {
        out->used = cr + 1;
        return RESP_REQUEST;
    }
    int e = limits->inline_commands ? RESP_REQUEST : find_greeting(input);
    if (e == RESP_BAD) {
        return bad_byte('*', input.at[0], "; inline commands other than HELLO and PING are off",
                        out, complaint);
    }
    return e == RESP_MORE ? e : parse_inline(input, limits, out, complaint);
}

int resp_parse(struct weir_text input, const struct resp_limits *limits, struct resp_request *out,
               const char **complaint)
{
    out->argc = 0;
    out->used = 0;
    bool whole = input.len < limits->request_max;
    if (!whole) {
        input.len = limits->request_max;
    }
    int e = RESP_MORE;
    if (input.len > 0) {
        e = (input.at[0] == '*' ? parse_array : parse_line)(input, limits, out, complaint);
    }
    return e == RESP_MORE && !whole ? bad(TOO_BIG, complaint) : e;
}
