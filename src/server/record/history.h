/*
 * The history that operators' pages show, of the last 15 minutes: a sample for each second, and the
 * events of the server, such as a reload. Both are kept as the JSON text that is sent, so that a
 * sample is composed once, however many pages are open
 * (docs/explanation/decisions/053-samples-are-kept-as-text.md).
 *
 * Samples belong to the operators' thread. Any thread may note an event; a lock guards them.
 */
#ifndef WEIR_SERVER_RECORD_HISTORY_H
#define WEIR_SERVER_RECORD_HISTORY_H

#include "common/buffer.h"
#include "server/access/access.h"

#define HISTORY_SAMPLES 900
#define HISTORY_BYTES (4u << 20) /* of all samples; beyond this the oldest go */
#define HISTORY_EVENTS 50
#define HISTORY_EVENT_BYTES 16384 /* of one event; messages beyond this are left out */

enum history_kind {
    HISTORY_START,
    HISTORY_RELOAD,
    HISTORY_RELOAD_FAILED,
    HISTORY_STORE,
    HISTORY_MODE,
    HISTORY_LIMIT,
};

struct history;

struct history *history_create(void); /* returns NULL if out of memory */
void history_destroy(struct history *h);

/* Adds a sample, the text of a JSON object. Without memory it is left out. */
void history_add(struct history *h, struct weir_text sample);

/*
 * Notes an event. `messages` has texts that each end with a NUL byte, as server_reload() puts them;
 * NULL: none. `h` may be NULL: then no page can be opened, and nothing is noted.
 */
void history_note(struct history *h, enum history_kind kind, const char *text,
                  const struct buffer *messages);

/* Puts the samples, separated by commas, the oldest first. */
void history_put_samples(const struct history *h, struct buffer *out);

/*
 * Calls fn for each event after the one with number `after`, the oldest first, with its text for a
 * role: clients of the role check learn the kind and the time alone. Returns the number of the last
 * event; 0 if there was none yet. fn must not call functions of the history.
 */
uint64_t history_events(struct history *h, uint64_t after, enum role role,
                        void (*fn)(void *arg, struct weir_text event), void *arg);

#endif
