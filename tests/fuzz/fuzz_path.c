/*
 * Any bytes as a path: refused with a text, or normalised to what is normal, stays so, and
 * is what the slow way makes of it.
 */
#include <stdlib.h>

#include "support/oracle/path_encode.h"
#include "support/oracle/policy_slow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void require_normal(struct weir_text path)
{
    require(path.len >= 1 && path.len <= PATH_BYTES_MAX && path.at[0] == '/');
    require(memchr(path.at, 0, path.len) == NULL);
    require(path.len == 1 || path.at[path.len - 1] != '/');
    struct weir_text segment;
    while (slow_cut_segment(&path, &segment)) {
        require(segment.len > 0 && !text_is(segment, ".") && !text_is(segment, ".."));
    }
}

static void require_idempotent(struct weir_text path)
{
    static char encoded[3 * PATH_BYTES_MAX];
    static char encoded_again[3 * PATH_BYTES_MAX];
    static char out[PATH_BYTES_MAX];
    size_t out_len;
    struct weir_text spelling = {encoded, path_encode(path, encoded)};
    require(spelling.len >= path.len && spelling.len <= 3 * path.len);
    for (size_t i = 0; i < spelling.len; i++) {
        require(spelling.at[i] > ' ' && spelling.at[i] < 127 && !strchr("?#;\"<>", encoded[i]));
    }
    if (spelling.len <= PATH_BYTES_MAX) {
        require(path_normalise(spelling, out, &out_len, NULL) == 0);
        struct weir_text again = {out, out_len};
        require(text_equal(again, path));
        struct weir_text twice = {encoded_again, path_encode(again, encoded_again)};
        require(text_equal(spelling, twice));
    }
}

/* With a host before it the path is never clean, so that the two ways are compared. */
static void require_same_with_host(struct weir_text in, int e, struct weir_text path)
{
    static char out[PATH_BYTES_MAX];
    const struct weir_text host = TEXT("http://h");
    size_t out_len;
    char *long_form = malloc(host.len + in.len);
    require(long_form != NULL);
    memcpy(long_form, host.at, host.len);
    memcpy(long_form + host.len, in.at, in.len);
    require(path_normalise((struct weir_text){long_form, host.len + in.len}, out, &out_len, NULL) ==
            e);
    require(e != 0 || text_equal((struct weir_text){out, out_len}, path));
    free(long_form);
}

static void require_as_the_slow_way(struct weir_text in, int e, struct weir_text path)
{
    static char out[PATH_BYTES_MAX];
    size_t out_len;
    size_t end = 0;
    while (end < in.len && in.at[end] != '?' && in.at[end] != '#') {
        end++;
    }
    if (end <= PATH_BYTES_MAX) {
        require(slow_normalise((struct weir_text){in.at, end}, out, &out_len) == (e == 0));
        require(e != 0 || text_equal((struct weir_text){out, out_len}, path));
    } else {
        require(e != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char out[PATH_BYTES_MAX];
    struct weir_error error = {0};
    struct weir_text in = {(const char *)data, size};
    size_t out_len = 0;
    int e = path_normalise(in, out, &out_len, &error);
    struct weir_text path = {out, out_len};
    require(e == 0 || (e == WEIR_EINVAL && error.code == e && error.text[0] != '\0'));
    if (e == 0) {
        require(path.len <= size + 1);
        require_normal(path);
        require_idempotent(path);
    }
    if (size > 0 && data[0] == '/') {
        require_same_with_host(in, e, path);
        require_as_the_slow_way(in, e, path);
    }
    return 0;
}
