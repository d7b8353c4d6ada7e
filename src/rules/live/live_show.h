/* The rules in use as text: what `weir config show` prints, limits put in one by one included. */
#ifndef WEIR_RULES_LIVE_LIVE_SHOW_H
#define WEIR_RULES_LIVE_LIVE_SHOW_H

#include <weir_rules.h>

/*
 * YAML with comments, the last of which names what is switched to shadow by hand. *text is
 * the caller's, to be freed, with a 0 behind its len bytes. 0; WEIR_ENOMEM: *text is NULL.
 */
int live_show(struct weir_rules *rules, char **text, size_t *len);

#endif
