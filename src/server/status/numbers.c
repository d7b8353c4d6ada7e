#include "server/status/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomic.h"
#include "common/folder.h"
#include "rules/live/live.h"
#include "server/record/denied_log.h"

/* ---- threads and limits ---- */

_Static_assert(sizeof(struct worker_counts) % sizeof(uint64_t) == 0, "counts and nothing else");

/* Adds the numbers of `from` to those of `sum`, both made of uint64_t. */
static void add_words(const void *from, void *sum, size_t bytes)
{
    const uint64_t *part = from;
    uint64_t *to = sum;
    for (size_t i = 0; i < bytes / sizeof *to; i++) {
        to[i] += load_relaxed(&part[i]);
    }
}

/* Appends a limit. Returns NULL if out of memory. */
static struct limit_numbers *add_limit(struct numbers *n, const char *name)
{
    struct limit_numbers limit = {.missing = 0};
    (void)snprintf(limit.name, sizeof limit.name, "%s", name);
    return arena_append(&n->arena, &n->limits, &n->limits_count, sizeof limit, &limit)
               ? &n->limits[n->limits_count - 1]
               : NULL;
}

/* Returns the entry of a limit. The tiers of a limit follow each other; only the built-in limit may
 * have the name of an earlier one. */
static struct limit_numbers *find_limit(const struct numbers *n, const char *name)
{
    size_t first =
        strcmp(name, SERVER_ADHOC) == 0 || n->limits_count == 0 ? 0 : n->limits_count - 1;
    for (size_t i = first; i < n->limits_count; i++) {
        if (strcmp(n->limits[i].name, name) == 0) {
            return &n->limits[i];
        }
    }
    return NULL;
}

/* Adds the numbers of one limiter to those of its limit. */
static int take_limit(void *arg, const struct weir_rules_limit *from)
{
    struct numbers *n = arg;
    struct limit_numbers *limit = find_limit(n, from->name);
    limit = limit != NULL ? limit : add_limit(n, from->name);
    if (limit == NULL) {
        return WEIR_ENOMEM;
    }
    add_words(&from->stats.allowed, &limit->stats.allowed,
              sizeof from->stats - offsetof(struct weir_stats, allowed));
    limit->missing += from->missing;
    limit->uncovered += from->uncovered;
    limit->bans += from->bans;
    limit->bans_failed += from->bans_failed;
    limit->denials_evicted += from->denials_evicted;
    limit->switched = from->switched != 0;
    limit->shadow = from->shadow != 0;
    limit->left_out = denied_log_left_out(n->server->denied_log, from->name);
    limit->remote = limit->remote || from->consistency != WEIR_RULES_LOCAL;
    limit->remembered += from->remembered;
    limit->on_store_failure = from->on_store_failure; /* the same for all its tiers */
    limit->degraded += from->degraded[from->on_store_failure];
    return 0;
}

int numbers_limits(const struct server *server, weir_rules_limit_fn fn, void *arg)
{
    struct weir_rules_limit adhoc = {
        .name = SERVER_ADHOC,
        .tier = "",
        .algorithm = WEIR_TOKEN_BUCKET,
        .stats = {.size = sizeof adhoc.stats},
        .switched = load_relaxed(&server->adhoc_shadow) != 0,
        .consistency = WEIR_RULES_LOCAL,
    };
    int e = weir_rules_limits(server->rules, fn, arg);
    if (e != 0 || !server_has_adhoc(server)) {
        return e;
    }
    if (server->adhoc_remote != NULL) {
        live_read_counts(remote_ops(server->fleet.fleet), server->adhoc_remote, &adhoc);
        adhoc.on_store_failure = server->options.adhoc_on_failure;
    } else {
        (void)weir_stats_read(server->adhoc, &adhoc.stats);
    }
    return fn(arg, &adhoc);
}

/* ---- the process ---- */

static uint64_t to_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * WEIR_SECOND + (uint64_t)t.tv_usec * WEIR_MICROSECOND;
}

/* Returns the resident memory: the second number of /proc/self/statm, which counts pages. */
static uint64_t resident_bytes(void)
{
    char text[128];
    char *second = NULL;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) {
        return 0;
    }
    if (fgets(text, sizeof text, f) != NULL) {
        second = strchr(text, ' ');
    }
    (void)fclose(f);
    return second != NULL ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Returns the number of open descriptors, without the one that lists them. */
static uint64_t open_files(void)
{
    uint64_t n = 0;
    DIR *folder = folder_open("/proc/self/fd");
    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        n += e->d_name[0] != '.';
    }
    (void)closedir(folder);
    return n > 0 ? n - 1 : 0;
}

static void read_process(struct process_numbers *p)
{
    struct rusage usage;
    struct rlimit files;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        p->cpu_ns = to_ns(usage.ru_utime) + to_ns(usage.ru_stime);
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        p->most_files = files.rlim_cur;
    }
    p->resident_bytes = resident_bytes();
}

/* ---- all ---- */

/* Counts the denied requests of clients whose reason is the units of a limit: all others but the
 * counted ones. The counts are read one after the other, so that they may differ by a few. */
static void count_of_limits(struct worker_counts *counts)
{
    uint64_t all = 0;
    uint64_t others = 0;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        all += listener_is_for_clients(i) ? counts->requests[REQUEST_DENY][i] : 0;
    }
    for (unsigned i = 0; i < REQUEST_REASONS; i++) {
        others += counts->denied[i];
    }
    counts->denied[WEIR_REASON_LIMIT] = all > others ? all - others : 0;
}

/* Reads everything but what the rules count. */
static void read_server(const struct server *server, struct numbers *n)
{
    *n = (struct numbers){.server = server, .rules = {.size = sizeof n->rules}};
    for (unsigned i = 0; i < server->workers_count; i++) {
        add_words(&server->workers[i].counts, &n->counts, sizeof n->counts);
    }
    count_of_limits(&n->counts);
    n->reloads = load_relaxed(&server->reloads);
    n->reloads_failed = load_relaxed(&server->reloads_failed);
    n->renewals = load_relaxed(&server->renewals);
    n->renewals_failed = load_relaxed(&server->renewals_failed);
    n->certificate_ns = (uint64_t)server_tls_expires(server) * WEIR_SECOND;
    n->loaded_ns = load_relaxed(&server->loaded_ns);
    n->started_ns = server->started_ns;
    read_process(&n->process);
    reservations_count(server->reservations, &n->reservations);
    if (server->fleet.fleet != NULL) {
        server->fleet.read(server->fleet.fleet, &n->fleet);
    }
}

int numbers_read(const struct server *server, struct numbers *n)
{
    read_server(server, n);
    n->process.open_files = open_files();
    n->shadow = weir_rules_shadow_get(server->rules, NULL) == 1;
    int e = weir_rules_stats_read(server->rules, &n->rules);
    return e == 0 ? numbers_limits(server, take_limit, n) : e;
}

bool numbers_read_briefly(const struct server *server, struct numbers *n)
{
    struct weir_rules *rules = server->rules;
    read_server(server, n);
    if (pthread_mutex_trylock(&rules->reload) != 0) {
        return false;
    }
    n->rules.generation = rules->generation;
    n->shadow = rules->shadow_all != 0;
    (void)pthread_mutex_unlock(&rules->reload);
    return numbers_limits(server, take_limit, n) == 0;
}

void numbers_finish(struct numbers *n)
{
    arena_finish(&n->arena);
}
