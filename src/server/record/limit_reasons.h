/*
 * Counts the denials of each limit by their reason, but for those whose reason is the units of the
 * limit: these are the rest of its denials, so that the usual denial counts nothing here.
 *
 * The table has a fixed size. A limit enters it with its first such denial and stays, also when the
 * rules no longer have it: operators name limits, so there are few. If the table is full, the
 * denials of further limits are not told apart. Rows are found without a lock: the name of a row is
 * written before `used` is set, with release, and read after that, with acquire (R1).
 */
#ifndef WEIR_SERVER_RECORD_LIMIT_REASONS_H
#define WEIR_SERVER_RECORD_LIMIT_REASONS_H

#include <stdint.h>

#include <weir_rules.h>

/* Reasons by which denied requests are counted: enum weir_rules_reason. */
#define REQUEST_REASONS (WEIR_REASON_DEGRADED + 1)

#define REASON_ROWS 2048
#define REASON_TABLE 340000 /* memory of the table, at most */

struct limit_reasons;

/* Returns NULL if out of memory. */
struct limit_reasons *limit_reasons_create(void);
void limit_reasons_destroy(struct limit_reasons *reasons); /* NULL is allowed */

/* Counts a denial, from any thread. */
void limit_reasons_count(struct limit_reasons *reasons, const char *limit, int reason);

/* Reads the counts of a limit by reason; all are 0 if it has none. `reasons` may be NULL. */
void limit_reasons_read(const struct limit_reasons *reasons, const char *limit,
                        uint64_t counts[REQUEST_REASONS]);

/* Sets the table that limit_reasons_note() writes to when this thread calls it; NULL: none. */
void limit_reasons_use(struct limit_reasons *reasons);

/* Counts a denial in the thread's table. */
void limit_reasons_note(const char *limit, int reason);

#endif
