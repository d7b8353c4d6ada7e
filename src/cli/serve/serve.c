/* weir serve: the server, from the first argument to the exit code. */
#include "cli/serve/serve.h"

#include <stdlib.h>
#include <unistd.h>

#include <weir_fleet.h>

#include "base/clock.h"
#include "cli/port_holder.h"
#include "cli/serve/serve_loop.h"
#include "cli/serve/serve_seccomp.h"
#include "cli/serve/serve_signals.h"
#include "cli/serve/serve_sockets.h"
#include "server/loop/server_fleet.h"

struct serve_run {
    struct server server;
    struct notify notify;
    struct watch watch;
    struct sockets sockets;
    int signals;
};

/*
 * Prints what went wrong, which setting asked for it, and what to do if that is known. Returns
 * the exit code.
 */
static int complain_start(const struct server *server, const struct serve_settings *settings, int e,
                          const struct weir_error *error)
{
    if (server->failed < 0) {
        (void)cli_complain(&cli_serve, "%s", error->text);
    } else {
        const char *name = protocol_of((unsigned)server->failed)->name;
        char holder[PORT_HOLDER_MAX];
        bool held = port_holder(server->options.listen[server->failed], holder);
        (void)cli_complain(&cli_serve, "%s (from %s)%s%s%s%s%s", error->text,
                           settings->listen_from[server->failed], held ? ": it belongs to " : "",
                           holder, e == WEIR_EINVAL ? "" : "; choose another with --",
                           e == WEIR_EINVAL ? "" : name,
                           e == WEIR_EINVAL ? "" : " ADDR:PORT, or off");
    }
    return e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
}

/* Starts the server, runs the loop, and stops the server. Returns the exit code. */
static int serve_rules(struct serve_run *run, struct serve_settings *settings)
{
    struct weir_error error;
    struct serve_loop loop = {.server = &run->server,
                              .notify = &run->notify,
                              .watch = &run->watch,
                              .signals = run->signals};
    serve_loop_join(&loop);
    int e = server_start(&run->server, &error);
    if (e != 0) {
        return complain_start(&run->server, settings, e, &error);
    }
    serve_write_secret(&run->server, settings);
    serve_announce(&run->server, settings);
    notify_send(&run->notify, "READY=1\nSTATUS=serving");
    serve_loop_run(&loop);
    notify_send(&run->notify,
                "STOPPING=1\nSTATUS=stopping, answering the requests that have arrived");
    serve_remove_secret(settings);
    server_stop(&run->server);
    LOG(LEVEL_INFO, "stopped");
    return CLI_OK;
}

/* Watches the files that are read with the rules: secrets and certificates. */
static void watch_access(struct watch *watch, const struct serve_settings *settings)
{
    const struct server_tls_options *tls = &settings->server.tls;
    const char *const files[WATCH_ALSO] = {settings->secrets.file[ROLE_CHECK],
                                           settings->secrets.file[ROLE_ADMIN], tls->cert, tls->key,
                                           tls->client_ca};
    watch_also(watch, files);
}

static int serve(struct serve_run *run, struct serve_settings *settings)
{
    run->watch = WATCH_NOTHING;
    if (!settings->no_watch) {
        watch_open(&run->watch, settings->config, true);
    }
    int code = serve_open_rules(settings, run->server.fleet.fleet, &run->server.rules);
    if (code != CLI_OK) {
        return code;
    }
    serve_keep_nodes(run->server.fleet.fleet, run->server.rules->state);
    code = serve_take_file(run->server.rules, settings);
    code = code != CLI_OK ? code : sockets_assign(&run->sockets, settings);
    code = code != CLI_OK ? code : serve_check_listeners(settings);
    code = code != CLI_OK ? code : serve_check_demo(settings);
    code = code != CLI_OK ? code : serve_check_client(run->server.rules, settings);
    if (code == CLI_OK) {
        serve_warn_of_gateways(run->server.rules, settings);
    }
    code = code != CLI_OK ? code : serve_choose_tls(run->server.rules, settings);
    watch_access(&run->watch, settings);
    code = code != CLI_OK ? code : serve_open_access(run->server.rules, settings);
    watch_begin(&run->watch, run->server.rules, clock_monotonic_ns());
    if (code == CLI_OK) {
        run->server.options = settings->server;
        code = serve_rules(run, settings);
    }
    watch_close(&run->watch);
    weir_rules_close(run->server.rules);
    return code;
}

static int start(struct serve_run *run, struct serve_settings *settings)
{
    struct weir_fleet *fleet = NULL;
    log_init(STDERR_FILENO, (enum log_format)settings->log_format,
             (enum log_keys)settings->log_keys);
    log_set_level((enum log_level)(LEVEL_ERROR + settings->log_level));
    serve_check_environment();
    run->signals = serve_signals_open();
    if (run->signals < 0) {
        return CLI_FAILED;
    }
    serve_seccomp(settings->seccomp);
    notify_open(&run->notify);
    int code = sockets_take(&run->sockets);
    code = code == CLI_OK ? serve_open_fleet(settings, &fleet) : code;
    if (code == CLI_OK) { /* the fleet is opened first and closed last: rules name limits of it */
        run->server.fleet = fleet_serve(fleet);
        code = serve(run, settings);
    }
    weir_fleet_close(fleet);
    sockets_close(&run->sockets);
    notify_close(&run->notify);
    (void)close(run->signals);
    return code;
}

int serve_command(const struct cli_given *given, void *settings)
{
    struct serve_run *all = calloc(1, sizeof *all);
    int code = serve_read_variables(given, settings);
    code = code == CLI_OK ? serve_join_config(settings) : code;
    if (code == CLI_OK) {
        code = all != NULL ? start(all, settings) : cli_fail(&cli_serve, "out of memory");
    }
    serve_finish_settings(settings);
    free(all);
    return code;
}
