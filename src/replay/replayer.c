/* weir_replay(): stepped buckets in a map that grows with its clients. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "replay/clients.h"

struct weir_replayer {
    int64_t capacity;
    int64_t window;
    struct replay_clients clients;
};

int weir_replay_open(struct weir_replayer **out, int64_t capacity, int64_t window,
                     struct weir_error *error)
{
    if (out == NULL) {
        return fail(error, WEIR_EINVAL, "the pointer for the replay is NULL");
    }
    *out = NULL;
    if (capacity < 0 || window < 0) {
        return fail(error, WEIR_EINVAL, "%s is %" PRId64 ", expected 0 or more",
                    capacity < 0 ? "capacity" : "window", capacity < 0 ? capacity : window);
    }
    struct weir_replayer *r = calloc(1, sizeof *r);
    int e = r == NULL ? WEIR_ENOMEM : replay_clients_init(&r->clients);
    if (e != 0 || r == NULL) {
        free(r);
        return e == WEIR_EIO ? fail_errno(error, "getrandom", NULL)
                             : fail(error, WEIR_ENOMEM, "out of memory for the replay");
    }
    r->capacity = capacity;
    r->window = window;
    *out = r;
    return 0;
}

int weir_replay(struct weir_replayer *r, const void *client, size_t client_len, int64_t time)
{
    if (r == NULL) {
        return WEIR_EINVAL;
    }
    if (client == NULL || client_len - 1 >= WEIR_KEY_MAX) {
        return WEIR_EKEY;
    }
    bool allow;
    struct hash hash = replay_clients_hash(&r->clients, client, client_len);
    return replay_clients_take(&r->clients, hash, r->capacity, r->window, time, &allow) == NULL
               ? WEIR_ENOMEM
               : allow;
}

uint64_t weir_replay_clients(const struct weir_replayer *r)
{
    return r != NULL ? r->clients.count : 0;
}

void weir_replay_close(struct weir_replayer *r)
{
    if (r != NULL) {
        replay_clients_finish(&r->clients);
        free(r);
    }
}
