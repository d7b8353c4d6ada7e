/* A call: it is made, waits for its link, is sent, and ends with its reply or without one. What
 * happens to a call that was refused is in resend.c. */
#include <assert.h>
#include <stdlib.h>

#include "base/maths.h"
#include "redis/breaker.h"
#include "redis/link.h"

#define OUT_AT_ONCE ((size_t)1 << 20) /* bytes that are put together for one write */
#define WAITING_MOST ((size_t)16 << 20)
#define KEPT ((size_t)256 << 10)

/* ---- making a call ---- */

bool client_link_is_hopeless(const struct client_link *link)
{
    return link->forgotten || breaker_is_open(link->breaker) ||
           (link->state == LINK_IDLE && link->tries >= 2);
}

struct client_link *call_route(struct client *c, unsigned slot, uint64_t now_ns, bool *hope)
{
    if (c->master != NULL) {
        return c->master;
    }
    if (c->ops->route != NULL) {
        return c->ops->route(c->topology, slot, now_ns, hope);
    }
    *hope = !client_is_hopeless(c);
    return NULL;
}

static int find_way(struct client *c, unsigned slot, uint64_t now_ns, struct client_link **link)
{
    bool hope = false;
    *link = call_route(c, slot, now_ns, &hope);
    if (*link == NULL) {
        return hope ? 0 : WEIR_EIO;
    }
    if (client_link_is_hopeless(*link)) {
        link_try_probe(*link, now_ns);
        return WEIR_EIO;
    }
    return 0;
}

/* Returns a new call with a copy of the arguments; NULL: a bound is reached, or no memory. */
static struct pending_call *make_call(struct client *c, const struct client_call *from,
                                      uint64_t now_ns)
{
    bool fits = c->in_flight < c->in_flight_most && from->arguments.len <= CALL_BYTES_MAX;
    struct pending_call *call = fits ? malloc(sizeof *call + from->arguments.len) : NULL;
    if (call == NULL) {
        return NULL;
    }
    *call = (struct pending_call){
        .how = SCRIPT_BY_SHA,
        .creates = from->creates,
        .slot = from->slot,
        .count = from->count,
        .script = from->script,
        .made_ns = now_ns,
        .deadline_ns =
            from->deadline_ns != 0 ? from->deadline_ns : add_sat(now_ns, c->options->deadline_ns),
        .len = from->arguments.len,
    };
    timer_init(&call->timer, TIMER_CALL);
    memcpy(call->bytes, from->arguments.at, call->len);
    return call;
}

int client_call(struct client *c, const struct client_call *from, uint64_t now_ns,
                client_done_fn done, void *arg)
{
    struct client_link *link;
    c->now_ns = now_ns;
    int e = c->closing ? WEIR_EIO : find_way(c, from->slot, now_ns, &link);
    if (e != 0) {
        return e;
    }
    bool room = link == NULL || link_has_room(link, from->arguments.len);
    struct pending_call *call = room ? make_call(c, from, now_ns) : NULL;
    if (call == NULL) {
        return WEIR_EFULL;
    }
    call->done = done;
    call->arg = arg;
    c->in_flight++;
    c->counts.calls++;
    timer_set(&c->timers, &call->timer, call->deadline_ns, now_ns);
    if (link != NULL) {
        link_put(link, call, now_ns);
    } else {
        call_park(c, call);
    }
    return 0;
}

/* ---- waiting for a link ---- */

void call_park(struct client *c, struct pending_call *call)
{
    call->state = CALL_PARKED;
    list_put(c->parked.prev, &call->node);
}

bool link_has_room(const struct client_link *link, size_t bytes)
{
    return link->waiting_bytes + bytes <= WAITING_MOST;
}

void link_put(struct client_link *link, struct pending_call *call, uint64_t now_ns)
{
    call->state = CALL_WAITING;
    call->link = link;
    list_put(link->waiting.prev, &call->node);
    link->waiting_bytes += call->len;
    if (link->state == LINK_READY) {
        link_ask_memory(link, now_ns);
        link_wake(link);
    } else if (!link->wanted) {
        client_link_want(link, true, now_ns);
    }
}

static void leave_link(struct pending_call *call)
{
    list_take(&call->node);
    assert(call->link->waiting_bytes >= call->len);
    call->link->waiting_bytes -= call->len;
}

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

bool link_has_places(struct client_link *link, uint64_t n, uint64_t most)
{
    uint64_t taken = link->last - link->first;
    if (taken + n > most) {
        return false;
    }
    return taken + n <= link->places_size || grow(link);
}

void link_take_place(struct client_link *link, client_answer_fn answer, void *arg)
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

static bool put_call(struct client_link *link, struct pending_call *call)
{
    struct buffer *out = &link->out;
    size_t before = buffer_len(out);
    if (!link_has_places(link, 2, link->client->in_flight_most + (uint64_t)2)) {
        return false;
    }
    if (call->asking) {
        resp_put_array(out, 1);
        resp_put_bulk(out, TEXT("ASKING"));
    }
    bool full = call->creates && memory_is_full(&link->breaker->memory);
    script_put_head(out, call->script, call->how, call->count + full);
    buffer_put(out, call_arguments(call));
    if (full) {
        resp_put_bulk(out, TEXT("full"));
    }
    if (out->full) {
        out->end = out->begin + before;
        out->full = false;
        return false;
    }
    if (call->asking) {
        link_take_place(link, link_ignore_reply, NULL);
    }
    leave_link(call);
    call->state = CALL_SENT;
    call->place = link->last;
    link_take_place(link, NULL, call);
    return true;
}

struct weir_text client_outgoing(struct client_link *link)
{
    link->woken = false;
    while (link->state == LINK_READY && !list_is_empty(&link->waiting) &&
           buffer_len(&link->out) < OUT_AT_ONCE) {
        if (!put_call(link, LIST_OF(link->waiting.next, struct pending_call, node))) {
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

/* ---- the end ---- */

static void leave_place(struct pending_call *call)
{
    if (call->state == CALL_WAITING) {
        leave_link(call);
    } else if (call->state == CALL_SENT) {
        link_place(call->link, call->place)->arg = NULL;
    } else {
        list_take(&call->node);
    }
}

void call_finish(struct client *c, struct pending_call *call, enum client_end end,
                 const struct store_reply *reply, uint64_t now_ns)
{
    client_done_fn done = call->done;
    void *arg = call->arg;
    uint64_t *count[] = {&c->counts.replies, &c->counts.not_run, &c->counts.unknown};
    ++*count[end];
    timer_clear(&call->timer);
    if (end == CLIENT_REPLIED) {
        uint64_t took = sub_floor0(now_ns, call->made_ns);
        c->counts.took.counts[histogram_bucket(took)]++;
        c->counts.took.sum_ns += took;
    }
    free(call);
    assert(c->in_flight > 0); /* C1 */
    c->in_flight--;
    done(arg, end, reply, now_ns);
}

void call_end(struct client *c, struct pending_call *call, enum client_end end, uint64_t now_ns)
{
    leave_place(call);
    call_finish(c, call, end, NULL, now_ns);
}

/* ---- late replies ---- */

/* Handles the reply to a call that ended at its deadline. */
static void on_late(void *arg, struct client_link *link, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct client_late *late = arg;
    if (reply != NULL) {
        link->client->counts.late++;
        link->late = link->late || reply->type != '-';
    }
    if (late != NULL) {
        late->fn(late, reply, now_ns);
    }
}

bool client_await_late(struct client *c, struct client_late *late)
{
    bool can = c->late != NULL;
    if (can) {
        *c->late = late;
        c->late = NULL;
    }
    return can;
}

void link_end_late(struct client_link *link, const struct reply_place *place, uint64_t now_ns)
{
    if (place->answer == on_late) {
        on_late(place->arg, link, NULL, now_ns);
    }
}

static void time_out(struct client *c, struct pending_call *call, uint64_t now_ns)
{
    struct client_link *link = call->link;
    struct client_late *late = NULL;
    uint64_t place = call->place;
    c->late = &late;
    call_end(c, call, CLIENT_UNKNOWN, now_ns);
    c->late = NULL;
    *link_place(link, place) = (struct reply_place){on_late, late};
    link_note_failure(link, now_ns);
}

void call_tick(struct client *c, struct pending_call *call, uint64_t now_ns)
{
    if (call->state == CALL_PAUSED && now_ns < call->deadline_ns) {
        list_take(&call->node);
        call_resend(c, call, NULL, now_ns);
    } else if (call->state == CALL_SENT) {
        time_out(c, call, now_ns);
    } else {
        call_end(c, call, CLIENT_NOT_RUN, now_ns);
    }
}

static void replied(struct pending_call *call, const struct store_reply *reply, uint64_t now_ns)
{
    struct client_link *link = call->link;
    struct client *c = link->client;
    if (store_did_not_run(reply->refusal)) {
        call_refused(c, call, reply, now_ns);
        return;
    }
    if (store_is_failure(reply->refusal)) {
        link_refuses(link, reply->text, call_key(call), now_ns);
    } else if (reply->type == '-') {
        link->good++;
        link_complain(link, reply->text); /* C5: not a failure of the endpoint, but reported */
    } else {
        link->good++;
        link->well = true;
        if (link->complained) {
            link_clear_complaint(link);
        }
    }
    call_finish(c, call, CLIENT_REPLIED, reply, now_ns);
}

/* ---- receiving ---- */

/* Takes one reply from the front of the input and gives it to the call or the question that waits
 * for it. Returns STORE_REPLY, STORE_MORE or STORE_BAD. */
static int take_reply(struct client_link *link, struct weir_text input, size_t *used,
                      uint64_t now_ns)
{
    struct store_reply reply;
    uint64_t life = link->life;
    if (!link_waits(link)) {
        return STORE_BAD; /* a reply without a request */
    }
    int e = store_reply_read(input, &reply);
    if (e != STORE_REPLY) {
        return e;
    }
    *used = reply.whole.len;
    struct reply_place place = *link_place(link, link->first++);
    if (place.answer == NULL) {
        replied(place.arg, &reply, now_ns);
    } else {
        place.answer(place.arg, link, &reply, now_ns);
        if (link->life == life && link->state == LINK_GREETING && --link->greeting == 0) {
            link_ready(link, now_ns);
        }
    }
    return e;
}

/* Takes all complete replies and leaves the rest in *input. Returns false if the connection has
 * ended. */
static bool take_replies(struct client_link *link, struct weir_text *input, uint64_t now_ns)
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

static bool receive(struct client_link *link, struct weir_text bytes, uint64_t now_ns)
{
    struct buffer *in = &link->in;
    if (buffer_len(in) == 0) {
        if (!take_replies(link, &bytes, now_ns)) {
            return false;
        }
        buffer_put(in, bytes);
    } else {
        buffer_put(in, bytes);
        struct weir_text all = buffer_text(in);
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

bool client_received(struct client_link *link, struct weir_text bytes, uint64_t now_ns)
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
    if (open && link->late) {
        link->late = false;
        breaker_answers(link->breaker, now_ns);
        link_try_probe(link, now_ns);
    }
    if (open && link->state == LINK_READY && !list_is_empty(&link->waiting)) {
        link_wake(link); /* there may be places again */
    }
    client_tell_metrics(c);
    return open;
}
