/* Runs `weir replay` inside the test, with text in and text out. */
#ifndef WEIR_TESTS_REPLAY_RUN_H
#define WEIR_TESTS_REPLAY_RUN_H

#include <stddef.h>

struct replay_result {
    int code;
    char *out; /* terminated; may hold NULs before out_len */
    char *err;
    size_t out_len;
    size_t err_len;
};

/*
 * `words` are the arguments of `weir replay`, separated by blanks; `input` becomes standard input.
 * Free the result with replay_result_finish().
 */
struct replay_result replay_run(const char *words, const char *input, size_t input_len);
void replay_result_finish(struct replay_result *r);

/* Runs with --quiet added, and compares all three results. */
void replay_expect(const char *words, const char *input, int code, const char *out,
                   const char *err);

#endif
