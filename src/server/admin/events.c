#include "server/admin/events.h"

#include <stdlib.h>

#include "base/clock.h"
#include "server/admin/admin.h"
#include "server/record/history.h"
#include "server/admin/sample.h"
#include "server/status/notices.h"
#include "wire/jsontext.h"

struct events {
    uv_timer_t timer;
    struct worker *worker;
    struct sampler sampler;
    struct buffer text;    /* of the event that is being sent */
    char *notices[ROLES];  /* as each role was last told; NULL: not yet */
    uint64_t noted[ROLES]; /* number of the last event of the history that each role was sent */
    uint64_t ticks;
};

#define TOP_TICKS 2  /* ticks of the timer for each `top` */
#define TOP_COUNT 20 /* keys for each of its times */
#define TEXT_BYTES (1u << 20)

/* ---- texts ---- */

/* Begins an event in an empty buffer; the data follows, without line ends. */
static void begin(struct buffer *out, const char *name)
{
    buffer_take(out, buffer_len(out));
    out->full = false;
    buffer_put(out, TEXT("event: "));
    buffer_put(out, text_of(name));
    buffer_put(out, TEXT("\ndata: "));
}

static void end(struct buffer *out)
{
    buffer_put(out, TEXT("\n\n"));
}

/* ---- streams ---- */

static struct http_session *session_of(struct connection *c)
{
    return (struct http_session *)(void *)c->session;
}

/* Ends a stream; its client learns why when it has fetched what was sent before. */
static void drop(struct connection *c, const char *why)
{
    static struct log_limit limit;
    struct buffer last;
    buffer_init(&last, 1024);
    begin(&last, "dropped");
    buffer_put(&last, TEXT("{\"why\":"));
    jsontext_put_string(&last, text_of(why));
    buffer_put_char(&last, '}');
    end(&last);
    count_own(&c->worker->counts.streams_dropped, 1);
    connection_tell(c, &limit, LEVEL_WARNING, "stream of events ended", why);
    connection_end_stream(c, buffer_text(&last));
    buffer_finish(&last);
}

/* Sends the text to each stream whose role is from `least` to `most`. */
static void send_all(struct events *e, enum role least, enum role most)
{
    struct weir_text text = buffer_text(&e->text);
    for (struct connection *c = e->worker->connections; c != NULL && !e->text.full; c = c->next) {
        if (!c->streaming || session_of(c)->role < least || session_of(c)->role > most) {
            continue;
        }
        if (connection_unsent(c) + text.len > SERVER_STREAM_BYTES) {
            drop(c, "the events were not fetched fast enough: 262144 bytes waited");
        } else {
            connection_push(c, text);
        }
    }
}

/* Ends streams whose secret no longer gives the role that they have. */
static void check_roles(struct worker *w)
{
    struct access *access = w->server->options.access;
    for (struct connection *c = w->connections; c != NULL; c = c->next) {
        if (c->streaming && access_role(access, &c->pass) != session_of(c)->role) {
            drop(c, "the secrets were changed: the role of this stream is no longer the same");
        }
    }
}

/* ---- room ---- */

/* Orders streams by address; those of one address by role, then the oldest first. */
static int compare_streams(const void *one, const void *two)
{
    struct connection *a = *(struct connection *const *)one;
    struct connection *b = *(struct connection *const *)two;
    struct address rooms[2];
    struct weir_text key = tally_client(&a->peer, &rooms[0]);
    int order = memcmp(key.at, tally_client(&b->peer, &rooms[1]).at, key.len);
    if (order == 0) {
        order = (int)session_of(a)->role - (int)session_of(b)->role;
    }
    return order != 0 ? order
                      : (a->accepted_ms > b->accepted_ms) - (a->accepted_ms < b->accepted_ms);
}

static bool have_one_address(const struct connection *a, const struct connection *b)
{
    struct address rooms[2];
    return text_equal(tally_client(&a->peer, &rooms[0]), tally_client(&b->peer, &rooms[1]));
}

/* Returns where the streams of the same address as all[first] end. */
static size_t end_of_address(struct connection *const *all, size_t count, size_t first)
{
    size_t i = first;
    while (i < count && have_one_address(all[first], all[i])) {
        i++;
    }
    return i;
}

/*
 * Returns the stream that makes room for one of `c` with this role, or NULL: of the address that
 * has the most, the oldest one of its lowest role. It has a lower role than the new one, so that
 * nobody without the secret keeps an operator of the same address out. Otherwise it has the same
 * role, and its address at least two more than that of `c`: one client cannot keep the pool from
 * others, and two clients never take turns in ending each other's streams. A higher role never
 * makes room.
 */
static struct connection *find_room(struct connection *const *all, size_t count,
                                    const struct connection *c, enum role role)
{
    struct connection *lower = NULL;
    struct connection *same = NULL;
    size_t lower_most = 0;
    size_t same_most = 1;
    for (size_t i = 0; i < count; i++) {
        same_most += have_one_address(c, all[i]);
    }
    for (size_t first = 0, end = 0; first < count; first = end) {
        enum role least = session_of(all[first])->role;
        end = end_of_address(all, count, first);
        if (least < role && end - first > lower_most) {
            lower = all[first];
            lower_most = end - first;
        } else if (least == role && end - first > same_most) {
            same = all[first];
            same_most = end - first;
        }
    }
    return lower != NULL ? lower : same;
}

/* Ends a stream in favour of one of `c` with this role. Returns false if none may be ended. */
static bool make_room(const struct connection *c, enum role role)
{
    struct connection *all[SERVER_STREAMS];
    size_t count = 0;
    for (struct connection *s = c->worker->connections; s != NULL; s = s->next) {
        if (s->streaming && count < SERVER_STREAMS) {
            all[count++] = s;
        }
    }
    qsort(all, count, sizeof all[0], compare_streams);
    struct connection *one = find_room(all, count, c, role);
    if (one == NULL) {
        return false;
    }
    drop(one, session_of(one)->role < role
                  ? "a stream of a higher role needed room"
                  : "its address has the most streams, and another address needed room");
    connection_close(one); /* at once: it must not count among other connections */
    return !c->closing;    /* the last words to the other may have made room for themselves */
}

/* ---- events of the history ---- */

struct telling {
    struct events *events;
    enum role role;
};

static void tell_one(void *arg, struct weir_text event)
{
    const struct telling *t = arg;
    begin(&t->events->text, "event");
    buffer_put(&t->events->text, event);
    end(&t->events->text);
    send_all(t->events, t->role, t->role);
}

/* Sends what has happened since the last call. */
static void tell_news(struct events *e)
{
    struct history *h = e->worker->server->history;
    struct telling to_check = {e, ROLE_CHECK};
    struct telling to_admin = {e, ROLE_ADMIN};
    uint64_t *noted = e->noted;
    noted[ROLE_CHECK] = history_events(h, noted[ROLE_CHECK], ROLE_CHECK, tell_one, &to_check);
    noted[ROLE_ADMIN] = history_events(h, noted[ROLE_ADMIN], ROLE_ADMIN, tell_one, &to_admin);
}

/* ---- notices ---- */

/* Returns the notices for a role, to be freed; NULL: out of memory. */
static char *notices_text(const struct server *server, enum role role)
{
    json_t *all = json_pack("{s:o}", "notices", notices_json(server->notices, role));
    char *text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}

/* Sends the notices to each role for which they have changed. */
static void send_notices(struct events *e)
{
    for (enum role role = ROLE_CHECK; role <= ROLE_ADMIN; role++) {
        char *text = notices_text(e->worker->server, role);
        if (text == NULL || (e->notices[role] != NULL && strcmp(e->notices[role], text) == 0)) {
            free(text);
            continue;
        }
        free(e->notices[role]);
        e->notices[role] = text;
        begin(&e->text, "notices");
        buffer_put(&e->text, text_of(text));
        end(&e->text);
        send_all(e, role, role);
    }
}

/* Puts the notices at the beginning of a stream. */
static void put_notices(struct exchange *x)
{
    struct buffer out;
    char *text = notices_text(x->server, x->role);
    buffer_init(&out, TEXT_BYTES);
    begin(&out, "notices");
    buffer_put(&out, text_of(text != NULL ? text : "{\"notices\":[]}"));
    end(&out);
    free(text);
    x->out->full = x->out->full || out.full;
    buffer_put(x->out, buffer_text(&out));
    buffer_finish(&out);
}

/* ---- the timer ---- */

static void send_sample(struct events *e)
{
    struct worker *w = e->worker;
    begin(&e->text, "sample");
    size_t head = buffer_len(&e->text);
    sample_put(&e->sampler, w->server, clock_unix_ns(), &e->text);
    struct weir_text sample = text_after(buffer_text(&e->text), head);
    if (sample.len > 0) {
        history_add(w->server->history, sample);
        end(&e->text);
        send_all(e, ROLE_CHECK, ROLE_ADMIN);
    }
}

static bool has_admins(const struct worker *w)
{
    bool some = false;
    for (struct connection *c = w->connections; c != NULL; c = c->next) {
        some = some || (c->streaming && session_of(c)->role == ROLE_ADMIN);
    }
    return some;
}

/* Composes the event `top` in e->text. Returns false if out of memory. */
static bool compose_top(struct events *e)
{
    json_t *tops = json_array();
    for (size_t i = 0; i < ADMIN_TOP_MINUTES; i++) {
        (void)json_array_append_new(tops,
                                    admin_top(e->worker->server, admin_top_minutes[i], TOP_COUNT));
    }
    json_t *all = json_pack("{s:o}", "tops", tops);
    char *text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (text != NULL) {
        begin(&e->text, "top");
        buffer_put(&e->text, text_of(text));
        end(&e->text);
    }
    free(text);
    return text != NULL && !e->text.full;
}

static void on_time(uv_timer_t *timer)
{
    struct events *e = timer->data;
    admin_top_tick(e->worker->server);
    check_roles(e->worker);
    notices_look(e->worker->server, clock_unix_ns());
    send_notices(e);
    tell_news(e);
    send_sample(e);
    if (++e->ticks % TOP_TICKS == 0 && has_admins(e->worker) && compose_top(e)) {
        send_all(e, ROLE_ADMIN, ROLE_ADMIN);
    }
}

int events_open(struct worker *w)
{
    struct events *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return WEIR_ENOMEM;
    }
    e->worker = w;
    buffer_init(&e->text, TEXT_BYTES);
    (void)uv_timer_init(&w->loop, &e->timer); /* these two cannot fail */
    e->timer.data = e;
    (void)uv_timer_start(&e->timer, on_time, 0, w->server->options.sample_ms);
    w->events = e;
    return 0;
}

void events_close(struct worker *w)
{
    if (w->events == NULL || uv_is_closing((uv_handle_t *)&w->events->timer)) {
        return;
    }
    uv_close((uv_handle_t *)&w->events->timer, NULL);
    for (struct connection *c = w->connections; c != NULL; c = c->next) {
        if (c->streaming) {
            connection_close(c);
        }
    }
}

const struct limit_counts *events_limit(const struct worker *w, const char *name)
{
    return w->events != NULL ? limits_counted_find(&w->events->sampler.limits, name) : NULL;
}

void events_finish(struct worker *w)
{
    if (w->events != NULL) {
        buffer_finish(&w->events->text);
        for (enum role role = ROLE_CHECK; role <= ROLE_ADMIN; role++) {
            free(w->events->notices[role]);
        }
        sampler_finish(&w->events->sampler);
        free(w->events);
        w->events = NULL;
    }
}

/* ---- routes ---- */

static void put_event(void *arg, struct weir_text event)
{
    struct buffer *out = arg;
    buffer_put(out, buffer_text(out).at[buffer_len(out) - 1] == '[' ? TEXT("") : TEXT(","));
    buffer_put(out, event);
}

static void run_history(struct exchange *x)
{
    struct buffer *body = &x->body;
    tell_news(x->connection->worker->events); /* so that no stream that is opened next repeats it */
    buffer_put(body, TEXT("{\"now_ms\":"));
    buffer_put_u64(body, clock_unix_ns() / WEIR_MILLISECOND);
    buffer_put(body, TEXT(",\"every_ms\":"));
    buffer_put_u64(body, x->server->options.sample_ms);
    buffer_put(body, TEXT(",\"role\":"));
    jsontext_put_string(body, text_of(role_names[x->role]));
    buffer_put(body, x->server->options.demo ? TEXT(",\"demo\":true") : TEXT(",\"demo\":false"));
    buffer_put(body, TEXT(",\"samples\":["));
    history_put_samples(x->server->history, body);
    buffer_put(body, TEXT("],\"events\":["));
    (void)history_events(x->server->history, 0, x->role, put_event, body);
    buffer_put(body, TEXT("]}"));
    http_reply(x, 200, "application/json", NULL);
}

static void put_hello(struct exchange *x)
{
    struct buffer hello;
    buffer_init(&hello, 1024);
    begin(&hello, "hello");
    buffer_put(&hello, TEXT("{\"version\":"));
    jsontext_put_string(&hello, text_of(weir_version()));
    buffer_put(&hello, TEXT(",\"role\":"));
    jsontext_put_string(&hello, text_of(role_names[x->role]));
    buffer_put(&hello, TEXT(",\"every_ms\":"));
    buffer_put_u64(&hello, x->server->options.sample_ms);
    buffer_put(&hello, TEXT(",\"streams\":"));
    buffer_put_u64(&hello, x->connection->worker->counts.streams);
    buffer_put_char(&hello, '}');
    end(&hello);
    x->out->full = x->out->full || hello.full;
    buffer_put(x->out, buffer_text(&hello));
    buffer_finish(&hello);
}

/* Replies with the head of a stream. Its end is the end of the connection. */
static void reply_head(struct exchange *x)
{
    x->endless = true;
    x->close = true;
    x->fields = "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n";
    http_reply(x, 200, "text/event-stream", NULL);
    x->fields = NULL;
}

static void run_events(struct exchange *x)
{
    struct connection *c = x->connection;
    if (c->pending.count > 0) {
        http_reply_problem(x, 400,
                           "found an unanswered request, expected none before a stream of events");
    } else if (text_is(x->request->method, "HEAD")) { /* takes no place, so none makes room */
        reply_head(x);
    } else if (c->worker->counts.streams >= SERVER_STREAMS && !make_room(c, x->role)) {
        http_reply_problem(x, 503, "found 128 open streams of events, the most at once");
    } else {
        tell_news(c->worker->events);
        reply_head(x);
        c->pass = x->pass;
        session_of(c)->role = x->role;
        connection_stream(c);
        put_hello(x);
        put_notices(x);
        /* A page that loses its stream again and again, because its machine is busy, might
         * otherwise never have one for long enough to see the next `top`. */
        if (x->role == ROLE_ADMIN && compose_top(c->worker->events)) {
            buffer_put(x->out, buffer_text(&c->worker->events->text));
        }
        x->close = false;
    }
}

const struct http_route admin_events_routes[] = {
    {"GET", "/v1/history", HTTP_AT, ROLE_CHECK, run_history,
     .summary = "samples of the last 15 minutes, and what has happened"},
    {"GET", "/v1/events", HTTP_AT, ROLE_CHECK, run_events,
     .summary = "samples as they are made: a stream of server-sent events"},
    {.path = NULL},
};
