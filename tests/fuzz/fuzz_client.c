/*
 * A client whose store and loop do anything: the input is a row of steps, and among them bytes that
 * the store says. Each call ends once, and not behind its deadline; the functions of the driver are
 * called in an order that makes sense; nothing is left when the client ends.
 */
#include <stdlib.h>

#include "redis/breaker.h"
#include "redis/client.h"
#include "shared/core/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINKS = 64, CALLS = 256, IDLE = 0, CONNECTING, UP };

static struct {
    struct client *client;
    struct client_link *link[LINKS];
    int state[LINKS];
    uint64_t now;
    unsigned calls;
    unsigned done[CALLS];
    uint64_t deadline[CALLS];
} f;

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* ---- the driver ---- */

static unsigned place_of(const struct client_link *link)
{
    for (unsigned i = 0; i < LINKS; i++) {
        if (f.state[i] != IDLE && f.link[i] == link) {
            return i;
        }
    }
    return LINKS;
}

static void on_connect(void *arg, struct client_link *link, struct weir_text host, unsigned port)
{
    (void)arg;
    (void)port;
    unsigned i = 0;
    require(place_of(link) == LINKS && host.len > 0);
    while (i < LINKS && f.state[i] != IDLE) {
        i++;
    }
    require(i < LINKS);
    f.link[i] = link;
    f.state[i] = CONNECTING;
}

static void on_wake(void *arg, struct client_link *link)
{
    (void)arg;
    require(place_of(link) < LINKS && f.state[place_of(link)] == UP);
}

static void on_close(void *arg, struct client_link *link)
{
    (void)arg;
    require(place_of(link) < LINKS);
    f.state[place_of(link)] = IDLE;
}

static void on_done(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    unsigned i = (unsigned)((unsigned *)arg - f.done);
    require(end == CLIENT_REPLIED ? reply != NULL : end != CLIENT_UNKNOWN || reply == NULL);
    require(++f.done[i] == 1 && now_ns <= f.deadline[i]);
}

/* ---- steps ---- */

static void make_call(const struct scripts *scripts, unsigned kind)
{
    if (f.calls == CALLS) {
        return;
    }
    unsigned i = f.calls++;
    struct client_call call = {.slot = kind * 997u % 16384,
                               .script = &scripts->row[kind % SCRIPT_COUNT],
                               .arguments = TEXT("$1\r\n1\r\n$1\r\nk\r\n"),
                               .count = 2,
                               .deadline_ns = f.now + 1 + kind * 200000u};
    f.deadline[i] = call.deadline_ns;
    if (client_call(f.client, &call, f.now, on_done, &f.done[i]) != 0) {
        f.done[i] = 1;
    }
}

static void pass(uint64_t ns)
{
    uint64_t end = f.now + ns;
    for (unsigned i = 0; i < 1000 && client_due(f.client) <= end; i++) {
        f.now = client_due(f.client) > f.now ? client_due(f.client) : f.now;
        (void)client_tick(f.client, f.now);
    }
    f.now = end;
    (void)client_tick(f.client, f.now);
}

static void flush(unsigned i, size_t most)
{
    struct weir_text out = client_outgoing(f.link[i]);
    client_sent(f.link[i], out.len < most ? out.len : most);
}

static void end(unsigned i)
{
    f.state[i] = IDLE;
    client_down(f.link[i], f.now);
}

/* How many bytes of the input it took. */
static size_t step(const struct scripts *scripts, const uint8_t *data, size_t size)
{
    unsigned i = data[0] >> 3 & 3;
    unsigned n = size > 1 ? data[1] : 0;
    size_t len = n < size - 2 ? n : size - 2;
    bool up = f.state[i] == UP;
    switch (data[0] & 7) {
    case 0:
        make_call(scripts, n);
        break;
    case 1:
        pass(n * UINT64_C(500000));
        break;
    case 2:
        if (f.state[i] == CONNECTING) {
            f.state[i] = UP;
            client_up(f.link[i], f.now);
        }
        break;
    case 3:
        if (f.state[i] != IDLE) {
            end(i);
        }
        break;
    case 4:
        if (up) {
            flush(i, n);
        }
        break;
    case 5:
        if (up) {
            flush(i, SIZE_MAX);
        }
        break;
    default:
        if (up && size > 2) {
            (void)client_received(f.link[i], (struct weir_text){(const char *)data + 2, len},
                                  f.now);
        }
        (void)client_tick(f.client, f.now);
        return size > 2 ? 2 + len : size;
    }
    (void)client_tick(f.client, f.now);
    return size > 1 ? 2 : 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const urls[] = {"redis://a", "redis://a,b", "redis-cluster://a,b",
                                       "redis-sentinel://a,b/m"};
    static const struct client_driver driver = {NULL, on_connect, on_wake, on_close};
    struct store_url url;
    struct client_metrics metrics = {0};
    if (size == 0 || store_url_read(text_of(urls[data[0] & 3]), &url, NULL) != 0) {
        return 0;
    }
    struct client_options options = {.url = &url,
                                     .scripts = &store_scripts,
                                     .deadline_ns = 5000000,
                                     .in_flight = 16,
                                     .breakers = breakers_create(data[0]),
                                     .metrics = &metrics};
    memset(&f, 0, sizeof f);
    f.now = 1000000000;
    require(options.breakers != NULL);
    require(client_create(&f.client, &options, &driver, f.now) == 0);
    for (size_t at = 1; at < size;) {
        at += step(&store_scripts, data + at, size - at);
    }
    client_destroy(f.client, f.now);
    for (unsigned i = 0; i < f.calls; i++) {
        require(f.done[i] == 1);
    }
    for (unsigned i = 0; i < LINKS; i++) {
        require(f.state[i] == IDLE);
    }
    require(metrics.up == 0 &&
            metrics.calls == metrics.replies + metrics.not_run + metrics.unknown);
    breakers_destroy(options.breakers);
    return 0;
}
