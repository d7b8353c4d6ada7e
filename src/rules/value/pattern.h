/*
 * Patterns. A path pattern: '*' stays within a segment; '**' crosses segments, none, one or many,
 * and must be a segment of its own, so that one behind '/x' also matches '/x' itself. A name
 * pattern (every other attribute): '*' matches any bytes. No other wildcard; '\*' is a star, '\\'
 * a backslash, a backslash before anything else is itself. Matching takes at most pattern length x
 * text length steps, whatever the pattern.
 */
#ifndef WEIR_RULES_VALUE_PATTERN_H
#define WEIR_RULES_VALUE_PATTERN_H

#include <stdbool.h>

#include <weir.h>

#include "common/text.h"

/* True if the text has a wildcard: everything else is compared as is (after pattern_literal()). */
bool pattern_has_wildcard(struct text pattern);

/*
 * The text with '\*' and '\\' unescaped, into out (pattern.len bytes); its length. For patterns
 * without wildcard.
 */
size_t pattern_literal(struct text pattern, char *out);

/*
 * Checks a path pattern, so that it can match a normalised path (rules/value/path.h): begins with '/',
 * '**' alone in its segment, no '//', no dot segments, no '?', '#' or ';', no NUL, no trailing
 * slash, at most PATH_BYTES_MAX bytes, no percent-encoding (patterns are written decoded: the error
 * shows the decoded form). 0 or WEIR_EINVAL.
 */
int path_pattern_check(struct text pattern, struct weir_error *error);

/* A checked pattern, a normalised path. */
bool path_pattern_match(struct text pattern, struct text path);

/* '*' only; for one segment, and for names. */
bool segment_match(struct text pattern, struct text segment);

#endif
