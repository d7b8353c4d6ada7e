/* Access over RESP: AUTH, and HELLO with AUTH. Errors have the texts of Redis,
 * which clients know. */
#include "base/atomic.h"
#include "server/loop/penalty.h"
#include "server/resp/resp_commands.h"

#define NO_PASSWORD                                                                                \
    "ERR AUTH <password> called without any password configured for the default user. Are you "    \
    "sure your configuration is correct?"

static void count_refusal(struct command *c)
{
    count_own(&c->connection->worker->counts.refused_access, 1);
}

static void put_wrong(struct buffer *out)
{
    resp_put_error(out, TEXT("WRONGPASS invalid username-password pair or user is disabled."));
}

static void put_late(struct pending *p)
{
    struct command c = resp_resume(p);
    size_t before = buffer_len(c.out);
    put_wrong(c.out);
    resp_count(&c, before);
}

static bool refuse_secret(struct command *c)
{
    struct pending *p = penalty_begin(c->connection);
    count_refusal(c);
    c->close = connection_wrong_secret(c->connection);
    if (p != NULL) {
        resp_keep(c, p, put_late);
    } else {
        put_wrong(c->out);
    }
    return false;
}

bool resp_authenticate(struct command *c, struct weir_text user, struct weir_text secret)
{
    struct access *access = c->server->options.access;
    enum role asked;
    if (!access_user(user, &asked)) {
        return refuse_secret(c);
    }
    if (access == NULL) { /* every client has every role, as in Redis without a password */
        return true;
    }
    return access_show(access, secret, asked, &c->connection->pass) || refuse_secret(c);
}

/* AUTH [user] secret */
void resp_run_auth(struct command *c)
{
    if (c->argc == 2 && c->server->options.access == NULL) {
        resp_put_error(c->out, TEXT(NO_PASSWORD));
    } else if (resp_authenticate(c, c->argc == 3 ? c->argv[1] : TEXT("default"),
                                 c->argv[c->argc - 1])) {
        resp_put_simple(c->out, TEXT("OK"));
    }
}

bool resp_refuse(struct command *c, const struct command_row *row)
{
    enum role role = access_role(c->server->options.access, &c->connection->pass);
    if (role >= row->role) {
        return false;
    }
    count_refusal(c);
    if (role == ROLE_NONE) {
        resp_put_error(c->out, TEXT("NOAUTH Authentication required."));
    } else {
        resp_put_errorf(c->out,
                        "NOPERM this user has no permissions to run the '%s' command: it needs the "
                        "role %s",
                        row->name, role_names[row->role]);
    }
    return true;
}
