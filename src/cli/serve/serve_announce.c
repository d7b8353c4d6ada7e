/* Prints where weir serve listens once it is ready and, with the example rules, what to try. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/admin_client.h"
#include "cli/serve/serve.h"
#include "fleet/fleet.h"
#include "rules/live/live.h"

#define ADDRESS_BYTES 128

static const char *path_of(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 ? address + 5 : NULL;
}

/* Prints a command of this program, with the option that names the server unless it is the
 * default of the command. */
static void try_command(const char *name, const char *option, const char *address,
                        const char *operands)
{
    bool usual = option == NULL;
    (void)printf("  %s %s%s%s%s%s %s\n", program_invocation_name, name, usual ? "" : " ",
                 usual ? "" : option, usual ? "" : " ", usual ? "" : address, operands);
}

/* Over HTTP, or over RESP if there is no HTTP. */
static void try_questions(char (*at)[ADDRESS_BYTES])
{
    bool http = strcmp(at[PROTOCOL_HTTP], "off") != 0;
    const char *address = at[http ? PROTOCOL_HTTP : PROTOCOL_RESP];
    const char *option = strcmp(address, protocol_of(PROTOCOL_HTTP)->address) == 0 ? NULL
                         : http                                                    ? "--http"
                                                                                   : "--resp";
    if (strcmp(address, "off") != 0) {
        try_command("ask", option, address, "path=/search/cats user=alice ip=203.0.113.7");
        try_command("check", option, address, "login 203.0.113.7");
    }
}

/* Without a file of the secret, `ctl` can show what needs none. */
static void try_admin(const char *address, bool secret)
{
    bool usual = strcmp(address, protocol_of(PROTOCOL_ADMIN)->address) == 0;
    try_command("ctl", usual ? NULL : "--admin", address, secret ? "limits" : "status");
}

/* Adds the scheme to the addresses of listeners that speak TLS. */
static void add_schemes(const struct server *server, char (*at)[ADDRESS_BYTES])
{
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        char plain[ADDRESS_BYTES];
        if (strcmp(at[i], "off") != 0 && server_speaks_tls(server, i)) {
            memcpy(plain, at[i], sizeof plain);
            (void)snprintf(at[i], ADDRESS_BYTES, "%s://%.*s",
                           i == PROTOCOL_RESP ? "rediss" : "https", ADDRESS_BYTES - 10, plain);
        }
    }
}

static void suggest(const struct server *server, char (*at)[ADDRESS_BYTES], bool secret)
{
    add_schemes(server, at);
    (void)printf("Try, from another terminal:\n");
    try_questions(at);
    if (strcmp(at[PROTOCOL_ADMIN], "off") != 0) {
        try_admin(at[PROTOCOL_ADMIN], secret);
    }
}

#define DEMO_BYTES (ADDRESS_BYTES + 32)

/* Returns the address of the demo in `room`; "off" without one. It holds no secret. */
static const char *demo_of(const struct server *server, const char *address, char room[DEMO_BYTES])
{
    if (!server->options.demo || path_of(address) != NULL) {
        return "off";
    }
    const char *s = server_speaks_tls(server, PROTOCOL_ADMIN) ? "s" : "";
    (void)snprintf(room, DEMO_BYTES, "http%s://%s/#/play", s, address);
    return room;
}

static void print_demo(const char *demo)
{
    if (strcmp(demo, "off") != 0) {
        (void)printf("  %-7s %s\n", "demo", demo);
    }
}

/* Prints a link with the secret that was made, for a person at this terminal: a file or a pipe
 * would keep it. */
static void print_link(const struct server *server, const struct serve_settings *settings,
                       const char *address)
{
    const char *s = server_speaks_tls(server, PROTOCOL_ADMIN) ? "s" : "";
    char loopback[CLIENT_ADDRESS_MAX];
    if (settings->made_secret[0] != 0 && isatty(STDOUT_FILENO) && strcmp(address, "off") != 0 &&
        path_of(address) == NULL) {
        (void)printf("  %-7s " ADMIN_LINK "\n", "link", s, admin_link_address(address, loopback),
                     settings->made_secret);
    }
}

static void log_start(const struct server *server, const struct serve_settings *settings,
                      char (*at)[ADDRESS_BYTES], const char *store)
{
    char demo[DEMO_BYTES];
    struct log_field fields[7 + PROTOCOLS] = {
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
    if (server->options.demo) {
        fields[n++] = LOG_STRING("demo", demo_of(server, at[PROTOCOL_ADMIN], demo));
    }
    if (settings->secret_path[0] != 0) {
        fields[n++] = LOG_STRING("admin_secret", settings->secret_path);
    }
    log_event(LEVEL_INFO, "started", fields, n);
}

void serve_announce(const struct server *server, const struct serve_settings *settings)
{
    char at[PROTOCOLS][ADDRESS_BYTES];
    char demo[DEMO_BYTES];
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
        bool usual = strcmp(protocol_of(i)->address, "off") != 0;
        if (usual || strcmp(at[i], "off") != 0) {
            (void)printf("  %-7s %s%s\n", protocol_of(i)->name, at[i],
                         strcmp(at[i], "off") != 0 && server_speaks_tls(server, i) ? ", TLS" : "");
        }
    }
    if (server->fleet.fleet != NULL) {
        (void)printf("  %-7s %s\n", "store", store);
    }
    print_demo(demo_of(server, at[PROTOCOL_ADMIN], demo));
    print_link(server, settings, at[PROTOCOL_ADMIN]);
    if (settings->config == NULL) {
        suggest(server, at, settings->secret_path[0] != 0);
    }
    (void)fflush(stdout);
}
