#include "wire/jsontext.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h" /* load_le64() */
#include "common/utf8.h"

/* ---- checking ---- */

struct checker {
    const char *at;
    const char *end;
    size_t left; /* values and names that may still come */
    const char *flaw;
    unsigned depth;
    uint64_t objects; /* bit n: the container at depth n is an object, not a list */
};

static bool refuse(struct checker *c, const char *flaw)
{
    c->flaw = flaw;
    return false;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    return at;
}

/* Moves over one character; false if it is another one. */
static bool take(struct checker *c, char expected)
{
    bool there = c->at < c->end && *c->at == expected;
    c->at += there;
    return there;
}

/* Reads four hex digits at `at`; UINT32_MAX if they are not there. */
static uint32_t hex_of(const char *at, const char *end)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned digit = at + i < end ? text_hex_digit(at[i]) : 16;
        if (digit > 15) {
            return UINT32_MAX;
        }
        number = number << 4 | digit;
    }
    return number;
}

/* The character that a short escape, such as \n, stands for, by its letter; 0: no such escape. */
static const unsigned char short_escapes[UINT8_MAX + 1] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

size_t jsontext_escape(const char *at, const char *end, uint32_t *number)
{
    if (end - at < 2 || at[1] != 'u') {
        *number = end - at < 2 ? 0 : short_escapes[(unsigned char)at[1]];
        return *number != 0 ? 2 : 0;
    }
    *number = hex_of(at + 2, end);
    if (*number >= 0xdc00 && *number < 0xe000) { /* the second half of a pair */
        return 0;
    }
    if (*number < 0xd800 || (*number >= 0xe000 && *number < 0x10000)) {
        return 6;
    }
    bool pair = *number != UINT32_MAX && end - at >= 12 && at[6] == '\\' && at[7] == 'u';
    uint32_t low = pair ? hex_of(at + 8, end) : 0;
    if (low < 0xdc00 || low >= 0xe000) {
        return 0;
    }
    *number = 0x10000 + ((*number - 0xd800) << 10) + (low - 0xdc00);
    return 12;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/*
 * Marks the bytes of a string that do not stand for themselves, as nearly all do: the highest bit
 * of a byte is set if it is 0x80 or more, below ' ', or equal to '"' or '\\'. A borrow from a lower
 * byte can set it too, but only if that byte is marked; so the lowest mark is always right.
 */
static inline uint64_t mark_special(uint64_t x)
{
    uint64_t special =
        x | (x - EACH(' ')) | ((x ^ EACH('"')) - EACH(1)) | ((x ^ EACH('\\')) - EACH(1));
    return special & EACH(0x80);
}

static inline bool is_plain(char c)
{
    return (unsigned char)c >= ' ' && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* Returns the first byte that is not plain. */
static const char *skip_plain(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t special = mark_special(load_le64((const unsigned char *)at));
        if (special != 0) {
            return at + __builtin_ctzll(special) / 8;
        }
        at += 8;
    }
    while (at < end && is_plain(*at)) {
        at++;
    }
    return at;
}

/* Moves over short escapes and over characters of several bytes. A string that is full of them,
 * which an attacker may send, must not cost much more than one of plain bytes. */
static const char *skip_common(const char *at, const char *end)
{
    uint32_t number;
    size_t n;
    while (end - at >= 2 && *at == '\\' && short_escapes[(unsigned char)at[1]] != 0) {
        at += 2;
    }
    while (at < end && (unsigned char)*at >= 0x80 &&
           (n = utf8_next((struct weir_text){at, (size_t)(end - at)}, &number)) > 0) {
        at += n;
    }
    return at;
}

static bool check_string(struct checker *c)
{
    uint32_t number;
    c->at++;
    for (;;) {
        c->at = skip_common(skip_plain(c->at, c->end), c->end);
        if (c->at == c->end) {
            return refuse(c, "expected the end of a string");
        }
        if (is_plain(*c->at)) {
            continue;
        }
        if (take(c, '"')) {
            return true;
        }
        size_t n = *c->at == '\\' ? jsontext_escape(c->at, c->end, &number) : 0;
        if (n == 0) {
            return refuse(c, *c->at == '\\' ? "found an escape that is not valid"
                             : (unsigned char)*c->at < ' '
                                 ? "found a control character in a string, expected an escape"
                                 : "found bytes that are not UTF-8");
        }
        c->at += n;
    }
}

static bool check_digits(struct checker *c)
{
    const char *first = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        c->at++;
    }
    return c->at > first;
}

static bool check_number(struct checker *c)
{
    (void)take(c, '-');
    if (!take(c, '0') && !check_digits(c)) {
        return refuse(c, "expected a value");
    }
    if (take(c, '.') && !check_digits(c)) {
        return refuse(c, "expected a digit");
    }
    if (take(c, 'e') || take(c, 'E')) {
        (void)(take(c, '+') || take(c, '-'));
        return check_digits(c) || refuse(c, "expected a digit");
    }
    return true;
}

static bool check_word(struct checker *c, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) {
        return refuse(c, "expected a value");
    }
    c->at += n;
    return true;
}

static bool count(struct checker *c)
{
    return c->left-- > 0 || refuse(c, "found too many values and names");
}

/* Checks the name of a member and the colon after it. */
static bool check_name(struct checker *c)
{
    c->at = skip_blanks(c->at, c->end);
    if (c->at == c->end || *c->at != '"') {
        return refuse(c, "expected the name of a member");
    }
    if (!count(c) || !check_string(c)) {
        return false;
    }
    c->at = skip_blanks(c->at, c->end);
    return take(c, ':') || refuse(c, "expected ':'");
}

static bool is_in_object(const struct checker *c)
{
    return (c->objects >> (c->depth - 1) & 1) != 0;
}

/* Begins a list or object. Sets *ended if it has no content. */
static bool open(struct checker *c, bool *ended)
{
    bool object = *c->at++ == '{';
    if (c->depth == JSONTEXT_DEPTH_MAX) {
        return refuse(c, "found too many lists and objects inside of each other");
    }
    c->objects = (c->objects & ~(UINT64_C(1) << c->depth)) | (uint64_t)object << c->depth;
    c->depth++;
    c->at = skip_blanks(c->at, c->end);
    *ended = take(c, object ? '}' : ']');
    c->depth -= *ended;
    return *ended || !object || check_name(c);
}

/* Checks a value up to its end, or up to the first value in it; then *ended is false. */
static bool check_value(struct checker *c, bool *ended)
{
    c->at = skip_blanks(c->at, c->end);
    *ended = true;
    if (c->at == c->end) {
        return refuse(c, "expected a value");
    }
    if (!count(c)) {
        return false;
    }
    switch (*c->at) {
    case '{':
    case '[':
        return open(c, ended);
    case '"':
        return check_string(c);
    case 't':
        return check_word(c, "true");
    case 'f':
        return check_word(c, "false");
    case 'n':
        return check_word(c, "null");
    default:
        return check_number(c);
    }
}

/* Checks what follows a value: the ends of containers, or a comma and a name. False at the end of
 * the text, or after a flaw. */
static bool check_after(struct checker *c)
{
    while (c->depth > 0) {
        bool object = is_in_object(c);
        c->at = skip_blanks(c->at, c->end);
        if (take(c, ',')) {
            return !object || check_name(c);
        }
        if (!take(c, object ? '}' : ']')) {
            return refuse(c, object ? "expected ',' or '}'" : "expected ',' or ']'");
        }
        c->depth--;
    }
    return false;
}

static void find_place(const char *first, const char *at, struct jsontext_flaw *flaw)
{
    flaw->line = flaw->column = 1;
    for (; first < at; first++) {
        flaw->line += *first == '\n';
        flaw->column = *first == '\n' ? 1 : flaw->column + 1;
    }
}

bool jsontext_check(struct weir_text *text, size_t most, struct jsontext_flaw *flaw)
{
    struct checker c = {.at = text->at, .end = text->at + text->len, .left = most};
    bool ended = false;
    const char *first = skip_blanks(c.at, c.end);
    while (check_value(&c, &ended) && (!ended || check_after(&c))) {
    }
    const char *last = c.at;
    if (c.flaw == NULL) {
        c.at = skip_blanks(c.at, c.end);
        c.flaw = c.at == c.end ? NULL : "expected the end of the text";
    }
    if (c.flaw != NULL) {
        flaw->words = c.flaw;
        find_place(text->at, c.at, flaw);
        return false;
    }
    *text = (struct weir_text){first, (size_t)(last - first)};
    return true;
}

/* ---- values of a checked text ---- */

/* Returns whether a quote is escaped: by one backslash, or by the last one of an odd number. */
static bool is_escaped(const char *quote)
{
    size_t n = 0;
    while (*(quote - n - 1) == '\\') { /* stops at the string's opening quote at the latest */
        n++;
    }
    return n % 2 == 1;
}

/* Returns the byte after the string that begins here. */
static const char *end_of_string(const char *at, const char *end)
{
    do {
        while (end - at > 2 && at[1] == '\\') { /* memchr() would stop at every escaped quote */
            at += 2;
        }
        at = memchr(at + 1, '"', (size_t)(end - at - 1));
    } while (at != NULL && is_escaped(at));
    return at != NULL ? at + 1 : end; /* never NULL: the text was checked */
}

/* Returns the byte after the list or object that begins here. */
static const char *end_of_container(const char *at, const char *end)
{
    unsigned depth = 0;
    do {
        if (*at == '"') {
            at = end_of_string(at, end);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    } while (depth > 0);
    return at;
}

/* Returns the byte after the value that begins here. */
static const char *end_of(const char *at, const char *end)
{
    if (*at == '"') {
        return end_of_string(at, end);
    }
    if (*at == '{' || *at == '[') {
        return end_of_container(at, end);
    }
    while (at < end && *at != ',' && *at != ']' && *at != '}' && skip_blanks(at, end) == at) {
        at++;
    }
    return at;
}

/* The rest begins with the container's first byte, or with what follows a value. */
bool jsontext_next_item(struct weir_text *rest, struct weir_text *item)
{
    const char *end = rest->at + rest->len;
    const char *at = skip_blanks(rest->at, end);
    at = *at != ']' && *at != '}' ? skip_blanks(at + 1, end) : at;
    if (*at == ']' || *at == '}') {
        return false;
    }
    const char *last = end_of(at, end);
    *item = (struct weir_text){at, (size_t)(last - at)};
    *rest = (struct weir_text){last, (size_t)(end - last)};
    return true;
}

bool jsontext_next_member(struct weir_text *rest, struct weir_text *name, struct weir_text *value)
{
    return jsontext_next_item(rest, name) && jsontext_next_item(rest, value);
}

bool jsontext_has_escapes(struct weir_text string)
{
    return memchr(string.at, '\\', string.len) != NULL;
}

/* Writes a character as UTF-8. Returns the byte after it. */
static char *put_utf8(char *to, uint32_t c)
{
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(first[more] | c >> 6 * more);
    while (more-- > 0) {
        *to++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
    return to;
}

struct weir_text jsontext_bytes(struct weir_text string, char *room)
{
    struct weir_text inner = {string.at + 1, string.len - 2};
    if (!jsontext_has_escapes(inner)) {
        return inner;
    }
    char *to = room;
    const char *end = inner.at + inner.len;
    for (const char *at = inner.at; at < end;) {
        uint32_t number;
        if (*at != '\\') {
            *to++ = *at++;
        } else if (short_escapes[(unsigned char)at[1]] != 0) {
            *to++ = (char)short_escapes[(unsigned char)at[1]];
            at += 2;
        } else {
            at += jsontext_escape(at, end, &number);
            to = put_utf8(to, number);
        }
    }
    return (struct weir_text){room, (size_t)(to - room)};
}

/* Doubles hold all whole numbers up to this one. */
#define REAL_WHOLE_MAX ((double)(UINT64_C(1) << 53))

/* Reads a number with a fraction or an exponent. */
static bool whole_of_real(struct weir_text number, uint64_t *out)
{
    char copy[64];
    if (number.len >= sizeof copy) {
        return false;
    }
    memcpy(copy, number.at, number.len);
    copy[number.len] = 0;
    double real = strtod(copy, NULL);
    if (!(real >= 0 && real <= REAL_WHOLE_MAX && floor(real) >= real)) {
        return false;
    }
    *out = (uint64_t)real;
    return true;
}

bool jsontext_whole(struct weir_text number, uint64_t *out)
{
    uint64_t n = 0;
    for (size_t i = 0; i < number.len; i++) {
        unsigned digit = (unsigned)(unsigned char)number.at[i] - '0';
        if (digit > 9) {
            return i > 0 && (number.at[i] == '.' || number.at[i] == 'e' || number.at[i] == 'E') &&
                   whole_of_real(number, out);
        }
        if (n > ((uint64_t)INT64_MAX - digit) / 10) {
            return false;
        }
        n = n * 10 + digit;
    }
    *out = n;
    return number.len > 0;
}

/* ---- writing ---- */

static void put_character(struct buffer *b, struct weir_text c)
{
    unsigned char first = (unsigned char)c.at[0];
    if (first < ' ' || first == 0x7f) {
        char escaped[8];
        (void)snprintf(escaped, sizeof escaped, "\\u%04x", first);
        buffer_put(b, (struct weir_text){escaped, 6});
        return;
    }
    if (first == '"' || first == '\\') {
        buffer_put_char(b, '\\');
    }
    buffer_put(b, c);
}

/* Returns how many bytes at the beginning need no escape: nearly always all. */
static size_t count_plain(struct weir_text text)
{
    size_t n = 0;
    while (n < text.len && text.at[n] >= ' ' && text.at[n] < 0x7f && text.at[n] != '"' &&
           text.at[n] != '\\') {
        n++;
    }
    return n;
}

void jsontext_put_string(struct buffer *b, struct weir_text text)
{
    uint32_t number;
    buffer_put_char(b, '"');
    for (;;) {
        size_t plain = count_plain(text);
        buffer_put(b, (struct weir_text){text.at, plain});
        text = text_after(text, plain);
        if (text.len == 0) {
            break;
        }
        size_t n = utf8_next(text, &number);
        put_character(b, n > 0 ? (struct weir_text){text.at, n} : TEXT("?"));
        text = text_after(text, n > 0 ? n : 1);
    }
    buffer_put_char(b, '"');
}
