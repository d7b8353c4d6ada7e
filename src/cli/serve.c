/* weir serve: the server. Signals are waited for here; everything else happens in its threads. */
#include "cli/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

const char *const serve_protocol_names[PROTOCOLS] = {"resp", "http", "admin"};

static int run(int argc, char **argv);

const struct cli_command cli_serve =
    CLI_COMMAND("serve", "", "answer over RESP and HTTP", serve_options, run);

/* ---- the program ---- */

/* Returns when it is time to end. */
static void wait_for_signals(const sigset_t *signals, struct server *server)
{
    for (;;) {
        int number = 0;
        if (sigwait(signals, &number) == 0 && number == SIGHUP) {
            (void)server_reload(server, NULL);
        } else if (number == SIGTERM || number == SIGINT) {
            LOG(LEVEL_INFO, "stopping", LOG_STRING("signal", number == SIGTERM ? "TERM" : "INT"));
            return;
        }
    }
}

static void announce(const struct server *server, const struct serve_settings *settings)
{
    char text[PROTOCOLS][128];
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)server_address(server, (enum server_protocol)i, text[i], sizeof text[i]);
    }
    LOG(LEVEL_INFO, "started", LOG_STRING("version", weir_version()),
        LOG_STRING("config", settings->config != NULL ? settings->config : "example"),
        LOG_COUNT("threads", server->threads), LOG_STRING("resp", text[PROTOCOL_RESP]),
        LOG_STRING("http", text[PROTOCOL_HTTP]), LOG_STRING("admin", text[PROTOCOL_ADMIN]));
    if (settings->log_format == LOG_AS_JSON) {
        return;
    }
    (void)printf("weir %s serves %s with %u thread%s\n", weir_version(),
                 settings->config != NULL ? settings->config
                                          : "an example rule set (--config FILE for your own)",
                 server->threads, server->threads == 1 ? "" : "s");
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)printf("  %-6s %s\n", serve_protocol_names[i], text[i]);
    }
    (void)fflush(stdout);
}

/* What went wrong, who asked for it, and what to do where that is known. */
static int complain_start(const struct server *server, const struct serve_settings *settings, int e,
                          const struct weir_error *error)
{
    if (server->failed < 0) {
        (void)cli_complain(&cli_serve, "%s", error->text);
    } else {
        const char *name = serve_protocol_names[server->failed];
        (void)cli_complain(
            &cli_serve, "%s (from %s)%s%s%s", error->text, settings->listen_from[server->failed],
            e == WEIR_EINVAL ? "" : "; choose another with --", e == WEIR_EINVAL ? "" : name,
            e == WEIR_EINVAL ? "" : " ADDR:PORT, or off");
    }
    return e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
}

static int serve_rules(struct server *server, const struct serve_settings *settings,
                       const sigset_t *signals)
{
    struct weir_error error;
    int e = server_start(server, &error);
    if (e != 0) {
        return complain_start(server, settings, e, &error);
    }
    announce(server, settings);
    wait_for_signals(signals, server);
    server_stop(server);
    LOG(LEVEL_INFO, "stopped");
    return CLI_OK;
}

static int serve(struct serve_settings *settings, const sigset_t *signals)
{
    struct server server = {.rules = NULL};
    int code = serve_open_rules(settings, &server.rules);
    if (code != CLI_OK) {
        return code;
    }
    code = serve_take_file(server.rules, settings);
    code = code != CLI_OK ? code : serve_open_access(server.rules, settings);
    if (code == CLI_OK) {
        server.options = settings->server;
        code = serve_rules(&server, settings, signals);
    }
    weir_rules_close(server.rules);
    return code;
}

static int run(int argc, char **argv)
{
    struct serve_settings settings = {.server = {.connections = 10000,
                                                 .connections_per_address = 1000,
                                                 .max_age_ms = SERVER_AGE_MS},
                                      .log_level = LEVEL_INFO};
    sigset_t signals;
    int code = serve_read_options(argc, argv, &settings);
    if (code != CLI_OK) {
        return code == CLI_HELP ? CLI_OK : code;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread: they inherit it */
    (void)signal(SIGPIPE, SIG_IGN);
    log_init(STDERR_FILENO, (enum log_format)settings.log_format, (enum log_keys)settings.log_keys);
    log_set_level((enum log_level)settings.log_level);
    serve_check_environment();
    code = serve(&settings, &signals);
    serve_finish_settings(&settings);
    return code;
}
