/*
 * A pattern, a line end, a path or name: matched as by trying everything; a pattern without
 * wildcard that passes the check is a path that a request can have.
 */
#include <stdlib.h>

#include "support/oracle/path_encode.h"
#include "support/oracle/policy_slow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PATTERN_MAX 20
#define PATH_MAX_ 40

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void require_reachable(struct weir_text literal)
{
    char encoded[3 * PATTERN_MAX];
    char out[PATH_BYTES_MAX];
    size_t out_len;
    struct weir_text spelling = {encoded, path_encode(literal, encoded)};
    require(path_normalise(spelling, out, &out_len, NULL) == 0);
    require(text_equal((struct weir_text){out, out_len}, literal));
}

static void require_path_match(struct weir_text pattern, struct weir_text in)
{
    char literal[PATTERN_MAX];
    char out[PATH_BYTES_MAX];
    size_t out_len;
    struct weir_error error = {0};
    int e = path_pattern_check(pattern, &error);
    if (e != 0) {
        require(e == WEIR_EINVAL && error.code == e && error.text[0] != '\0');
        return;
    }
    bool exact = !pattern_has_wildcard(pattern);
    struct weir_text plain = {literal, pattern_literal(pattern, literal)};
    if (exact) {
        require_reachable(plain);
        require(path_pattern_match(pattern, plain));
    }
    if (path_normalise(in, out, &out_len, NULL) == 0) {
        struct weir_text path = {out, out_len};
        bool match = path_pattern_match(pattern, path);
        require(match == slow_path_match(pattern, path));
        require(!exact || match == text_equal(plain, path));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    size_t length = end == NULL ? size : (size_t)(end - data);
    struct weir_text pattern = {(const char *)data, length};
    struct weir_text in = {(const char *)data + length, end == NULL ? 0 : size - length};
    in = in.len > 0 ? text_after(in, 1) : in;
    if (pattern.len > PATTERN_MAX || in.len > PATH_MAX_) {
        return 0;
    }
    require(segment_match(pattern, in) == slow_segment_match(pattern, in));
    require_path_match(pattern, in);
    return 0;
}
