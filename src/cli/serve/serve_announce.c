/* Prints where weir serve listens once it is ready and, with the example rules, what to try. */
#include <errno.h>
#include <stdio.h>

#include "cli/serve/serve.h"
#include "fleet/fleet.h"
#include "rules/live/live.h"

#define ADDRESS_BYTES 128

static const char *path_of(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 ? address + 5 : NULL;
}

static void try_resp(const char *address)
{
    const char *path = path_of(address);
    const char *colon = strrchr(address, ':');
    if (path != NULL) {
        (void)printf("  redis-cli -s %s CL.THROTTLE alice 15 30 60\n", path);
    } else if (strncmp(address, "127.0.0.1:", 10) == 0) {
        (void)printf("  redis-cli -p %s CL.THROTTLE alice 15 30 60\n", colon + 1);
    } else {
        bool brackets = address[0] == '[';
        int n = (int)(colon - address) - 2 * brackets;
        (void)printf("  redis-cli -h %.*s -p %s CL.THROTTLE alice 15 30 60\n", n,
                     address + brackets, colon + 1);
    }
}

static void try_http(const char *address)
{
    const char *path = path_of(address);
    (void)printf("  curl -d '{\"attributes\":{\"path\":\"/search/cats\",\"user\":\"alice\"}}' ");
    if (path != NULL) {
        (void)printf("--unix-socket %s http://localhost/v1/check\n", path);
    } else {
        (void)printf("http://%s/v1/check\n", address);
    }
}

static void try_admin(const char *address)
{
    bool usual = strcmp(address, protocol_admin.address) == 0;
    (void)printf("  %s ctl%s%s limits\n", program_invocation_name, usual ? "" : " --admin ",
                 usual ? "" : address);
}

static void suggest(char (*at)[ADDRESS_BYTES])
{
    static void (*const tries[PROTOCOLS])(const char *) = {
        [PROTOCOL_RESP] = try_resp, [PROTOCOL_HTTP] = try_http, [PROTOCOL_ADMIN] = try_admin};
    (void)printf("Try, from another terminal:\n");
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if (strcmp(at[i], "off") != 0 && tries[i] != NULL) {
            tries[i](at[i]);
        }
    }
}

static void log_start(const struct server *server, const struct serve_settings *settings,
                      char (*at)[ADDRESS_BYTES], const char *store)
{
    struct log_field fields[5 + PROTOCOLS] = {
        LOG_STRING("version", weir_version()),
        LOG_STRING("config", settings->config != NULL ? settings->config : "example"),
        LOG_COUNT("threads", server->threads)};
    size_t n = 3;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        fields[n++] = LOG_STRING(protocol_of(i)->name, at[i]);
    }
    fields[n++] =
        LOG_STRING("state", server->rules->state != NULL ? server->rules->state->folder : "off");
    fields[n++] = LOG_STRING("store", store); /* store_url_read() refuses URLs with secrets */
    log_event(LEVEL_INFO, "started", fields, n);
}

void serve_announce(const struct server *server, const struct serve_settings *settings)
{
    char at[PROTOCOLS][ADDRESS_BYTES];
    unsigned n = server->threads;
    const char *store = server->fleet.fleet != NULL ? server->fleet.fleet->options.url : "off";
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)server_address(server, (enum server_protocol)i, at[i], ADDRESS_BYTES);
    }
    log_start(server, settings, at, store);
    if (settings->log_format == LOG_AS_JSON) { /* the log line above says it */
        return;
    }
    (void)printf("weir %s serves %s with %u thread%s\n", weir_version(),
                 settings->config != NULL ? settings->config
                                          : "an example rule set (--config FILE for your own)",
                 n, n == 1 ? "" : "s");
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)printf("  %-6s %s\n", protocol_of(i)->name, at[i]);
    }
    if (server->fleet.fleet != NULL) {
        (void)printf("  %-6s %s\n", "store", store);
    }
    if (settings->config == NULL) {
        suggest(at);
    }
    (void)fflush(stdout);
}
