#include "rules/value/pattern.h"

#include "base/error.h"
#include "rules/value/path.h"
#include "rules/value/quote.h"

/* One letter of a pattern: 1 or 2 bytes long. */
struct letter {
    char byte;
    bool wild; /* a star that is not escaped */
    size_t len;
};

static struct letter letter_at(struct weir_text pattern, size_t at)
{
    char c = pattern.at[at];
    if (c == '\\' && at + 1 < pattern.len &&
        (pattern.at[at + 1] == '*' || pattern.at[at + 1] == '\\')) {
        return (struct letter){pattern.at[at + 1], false, 2};
    }
    return (struct letter){c, c == '*', 1};
}

bool pattern_has_wildcard(struct weir_text pattern)
{
    for (size_t at = 0; at < pattern.len;) {
        struct letter letter = letter_at(pattern, at);
        if (letter.wild) {
            return true;
        }
        at += letter.len;
    }
    return false;
}

size_t pattern_literal(struct weir_text pattern, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < pattern.len;) {
        struct letter letter = letter_at(pattern, at);
        out[n++] = letter.byte;
        at += letter.len;
    }
    return n;
}

/* ---- matching ----
 *
 * The text between two wildcards is matched at the first place where it fits: a later place would
 * leave less for the rest. So only the last wildcard is ever tried again, one place further on,
 * never the ones before it, and not at all once the text is too short. Segments and '**' follow the
 * same rule, one level up.
 */

bool segment_match(struct weir_text pattern, struct weir_text segment)
{
    size_t p = 0;
    size_t s = 0;
    size_t retry_p = 0; /* position after the last star; 0: there was none */
    size_t retry_s = 0;
    while (s < segment.len || p < pattern.len) {
        struct letter letter = {0};
        if (p < pattern.len) {
            letter = letter_at(pattern, p);
        }
        if (letter.wild) {
            retry_p = ++p;
            retry_s = s;
        } else if (letter.len > 0 && s < segment.len && letter.byte == segment.at[s]) {
            p += letter.len;
            s++;
        } else if (retry_p > 0 && s < segment.len) {
            p = retry_p;
            s = ++retry_s;
        } else {
            return false;
        }
    }
    return true;
}

struct weir_text path_segment(struct weir_text path, size_t slash_at)
{
    return text_before(text_after(path, slash_at + 1), '/');
}

/* "/" has no segments; every other path has one after each slash. */
static bool is_root(struct weir_text path)
{
    return path.len == 1;
}

static bool crosses(struct weir_text segment)
{
    return segment.len == 2 && segment.at[0] == '*' && segment.at[1] == '*';
}

bool path_pattern_match(struct weir_text pattern, struct weir_text path)
{
    size_t p = is_root(pattern) ? 1 : 0;
    size_t s = is_root(path) ? 1 : 0;
    size_t retry_p = 0; /* position after the last '**'; 0: there was none */
    size_t retry_s = 0;
    while (s < path.len || p < pattern.len) {
        struct weir_text want = p < pattern.len ? path_segment(pattern, p) : TEXT("");
        struct weir_text have = s < path.len ? path_segment(path, s) : TEXT("");
        if (crosses(want)) {
            retry_p = p += 1 + want.len;
            retry_s = s;
        } else if (p < pattern.len && s < path.len && segment_match(want, have)) {
            p += 1 + want.len;
            s += 1 + have.len;
        } else if (retry_p > 0 && s < path.len) {
            retry_s += 1 + path_segment(path, retry_s).len;
            p = retry_p;
            s = retry_s;
        } else {
            return false;
        }
    }
    return true;
}

/* ---- names ---- */

struct weir_text path_pattern_name(struct weir_text segment)
{
    bool braces = segment.len > 2 && segment.at[0] == '{' && segment.at[segment.len - 1] == '}';
    return braces ? (struct weir_text){segment.at + 1, segment.len - 2} : TEXT("");
}

size_t path_pattern_plain(struct weir_text pattern, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < pattern.len && !is_root(pattern);) {
        struct weir_text segment = path_segment(pattern, at);
        struct weir_text plain = path_pattern_name(segment).len > 0 ? TEXT("*") : segment;
        out[n++] = '/';
        memcpy(out + n, plain.at, plain.len);
        n += plain.len;
        at += 1 + segment.len;
    }
    return n;
}

unsigned path_pattern_find(struct weir_text pattern, struct weir_text name)
{
    unsigned n = 0;
    for (size_t at = 0; at < pattern.len && !is_root(pattern);) {
        struct weir_text segment = path_segment(pattern, at);
        n++;
        if (text_equal(path_pattern_name(segment), name)) {
            return n;
        }
        at += 1 + segment.len;
    }
    return 0;
}

struct weir_text path_nth(struct weir_text path, unsigned n)
{
    size_t at = 0;
    while (n > 1 && at < path.len) {
        at += 1 + path_segment(path, at).len;
        n--;
    }
    return at < path.len ? path_segment(path, at) : TEXT("");
}

/* ---- checking ---- */

/*
 * Returns the pattern as it should have been written: encoded bytes decoded, and escaped where a
 * pattern needs it.
 */
static struct weir_text decoded(struct weir_text pattern, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < pattern.len; at++) {
        int byte = text_percent_byte(pattern, at);
        if (byte == '*' || byte == '\\') {
            out[n++] = '\\';
        }
        out[n++] = byte >= 0 ? (char)byte : pattern.at[at];
        at += byte >= 0 ? 2 : 0;
    }
    return (struct weir_text){out, n};
}

static int refuse_encoded(struct weir_text pattern, struct weir_error *error)
{
    char out[PATH_BYTES_MAX];
    char found[QUOTE_MAX];
    char expected[QUOTE_MAX];
    return fail(error, WEIR_EINVAL,
                "path pattern %s is percent-encoded, expected its decoded form %s",
                quote(pattern, found), quote(decoded(pattern, out), expected));
}

static bool has_double_star(struct weir_text segment)
{
    bool star = false;
    for (size_t at = 0; at < segment.len;) {
        struct letter letter = letter_at(segment, at);
        if (star && letter.wild) {
            return true;
        }
        star = letter.wild;
        at += letter.len;
    }
    return false;
}

#define NAME_MAX_BYTES 63

/* Returns what is wrong with the name that a segment is, NULL if nothing is or it is none. */
static const char *fault_of_name(struct weir_text pattern, size_t at, bool crossed)
{
    struct weir_text segment = path_segment(pattern, at);
    struct weir_text name = path_pattern_name(segment);
    if (name.len == 0) {
        return NULL;
    }
    if (name.len > NAME_MAX_BYTES || !text_is_made_of(name, "_-.")) {
        return "has a wrong name in braces, expected letters, digits, '_', '-' and '.', up to 63";
    }
    if (crossed) {
        return "has a name in braces after '**', expected it before";
    }
    return path_pattern_find((struct weir_text){pattern.at, at}, name) > 0
               ? "has a name in braces twice, expected it once"
               : NULL;
}

static const char *fault_of_segment(struct weir_text segment)
{
    if (segment.len == 0) {
        return "has an empty segment, expected single slashes and none at the end";
    }
    if (text_is(segment, ".") || text_is(segment, "..")) {
        return "has a dot segment, which no normalised path has";
    }
    if (!crosses(segment) && has_double_star(segment)) {
        return "has '**' beside other characters, expected it alone between slashes";
    }
    return NULL;
}

static const char *fault_of_byte(char c)
{
    switch (c) {
    case '\0':
        return "has a NUL byte";
    case '?':
        return "has a '?', expected a path without query ('*' is the only wildcard)";
    case '#':
        return "has a '#', expected a path without fragment";
    case ';':
        return "has a ';', expected a path without parameters, which are cut from requests";
    default:
        return NULL;
    }
}

static const char *fault_of(struct weir_text pattern)
{
    const char *fault = NULL;
    if (pattern.len == 0 || pattern.at[0] != '/') {
        return "does not begin with a slash, expected a path such as /login or /search/**";
    }
    if (pattern.len > PATH_BYTES_MAX) {
        return "is longer than a path can be";
    }
    for (size_t i = 0; i < pattern.len && fault == NULL; i++) {
        fault = fault_of_byte(pattern.at[i]);
    }
    bool crossed = false;
    for (size_t at = 0; at < pattern.len && !is_root(pattern) && fault == NULL;) {
        struct weir_text segment = path_segment(pattern, at);
        fault = fault_of_segment(segment);
        fault = fault != NULL ? fault : fault_of_name(pattern, at, crossed);
        crossed = crossed || crosses(segment);
        at += 1 + segment.len;
    }
    return fault;
}

int path_pattern_check(struct weir_text pattern, struct weir_error *error)
{
    char found[QUOTE_MAX];
    const char *fault = fault_of(pattern);
    if (fault != NULL) {
        return fail(error, WEIR_EINVAL, "path pattern %s %s", quote(pattern, found), fault);
    }
    for (size_t at = 0; at < pattern.len; at++) {
        if (text_percent_byte(pattern, at) >= 0) {
            return refuse_encoded(pattern, error);
        }
    }
    return 0;
}
