/*
 * Who may do what. Two roles: `check` asks and takes, `admin` also changes.
 * A secret gives a role; several are valid at once, so that one can be
 * replaced without an outage. A role without secrets is open:
 *
 *   no secrets at all    everybody has both roles
 *   admin secrets only   everybody may check; admin needs its secret
 *   check secrets only   check needs its secret; nobody is admin
 *   both                 each needs its own; an admin may check too
 *
 * RESP says AUTH, HTTP a bearer token or a Basic password. Compared in constant
 * time: how long an answer takes says nothing about how much of a guess was right.
 */
#ifndef WEIR_SERVER_NET_ACCESS_H
#define WEIR_SERVER_NET_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir_rules.h>

#include "base/hash.h"
#include "common/text.h"

enum role { ROLE_NONE, ROLE_CHECK, ROLE_ADMIN, ROLES };

extern const char *const role_names[ROLES]; /* "none", "check", "admin" */

#define ACCESS_SECRETS_MAX 32  /* of one role */
#define ACCESS_SECRET_MAX 1024 /* bytes of one */

struct access;

/*
 * Where secrets come from: a file with one on each line (empty lines do not
 * count), and a text of the same form, from the environment; either may be NULL.
 */
struct access_sources {
    const char *file[ROLES];
    const char *text[ROLES];
};

/* 0 or WEIR_E... with the reason. The sources are copied, for access_reload(). */
int access_open(struct access **access, const struct access_sources *from,
                struct weir_error *error);
void access_close(struct access *access);

/* Reads the files again; on an error the old secrets stay. While others ask. */
int access_reload(struct access *access, struct weir_error *error);

/* The role of who has said nothing; of who has this secret, ROLE_NONE if it is not valid. A NULL
 * access is one without secrets, here and below. */
enum role access_role_open(struct access *access);
enum role access_role_of(struct access *access, struct text secret);

/*
 * The role that a user's name asks for: "check" and "admin"; for "" and "default" ROLE_NONE, all
 * that the secret gives. False: there is no such user.
 */
bool access_user(struct text user, enum role *asked);

bool access_has_secrets(struct access *access, enum role role);

/*
 * What a connection keeps of the secret that it has shown; all zero: none yet.
 * Its role is decided once and again when the secrets have changed: one that is
 * no longer valid loses its role.
 */
struct access_pass {
    uint64_t generation; /* of the secrets that `role` was found by */
    struct hash print;   /* of the secret; 0: none */
    enum role asked;     /* for this role and no more; ROLE_NONE: for all that there is */
    enum role role;
};

/*
 * Shows a secret, for the role that was asked for (ROLE_NONE: for all that it gives). False: it does
 * not give that; then the pass stays as it was.
 */
bool access_show(struct access *access, struct text secret, enum role asked,
                 struct access_pass *pass);

/* The role of who holds this pass, by the secrets of now. */
enum role access_role(struct access *access, struct access_pass *pass);

#endif
