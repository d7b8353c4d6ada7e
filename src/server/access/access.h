/*
 * Access by secrets. There are two roles: `check` may ask, take units and read counts; `admin` may
 * also change things, and see keys, rules and settings. A secret gives a role. Several secrets are
 * valid at once, so that one can be replaced without an outage.
 *
 *   no check secrets    every client may check, unless names in certificates give the role
 *   check secrets       check needs one of them, or an admin secret
 *   admin secrets       admin needs one of them
 *   no admin secrets    no client is admin
 *
 * The name in a client's certificate can give a role too (server/loop/server_tls.c), beside
 * secrets. RESP clients send AUTH, HTTP clients a bearer token or a Basic password. Secrets are
 * compared in constant time: how long an answer takes says nothing about how much of a guess was
 * right.
 */
#ifndef WEIR_SERVER_ACCESS_ACCESS_H
#define WEIR_SERVER_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir_rules.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "common/text.h"

enum role { ROLE_NONE, ROLE_CHECK, ROLE_ADMIN, ROLES };

extern const char *const role_names[ROLES];     /* "none", "check", "admin" */
extern const char *const role_variables[ROLES]; /* of the environment, with the role's secrets */

#define ACCESS_SECRETS_MAX 32  /* secrets of one role */
#define ACCESS_SECRET_MAX 1024 /* bytes of one secret */

struct access;

/*
 * What is wrong with a secret that is valid nevertheless. `where` is a file or a variable of the
 * environment; line 0: all of it.
 */
struct access_warning {
    const char *what;
    const char *where;
    unsigned line;
    const char *found;
    const char *expected;
};

#define ACCESS_SECRET_LEAST 16 /* a shorter secret draws a warning */

/*
 * Where secrets come from: a file with one secret on each line (empty lines are
 * ignored), and a text of the same form from the environment; either may be NULL.
 */
struct access_sources {
    const char *file[ROLES];
    const char *text[ROLES];
    bool named; /* certificates give the role check: without one it needs a secret */
    void (*warn)(void *arg, const struct access_warning *warning); /* NULL: it is logged */
    void *warn_arg;
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
bool access_user(struct weir_text user, enum role *asked);

bool access_has_secrets(struct access *access, enum role role);

/* Returns whether secrets come from a file, so that a reload may change them. */
bool access_has_files(const struct access *access);

/*
 * The connection keeps this about the secret and the certificate that its client has shown; all
 * zero if there is none yet. Its role is found once, and again whenever the secrets have changed,
 * so that a connection whose secret is no longer valid loses the role.
 */
struct access_pass {
    uint64_t generation; /* of the secrets at the time `role` was found */
    struct hash print;   /* keyed hash of the secret; 0: none */
    enum role asked;     /* the highest role wanted; ROLE_NONE: the highest that the secret gives */
    enum role role;
    enum role certificate; /* the role that the client's certificate gives, whatever the secret */
};

/* Returns a pass that has the certificate of another one, and no secret. */
static inline struct access_pass access_without_secret(const struct access_pass *pass)
{
    return (struct access_pass){.certificate = pass->certificate};
}

/*
 * Fills the pass for a secret and the role that was asked for (ROLE_NONE: the highest that the
 * secret gives). Returns false, and leaves the pass as it was, if the secret does not give that
 * role.
 */
bool access_show(struct access *access, struct weir_text secret, enum role asked,
                 struct access_pass *pass);

/* The first member of struct access, so that access_role() can be inlined. */
struct access_head {
    uint64_t generation; /* of the secrets: even, from 2 on; odd while they are written */
};

/* Fills the pass again, because the secrets have changed. Returns its role. */
enum role access_renew(struct access *access, struct access_pass *pass);

/* Returns the role of this pass according to the present secrets; renews the pass if they changed.
 * A NULL access means that every client may do everything. */
static inline enum role access_role(struct access *access, struct access_pass *pass)
{
    const struct access_head *head = (const struct access_head *)(const void *)access;
    if (access == NULL) {
        return ROLE_ADMIN;
    }
    return load_acquire(&head->generation) == pass->generation ? pass->role
                                                               : access_renew(access, pass);
}

/* Returns whether the pass gives the role. */
static inline bool access_allows(struct access *access, struct access_pass *pass, enum role role)
{
    return access_role(access, pass) >= role;
}

#endif
