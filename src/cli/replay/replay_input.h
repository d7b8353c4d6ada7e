/* A file or standard input, line by line. */
#ifndef WEIR_CLI_REPLAY_REPLAY_INPUT_H
#define WEIR_CLI_REPLAY_REPLAY_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/replay/replay_reader.h"

struct replay_input {
    int fd;
    const char *name; /* for messages */
    char *buffer;
    size_t begin; /* of what is not yet taken */
    size_t end;
    bool at_end;
    struct replay_reader reader;
    uint64_t taken_bytes;
    uint64_t size_bytes; /* of the whole input; 0: not known */
    /* Called before reading, which may wait for somebody: they may wait for answers. */
    void (*before_read)(void *arg);
    void *arg;
};

/* path NULL: standard input. 0; WEIR_ENOENT, WEIR_EACCES, WEIR_EIO, WEIR_ENOMEM with a text. */
int replay_input_open(struct replay_input *in, const char *path, struct weir_error *error);
void replay_input_close(struct replay_input *in);

/*
 * The next line; valid until the next call. REPLAY_MORE: there is none. WEIR_E..., with a
 * text: reading failed.
 */
int replay_input_next(struct replay_input *in, struct text *line, struct weir_error *error);

#endif
