/* Rules as they came out of the file: every default filled in, secrets hidden, memory told. */
#ifndef WEIR_POLICY_SHOW_H
#define WEIR_POLICY_SHOW_H

#include <stdio.h>

#include "policy/config.h"

/* YAML that reads back as the same rules (but for a hidden password), with comments. */
void config_show(const struct config *config, FILE *out);

#endif
