/* One line on standard error that shows how far a long command is, redrawn in place. */
#ifndef WEIR_CLI_OUTPUT_PROGRESS_BAR_H
#define WEIR_CLI_OUTPUT_PROGRESS_BAR_H

#include <stdbool.h>
#include <stdint.h>

/* How often a bar is worth drawing. */
#define PROGRESS_BAR_NS (100 * WEIR_MILLISECOND)

/* True if standard error is a terminal. */
bool progress_bar_is_seen(void);

/* Draws the bar and a text after it; with a total of 0, the text alone. */
void progress_bar_draw(uint64_t done, uint64_t total, const char *text);
void progress_bar_clear(void);

#endif
