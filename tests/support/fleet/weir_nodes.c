#include "support/fleet/weir_nodes.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/engine/threads_run.h"
#include "support/server/await_start.h"

/* FOLDER/resp.3 */
static const char *path_of(const struct weir_nodes *n, const char *name, unsigned node, char *path)
{
    (void)snprintf(path, 128, "%s/%s.%u", n->folder, name, node);
    return path;
}

void weir_nodes_write_rules(const struct weir_nodes *n, const char *rules)
{
    char path[128];
    FILE *f = fopen(path_of(n, "rules", 0, path), "w");
    threads_require(f != NULL && fputs(rules, f) >= 0 && fclose(f) == 0);
}

/* ---- one node ---- */

_Noreturn static void become(const struct weir_nodes *n, unsigned node, const char *url)
{
    char rules[128];
    char log[128];
    char resp[160];
    char http[160];
    char admin[160];
    char path[128];
    char state[128];
    char threads[16];
    (void)snprintf(threads, sizeof threads, "%u", n->threads != 0 ? n->threads : 2);
    (void)mkdir(path_of(n, "state", node, state), 0700);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setenv("XDG_RUNTIME_DIR", n->folder, 1); /* for the secret that it makes */
    int out = open(path_of(n, "log", node, log), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int in = open("/dev/null", O_RDONLY);
    if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) {
        _exit(126);
    }
    (void)snprintf(resp, sizeof resp, "unix:%s", path_of(n, "resp", node, path));
    (void)snprintf(http, sizeof http, "unix:%s", path_of(n, "http", node, path));
    (void)snprintf(admin, sizeof admin, "unix:%s", path_of(n, "admin", node, path));
    (void)execl(WEIR_BUILD_DIR "/weir", "weir", "serve", "--config", path_of(n, "rules", 0, rules),
                "--store", url, "--resp", resp, "--http", http, "--admin", admin, "--threads",
                threads, "--max-age", "0", "--no-watch", "--state", n->kept ? state : "off",
                (char *)NULL);
    _exit(127);
}

static void start(struct weir_nodes *n, unsigned node, const char *url)
{
    n->pid[node] = fork();
    threads_require(n->pid[node] >= 0);
    if (n->pid[node] == 0) {
        become(n, node, url);
    }
}

static int open_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%.100s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    threads_require(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Sends a request to one of the node's sockets. Returns everything that it sends until it closes
 * the connection; "" if it does not listen. */
static const char *ask_socket(const char *path, const char *request)
{
    static __thread char text[1 << 18];
    size_t len = 0;
    int fd = open_unix(path);
    if (fd < 0) {
        return "";
    }
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
        (void)close(fd);
        return "";
    }
    for (ssize_t got = 1; got > 0 && len + 1 < sizeof text;) {
        got = recv(fd, text + len, sizeof text - 1 - len, 0);
        len += got > 0 ? (size_t)got : 0;
    }
    (void)close(fd);
    text[len] = 0;
    return text;
}

const char *weir_nodes_http(const struct weir_nodes *n, unsigned node, const char *request)
{
    char path[128];
    return ask_socket(path_of(n, "http", node, path), request);
}

/* Finds the number after "\nSERIES " in /metrics. */
double weir_nodes_metric(const struct weir_nodes *n, unsigned node, const char *series)
{
    char path[128];
    char line[160];
    const char *text =
        ask_socket(path_of(n, "admin", node, path),
                   "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    (void)snprintf(line, sizeof line, "\n%s ", series);
    const char *at = strstr(text, line);
    return at != NULL ? strtod(at + strlen(line), NULL) : -1;
}

static bool runs(const struct weir_nodes *n, unsigned node)
{
    return waitpid(n->pid[node], NULL, WNOHANG) == 0;
}

struct starting_node {
    const struct weir_nodes *nodes;
    unsigned node;
    const char *metric;
    double least;
};

static enum start look(void *arg)
{
    const struct starting_node *s = arg;
    if (weir_nodes_metric(s->nodes, s->node, s->metric) >= s->least) {
        return START_READY;
    }
    return runs(s->nodes, s->node) ? START_PENDING : START_ENDED;
}

static void show(void *arg)
{
    const struct starting_node *s = arg;
    char *log = weir_nodes_log(s->nodes, s->node);
    (void)fputs(log, stderr);
    free(log);
}

/* Waits until a metric of a node that was started has at least that value. */
static void await(const struct weir_nodes *n, unsigned node, const char *metric, double least)
{
    struct starting_node s = {n, node, metric, least};
    if (!await_start(metric, look, show, &s)) {
        threads_fail(__FILE__, __LINE__, weir_nodes_log(n, node));
    }
}

/* ---- all nodes ---- */

static void start_all(struct weir_nodes *n, const char *rules, const char *url)
{
    (void)snprintf(n->folder, sizeof n->folder, "/tmp/weir-nodes-XXXXXX");
    threads_require(n->count <= WEIR_NODES_MAX && mkdtemp(n->folder) != NULL);
    weir_nodes_write_rules(n, rules);
    for (unsigned i = 0; i < n->count; i++) {
        start(n, i, url);
    }
    for (unsigned i = 0; i < n->count; i++) {
        /* By default two threads for clients and that of the admin listener have a connection. */
        await(n, i, "weir_store_connections", n->links != 0 ? n->links : 3);
    }
}

void weir_nodes_start(struct weir_nodes *n, unsigned count, const char *rules, const char *url)
{
    *n = (struct weir_nodes){.count = count};
    start_all(n, rules, url);
}

void weir_nodes_start_kept(struct weir_nodes *n, unsigned count, const char *rules, const char *url)
{
    *n = (struct weir_nodes){.count = count, .kept = true};
    start_all(n, rules, url);
}

void weir_nodes_start_sharing(struct weir_nodes *n, unsigned count, const char *rules,
                              const char *url, unsigned threads, unsigned links)
{
    *n = (struct weir_nodes){.count = count, .threads = threads, .links = links};
    start_all(n, rules, url);
}

void weir_nodes_restart(struct weir_nodes *n, unsigned node, const char *url)
{
    start(n, node, url);
    await(n, node, "weir_fleet_nodes", 0);
}

void weir_nodes_connect(const struct weir_nodes *n, unsigned node, struct server_client *c)
{
    char path[128];
    char address[160];
    (void)snprintf(address, sizeof address, "unix:%s", path_of(n, "resp", node, path));
    server_connect(c, address);
}

void weir_nodes_end(struct weir_nodes *n, unsigned node, int signal_number)
{
    int status = 0;
    if (n->pid[node] == 0) {
        return;
    }
    threads_require(kill(n->pid[node], signal_number) == 0);
    threads_require(waitpid(n->pid[node], &status, 0) == n->pid[node]);
    n->pid[node] = 0;
    if (signal_number == SIGTERM && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        threads_fail(__FILE__, __LINE__, weir_nodes_log(n, node));
    }
}

char *weir_nodes_log(const struct weir_nodes *n, unsigned node)
{
    char path[128];
    char *text = calloc(1, 1 << 16);
    FILE *f = fopen(path_of(n, "log", node, path), "r");
    threads_require(text != NULL);
    if (f != NULL) {
        (void)!fread(text, 1, (1 << 16) - 1, f);
        (void)fclose(f);
    }
    return text;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    return remove(path);
}

void weir_nodes_finish(struct weir_nodes *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        weir_nodes_end(n, i, SIGTERM);
    }
    (void)nftw(n->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
