#include "support/store/store_redis.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/server/await_start.h"
#include "wire/resp.h"

#define SKIPPED 77
#define ARGS_MAX 32

static void die(const char *what)
{
    (void)fprintf(stderr, "redis of the test: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the process ---- */

static void become_redis(const struct store_redis *r, const char *const *extra)
{
    const char *args[ARGS_MAX] = {"redis-server", "--port",    "0",  "--unixsocket",
                                  "socket",       "--save",    "",   "--appendonly",
                                  "no",           "--logfile", "log"};
    size_t n = 0;
    while (args[n] != NULL) {
        n++;
    }
    for (size_t i = 0; extra != NULL && extra[i] != NULL && n < ARGS_MAX - 1; i++) {
        args[n++] = extra[i];
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(r->folder) != 0) {
        _exit(1);
    }
    int null = open("/dev/null", O_RDWR);
    (void)dup2(null, 0);
    (void)dup2(null, 1);
    (void)execvp(args[0], (char *const *)args);
    _exit(errno == ENOENT ? SKIPPED : 1);
}

static int try_connect(const struct store_redis *r)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", r->folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        die("socket");
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static enum start look(void *arg)
{
    struct store_redis *r = arg;
    int status;
    r->fd = try_connect(r);
    if (r->fd < 0 && waitpid(r->pid, &status, WNOHANG) == r->pid) {
        r->pid = 0;
        bool missing = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
        (void)fprintf(stderr, missing ? "redis-server is missing\n" : "redis-server ended\n");
        store_redis_stop(r);
        exit(missing ? SKIPPED : 1);
    }
    return r->fd >= 0 ? START_READY : START_PENDING;
}

/* Connects to the server that the URL names, and removes what other tests have left there. */
static void connect_given(struct store_redis *r, const char *url)
{
    static const char scheme[] = "redis://";
    char host[256];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    errno = EINVAL;
    if (strncmp(url, scheme, sizeof scheme - 1) != 0) {
        die("WEIR_TEST_STORE: expected redis://host:port");
    }
    (void)snprintf(host, sizeof host, "%s", url + sizeof scheme - 1);
    char *port = strrchr(host, ':');
    if (port != NULL) {
        *port++ = 0;
    }
    if (getaddrinfo(host, port != NULL ? port : "6379", &hints, &found) != 0) {
        die("WEIR_TEST_STORE: unknown host or port");
    }
    r->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (r->fd < 0 || connect(r->fd, found->ai_addr, found->ai_addrlen) != 0) {
        die("WEIR_TEST_STORE: cannot connect");
    }
    freeaddrinfo(found);
    (void)store_redis_do(r, "FLUSHALL");
}

void store_redis_start(struct store_redis *r, const char *const *extra)
{
    const char *given = getenv("WEIR_TEST_STORE");
    *r = (struct store_redis){.folder = "/tmp/weir-redis-XXXXXX", .fd = -1};
    buffer_init(&r->out, (size_t)64 << 20);
    buffer_init(&r->in, (size_t)64 << 20);
    if (given != NULL && extra == NULL) {
        r->folder[0] = 0;
        connect_given(r, given);
        return;
    }
    if (mkdtemp(r->folder) == NULL) {
        die("folder");
    }
    r->pid = fork();
    if (r->pid < 0) {
        die("fork");
    }
    if (r->pid == 0) {
        become_redis(r, extra);
    }
    (void)await_start("redis-server listens", look, NULL, r);
}

static void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    (void)rmdir(folder);
}

void store_redis_stop(struct store_redis *r)
{
    if (r->pid > 0) {
        (void)kill(r->pid, SIGKILL);
        (void)waitpid(r->pid, NULL, 0);
    }
    if (r->fd >= 0) {
        (void)close(r->fd);
    }
    buffer_finish(&r->out);
    buffer_finish(&r->in);
    if (r->folder[0] != 0) {
        remove_folder(r->folder);
    }
}

/* ---- the connection ---- */

void store_redis_put(struct store_redis *r, ...)
{
    const char *args[ARGS_MAX];
    size_t n = 0;
    va_list list;
    va_start(list, r);
    while (n < ARGS_MAX && (args[n] = va_arg(list, const char *)) != NULL) {
        n++;
    }
    va_end(list);
    resp_put_array(&r->out, n);
    for (size_t i = 0; i < n; i++) {
        resp_put_bulk(&r->out, text_of(args[i]));
    }
}

void store_redis_send(struct store_redis *r)
{
    if (r->out.full) {
        errno = ENOBUFS;
        die("put");
    }
    while (buffer_len(&r->out) > 0) {
        struct weir_text waits = buffer_text(&r->out);
        ssize_t n = write(r->fd, waits.at, waits.len);
        if (n < 0) {
            die("write");
        }
        buffer_take(&r->out, (size_t)n);
    }
}

const struct store_reply *store_redis_next(struct store_redis *r)
{
    buffer_take(&r->in, r->used);
    r->used = 0;
    for (;;) {
        int e = store_reply_read(buffer_text(&r->in), &r->reply);
        if (e == STORE_REPLY) {
            r->used = r->reply.whole.len;
            return &r->reply;
        }
        char *room = buffer_room(&r->in, 65536);
        ssize_t n = e == STORE_MORE && room != NULL ? read(r->fd, room, 65536) : -1;
        if (n <= 0) {
            die("read");
        }
        buffer_add(&r->in, (size_t)n);
    }
}
