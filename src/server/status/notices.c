#include "server/status/notices.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/digits.h"
#include "server/status/notice_find.h"

#define SENTENCE_ROOM 1024 /* three phrases with their names need less */

const struct notice_row notice_rows[NOTICES] = {
#define NOTICE(id, ...) [NOTICE_##id] = {__VA_ARGS__},
#include "server/status/notices.def"
#undef NOTICE
};

struct notice_state {
    bool is; /* there is such a notice now */
    uint64_t since_ns;
    char text[SENTENCE_ROOM];
    char why[sizeof((struct weir_error){0}.text)]; /* "": not known */
};

struct notices {
    pthread_mutex_t lock; /* guards the rest but due_ns */
    struct notice_state states[NOTICES];
    struct troubles troubles;
    struct failed_reload reload;
    uint64_t due_ns; /* belongs to the operators' thread */
};

struct notices *notices_create(void)
{
    struct notices *c = calloc(1, sizeof *c);
    if (c != NULL) {
        (void)pthread_mutex_init(&c->lock, NULL);
    }
    return c;
}

void notices_destroy(struct notices *c)
{
    if (c != NULL) {
        troubles_finish(&c->troubles);
        (void)pthread_mutex_destroy(&c->lock);
        free(c);
    }
}

/* ---- finding ---- */

void notices_reloaded(struct notices *c, const char *stays, const char *why, uint64_t now_ns)
{
    struct failed_reload *r = &c->reload;
    (void)pthread_mutex_lock(&c->lock);
    if (stays != NULL) {
        r->since_ns = r->is ? r->since_ns : now_ns;
        (void)snprintf(r->stays, sizeof r->stays, "%s", stays);
        (void)snprintf(r->why, sizeof r->why, "%s", why);
    }
    r->is = stays != NULL;
    (void)pthread_mutex_unlock(&c->lock);
}

static void find(struct notices *c, enum notice which, const struct numbers *n, uint64_t now_ns)
{
    struct notice_state *s = &c->states[which];
    struct buffer text;
    struct notice_view v = {n, &c->reload, &c->troubles, now_ns, &text, "", now_ns};
    buffer_init(&text, SENTENCE_ROOM - 1);
    bool is = notice_finds[which](&v);
    if (is) {
        s->since_ns = s->is ? s->since_ns : v.since_ns;
        (void)snprintf(s->text, sizeof s->text, "%.*s", TEXT_ARGS(buffer_text(&text)));
        (void)snprintf(s->why, sizeof s->why, "%s", v.why);
    }
    s->is = is;
    buffer_finish(&text);
}

void notices_update(struct notices *c, const struct numbers *n, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&c->lock);
    troubles_look(&c->troubles, n, now_ns);
    if (notice_store_away(n)) { /* what it causes is one notice, not two after each other */
        troubles_forget_answers(&c->troubles);
    }
    for (enum notice i = 0; i < NOTICES; i++) {
        find(c, i, n, now_ns);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

void notices_look(const struct server *server, uint64_t now_ns)
{
    struct notices *c = server->notices;
    uint64_t apart_ns = server->options.sample_ms * WEIR_MILLISECOND;
    struct numbers n;
    if (now_ns < c->due_ns && c->due_ns - now_ns < apart_ns) { /* the clock may be set back */
        return;
    }
    if (numbers_read_briefly(server, &n)) {
        notices_update(c, &n, now_ns);
        c->due_ns = now_ns + apart_ns - apart_ns / 8; /* timers may come a little early */
    }
    numbers_finish(&n);
}

/* ---- telling ---- */

/* Returns a string; messages may have bytes of a file that are not UTF-8. NULL for "". */
static json_t *string_or_null(const char *text)
{
    json_t *string = text[0] != 0 ? json_string(text) : json_null();
    return string != NULL ? string : json_string("(not UTF-8)");
}

static json_t *make_item(const struct notice_row *row, const struct notice_state *s, enum role role)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s}", "name", row->name, "severity",
                     row->severity, "title", row->title, "since_ms",
                     row->since ? json_integer((json_int_t)(s->since_ns / WEIR_MILLISECOND))
                                : json_null(),
                     "text", string_or_null(s->text), "why",
                     string_or_null(role >= ROLE_ADMIN ? s->why : ""), "act", row->act);
}

json_t *notices_json(struct notices *c, enum role role)
{
    json_t *all = json_array();
    (void)pthread_mutex_lock(&c->lock);
    for (enum notice i = 0; i < NOTICES; i++) {
        if (c->states[i].is) {
            (void)json_array_append_new(all, make_item(&notice_rows[i], &c->states[i], role));
        }
    }
    (void)pthread_mutex_unlock(&c->lock);
    return all;
}

static void put_open(struct buffer *out, const struct notice_row *row, uint64_t since_ns)
{
    char time[DIGITS_TIME_MAX];
    buffer_put(out, text_of(row->open));
    if (row->since) {
        digits_time(since_ns, time);
        buffer_put(out, TEXT(" since "));
        buffer_put(out, text_before(text_of(time), '.'));
        buffer_put_char(out, 'Z');
    }
    buffer_put_char(out, '\n');
}

void notices_put_open(struct notices *c, struct buffer *out)
{
    (void)pthread_mutex_lock(&c->lock);
    for (enum notice i = 0; i < NOTICES; i++) {
        if (c->states[i].is) {
            put_open(out, &notice_rows[i], c->states[i].since_ns);
        }
    }
    (void)pthread_mutex_unlock(&c->lock);
}
