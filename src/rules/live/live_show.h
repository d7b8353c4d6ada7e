/*
 * Shows the rules in use as text, as `weir config show` prints them, including limits that were put
 * in one by one.
 */
#ifndef WEIR_RULES_LIVE_LIVE_SHOW_H
#define WEIR_RULES_LIVE_LIVE_SHOW_H

#include "rules/file/config.h"

/* Settings that a server has taken from its rule file, flags and variables at its start. */
struct live_settings {
    struct server_config server;
    struct store_config store;
};

/*
 * Writes YAML with comments, with these settings instead of those of the rule file (NULL: those of
 * the file); the last comment names the limits that are switched to shadow by hand.
 * The caller frees *text, which has a NUL byte after its len bytes. Returns 0, or WEIR_ENOMEM with
 * *text NULL.
 */
int live_show(struct weir_rules *rules, const struct live_settings *in_effect, char **text,
              size_t *len);

#endif
