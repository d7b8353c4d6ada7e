/* weir config check, weir config show: read a rule file as the server would. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/config/config_store.h"
#include "rules/compiled/ruleset.h"
#include "rules/file/show.h"

static int run_check(int argc, char **argv);
static int run_show(int argc, char **argv);

const struct cli_command cli_config_check = CLI_PLAIN_COMMAND(
    "config check", "FILE", "say what is wrong with a rule file, all of it", run_check);
const struct cli_command cli_config_show =
    CLI_PLAIN_COMMAND("config show", "FILE",
                      "print a rule file with its defaults and the memory of its limits", run_show);

void cli_tell_rules(void *arg, const struct weir_rules_message *message)
{
    (void)arg;
    const char *kind = message->severity == WEIR_RULES_WARNING ? "warning: " : "";
    if (message->line > 0) {
        (void)fprintf(stderr, "%s:%u:%u: %s%s\n", message->file, message->line, message->column,
                      kind, message->text);
    } else {
        (void)fprintf(stderr, "%s: %s%s\n", message->file, kind, message->text);
    }
}

/* Returns the single operand; NULL after a message or --help, with the exit code in *code. */
static const char *read_operand(const struct cli_command *command, int argc, char **argv, int *code)
{
    struct cli_args args;
    const char *file = NULL;
    cli_args_init(&args, command, argc, argv);
    for (int row; (row = cli_next(&args)) != CLI_END;) {
        if (row == CLI_HELP || row == CLI_BAD) {
            *code = row == CLI_HELP ? CLI_OK : CLI_USAGE;
            return NULL;
        }
        if (file != NULL) {
            *code = cli_complain(command, "found '%s' and '%s', expected one file or folder", file,
                                 args.value);
            return NULL;
        }
        file = args.value;
    }
    if (file == NULL) {
        *code = cli_complain(command, "expected a file, or a folder of *.yaml");
    }
    return file;
}

/*
 * Compiles the rules without making limiters, and reports everything that weir_rules_open()
 * would refuse. Returns the exit code.
 */
static int read_rules(const struct cli_command *command, const char *path, struct ruleset **set)
{
    struct problems problems = {.tell = cli_tell_rules};
    struct weir_error error = {0};
    struct config config = {.fleet = FLEET_AS_FILE};
    int e = config_read(&config, path, &problems);
    if (e == 0) {
        e = ruleset_create(&config, NULL, NULL, NULL, &problems, set, &error);
    }
    if (e == 0) {
        e = config_check_store(&(*set)->config, &problems);
    }
    problems_finish(&problems);
    config_finish(&config);
    if (e == 0) {
        return CLI_OK;
    }
    if (e != WEIR_ERULES) {
        (void)cli_complain(command, "%s: %s", path, weir_strerror(e));
        return CLI_FAILED;
    }
    (void)fprintf(stderr, "%u error%s\n", problems.errors, problems.errors == 1 ? "" : "s");
    return CLI_USAGE;
}

static int run_check(int argc, char **argv)
{
    struct ruleset *set = NULL;
    int code = CLI_OK;
    const char *path = read_operand(&cli_config_check, argc, argv, &code);
    if (path == NULL) {
        return code;
    }
    code = read_rules(&cli_config_check, path, &set);
    if (code == CLI_OK) {
        (void)printf("%s: ok, %zu limit%s\n", path, set->rules_count,
                     set->rules_count == 1 ? "" : "s");
    }
    ruleset_destroy(set);
    return code;
}

static int run_show(int argc, char **argv)
{
    struct ruleset *set = NULL;
    int code = CLI_OK;
    const char *path = read_operand(&cli_config_show, argc, argv, &code);
    if (path == NULL) {
        return code;
    }
    code = read_rules(&cli_config_show, path, &set);
    if (code == CLI_OK) {
        config_show(&set->config, config_note_store, stdout);
    }
    ruleset_destroy(set);
    return code;
}
