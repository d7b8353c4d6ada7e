/* Checks the files of secrets that a rule file names, for weir config check. */
#ifndef WEIR_CLI_CONFIG_CONFIG_SECRETS_H
#define WEIR_CLI_CONFIG_CONFIG_SECRETS_H

#include "rules/file/config.h"

/* Warns of weak secrets, and of files that cannot be read here. `path` is that of the rules. */
void config_check_secrets(const struct config *config, const char *path, struct problems *problems);

#endif
