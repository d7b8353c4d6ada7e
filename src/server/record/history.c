#include "server/record/history.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "wire/jsontext.h"

struct event {
    char *text;   /* {"at_ms":...,"kind":"..." and then ,"text":"...","messages":[...]} */
    size_t len;   /* of all of it */
    size_t brief; /* of the part for the role check, which lacks the last brace */
};

struct history {
    struct {
        char *at;
        size_t len;
    } samples[HISTORY_SAMPLES];
    size_t first; /* of the samples */
    size_t count;
    size_t bytes;
    pthread_mutex_t lock; /* guards the rest */
    struct event events[HISTORY_EVENTS];
    uint64_t noted; /* number of the last event; it is at (noted - 1) % HISTORY_EVENTS */
};

struct history *history_create(void)
{
    struct history *h = calloc(1, sizeof *h);
    if (h != NULL) {
        (void)pthread_mutex_init(&h->lock, NULL);
    }
    return h;
}

static void remove_oldest(struct history *h)
{
    free(h->samples[h->first].at);
    h->bytes -= h->samples[h->first].len;
    h->first = (h->first + 1) % HISTORY_SAMPLES;
    h->count--;
}

void history_destroy(struct history *h)
{
    if (h == NULL) {
        return;
    }
    while (h->count > 0) {
        remove_oldest(h);
    }
    for (size_t i = 0; i < HISTORY_EVENTS; i++) {
        free(h->events[i].text);
    }
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

/* ---- samples ---- */

void history_add(struct history *h, struct weir_text sample)
{
    char *copy = sample.len <= HISTORY_BYTES ? malloc(sample.len + 1) : NULL;
    if (copy == NULL) {
        return;
    }
    memcpy(copy, sample.at, sample.len);
    while (h->count == HISTORY_SAMPLES || h->bytes + sample.len > HISTORY_BYTES) {
        remove_oldest(h);
    }
    size_t last = (h->first + h->count) % HISTORY_SAMPLES;
    h->samples[last].at = copy;
    h->samples[last].len = sample.len;
    h->count++;
    h->bytes += sample.len;
}

void history_put_samples(const struct history *h, struct buffer *out)
{
    for (size_t i = 0; i < h->count; i++) {
        size_t at = (h->first + i) % HISTORY_SAMPLES;
        buffer_put(out, i > 0 ? TEXT(",") : TEXT(""));
        buffer_put(out, (struct weir_text){h->samples[at].at, h->samples[at].len});
    }
}

/* ---- events ---- */

static const char *const kind_names[] = {
    [HISTORY_START] = "start",
    [HISTORY_RELOAD] = "reload",
    [HISTORY_RELOAD_FAILED] = "reload failed",
    [HISTORY_STORE] = "store",
    [HISTORY_MODE] = "mode",
    [HISTORY_LIMIT] = "limit",
};

#define LAST_MESSAGE 128 /* room for the text that says how many messages were left out */

static void put_left_out(struct buffer *out, size_t count)
{
    buffer_put(out, TEXT("\""));
    buffer_put_u64(out, count);
    buffer_put(out, TEXT(" more: see the log\""));
}

/* Puts the messages as JSON strings, as many as have room in the event. */
static void put_messages(struct buffer *out, const struct buffer *messages)
{
    struct weir_text rest = messages != NULL ? buffer_text(messages) : TEXT("");
    size_t left_out = 0;
    const char *between = "";
    while (rest.len > 0) {
        struct weir_text one = text_cut(&rest, 0);
        if (left_out > 0 || /* a byte becomes at most an escape of six */
            buffer_len(out) + 6 * one.len + LAST_MESSAGE > HISTORY_EVENT_BYTES) {
            left_out++;
            continue;
        }
        buffer_put(out, text_of(between));
        jsontext_put_string(out, one);
        between = ",";
    }
    if (left_out > 0) {
        buffer_put(out, text_of(between));
        put_left_out(out, left_out);
    }
}

void history_note(struct history *h, enum history_kind kind, const char *text,
                  const struct buffer *messages)
{
    if (h == NULL) {
        return;
    }
    struct buffer out;
    buffer_init(&out, 2 * HISTORY_EVENT_BYTES);
    buffer_put(&out, TEXT("{\"at_ms\":"));
    buffer_put_u64(&out, clock_unix_ns() / WEIR_MILLISECOND);
    buffer_put(&out, TEXT(",\"kind\":"));
    jsontext_put_string(&out, text_of(kind_names[kind]));
    size_t brief = buffer_len(&out);
    buffer_put(&out, TEXT(",\"text\":"));
    jsontext_put_string(&out, (struct weir_text){text, strnlen(text, HISTORY_EVENT_BYTES / 12)});
    buffer_put(&out, TEXT(",\"messages\":["));
    put_messages(&out, messages);
    buffer_put(&out, TEXT("]}"));
    if (out.full) { /* no memory: the log has the event */
        buffer_finish(&out);
        return;
    }
    (void)pthread_mutex_lock(&h->lock);
    struct event *e = &h->events[h->noted++ % HISTORY_EVENTS];
    free(e->text);
    *e = (struct event){out.at, buffer_len(&out), brief}; /* the buffer was only appended to */
    (void)pthread_mutex_unlock(&h->lock);
}

/* Calls fn with the text of an event that a role may read. */
static void tell(const struct event *e, enum role role,
                 void (*fn)(void *arg, struct weir_text event), void *arg)
{
    char brief[128];
    if (role >= ROLE_ADMIN) {
        fn(arg, (struct weir_text){e->text, e->len});
    } else if (e->brief + 1 <= sizeof brief) {
        memcpy(brief, e->text, e->brief);
        brief[e->brief] = '}';
        fn(arg, (struct weir_text){brief, e->brief + 1});
    }
}

uint64_t history_events(struct history *h, uint64_t after, enum role role,
                        void (*fn)(void *arg, struct weir_text event), void *arg)
{
    (void)pthread_mutex_lock(&h->lock);
    uint64_t last = h->noted;
    uint64_t first = last > HISTORY_EVENTS ? last - HISTORY_EVENTS : 0;
    for (uint64_t i = after > first ? after : first; i < last; i++) {
        tell(&h->events[i % HISTORY_EVENTS], role, fn, arg);
    }
    (void)pthread_mutex_unlock(&h->lock);
    return last;
}
