/* What only the store's side knows to be wrong with a rule file, for `weir config`. */
#ifndef WEIR_CLI_CONFIG_CONFIG_STORE_H
#define WEIR_CLI_CONFIG_CONFIG_STORE_H

#include "rules/file/show.h"

/* Tells what `weir serve` would refuse, and what may not be meant. 0, WEIR_ERULES. */
int config_check_store(const struct config *config, struct problems *problems);

/* For config_show(): where leases are not worth it. */
bool config_note_store(const struct config *config, const struct limit_config *limit,
                       char to[SHOW_NOTE_MAX]);

#endif
