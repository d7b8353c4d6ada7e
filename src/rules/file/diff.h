/* Tells what changes from one rule file to another, as lines for people. */
#ifndef WEIR_RULES_FILE_DIFF_H
#define WEIR_RULES_FILE_DIFF_H

#include "rules/file/config.h"

/* Called with each change: "search: rate 100/min -> 200/min, burst 100 -> 200; keys kept". */
typedef void (*config_diff_fn)(void *arg, const char *line);

/*
 * Compares the limits, the lists, the attributes and server.memory as `weir config show`
 * shows them. (config_compare() tells what only a restart applies.) Returns the number
 * of changes, or WEIR_ENOMEM.
 */
int config_diff(const struct config *old, const struct config *next, config_diff_fn tell,
                void *arg);

#endif
