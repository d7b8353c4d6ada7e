#include "shared/core/script.h"
#include "support/store/client_world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "redis/slots.h"

/* ---- the driver ---- */

/* A link that was freed and a later one may have the same address. */
static struct world_socket *socket_of(struct client_world *w, struct client_link *link)
{
    struct world_socket *known = client_link_data(link);
    if (known != NULL) {
        return known;
    }
    assert(w->count < WORLD_SOCKETS);
    struct world_socket *s = &w->sockets[w->count++];
    s->link = link;
    buffer_init(&s->sent, (size_t)64 << 20);
    client_link_set_data(link, s);
    return s;
}

/* A new link to the same host and port takes over the socket of a link that was freed. */
static void take_over(struct client_world *w, struct client_link *link, struct weir_text host,
                      unsigned port)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct world_socket *s = &w->sockets[i];
        bool same = text_is(host, s->host) && s->port == port;
        bool fresh = client_link_data(link) == NULL; /* its memory may be the other's */
        if (fresh && same && s->state == WORLD_CLOSED) {
            s->link = link;
            client_link_set_data(link, s);
        } else if (s->link == link && !same) {
            s->link = NULL; /* the new link reuses the address of that link */
        }
    }
}

static void on_connect(void *arg, struct client_link *link, struct weir_text host, unsigned port)
{
    take_over(arg, link, host, port);
    struct world_socket *s = socket_of(arg, link);
    assert(s->state == WORLD_CLOSED);
    client_link_set_data(link, s);
    assert(client_link_data(link) == s);
    s->state = WORLD_CONNECTING;
    s->attempts++;
    s->port = port;
    (void)snprintf(s->host, sizeof s->host, "%.*s", TEXT_ARGS(host));
}

static void on_wake(void *arg, struct client_link *link)
{
    struct world_socket *s = socket_of(arg, link);
    assert(s->state == WORLD_UP);
    s->woken = true;
    s->wakes++;
}

static void on_close(void *arg, struct client_link *link)
{
    struct world_socket *s = socket_of(arg, link);
    assert(s->state != WORLD_CLOSED);
    s->state = WORLD_CLOSED;
    s->woken = false;
    s->closed++;
    buffer_take(&s->sent, buffer_len(&s->sent));
}

/* ---- start and end ---- */

void world_prepare(struct client_world *w, const char *url, struct breakers *breakers)
{
    struct weir_error error;
    *w = (struct client_world){.now = 1000 * WORLD_MS};
    if (store_url_read(text_of(url), &w->url, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        abort();
    }
    w->options = (struct client_options){
        .url = &w->url,
        .scripts = &store_scripts,
        .password = &w->password,
        .deadline_ns = WORLD_DEADLINE,
        .breakers = breakers,
        .metrics = &w->metrics,
    };
}

void world_create(struct client_world *w)
{
    const struct client_driver driver = {w, on_connect, on_wake, on_close};
    if (client_create(&w->client, &w->options, &driver, w->now) != 0) {
        abort();
    }
    world_tick(w);
}

void world_start(struct client_world *w, const char *url, struct breakers *breakers)
{
    world_prepare(w, url, breakers);
    world_create(w);
}

void world_stop(struct client_world *w)
{
    client_destroy(w->client, w->now);
    for (unsigned i = 0; i < w->count; i++) {
        assert(w->sockets[i].state == WORLD_CLOSED);
        buffer_finish(&w->sockets[i].sent);
    }
    assert(w->metrics.up == 0);
    assert(w->metrics.calls == w->metrics.replies + w->metrics.not_run + w->metrics.unknown);
}

/* ---- time ---- */

void world_tick(struct client_world *w)
{
    uint64_t due = client_tick(w->client, w->now);
    assert(due > w->now);
    assert(due == client_due(w->client));
}

void world_pass(struct client_world *w, uint64_t ns)
{
    uint64_t end = w->now + ns;
    world_tick(w);
    while (client_due(w->client) <= end) {
        w->now = client_due(w->client);
        world_tick(w);
    }
    w->now = end;
}

/* ---- calls ---- */

static void on_done(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct world_call *call = arg;
    assert(!call->world->inside);
    call->done++;
    call->end = end;
    call->at = now_ns;
    call->has_reply = reply != NULL;
    if (reply != NULL) {
        call->type = reply->type;
        call->refusal = reply->refusal;
        call->integer = reply->n > 0 ? reply->integers[0] : 0;
    }
}

int world_call(struct client_world *w, struct world_call *call, const char *key, uint64_t deadline)
{
    static const struct store_params params = {
        .algorithm = WEIR_TOKEN_BUCKET, .quota = 5, .max_debt = 5, .a = 1000, .kind = "t"};
    struct store_part part = {&params, text_of(key), 1, 0};
    struct buffer b;
    buffer_init(&b, 1 << 20);
    struct client_call c = {
        .slot = cluster_slot(part.key),
        .script = script_for(&store_scripts, &part, 1),
        .count = script_put_arguments(&b, REMOTE_CHECK, &part, 1),
        .creates = true,
        .deadline_ns = deadline,
    };
    c.arguments = buffer_text(&b);
    *call = (struct world_call){.world = w};
    w->inside = true;
    int e = client_call(w->client, &c, w->now, on_done, call);
    w->inside = false;
    buffer_finish(&b);
    return e;
}

/* ---- connections ---- */

void world_up(struct client_world *w, unsigned i)
{
    assert(w->sockets[i].state == WORLD_CONNECTING);
    w->sockets[i].state = WORLD_UP;
    client_up(w->sockets[i].link, w->now);
    world_tick(w);
    if (w->sockets[i].state == WORLD_UP) {
        world_flush(w, i);
    }
}

void world_greet(struct client_world *w, unsigned i)
{
    world_up(w, i);
    (void)world_say(w, i, "+PONG\r\n");
    world_flush(w, i);
    world_pass_over(w, i, 1);
}

bool world_say_bytes(struct client_world *w, unsigned i, struct weir_text bytes)
{
    assert(w->sockets[i].state == WORLD_UP);
    bool open = client_received(w->sockets[i].link, bytes, w->now);
    assert(open == (w->sockets[i].state == WORLD_UP));
    world_tick(w);
    return open;
}

bool world_say(struct client_world *w, unsigned i, const char *bytes)
{
    return world_say_bytes(w, i, text_of(bytes));
}

void world_down(struct client_world *w, unsigned i)
{
    struct world_socket *s = &w->sockets[i];
    assert(s->state != WORLD_CLOSED);
    s->state = WORLD_CLOSED;
    s->woken = false;
    buffer_take(&s->sent, buffer_len(&s->sent));
    client_down(s->link, w->now);
    world_tick(w);
}

void world_flush(struct client_world *w, unsigned i)
{
    struct world_socket *s = &w->sockets[i];
    struct weir_text out;
    s->woken = false;
    while (s->state == WORLD_UP && (out = client_outgoing(s->link)).len > 0) {
        buffer_put(&s->sent, out);
        client_sent(s->link, out.len);
    }
    world_tick(w);
}

static bool next(struct client_world *w, unsigned i, struct resp_request *out)
{
    static const struct resp_limits limits = {RESP_ARGS_MAX, 1 << 20, 1 << 22, false};
    const char *complaint;
    int e = resp_parse(buffer_text(&w->sockets[i].sent), &limits, out, &complaint);
    assert(e != RESP_BAD);
    return e == RESP_REQUEST;
}

const char *world_heard(struct client_world *w, unsigned i)
{
    static char line[4096];
    static struct resp_request request;
    size_t at = 0;
    line[0] = 0;
    if (!next(w, i, &request)) {
        return line;
    }
    for (unsigned k = 0; k < request.argc && at < sizeof line - 300; k++) {
        struct weir_text word = request.argv[k];
        word.len = word.len > 32 ? 8 : word.len;
        at += (size_t)snprintf(line + at, sizeof line - at, k > 0 ? " %.*s" : "%.*s",
                               TEXT_ARGS(word));
    }
    buffer_take(&w->sockets[i].sent, request.used);
    return line;
}

void world_pass_over(struct client_world *w, unsigned i, unsigned n)
{
    while (n-- > 0) {
        assert(world_heard(w, i)[0] != 0);
    }
}
