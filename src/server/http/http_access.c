/* Access over HTTP: the secret of each request (wire/credentials.h) gives it its role. */
#include "base/atomic.h"
#include "server/http/http_routes.h"
#include "server/loop/penalty.h"
#include "wire/credentials.h"

static bool read_credentials(const struct http_request *r, struct credentials *c)
{
    return credentials_read(http_value(r, "authorization"), http_value(r, "weir-secret"), c);
}

bool http_refuse(struct exchange *x, int status, const char *detail)
{
    count_own(&x->connection->worker->counts.refused_access, 1);
    http_reply_problem(x, status, detail);
    return false;
}

#define WRONG "the secret is not valid, or not for this user"

static void put_late(struct pending *p)
{
    struct http_request request;
    struct exchange x = http_resume(p, &request);
    http_reply_problem(&x, 401, WRONG);
    buffer_finish(&x.body);
}

/* Refuses a wrong secret, now or after a delay. */
static bool refuse_secret(struct exchange *x)
{
    struct pending *p = penalty_begin(x->connection);
    x->close = connection_wrong_secret(x->connection) || x->close;
    if (p == NULL) {
        return http_refuse(x, 401, WRONG);
    }
    count_own(&x->connection->worker->counts.refused_access, 1);
    http_keep(x, p, put_late);
    return false;
}

/*
 * Returns whether a secret is to be looked at although the request needs none: operators show the
 * role that they have. Clients of the other listener may have an Authorization for someone else.
 */
static bool is_signed(const struct exchange *x, enum role least)
{
    struct credentials given;
    return x->server->options.access != NULL && least > ROLE_NONE &&
           x->connection->protocol->kind == PROTOCOL_ADMIN && read_credentials(x->request, &given);
}

bool http_may(struct exchange *x, enum role least)
{
    struct access *access = x->server->options.access;
    struct access_pass pass = access_without_secret(&x->connection->pass);
    struct credentials given;
    enum role asked;
    x->role = access_role(access, &x->connection->pass);
    x->pass = pass;
    if (x->role >= least && !is_signed(x, least)) {
        return true;
    }
    if (!read_credentials(x->request, &given)) {
        return http_refuse(
            x, 401,
            "found no secret, expected 'Authorization: Bearer SECRET', or Basic with the secret as "
            "the password");
    }
    if (!access_user(given.user, &asked) || !access_show(access, given.secret, asked, &pass)) {
        return refuse_secret(x);
    }
    x->role = pass.role;
    x->pass = pass;
    return x->role >= least ||
           http_refuse(x, 403, "the secret is valid, but this request needs one of the role admin");
}
