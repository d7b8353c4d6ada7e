/*
 * Patterns. In a path pattern '*' stays within a segment; '**' crosses segments (none, one or many)
 * and must be a segment of its own, so that a '**' segment after '/x' also matches '/x' itself. In
 * a name pattern (for every other attribute) '*' matches any bytes. There is no other wildcard;
 * '\*' is a star, '\\' a backslash, and a backslash before anything else is itself. Matching takes
 * at most pattern length x text length steps, whatever the pattern.
 */
#ifndef WEIR_RULES_VALUE_PATTERN_H
#define WEIR_RULES_VALUE_PATTERN_H

#include <stdbool.h>

#include <weir.h>

#include "common/text.h"

/*
 * True if the text has a wildcard. Other texts are compared byte by byte, after pattern_literal().
 */
bool pattern_has_wildcard(struct weir_text pattern);

/*
 * Writes the text with '\*' and '\\' unescaped into out (pattern.len bytes) and returns its length.
 * For patterns without wildcard.
 */
size_t pattern_literal(struct weir_text pattern, char *out);

/*
 * Checks that a path pattern can match a normalised path (rules/value/path.h): it begins with '/'
 * and has at most PATH_BYTES_MAX bytes; '**' is alone in its segment; there is no '//', dot
 * segment, '?', '#', ';', NUL, trailing slash or percent-encoding (patterns are written decoded:
 * the error shows the decoded form); names in braces are good. Returns 0 or WEIR_EINVAL.
 */
int path_pattern_check(struct weir_text pattern, struct weir_error *error);

/* Returns the segment of a path or path pattern that follows the slash at `slash`. */
struct weir_text path_segment(struct weir_text path, size_t slash);

/*
 * A segment {name} of a path pattern matches as '*' does, and names what it has matched. It stands
 * before any '**', so that it is always the same segment of the path, and once in a pattern.
 * path_pattern_name() returns the name that a segment is, len 0 if it is none.
 * path_pattern_plain() writes the pattern with '*' for each name into out (pattern.len bytes), and
 * returns its length. path_pattern_find() returns the number of the segment that is {name}, from 1;
 * 0 if there is none.
 */
struct weir_text path_pattern_name(struct weir_text segment);
size_t path_pattern_plain(struct weir_text pattern, char *out);
unsigned path_pattern_find(struct weir_text pattern, struct weir_text name);

/* Returns segment n of a path, from 1; len 0 if it has fewer. */
struct weir_text path_nth(struct weir_text path, unsigned n);

/* Matches a checked pattern with a normalised path. */
bool path_pattern_match(struct weir_text pattern, struct weir_text path);

/* Matches a pattern in which only '*' is a wildcard, with one segment or a name. */
bool segment_match(struct weir_text pattern, struct weir_text segment);

#endif
