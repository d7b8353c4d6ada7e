#include "support/server/server_program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/engine/threads_run.h"
#include "support/server/await_start.h"

#define PATIENCE_S 60
#define LOG_END 2000 /* how many bytes of a long log are shown */

extern char **environ;

/* ---- the program ends whenever the test ends ---- */

static pid_t running;

static void kill_running(void)
{
    if (running > 0) {
        (void)kill(running, SIGKILL);
    }
}

static void kill_and_die(int number)
{
    kill_running();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void guard(void)
{
    static bool guarded;
    if (!guarded) {
        guarded = true;
        (void)atexit(kill_running);
        (void)signal(SIGTERM, kill_and_die);
        (void)signal(SIGINT, kill_and_die);
        (void)signal(SIGABRT, kill_and_die);
    }
    kill_running(); /* left from a test that failed before its end */
    running = 0;
}

/* ---- the program ---- */

static const char *path_of(const struct server_program *p, const char *name, char *path)
{
    (void)snprintf(path, 512, "%s/%s", p->folder, name);
    return path;
}

void server_program_write_rules(const struct server_program *p, const char *rules)
{
    char path[512];
    char aside[512];
    FILE *f = fopen(path_of(p, "rules.new", aside), "w");
    threads_require(f != NULL && fputs(rules, f) >= 0 && fclose(f) == 0);
    threads_require(rename(aside, path_of(p, "rules.yaml", path)) == 0);
}

void server_program_init(struct server_program *p, const char *rules)
{
    const char *base = getenv("TMPDIR");
    /* State that changes all the time keeps a disk busy, and others would wait for it. */
    base = base == NULL && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : base;
    char path[512];
    unsigned number = (unsigned)getpid();
    *p = (struct server_program){.pid = 0};
    /* The address is unique to this test: while the server is down, no other process may take its
     * port. */
    (void)snprintf(p->address, sizeof p->address, "127.77.%u.%u:0", number >> 8 & 255,
                   number & 255);
    guard();
    (void)snprintf(p->folder, sizeof p->folder, "%.200s/weir-serve-XXXXXX",
                   base != NULL ? base : "/tmp");
    threads_require(mkdtemp(p->folder) != NULL);
    threads_require(mkdir(path_of(p, "state", path), 0700) == 0);
    server_program_write_rules(p, rules);
}

/* Prints the state of the process, as in /proc/pid/stat, and the end of its log. */
static void show(const struct server_program *p)
{
    char path[64];
    char stat[80]; /* its first fields */
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)p->pid);
    FILE *f = p->pid > 0 ? fopen(path, "r") : NULL;
    bool runs = f != NULL && fgets(stat, sizeof stat, f) != NULL;
    const char *log = server_program_log(p);
    size_t len = strlen(log);
    (void)fprintf(stderr, "weir serve: %s\nlog: ...%s", runs ? stat : "does not run",
                  len > LOG_END ? log + len - LOG_END : log);
}

_Noreturn static void give_up(const struct server_program *p, int line, const char *what)
{
    show(p);
    threads_fail(__FILE__, line, what);
}

void server_program_await_count(const struct server_program *p, const uint64_t *count,
                                uint64_t until)
{
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * WEIR_SECOND;
    while (threads_get(count) < until) {
        if (clock_monotonic_ns() > end_ns) {
            give_up(p, __LINE__, "a count does not grow");
        }
        (void)usleep(1000);
    }
}

struct starting_program {
    const struct server_program *program;
    int fd; /* of what it prints, which it also closes when it ends */
};

static enum start look(void *arg)
{
    const struct starting_program *s = arg;
    struct pollfd out = {.fd = s->fd, .events = POLLIN};
    return poll(&out, 1, 0) == 1 ? START_READY : START_PENDING;
}

static void show_starting(void *arg)
{
    const struct starting_program *s = arg;
    show(s->program);
}

/* Finds "  resp   127.0.0.1:6380" among the lines that the program prints at its start. */
static bool read_address(struct server_program *p, int fd)
{
    char line[256];
    char address[sizeof p->address];
    bool found = false;
    FILE *out = fdopen(fd, "r");
    threads_require(out != NULL);
    (void)await_start("it neither starts nor ends", look, show_starting,
                      &(struct starting_program){p, fd});
    while (!found && fgets(line, sizeof line, out) != NULL) {
        found = sscanf(line, " resp %63s", address) == 1;
    }
    if (found && strcmp(address, p->address) != 0) { /* clients read it during restarts */
        memcpy(p->address, address, sizeof address);
    }
    (void)fclose(out);
    return found;
}

/* Makes a pipe that only the program inherits, so that it closes with the program. */
static void open_pipe(int ends[2])
{
    threads_require(pipe2(ends, O_CLOEXEC) == 0);
}

int server_program_spawn(struct server_program *p)
{
    char rules[512];
    char state[512];
    char log[512];
    char admin[512] = "unix:";
    int ends[2];
    posix_spawn_file_actions_t files;
    char *argv[] = {"weir",       "serve",     "--config", rules,     "--resp",    p->address,
                    "--http",     "off",       "--admin",  admin,     "--threads", "2",
                    "--no-watch", "--max-age", "0",        "--state", state,       NULL};
    (void)path_of(p, "rules.yaml", rules);
    (void)path_of(p, "state", state);
    (void)snprintf(admin, sizeof admin, "unix:%s/admin", p->folder);
    open_pipe(ends);
    threads_require(posix_spawn_file_actions_init(&files) == 0);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    (void)posix_spawn_file_actions_addopen(&files, 2, path_of(p, "log", log),
                                           O_WRONLY | O_CREAT | O_APPEND, 0600);
    /* For its secret, which a killed server must not leave in a folder of the machine. */
    threads_require(unsetenv("RUNTIME_DIRECTORY") == 0 &&
                    setenv("XDG_RUNTIME_DIR", p->folder, 1) == 0);
    int e = posix_spawn(&p->pid, WEIR_BUILD_DIR "/weir", &files, NULL, argv, environ);
    if (e != 0) {
        threads_fail(__FILE__, __LINE__, strerror(e));
    }
    (void)posix_spawn_file_actions_destroy(&files);
    running = running == 0 ? p->pid : running;
    (void)close(ends[1]);
    return ends[0];
}

/* Waits for the program to end. Returns its status. */
static int await_end(const struct server_program *p)
{
    int status = 0;
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * WEIR_SECOND;
    pid_t ended;
    while ((ended = waitpid(p->pid, &status, WNOHANG)) == 0) {
        if (clock_monotonic_ns() > end_ns) {
            give_up(p, __LINE__, "it does not end");
        }
        (void)usleep(1000);
    }
    threads_require(ended == p->pid);
    return status;
}

int server_program_end(struct server_program *p)
{
    int status = await_end(p);
    running = running == p->pid ? 0 : running;
    p->pid = 0;
    return status;
}

bool server_program_start(struct server_program *p)
{
    if (read_address(p, server_program_spawn(p))) {
        return true;
    }
    (void)server_program_end(p);
    return false;
}

void server_program_signal(struct server_program *p, int number)
{
    threads_require(p->pid > 0 && kill(p->pid, number) == 0);
    if (number == SIGKILL || number == SIGTERM) {
        int status = server_program_end(p);
        threads_require(number == SIGKILL || status == 0);
    }
}

char *server_program_log(const struct server_program *p)
{
    char path[512];
    size_t size = 1 << 20;
    char *text = calloc(1, size);
    FILE *f = fopen(path_of(p, "log", path), "r");
    threads_require(text != NULL && f != NULL);
    threads_require(fread(text, 1, size - 1, f) < size - 1);
    (void)fclose(f);
    return text;
}

unsigned server_program_logged(const struct server_program *p, const char *text)
{
    unsigned n = 0;
    char *log = server_program_log(p);
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++) {
        n++;
    }
    free(log);
    return n;
}

void server_program_await(const struct server_program *p, const char *text, unsigned times)
{
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * WEIR_SECOND;
    while (server_program_logged(p, text) <= times) {
        if (clock_monotonic_ns() > end_ns) {
            give_up(p, __LINE__, text);
        }
        (void)usleep(10000);
    }
}

char *server_program_page(const struct server_program *p, const char *path)
{
    char address[512];
    char ask[256];
    size_t size = 1 << 20;
    size_t len = 0;
    char *text = calloc(1, size);
    struct server_client c;
    (void)snprintf(address, sizeof address, "unix:%s/admin", p->folder);
    (void)snprintf(ask, sizeof ask,
                   "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    server_connect(&c, address);
    threads_require(text != NULL && server_send(&c, ask, strlen(ask)));
    for (ssize_t n; (n = read(c.fd, text + len, size - 1 - len)) > 0;) {
        len += (size_t)n;
    }
    server_disconnect(&c);
    return text;
}

double server_program_metric(const struct server_program *p, const char *name)
{
    char line[256];
    char *text = server_program_page(p, "/metrics");
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(text, line);
    threads_require(at != NULL);
    double value = strtod(at + strlen(line), NULL);
    free(text);
    return value;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void server_program_finish(struct server_program *p)
{
    if (p->pid > 0) {
        server_program_signal(p, SIGKILL);
    }
    threads_require(nftw(p->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

bool server_program_connect(const struct server_program *p, struct server_client *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[sizeof p->address];
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int one = 1;
    (void)snprintf(host, sizeof host, "%.*s", (int)strcspn(p->address, ":"), p->address);
    threads_require(inet_pton(AF_INET, host, &to.sin_addr) == 1);
    to.sin_port = htons((uint16_t)strtoul(strrchr(p->address, ':') + 1, NULL, 10));
    *c = (struct server_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    threads_require(c->fd >= 0);
    if (connect(c->fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(c->fd);
        return false;
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    threads_require(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    threads_require(setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0);
    return true;
}
