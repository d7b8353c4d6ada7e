/* The part of a fleet that all threads of the process share, and the public calls that open, close
 * and observe it. */
#include "fleet/fleet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "fleet/fleet_thread.h"
#include "fleet/loop.h"
#include "shared/store/stores.h"

#define DEADLINE_NS (5 * WEIR_MILLISECOND)
#define DEADLINE_LEAST_NS (100 * WEIR_MICROSECOND)
#define DEADLINE_MOST_NS (10 * WEIR_SECOND)
#define FLEET_SIZE_MOST 1000000
#define MEMORY_HIGH 90

/* ---- options ---- */

static int check_numbers(const struct weir_fleet_options *o, struct weir_error *error)
{
    if (o->deadline_ns != 0 &&
        (o->deadline_ns < DEADLINE_LEAST_NS || o->deadline_ns > DEADLINE_MOST_NS)) {
        return fail(error, WEIR_EINVAL, "deadline_ns is %llu, expected 100 us to 10 s",
                    (unsigned long long)o->deadline_ns);
    }
    if (o->fleet_size > FLEET_SIZE_MOST) {
        return fail(error, WEIR_EINVAL, "fleet_size is %llu, expected at most %d",
                    (unsigned long long)o->fleet_size, FLEET_SIZE_MOST);
    }
    if (o->memory_high > WEIR_FLEET_MEMORY_IGNORED) {
        return fail(error, WEIR_EINVAL,
                    "memory_high is %u, expected a percentage from 1 to 100, 0 or "
                    "WEIR_FLEET_MEMORY_IGNORED",
                    o->memory_high);
    }
    return 0;
}

static int check_options(const struct weir_fleet_options *o, struct weir_error *error)
{
    if (o == NULL) {
        return fail(error, WEIR_EINVAL, "options is NULL, expected struct weir_fleet_options");
    }
    if (o->size != sizeof *o) {
        return fail(error, WEIR_EINVAL,
                    "options.size is %zu, expected %zu: start with WEIR_FLEET_OPTIONS_INIT",
                    o->size, sizeof *o);
    }
    if ((o->flags & ~WEIR_FLEET_CALLERS_LOOP) != 0 || (o->reserved | o->reserved2) != 0) {
        return fail(error, WEIR_EINVAL,
                    "found flags 0x%x and reserved %u, expected known flags and 0", o->flags,
                    o->reserved | o->reserved2);
    }
    if (o->url == NULL) {
        return fail(error, WEIR_EINVAL, "url is NULL, expected for example redis://host:port");
    }
    int e = check_numbers(o, error);
    return e != 0 ? e : fleet_secrets_check(o, error);
}

/* The options that are strings. */
#define STRING(field) offsetof(struct weir_fleet_options, field)
static const size_t strings[] = {
    STRING(url),
    STRING(user),
    STRING(password),
    STRING(password_file),
    STRING(sentinel_user),
    STRING(sentinel_password),
    STRING(prefix),
    STRING(sentinel_password_file),
    STRING(networks),
    STRING(tls_ca),
    STRING(tls_cert),
    STRING(tls_key),
    STRING(tls_server_name),
};

static char **string_at(struct weir_fleet_options *o, size_t i)
{
    return (char **)(void *)((char *)o + strings[i]);
}

static int copy_options(struct weir_fleet *f, const struct weir_fleet_options *o,
                        struct weir_error *error)
{
    bool copied = true;
    f->options = *o;
    f->options.deadline_ns = o->deadline_ns != 0 ? o->deadline_ns : DEADLINE_NS;
    f->options.prefix = o->prefix != NULL ? o->prefix : "weir";
    f->options.memory_high = o->memory_high != 0 ? o->memory_high : MEMORY_HIGH;
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        char **string = string_at(&f->options, i);
        if (*string != NULL) {
            *string = strdup(*string);
            copied = copied && *string != NULL;
        }
    }
    return copied ? 0 : fail(error, WEIR_ENOMEM, "out of memory for a fleet");
}

/* Frees the strings, and wipes them, because two of them are passwords. */
static void free_options(struct weir_fleet_options *o)
{
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        char *string = *string_at(o, i);
        if (string != NULL) {
            explicit_bzero(string, strlen(string));
        }
        free(string);
    }
}

/* ---- threads ---- */

static void wake_one(void *arg)
{
    struct weir_fleet *f = arg;
    (void)pthread_mutex_lock(&f->lock);
    if (f->threads != NULL) {
        (void)uv_async_send(&f->threads->wake);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

void fleet_add_thread(struct weir_fleet *f, struct fleet_thread *t)
{
    (void)pthread_mutex_lock(&f->lock);
    t->next = f->threads;
    f->threads = t;
    (void)pthread_mutex_unlock(&f->lock);
}

void fleet_remove_thread(struct weir_fleet *f, const struct fleet_thread *t)
{
    (void)pthread_mutex_lock(&f->lock);
    for (struct fleet_thread **at = &f->threads; *at != NULL; at = &(*at)->next) {
        if (*at == t) {
            *at = t->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&f->lock);
}

static int make_shared(struct weir_fleet *f, struct weir_error *error)
{
    struct hash_secret random;
    int e = hash_secret_init(&random);
    if (e != 0) {
        return fail(error, e, "the kernel gives no random numbers");
    }
    const struct store_shared_options options = {
        .prefix = text_of(f->options.prefix),
        .fleet_size = f->options.fleet_size,
        .node = random.sip[0],
        .wake = wake_one,
        .wake_arg = f,
    };
    f->breakers = breakers_create(random.sip[1]);
    e = f->breakers != NULL ? store_shared_create(&f->shared, &options) : WEIR_ENOMEM;
    return e == 0 ? 0
                  : fail(error, e, "cannot open a fleet with the prefix '%.100s': %s",
                         f->options.prefix, weir_strerror(e));
}

/* Reads the secrets once when the fleet is opened, so that a wrong path is reported at once, and so
 * that they are known to `redact` before the first connection. Checks that a Sentinel password is
 * only given with redis-sentinel://. */
static int look_at_secrets(struct weir_fleet *f, struct weir_error *error)
{
    char room[FLEET_SECRET_BYTES];
    struct weir_text secret;
    int e = redact_init(&f->redact);
    if (e != 0) {
        return fail(error, e, "the kernel gives no random numbers");
    }
    for (int sentinel = 0; e == 0 && sentinel < 2; sentinel++) {
        e = fleet_secret_read(f, sentinel == 1, room, &secret, error);
        redact_learn(&f->redact, e == 0 ? secret : TEXT(""));
    }
    explicit_bzero(room, sizeof room);
    if (e == 0 && secret.len > 0 && f->url.kind != STORE_SENTINEL) {
        e = fail(error, WEIR_EINVAL,
                 "found a password for Sentinels, expected a URL with redis-sentinel://");
    }
    return e;
}

static void free_fleet(struct weir_fleet *f)
{
    store_shared_destroy(f->shared);
    fleet_forget_nodes(f);
    breakers_destroy(f->breakers);
    cidr_set_destroy(f->networks);
    tls_context_unref(f->tls);
    free_options(&f->options);
    (void)pthread_mutex_destroy(&f->tls_lock);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

int fleet_open_bare(struct weir_fleet **out, const struct weir_fleet_options *options,
                    struct weir_error *error)
{
    *out = NULL;
    int e = check_options(options, error);
    if (e != 0) {
        return e;
    }
    struct weir_fleet *f = calloc(1, sizeof *f);
    if (f == NULL) {
        (void)fail(error, WEIR_ENOMEM, "out of memory for a fleet");
        return WEIR_ENOMEM;
    }
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_mutex_init(&f->tls_lock, NULL);
    f->face.ops = &fleet_ops;
    f->bare = true;
    f->process = getpid();
    e = copy_options(f, options, error);
    e = e == 0 ? store_url_read(text_of(options->url), &f->url, error) : e;
    e = e == 0 ? fleet_networks_read(f, error) : e;
    e = e == 0 ? look_at_secrets(f, error) : e;
    e = e == 0 ? fleet_tls_open(f, error) : e;
    e = e == 0 ? make_shared(f, error) : e;
    if (e != 0) {
        free_fleet(f);
        return e;
    }
    *out = f;
    return 0;
}

int weir_fleet_open(struct weir_fleet **fleet, const struct weir_fleet_options *options,
                    struct weir_error *error)
{
    if (fleet == NULL) {
        return fail(error, WEIR_EINVAL, "fleet is NULL, expected the address of a pointer");
    }
    int e = fleet_open_bare(fleet, options, error);
    if (e != 0) {
        return e;
    }
    (*fleet)->bare = false;
    e = fleet_loops_open(*fleet, 1, error);
    if (e != 0) {
        free_fleet(*fleet);
        *fleet = NULL;
    }
    return e;
}

/* Does nothing in a child of fork(): there the descriptors of the loop are shared with the parent,
 * and its thread does not exist. */
void weir_fleet_close(struct weir_fleet *fleet)
{
    if (fleet == NULL || fleet->process != getpid()) {
        return;
    }
    fleet_loops_close(fleet);
    free_fleet(fleet);
}

/* ---- statistics ---- */

int weir_fleet_stats_read(struct weir_fleet *fleet, struct weir_fleet_stats *stats)
{
    if (fleet == NULL || stats == NULL || stats->size != sizeof *stats) {
        return WEIR_EINVAL;
    }
    const struct client_metrics *m = &fleet->metrics;
    *stats = (struct weir_fleet_stats){
        .size = stats->size,
        .up = load_relaxed(&m->up),
        .nodes = store_fleet_size(fleet->shared),
        .calls = load_relaxed(&m->calls),
        .unknown = load_relaxed(&m->unknown),
        .resent = load_relaxed(&m->resent),
        .degraded = load_relaxed(&fleet->shared->degraded),
        .breakers_open = breakers_count_open(fleet->breakers),
        .targets_refused = load_relaxed(&fleet->targets_refused),
    };
    return 0;
}

int weir_fleet_trouble(const struct weir_fleet *fleet, struct weir_error *error)
{
    int e = 0;
    if (fleet == NULL || error == NULL) {
        return WEIR_EINVAL;
    }
    pthread_mutex_t *lock = (pthread_mutex_t *)&fleet->lock;
    (void)pthread_mutex_lock(lock);
    for (const struct fleet_thread *t = fleet->threads; t != NULL && e == 0; t = t->next) {
        if (t->trouble[0] != 0) {
            e = fail(error, WEIR_EIO, "%s", t->trouble);
        }
    }
    (void)pthread_mutex_unlock(lock);
    return e;
}
