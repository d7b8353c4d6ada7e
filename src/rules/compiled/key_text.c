/* Turns the bytes of a key that key.c composed into text for people. */
#include "common/utf8.h"
#include "rules/compiled/ruleset.h"
#include "rules/file/fields.h"

struct shown_part {
    struct weir_text name; /* len 0: the part has no alternatives */
    struct weir_text value;
};

/*
 * Takes "12:" from the beginning of *rest and returns the length, which is at most that of what
 * follows. Returns 0 if *rest begins with anything else.
 */
static size_t take_length(struct weir_text *rest)
{
    uint64_t length;
    struct weir_text after = *rest;
    struct weir_text digits = text_cut(&after, ':');
    if (digits.len == rest->len || digits.len > 5 || !text_to_u64(digits, &length) ||
        digits.at[0] == '0' || length > after.len) {
        return 0;
    }
    *rest = after;
    return length;
}

/* Takes "user=5:alice" or "5:alice" from the beginning of *rest. */
static bool take_part(struct weir_text *rest, struct shown_part *part)
{
    const char *end =
        memchr(rest->at, '=', rest->len < WEIR_RULES_NAME ? rest->len : WEIR_RULES_NAME);
    part->name = (struct weir_text){rest->at, end != NULL ? (size_t)(end - rest->at) : 0};
    if (name_is_good(part->name)) {
        *rest = text_after(*rest, part->name.len + 1);
    } else {
        part->name.len = 0;
    }
    part->value = (struct weir_text){NULL, take_length(rest)};
    part->value.at = rest->at;
    *rest = text_after(*rest, part->value.len);
    return part->value.len > 0;
}

/*
 * Splits a key of several parts and returns their number; 0: the key is one value. (A value may
 * look like a key of parts. Then it is shown as one.)
 */
static size_t split(struct weir_text key, struct shown_part parts[CONFIG_KEY_PARTS_MAX])
{
    size_t n = 0;
    while (key.len > 0) {
        if (n == CONFIG_KEY_PARTS_MAX || !take_part(&key, &parts[n])) {
            return 0;
        }
        n++;
    }
    return n == 1 && parts[0].name.len == 0 ? 0 : n;
}

#define CUT "..."

struct text_writer {
    char *to;
    size_t room; /* without the NUL byte */
    size_t len;
    size_t safe; /* the text may be cut here, with room for CUT */
    bool full;
};

/* Writes all of the bytes or none. */
static void put(struct text_writer *w, const char *from, size_t len)
{
    if (w->full || len > w->room - w->len) {
        w->full = true;
        return;
    }
    memcpy(w->to + w->len, from, len);
    w->len += len;
    if (w->len + strlen(CUT) <= w->room) {
        w->safe = w->len;
    }
}

static void put_escaped(struct text_writer *w, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    const char escape[] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
    put(w, escape, sizeof escape);
}

static void put_value(struct text_writer *w, struct weir_text value)
{
    char text[ADDRESS_MAX];
    struct address address = {.family = value.len > 0 ? (uint8_t)value.at[0] : 0};
    if ((value.len == 5 && address.family == 4) || (value.len == 17 && address.family == 6)) {
        memcpy(address.bytes, value.at + 1, value.len - 1);
        value = text_of(address_print(&address, text));
    }
    while (value.len > 0 && !w->full) {
        uint32_t c = 0;
        size_t bytes = utf8_next(value, &c);
        if (bytes > 0 && utf8_visible(c) && c != '|' && c != '\\') {
            put(w, value.at, bytes);
        } else {
            bytes = 1;
            put_escaped(w, (unsigned char)value.at[0]);
        }
        value = text_after(value, bytes);
    }
}

size_t weir_rules_key_text(const void *key, size_t key_len, char *text, size_t size)
{
    struct shown_part parts[CONFIG_KEY_PARTS_MAX];
    struct text_writer w = {.to = text, .room = size > 0 ? size - 1 : 0};
    if (text == NULL || size == 0) {
        return 0;
    }
    struct weir_text bytes = {key, key != NULL ? key_len : 0};
    size_t n = split(bytes, parts);
    for (size_t i = 0; i < n; i++) {
        put(&w, "|", i > 0);
        put(&w, parts[i].name.at, parts[i].name.len);
        put(&w, "=", parts[i].name.len > 0);
        put_value(&w, parts[i].value);
    }
    if (n == 0) {
        put_value(&w, bytes);
    }
    if (w.full) {
        w.len = w.safe + (w.room - w.safe < strlen(CUT) ? w.room - w.safe : strlen(CUT));
        memcpy(text + w.safe, CUT, w.len - w.safe);
    }
    text[w.len] = 0;
    return w.len;
}
