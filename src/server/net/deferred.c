#include "server/net/deferred.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "server/net/worker.h"

/* ---- creating and destroying ---- */

struct deferred *deferred_batch(struct worker *w)
{
    struct deferred *d = calloc(1, sizeof *d);
    if (d != NULL) {
        d->worker = w;
        buffer_init(&d->behind, 2 * SERVER_OUTPUT_BYTES);
        buffer_init(&d->body, SERVER_OUTPUT_BYTES);
    }
    return d;
}

struct deferred *deferred_spare(struct worker *w)
{
    if (w->spare == NULL) {
        w->spare = deferred_batch(w);
    }
    return w->spare;
}

void deferred_destroy(struct deferred *d)
{
    while (d->parts != NULL) {
        struct deferred *part = d->parts;
        d->parts = part->next;
        deferred_destroy(part);
    }
    if (d->drop != NULL) {
        d->drop(d);
    }
    later_finish(&d->later);
    buffer_finish(&d->behind);
    buffer_finish(&d->body);
    free(d);
}

static void take(struct deferred *d, deferred_put_fn put)
{
    struct worker *w = d->worker;
    w->spare = w->spare == d ? NULL : w->spare;
    d->began_ns = w->began_ns;
    d->put = put;
}

/* ---- keeping a place ---- */

/* Moves the bytes of `from` after `at` to the end of `to`. Returns how many. */
static size_t move_tail(struct buffer *from, size_t at, struct buffer *to)
{
    struct text tail = text_after(buffer_text(from), at);
    buffer_put(to, tail);
    from->full = from->full || to->full;
    from->end -= tail.len;
    return tail.len;
}

void deferred_hold_back(struct connection *c)
{
    struct worker *w = c->worker;
    size_t n = move_tail(&w->replies, w->split, &c->pending.last->behind);
    c->pending.held += n;
    w->unsent += n;
}

void deferred_keep(struct deferred *d, struct connection *c, deferred_put_fn put)
{
    struct deferred_list *list = &c->pending;
    take(d, put);
    d->connection = c;
    if (list->last == NULL) {
        c->worker->split = buffer_len(&c->worker->replies); /* earlier replies need not wait */
        list->first = d;
    } else {
        deferred_hold_back(c);
        list->last->next = d;
    }
    list->last = d;
    list->count += 1 + d->parts_count;
    count_own(&c->worker->counts.deferred, 1);
}

void deferred_keep_part(struct deferred *d, struct deferred *batch, struct buffer *body,
                        deferred_put_fn put)
{
    take(d, put);
    d->batch = batch;
    (void)move_tail(body, 0, batch->last_part != NULL ? &batch->last_part->body : &batch->body);
    if (batch->last_part != NULL) {
        batch->last_part->next = d;
    } else {
        batch->parts = d;
    }
    batch->last_part = d;
    batch->parts_count++;
    batch->parts_out++;
}

void deferred_end_parts(struct deferred *batch, struct buffer *body)
{
    (void)move_tail(body, 0, &batch->last_part->body);
}

/* ---- answers ---- */

static void stay_awake(uv_idle_t *idle)
{
    (void)idle;
}

static void enlist(struct connection *c)
{
    struct worker *w = c->worker;
    struct deferred_list *list = &c->pending;
    if (list->previous != NULL) {
        return;
    }
    list->next = w->ready;
    if (w->ready != NULL) {
        w->ready->pending.previous = &list->next;
    } else { /* the loop may be about to sleep: this makes it poll and flush without waiting */
        (void)uv_idle_start(&w->awake, stay_awake);
    }
    list->previous = &w->ready;
    w->ready = c;
}

static void delist(struct connection *c)
{
    struct deferred_list *list = &c->pending;
    if (list->previous != NULL) {
        *list->previous = list->next;
        if (list->next != NULL) {
            list->next->pending.previous = list->previous;
        }
        list->previous = NULL;
        list->next = NULL;
    }
}

void deferred_answered(struct deferred *d)
{
    d->answered = true;
    if (d->batch != NULL) {
        if (--d->batch->parts_out == 0) {
            deferred_answered(d->batch);
        }
    } else if (d->connection == NULL) {
        deferred_destroy(d);
    } else if (d == d->connection->pending.first) {
        enlist(d->connection);
    }
}

void deferred_flush(struct worker *w)
{
    while (w->ready != NULL) {
        struct connection *c = w->ready;
        delist(c);
        connection_resume(c);
    }
    (void)uv_idle_stop(&w->awake);
}

/* ---- replies ---- */

static struct deferred *pop(struct deferred_list *list)
{
    struct deferred *d = list->first;
    list->first = d->next;
    if (list->first == NULL) {
        list->last = NULL;
    }
    list->count -= 1 + d->parts_count;
    return d;
}

/* Puts the reply of d and the replies that have waited for it. Returns false if the latter are
 * large: then they stay in d->behind and are written from there. */
static bool put_one(struct connection *c, struct deferred *d, uint64_t now_ns)
{
    struct worker *w = c->worker;
    size_t n = buffer_len(&d->behind);
    d->put(d);
    histogram_add(&w->counts.took[c->protocol->kind], now_ns - d->began_ns, 1);
    c->pending.held -= n;
    w->unsent -= n;
    if (n > SERVER_FLUSH_BYTES) {
        return false;
    }
    buffer_put(&w->replies, buffer_text(&d->behind));
    return true;
}

bool deferred_collect(struct connection *c, struct text *behind)
{
    struct deferred_list *list = &c->pending;
    uint64_t now_ns = clock_boot_ns();
    *behind = (struct text){"", 0};
    while (list->first != NULL && list->first->answered &&
           buffer_len(&c->worker->replies) < SERVER_FLUSH_BYTES) {
        struct deferred *d = pop(list);
        if (!put_one(c, d, now_ns)) {
            list->sent = d;
            *behind = buffer_text(&d->behind);
            break;
        }
        deferred_destroy(d);
    }
    return list->first != NULL && list->first->answered;
}

void deferred_release(struct connection *c)
{
    if (c->pending.sent != NULL) {
        deferred_destroy(c->pending.sent);
        c->pending.sent = NULL;
    }
}

/* ---- ending ---- */

/* Frees answered entries. Pending ones lose their connection, and are freed when
 * their answer comes. */
void deferred_abandon(struct connection *c)
{
    struct deferred_list *list = &c->pending;
    delist(c);
    while (list->first != NULL) {
        struct deferred *d = pop(list);
        count_own(&c->worker->counts.abandoned, 1);
        d->connection = NULL;
        d->next = NULL;
        if (d->answered) {
            deferred_destroy(d);
        }
    }
    list->held = 0;
}

void deferred_finish(struct worker *w)
{
    if (w->spare != NULL) {
        deferred_destroy(w->spare);
        w->spare = NULL;
    }
}
