/*
 * weir serve, in parts:
 *
 *   serve.c          from the first argument to the exit code
 *   serve_options.c  what is asked for: flags, then WEIR_... variables, then the rule file
 *   serve_fleet.c    the store that a fleet shares
 *   serve_rules.c    the rules: opened, or an example
 *   serve_access.c   the secrets
 *   serve_announce.c where it listens, and what to try
 *   serve_sockets.c  sockets that the service manager has opened
 *   serve_notify.c   what the service manager is told
 *   serve_watch.c    whether the files of the rules have changed
 *   serve_loop.c     the first thread: signals, changed files, signs of life
 */
#ifndef WEIR_CLI_SERVE_SERVE_H
#define WEIR_CLI_SERVE_SERVE_H

#include "cli/cli.h"
#include "common/log.h"
#include "server/net/access.h"
#include "server/net/server.h"

struct serve_settings {
    const char *config; /* NULL: the example */
    const char *state;  /* the folder; "off": in memory; NULL: as the rule file says */
    const char *store;  /* the URL; "off": none; NULL: as the rule file says */
    struct server_options server;
    int log_format; /* enum log_format */
    int log_keys;
    int log_level;
    bool no_watch;
    /* Who said where to listen, for errors: "--http", "WEIR_HTTP", "server.http", "the default". */
    const char *listen_from[PROTOCOLS];
    const char *store_from; /* "--store" or "WEIR_STORE"; NULL: the file */
    struct access_sources secrets;
    char *secrets_path[ROLES];    /* secrets.file[], where the file says it */
    struct cidr_set *trusted;     /* server.trusted */
    char address[PROTOCOLS][256]; /* server.listen[], where the file says it */
};

extern const char *const serve_protocol_names[PROTOCOLS]; /* "resp", "http", "admin" */
/* The rows of its options: a flag each, and a variable WEIR_... of the same name. */
enum serve_option {
    SERVE_CONFIG,
    SERVE_RESP,
    SERVE_HTTP,
    SERVE_ADMIN,
    SERVE_STATE,
    SERVE_STORE,
    SERVE_THREADS,
    SERVE_CONNECTIONS,
    SERVE_PER_ADDRESS,
    SERVE_MAX_AGE,
    SERVE_INLINE,
    SERVE_DENY_STATUS,
    SERVE_CLIENT_FIELD,
    SERVE_CHECK_SECRETS,
    SERVE_ADMIN_SECRETS,
    SERVE_INSECURE,
    SERVE_LOG_FORMAT,
    SERVE_LOG_LEVEL,
    SERVE_LOG_KEYS,
    SERVE_NO_WATCH,
    SERVE_OPTIONS
};

extern const struct cli_option serve_options[SERVE_OPTIONS];

/* Flags and the environment. CLI_OK, CLI_USAGE after a complaint, CLI_HELP. */
int serve_read_options(int argc, char **argv, struct serve_settings *settings);

/* What the rule file says and nobody before it. CLI_OK, or an exit code after a complaint. */
int serve_take_file(const struct weir_rules *rules, struct serve_settings *settings);

/* That there is a listener, and no two at one address, where they would take turns. As above. */
int serve_check_listeners(const struct serve_settings *settings);

/* The secrets of the flags, the environment, or the rule file, into server.access. As above. */
int serve_open_access(const struct weir_rules *rules, struct serve_settings *settings);

void serve_finish_settings(struct serve_settings *settings);

/* Tells of WEIR_... variables that look like a slip of the keyboard. */
void serve_check_environment(void);

void serve_announce(const struct server *server, const struct serve_settings *settings);

/* NULL where no store is named. CLI_OK, or an exit code after a complaint. */
int serve_open_fleet(const struct serve_settings *settings, struct weir_fleet **fleet);

/* CLI_OK, or an exit code after everything has been told. */
int serve_open_rules(const struct serve_settings *settings, struct weir_fleet *fleet,
                     struct weir_rules **rules);

/* A file that the rule file names, beside it; to be freed. NULL: no memory. (serve_access.c) */
char *serve_beside_config(const struct serve_settings *settings, struct text path);

#endif
