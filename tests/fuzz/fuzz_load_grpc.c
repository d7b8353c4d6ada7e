/*
 * Frames that a server sends to the load generator. No byte beyond the input is read (a copy of the
 * exact size); a frame is never longer than the input; no call ends twice; what is queued for the
 * server fits.
 */
#include <stdlib.h>

#include "load/load_connection.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH 8

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void read_frames(struct load_connection *c, struct weir_text input)
{
    unsigned ends = 0;
    int64_t used = 1;
    while (used > 0) {
        struct load_ended ended;
        used = load_grpc_read(c, input, &ended);
        require(used <= (int64_t)input.len && c->made <= c->out_size);
        ends += ended.due_ns != 0;
        require(ends <= DEPTH && c->in_flight <= DEPTH && c->in_flight + ends >= DEPTH);
        input = text_after(input, used > 0 ? (size_t)used : 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct load_request request = {.bytes = NULL};
    struct load_connection c;
    struct weir_error error;
    char *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL && load_grpc_make(&request, "/a/b", "{key}", &error) == 0);
    require(load_connection_init(&c, &request, DEPTH) == 0);
    c.streams = load_streams_create(DEPTH);
    require(c.streams != NULL);
    for (unsigned i = 0; i < DEPTH; i++) {
        load_connection_put(&c, &request, i, i + 1);
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    read_frames(&c, (struct weir_text){copy, size});
    load_connection_finish(&c);
    load_request_finish(&request);
    free(copy);
    return 0;
}
