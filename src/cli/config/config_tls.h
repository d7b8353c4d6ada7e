/* Messages of `weir config check` about TLS on listeners. */
#ifndef WEIR_CLI_CONFIG_CONFIG_TLS_H
#define WEIR_CLI_CONFIG_CONFIG_TLS_H

#include "rules/file/config.h"

/* Warns of a certificate that cannot be used, and of listeners that other machines can reach
 * without TLS. */
void config_check_tls(const struct config *config, const char *path, struct problems *problems);

#endif
