/* Checks of a rule file that need knowledge of the store, for `weir config`. */
#ifndef WEIR_CLI_CONFIG_CONFIG_STORE_H
#define WEIR_CLI_CONFIG_CONFIG_STORE_H

#include "rules/file/show.h"

/*
 * Reports what `weir serve` would refuse, and warns of what may not be intended. Returns 0, or
 * WEIR_ERULES if there are errors.
 */
int config_check_store(const struct config *config, struct problems *problems);

/*
 * Returns true if a shared limit is divided by the number of nodes without the store, and that
 * number is counted: nodes that start while the store is away may not know the others.
 */
bool config_bound_is_counted(const struct config *config);

/*
 * Writes a note for config_show() if some rates of a leased limit are too small for leases.
 * Returns true if there is a note.
 */
bool config_note_store(const struct config *config, const struct limit_config *limit,
                       char to[SHOW_NOTE_MAX]);

#endif
