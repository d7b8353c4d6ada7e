/*
 * Secrets are kept as keyed 128-bit hashes (SipHash-2-4, with a random key of this process). All
 * have the same length, so comparing one with a guess compares a few words whatever the guess, and
 * every guess is compared with every place of both roles, used or not. How long that takes depends
 * only on the length of the guess.
 *
 * Readers take no lock. The places are guarded by a sequence lock:
 *
 *   the writer, holding `writing`:  makes generation odd; writes places; makes generation even
 *   a reader:  reads generation, again while it is odd; reads places; again if it has changed
 *
 * G1. Places are written with release and read with acquire: a reader that saw a new place sees
 *     at least the odd number before it, and reads again.
 * G2. The even number is written with release: a reader that saw it sees all of its places.
 */
#include "server/access/access.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/lock.h"
#include "common/log.h"
#include "rules/file/files.h"

const char *const role_names[ROLES] = {"none", "check", "admin"};
const char *const role_variables[ROLES] = {"", "WEIR_CHECK_SECRETS", "WEIR_ADMIN_SECRETS"};

/* All secrets of a role with their line ends. */
#define FILE_BYTES_MAX ((size_t)ACCESS_SECRETS_MAX * (ACCESS_SECRET_MAX + 2))

struct secret_place {
    uint64_t low;
    uint64_t high;
    uint64_t used; /* 1 or 0 */
};

struct access {
    struct access_head head;
    struct secret_place places[ROLES][ACCESS_SECRETS_MAX];
    uint64_t key[2];            /* key of the hash */
    struct access_sources from; /* its texts and names are copies */
    pthread_mutex_t writing;
};

/* Secrets that have been read but are not valid yet. */
struct secrets {
    struct hash of[ROLES][ACCESS_SECRETS_MAX];
    unsigned count[ROLES];
};

/* Returns the hash of a secret; never all zero, which means no secret. */
static struct hash print_of(const struct access *access, struct weir_text secret)
{
    struct hash h = siphash128(access->key, secret.at, secret.len, 2, 4);
    h.low |= h.low == 0 && h.high == 0;
    return h;
}

/* ---- warnings ---- */

static void warn(const struct access *access, const struct access_warning *w)
{
    if (access->from.warn != NULL) {
        access->from.warn(access->from.warn_arg, w);
    } else {
        LOG(LEVEL_WARNING, w->what, LOG_STRING("in", w->where), LOG_COUNT("line", w->line),
            LOG_STRING("found", w->found), LOG_STRING("expected", w->expected));
    }
}

static void warn_of_mode(const struct access *access, const char *path)
{
    char mode[8];
    struct stat st;
    if (stat(path, &st) == 0 && (st.st_mode & (S_IRGRP | S_IROTH)) != 0) {
        (void)snprintf(mode, sizeof mode, "%04o", st.st_mode & 07777);
        warn(access, &(struct access_warning){"a file of secrets can be read by other users", path,
                                              0, mode, "0600 or 0400"});
    }
}

static void warn_of_length(const struct access *access, const char *where, unsigned line,
                           size_t len)
{
    char found[32];
    if (len < ACCESS_SECRET_LEAST) {
        (void)snprintf(found, sizeof found, "%zu bytes", len);
        warn(access, &(struct access_warning){"a secret is short enough to be guessed", where, line,
                                              found, "at least 16 bytes"});
    }
}

/* ---- reading ---- */

struct secrets_reading {
    const struct access *access;
    const char *name; /* where the secrets come from, for messages */
    enum role role;
    struct secrets *to;
};

static int add_secret(const struct secrets_reading *r, unsigned line, struct weir_text secret,
                      struct weir_error *error)
{
    unsigned *count = &r->to->count[r->role];
    if (secret.len > ACCESS_SECRET_MAX) {
        return fail(error, WEIR_EINVAL, "%s:%u: found a secret of %zu bytes, expected at most %d",
                    r->name, line, secret.len, ACCESS_SECRET_MAX);
    }
    if (memchr(secret.at, 0, secret.len) != NULL) {
        return fail(error, WEIR_EINVAL, "%s:%u: found a zero byte, expected text", r->name, line);
    }
    if (*count == ACCESS_SECRETS_MAX) {
        return fail(error, WEIR_EINVAL, "%s:%u: found more than %d secrets of the role %s", r->name,
                    line, ACCESS_SECRETS_MAX, role_names[r->role]);
    }
    r->to->of[r->role][(*count)++] = print_of(r->access, secret);
    warn_of_length(r->access, r->name, line, secret.len);
    return 0;
}

/* Reads one secret from each line. A text without any is an error, because the
 * role would be open. */
static int read_text(const struct secrets_reading *r, struct weir_text text,
                     struct weir_error *error)
{
    unsigned before = r->to->count[r->role];
    int e = 0;
    for (unsigned line = 1; e == 0 && text.len > 0; line++) {
        struct weir_text one = text_cut(&text, '\n');
        one.len -= one.len > 0 && one.at[one.len - 1] == '\r';
        e = one.len > 0 ? add_secret(r, line, one, error) : 0;
    }
    if (e == 0 && r->to->count[r->role] == before) {
        e = fail(error, WEIR_EINVAL, "%s: found no secret, expected one on each line", r->name);
    }
    return e;
}

static int read_file(const struct secrets_reading *r, struct weir_error *error)
{
    struct arena arena = ARENA_INIT;
    struct weir_text text = {"", 0};
    int e = file_read(&arena, r->name, FILE_BYTES_MAX, &text, error);
    e = e != 0 ? e : read_text(r, text, error);
    if (e == 0) {
        warn_of_mode(r->access, r->name);
    }
    explicit_bzero((char *)text.at, text.len);
    arena_finish(&arena);
    return e;
}

static int read_sources(const struct access *access, struct secrets *to, struct weir_error *error)
{
    int e = 0;
    for (int role = ROLE_CHECK; role < ROLES; role++) {
        struct secrets_reading r = {access, access->from.file[role], (enum role)role, to};
        if (e == 0 && access->from.file[role] != NULL) {
            e = read_file(&r, error);
        }
        r.name = role_variables[role];
        if (e == 0 && access->from.text[role] != NULL) {
            e = read_text(&r, text_of(access->from.text[role]), error);
        }
    }
    return e;
}

/* Returns the name of the role's source that was read first. */
static const char *source_of(const struct access *access, enum role role)
{
    return access->from.file[role] != NULL ? access->from.file[role] : role_variables[role];
}

/* Warns of secrets of both roles: clients that only check could change things with them. */
static void warn_of_sharing(const struct access *access, const struct secrets *secrets)
{
    bool both = false;
    for (unsigned i = 0; i < secrets->count[ROLE_CHECK]; i++) {
        for (unsigned j = 0; j < secrets->count[ROLE_ADMIN]; j++) {
            both = both || memcmp(&secrets->of[ROLE_CHECK][i], &secrets->of[ROLE_ADMIN][j],
                                  sizeof secrets->of[ROLE_CHECK][i]) == 0;
        }
    }
    if (both) {
        warn(access,
             &(struct access_warning){
                 "a secret is valid for both roles", source_of(access, ROLE_CHECK), 0,
                 source_of(access, ROLE_ADMIN),
                 "different secrets, because one for checks also gives the rights of an operator"});
    }
}

/* ---- publishing ---- */

static void publish(struct access *access, const struct secrets *from)
{
    uint64_t now = load_relaxed(&access->head.generation);
    store_relaxed(&access->head.generation, now + 1);
    for (int role = ROLE_CHECK; role < ROLES; role++) {
        for (unsigned i = 0; i < ACCESS_SECRETS_MAX; i++) {
            struct secret_place *p = &access->places[role][i];
            store_release(&p->low, from->of[role][i].low); /* G1 */
            store_release(&p->high, from->of[role][i].high);
            store_release(&p->used, i < from->count[role]);
        }
    }
    store_release(&access->head.generation, now + 2); /* G2 */
}

int access_reload(struct access *access, struct weir_error *error)
{
    struct secrets secrets = {.count = {0}};
    if (access == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&access->writing);
    int e = read_sources(access, &secrets, error);
    if (e == 0) {
        warn_of_sharing(access, &secrets);
        publish(access, &secrets);
    }
    (void)pthread_mutex_unlock(&access->writing);
    return e;
}

static bool copy(const char *from, const char **to)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from == NULL || *to != NULL;
}

int access_open(struct access **out, const struct access_sources *from, struct weir_error *error)
{
    struct hash_secret random;
    struct access *access = calloc(1, sizeof *access);
    if (access == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for secrets");
    }
    (void)pthread_mutex_init(&access->writing, NULL);
    int e = hash_secret_init(&random) == 0
                ? 0
                : fail(error, WEIR_EIO, "the kernel gives no random numbers");
    memcpy(access->key, random.sip, sizeof access->key);
    access->from = (struct access_sources){
        .named = from->named, .warn = from->warn, .warn_arg = from->warn_arg};
    for (int role = ROLE_CHECK; e == 0 && role < ROLES; role++) {
        if (!copy(from->file[role], &access->from.file[role]) ||
            !copy(from->text[role], &access->from.text[role])) {
            e = fail(error, WEIR_ENOMEM, "out of memory for secrets");
        }
    }
    e = e != 0 ? e : access_reload(access, error);
    if (e != 0) {
        access_close(access);
        return e;
    }
    *out = access;
    return 0;
}

void access_close(struct access *access)
{
    if (access == NULL) {
        return;
    }
    for (int role = ROLE_CHECK; role < ROLES; role++) {
        char *text = (char *)(uintptr_t)access->from.text[role]; /* a copy of ours */
        free((char *)(uintptr_t)access->from.file[role]);
        if (text != NULL) {
            explicit_bzero(text, strlen(text));
        }
        free(text);
    }
    (void)pthread_mutex_destroy(&access->writing);
    explicit_bzero(access, sizeof *access);
    free(access);
}

/* ---- asking ---- */

/* Returns 1 if x is 0, otherwise 0, without a branch. */
static uint64_t is_zero(uint64_t x)
{
    return ((x | (0 - x)) >> 63) ^ 1;
}

/* A consistent view of all places, compared with one hash. */
struct found {
    uint64_t matches[ROLES]; /* 1: the hash is that of a secret of the role */
    uint64_t secrets[ROLES]; /* number of secrets of the role */
    uint64_t generation;
    bool named;
};

static void look_once(const struct access *access, struct hash print, struct found *f)
{
    for (int role = ROLE_CHECK; role < ROLES; role++) {
        for (unsigned i = 0; i < ACCESS_SECRETS_MAX; i++) {
            const struct secret_place *p = &access->places[role][i];
            uint64_t used = load_acquire(&p->used);
            uint64_t other = (load_acquire(&p->low) ^ print.low) | /* G1 */
                             (load_acquire(&p->high) ^ print.high);
            f->matches[role] |= used & is_zero(other);
            f->secrets[role] += used;
        }
    }
}

static struct found look(const struct access *access, struct hash print)
{
    for (unsigned attempt = 0;; lock_pause(attempt++)) {
        struct found f = {.generation = load_acquire(&access->head.generation), /* G2 */
                          .named = access->from.named};
        if ((f.generation & 1) == 0) {
            look_once(access, print, &f);
            if (load_relaxed(&access->head.generation) == f.generation) {
                return f;
            }
        }
    }
}

/* Returns the role without a secret, by the table at the top of access.h. */
static enum role role_open(const struct found *f)
{
    return f->secrets[ROLE_CHECK] == 0 && !f->named ? ROLE_CHECK : ROLE_NONE;
}

static enum role role_given(const struct found *f)
{
    return f->matches[ROLE_ADMIN] != 0   ? ROLE_ADMIN
           : f->matches[ROLE_CHECK] != 0 ? ROLE_CHECK
                                         : ROLE_NONE;
}

bool access_user(struct weir_text user, enum role *asked)
{
    static const struct {
        const char *name;
        enum role asked;
    } users[] = {
        {"", ROLE_NONE}, {"default", ROLE_NONE}, {"check", ROLE_CHECK}, {"admin", ROLE_ADMIN}};
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++) {
        if (text_is(user, users[i].name)) {
            *asked = users[i].asked;
            return true;
        }
    }
    return false;
}

bool access_has_secrets(struct access *access, enum role role)
{
    return access != NULL && look(access, (struct hash){0, 0}).secrets[role] > 0;
}

bool access_has_files(const struct access *access)
{
    return access != NULL &&
           (access->from.file[ROLE_CHECK] != NULL || access->from.file[ROLE_ADMIN] != NULL);
}

static void fill_pass(const struct found *f, struct hash print, enum role asked,
                      struct access_pass *pass)
{
    enum role given = role_given(f);
    enum role open = role_open(f);
    enum role role = given > open ? given : open;
    role = pass->certificate > role ? pass->certificate : role;
    *pass = (struct access_pass){.generation = f->generation,
                                 .print = print,
                                 .asked = asked,
                                 .certificate = pass->certificate,
                                 .role = asked != ROLE_NONE && role > asked ? asked : role};
}

bool access_show(struct access *access, struct weir_text secret, enum role asked,
                 struct access_pass *pass)
{
    struct hash print = print_of(access, secret);
    struct found f = look(access, print);
    enum role given = role_given(&f);
    if (given == ROLE_NONE || given < asked) {
        return false;
    }
    fill_pass(&f, print, asked, pass);
    return true;
}

enum role access_renew(struct access *access, struct access_pass *pass)
{
    struct found f = look(access, pass->print);
    fill_pass(&f, pass->print, pass->asked, pass);
    return pass->role;
}
