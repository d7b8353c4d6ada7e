#include "rules/value/path.h"

#include "base/error.h"
#include "rules/value/quote.h"

/* ---- one scan for paths that need no change ---- */

enum byte_kind { PLAIN, SLASH, END, OTHER };

static const unsigned char kinds[256] = {
    ['/'] = SLASH, ['?'] = END, ['#'] = END, ['%'] = OTHER, [';'] = OTHER, ['\0'] = OTHER,
};

static enum byte_kind kind_at(struct weir_text in, size_t i)
{
    return i < in.len ? (enum byte_kind)kinds[(unsigned char)in.at[i]] : END;
}

/* True if a plain segment begins after this slash: not '//', and no dot segment. */
static bool clean_slash(struct weir_text in, size_t slash)
{
    size_t i = slash + 1;
    while (i < in.len && in.at[i] == '.') {
        i++;
    }
    return kind_at(in, i) == PLAIN;
}

/* Returns the length of the path if it only has to lose its query, otherwise 0. */
static size_t clean_length(struct weir_text in)
{
    enum byte_kind kind;
    size_t i = 0;
    if (in.len == 0 || in.at[0] != '/') {
        return 0;
    }
    if (kind_at(in, 1) == END) {
        return 1;
    }
    do {
        if (!clean_slash(in, i)) {
            return 0;
        }
        do {
            kind = kind_at(in, ++i);
        } while (kind == PLAIN);
    } while (kind == SLASH);
    return kind == END ? i : 0;
}

/* ---- from the request target to its path ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns what follows "scheme://host"; all of it if there is no scheme. */
static struct weir_text without_host(struct weir_text in)
{
    size_t i = 0;
    while (i < in.len && text_is_plain(in.at[i], "+-.")) {
        i++;
    }
    if (!is_letter(in.at[0]) || !text_starts(text_after(in, i), "://")) {
        return in;
    }
    for (i += 3; kind_at(in, i) != SLASH && kind_at(in, i) != END;) {
        i++;
    }
    return text_after(in, i);
}

static struct weir_text without_query(struct weir_text in)
{
    size_t i = 0;
    while (kind_at(in, i) != END) {
        i++;
    }
    return (struct weir_text){in.at, i};
}

/* ---- piece by piece ----
 *
 * A piece lies between two of: a slash, an encoded slash, a semicolon, the ends. Each is decoded
 * into the bytes after those that are kept, looked at, and kept or dropped. A '..' drops the last
 * kept segment by moving the end back. No more bytes are written than have been read, plus a first
 * slash.
 */

enum mark { MARK_SLASH, MARK_ENCODED_SLASH, MARK_SEMICOLON, MARK_END };

struct cleaner {
    struct weir_text in;
    size_t at;
    char *out;
    size_t kept;        /* "/a/b", without a last slash */
    size_t piece;       /* length of the piece at out + kept + 1 */
    enum mark before;   /* what comes before the piece */
    enum mark after;    /* and after it */
    bool in_parameters; /* from a semicolon to the next slash that is not encoded */
    bool encoded_slash; /* anywhere in the path so far */
    bool dots;
};

/* Returns the next byte, decoded; sets *encoded if it was percent-encoded. */
static char next_byte(struct cleaner *c, bool *encoded)
{
    int byte = text_percent_byte(c->in, c->at);
    *encoded = byte >= 0;
    if (byte >= 0) {
        c->at += 3;
        return (char)byte;
    }
    return c->in.at[c->at++];
}

static int refuse(const struct cleaner *c, struct weir_error *error, const char *why)
{
    char found[QUOTE_MAX];
    return error == NULL ? WEIR_EINVAL
                         : fail(error, WEIR_EINVAL, "found %s: %s", quote(c->in, found), why);
}

static int read_piece(struct cleaner *c, struct weir_error *error)
{
    char *to = c->out + c->kept + 1;
    c->piece = 0;
    c->after = MARK_END;
    while (c->at < c->in.len) {
        bool encoded;
        char byte = next_byte(c, &encoded);
        if (byte == '/') {
            c->after = encoded ? MARK_ENCODED_SLASH : MARK_SLASH;
            return 0;
        }
        if (byte == ';' && !encoded) {
            c->after = MARK_SEMICOLON;
            return 0;
        }
        if (byte == '\0') {
            return refuse(c, error, "a path cannot contain a NUL byte");
        }
        to[c->piece++] = byte;
    }
    return 0;
}

/*
 * Returns how many dots the piece consists of, one or two, before a semicolon if there is one; 0 if
 * it has anything else. Sets *parameters if a semicolon follows the dots.
 */
static unsigned count_dots(const struct cleaner *c, bool *parameters)
{
    const char *piece = c->out + c->kept + 1;
    unsigned dots = 0;
    while (dots < c->piece && dots < 2 && piece[dots] == '.') {
        dots++;
    }
    *parameters = dots < c->piece ? piece[dots] == ';' : c->after == MARK_SEMICOLON;
    return dots == c->piece || *parameters ? dots : 0;
}

static void drop_last(struct cleaner *c)
{
    while (c->kept > 0 && c->out[--c->kept] != '/') {
    }
}

static int use_piece(struct cleaner *c, struct weir_error *error)
{
    bool parameters = false;
    unsigned dots = c->before == MARK_SEMICOLON ? 0 : count_dots(c, &parameters);
    c->dots |= dots > 0;
    c->encoded_slash |= c->after == MARK_ENCODED_SLASH;
    if (dots > 0 && parameters) {
        return refuse(c, error, "servers read a dot segment with parameters in different ways");
    }
    if (c->dots && c->encoded_slash) {
        return refuse(c, error,
                      "servers read dot segments with an encoded slash in different ways");
    }
    if (dots == 2) {
        drop_last(c);
    }
    if (dots == 0 && c->piece > 0 && !c->in_parameters) {
        c->out[c->kept] = '/';
        c->kept += 1 + c->piece;
    }
    c->in_parameters =
        c->after == MARK_SEMICOLON || (c->in_parameters && c->after == MARK_ENCODED_SLASH);
    return 0;
}

static int root(char *out, size_t *out_len)
{
    out[0] = '/';
    *out_len = 1;
    return 0;
}

static int clean(struct cleaner *c, size_t *out_len, struct weir_error *error)
{
    int e = 0;
    for (c->after = MARK_SLASH; e == 0 && c->after != MARK_END;) {
        c->before = c->after;
        e = read_piece(c, error);
        e = e == 0 ? use_piece(c, error) : e;
    }
    *out_len = c->kept;
    return e == 0 && c->kept == 0 ? root(c->out, out_len) : e;
}

static int refuse_length(size_t length, struct weir_error *error)
{
    return fail(error, WEIR_EINVAL, "found %zu bytes, expected at most %d", length, PATH_BYTES_MAX);
}

int path_normalise(struct weir_text in, char *out, size_t *out_len, struct weir_error *error)
{
    size_t length = clean_length(in);
    if (length > PATH_BYTES_MAX) {
        return refuse_length(length, error);
    }
    if (length > 0) {
        memcpy(out, in.at, length);
        *out_len = length;
        return 0;
    }
    if (in.len == 0) {
        return root(out, out_len);
    }
    in = without_query(without_host(in));
    bool slash = in.len > 0 && in.at[0] == '/';
    if (in.len + !slash > PATH_BYTES_MAX) {
        return refuse_length(in.len + !slash, error);
    }
    struct cleaner c = {.in = in, .at = slash, .out = out};
    return clean(&c, out_len, error);
}
