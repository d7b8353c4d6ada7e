#include "server/loop/server.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "common/remote.h"
#include "rules/file/adhoc.h"
#include "rules/live/live.h"
#include "server/record/denied_log.h"
#include "server/record/history.h"
#include "server/record/limit_reasons.h"
#include "server/record/top_panes.h"
#include "server/operations/reservations.h"
#include "server/admin/events.h"
#include "server/status/notices.h"
#include "server/loop/penalty.h"
#include "server/loop/processors.h"
#include "server/loop/tally.h"
#include "server/loop/worker.h"
#include "server/sandbox/sandboxes.h"

/* File descriptors besides the clients' connections: of the process (standard streams,
 * rules), and of each thread (its loop and listeners; with a fleet, connections to the store
 * and attempts at one). */
#define FILES_OF_PROCESS 64
#define FILES_OF_THREAD 16
#define FILES_OF_FLEET 64

static int open_adhoc(struct server *server, struct weir_error *error)
{
    struct weir_options o;
    struct weir_fleet *fleet = server->fleet.fleet;
    if (server->options.adhoc_keys == 0) {
        return 0;
    }
    adhoc_options(server->options.adhoc_keys, server->options.adhoc_on_full, &o);
    if (server->options.adhoc_shared && fleet != NULL) {
        struct remote_spec spec = {.name = TEXT(SERVER_ADHOC),
                                   .options = o,
                                   .mode = REMOTE_EXACT,
                                   .on_failure = server->options.adhoc_on_failure,
                                   .any_rate = true};
        return remote_ops(fleet)->open(fleet, &spec, &server->adhoc_remote, error);
    }
    /* A request reads one random place in memory: see docs/explanation/benchmarks.md. */
    o.flags |= WEIR_HUGE_PAGES;
    return live_open_beside(server->rules, SERVER_ADHOC, &o, &server->adhoc, error);
}

static void close_adhoc(struct server *server)
{
    live_close_beside(server->adhoc);
    server->adhoc = NULL;
    if (server->adhoc_remote != NULL) {
        remote_ops(server->fleet.fleet)->release(server->adhoc_remote);
        server->adhoc_remote = NULL;
    }
    block_notes_finish(&server->adhoc_notes);
}

/* Removes the files of unix sockets. */
static void remove_sockets(struct server *server)
{
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if (server->made_file[i]) {
            (void)unlink(server->options.listen[i] + 5);
            server->made_file[i] = false;
        }
    }
}

static void close_sockets(int *sockets)
{
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if (sockets[i] >= 0) {
            (void)close(sockets[i]);
            sockets[i] = -1;
        }
    }
}

/* Returns the thread whose listener is bound first: thread 0, or the operators' thread. */
static unsigned first_of(const struct server *server, unsigned protocol)
{
    return listener_is_for_clients(protocol) ? 0 : server->threads;
}

static int duplicate(int fd, const char *address, int *out, struct weir_error *error)
{
    *out = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *out >= 0 ? 0 : fail_errno(error, "cannot be listened on", address);
}

static int bind_socket(struct server *server, unsigned protocol, int *fd, struct weir_error *error)
{
    const char *given = server->options.listen[protocol];
    enum listener_share share = listener_is_for_clients(protocol) ? LISTENER_FIRST : LISTENER_ALONE;
    int e = listener_open(given, share, fd, error);
    server->made_file[protocol] = e == 0 && listener_is_unix(given);
    return server->made_file[protocol] ? listener_permit(given, &server->options, error) : e;
}

/* Opens another thread's share of a listener of thread 0: one more socket on its port, or a
 * duplicate of its unix socket. */
static int share_socket(const struct server *server, unsigned protocol, int *fd,
                        struct weir_error *error)
{
    char address[SERVER_ADDRESS_MAX];
    const char *given = server->options.listen[protocol];
    uv_os_fd_t first = -1;
    if (!server->workers[0].listeners[protocol].open) {
        return 0;
    }
    if (listener_is_unix(given)) {
        (void)uv_fileno(&server->workers[0].listeners[protocol].uv.handle, &first);
        return duplicate(first, given, fd, error);
    }
    given = server_address(server, (enum server_protocol)protocol, address, sizeof address);
    return listener_open(given, LISTENER_MORE, fd, error);
}

/* Opens the listeners of a thread. If the caller has opened the sockets, there are at least as many
 * threads as sockets (threads_of(), up to SERVER_THREADS_MAX), so that each socket has a thread. */
static int open_sockets(struct server *server, unsigned number, int *sockets,
                        struct weir_error *error)
{
    int e = 0;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        sockets[i] = -1;
    }
    for (unsigned i = 0; e == 0 && i < PROTOCOLS; i++) {
        server->failed = (int)i;
        bool opens = number == first_of(server, i);
        bool shares = listener_is_for_clients(i) && number < server->threads;
        unsigned given = server->options.given[i].count;
        if (given > 0 && (opens || shares)) {
            e = duplicate(server->options.given[i].fds[number % given], server->options.listen[i],
                          &sockets[i], error);
        } else if (opens) {
            e = bind_socket(server, i, &sockets[i], error);
        } else if (shares) {
            e = share_socket(server, i, &sockets[i], error);
        }
    }
    if (e == 0) {
        server->failed = -1;
        e = exposure_check(&server->options, sockets, error);
    }
    if (e != 0) {
        close_sockets(sockets);
    }
    return e;
}

/* Returns how many threads the server has, that of the operators included. */
static unsigned threads_in_all(const struct server *server)
{
    return server->threads + server->operated;
}

/* Returns the most connections that may be open at once on the listeners of a thread, and so the
 * most addresses that have some. */
static uint32_t rows_of(const struct server *server, unsigned thread)
{
    return SERVER_RESERVE +
           (thread < server->threads ? server->options.connections : server->options.operators);
}

/* ---- what other floors do on the operators' thread ---- */

static int open_operators(struct worker *w, struct weir_error *error)
{
    bool streams = w->listeners[PROTOCOL_ADMIN].open;
    return streams && events_open(w) != 0
               ? fail(error, WEIR_ENOMEM, "out of memory for streams of events")
               : 0;
}

static void tick_operators(struct worker *w)
{
    sandboxes_expire(w->server->sandboxes, uv_now(&w->loop));
    notices_look(w->server, clock_unix_ns());
}

static const struct worker_hooks operators = {
    .open = open_operators,
    .tick = tick_operators,
    .close = events_close,
    .finish = events_finish,
};

/* ---- threads ---- */

_Static_assert(SERVER_THREADS_MAX + 1 <= TOP_THREADS, "TOP_BYTES is for fewer sketches");

static int start_worker(struct server *server, unsigned number, const struct hash_secret *secret,
                        struct weir_error *error)
{
    int sockets[PROTOCOLS];
    struct worker *w = &server->workers[number];
    int e = open_sockets(server, number, sockets, error);
    if (e != 0) {
        return e;
    }
    server->workers_count = number + 1;
    e = worker_init(w, server, number, sockets, error);
    if (e != 0) {
        return e;
    }
    e = crowds_init(w, rows_of(server, number), error);
    if (e != 0) {
        return e;
    }
    w->top = top_create(secret, top_panes_turn(server->panes));
    return w->top != NULL ? 0 : fail(error, WEIR_ENOMEM, "out of memory for thread %u", number);
}

static void set_default(uint64_t *option, uint64_t value)
{
    *option = *option != 0 ? *option : value;
}

static int count_limiter(void *arg, const struct weir_rules_limit *limit)
{
    (void)limit;
    ++*(unsigned *)arg;
    return 0;
}

/* Returns how many files the limiters of a state folder need at most. A reload has twice their
 * number open for a moment. */
static unsigned limiter_files(struct weir_rules *rules)
{
    unsigned n = 0;
    if (rules->state != NULL) {
        (void)weir_rules_limits(rules, count_limiter, &n);
    }
    return 2 * n;
}

/*
 * Raises RLIMIT_NOFILE as needed, because a connection is a file. If it cannot be raised enough,
 * lowers the bounds on connections: connections beyond the bound are refused one by one, whereas
 * without descriptors accept() would fail for all of them.
 */
static void fit_files(struct server_options *o, unsigned threads, bool fleet, unsigned limiters)
{
    struct rlimit files;
    rlim_t each = FILES_OF_THREAD + (fleet ? FILES_OF_FLEET : 0);
    rlim_t others =
        FILES_OF_PROCESS + SERVER_STREAMS + 2 * SERVER_RESERVE + threads * each + limiters;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return;
    }
    rlim_t wanted = o->connections + o->operators + others;
    if (files.rlim_cur < wanted) {
        files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        (void)getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur < wanted) {
        rlim_t part = files.rlim_cur / 8;
        part = part > SERVER_ADMIN_LEAST ? part : SERVER_ADMIN_LEAST;
        o->operators = o->operators < part ? o->operators : (unsigned)part;
        others += o->operators;
        o->connections = files.rlim_cur > others ? (unsigned)(files.rlim_cur - others) : 1;
    }
}

static void stop_workers(struct worker *workers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        worker_stop(&workers[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        worker_join(&workers[i]);
    }
    for (unsigned i = 0; i < count; i++) { /* until here they may ask each other for room */
        worker_finish(&workers[i]);
    }
}

static void close_workers(struct server *server)
{
    unsigned n = server->workers_count;
    unsigned clients = n < server->threads ? n : server->threads;
    remove_sockets(server); /* before the listeners close: then another server may take the paths */
    stop_workers(server->workers, clients);
    stop_workers(server->workers + clients, n - clients); /* until here it answers "draining" */
    for (unsigned i = 0; i < n; i++) { /* the operators' thread has read those of all threads */
        top_destroy(server->workers[i].top);
    }
    free(server->workers);
    server->workers = NULL;
    server->workers_count = 0;
}

static int start_workers(struct server *server, unsigned n, struct weir_error *error)
{
    struct hash_secret secret;
    int e = hash_secret_init(&secret);
    if (e != 0) {
        return fail(error, e, "the kernel gives no random numbers");
    }
    for (unsigned i = 0; e == 0 && i < n; i++) {
        e = start_worker(server, i, &secret, error);
    }
    for (unsigned i = 0; e == 0 && i < n; i++) {
        e = worker_start(&server->workers[i], error);
    }
    return e;
}

static int open_workers(struct server *server, struct weir_error *error)
{
    unsigned n = threads_in_all(server);
    server->workers = calloc(n, sizeof *server->workers);
    if (server->workers == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for %u threads", n);
    }
    int e = start_workers(server, n, error);
    if (e != 0) {
        close_workers(server);
    }
    return e;
}

static unsigned threads_of(const struct server_options *o)
{
    unsigned n = o->threads != 0 ? o->threads : processors_allowed();
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        n = o->given[i].count > n ? o->given[i].count : n;
    }
    return n > SERVER_THREADS_MAX ? SERVER_THREADS_MAX : n;
}

/* ---- the other parts ---- */

static int check_permissions(struct server *server, struct weir_error *error)
{
    return listener_check_permissions(&server->options, error);
}

static int open_reservations(struct server *server, struct weir_error *error)
{
    return reservations_create(&server->reservations, RESERVATIONS_MAX, error);
}

static void close_reservations(struct server *server)
{
    reservations_destroy(server->reservations);
    server->reservations = NULL;
}

static int open_penalties(struct server *server, struct weir_error *error)
{
    return penalties_create(&server->penalties, error);
}

static void close_penalties(struct server *server)
{
    penalties_destroy(server->penalties);
    server->penalties = NULL;
}

static int open_denied_log(struct server *server, struct weir_error *error)
{
    server->denied_log = denied_log_create();
    return server->denied_log != NULL
               ? 0
               : fail(error, WEIR_ENOMEM, "out of memory for the log of denials");
}

static void close_denied_log(struct server *server)
{
    denied_log_destroy(server->denied_log);
    server->denied_log = NULL;
}

static int open_notices(struct server *server, struct weir_error *error)
{
    server->notices = notices_create();
    return server->notices != NULL ? 0 : fail(error, WEIR_ENOMEM, "out of memory for notices");
}

static void close_notices(struct server *server)
{
    notices_destroy(server->notices);
    server->notices = NULL;
}

static void close_panes(struct server *server)
{
    top_panes_destroy(server->panes);
    server->panes = NULL;
    limit_reasons_destroy(server->reasons);
    server->reasons = NULL;
}

static int open_panes(struct server *server, struct weir_error *error)
{
    server->panes = top_panes_create(clock_monotonic_ns());
    server->reasons = limit_reasons_create();
    if (server->panes != NULL && server->reasons != NULL) {
        return 0;
    }
    close_panes(server);
    return fail(error, WEIR_ENOMEM, "out of memory for the keys that are denied most");
}

/* Makes the history, for pages on the admin listener. */
static int open_history(struct server *server, struct weir_error *error)
{
    if (strcmp(server->options.listen[PROTOCOL_ADMIN], "off") == 0) {
        return 0;
    }
    server->history = history_create();
    if (server->history == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for the history");
    }
    char text[64];
    (void)snprintf(text, sizeof text, "weir %s", weir_version());
    history_note(server->history, HISTORY_START, text, NULL);
    return 0;
}

static void close_history(struct server *server)
{
    history_destroy(server->history);
    server->history = NULL;
}

static int open_sandboxes(struct server *server, struct weir_error *error)
{
    return sandboxes_create(&server->sandboxes, &server->options, error);
}

static void close_sandboxes(struct server *server)
{
    sandboxes_destroy(server->sandboxes);
    server->sandboxes = NULL;
}

static void close_tallies(struct server *server)
{
    tally_destroy(server->clients);
    tally_destroy(server->operators);
    server->clients = NULL;
    server->operators = NULL;
}

static int open_tallies(struct server *server, struct weir_error *error)
{
    int e = tally_create(&server->clients, rows_of(server, 0), error);
    if (e != 0) {
        return e;
    }
    e = tally_create(&server->operators, rows_of(server, server->threads), error);
    if (e != 0) {
        close_tallies(server);
    }
    return e;
}

/* Tells the fleet how many threads will have a place. */
static int share_fleet(struct server *server, struct weir_error *error)
{
    const struct server_fleet *fleet = &server->fleet;
    return fleet->fleet != NULL && fleet->share != NULL
               ? fleet->share(fleet->fleet, threads_in_all(server), error)
               : 0;
}

/* ---- start and stop ---- */

/* What a server consists of. A step that fails has undone itself; then, and when the server stops,
 * the steps before it are closed in the opposite order. */
static const struct server_step {
    int (*open)(struct server *server, struct weir_error *error);
    void (*close)(struct server *server); /* NULL: nothing is to be done */
} steps[] = {
    {check_permissions, NULL},
    {open_adhoc, close_adhoc},
    {open_reservations, close_reservations},
    {open_penalties, close_penalties},
    {server_tls_open, server_tls_close},
    {open_denied_log, close_denied_log},
    {open_notices, close_notices},
    {open_panes, close_panes}, /* the threads' sketches read its turn: it outlives them */
    {open_history, close_history},
    {open_sandboxes, close_sandboxes},
    {open_tallies, close_tallies},
    {share_fleet, NULL},
    {open_workers, close_workers},
};

/* Returns whether a listener of operators is open. Sets those that are not given to "off". */
static bool has_operators(struct server_options *o)
{
    bool some = false;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        o->listen[i] = o->listen[i] != NULL ? o->listen[i] : "off";
        some = some || (!listener_is_for_clients(i) && strcmp(o->listen[i], "off") != 0);
    }
    return some;
}

/* Completes the options, and fits the bounds to the files that the process may open. */
static void complete_options(struct server *server)
{
    struct server_options *o = &server->options;
    set_default(&o->idle_ms, SERVER_IDLE_MS);
    set_default(&o->request_ms, SERVER_REQUEST_MS);
    set_default(&o->write_ms, SERVER_WRITE_MS);
    set_default(&o->sample_ms, SERVER_SAMPLE_MS);
    o->operators = o->operators != 0 ? o->operators : SERVER_ADMIN_CONNECTIONS;
    server->threads = threads_of(o);
    server->operated = has_operators(o);
    fit_files(o, threads_in_all(server), server->fleet.fleet != NULL, limiter_files(server->rules));
}

int server_start(struct server *server, struct weir_error *error)
{
    server->failed = -1;
    server->hooks = &operators;
    complete_options(server);
    server->started_ns = clock_unix_ns();
    server->loaded_ns = server->started_ns;
    for (server->steps = 0; server->steps < sizeof steps / sizeof steps[0]; server->steps++) {
        int e = steps[server->steps].open(server, error);
        if (e != 0) {
            server_stop(server);
            return e;
        }
    }
    server_tls_warn(server);
    store_release(&server->state, SERVER_READY);
    return 0;
}

void server_stop(struct server *server)
{
    store_release(&server->state, SERVER_DRAINING);
    while (server->steps > 0) {
        const struct server_step *step = &steps[--server->steps];
        if (step->close != NULL) {
            step->close(server);
        }
    }
}

void server_ping(struct server *server)
{
    store_relaxed(&server->pings, load_relaxed(&server->pings) + 1);
    for (unsigned i = 0; i < server->workers_count; i++) {
        worker_ping(&server->workers[i]);
    }
}

bool server_answered(const struct server *server)
{
    bool all = true;
    for (unsigned i = 0; i < server->workers_count; i++) {
        all = all && load_acquire(&server->workers[i].answered) == server->pings;
    }
    return all;
}

const char *server_address(const struct server *server, enum server_protocol protocol, char *text,
                           size_t size)
{
    struct worker *w = &server->workers[first_of(server, protocol)];
    const char *given = server->options.listen[protocol];
    struct sockaddr_storage bound;
    int length = sizeof bound;
    if (listener_is_unix(given) || strcmp(given, "off") == 0 || !w->listeners[protocol].open ||
        uv_tcp_getsockname(&w->listeners[protocol].uv.tcp, (struct sockaddr *)&bound, &length) !=
            0 ||
        !listener_print(&bound, text, size)) {
        (void)snprintf(text, size, "%s", given);
    }
    return text;
}
