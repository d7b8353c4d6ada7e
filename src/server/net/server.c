#include "server/net/server.h"

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
#include "server/admin/denied_log.h"
#include "server/admin/history.h"
#include "server/denied/limit_reasons.h"
#include "server/denied/top_panes.h"
#include "server/ask/reservations.h"
#include "server/notices/notices.h"
#include "server/net/penalty.h"
#include "server/net/processors.h"
#include "server/net/tally.h"
#include "server/net/worker.h"
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

/* Returns the most connections that may be open at once on the listeners of a thread, and so the
 * most addresses that have some. */
static uint32_t rows_of(const struct server *server, unsigned thread)
{
    return SERVER_RESERVE +
           (thread < server->threads ? server->options.connections : server->options.operators);
}

static int start_worker(struct server *server, unsigned number, const struct hash_secret *secret,
                        struct weir_error *error)
{
    int sockets[PROTOCOLS];
    struct worker *w = &server->workers[number];
    int e = open_sockets(server, number, sockets, error);
    if (e == 0) {
        server->workers_count = number + 1;
        e = worker_init(w, server, number, sockets, error);
    }
    e = e != 0 ? e : crowds_init(w, rows_of(server, number), error);
    if (e == 0) {
        w->top = top_create(secret, top_panes_turn(server->panes));
        e = w->top != NULL ? 0 : fail(error, WEIR_ENOMEM, "out of memory for thread %u", number);
    }
    return e;
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

static unsigned threads_of(const struct server_options *o)
{
    unsigned n = o->threads != 0 ? o->threads : processors_allowed();
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        n = o->given[i].count > n ? o->given[i].count : n;
    }
    return n > SERVER_THREADS_MAX ? SERVER_THREADS_MAX : n;
}

static int make_denied_log(struct server *server, struct weir_error *error)
{
    server->denied_log = denied_log_create();
    return server->denied_log != NULL ? 0
                                      : fail(error, WEIR_ENOMEM,
                                             "out of memory for the log of "
                                             "denials");
}

static int make_notices(struct server *server, struct weir_error *error)
{
    server->notices = notices_create();
    return server->notices != NULL ? 0 : fail(error, WEIR_ENOMEM, "out of memory for notices");
}

static int make_panes(struct server *server, struct weir_error *error)
{
    server->panes = top_panes_create(clock_monotonic_ns());
    server->reasons = limit_reasons_create();
    return server->panes != NULL && server->reasons != NULL
               ? 0
               : fail(error, WEIR_ENOMEM, "out of memory for the keys that are denied most");
}

/* Makes the history, for pages on the admin listener. */
static int make_history(struct server *server, struct weir_error *error)
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

int server_start(struct server *server, struct weir_error *error)
{
    unsigned n = threads_of(&server->options);
    server->failed = -1;
    set_default(&server->options.idle_ms, SERVER_IDLE_MS);
    set_default(&server->options.request_ms, SERVER_REQUEST_MS);
    set_default(&server->options.write_ms, SERVER_WRITE_MS);
    set_default(&server->options.sample_ms, SERVER_SAMPLE_MS);
    server->options.operators =
        server->options.operators != 0 ? server->options.operators : SERVER_ADMIN_CONNECTIONS;
    server->threads = n;
    n += has_operators(&server->options);
    fit_files(&server->options, n, server->fleet.fleet != NULL, limiter_files(server->rules));
    server->started_ns = clock_unix_ns();
    server->loaded_ns = server->started_ns;
    server->workers = calloc(n, sizeof *server->workers);
    if (server->workers == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for %u threads", n);
    }
    int e = listener_check_permissions(&server->options, error);
    e = e == 0 ? open_adhoc(server, error) : e;
    e = e != 0 ? e : reservations_create(&server->reservations, RESERVATIONS_MAX, error);
    e = e == 0 ? penalties_create(&server->penalties, error) : e;
    e = e == 0 ? server_tls_open(server, error) : e;
    e = e == 0 ? make_denied_log(server, error) : e;
    e = e == 0 ? make_notices(server, error) : e;
    e = e == 0 ? make_panes(server, error) : e;
    e = e == 0 ? make_history(server, error) : e;
    e = e == 0 ? sandboxes_create(&server->sandboxes, &server->options, error) : e;
    e = e != 0 ? e : tally_create(&server->clients, rows_of(server, 0), error);
    e = e != 0 ? e : tally_create(&server->operators, rows_of(server, server->threads), error);
    if (e == 0 && server->fleet.fleet != NULL && server->fleet.share != NULL) {
        e = server->fleet.share(server->fleet.fleet, n, error);
    }
    e = e == 0 ? start_workers(server, n, error) : e;
    if (e != 0) {
        server_stop(server);
        return e;
    }
    server_tls_warn(server);
    store_release(&server->state, SERVER_READY);
    return 0;
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

void server_stop(struct server *server)
{
    unsigned n = server->workers_count;
    unsigned clients = n < server->threads ? n : server->threads;
    store_release(&server->state, SERVER_DRAINING);
    remove_sockets(server); /* before the listeners close: then another server may take the paths */
    stop_workers(server->workers, clients);
    stop_workers(server->workers + clients, n - clients); /* until here it answers "draining" */
    for (unsigned i = 0; i < n; i++) { /* the operators' thread has read those of all threads */
        top_destroy(server->workers[i].top);
    }
    free(server->workers);
    live_close_beside(server->adhoc);
    if (server->adhoc_remote != NULL) {
        remote_ops(server->fleet.fleet)->release(server->adhoc_remote);
    }
    block_notes_finish(&server->adhoc_notes);
    tally_destroy(server->clients);
    tally_destroy(server->operators);
    reservations_destroy(server->reservations);
    top_panes_destroy(server->panes); /* after the sketches, which read its turn */
    server->panes = NULL;
    limit_reasons_destroy(server->reasons);
    server->reasons = NULL;
    denied_log_destroy(server->denied_log);
    server->denied_log = NULL;
    notices_destroy(server->notices);
    server->notices = NULL;
    history_destroy(server->history);
    server->history = NULL;
    server->reservations = NULL;
    server->clients = NULL;
    server->operators = NULL;
    penalties_destroy(server->penalties);
    server->penalties = NULL;
    server_tls_close(server);
    sandboxes_destroy(server->sandboxes);
    server->sandboxes = NULL;
    server->workers = NULL;
    server->workers_count = 0;
    server->adhoc = NULL;
    server->adhoc_remote = NULL;
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
