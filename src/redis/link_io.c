#include <stdlib.h>

#include "base/maths.h"
#include "redis/breaker.h"
#include "redis/link.h"
#include "wire/resp.h"

#define OUT_AT_ONCE ((size_t)1 << 20) /* bytes that are put together for one write */
#define OUT_MOST ((size_t)4 << 20)
#define WAITING_MOST ((size_t)16 << 20)
#define KEPT ((size_t)256 << 10)
#define QUESTIONS 64 /* places for questions, in addition to those for calls */

/* ---- places of pending replies ---- */

static bool grow(struct client_link *link)
{
    uint64_t size = link->places_size != 0 ? link->places_size * 2 : 64;
    struct reply_place *bigger = calloc(size, sizeof *bigger);
    if (bigger == NULL) {
        return false;
    }
    for (uint64_t i = link->first; i != link->last; i++) {
        bigger[i & (size - 1)] = *link_place(link, i);
    }
    free(link->places);
    link->places = bigger;
    link->places_size = size;
    return true;
}

static bool has_places(struct client_link *link, uint64_t n, uint64_t most)
{
    uint64_t taken = link->last - link->first;
    if (taken + n > most) {
        return false;
    }
    return taken + n <= link->places_size || grow(link);
}

static void take_place(struct client_link *link, client_answer_fn answer, void *arg)
{
    struct client *c = link->client;
    if (!link_waits(link)) {
        link->quiet_ns = c->now_ns;
    }
    *link_place(link, link->last++) = (struct reply_place){answer, arg};
    /* While `complained` is set, the timer is set to the next look, which may be later than the end
     * of the allowed silence. */
    if (link->state == LINK_READY && (link->timer.due_ns == UINT64_MAX || link->complained)) {
        link_set_timer(link, c->now_ns);
    }
}

/* ---- sending ---- */

void link_wake(struct client_link *link)
{
    if (!link->woken) {
        link->woken = true;
        link->client->driver.wake(link->client->driver.arg, link);
    }
}

int client_ask(struct client_link *link, const struct text *words, size_t n,
               client_answer_fn answer, void *arg)
{
    if (link->state < LINK_GREETING) {
        return WEIR_EIO;
    }
    size_t before = buffer_len(&link->out);
    resp_put_array(&link->out, n);
    for (size_t i = 0; i < n; i++) {
        resp_put_bulk(&link->out, words[i]);
    }
    if (link->out.full ||
        !has_places(link, 1, link->client->in_flight_most + (uint64_t)QUESTIONS)) {
        link->out.end = link->out.begin + before;
        link->out.full = false;
        return WEIR_EFULL;
    }
    take_place(link, answer, arg);
    link->greeting += link->state == LINK_GREETING;
    link_wake(link);
    return 0;
}

bool link_has_room(const struct client_link *link, size_t bytes)
{
    return link->waiting_bytes + bytes <= WAITING_MOST;
}

void link_put(struct client_link *link, struct call *call, uint64_t now_ns)
{
    call->state = CALL_WAITING;
    call->link = link;
    list_put(link->waiting.prev, &call->node);
    link->waiting_bytes += call->len;
    if (link->state == LINK_READY) {
        link_wake(link);
    } else if (!link->wanted) {
        client_link_want(link, true, now_ns);
    }
}

void link_take(struct client_link *link, struct call *call)
{
    list_take(&call->node);
    link->waiting_bytes -= call->len;
}

void link_ignore_reply(void *arg, struct client_link *link, const struct text *reply,
                       uint64_t now_ns)
{
    (void)arg;
    (void)link;
    (void)reply;
    (void)now_ns;
}

static bool put_call(struct client_link *link, struct call *call)
{
    struct buffer *out = &link->out;
    size_t before = buffer_len(out);
    if (!has_places(link, 2, link->client->in_flight_most + (uint64_t)2)) {
        return false;
    }
    if (call->asking) {
        resp_put_array(out, 1);
        resp_put_bulk(out, TEXT("ASKING"));
    }
    script_put_head(out, call->script, call->how, call->count);
    buffer_put(out, call_arguments(call));
    if (out->full) {
        out->end = out->begin + before;
        out->full = false;
        return false;
    }
    if (call->asking) {
        take_place(link, link_ignore_reply, NULL);
    }
    link_take(link, call);
    call->state = CALL_SENT;
    call->place = link->last;
    take_place(link, NULL, call);
    return true;
}

struct text client_outgoing(struct client_link *link)
{
    link->woken = false;
    while (link->state == LINK_READY && !list_is_empty(&link->waiting) &&
           buffer_len(&link->out) < OUT_AT_ONCE) {
        if (!put_call(link, LIST_OF(link->waiting.next, struct call, node))) {
            break;
        }
    }
    return buffer_text(&link->out);
}

void client_sent(struct client_link *link, size_t bytes)
{
    bytes = min_u64(bytes, buffer_len(&link->out));
    if (link->state == LINK_GREETING) {
        explicit_bzero(link->out.at + link->out.begin, bytes); /* a password may be in it */
    }
    buffer_take(&link->out, bytes);
    buffer_trim(&link->out, KEPT);
}

/* ---- receiving ---- */

static void dispatch(struct client_link *link, struct reply_place place,
                     const struct store_reply *reply, struct text whole, uint64_t now_ns)
{
    uint64_t life = link->life;
    link->first++;
    if (place.answer == NULL && place.arg == NULL) {
        link->client->counts.late++;
    } else if (place.answer == NULL) {
        call_replied(place.arg, reply, now_ns);
    } else {
        place.answer(place.arg, link, &whole, now_ns);
        if (link->life == life && link->state == LINK_GREETING && --link->greeting == 0) {
            link_ready(link, now_ns);
        }
    }
}

/* Takes one reply from the front of the input. Returns STORE_REPLY, STORE_MORE or STORE_BAD. */
static int take_reply(struct client_link *link, struct text input, size_t *used, uint64_t now_ns)
{
    struct store_reply reply;
    if (!link_waits(link)) {
        return STORE_BAD; /* a reply without a request */
    }
    struct reply_place place = *link_place(link, link->first);
    int e = place.answer == NULL ? store_reply_read(input, &reply) : value_whole(input, used);
    if (e != STORE_REPLY) {
        return e;
    }
    *used = place.answer == NULL ? reply.used : *used;
    dispatch(link, place, &reply, (struct text){input.at, *used}, now_ns);
    return e;
}

/* Takes all complete replies and leaves the rest in *input. Returns false if the connection has
 * ended. */
static bool take_replies(struct client_link *link, struct text *input, uint64_t now_ns)
{
    uint64_t life = link->life;
    int e = STORE_REPLY;
    while (e == STORE_REPLY && input->len > 0) {
        size_t used = 0;
        e = take_reply(link, *input, &used, now_ns);
        if (link->life != life) {
            return false;
        }
        *input = text_after(*input, used);
    }
    if (e == STORE_BAD) {
        link_fail(link, now_ns, "sent bytes that are not a reply of a Redis");
        return false;
    }
    return true;
}

static bool receive(struct client_link *link, struct text bytes, uint64_t now_ns)
{
    struct buffer *in = &link->in;
    if (buffer_len(in) == 0) {
        if (!take_replies(link, &bytes, now_ns)) {
            return false;
        }
        buffer_put(in, bytes);
    } else {
        buffer_put(in, bytes);
        struct text all = buffer_text(in);
        if (!in->full && !take_replies(link, &all, now_ns)) {
            return false;
        }
        buffer_take(in, buffer_len(in) - all.len);
        buffer_trim(in, KEPT);
    }
    if (in->full) {
        link_fail(link, now_ns, "sent a reply that is too long, or there is no memory for it");
        return false;
    }
    return true;
}

bool client_received(struct client_link *link, struct text bytes, uint64_t now_ns)
{
    struct client *c = link->client;
    c->now_ns = now_ns;
    if (link->state < LINK_GREETING) {
        return false;
    }
    link->quiet_ns = now_ns;
    bool open = receive(link, bytes, now_ns);
    if (open) {
        link_note_successes(link, now_ns);
    }
    if (open && link->well) {
        breaker_well(link->breaker, now_ns);
        link->well = false;
    }
    if (open && link->state == LINK_READY && !list_is_empty(&link->waiting)) {
        link_wake(link); /* there may be places again */
    }
    client_tell_metrics(c);
    return open;
}
