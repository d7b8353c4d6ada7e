#include "support/store/redis_node.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/server/await_start.h"
#include "wire/resp.h"

#define SKIPPED 77
#define ANSWER_MS 3000
#define WORDS_MAX 64

static void die(const char *what)
{
    (void)fprintf(stderr, "redis of the test: %s: %s\n", what, strerror(errno));
    exit(1);
}

uint64_t redis_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void redis_look_again_soon(void)
{
    (void)nanosleep(&(struct timespec){0, 5000000}, NULL);
}

/* ---- ports ---- */

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/*
 * Binds a socket that does not listen. Both it and redis-server use SO_REUSEADDR, so both may have
 * the port, and another search for a free port by this function does not get it. Returns -1 if the
 * port is not free.
 */
static int hold_port(unsigned port)
{
    struct sockaddr_in address = loopback(port);
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        die("socket");
    }
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return fd;
}

/* The port is below the range from which the system chooses, because otherwise some connection
 * could take it. */
unsigned redis_hold_port(int *held)
{
    for (int i = 0; i < 1000; i++) {
        uint16_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random) {
            die("random");
        }
        unsigned port = 10000 + random % 22000;
        *held = hold_port(port);
        if (*held >= 0) {
            return port;
        }
    }
    errno = EADDRINUSE;
    die("no free port");
    return 0;
}

/* ---- its command line ---- */

void redis_node_option(struct redis_node *n, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (n->argc == REDIS_ARGS_MAX ||
        vsnprintf(n->args[n->argc++], REDIS_ARG_MAX, format, list) >= REDIS_ARG_MAX) {
        errno = E2BIG;
        die("options");
    }
    va_end(list);
}

void redis_node_prepare(struct redis_node *n, const char *parent, unsigned number, bool bus)
{
    *n = (struct redis_node){.held = {-1, -1, -1}};
    n->port = redis_hold_port(&n->held[0]);
    n->public_port = n->port;
    n->bus = bus ? redis_hold_port(&n->held[1]) : 0;
    (void)snprintf(n->folder, sizeof n->folder, "%s/%u", parent, number);
    if (mkdir(n->folder, 0700) != 0) {
        die("folder");
    }
    buffer_init(&n->reply, (size_t)16 << 20);
}

void redis_node_secure(struct redis_node *n, const struct certificates *certificates,
                       const char *cert, bool ask)
{
    const char *folder = certificates->folder;
    n->public_port = redis_hold_port(&n->held[2]);
    redis_node_option(n, "--tls-port");
    redis_node_option(n, "%u", n->public_port);
    redis_node_option(n, "--tls-cert-file");
    redis_node_option(n, "%s/%s.crt", folder, cert);
    redis_node_option(n, "--tls-key-file");
    redis_node_option(n, "%s/%s.key", folder, cert);
    redis_node_option(n, "--tls-ca-cert-file");
    redis_node_option(n, "%s/ca.crt", folder);
    redis_node_option(n, "--tls-auth-clients");
    redis_node_option(n, ask ? "yes" : "no");
    redis_node_option(n, "--tls-replication");
    redis_node_option(n, "yes");
}

void redis_node_file(const struct redis_node *n, const char *name, struct weir_text text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", n->folder, name);
    FILE *f = fopen(path, "w");
    if (f == NULL || fwrite(text.at, 1, text.len, f) != text.len || fclose(f) != 0) {
        die("file");
    }
}

/* ---- the process ---- */

static void become_redis(struct redis_node *n, pid_t parent)
{
    char *args[REDIS_ARGS_MAX + 2] = {"redis-server"};
    for (size_t i = 0; i < n->argc; i++) {
        args[i + 1] = n->args[i];
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || chdir(n->folder) != 0) {
        _exit(1);
    }
    int null = open("/dev/null", O_RDWR);
    int log = open("out", O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)dup2(null, 0);
    (void)dup2(log, 1);
    (void)dup2(log, 2);
    (void)execvp(args[0], args);
    _exit(errno == ENOENT ? SKIPPED : 1);
}

void redis_node_start(struct redis_node *n)
{
    pid_t parent = getpid();
    n->paused = false;
    n->pid = fork();
    if (n->pid < 0) {
        die("fork");
    }
    if (n->pid == 0) {
        become_redis(n, parent);
    }
}

void redis_node_show_log(const struct redis_node *n)
{
    char path[128];
    char line[512];
    (void)snprintf(path, sizeof path, "%s/out", n->folder);
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        (void)fputs(line, stderr);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

static void look_whether_it_ended(struct redis_node *n)
{
    int status;
    if (waitpid(n->pid, &status, WNOHANG) != n->pid) {
        return;
    }
    n->pid = 0;
    bool missing = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
    (void)fprintf(stderr, missing ? "redis-server is missing\n" : "redis-server ended\n");
    redis_node_show_log(n);
    exit(missing ? SKIPPED : 1);
}

struct starting_node {
    struct redis_node *node;
    redis_ready_fn ready;
};

static enum start look(void *arg)
{
    const struct starting_node *s = arg;
    if (s->ready(s->node)) {
        return START_READY;
    }
    look_whether_it_ended(s->node);
    return START_PENDING;
}

static void show(void *arg)
{
    const struct starting_node *s = arg;
    redis_node_show_log(s->node);
}

void redis_node_await_ready(struct redis_node *n, const char *what, redis_ready_fn ready)
{
    (void)await_start(what, look, show, &(struct starting_node){n, ready});
}

static bool answers(struct redis_node *n)
{
    const char *reply = redis_node_run(n, "PING");
    return reply != NULL && strcmp(reply, "PONG") == 0;
}

void redis_node_await(struct redis_node *n)
{
    redis_node_await_ready(n, "redis-server answers", answers);
}

bool redis_node_runs(const struct redis_node *n)
{
    return n->pid > 0 && !n->paused;
}

void redis_node_kill(struct redis_node *n)
{
    if (n->pid > 0) {
        (void)kill(n->pid, SIGKILL);
        (void)waitpid(n->pid, NULL, 0);
    }
    n->pid = 0;
    n->paused = false;
}

/* Returns when the process has stopped: otherwise a reply that is on its way could be taken for one
 * of the stopped process. */
void redis_node_pause(struct redis_node *n)
{
    int status;
    if (kill(n->pid, SIGSTOP) != 0 || waitpid(n->pid, &status, WUNTRACED) != n->pid ||
        !WIFSTOPPED(status)) {
        die("pause");
    }
    n->paused = true;
}

void redis_node_resume(struct redis_node *n)
{
    if (n->paused && kill(n->pid, SIGCONT) != 0) {
        die("resume");
    }
    n->paused = false;
}

void redis_node_restart_empty(struct redis_node *n)
{
    redis_node_kill(n);
    redis_node_start(n);
    redis_node_await(n);
}

void redis_node_finish(struct redis_node *n)
{
    redis_node_kill(n);
    for (int i = 0; i < 3; i++) {
        if (n->held[i] >= 0) {
            (void)close(n->held[i]);
        }
    }
    buffer_finish(&n->reply);
    DIR *d = opendir(n->folder);
    struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    (void)rmdir(n->folder);
}

/* ---- commands ---- */

struct exchange {
    int fd;
    uint64_t end_ms;
    struct buffer in;
    struct buffer *out;
};

static bool read_more(struct exchange *x)
{
    struct pollfd p = {.fd = x->fd, .events = POLLIN};
    uint64_t now = redis_now_ms();
    char *room = buffer_room(&x->in, 65536);
    if (room == NULL || now >= x->end_ms || poll(&p, 1, (int)(x->end_ms - now)) != 1) {
        return false;
    }
    ssize_t n = read(x->fd, room, 65536);
    if (n > 0) {
        buffer_add(&x->in, (size_t)n);
    }
    return n > 0;
}

/* Reads up to CR LF, without it. */
static bool read_line(struct exchange *x, char *line, size_t size)
{
    for (;;) {
        struct weir_text t = buffer_text(&x->in);
        const char *end = memchr(t.at, '\n', t.len);
        if (end != NULL && end > t.at && (size_t)(end - t.at) <= size) {
            size_t len = (size_t)(end - t.at) - 1;
            memcpy(line, t.at, len);
            line[len] = 0;
            buffer_take(&x->in, len + 2);
            return true;
        }
        if (end != NULL || !read_more(x)) {
            return false;
        }
    }
}

static bool read_bytes(struct exchange *x, size_t len)
{
    while (buffer_len(&x->in) < len + 2) {
        if (!read_more(x)) {
            return false;
        }
    }
    buffer_put(x->out, (struct weir_text){buffer_text(&x->in).at, len});
    buffer_take(&x->in, len + 2);
    return true;
}

static bool read_reply(struct exchange *x)
{
    char line[4096];
    if (!read_line(x, line, sizeof line)) {
        return false;
    }
    long long n = strtoll(line + 1, NULL, 10);
    switch (line[0]) {
    case '*':
        for (long long i = 0; i < n; i++) {
            if (i > 0) {
                buffer_put_char(x->out, '\n');
            }
            if (!read_reply(x)) {
                return false;
            }
        }
        return true;
    case '$':
        return n < 0 || read_bytes(x, (size_t)n);
    default:
        buffer_put(x->out, text_of(line[0] == '-' ? line : line + 1));
        return true;
    }
}

static bool send_command(int fd, const char *const *args, size_t count)
{
    struct buffer b;
    buffer_init(&b, (size_t)1 << 20);
    resp_put_array(&b, count);
    for (size_t i = 0; i < count; i++) {
        resp_put_bulk(&b, text_of(args[i]));
    }
    struct weir_text t = buffer_text(&b);
    bool sent = !b.full && send(fd, t.at, t.len, MSG_NOSIGNAL) == (ssize_t)t.len;
    buffer_finish(&b);
    return sent;
}

const char *redis_node_do(struct redis_node *n, const char *const *args, size_t count)
{
    struct sockaddr_in address = loopback(n->port);
    struct exchange x = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                         .end_ms = redis_now_ms() + ANSWER_MS,
                         .out = &n->reply};
    if (x.fd < 0) {
        die("socket");
    }
    buffer_init(&x.in, (size_t)16 << 20);
    buffer_take(&n->reply, buffer_len(&n->reply));
    bool answered = connect(x.fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                    send_command(x.fd, args, count) && read_reply(&x);
    buffer_put_char(&n->reply, 0);
    buffer_finish(&x.in);
    (void)close(x.fd);
    return answered ? buffer_text(&n->reply).at : NULL;
}

const char *redis_node_run(struct redis_node *n, const char *format, ...)
{
    char line[2048];
    const char *words[WORDS_MAX];
    size_t count = 0;
    char *rest;
    va_list list;
    va_start(list, format);
    int len = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    char *word = strtok_r(line, " ", &rest);
    while (word != NULL && count < WORDS_MAX) {
        words[count++] = word;
        word = strtok_r(NULL, " ", &rest);
    }
    if (len < 0 || (size_t)len >= sizeof line || word != NULL) {
        errno = E2BIG;
        die("command");
    }
    return redis_node_do(n, words, count);
}

void redis_line(const char *reply, unsigned i, char *out, size_t size)
{
    while (reply != NULL && i-- > 0) {
        reply = strchr(reply, '\n');
        reply = reply != NULL ? reply + 1 : NULL;
    }
    size_t len = reply != NULL ? strcspn(reply, "\r\n") : 0;
    (void)snprintf(out, size, "%.*s", (int)len, reply != NULL ? reply : "");
}

long long redis_node_info(struct redis_node *n, const char *section, const char *name)
{
    char search[64];
    const char *reply = redis_node_run(n, "INFO %s", section);
    int len = snprintf(search, sizeof search, "\n%s:", name);
    const char *at = reply != NULL ? strstr(reply, search) : NULL;
    return at != NULL ? strtoll(at + len, NULL, 10) : -1;
}
