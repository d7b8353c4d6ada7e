/*
 * Access by secrets. There are two roles: `check` may ask and take units, `admin` may also
 * change things. A secret gives a role. Several secrets are valid at once, so that one can
 * be replaced without an outage. A role without secrets is open:
 *
 *   no secrets at all    everybody has both roles
 *   admin secrets only   everybody may check; admin needs its secret
 *   check secrets only   check needs its secret; nobody is admin
 *   both                 each needs its own; an admin may check too
 *
 * RESP clients send AUTH, HTTP clients a bearer token or a Basic password. Secrets are compared in
 * constant time: how long an answer takes says nothing about how much of a guess was right.
 */
#ifndef WEIR_SERVER_NET_ACCESS_H
#define WEIR_SERVER_NET_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir_rules.h>

#include "base/hash.h"
#include "common/text.h"

enum role { ROLE_NONE, ROLE_CHECK, ROLE_ADMIN, ROLES };

extern const char *const role_names[ROLES];     /* "none", "check", "admin" */
extern const char *const role_variables[ROLES]; /* of the environment, with the role's secrets */

#define ACCESS_SECRETS_MAX 32  /* secrets of one role */
#define ACCESS_SECRET_MAX 1024 /* bytes of one secret */

struct access;

/*
 * Where secrets come from: a file with one secret on each line (empty lines are
 * ignored), and a text of the same form from the environment; either may be NULL.
 */
struct access_sources {
    const char *file[ROLES];
    const char *text[ROLES];
};

/* Reads the secrets. Returns 0 or WEIR_E... with the reason. The sources are copied
 * for access_reload(). */
int access_open(struct access **access, const struct access_sources *from,
                struct weir_error *error);
void access_close(struct access *access);

/* Reads the files again; on an error the old secrets stay. Other threads may ask meanwhile. */
int access_reload(struct access *access, struct weir_error *error);

/*
 * Finds the role that a user's name asks for: that of "check" and "admin"; for "" and "default"
 * ROLE_NONE, which means the role that the secret gives. Returns false if there is no such user.
 */
bool access_user(struct text user, enum role *asked);

bool access_has_secrets(struct access *access, enum role role);

/*
 * What a connection keeps about the secret that it has shown; all zero if there is
 * none yet. Its role is found once, and again whenever the secrets have changed, so
 * that a connection whose secret is no longer valid loses the role.
 */
struct access_pass {
    uint64_t generation; /* of the secrets at the time `role` was found */
    struct hash print;   /* keyed hash of the secret; 0: none */
    enum role asked;     /* the highest role wanted; ROLE_NONE: the highest that the secret gives */
    enum role role;
};

/*
 * Fills the pass for a secret and the role that was asked for (ROLE_NONE: the highest that the
 * secret gives). Returns false, and leaves the pass as it was, if the secret does not give that
 * role.
 */
bool access_show(struct access *access, struct text secret, enum role asked,
                 struct access_pass *pass);

/* Returns the role of this pass according to the present secrets; renews the pass if they changed.
 * A NULL access means that there are no secrets. */
enum role access_role(struct access *access, struct access_pass *pass);

#endif
