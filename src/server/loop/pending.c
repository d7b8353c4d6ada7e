#include "server/loop/pending.h"

#include <assert.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "server/loop/worker.h"

/* ---- creating and destroying ---- */

/* One block for most requests: the struct, its question, the state of rules and store, names and
 * keys. */
#define PENDING_BYTES 3200

struct pending *pending_create(struct worker *w, size_t question_bytes)
{
    struct arena memory = {.block_bytes = PENDING_BYTES};
    struct pending *p = arena_room(&memory, sizeof *p);
    void *question = p != NULL && question_bytes > 0 ? arena_room(&memory, question_bytes) : NULL;
    if (memory.failed) {
        arena_finish(&memory);
        return NULL;
    }
    if (p != NULL) {
        *p = (struct pending){.question = question};
        p->memory = memory;
        p->empty = arena_mark(&memory);
        p->worker = w;
        buffer_init(&p->behind, 2 * SERVER_OUTPUT_BYTES);
        buffer_init(&p->body, SERVER_OUTPUT_BYTES);
    }
    return p;
}

struct pending *pending_spare(struct worker *w, size_t question_bytes)
{
    if (w->spare == NULL) {
        w->spare = pending_create(w, question_bytes);
    } else {
        arena_rewind(&w->spare->memory, w->spare->empty);
    }
    return w->spare;
}

void pending_destroy(struct pending *p)
{
    if (p == NULL) {
        return;
    }
    assert(p->delay_place == 0); /* the heap of delays would point to it */
    while (p->parts != NULL) {
        struct pending *part = p->parts;
        p->parts = part->next;
        pending_destroy(part);
    }
    if (p->held) {
        delay_give_place(p->worker);
    }
    if (p->let_go != NULL) {
        p->let_go(p);
    }
    buffer_finish(&p->behind);
    buffer_finish(&p->body);
    struct arena memory = p->memory;
    arena_finish(&memory);
}

static void take(struct pending *p, pending_put_fn put)
{
    struct worker *w = p->worker;
    w->spare = w->spare == p ? NULL : w->spare;
    p->began_ns = w->began_ns;
    p->put = put;
}

/* ---- keeping a place ---- */

/* Moves the bytes of `from` after `at` to the end of `to`. Returns how many. */
static size_t move_tail(struct buffer *from, size_t at, struct buffer *to)
{
    struct weir_text tail = text_after(buffer_text(from), at);
    buffer_put(to, tail);
    from->full = from->full || to->full;
    from->end -= tail.len;
    return tail.len;
}

void pending_hold_back(struct connection *c)
{
    struct worker *w = c->worker;
    if (c->protocol->unordered) {
        return;
    }
    size_t n = move_tail(&w->replies, w->split, &c->pending.last->behind);
    c->pending.held += n;
    connection_note_unsent(c);
}

/* Returns the bytes of a batch's text. */
static size_t body_of(const struct pending *p)
{
    size_t n = buffer_len(&p->body);
    for (const struct pending *part = p->parts; part != NULL; part = part->next) {
        n += buffer_len(&part->body);
    }
    return n;
}

void pending_keep(struct pending *p, struct connection *c, pending_put_fn put)
{
    struct pending_list *list = &c->pending;
    assert(p->worker == c->worker && p->connection == NULL && p->batch == NULL); /* D1 */
    take(p, put);
    p->connection = c;
    if (p->parts != NULL) {
        p->body_bytes = body_of(p);
        list->held += p->body_bytes;
        connection_note_unsent(c);
    }
    if (list->last == NULL) {
        c->worker->split = buffer_len(&c->worker->replies); /* earlier replies need not wait */
        list->first = p;
    } else {
        pending_hold_back(c);
        list->last->next = p;
    }
    list->last = p;
    list->count += 1 + p->parts_count;
    struct worker_counts *counts = &c->worker->counts;
    count_own(&counts->delayed, p->refusal);
    count_own(&counts->pending, !p->refusal && !p->decided);
}

void pending_keep_part(struct pending *p, struct pending *batch, struct buffer *body,
                       pending_put_fn put)
{
    assert(p->worker == batch->worker && p->connection == NULL && p->batch == NULL); /* D1, D4 */
    take(p, put);
    p->batch = batch;
    (void)move_tail(body, 0, batch->last_part != NULL ? &batch->last_part->body : &batch->body);
    if (batch->last_part != NULL) {
        batch->last_part->next = p;
    } else {
        batch->parts = p;
    }
    batch->last_part = p;
    batch->parts_count++;
    batch->parts_out++;
    batch->refusal = batch->refusal || p->refusal;
}

void pending_end_parts(struct pending *batch, struct buffer *body)
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
    struct pending_list *list = &c->pending;
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
    struct pending_list *list = &c->pending;
    if (list->previous != NULL) {
        *list->previous = list->next;
        if (list->next != NULL) {
            list->next->pending.previous = list->previous;
        }
        list->previous = NULL;
        list->next = NULL;
    }
}

void pending_answered(struct pending *p)
{
    assert(!p->answered);                                /* D2: exactly once */
    assert(p->batch == NULL || p->batch->parts_out > 0); /* D4 */
    p->answered = true;
    if (p->batch != NULL) {
        if (--p->batch->parts_out == 0) {
            pending_answered(p->batch);
        }
    } else if (p->connection == NULL) {
        pending_destroy(p);
    } else if (p == p->connection->pending.first || p->connection->protocol->unordered) {
        enlist(p->connection);
    }
}

void pending_flush(struct worker *w)
{
    while (w->ready != NULL) {
        struct connection *c = w->ready;
        delist(c);
        connection_resume(c);
    }
    (void)uv_idle_stop(&w->awake);
}

/* ---- replies ---- */

/* Takes the entry that *from points at out of the list; `before` precedes it, NULL if it is the
 * first. */
static struct pending *take_out(struct pending_list *list, struct pending **from,
                                struct pending *before)
{
    struct pending *p = *from;
    *from = p->next;
    if (list->last == p) {
        list->last = before;
    }
    assert(list->count >= 1 + p->parts_count);
    list->count -= 1 + p->parts_count;
    return p;
}

/* Takes the next entry that may be answered, or returns NULL: the first one, if it has its answer;
 * of an unordered connection any that has. */
static struct pending *pop_answered(struct connection *c)
{
    struct pending_list *list = &c->pending;
    struct pending **from = &list->first;
    struct pending *before = NULL;
    while (*from != NULL && !(*from)->answered && c->protocol->unordered) {
        before = *from;
        from = &before->next;
    }
    return *from != NULL && (*from)->answered ? take_out(list, from, before) : NULL;
}

/* Puts the reply of p and the replies that have waited for it. Returns false if the latter are
 * large: then they stay in p->behind and are written from there. */
static bool put_one(struct connection *c, struct pending *p, uint64_t now_ns)
{
    struct worker *w = c->worker;
    size_t n = buffer_len(&p->behind);
    p->put(p);
    histogram_add(&w->counts.took[c->protocol->kind], now_ns - p->began_ns, 1);
    assert(c->pending.held >= n + p->body_bytes);
    c->pending.held -= n + p->body_bytes;
    connection_note_unsent(c);
    if (n > SERVER_FLUSH_BYTES) {
        return false;
    }
    buffer_put(&w->replies, buffer_text(&p->behind));
    return true;
}

bool pending_collect(struct connection *c, struct weir_text *behind)
{
    struct pending_list *list = &c->pending;
    uint64_t now_ns = clock_boot_ns();
    *behind = (struct weir_text){"", 0};
    while (buffer_len(&c->worker->replies) < SERVER_FLUSH_BYTES) {
        struct pending *p = pop_answered(c);
        if (p == NULL) {
            return false;
        }
        if (!put_one(c, p, now_ns)) {
            list->sent = p;
            *behind = buffer_text(&p->behind);
            break;
        }
        pending_destroy(p);
    }
    return true;
}

void pending_release(struct connection *c)
{
    pending_destroy(c->pending.sent);
    c->pending.sent = NULL;
}

/* ---- ending ---- */

/* Frees answered and delayed entries. Pending ones lose their connection, and are freed when
 * their answer comes. */
void pending_abandon(struct connection *c)
{
    struct pending_list *list = &c->pending;
    delist(c);
    while (list->first != NULL) {
        struct pending *p = take_out(list, &list->first, NULL);
        bool delayed = p->delay_place != 0;
        count_own(&c->worker->counts.held_abandoned, delayed && p->held);
        count_own(&c->worker->counts.abandoned, !p->refusal && !p->decided && !delayed);
        p->connection = NULL;
        p->next = NULL;
        if (delayed) {
            delay_remove(p);
        }
        if (p->answered || delayed) {
            pending_destroy(p);
        }
    }
    assert(list->count == 0 && list->last == NULL);
    list->held = 0;
}

void pending_finish(struct worker *w)
{
    pending_destroy(w->spare);
    w->spare = NULL;
}
