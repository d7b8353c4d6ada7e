/*
 * weir serve. Its files:
 *
 *   serve.c          from the first argument to the exit code
 *   serve_options.c  reads the settings: flags, then WEIR_... variables, then the rule file
 *   serve_fleet.c    opens the store that a fleet shares
 *   serve_rules.c    opens the rules, or an example
 *   serve_access.c   reads the secrets, or makes one for operators
 *   serve_tls.c      finds the certificate, and the names that give roles
 *   serve_announce.c prints where it listens, and what to try
 *   serve_sockets.c  takes sockets that the service manager has opened
 *   serve_notify.c   sends messages to the service manager
 *   serve_watch.c    notices when the files of the rules have changed
 *   serve_loop.c     the first thread: signals, changed files, watchdog messages
 *   serve_signals.c  handlers of signals: the end in time, a state file that fails
 *   serve_seccomp.c  gives up system calls that a server does not need
 */
#ifndef WEIR_CLI_SERVE_SERVE_H
#define WEIR_CLI_SERVE_SERVE_H

#include "cli/cli.h"
#include "cli/secret_file.h"
#include "common/log.h"
#include "rules/file/config.h"
#include "server/status/numbers.h"
#include "server/access/access.h"
#include "server/loop/server.h"

/* TLS as flags and variables give it; NULL, or -1: not given. */
struct serve_tls {
    const char *cert; /* "off": no TLS, whatever the rule file says */
    const char *key;
    const char *client_ca;
    int client_cert;
    const char *listeners;     /* "http,admin" */
    const char *names[ROLES];  /* "ops.example,root.example" */
    char *path[3];             /* memory of the paths in server.tls if the rule file names them */
    struct texts given[ROLES]; /* memory of server.tls.names[] if flags or variables give them */
};

struct serve_settings {
    const char *config;       /* paths with : between them; NULL: use the example */
    const char *envoy_config; /* NULL: none */
    char *joined_config;      /* memory of `config` if it is both */
    const char *state;        /* folder; "off": keep state in memory; NULL: as the rule file says */
    const char *store;        /* URL; "off": no store; NULL: as the rule file says */
    struct server_options server;
    int log_format; /* enum log_format */
    int log_keys;
    int log_level; /* counted from LEVEL_ERROR */
    bool no_watch;
    int seccomp; /* enum seccomp_choice */
    int page;    /* enum page_choice; -1: that of the rule file */
    /*
     * The source of each address, for errors: "--http", "WEIR_HTTP", "server.http", "the
     * default".
     */
    const char *listen_from[PROTOCOLS];
    const char *store_from; /* "--store" or "WEIR_STORE"; NULL: the rule file */
    struct access_sources secrets;
    char made_secret[SECRET_HEX + 1]; /* the admin secret that was made; "": one is given */
    char secret_path[PATH_MAX];       /* its file; "": none */
    char *secrets_path[ROLES];        /* memory of secrets.file[] if the rule file names it */
    struct serve_tls tls;
    struct cidr_set *trusted;     /* memory of server.trusted */
    char address[PROTOCOLS][256]; /* memory of server.listen[]: of the rule file, or of a port */
};

/* The rules of `weir serve` without a rule file: examples/rules.yaml, embedded by the build. */
extern const char serve_example[];
extern const size_t serve_example_size;

/* Runs the command. */
int serve_command(const struct cli_given *given, void *settings);

/* Reads the variables of options that were not given. Returns CLI_OK, or CLI_USAGE. */
int serve_read_variables(const struct cli_given *given, struct serve_settings *settings);

/* Adds envoy_config to config. Returns CLI_OK, or CLI_FAILED. */
int serve_join_config(struct serve_settings *settings);

/* The address for gRPC if files for Envoy's reference server are given, and none is named. */
#define GRPC_ADDRESS "127.0.0.1:8081"

/*
 * Takes from the rule file the settings that neither a flag nor a variable gives. Returns
 * CLI_OK, or an exit code after a message.
 */
int serve_take_file(const struct weir_rules *rules, struct serve_settings *settings);

/*
 * Checks that there is a listener, and that no two have the same address, where each would get
 * only some of the connections. Returns CLI_OK, or an exit code after a message.
 */
int serve_check_listeners(const struct serve_settings *settings);

/* Checks that --demo has a page to be on. Returns CLI_OK, or an exit code after a message. */
int serve_check_demo(const struct serve_settings *settings);

/*
 * Checks that the HTTP listener can know the client's address if the rules use it. Returns CLI_OK,
 * or an exit code after a message.
 */
int serve_check_client(struct weir_rules *rules, const struct serve_settings *settings);

/*
 * Reads the secrets that flags, environment or rule file name into server.access. If there are none
 * for operators, it makes one. Returns CLI_OK, or an exit code after a message.
 */
int serve_open_access(const struct weir_rules *rules, struct serve_settings *settings);

/*
 * Writes the secret that was made to a file, once the server listens; without a usable folder the
 * log says what to do. serve_remove_secret() removes the file; call it while the server still has
 * its addresses, because after that the file may be that of another server.
 */
void serve_write_secret(const struct server *server, struct serve_settings *settings);
void serve_remove_secret(struct serve_settings *settings);

/*
 * Fills server.tls from flags, environment or rule file. Returns CLI_OK, or an exit code after a
 * message.
 */
int serve_choose_tls(const struct weir_rules *rules, struct serve_settings *settings);
void serve_finish_tls(struct serve_settings *settings);

void serve_finish_settings(struct serve_settings *settings);

/* Warns about WEIR_... variables that look like a misspelt name. */
void serve_check_environment(void);

void serve_announce(const struct server *server, const struct serve_settings *settings);

/*
 * Opens the store; *fleet is NULL if none is named. Returns CLI_OK, or an exit code after a
 * message.
 */
int serve_open_fleet(const struct serve_settings *settings, struct weir_fleet **fleet);

/* Keeps the number of the fleet's nodes in the folder of the state. Both may be NULL. */
struct state;
void serve_keep_nodes(struct weir_fleet *fleet, const struct state *state);

/* Opens the rules. Returns CLI_OK, or an exit code after all errors have been printed. */
int serve_open_rules(const struct serve_settings *settings, struct weir_fleet *fleet,
                     struct weir_rules **rules);

/* Warns of attributes that /v1/auth cannot send, now and after each change, if HTTP is served. */
void serve_warn_of_gateways(struct weir_rules *rules, const struct serve_settings *settings);

#endif
