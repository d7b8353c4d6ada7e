/*
 * The terminal while a program paints on its whole screen: alternate screen, keys without Enter,
 * no cursor. However the program ends, except by SIGKILL, the terminal is restored. Signals are
 * delivered only while terminal_wait() waits, so none is missed.
 */
#ifndef WEIR_CLI_TERMINAL_H
#define WEIR_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

enum terminal_event {
    TERMINAL_TIME,    /* until_ms has passed */
    TERMINAL_KEY,     /* a key was pressed */
    TERMINAL_RESIZED, /* paint again */
    TERMINAL_ENDED    /* a signal came, or the terminal is gone */
};

/* Returns true if standard input and output are both a terminal. */
bool terminal_is_there(void);

bool terminal_open(void); /* false, with errno: the terminal cannot be used */
void terminal_close(void);

/*
 * Waits for an event, at most until until_ms by clock_monotonic_ns(). On Ctrl-Z it suspends the
 * program, and continues after it is resumed.
 */
enum terminal_event terminal_wait(uint64_t until_ms, char *key);

void terminal_size(unsigned *columns, unsigned *rows);

/* Paints lines from the top, in place of the previous content. Returns false if writing failed. */
bool terminal_paint(struct weir_text lines);

/* Returns the signal that ended the program, 0 if there was none. */
int terminal_signal(void);

#endif
