#include "cli/replay/replay_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define BUFFER_BYTES (1 << 20)
_Static_assert(BUFFER_BYTES >= REPLAY_LINE_MAX + 2, "a line must fit into the buffer");

int replay_input_open(struct replay_input *in, const char *path, struct weir_error *error)
{
    struct stat about;
    *in = (struct replay_input){.fd = STDIN_FILENO, .name = path};
    if (path == NULL) {
        in->name = "standard input";
    } else {
        in->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (in->fd < 0) {
            return fail_errno(error, "cannot be opened", path);
        }
    }
    if (fstat(in->fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        in->size_bytes = (uint64_t)about.st_size;
    }
    in->buffer = malloc(BUFFER_BYTES);
    if (in->buffer == NULL) {
        replay_input_close(in);
        return fail(error, WEIR_ENOMEM, "out of memory");
    }
    return 0;
}

void replay_input_close(struct replay_input *in)
{
    free(in->buffer);
    in->buffer = NULL;
    if (in->fd != STDIN_FILENO) {
        (void)close(in->fd);
    }
}

/* Moves the bytes that are left to the front and reads more after them. */
static int refill(struct replay_input *in, struct weir_error *error)
{
    if (in->before_read != NULL) {
        in->before_read(in->arg);
    }
    memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
    in->end -= in->begin;
    in->begin = 0;
    ssize_t n;
    do {
        n = read(in->fd, in->buffer + in->end, BUFFER_BYTES - in->end);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return fail_errno(error, "cannot read", in->name);
    }
    in->at_end = n == 0;
    in->end += (size_t)n;
    return 0;
}

int replay_input_next(struct replay_input *in, struct weir_text *line, struct weir_error *error)
{
    for (;;) {
        size_t used;
        struct weir_text bytes = {in->buffer + in->begin, in->end - in->begin};
        enum replay_outcome outcome =
            replay_reader_next(&in->reader, bytes, in->at_end, &used, line);
        in->begin += used;
        in->taken_bytes += used;
        if (outcome != REPLAY_MORE || in->at_end) {
            return (int)outcome;
        }
        int e = refill(in, error);
        if (e != 0) {
            return e;
        }
    }
}
