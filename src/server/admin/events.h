/*
 * The live view of operators' pages: a timer on the operators' thread makes a sample each second
 * (sample.h), keeps it in the history, and sends it to every stream of events. A stream is the
 * reply to GET /v1/events, which does not end (text/event-stream, one `data` line for each event):
 *
 *   hello    {"version","role","every_ms","streams":N}    once, at first
 *   sample   as in sample.h, each second
 *   event    what has happened, as in history.h
 *   notices  {"notices":[...]} as in server/status/notices.h, after hello and when they
 *            change
 *   top      {"tops":[...]}, each as /v1/top, for 1, 5 and 15 minutes, after hello and then every
 *            second sample, for the role admin only
 *   dropped  {"why"}: the stream ends now
 *
 * Streams have bounds of their own: SERVER_STREAMS of them, outside of those for other connections
 * of operators, without a time after which they end. When all are taken, one of a lower role gives
 * way to one of a higher role. Otherwise the address that has the most gives one up for a client of
 * an address that has at least two fewer, but never one of a higher role. A client that leaves
 * SERVER_STREAM_BYTES unfetched is dropped. So is one whose role has changed because the secrets
 * were reloaded. When the server ends, the streams are closed at once.
 */
#ifndef WEIR_SERVER_ADMIN_EVENTS_H
#define WEIR_SERVER_ADMIN_EVENTS_H

struct limit_counts;
struct worker;
struct events;

/* Starts the timer. Returns 0, or WEIR_ENOMEM. Called on the operators' thread before its loop
 * runs, if it has an admin listener. */
int events_open(struct worker *w);

/* Closes the timer and all streams. `w->events` may be NULL. */
void events_close(struct worker *w);

/* Returns what a limit has counted up to the last sample, with its rates; NULL: not known yet.
 * Called on the operators' thread. */
const struct limit_counts *events_limit(const struct worker *w, const char *name);

/* Frees the memory, when the loop has ended. */
void events_finish(struct worker *w);

#endif
