/*
 * Shows the rules in use as text, as `weir config show` prints them, including limits that were put
 * in one by one.
 */
#ifndef WEIR_RULES_LIVE_LIVE_SHOW_H
#define WEIR_RULES_LIVE_LIVE_SHOW_H

#include <weir_rules.h>

/*
 * Writes YAML with comments; the last comment names the limits that are switched to shadow by hand.
 * The caller frees *text, which has a NUL byte after its len bytes. Returns 0, or WEIR_ENOMEM with
 * *text NULL.
 */
int live_show(struct weir_rules *rules, char **text, size_t *len);

#endif
