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
    resp_drop_queue(c->connection);
    c->session->proto = 2;
    c->session->name[0] = 0;
    c->connection->pass = access_without_secret(&c->connection->pass);
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
static bool check_name(struct command *c, struct weir_text name)
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

static void set_name(struct command *c, struct weir_text name)
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

static void put_pair(struct command *c, struct weir_text name, struct weir_text value)
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
    struct weir_text user;
    struct weir_text secret;
    struct weir_text name; /* `at` is NULL if there is none, here and in `user` */
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
    resp_put_verbatim(c->out, c->proto, (struct weir_text){text, (size_t)n});
}

/* Runs CLIENT TRACKING ON|OFF [options]. No key is ever cached by a client, so there is nothing to
 * invalidate, and the options change nothing. */
static void run_tracking(struct command *c)
{
    if (c->argc > 2 && (text_is_word(c->argv[2], "ON") || text_is_word(c->argv[2], "OFF"))) {
        ok(c);
    } else {
        resp_put_error(c->out, TEXT("ERR CLIENT TRACKING: expected ON or OFF"));
    }
}

/* Settings that client libraries make when they connect, and that mean nothing here. */
static bool is_accepted(struct weir_text what)
{
    static const char *const names[] = {"SETINFO", "NO-EVICT", "NO-TOUCH", "CACHING", "CAPA"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (text_is_word(what, names[i])) {
            return true;
        }
    }
    return false;
}

static void run_client(struct command *c)
{
    struct weir_text what = c->argv[1];
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
    } else if (text_is_word(what, "TRACKING")) {
        run_tracking(c);
    } else if (is_accepted(what)) {
        ok(c);
    } else {
        resp_put_errorf(c->out, "ERR unknown subcommand '%.*s'. Try CLIENT INFO.",
                        TEXT_CUT(what, 64));
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
    resp_put_verbatim(c->out, c->proto, (struct weir_text){text, (size_t)n});
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

/* Answers MODULE LIST: there are none. Tools ask for them. */
static void run_module(struct command *c)
{
    if (text_is_word(c->argv[1], "LIST")) {
        resp_put_array(c->out, 0);
    } else {
        resp_put_error(c->out, TEXT("ERR unknown subcommand. Try MODULE LIST."));
    }
}

const struct command_row resp_connection_commands[] = {
    {"PING", 1, 2, ROLE_CHECK, run_ping, .summary = "Answers PONG"},
    {"ECHO", 2, 2, ROLE_CHECK, run_echo, .summary = "Answers its argument"},
    {"HELLO", 1, 0, ROLE_NONE, run_hello,
     .summary = "[2|3 [AUTH user secret] [SETNAME name]]: chooses the protocol"},
    {"AUTH", 2, 3, ROLE_NONE, resp_run_auth,
     .summary = "[user] secret: gives the connection a role"},
    {"SELECT", 2, 2, ROLE_CHECK, run_select, .summary = "Accepts database 0 only"},
    {"CLIENT", 2, 0, ROLE_CHECK, run_client,
     .summary =
         "[ID | GETNAME | SETNAME name | INFO | LIST | TRACKING ON|OFF | ...]: tells about this "
         "connection; accepts settings of clients that have no meaning here"},
    {"COMMAND", 1, 0, ROLE_CHECK, resp_run_command_list,
     .summary = "[COUNT | LIST | INFO [name ...] | DOCS [name ...] | GETKEYS command ...]: lists "
                "the commands"},
    {"INFO", 1, 0, ROLE_CHECK, run_info, .summary = "Describes the server"},
    {"CONFIG", 2, 0, ROLE_CHECK, run_config, .summary = "Answers CONFIG GET for tools"},
    {"MODULE", 2, 0, ROLE_CHECK, run_module, .summary = "LIST: answers that there are no modules"},
    {"CLUSTER", 2, 0, ROLE_CHECK, run_cluster, .summary = "Answers that there is no cluster"},
    {"MULTI", 1, 1, ROLE_CHECK, resp_run_multi, .at_once = true,
     .summary = "Queues the commands that follow, at most 1,024 of them and 1 MB"},
    {"EXEC", 1, 1, ROLE_CHECK, resp_run_exec, .at_once = true,
     .summary = "Decides the queued commands in order, each on its own"},
    {"DISCARD", 1, 1, ROLE_CHECK, resp_run_discard, .at_once = true,
     .summary = "Forgets the queued commands"},
    {"WATCH", 2, 0, ROLE_CHECK, resp_run_watch, .at_once = true,
     .summary = "key [key ...]: is refused, because EXEC does not depend on other changes"},
    {"UNWATCH", 1, 1, ROLE_CHECK, ok, .summary = "Answers OK"},
    {"QUIT", 1, 0, ROLE_NONE, run_quit, .at_once = true, .summary = "Ends the connection"},
    {"RESET", 1, 1, ROLE_NONE, run_reset, .at_once = true, .summary = "Begins the connection anew"},
    {.name = NULL},
};
