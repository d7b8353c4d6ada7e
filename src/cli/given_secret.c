#include "cli/given_secret.h"

#include <stdlib.h>

#define FILE_MAX 65536

int given_secret_take(struct given_secret *given, const struct cli_command *command,
                      struct weir_text from, const char *source)
{
    struct weir_text line = {"", 0};
    while (line.len == 0 && from.len > 0) {
        line = text_trim(text_cut(&from, '\n'));
    }
    if (line.len == 0 || line.len > ACCESS_SECRET_MAX) {
        return cli_complain(command, "%s: found a secret of %zu bytes, expected 1 to %d", source,
                            line.len, ACCESS_SECRET_MAX);
    }
    memcpy(given->secret, line.at, line.len);
    given->secret[line.len] = 0;
    given->source = source;
    return CLI_OK;
}

static int read_file(struct given_secret *given, const struct cli_command *command,
                     const char *path)
{
    static char text[FILE_MAX];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return cli_complain(command, "--secret-file: cannot read %s: %m", path);
    }
    size_t n = fread(text, 1, sizeof text, file);
    int code = ferror(file) != 0
                   ? cli_complain(command, "--secret-file: cannot read %s: %m", path)
                   : given_secret_take(given, command, (struct weir_text){text, n}, path);
    (void)fclose(file);
    explicit_bzero(text, sizeof text);
    return code;
}

int given_secret_read(struct given_secret *given, const struct cli_command *command,
                      const char *file, const char *const *variables)
{
    if (file != NULL) {
        return read_file(given, command, file);
    }
    for (; *variables != NULL; variables++) {
        const char *value = getenv(*variables);
        if (value != NULL && value[0] != 0) {
            return given_secret_take(given, command, text_of(value), *variables);
        }
    }
    return CLI_OK;
}
