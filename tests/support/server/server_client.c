#include "support/server/server_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/folder.h"
#include "server/record/denied_log.h"
#include "server/loop/server_fleet.h"
#include "support/engine/threads_run.h"
#include "support/server/server_store.h"
#include "wire/resp.h"

#define PATIENCE_S 120 /* a server that does not answer for this long has failed */

/* ---- the server ---- */

static uint64_t stand_still(void *arg)
{
    return threads_get(arg);
}

/* Returns a time near the system's clock, because the server's own limit is set up for that. */
static uint64_t midnight(void)
{
    return (uint64_t)time(NULL) * WEIR_SECOND / WEIR_DAY * WEIR_DAY;
}

struct server_options server_world_options(void)
{
    return (struct server_options){.listen = {"127.0.0.1:0", "off", "off"},
                                   .threads = 2,
                                   .connections = 2000,
                                   .adhoc_keys = 10000};
}

void server_world_start(struct server_world *w, const char *rules,
                        const struct server_options *options)
{
    server_world_start_shared(w, rules, options, NULL);
}

void server_world_start_shared(struct server_world *w, const char *rules,
                               const struct server_options *options, struct server_store *store)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0};
    *w = (struct server_world){.server = {.options = *options}, .store = store};
    server_world_set_time(w, midnight());
    o.clock = stand_still;
    o.clock_arg = &w->now_ns;
    o.denied = denied_note;
    if (store != NULL) {
        o.fleet = store->fleet;
        w->server.fleet = fleet_serve(store->fleet);
    }
    if (weir_rules_open_text(&w->server.rules, "test", rules, strlen(rules), &o, &error) != 0 ||
        server_start(&w->server, &error) != 0) {
        threads_fail(__FILE__, __LINE__, error.text);
    }
    (void)server_address(&w->server, PROTOCOL_RESP, w->address, sizeof w->address);
}

void server_world_stop(struct server_world *w)
{
    server_stop(&w->server);
    weir_rules_close(w->server.rules);
}

void server_world_set_time(struct server_world *w, uint64_t now_ns)
{
    threads_set(&w->now_ns, now_ns);
    if (w->store != NULL) {
        server_store_set_time(w->store, now_ns);
    }
}

unsigned server_open_files(void)
{
    unsigned n = 0;
    DIR *folder = folder_open("/proc/self/fd");
    threads_require(folder != NULL);
    while (readdir(folder) != NULL) {
        n++;
    }
    (void)closedir(folder);
    return n;
}

/* ---- connecting ---- */

static int connect_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    threads_require(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static int connect_tcp(const char *address, unsigned from)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000000u + from)}};
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *colon = strrchr(address, ':');
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1; /* the pieces of a request are sent separately */
    threads_require(fd >= 0 && bind(fd, (const struct sockaddr *)&here, sizeof here) == 0);
    threads_require(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    threads_require(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0);
    return fd;
}

void server_connect(struct server_client *c, const char *address)
{
    server_connect_from(c, address, 1);
}

void server_connect_from(struct server_client *c, const char *address, unsigned from)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    *c = (struct server_client){.fd = strncmp(address, "unix:", 5) == 0
                                          ? connect_unix(address + 5)
                                          : connect_tcp(address, from)};
    threads_require(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    threads_require(setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0);
}

void server_disconnect(struct server_client *c)
{
    (void)close(c->fd);
    free(c->at);
    *c = (struct server_client){.fd = -1};
}

/* ---- saying ---- */

bool server_send(struct server_client *c, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0) {
            threads_require(errno == EPIPE || errno == ECONNRESET);
            return false;
        }
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static unsigned count_words(const char *words)
{
    unsigned n = 0;
    for (words += strspn(words, " "); *words != 0; words += strspn(words, " ")) {
        words += strcspn(words, " ");
        n++;
    }
    return n;
}

size_t server_pack(const char *words, char *bytes, size_t size)
{
    size_t n = (size_t)snprintf(bytes, size, "*%u\r\n", count_words(words));
    for (words += strspn(words, " "); *words != 0; words += strspn(words, " ")) {
        size_t len = strcspn(words, " ");
        bool empty = len == 2 && memcmp(words, "''", 2) == 0;
        n += (size_t)snprintf(bytes + n, size - n, "$%zu\r\n%.*s\r\n", empty ? 0 : len,
                              empty ? 0 : (int)len, words);
        threads_require(n < size);
        words += len;
    }
    return n;
}

bool server_say(struct server_client *c, const char *words)
{
    char bytes[2048];
    return server_send(c, bytes, server_pack(words, bytes, sizeof bytes));
}

/* ---- hearing ---- */

static void make_room(struct server_client *c)
{
    if (c->begin > 0) {
        memmove(c->at, c->at + c->begin, c->end - c->begin);
        c->end -= c->begin;
        c->begin = 0;
    }
    if (c->end == c->size) {
        c->size = c->size > 0 ? 2 * c->size : 65536;
        c->at = realloc(c->at, c->size);
        threads_require(c->at != NULL);
    }
}

/* Receives more bytes. Returns 1; 0 at the end; -1 after a reset. */
static int hear(struct server_client *c)
{
    make_room(c);
    ssize_t n = recv(c->fd, c->at + c->end, c->size - c->end, 0);
    if (n < 0) {
        threads_require(errno == ECONNRESET);
        return -1;
    }
    c->end += (size_t)n;
    return n > 0;
}

/* Prints replies as text: `at` moves on. The functions return false if there are not enough
 * bytes. */
struct print {
    const char *at, *end;
    char *to;
    size_t len, size;
};

__attribute__((format(printf, 2, 3))) static void put(struct print *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(p->to + p->len, p->size - p->len, format, args);
    va_end(args);
    p->len += (size_t)n < p->size - p->len ? (size_t)n : p->size - p->len - 1;
}

static bool print_value(struct print *p);

static bool print_values(struct print *p, long n, bool map)
{
    put(p, map ? "{" : "[");
    for (long i = 0; i < n; i++) {
        put(p, i == 0 ? "" : map ? ", " : " ");
        if (!print_value(p)) {
            return false;
        }
        put(p, map ? " " : "");
        if (map && !print_value(p)) {
            return false;
        }
    }
    put(p, map ? "}" : "]");
    return true;
}

static bool print_bulk(struct print *p, long n)
{
    if (p->end - p->at < n + 2) {
        return false;
    }
    put(p, "'%.*s'", (int)n, p->at);
    p->at += n + 2;
    return true;
}

/* strtol() would need a terminated string. */
static long number(const char *at, const char *end)
{
    long n = 0;
    bool negative = at < end && *at == '-';
    for (at += negative; at < end && *at >= '0' && *at <= '9'; at++) {
        n = 10 * n + (*at - '0');
    }
    return negative ? -n : n;
}

static bool print_value(struct print *p)
{
    const char *line = p->at;
    size_t left = (size_t)(p->end - p->at);
    const char *cr = left > 0 ? memchr(line, '\r', left) : NULL;
    if (cr == NULL || cr + 1 == p->end) {
        return false;
    }
    long n = number(line + 1, cr);
    p->at = cr + 2;
    switch (*line) {
    case '*':
    case '~':
    case '%':
        return print_values(p, n, *line == '%');
    case '$':
    case '=':
        if (n >= 0) {
            return print_bulk(p, n);
        }
        put(p, "null");
        return true;
    case '_':
        put(p, "null");
        return true;
    case ':':
        put(p, "%ld", n);
        return true;
    default:
        put(p, "%.*s", (int)(cr - line), line);
        return true;
    }
}

const char *server_reply(struct server_client *c)
{
    for (;;) {
        struct print p = {
            .at = c->at + c->begin, .end = c->at + c->end, .to = c->reply, .size = sizeof c->reply};
        c->reply[0] = 0;
        if (c->end > c->begin && print_value(&p)) {
            c->begin = (size_t)(p.at - c->at);
            return c->reply;
        }
        int more = hear(c);
        if (more <= 0) {
            return more == 0 ? "end" : "reset";
        }
    }
}

const char *server_ask(struct server_client *c, const char *words)
{
    return server_say(c, words) ? server_reply(c) : "reset";
}

const char *server_ask_array(struct server_client *c, const char *const *argv)
{
    struct buffer bytes;
    size_t n = 0;
    while (argv[n] != NULL) {
        n++;
    }
    buffer_init(&bytes, SIZE_MAX / 4);
    resp_put_array(&bytes, n);
    for (size_t i = 0; i < n; i++) {
        resp_put_bulk(&bytes, text_of(argv[i]));
    }
    struct weir_text text = buffer_text(&bytes);
    bool sent = server_send(c, text.at, text.len);
    buffer_finish(&bytes);
    return sent ? server_reply(c) : "reset";
}

void server_talk(struct server_client *c, const struct server_line *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *hear = lines[i].hear;
        const char *heard = server_ask(c, lines[i].say);
        size_t len = strlen(hear);
        bool cut = len >= 3 && strcmp(hear + len - 3, "...") == 0;
        if (cut ? strncmp(heard, hear, len - 3) != 0 : strcmp(heard, hear) != 0) {
            char why[2 * sizeof c->reply];
            (void)snprintf(why, sizeof why, "%s\n  got      %s\n  expected %s", lines[i].say, heard,
                           hear);
            threads_fail(__FILE__, __LINE__, why);
        }
    }
}
