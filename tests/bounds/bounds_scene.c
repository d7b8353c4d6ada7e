#include "bounds/bounds_scene.h"

#include <sys/socket.h>

#include "base/clock.h"

static uint64_t random_state;

void scene_seed(uint64_t seed)
{
    random_state = seed;
}

unsigned scene_random(unsigned n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((random_state >> 33) % n);
}

/* ---- the server ---- */

struct server_options scene_options(void)
{
    struct server_options o = server_world_options();
    o.threads = 1;
    o.connections = 500;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        o.listen[i] = "127.0.0.1:0";
    }
    return o;
}

void scene_start(struct scene *s, const char *rules, const struct server_options *options)
{
    s->count = 0;
    server_world_start(&s->world, rules, options);
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)server_address(&s->world.server, i, s->address[i], sizeof s->address[i]);
    }
}

void scene_stop(struct scene *s)
{
    scene_close_crowd(s);
    server_world_stop(&s->world);
}

struct worker *scene_worker(struct scene *s)
{
    return &s->world.server.workers[0];
}

struct worker *scene_operators(struct scene *s)
{
    return &s->world.server.workers[s->world.server.threads];
}

size_t scene_units(struct scene *s, enum crowd_of of)
{
    return __atomic_load_n(&scene_worker(s)->crowds[of].units, __ATOMIC_RELAXED);
}

void scene_await(const uint64_t *counter, uint64_t least)
{
    uint64_t begun = clock_boot_ns();
    while (threads_get(counter) < least) {
        if (clock_boot_ns() - begun > 60 * WEIR_SECOND) {
            fail_msg("found %llu, expected at least %llu", (unsigned long long)threads_get(counter),
                     (unsigned long long)least);
        }
        (void)usleep(10000);
    }
}

/* ---- clients ---- */

unsigned scene_count(const char *text, const char *word)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        n++;
    }
    return n;
}

size_t scene_fetch_all(struct server_client *c, const char *bytes, unsigned n)
{
    static const char last[] = "*2\r\n$4\r\nECHO\r\n$9\r\nthe-last!\r\n";
    static const char end[] = "the-last!\r\n";
    static char got[1 << 16];
    size_t total = 0;
    size_t kept = 0; /* the end of what came before */
    for (unsigned i = 0; i < n; i++) {
        assert_true(server_send(c, bytes, strlen(bytes)));
    }
    assert_true(server_send(c, last, sizeof last - 1));
    for (;;) {
        ssize_t more = recv(c->fd, got + kept, sizeof got - kept, 0);
        assert_true(more > 0);
        total += (size_t)more;
        kept += (size_t)more;
        if (kept >= sizeof end - 1 &&
            memcmp(got + kept - (sizeof end - 1), end, sizeof end - 1) == 0) {
            return total;
        }
        size_t keep = kept < sizeof end ? kept : sizeof end;
        memmove(got, got + kept - keep, keep);
        kept = keep;
    }
}

struct server_client *scene_add(struct scene *s, enum server_protocol protocol, unsigned from)
{
    assert_true(s->count < CROWD_MOST);
    struct server_client *c = &s->crowd[s->count++];
    server_connect_from(c, s->address[protocol], from);
    return c;
}

void scene_close_crowd(struct scene *s)
{
    for (unsigned left = s->count; left > 0; left--) {
        unsigned i = scene_random(left);
        server_disconnect(&s->crowd[i]);
        s->crowd[i] = s->crowd[left - 1];
    }
    s->count = 0;
}

int scene_http(struct scene *s, enum server_protocol protocol, unsigned from, const char *line,
               const char *fields, const char *body, struct http_answer *a)
{
    struct server_client c;
    size_t size = strlen(body) + strlen(line) + strlen(fields) + 256;
    char *text = malloc(size);
    assert_non_null(text);
    int n = snprintf(
        text, size, "%s HTTP/1.1\r\nHost: localhost\r\n%s%sContent-Length: %zu\r\n\r\n%s", line,
        fields, body[0] != 0 ? "Content-Type: application/json\r\n" : "", strlen(body), body);
    server_connect_from(&c, s->address[protocol], from);
    bool sent = server_send(&c, text, (size_t)n);
    int status = sent && http_receive(c.fd, a) ? a->status : 0;
    server_disconnect(&c);
    free(text);
    return status;
}

void scene_is_served(struct scene *s, unsigned from)
{
    static struct http_answer a;
    struct server_client c;
    server_connect_from(&c, s->address[PROTOCOL_RESP], from);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    assert_memory_equal(server_ask(&c, "WEIR.CHECK api honest"), "['allow'", 8);
    server_disconnect(&c);
    assert_int_equal(scene_http(s, PROTOCOL_HTTP, from, "POST /v1/check", "",
                                "{\"limit\":\"api\",\"key\":\"honest\"}", &a),
                     200);
}

void scene_both_are_served(struct scene *s)
{
    scene_is_served(s, CROWD);
    scene_is_served(s, OTHER);
}
