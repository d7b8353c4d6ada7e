/*
 * The program's log: one line for each event, as text for people or JSON for machines, written as a
 * whole. Values are escaped, so that a value chosen by a client cannot begin a second line or forge
 * a field. Keys of clients are logged only by LOG_KEY(), which cuts or hashes them.
 *
 *     LOG(LEVEL_INFO, "rules reloaded", LOG_STRING("file", path), LOG_COUNT("limits", n));
 *
 *     2026-11-15T20:54:26.123Z info rules reloaded file=/etc/weir/weir.yaml limits=6
 *     {"time":"2026-11-15T20:54:26.123Z","level":"info","message":"rules reloaded","file":...}
 */
#ifndef WEIR_COMMON_LOG_H
#define WEIR_COMMON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/text.h"

#define LOG_KEY_BYTES 32     /* bytes of a key that is cut; a mark follows */
#define LOG_VALUE_BYTES 1024 /* bytes of any other value as written; a mark follows */
#define LOG_LINE_BYTES 4096  /* a pipe takes this many as a whole */

/* AUDIT is for actions of users with the admin role: always written. */
enum log_level { LEVEL_AUDIT, LEVEL_ERROR, LEVEL_WARNING, LEVEL_INFO, LEVEL_DEBUG, LEVELS };
enum log_format { LOG_AS_TEXT, LOG_AS_JSON };
enum log_keys { LOG_KEYS_CUT, LOG_KEYS_HASHED };

/* "audit", "error", "warning", "info", "debug", NULL. */
extern const char *const log_level_names[LEVELS + 1];

struct log_field {
    const char *name;
    enum { LOG_FIELD_TEXT, LOG_FIELD_COUNT, LOG_FIELD_KEY } kind;
    struct weir_text text;
    int64_t count;
};

#define LOG_TEXT(name, text) ((struct log_field){(name), LOG_FIELD_TEXT, (text), 0})
#define LOG_STRING(name, string) ((struct log_field){(name), LOG_FIELD_TEXT, text_of(string), 0})
#define LOG_COUNT(name, number)                                                                    \
    ((struct log_field){(name), LOG_FIELD_COUNT, {"", 0}, (int64_t)(number)})
#define LOG_KEY(name, text) ((struct log_field){(name), LOG_FIELD_KEY, (text), 0})

/* Called before any thread is started. Without it: text to stderr, level info, keys cut. */
void log_init(int fd, enum log_format format, enum log_keys keys);

/* May be called from any thread, at any time. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
bool log_level_parse(struct weir_text text, enum log_level *level); /* error to debug */

/*
 * Writes a line in one write(2). A line that could not be written, or for which the descriptor was
 * not ready in time, is counted as lost, and the next line says so. May be called in a signal
 * handler: it takes no lock and calls only functions that are safe there.
 */
void log_event(enum log_level level, const char *message, const struct log_field *fields,
               size_t count);

#define LOG(level, message, ...)                                                                   \
    log_event((level), (message), (struct log_field[]){__VA_ARGS__},                               \
              sizeof((struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

/*
 * For events that clients can cause at any rate: one line per second for each place in the code, or
 * for each time that the place says, with the number of lines like it that were left out before it.
 *
 *     static struct log_limit full;
 *     LOG_LIMITED(&full, LEVEL_WARNING, "connection refused", LOG_STRING("why", "too many"));
 */
#define LOG_LIMIT_NS UINT64_C(1000000000)
#define LOG_LIMITED_FIELDS 8

struct log_limit {
    uint64_t next_ns; /* since boot */
    uint64_t left_out;
    uint64_t every_ns; /* one line in this time; 0: LOG_LIMIT_NS */
};

/*
 * True if it is time for a line, and *left_out is how many were left out; otherwise counts the line
 * as left out.
 */
bool log_limit_due(struct log_limit *limit, uint64_t now_ns, uint64_t *left_out);

void log_limited_event(struct log_limit *limit, enum log_level level, const char *message,
                       const struct log_field *fields, size_t count);

#define LOG_LIMITED(limit, level, message, ...)                                                    \
    log_limited_event((limit), (level), (message), (struct log_field[]){__VA_ARGS__},              \
                      sizeof((struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

/* For a line that is written once. True for the first caller of all threads; *told is 0 at
 * first. */
bool log_once(uint64_t *told);

/*
 * For a state that one thread looks at again and again. Returns true if there is something to log
 * and none of the last `looks` calls returned true. *pause, 0 at first, is how many calls of the
 * pause are left.
 */
bool log_again_after(unsigned looks, unsigned *pause, bool something);

#endif
