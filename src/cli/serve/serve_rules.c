/* Opens the rules of weir serve. */
#include "cli/serve/serve.h"

#include <sys/resource.h>

#include "rules/live/live.h"
#include "server/record/denied_log.h"

/*
 * True at the start with a text log: messages are then printed as `weir config check` prints
 * them, for a person at a terminal. Otherwise they go to the log.
 */
static bool for_people;

static void tell(void *arg, const struct weir_rules_message *message)
{
    if (for_people) {
        cli_tell_rules(arg, message);
    } else {
        server_log_message(NULL, message);
    }
}

/*
 * Raises the limit of open files, because each limit with state on disk is an open file.
 * server_start() checks how many are left for connections.
 */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Sets where the state is kept: --state takes precedence over the rule file. */
static void choose_state(const char *state, struct weir_rules_options *o)
{
    if (state == NULL) {
        o->flags |= WEIR_RULES_SERVER_STATE;
    } else if (strcmp(state, "off") != 0) {
        o->state = state;
    }
}

/* Clients are not told which entry denied them. */
static void tell_listed(void *arg, const char *file, unsigned line)
{
    static struct log_limit limit;
    (void)arg;
    LOG_LIMITED(&limit, LEVEL_INFO, "request denied by the block list", LOG_STRING("file", file),
                LOG_COUNT("line", line));
}

/* One line a minute: a caller that misspells a name does so in each of its requests. */
static void tell_misspelt(void *arg, const char *name, size_t name_len, const char *meant)
{
    static struct log_limit limit = {.every_ns = 60 * WEIR_SECOND};
    (void)arg;
    LOG_LIMITED(&limit, LEVEL_WARNING, "a request has an attribute that no rule uses",
                LOG_TEXT("found", ((struct weir_text){name, name_len})),
                LOG_STRING("expected", meant));
}

int serve_open_rules(const struct serve_settings *settings, struct weir_fleet *fleet,
                     struct weir_rules **rules)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    o.message = tell;
    choose_state(settings->state, &o);
    allow_files();
    o.denied = denied_note;
    o.listed = tell_listed;
    o.misspelt = tell_misspelt;
    o.fleet = fleet;
    for_people = settings->log_format == LOG_AS_TEXT;
    int e = settings->config != NULL ? weir_rules_open(rules, settings->config, &o, &error)
                                     : weir_rules_open_text(rules, "example", serve_example,
                                                            serve_example_size, &o, &error);
    for_people = false;
    if (e == WEIR_ERULES) {
        return CLI_USAGE; /* all errors have been printed */
    }
    return e == 0 ? CLI_OK : cli_fail(&cli_serve, "%s", error.text);
}

void serve_warn_of_gateways(struct weir_rules *rules, const struct serve_settings *settings)
{
    if (strcmp(settings->server.listen[PROTOCOL_HTTP], "off") != 0) {
        for_people = settings->log_format == LOG_AS_TEXT;
        rules_serve_gateways(rules);
        for_people = false;
    }
}
