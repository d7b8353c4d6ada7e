/*
 * Reads JSON (RFC 8259) from bytes, without memory of its own, and writes its strings.
 *
 * jsontext_check() reads the whole text once and says whether it is JSON; it costs about the same
 * for each byte, whatever the text holds. After that the other functions take the text apart. A
 * value is the text of its bytes, from its first to its last.
 */
#ifndef WEIR_WIRE_JSONTEXT_H
#define WEIR_WIRE_JSONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/text.h"

#define JSONTEXT_DEPTH_MAX 64 /* lists and objects inside of each other */

/* What is wrong with a text, and where. `most` is how many values and names it may have. */
struct jsontext_flaw {
    const char *words;
    unsigned line;
    unsigned column; /* in bytes; both count from 1 */
};

/*
 * Checks that the text is one JSON value with at most `most` values and names of members, and cuts
 * blanks off both ends of it. Strings must be UTF-8, and may hold NUL as "\u0000". Returns
 * false with the flaw.
 */
bool jsontext_check(struct weir_text *text, size_t most, struct jsontext_flaw *flaw);

/*
 * Reads the escape at `at`, where its backslash is. Returns its length with the backslash, 12 for a
 * surrogate pair, and its character in *number; 0 if it is none.
 */
size_t jsontext_escape(const char *at, const char *end, uint32_t *number);

/* ---- values of a checked text ---- */

/* The first byte tells the kind: '{' '[' '"' 't' 'f' 'n', a digit or '-'. */
static inline bool jsontext_is(struct weir_text value, char first)
{
    return value.at[0] == first;
}

/*
 * Takes the next item off a list, or the next member off an object; false at the end. The first
 * time *rest is the value itself; afterwards it is what is left.
 */
bool jsontext_next_item(struct weir_text *rest, struct weir_text *item);
bool jsontext_next_member(struct weir_text *rest, struct weir_text *name, struct weir_text *value);

/* Returns whether a string or name has escapes, so that its bytes must be decoded. */
bool jsontext_has_escapes(struct weir_text string);

/* Returns the bytes of a string or name. With escapes they are decoded into `room`, which must hold
 * string.len bytes. */
struct weir_text jsontext_bytes(struct weir_text string, char *room);

/* Reads a whole number from 0 to INT64_MAX, also as 1.0 or 1e3; false for all else. */
bool jsontext_whole(struct weir_text number, uint64_t *out);

/* ---- writing ---- */

/* Puts a string with its quotes. A byte that is not UTF-8 (in a value that was cut, for instance)
 * becomes '?'. */
void jsontext_put_string(struct buffer *b, struct weir_text text);

#endif
