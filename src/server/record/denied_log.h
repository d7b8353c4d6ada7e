/*
 * Logs denials of the limits that ask for it (`log: {denied: 10/s}`), at most as many lines as the
 * limit allows in each period, whatever clients do. Denials without a line are counted.
 *
 * The first denial of each key and reason gets a line, then every DENIED_LOG_EACH-th; the line has
 * its number. To know that, a table of fixed size remembers keys by a keyed hash. A key takes the
 * place of the one in its set that was denied longest ago; a key that was forgotten in this way
 * counts as new. The table has several parts, each under its own lock, so that threads seldom meet.
 * Nothing here is touched by denials of limits without `log`.
 */
#ifndef WEIR_SERVER_RECORD_DENIED_LOG_H
#define WEIR_SERVER_RECORD_DENIED_LOG_H

#include <stdbool.h>

#include <weir_rules.h>

#define DENIED_LOG_EACH 100
#define DENIED_LOG_KEYS 8192 /* keys that are remembered, for all limits together */

struct denied_log;

/* Returns NULL if out of memory. */
struct denied_log *denied_log_create(void);
void denied_log_destroy(struct denied_log *log); /* NULL is allowed */

/* The parts of a log line that do not come from the denial itself. */
struct denied_line {
    uint64_t times;    /* the denial's number among those of this key and reason */
    uint64_t left_out; /* denials of the limit since its last line */
};

/* Returns whether a denial gets a line, at the time denial->now_ns. If not, counts it. */
bool denied_log_due(struct denied_log *log, const struct weir_rules_denial *denial,
                    struct denied_line *line);

/* Returns how many denials of a limit have got no line, although it has `log`. */
uint64_t denied_log_left_out(const struct denied_log *log, const char *limit);

/* Sets the log that denied_note() uses when this thread calls it; NULL: none. */
void denied_log_use(struct denied_log *log);

/* Counts the key among those that are denied most (top_denied.h), and logs the denial if its limit
 * asks for it. It is to be weir_rules_options.denied. */
void denied_note(void *arg, const struct weir_rules_denial *denial);

#endif
