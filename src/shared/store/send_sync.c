/* Sends exchanges that are due: those of one slot and one script together, in one call. */
#include <stdlib.h>

#include "shared/core/script.h"
#include "shared/store/store_question.h"

/* A call that has not ended. */
struct sync_sent {
    struct store *store;
    unsigned n;
    struct sync_call calls[];
};

static void send(struct store *s, const struct sync_call *calls, unsigned n, uint64_t now_ns);

static void lose(struct node_keys *keys, const struct sync_call *calls, unsigned n, uint64_t now_ns)
{
    for (unsigned i = 0; i < n; i++) {
        sync_lost(keys, &calls[i], now_ns);
    }
}

/* Gives each exchange its part of the reply. */
static void hear(const struct sync_sent *x, const struct store_reply *reply, uint64_t now_ns)
{
    for (unsigned i = 0; i < x->n; i++) {
        struct store_reply part = {.type = ':', .n = SYNC_INTEGERS};
        memcpy(part.integers, reply->integers + (size_t)i * SYNC_INTEGERS,
               SYNC_INTEGERS * sizeof part.integers[0]);
        (void)sync_reply(x->store->shared->keys, &x->calls[i], &part, now_ns);
    }
}

/* An error may be due to one key, whose value is not ours. Scripts read all keys before they write
 * any, so nothing has been added; each exchange is sent again by itself. */
static void send_apart(const struct sync_sent *x, uint64_t now_ns)
{
    for (unsigned i = 0; i < x->n; i++) {
        send(x->store, &x->calls[i], 1, now_ns);
    }
}

/* The memory of the store is nearly full, and it has no room for keys that it does not have (C7).
 * Those exchanges are lost; the others are sent again. */
static void send_present(struct sync_sent *x, uint64_t absent, uint64_t now_ns)
{
    unsigned n = 0;
    for (unsigned i = 0; i < x->n; i++) {
        if ((absent >> i & 1) != 0) {
            sync_lost(x->store->shared->keys, &x->calls[i], now_ns);
        } else {
            x->calls[n++] = x->calls[i];
        }
    }
    if (n > 0) {
        send(x->store, x->calls, n, now_ns);
    }
}

static void on_sync(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct sync_sent *x = arg;
    bool replied = end == CLIENT_REPLIED;
    uint64_t absent;
    if (replied && reply->type == ':' && reply->n == (size_t)x->n * SYNC_INTEGERS) {
        hear(x, reply, now_ns);
    } else if (replied && reply->refusal == STORE_REFUSED && x->n > 1 && !x->store->closing) {
        send_apart(x, now_ns);
    } else if (replied && script_says_full(reply, x->n, &absent) && !x->store->closing) {
        send_present(x, absent, now_ns);
    } else {
        lose(x->store->shared->keys, x->calls, x->n, now_ns);
    }
    free(x);
}

/* Sends exchanges of one slot and one script. */
static void send(struct store *s, const struct sync_call *calls, unsigned n, uint64_t now_ns)
{
    struct client_call call = {.slot = send_slot(s, store_key_text(&calls->key)),
                               .script = sync_script(&store_scripts, calls),
                               .creates = true,
                               .deadline_ns = send_unawaited(s, now_ns)};
    struct sync_sent *x = malloc(sizeof *x + n * sizeof *calls);
    int e = WEIR_ENOMEM;
    if (x != NULL) {
        x->store = s;
        x->n = n;
        memcpy(x->calls, calls, n * sizeof *calls);
        sync_put_arguments(calls, n, send_fresh(s), &call.count);
        e = send_call(s, &call, now_ns, on_sync, x);
    }
    if (e != 0) {
        free(x);
        lose(s->shared->keys, calls, n, now_ns);
    }
}

static bool go_together(const struct store *s, const struct sync_call *a, const struct sync_call *b)
{
    return sync_script(&store_scripts, a) == sync_script(&store_scripts, b) &&
           send_slot(s, store_key_text(&a->key)) == send_slot(s, store_key_text(&b->key));
}

/* Moves those that go with the first of calls[0..n) to the front. Returns how many they are. */
static unsigned gather(const struct store *s, struct sync_call *calls, unsigned n)
{
    unsigned front = 1;
    for (unsigned i = 1; i < n; i++) {
        if (go_together(s, &calls[0], &calls[i])) {
            struct sync_call one = calls[i];
            calls[i] = calls[front];
            calls[front++] = one;
        }
    }
    return front;
}

unsigned send_syncs(struct store *s, unsigned most, uint64_t now_ns)
{
    struct sync_call calls[SYNC_TOGETHER];
    unsigned sent = 0;
    unsigned n;
    do {
        for (n = 0;
             n < SYNC_TOGETHER && sent < most && sync_next(s->shared->keys, now_ns, &calls[n]);
             n++) {
            sent++;
        }
        for (unsigned i = 0; i < n;) {
            unsigned together = gather(s, &calls[i], n - i);
            send(s, &calls[i], together, now_ns);
            i += together;
        }
    } while (n == SYNC_TOGETHER);
    return sent;
}
