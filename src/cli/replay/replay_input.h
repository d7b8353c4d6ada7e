/* Reads a file or standard input line by line. */
#ifndef WEIR_CLI_REPLAY_REPLAY_INPUT_H
#define WEIR_CLI_REPLAY_REPLAY_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/replay/replay_reader.h"

struct replay_input {
    int fd;
    const char *name; /* for messages */
    char *buffer;
    size_t begin; /* start of the bytes that are not yet taken */
    size_t end;
    bool at_end;
    struct replay_reader reader;
    uint64_t taken_bytes;
    uint64_t size_bytes; /* size of the whole input; 0: not known */
    /* Called before each read. The read may wait for a writer that itself waits for answers. */
    void (*before_read)(void *arg);
    void *arg;
};

/*
 * Opens the file; path NULL: standard input. Returns 0, or WEIR_ENOENT, WEIR_EACCES, WEIR_EIO or
 * WEIR_ENOMEM with a text.
 */
int replay_input_open(struct replay_input *in, const char *path, struct weir_error *error);
void replay_input_close(struct replay_input *in);

/*
 * Takes the next line, which is valid until the next call. Returns an enum replay_outcome, where
 * REPLAY_MORE means the end of the input; or WEIR_E... with a text if reading failed.
 */
int replay_input_next(struct replay_input *in, struct weir_text *line, struct weir_error *error);

#endif
