/* The general commands of Redis that client libraries send: HELLO, PING,
 * CLIENT, INFO and others. */
#include <inttypes.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "server/resp/resp_commands.h"

static void ok(struct command *c)
{
    resp_put_simple(c->out, TEXT("OK"));
}

static void run_ping(struct command *c)
{
    if (c->argc == 2) {
        resp_put_bulk(c->out, c->argv[1]);
    } else {
        resp_put_simple(c->out, TEXT("PONG"));
    }
}

static void run_echo(struct command *c)
{
    resp_put_bulk(c->out, c->argv[1]);
}

static void run_quit(struct command *c)
{
    ok(c);
    c->close = true;
}

static void run_reset(struct command *c)
{
    c->session->proto = 2;
    c->session->name[0] = 0;
    c->connection->pass = (struct access_pass){0};
    resp_put_simple(c->out, TEXT("RESET"));
}

static void run_select(struct command *c)
{
    int64_t number;
    if (!resp_to_i64(c->argv[1], &number)) {
        resp_put_error(c->out, TEXT("ERR value is not an integer or out of range"));
    } else if (number != 0) {
        resp_put_error(c->out, TEXT("ERR DB index is out of range"));
    } else {
        ok(c);
    }
}

/* Checks a client's name. CLIENT LIST separates names by spaces, so a name has none. Returns
 * false after an error reply. */
static bool check_name(struct command *c, struct text name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] < '!' || name.at[i] > '~') {
            resp_put_error(c->out, TEXT("ERR Client names cannot contain spaces, newlines or "
                                        "special characters."));
            return false;
        }
    }
    return true;
}

static void set_name(struct command *c, struct text name)
{
    size_t n = name.len < sizeof c->session->name ? name.len : sizeof c->session->name - 1;
    memcpy(c->session->name, name.at, n);
    c->session->name[n] = 0;
}

static uint64_t session_id(struct command *c)
{
    static uint64_t last;
    if (c->session->id == 0) {
        c->session->id = fetch_add(&last, 1) + 1;
    }
    return c->session->id;
}

static void put_pair(struct command *c, struct text name, struct text value)
{
    resp_put_bulk(c->out, name);
    resp_put_bulk(c->out, value);
}

static void put_greeting(struct command *c)
{
    resp_put_map(c->out, c->proto, 7);
    put_pair(c, TEXT("server"), TEXT("weir"));
    put_pair(c, TEXT("version"), text_of(weir_version()));
    resp_put_bulk(c->out, TEXT("proto"));
    resp_put_integer(c->out, c->proto);
    resp_put_bulk(c->out, TEXT("id"));
    resp_put_integer(c->out, (int64_t)session_id(c));
    put_pair(c, TEXT("mode"), TEXT("standalone"));
    put_pair(c, TEXT("role"), TEXT("master"));
    resp_put_bulk(c->out, TEXT("modules"));
    resp_put_array(c->out, 0);
}

/* The arguments of HELLO after the version. */
struct hello {
    struct text user;
    struct text secret;
    struct text name; /* `at` is NULL if there is none, here and in `user` */
};

/* Returns false after an error reply. */
static bool read_hello(struct command *c, struct hello *h)
{
    for (unsigned i = 2; i < c->argc;) {
        if (text_is_word(c->argv[i], "AUTH") && i + 2 < c->argc) {
            h->user = c->argv[i + 1];
            h->secret = c->argv[i + 2];
            i += 3;
        } else if (text_is_word(c->argv[i], "SETNAME") && i + 1 < c->argc) {
            h->name = c->argv[i + 1];
            i += 2;
        } else {
            resp_put_errorf(c->out, "ERR Syntax error in HELLO option '%.*s'",
                            TEXT_CUT(c->argv[i], 64));
            return false;
        }
    }
    return h->name.at == NULL || check_name(c, h->name);
}

/* Runs HELLO [protover [AUTH username password] [SETNAME name]]. An error changes nothing. */
static void run_hello(struct command *c)
{
    int64_t proto = c->proto;
    struct hello h = {.user = {NULL, 0}};
    if (c->argc > 1 && (!resp_to_i64(c->argv[1], &proto) || (proto != 2 && proto != 3))) {
        resp_put_error(c->out, TEXT("NOPROTO unsupported protocol version"));
        return;
    }
    if (!read_hello(c, &h) || (h.user.at != NULL && !resp_authenticate(c, h.user, h.secret))) {
        return;
    }
    if (access_role(c->server->options.access, &c->connection->pass) == ROLE_NONE) {
        count_own(&c->connection->worker->counts.refused_access, 1);
        resp_put_error(c->out, TEXT("NOAUTH HELLO must be called with the client already "
                                    "authenticated, otherwise the HELLO <proto> AUTH <user> <pass> "
                                    "option can be used to authenticate the client and select the "
                                    "RESP protocol version at the same time"));
        return;
    }
    if (h.name.at != NULL) {
        set_name(c, h.name);
    }
    c->session->proto = (int)proto;
    c->proto = (int)proto;
    put_greeting(c);
}

static void put_client(struct command *c)
{
    char text[256];
    char peer[ADDRESS_MAX];
    int n = snprintf(text, sizeof text, "id=%" PRIu64 " addr=%s name=%s resp=%d\n", session_id(c),
                     peer_print(&c->connection->peer, peer), c->session->name, c->proto);
    resp_put_verbatim(c->out, c->proto, (struct text){text, (size_t)n});
}

static void run_client(struct command *c)
{
    struct text what = c->argv[1];
    if (text_is_word(what, "ID")) {
        resp_put_integer(c->out, (int64_t)session_id(c));
    } else if (text_is_word(what, "GETNAME")) {
        resp_put_string(c->out, c->proto, c->session->name);
    } else if (text_is_word(what, "SETNAME") && c->argc == 3) {
        if (check_name(c, c->argv[2])) {
            set_name(c, c->argv[2]);
            ok(c);
        }
    } else if (text_is_word(what, "INFO") || text_is_word(what, "LIST")) {
        put_client(c);
    } else if (text_is_word(what, "SETINFO") || text_is_word(what, "NO-EVICT") ||
               text_is_word(what, "NO-TOUCH")) {
        ok(c);
    } else {
        resp_put_errorf(c->out, "ERR unknown subcommand '%.*s'. Try CLIENT INFO.",
                        TEXT_CUT(what, 64));
    }
}

static void put_command(struct command *c, const struct command_row *row)
{
    resp_put_array(c->out, 6);
    resp_put_bulk(c->out, text_of(row->name));
    resp_put_integer(c->out, row->args_max == row->args_min ? (int64_t)row->args_min
                                                            : -(int64_t)row->args_min);
    resp_put_array(c->out, 0);
    resp_put_integer(c->out, 0);
    resp_put_integer(c->out, 0);
    resp_put_integer(c->out, 0);
}

static void put_docs(struct command *c, const struct command_row *row)
{
    resp_put_bulk(c->out, text_of(row->name));
    resp_put_map(c->out, c->proto, 2);
    put_pair(c, TEXT("summary"), text_of(row->summary));
    put_pair(c, TEXT("group"), TEXT("weir"));
}

/* Calls `put`, if not NULL, for each command. Returns how many there are. */
static size_t put_all(struct command *c,
                      void (*put)(struct command *c, const struct command_row *row))
{
    size_t n = 0;
    for (const struct command_row *const *table = resp_commands(); *table != NULL; table++) {
        for (const struct command_row *row = *table; row->name != NULL; row++) {
            if (put != NULL) {
                put(c, row);
            }
            n++;
        }
    }
    return n;
}

/* Answers COMMAND INFO name ... with the rows of these names, and null for unknown ones. */
static void put_named(struct command *c)
{
    resp_put_array(c->out, c->argc - 2);
    for (unsigned i = 2; i < c->argc; i++) {
        const struct command_row *row = resp_find_command(c->argv[i]);
        if (row != NULL) {
            put_command(c, row);
        } else {
            resp_put_null(c->out, c->proto);
        }
    }
}

static void run_command(struct command *c)
{
    size_t n = put_all(c, NULL);
    bool info = c->argc > 1 && text_is_word(c->argv[1], "INFO");
    if (c->argc > 1 && text_is_word(c->argv[1], "COUNT")) {
        resp_put_integer(c->out, (int64_t)n);
    } else if (c->argc > 1 && text_is_word(c->argv[1], "DOCS")) {
        resp_put_map(c->out, c->proto, n);
        (void)put_all(c, put_docs);
    } else if (info && c->argc > 2) {
        put_named(c);
    } else if (info || c->argc == 1) {
        resp_put_array(c->out, n);
        (void)put_all(c, put_command);
    } else {
        resp_put_error(c->out, TEXT("ERR unknown subcommand. Try COMMAND DOCS."));
    }
}

static void run_info(struct command *c)
{
    char text[512];
    uint64_t now = clock_unix_ns(); /* the clock may have been set back since the start */
    uint64_t started = c->server->started_ns;
    uint64_t up = now > started ? (now - started) / WEIR_SECOND : 0;
    int n = snprintf(text, sizeof text,
                     "# Server\r\nweir_version:%s\r\nredis_mode:standalone\r\n"
                     "uptime_in_seconds:%" PRIu64 "\r\n# Clients\r\nconnected_clients:%" PRIu64
                     "\r\n# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n",
                     weir_version(), up, load_relaxed(&c->server->connections));
    resp_put_verbatim(c->out, c->proto, (struct text){text, (size_t)n});
}

/* Answers CONFIG GET with empty values: tools ask for settings of Redis that do not exist here. */
static void run_config(struct command *c)
{
    if (!text_is_word(c->argv[1], "GET")) {
        resp_put_error(c->out, TEXT("ERR unknown subcommand. Try CONFIG GET."));
        return;
    }
    resp_put_map(c->out, c->proto, c->argc - 2);
    for (unsigned i = 2; i < c->argc; i++) {
        put_pair(c, c->argv[i], TEXT(""));
    }
}

static void run_cluster(struct command *c)
{
    resp_put_error(c->out, TEXT("ERR This instance has cluster support disabled"));
}

const struct command_row resp_connection_commands[] = {
    {"PING", 1, 2, ROLE_CHECK, run_ping, "Answers PONG", 0},
    {"ECHO", 2, 2, ROLE_CHECK, run_echo, "Answers its argument", 0},
    {"HELLO", 1, 0, ROLE_NONE, run_hello,
     "[2|3 [AUTH user secret] [SETNAME name]]: chooses the protocol", 0},
    {"AUTH", 2, 3, ROLE_NONE, resp_run_auth, "[user] secret: says who one is", 0},
    {"SELECT", 2, 2, ROLE_CHECK, run_select, "There is database 0 only", 0},
    {"CLIENT", 2, 0, ROLE_CHECK, run_client, "About this connection", 0},
    {"COMMAND", 1, 0, ROLE_CHECK, run_command, "Lists the commands", 0},
    {"INFO", 1, 0, ROLE_CHECK, run_info, "About the server", 0},
    {"CONFIG", 2, 0, ROLE_CHECK, run_config, "Answers CONFIG GET for tools", 0},
    {"CLUSTER", 2, 0, ROLE_CHECK, run_cluster, "There is no cluster", 0},
    {"QUIT", 1, 0, ROLE_NONE, run_quit, "Ends the connection", 0},
    {"RESET", 1, 1, ROLE_NONE, run_reset, "Begins the connection anew", 0},
    {NULL, 0, 0, ROLE_NONE, NULL, NULL, 0},
};
