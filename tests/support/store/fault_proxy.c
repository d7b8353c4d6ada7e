#include "support/store/fault_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/store/fault_pair.h"

#define PAIRS_MAX 512
#define FDS_MAX (2 + 2 * PAIRS_MAX)

struct fault_proxy {
    pthread_t thread;
    int listener;
    int wake;
    unsigned port;
    int filler; /* occupies the only place in the queue of a black hole; -1: none */
    unsigned filler_port;

    pthread_mutex_t lock;
    pthread_cond_t heard;
    uint64_t asked; /* number of requested changes, and of those in force */
    uint64_t done;
    unsigned target;
    struct faults faults;
    bool reset;
    bool stop;

    /* only used by the thread */
    struct fault_rules rules;
    unsigned now_target;
    bool changed; /* every connection must be examined under the new rules */
    struct fault_pair *pairs[PAIRS_MAX];
    size_t n;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "fault proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static unsigned port_of(int fd, int (*name)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_in address = {0};
    socklen_t len = sizeof address;
    return name(fd, (struct sockaddr *)&address, &len) == 0 ? ntohs(address.sin_port) : 0;
}

static int open_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        die("socket");
    }
    return fd;
}

/* ---- connections ---- */

static void end_pair(struct fault_proxy *p, size_t i, bool hard)
{
    fault_pair_destroy(p->pairs[i], hard);
    p->pairs[i] = p->pairs[--p->n];
    (void)__atomic_fetch_sub(&p->rules.counts.open, 1, __ATOMIC_RELAXED);
}

static int connect_to_target(const struct fault_proxy *p)
{
    struct sockaddr_in address = loopback(p->now_target);
    int fd = open_socket();
    (void)connect(fd, (struct sockaddr *)&address, sizeof address); /* POLLOUT reports the result */
    return fd;
}

static void accept_one(struct fault_proxy *p)
{
    int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    bool filler = p->filler_port != 0 && port_of(fd, getpeername) == p->filler_port;
    if (p->rules.now.refuse || filler || p->n == PAIRS_MAX) {
        fault_close_hard(fd);
        p->filler_port = filler ? 0 : p->filler_port;
        return;
    }
    struct fault_pair *c =
        fault_pair_create(fd, p->rules.now.half_open ? -1 : connect_to_target(p));
    if (c == NULL) {
        die("memory");
    }
    p->pairs[p->n++] = c;
    (void)__atomic_fetch_add(&p->rules.counts.accepted, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&p->rules.counts.open, 1, __ATOMIC_RELAXED);
}

/* ---- the thread ---- */

static uint64_t next_due(const struct fault_proxy *p)
{
    uint64_t due_ns = UINT64_MAX;
    for (size_t i = 0; i < p->n; i++) {
        uint64_t pair_ns = fault_pair_due(&p->rules, p->pairs[i]);
        due_ns = pair_ns < due_ns ? pair_ns : due_ns;
    }
    return due_ns;
}

/* The kernel itself completes connections up to the length of the queue. So the queue gets one
 * place, and a connection of our own takes it. */
static void open_black_hole(struct fault_proxy *p)
{
    struct sockaddr_in address = loopback(p->port);
    (void)listen(p->listener, 0);
    p->filler = open_socket();
    (void)connect(p->filler, (struct sockaddr *)&address, sizeof address);
    p->filler_port = port_of(p->filler, getsockname);
}

static void close_black_hole(struct fault_proxy *p)
{
    (void)close(p->filler);
    p->filler = -1;
    (void)listen(p->listener, SOMAXCONN);
}

/* Applies the requested changes. Returns false if the thread is to stop. */
static bool hear(struct fault_proxy *p)
{
    uint64_t wakes;
    (void)!read(p->wake, &wakes, sizeof wakes);
    (void)pthread_mutex_lock(&p->lock);
    uint64_t asked = p->asked;
    bool stop = p->stop;
    bool reset = p->reset;
    p->reset = false;
    p->rules.now = p->faults;
    p->now_target = p->target;
    p->changed = true;
    (void)pthread_mutex_unlock(&p->lock);
    while ((reset || stop) && p->n > 0) {
        end_pair(p, p->n - 1, true);
    }
    if (p->rules.now.black_hole && p->filler < 0) {
        open_black_hole(p);
    } else if (!p->rules.now.black_hole && p->filler >= 0) {
        close_black_hole(p);
    }
    (void)pthread_mutex_lock(&p->lock);
    p->done = asked;
    (void)pthread_cond_broadcast(&p->heard);
    (void)pthread_mutex_unlock(&p->lock);
    return !stop;
}

static void wait_for_something(struct fault_proxy *p, struct pollfd *fds)
{
    uint64_t now_ns = clock_ns();
    uint64_t due_ns = next_due(p);
    fds[0] = (struct pollfd){.fd = p->wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = p->rules.now.black_hole ? -1 : p->listener, .events = POLLIN};
    for (size_t i = 0; i < p->n; i++) {
        fault_pair_watch(&p->rules, p->pairs[i], now_ns, &fds[2 + 2 * i]);
    }
    uint64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : UINT64_MAX; /* or POLLOUT wakes it */
    wait_ns = p->changed ? 0 : wait_ns;
    p->changed = false;
    struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    (void)ppoll(fds, 2 + 2 * p->n, wait_ns != UINT64_MAX ? &wait : NULL, NULL);
}

static void *work(void *arg)
{
    struct fault_proxy *p = arg;
    static _Thread_local struct pollfd fds[FDS_MAX];
    for (;;) {
        wait_for_something(p, fds);
        uint64_t now_ns = clock_ns();
        for (size_t i = p->n; i-- > 0;) { /* backwards: end_pair() moves the last one here */
            bool good = fault_pair_serve(&p->rules, p->pairs[i], &fds[2 + 2 * i], now_ns);
            if (!good || fault_pair_is_over(p->pairs[i])) {
                end_pair(p, i, !good);
            }
        }
        if (fds[0].revents != 0 && !hear(p)) {
            return NULL;
        }
        if (fds[1].revents != 0) {
            accept_one(p);
        }
    }
}

/* ---- the test's side ---- */

struct fault_proxy *fault_proxy_start(unsigned port)
{
    struct fault_proxy *p = calloc(1, sizeof *p);
    struct sockaddr_in any = loopback(0);
    if (p == NULL) {
        die("memory");
    }
    p->listener = open_socket();
    p->filler = -1;
    p->target = p->now_target = port;
    p->rules.random = 1;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->heard, NULL);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bind(p->listener, (struct sockaddr *)&any, sizeof any) != 0 ||
        listen(p->listener, SOMAXCONN) != 0 || p->wake < 0) {
        die("listen");
    }
    p->port = port_of(p->listener, getsockname);
    if (pthread_create(&p->thread, NULL, work, p) != 0) {
        die("thread");
    }
    return p;
}

/* Call it with the lock held. It waits until the thread has applied the change, and releases the
 * lock. */
static void tell(struct fault_proxy *p)
{
    uint64_t one = 1;
    uint64_t mine = ++p->asked;
    (void)!write(p->wake, &one, sizeof one);
    while (p->done < mine) {
        (void)pthread_cond_wait(&p->heard, &p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void fault_proxy_stop(struct fault_proxy *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    tell(p);
    (void)pthread_join(p->thread, NULL);
    (void)close(p->listener);
    (void)close(p->wake);
    fault_close_hard(p->filler);
    (void)pthread_cond_destroy(&p->heard);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

unsigned fault_proxy_port(const struct fault_proxy *p)
{
    return p->port;
}

void fault_proxy_set(struct fault_proxy *p, const struct faults *faults)
{
    (void)pthread_mutex_lock(&p->lock);
    p->faults = faults != NULL ? *faults : (struct faults){0};
    tell(p);
}

void fault_proxy_reset(struct fault_proxy *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->reset = true;
    tell(p);
}

void fault_proxy_lead_to(struct fault_proxy *p, unsigned port)
{
    (void)pthread_mutex_lock(&p->lock);
    p->target = port;
    tell(p);
}

struct fault_counts fault_proxy_counts(struct fault_proxy *p)
{
    const struct fault_counts *c = &p->rules.counts;
    return (struct fault_counts){.accepted = __atomic_load_n(&c->accepted, __ATOMIC_RELAXED),
                                 .open = __atomic_load_n(&c->open, __ATOMIC_RELAXED),
                                 .to_server = __atomic_load_n(&c->to_server, __ATOMIC_RELAXED),
                                 .to_client = __atomic_load_n(&c->to_client, __ATOMIC_RELAXED),
                                 .dropped = __atomic_load_n(&c->dropped, __ATOMIC_RELAXED)};
}
