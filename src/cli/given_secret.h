/* A secret that the person at the command line gives: in a file, or in a variable. */
#ifndef WEIR_CLI_GIVEN_SECRET_H
#define WEIR_CLI_GIVEN_SECRET_H

#include "cli/cli.h"
#include "common/text.h"
#include "server/access/access.h"

struct given_secret {
    const char *source; /* path of the file, or name of the variable; NULL: no secret */
    char secret[ACCESS_SECRET_MAX + 1];
};

/*
 * Takes the secret from the file, otherwise from the first of the variables that is set and not
 * empty: its first line that is not empty. `file` may be NULL; `variables` has NULL after the last.
 * Without any of them there is no secret. Returns CLI_OK, or CLI_USAGE after a message.
 */
int given_secret_read(struct given_secret *given, const struct cli_command *command,
                      const char *file, const char *const *variables);

/* Takes the first line of `from` that is not empty; `source` is not copied. Returns the same. */
int given_secret_take(struct given_secret *given, const struct cli_command *command,
                      struct weir_text from, const char *source);

#endif
