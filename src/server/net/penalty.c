#include "server/net/penalty.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "server/net/worker.h"

/* ---- counts ---- */

#define WAYS 8 /* places that an address may have */

struct penalty_place {
    struct address address;
    uint32_t wrong;   /* 0: free */
    uint64_t last_ms; /* when the last one came */
};

struct penalties {
    pthread_mutex_t lock;
    struct hash_secret secret; /* clients can choose their addresses, but not their places */
    struct penalty_place places[PENALTY_PLACES];
};

int penalties_create(struct penalties **out, struct weir_error *error)
{
    struct penalties *p = calloc(1, sizeof *p);
    int e = p != NULL ? hash_secret_init(&p->secret) : WEIR_ENOMEM;
    if (e != 0) {
        free(p);
        return fail(error, e, "the table of wrong secrets: %s", weir_strerror(e));
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    *out = p;
    return 0;
}

void penalties_destroy(struct penalties *p)
{
    if (p != NULL) {
        (void)pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

static bool is_forgotten(const struct penalty_place *p, uint64_t now_ms)
{
    return p->wrong == 0 || now_ms - p->last_ms > PENALTY_FORGET_MS;
}

/* Returns the place of an address, which may have to be taken from another one. */
static struct penalty_place *find(struct penalties *p, const struct address *client,
                                  uint64_t now_ms)
{
    size_t first = hash_sip(&p->secret, client, sizeof *client).low % (PENALTY_PLACES / WAYS);
    struct penalty_place *set = &p->places[first * WAYS];
    struct penalty_place *least = set;
    for (unsigned i = 0; i < WAYS; i++) {
        bool forgotten = is_forgotten(&set[i], now_ms);
        if (!forgotten && memcmp(&set[i].address, client, sizeof *client) == 0) {
            return &set[i];
        }
        set[i].wrong = forgotten ? 0 : set[i].wrong;
        least = set[i].wrong < least->wrong ? &set[i] : least;
    }
    *least = (struct penalty_place){.address = *client};
    return least;
}

static uint64_t delay_of(unsigned step)
{
    uint64_t delay = (uint64_t)PENALTY_FIRST_MS << step;
    return delay < PENALTY_MOST_MS ? delay : PENALTY_MOST_MS;
}

uint64_t penalty_note(struct penalties *p, const struct address *peer, uint64_t now_ms)
{
    struct address client = *peer;
    address_cut(&client, 32, 64);
    (void)pthread_mutex_lock(&p->lock);
    struct penalty_place *place = find(p, &client, now_ms);
    place->wrong += place->wrong < UINT32_MAX;
    place->last_ms = now_ms;
    uint32_t wrong = place->wrong;
    (void)pthread_mutex_unlock(&p->lock);
    if (wrong <= PENALTY_FREE) {
        return 0;
    }
    uint32_t step = wrong - PENALTY_FREE - 1;
    return delay_of(step < PENALTY_STEPS ? step : PENALTY_STEPS - 1);
}

/* ---- delays ---- */

/* A refusal that waits. It lies in the memory of its struct pending. */
struct delayed {
    struct pending *pending;
    uint64_t due_ms; /* by the loop's clock */
    struct delayed *next;
};

/* Sends the refusals that are due. */
static void send_due(struct worker *w, uint64_t now_ms)
{
    for (unsigned step = 0; step < PENALTY_STEPS; step++) {
        struct delayed *d;
        while ((d = w->delayed[step].first) != NULL && d->due_ms <= now_ms) {
            w->delayed[step].first = d->next;
            d->pending->began_ns = clock_boot_ns(); /* the server took none of the delay */
            pending_answered(d->pending);           /* frees it if its connection has closed */
        }
    }
    pending_flush(w);
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct worker *w)
{
    uint64_t next = UINT64_MAX;
    for (unsigned step = 0; step < PENALTY_STEPS; step++) {
        const struct delayed *d = w->delayed[step].first;
        next = d != NULL && d->due_ms < next ? d->due_ms : next;
    }
    if (next != UINT64_MAX) {
        uint64_t now = uv_now(&w->loop);
        (void)uv_timer_start(&w->penalty, on_timer, next > now ? next - now : 0, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct worker *w = timer->loop->data;
    send_due(w, uv_now(&w->loop));
    set_timer(w);
}

/* Appends to the queue of this delay, whose refusals all wait for the same time. */
static void enqueue(struct worker *w, struct delayed *d, uint64_t delay)
{
    unsigned step = 0;
    while (delay_of(step) < delay) {
        step++;
    }
    struct penalty_queue *q = &w->delayed[step];
    if (q->first == NULL) {
        q->first = d;
    } else {
        q->last->next = d;
    }
    q->last = d;
}

struct pending *penalty_begin(struct connection *c)
{
    struct worker *w = c->worker;
    uint64_t now = uv_now(&w->loop);
    uint64_t delay = penalty_note(w->server->penalties, &c->peer, now);
    struct pending *p = delay > 0 ? pending_batch(w) : NULL;
    struct delayed *d = p != NULL ? arena_take(&p->memory, sizeof *d) : NULL;
    if (d == NULL) { /* also without memory: a refusal at once is better than none */
        pending_destroy(p);
        return NULL;
    }
    p->delayed = true;
    *d = (struct delayed){p, now + delay, NULL};
    enqueue(w, d, delay);
    set_timer(w);
    return p;
}

int penalty_open(struct worker *w)
{
    int e = uv_timer_init(&w->loop, &w->penalty);
    return e != 0 ? e : uv_idle_init(&w->loop, &w->awake); /* for pending_answered() */
}

void penalty_close(struct worker *w)
{
    send_due(w, UINT64_MAX);
    if (w->penalty.type != UV_UNKNOWN_HANDLE && !uv_is_closing((uv_handle_t *)&w->penalty)) {
        uv_close((uv_handle_t *)&w->penalty, NULL);
    }
}
