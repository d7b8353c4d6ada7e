/*
 * Colours for people. They are written only to a terminal, and not if the variable NO_COLOR is set
 * to anything (no-color.org) or TERM is dumb: a file or a program gets the words alone.
 */
#ifndef WEIR_CLI_OUTPUT_COLOUR_H
#define WEIR_CLI_OUTPUT_COLOUR_H

#include <stdio.h>

enum colour {
    COLOUR_GOOD,    /* allowed, no errors */
    COLOUR_WARNING, /* denied for now, probably not what was meant */
    COLOUR_BAD,     /* denied for ever, errors */
    COLOUR_TITLE,   /* the line above a table, the name before a message */
    COLOURS
};

/* Return what begins and ends a colour in this stream; "" where none are written. */
const char *colour_begin(FILE *out, enum colour colour);
const char *colour_end(FILE *out);

#endif
