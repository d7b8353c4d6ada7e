/* Set-up and requests that the tests of sandboxes and of checks have in common. */
#ifndef WEIR_TESTS_SERVER_SANDBOX_STORY_H
#define WEIR_TESTS_SERVER_SANDBOX_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <uv.h>

#include "server/sandbox/sandboxes.h"
#include "support/server/access_secrets.h"
#include "support/server/server_admin.h"

static const char rules[] = "attributes: {user: ['header:x-user', 'header:y-user']}\n"
                            "limits:\n"
                            "  - {name: api, when: {path: /api}, key: [user], rate: 3/day}\n";

static struct admin_world *world;
static struct http_answer a;

static inline int start(void **state)
{
    (void)state;
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, NULL);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    admin_world_stop(world);
    free(world);
    return 0;
}

static inline void restart(const struct server_options *options)
{
    admin_world_stop(world);
    admin_world_start(world, rules, options);
}

static inline void ask(const char *line, const char *body)
{
    admin_ask(world, line, "", body, &a);
}

static inline void assert_status(int status)
{
    if (a.status != status) {
        fail_msg("expected %d, found: %s", status, a.text);
    }
}

static inline void assert_body_has(const char *part)
{
    if (strstr(a.body, part) == NULL) {
        fail_msg("not in the body: %s\nfound: %s", part, a.text);
    }
}

/* Returns the text n times, with commas between. */
static inline char *repeat(const char *text, size_t n)
{
    size_t len = strlen(text);
    char *all = malloc(n * (len + 1) + 1);
    assert_non_null(all);
    for (size_t i = 0; i < n; i++) {
        memcpy(all + i * (len + 1), text, len);
        all[i * (len + 1) + len] = ',';
    }
    all[n * (len + 1) - 1] = 0;
    return all;
}

/* ---- requests ---- */

static inline void create(const char *yaml)
{
    json_t *body = json_pack("{s:s}", "rules", yaml);
    char *text = json_dumps(body, 0);
    ask("POST /v1/sandbox", text);
    free(text);
    json_decref(body);
}

static inline void make(char id[33], const char *yaml)
{
    create(yaml);
    assert_status(201);
    const char *at = strstr(a.body, "\"sandbox\":\"");
    assert_non_null(at);
    memcpy(id, at + 11, 32);
    id[32] = 0;
}

static inline void discard(const char *id)
{
    char line[64];
    (void)snprintf(line, sizeof line, "DELETE /v1/sandbox/%.32s", id);
    ask(line, "");
}

static inline char *step_body(const char *asks)
{
    char *body = malloc(strlen(asks) + 16);
    assert_non_null(body);
    (void)sprintf(body, "{\"asks\":[%s]}", asks);
    return body;
}

static inline void step(const char *id, const char *asks)
{
    char line[64];
    char *body = step_body(asks);
    (void)snprintf(line, sizeof line, "POST /v1/sandbox/%.32s", id);
    ask(line, body);
    free(body);
}

/* An ask of one client at this time, perhaps with one more member. */
#define ASK(at, ...)                                                                               \
    "{\"at_ms\":" #at                                                                              \
    ",\"attributes\":{\"path\":\"/api\",\"user\":\"ann\"}" ASK_MORE(__VA_ARGS__) "}"
#define ASK_MORE(...) __VA_OPT__("," __VA_ARGS__)

/* Returns the verdicts of the last reply, each with a blank after it. */
static inline const char *verdicts(void)
{
    static char found[4096];
    size_t n = 0;
    found[0] = 0;
    for (const char *at = a.body; (at = strstr(at, "\"verdict\":\"")) != NULL;) {
        at += 11;
        n += (size_t)snprintf(found + n, sizeof found - n, "%.*s ", (int)strcspn(at, "\""), at);
    }
    return found;
}

/* Sends a request and leaves its reply. Returns the socket. */
static inline int send_only(const char *line, const char *type, const char *body)
{
    struct http_server s;
    char *text = malloc(strlen(body) + 256);
    assert_non_null(text);
    memcpy(s.address, world->address[PROTOCOL_ADMIN], sizeof s.address);
    int fd = http_connect(&s);
    int n = sprintf(text,
                    "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: "
                    "%zu\r\n\r\n%s",
                    line, type, strlen(body), body);
    http_send(fd, text, (size_t)n);
    free(text);
    return fd;
}

static inline int send_step(const char *id, const char *asks)
{
    char line[64];
    char *body = step_body(asks);
    (void)snprintf(line, sizeof line, "POST /v1/sandbox/%.32s", id);
    int fd = send_only(line, "application/json", body);
    free(body);
    return fd;
}

static inline int send_check(const char *yaml)
{
    return send_only("POST /v1/config/check", "application/yaml", yaml);
}

static inline void auth(const char *path, const char *user, struct http_answer *sent)
{
    struct http_server s;
    char text[256];
    memcpy(s.address, world->address[PROTOCOL_HTTP], sizeof s.address);
    int fd = http_connect(&s);
    int n = snprintf(text, sizeof text,
                     "POST /v1/auth HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Uri: %s\r\n"
                     "X-User: %s\r\nContent-Length: 0\r\n\r\n",
                     path, user);
    http_send(fd, text, (size_t)n);
    assert_true(http_receive(fd, sent));
    (void)close(fd);
}

/* Returns the head of a reply as the lists of a step have it, without Date and times that differ. */
static inline json_t *fields_of(const struct http_answer *sent)
{
    json_t *list = json_array();
    const char *line = strstr(sent->text, "\r\n") + 2;
    while (strncmp(line, "\r\n", 2) != 0) {
        size_t name = strcspn(line, ":");
        size_t len = strcspn(line, "\r");
        (void)json_array_append_new(
            list, json_pack("[s%, s%]", line, name, line + name + 2, len - name - 2));
        line += len + 2;
    }
    return list;
}

static inline void assert_same_fields(const struct http_answer *sent)
{
    json_t *reply = json_loads(a.body, 0, NULL);
    json_t *expected = fields_of(sent);
    const json_t *found =
        json_object_get(json_array_get(json_object_get(reply, "answers"), 0), "headers");
    assert_int_equal(json_array_size(found), json_array_size(expected));
    for (size_t i = 0; i < json_array_size(found); i++) {
        const json_t *one = json_array_get(found, i);
        const json_t *other = json_array_get(expected, i);
        const char *name = json_string_value(json_array_get(one, 0));
        bool timed = strcmp(name, "Date") == 0; /* virtual time against the clock */
        if (timed ? strcmp(name, json_string_value(json_array_get(other, 0))) != 0
                  : !json_equal(one, other)) {
            fail_msg("field %zu: found %s: %s\nin %s", i, name,
                     json_string_value(json_array_get(one, 1)), sent->text);
        }
    }
    json_decref(expected);
    json_decref(reply);
}

/* ---- libuv's pool, on which jobs run ---- */

#define POOL 4 /* threads that it has, unless UV_THREADPOOL_SIZE says otherwise */

static struct {
    uv_loop_t loop;
    uv_sem_t begun;
    uv_sem_t free;
    uv_work_t work[POOL];
} pool;

static inline void wait_for_end(uv_work_t *work)
{
    (void)work;
    uv_sem_post(&pool.begun);
    uv_sem_wait(&pool.free);
}

static inline void on_end_of_wait(uv_work_t *work, int status)
{
    (void)work;
    (void)status;
}

/* Keeps every thread of the pool at work, so that jobs wait until free_pool(). */
static inline void block_pool(void)
{
    assert_int_equal(uv_loop_init(&pool.loop), 0);
    assert_int_equal(uv_sem_init(&pool.begun, 0), 0);
    assert_int_equal(uv_sem_init(&pool.free, 0), 0);
    for (unsigned i = 0; i < POOL; i++) {
        (void)uv_queue_work(&pool.loop, &pool.work[i], wait_for_end, on_end_of_wait);
    }
    for (unsigned i = 0; i < POOL; i++) {
        uv_sem_wait(&pool.begun);
    }
}

static inline void free_pool(void)
{
    for (unsigned i = 0; i < POOL; i++) {
        uv_sem_post(&pool.free);
    }
    (void)uv_run(&pool.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&pool.loop), 0);
    uv_sem_destroy(&pool.begun);
    uv_sem_destroy(&pool.free);
}

#endif
