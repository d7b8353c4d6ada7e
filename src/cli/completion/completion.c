#include "cli/completion/completion.h"

#include <stdlib.h>

static const struct {
    const char *name;
    void (*print)(const struct completion_tree *tree);
} shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};

void completion_put_quoted(const char *text, const char *quote)
{
    (void)putchar('\'');
    for (; *text != 0; text++) {
        const char plain[2] = {*text, 0};
        (void)fputs(*text == '\'' ? quote : plain, stdout);
    }
    (void)putchar('\'');
}

static int run(const struct cli_given *given, void *settings)
{
    (void)settings;
    struct completion_tree *tree = malloc(sizeof *tree);
    int code = tree == NULL || !completion_make(tree) ? cli_fail(&cli_completion, "out of memory")
                                                      : CLI_END;
    for (size_t i = 0; code == CLI_END && i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(given->operands[0], shells[i].name) == 0) {
            shells[i].print(tree);
            code = CLI_OK;
        }
    }
    free(tree);
    return code != CLI_END ? code
                           : cli_complain(&cli_completion, "found '%s', expected %s",
                                          given->operands[0], cli_completion.operands);
}

const struct cli_command cli_completion = {"completion", "bash|zsh|fish",
                                           "print a script that completes command lines in a shell",
                                           .run = run};
