/*
 * The terminal while a program paints on all of it: another screen, keys without
 * Enter, no cursor. However the program ends, short of SIGKILL, the terminal is
 * given back as it was. Signals come in only while terminal_wait() waits, so none is missed.
 */
#ifndef WEIR_CLI_TERMINAL_H
#define WEIR_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

enum terminal_event {
    TERMINAL_TIME,    /* the time is over */
    TERMINAL_KEY,     /* one was pressed */
    TERMINAL_RESIZED, /* paint again */
    TERMINAL_ENDED    /* by a signal, or nobody is there any more */
};

/* True if both standard input and output are one. */
bool terminal_is_there(void);

bool terminal_open(void); /* false, with errno: nothing was changed */
void terminal_close(void);

/* Suspends the program when it was asked to (Ctrl-Z), and comes back. */
enum terminal_event terminal_wait(uint64_t until_ms, char *key);

/* The clock of until_ms. */
uint64_t terminal_now_ms(void);

void terminal_size(unsigned *columns, unsigned *rows);

/* Paints lines from the top; what was there before is gone. */
bool terminal_paint(struct text lines);

/* The signal that ended it, 0 if none did. */
int terminal_signal(void);

#endif
