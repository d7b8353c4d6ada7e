#include "cli/output/colour.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ANSI colours by number, so that they are those of the terminal's theme. */
static const char *const codes[COLOURS] = {[COLOUR_GOOD] = "\33[32m",
                                           [COLOUR_WARNING] = "\33[33m",
                                           [COLOUR_BAD] = "\33[31m",
                                           [COLOUR_TITLE] = "\33[1m"};

/* Keeps errno, which the message that is printed next may tell. */
static bool is_on(FILE *out)
{
    const char *no = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    int before = errno;
    bool shown = isatty(fileno(out)) == 1;
    errno = before;
    return shown && (no == NULL || no[0] == 0) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

const char *colour_begin(FILE *out, enum colour colour)
{
    return is_on(out) ? codes[colour] : "";
}

const char *colour_end(FILE *out)
{
    return is_on(out) ? "\33[0m" : "";
}
