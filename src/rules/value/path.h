/*
 * Normalises request paths, so that one resource is one path however it is written, and no path
 * that reaches a limited resource looks like another one:
 *
 *   - "http://host/x" (absolute form) becomes its path; "?query" and "#fragment" are cut
 *   - percent-encoding is decoded once: %2F is '/'; a % without two hex digits is itself
 *   - ";parameters" of a segment are cut (servlet containers do so before they route); an encoded
 *     semicolon is a character of the name
 *   - '//' becomes '/'; '.' and '..' segments, also encoded ones, are resolved (above the root: to
 *   it)
 *   - a trailing slash is cut, an empty path becomes "/", a missing first slash is added
 *   - case is kept; bytes above 127 are kept as they are
 *
 * Some paths are refused, because servers disagree on what they mean and only an attack writes
 * them: a NUL byte; dot segments that carry parameters ('/..;/', '/..%3B/'); dot segments in a path
 * with an encoded slash. The last are not only those between encoded slashes ('%2F..%2F'):
 * '/a%2Fb/../login' is '/login' to a server to which a%2Fb is one name, and '/a/login' to others.
 */
#ifndef WEIR_RULES_VALUE_PATH_H
#define WEIR_RULES_VALUE_PATH_H

#include <weir.h>

#include "common/text.h"

#define PATH_BYTES_MAX 4096

/*
 * Writes the decoded, normalised path into out (PATH_BYTES_MAX bytes, *out_len set, not
 * terminated); in may not overlap out. Returns 0, or WEIR_EINVAL with what was found: too long
 * (before decoding, without host and query), NUL, ambiguous. A path that needs no change, or only
 * loses its query, is recognised by one scan and copied. After an error the content of out is
 * undefined.
 */
int path_normalise(struct weir_text in, char *out, size_t *out_len, struct weir_error *error);

#endif
