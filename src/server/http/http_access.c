/*
 * Access over HTTP. A client shows its secret as a bearer token, as a Basic password, or in the
 * field Weir-Secret, which is for gateways that pass on their client's Authorization and have a
 * secret of their own.
 */
#include "base/atomic.h"
#include "server/http/http_routes.h"
#include "server/net/penalty.h"

/* ---- base64 (RFC 4648) ---- */

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != 0 ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes into `room`, of ACCESS_BASIC_MAX bytes; returns false if it is not
 * base64, or too long. */
#define ACCESS_BASIC_MAX (ACCESS_SECRET_MAX + 64)

static bool decode(struct text text, char *room, struct text *out)
{
    unsigned bits = 0;
    unsigned have = 0;
    size_t n = 0;
    for (unsigned pads = 0; pads < 2 && text.len > 0 && text.at[text.len - 1] == '='; pads++) {
        text.len--;
    }
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_of(text.at[i]);
        if (digit < 0 || n == ACCESS_BASIC_MAX) {
            return false;
        }
        bits = bits << 6 | (unsigned)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            room[n++] = (char)(bits >> have);
        }
    }
    *out = (struct text){room, n};
    return true;
}

/* ---- credentials ---- */

struct credentials {
    struct text user; /* len 0: none was given */
    struct text secret;
    char room[ACCESS_BASIC_MAX];
};

/* Finds the text after a scheme such as "Basic ", in upper or lower case; returns false if the
 * value begins with something else. */
static bool after_scheme(struct text value, const char *scheme, struct text *rest)
{
    size_t n = strlen(scheme);
    if (value.len <= n || value.at[n] != ' ' || !text_is_word((struct text){value.at, n}, scheme)) {
        return false;
    }
    *rest = text_trim(text_after(value, n));
    return true;
}

static bool read_basic(struct text coded, struct credentials *c)
{
    struct text pair;
    if (!decode(coded, c->room, &pair)) {
        return false;
    }
    c->secret = pair;
    c->user = text_cut(&c->secret, ':');
    return c->user.len < pair.len;
}

/* Returns false if there are none, or none that could be understood. */
static bool read_credentials(const struct http_request *r, struct credentials *c)
{
    struct text field = http_value(r, "authorization");
    struct text coded;
    c->user = (struct text){"", 0};
    c->secret = http_value(r, "weir-secret");
    return c->secret.at != NULL || after_scheme(field, "BEARER", &c->secret) ||
           (after_scheme(field, "BASIC", &coded) && read_basic(coded, c));
}

/* ---- the check ---- */

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
            "expected 'Authorization: Bearer SECRET', or Basic with the secret as the password");
    }
    if (!access_user(given.user, &asked) || !access_show(access, given.secret, asked, &pass)) {
        return refuse_secret(x);
    }
    x->role = pass.role;
    x->pass = pass;
    return x->role >= least ||
           http_refuse(x, 403, "the secret is valid, but this request needs one of the role admin");
}
