/* weir config check, weir config show: read a rule file as the server would. */
#include "cli/cli.h"
#include "cli/config/config_secrets.h"
#include "cli/config/config_store.h"
#include "cli/config/config_tls.h"
#include "cli/output/colour.h"
#include "rules/compiled/ruleset.h"
#include "rules/envoy/envoy.h"
#include "rules/file/diff.h"
#include "rules/file/show.h"
#include "rules/file/yaml_write.h"

/*
 * Reports a unix socket for HTTP whose gateway's field is not named although the rules use the
 * client's address. `weir serve` refuses it too, unless --client-field names the field.
 */
static void check_client(const struct ruleset *set, struct problems *problems)
{
    const struct server_config *server = &set->config.server;
    if (text_starts(server->http, "unix:") && server->client_field == CLIENT_FIELD_ANY &&
        ruleset_needs_ip(set)) {
        problem(problems, set->config.server_place,
                "found a unix socket for http and rules that use 'ip', expected 'client_field': a "
                "unix socket does not show the client's address, so name the header field in which "
                "your gateway writes it, such as 'client_field: x-forwarded-for'");
    }
}

/*
 * Makes every check of the rules, after errors too, so that one run reports all of them. Compiles
 * what could be read, without making limiters. Returns 0 or an error.
 */
static int check_rules(struct config *config, const char *path, struct problems *problems,
                       struct ruleset **set)
{
    struct weir_error error = {0};
    config_warn(config, path, problems);
    (void)config_check_store(config, problems);
    config_check_secrets(config, path, problems);
    config_check_tls(config, path, problems);
    int e = ruleset_create(config, NULL, NULL, NULL, problems, set, &error);
    if (e == 0) {
        check_client(*set, problems);
        e = problems->errors == 0 ? 0 : WEIR_ERULES;
    }
    return e;
}

/*
 * Reports everything that weir_rules_open() would refuse, and what an operator should know.
 * Returns the exit code.
 */
static int read_rules(const struct cli_command *command, const char *path, struct ruleset **set)
{
    struct problems problems = {.tell = cli_tell_rules};
    struct config config = {.fleet = FLEET_AS_FILE};
    int e = config_read(&config, path, &problems);
    if (e == 0 || e == WEIR_ERULES) {
        e = check_rules(&config, path, &problems, set);
    }
    problems_finish(&problems);
    config_finish(&config);
    if (e == 0) {
        return CLI_OK;
    }
    if (e != WEIR_ERULES) {
        return cli_fail(command, "%s: %s", path, weir_strerror(e));
    }
    (void)fprintf(stderr, "%u error%s\n", problems.errors, problems.errors == 1 ? "" : "s");
    return CLI_USAGE;
}

/* True if one of the sources under `attributes` gives the attribute with this number. */
static bool is_derived(const struct ruleset *set, unsigned number)
{
    size_t i = 0;
    while (i < set->derived_count && set->derived[i].attribute != number) {
        i++;
    }
    return i < set->derived_count;
}

/*
 * Lists the attributes that the rules use and callers of the API must give: path, method, host and
 * ip first. Names of sources have a colon.
 */
static void list_sent(const struct ruleset *set)
{
    const char *before = "callers must send: ";
    for (unsigned i = 0; i < set->attributes_count; i++) {
        struct weir_text name = set->attributes[i];
        if (name.len > 0 && !is_derived(set, i) && memchr(name.at, ':', name.len) == NULL &&
            !envoy_has_attribute(name)) {
            (void)printf("%s%.*s", before, TEXT_ARGS(name));
            before = ", ";
        }
    }
    (void)fputs(before[0] == ',' ? "\n" : "", stdout);
}

static void print_change(void *arg, const char *line)
{
    (void)arg;
    (void)printf("%s\n", line);
}

/* Prints what would change if a server with the rules of *old read those of *next. */
static int compare(const struct cli_command *command, const struct ruleset *old,
                   const struct ruleset *next, const char *path)
{
    struct problems problems = {.tell = cli_tell_rules};
    int changes = config_diff(&old->config, &next->config, print_change, NULL);
    config_compare(&old->config, &next->config, path, &problems);
    problems_finish(&problems);
    if (changes < 0) {
        return cli_fail(command, "%s", weir_strerror(changes));
    }
    if (changes == 0 && problems.warnings == 0) {
        (void)puts("unchanged");
    }
    return CLI_OK;
}

/* Checks the second file too, and compares it with the first. */
static int run_compare(const struct cli_given *given, const struct ruleset *old)
{
    const char *path = given->operands[1];
    struct ruleset *next = NULL;
    int code = read_rules(given->command, path, &next);
    code = code == CLI_OK ? compare(given->command, old, next, path) : code;
    ruleset_destroy(next);
    return code;
}

/* Prints one key of a converted limit; of `replaces`, only names that limits have. */
static void print_key(const struct config *config, const struct node *limit, size_t k)
{
    struct weir_text key = limit->keys[k]->scalar;
    struct weir_text name = node_find(limit, "name")->scalar;
    const struct texts *names = NULL;
    for (size_t i = 0; text_is(key, "replaces") && i < config->limits_count; i++) {
        names = text_equal(config->limits[i]->name, name) ? &config->limits[i]->replaces : names;
    }
    if (names != NULL && names->count == 0) {
        return;
    }
    (void)printf("%s%s: ", k == 0 ? "  - " : "    ", key.at);
    if (names != NULL) {
        yaml_put_list(stdout, names);
    } else {
        yaml_put_node(stdout, limit->items[k]);
    }
    (void)putchar('\n');
}

/* Prints the limits that files of another format have become, without defaults. */
static void convert(const struct config *config)
{
    (void)puts("limits:");
    for (size_t i = 0; i < config->sources_count; i++) {
        const struct source *source = config->sources[i];
        const struct node *limits =
            source->domain.len > 0 ? node_find(source->root, "limits") : NULL;
        for (size_t j = 0; limits != NULL && j < limits->count; j++) {
            const struct node *limit = limits->items[j];
            for (size_t k = 0; k < limit->count; k++) {
                print_key(config, limit, k);
            }
        }
    }
}

static int run_convert(const struct cli_given *given, void *settings)
{
    struct ruleset *set = NULL;
    (void)settings; /* there is one format to convert from */
    int code = read_rules(given->command, given->operands[0], &set);
    if (code == CLI_OK) {
        convert(&set->config);
    }
    ruleset_destroy(set);
    return code;
}

static int run(const struct cli_given *given, void *settings)
{
    const char *path = given->operands[0];
    struct ruleset *set = NULL;
    (void)settings;
    if (given->count > 2) {
        return cli_complain(given->command, "found %d files, expected one, or two to compare",
                            given->count);
    }
    int code = read_rules(given->command, path, &set);
    if (code == CLI_OK && given->count > 1) {
        code = run_compare(given, set);
        ruleset_destroy(set);
        return code;
    }
    if (code == CLI_OK && given->command == &cli_config_show) {
        config_show(&set->config, config_note_store, stdout);
    } else if (code == CLI_OK) {
        (void)printf("%s: %sok%s, %zu limit%s\n", path, colour_begin(stdout, COLOUR_GOOD),
                     colour_end(stdout), set->rules_count, set->rules_count == 1 ? "" : "s");
        list_sent(set);
        if (config_bound_is_counted(&set->config)) {
            (void)puts("without the store, 'on_store_failure: local' divides limits by the nodes "
                       "that were counted; only 'fleet_size' guarantees its bound");
        }
    }
    ruleset_destroy(set);
    return code;
}

const struct cli_command cli_config_check = {
    "config check", "FILE|DIR [NEW]",
    "report all errors of a rule file; with NEW, what changes if that replaces it", .run = run};
const struct cli_command cli_config_show = {
    "config show", "FILE|DIR",
    "print a rule file with all defaults filled in, and the memory of its limits", .run = run};

/* ---- converting ---- */

struct convert_settings {
    int from;
};

static const char *const formats[] = {"envoy", NULL};

static const struct cli_option convert_options[] = {
    {"--from", "envoy", "the format of the files: envoyproxy/ratelimit's", cli_read_choice,
     .to = offsetof(struct convert_settings, from), .choices = formats},
};

static const struct convert_settings convert_defaults = {0};

const struct cli_command cli_config_convert =
    CLI_COMMAND("config convert", "FILE|DIR",
                "print the limits of files for Envoy's reference rate limit server as a rule file",
                convert_options, convert_defaults, run_convert);
