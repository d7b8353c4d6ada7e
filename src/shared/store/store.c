/* A store, what the stores of a process share, and the calls that no question waits for. */
#include "shared/store/store.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"
#include "shared/core/script.h"
#include "shared/store/store_question.h"

#define ARGUMENTS_MAX (1u << 18) /* bytes of one call, which may have WEIR_SEVERAL_MAX keys */
#define SENDS_MAX 256            /* calls of one tick; the rest is sent by the next */

/* ---- what the stores of a process share ---- */

int store_shared_create(struct store_shared **out, const struct store_shared_options *options)
{
    const uint64_t most[KEY_KINDS] = {
        [KEY_NOTED] = SHARED_NOTES,
        [KEY_LEASED] = SHARED_LEASES,
        [KEY_SYNCED] = SHARED_SYNCS,
    };
    struct store_shared *s = calloc(1, sizeof *s);
    if (s == NULL || options->prefix.len > STORE_PREFIX_MAX) {
        free(s);
        return s == NULL ? WEIR_ENOMEM : WEIR_EINVAL;
    }
    s->options = *options;
    if (options->prefix.len > 0) {
        memcpy(s->prefix, options->prefix.at, options->prefix.len);
    }
    s->options.prefix = (struct weir_text){s->prefix, options->prefix.len};
    members_init(&s->members, s->prefix, options->node);
    int e = node_keys_create(&s->keys, most);
    if (e != 0) {
        store_shared_destroy(s);
        return e;
    }
    *out = s;
    return 0;
}

void store_shared_destroy(struct store_shared *s)
{
    if (s != NULL) {
        node_keys_destroy(s->keys);
        free(s);
    }
}

uint64_t store_fleet_size(const struct store_shared *s)
{
    return s->options.fleet_size != 0 ? s->options.fleet_size : members_count(&s->members);
}

/* ---- a store ---- */

int store_create(struct store **out, struct store_shared *shared,
                 const struct client_options *options, const struct client_driver *driver,
                 uint64_t now_ns)
{
    struct store *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return WEIR_ENOMEM;
    }
    s->options = *options;
    s->options.scripts = &store_scripts;
    s->shared = shared;
    s->cluster = options->url->kind == STORE_CLUSTER;
    buffer_init(&s->arguments, ARGUMENTS_MAX);
    send_lease_init(s);
    int e = client_create(&s->client, &s->options, driver, now_ns);
    if (e != 0) {
        free(s);
        return e;
    }
    *out = s;
    return 0;
}

bool store_is_idle(const struct store *s)
{
    return client_in_flight(s->client) == 0;
}

const char *store_last_error(const struct store *s)
{
    return client_last_error(s->client);
}

void store_destroy(struct store *s, uint64_t now_ns)
{
    if (s != NULL) {
        s->closing = true;
        client_destroy(s->client, now_ns);
        buffer_finish(&s->arguments);
        free(s);
    }
}

/* ---- the heartbeat ---- */

static void on_beat(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct members *m = arg;
    if (end == CLIENT_REPLIED) {
        members_heard(m, reply, now_ns);
    }
}

static void send_beat(struct store *s, uint64_t now_ns)
{
    struct members *m = &s->shared->members;
    struct client_call call = {.slot = send_slot(s, text_of(m->key)),
                               .script = &store_scripts.row[SCRIPT_MEMBERS],
                               .deadline_ns = send_unawaited(s, now_ns)};
    members_put_arguments(m, send_fresh(s), &call.count);
    (void)send_call(s, &call, now_ns, on_beat, m);
}

/* ---- work that is due without a question ---- */

/* Sends the calls that are due. Returns how many were sent; SENDS_MAX: there may be more. */
static unsigned send_what_is_due(struct store *s, uint64_t now_ns)
{
    struct store_shared *shared = s->shared;
    struct lease_call lease;
    unsigned n = 0;
    for (; n < SENDS_MAX && lease_next(shared->keys, now_ns, &lease); n++) {
        send_lease(s, &lease, now_ns);
    }
    n += send_syncs(s, SENDS_MAX - n, now_ns);
    if (members_take_beat(&shared->members, now_ns)) {
        send_beat(s, now_ns);
    }
    return n;
}

uint64_t store_tick(struct store *s, uint64_t now_ns)
{
    unsigned sent = send_what_is_due(s, now_ns);
    send_lease_tick(s, now_ns);
    uint64_t due_ns = client_tick(s->client, now_ns);
    if (sent == SENDS_MAX) {
        return now_ns;
    }
    due_ns = min_u64(due_ns, node_keys_due(s->shared->keys));
    due_ns = min_u64(due_ns, lease_waits_due(&s->waits));
    return min_u64(due_ns, members_due(&s->shared->members));
}
