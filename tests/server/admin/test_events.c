/* Streams of events: what each role gets, how many there are, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "server/access/access.h"
#include "server/loop/worker.h"
#include "support/server/server_admin.h"

#define RULES "limits: [{name: api, key: [user], rate: 1/day}]\n"
#define ADMIN "Authorization: Bearer a-secret-of-operators\r\n"
#define SAMPLE_MS 10

static struct admin_world *world;
static struct access *access_made;
static char secrets[] = "/tmp/weir-events-XXXXXX"; /* the file of operators' secrets */
static struct http_answer a;

static void write_secrets(const char *text)
{
    FILE *f = fopen(secrets, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void start_rules(const char *rules, struct server_options o)
{
    struct access_sources from = {.file = {[ROLE_ADMIN] = secrets}};
    struct weir_error error = {0};
    write_secrets("a-secret-of-operators\n");
    assert_int_equal(access_open(&access_made, &from, &error), 0);
    o.access = access_made;
    o.sample_ms = o.sample_ms != 0 ? o.sample_ms : SAMPLE_MS;
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, &o);
}

static void start_with(struct server_options o)
{
    start_rules(RULES, o);
}

static int start(void **state)
{
    start_with((struct server_options){.threads = 0});
    return 0;
}

static int stop(void **state)
{
    if (world != NULL) {
        admin_world_stop(world);
    }
    access_close(access_made);
    free(world);
    world = NULL;
    access_made = NULL;
    return 0;
}

/* ---- a client ---- */

struct stream {
    int fd;
    char text[1 << 16]; /* that has come and was not looked at */
    size_t len;
    char name[32]; /* of the last event */
    json_t *data;
    json_t *hello; /* its data; NULL before it came */
};

/* Sends a request for a stream from 127.0.0.`from`, with these fields. */
static void ask_stream_from(struct stream *s, unsigned from, const char *method, const char *fields)
{
    char request[512];
    *s = (struct stream){.fd = admin_connect(world, from)};
    int n = snprintf(request, sizeof request, "%s /v1/events HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                     method, fields);
    http_send(s->fd, request, (size_t)n);
}

static void ask_stream(struct stream *s, const char *method, const char *fields)
{
    ask_stream_from(s, 1, method, fields);
}

static void close_stream(struct stream *s)
{
    (void)close(s->fd);
    json_decref(s->data);
    json_decref(s->hello);
    s->data = NULL;
    s->hello = NULL;
}

/* Reads more. Returns false at the end of the stream. */
static bool read_more(struct stream *s)
{
    ssize_t n = recv(s->fd, s->text + s->len, sizeof s->text - 1 - s->len, 0);
    assert_true(n >= 0);
    s->len += (size_t)n;
    s->text[s->len] = 0;
    return n > 0;
}

/* Takes the text up to the next blank line. Returns false if the stream ends before. */
static bool take_part(struct stream *s, const char *blank, char *part, size_t size)
{
    const char *found;
    while ((found = strstr(s->text, blank)) == NULL) {
        if (!read_more(s)) {
            return false;
        }
    }
    size_t n = (size_t)(found - s->text) + strlen(blank);
    assert_true(n < size);
    memcpy(part, s->text, n);
    part[n] = 0;
    memmove(s->text, s->text + n, s->len - n + 1);
    s->len -= n;
    return true;
}

/* Reads the next event. Returns false at the end of the stream. */
static bool next_event(struct stream *s)
{
    static char part[1 << 16];
    if (!take_part(s, "\n\n", part, sizeof part)) {
        return false;
    }
    assert_int_equal(sscanf(part, "event: %31[a-z]\n", s->name), 1);
    const char *data = strstr(part, "\ndata: ");
    assert_non_null(data);
    json_decref(s->data);
    s->data = json_loads(data + strlen("\ndata: "), 0, NULL);
    assert_non_null(s->data);
    return true;
}

/* Opens a stream; its next event comes after `hello` and `notices`, of which the
 * latter is in s->data. */
static void open_stream_from(struct stream *s, unsigned from, const char *fields)
{
    char head[1024];
    ask_stream_from(s, from, "GET", fields);
    assert_true(take_part(s, "\r\n\r\n", head, sizeof head));
    assert_non_null(strstr(head, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(head, "Content-Type: text/event-stream\r\n"));
    assert_null(strstr(head, "Content-Length"));
    assert_true(next_event(s));
    assert_string_equal(s->name, "hello");
    s->hello = json_incref(s->data);
    assert_true(next_event(s));
    assert_string_equal(s->name, "notices");
}

static void open_stream(struct stream *s, const char *fields)
{
    open_stream_from(s, 1, fields);
}

static void await(struct stream *s, const char *name)
{
    do {
        assert_true(next_event(s));
    } while (strcmp(s->name, name) != 0);
}

static const char *string_of(const struct stream *s, const char *name)
{
    return json_string_value(json_object_get(s->data, name));
}

/* Waits until a metric has the value. */
static void await_metric(const char *series, double value)
{
    for (int i = 0; admin_metric(world, series) != value; i++) {
        assert_in_range(i, 0, 100000);
        (void)usleep(1000);
    }
}

/* ---- tests ---- */

static void a_stream_says_hello_and_then_sends_each_sample(void **state)
{
    static struct stream s;
    open_stream(&s, "");
    assert_string_equal(json_string_value(json_object_get(s.hello, "role")), "check");
    assert_int_equal(json_integer_value(json_object_get(s.hello, "every_ms")), SAMPLE_MS);
    assert_int_equal(json_integer_value(json_object_get(s.hello, "streams")), 1);
    json_int_t last = 0;
    for (int i = 0; i < 10; i++) {
        await(&s, "sample");
        json_int_t at = json_integer_value(json_object_get(s.data, "at_ms"));
        assert_true(at >= last);
        last = at;
    }
    admin_ask(world, "GET /v1/history", "", "", &a);
    assert_int_equal(a.status, 200);
    char text[64];
    (void)snprintf(text, sizeof text, "{\"at_ms\":%lld,", (long long)last);
    assert_non_null(strstr(a.body, text));
    close_stream(&s);
    await_metric("weir_event_streams", 0);
}

/* Causes what only admins may see: a denied key, a message with hostile text, a changed limit. */
static void cause_news(void)
{
    for (int i = 0; i < 3; i++) {
        admin_check(world, "{\"limit\":\"api\",\"key\":\"secret-key\"}", &a);
    }
    admin_world_write(world, "limits: [{name: api, key: [user], rate: '<img onerror>'}]\n");
    admin_ask(world, "POST /v1/reload", ADMIN, "", &a);
    assert_int_equal(a.status, 422);
    admin_world_write(world, RULES);
    admin_ask(world, "POST /v1/reload", ADMIN, "", &a);
    assert_int_equal(a.status, 200);
    admin_ask(world, "PUT /v1/mode", ADMIN, "{\"mode\":\"shadow\",\"limit\":\"api\"}", &a);
    assert_int_equal(a.status, 200);
    admin_ask(world, "PUT /v1/limits/more", ADMIN,
              "{\"name\":\"more\",\"key\":[\"user\"],\"rate\":\"1/s\"}", &a);
    assert_int_equal(a.status, 201);
    admin_ask(world, "DELETE /v1/limits/more", ADMIN, "", &a);
    assert_int_equal(a.status, 204);
}

static const struct {
    const char *kind;
    const char *text;
} news[] = {{"reload failed", "the old rules stay: "},
            {"reload", "generation 2"},
            {"mode", "api: shadow"},
            {"limit", "more: added"},
            {"limit", "more: removed"}};

#define NEWS (sizeof news / sizeof news[0])

/* The list of each time has the key, and says why it was denied. */
static void assert_top(const json_t *data)
{
    static const json_int_t minutes[] = {1, 5, 15};
    const json_t *tops = json_object_get(data, "tops");
    assert_int_equal(json_array_size(tops), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *top = json_array_get(tops, i);
        const json_t *denied = json_array_get(json_object_get(top, "denied"), 0);
        assert_int_equal(json_integer_value(json_object_get(top, "minutes")), minutes[i]);
        assert_string_equal(json_string_value(json_object_get(denied, "key")), "secret-key");
        assert_string_equal(json_string_value(json_object_get(denied, "reason")), "limit");
    }
}

static void admins_see_texts_messages_and_keys(void **state)
{
    static struct stream s;
    open_stream(&s, ADMIN);
    assert_string_equal(json_string_value(json_object_get(s.hello, "role")), "admin");
    cause_news();
    for (size_t i = 0; i < NEWS; i++) {
        await(&s, "event");
        assert_string_equal(string_of(&s, "kind"), news[i].kind);
        assert_memory_equal(string_of(&s, "text"), news[i].text, strlen(news[i].text));
        const json_t *messages = json_object_get(s.data, "messages");
        if (i == 0) {
            assert_non_null(strstr(json_string_value(json_array_get(messages, 0)),
                                   ":1:41: found '<img onerror>'"));
        }
    }
    await(&s, "top");
    assert_top(s.data);
    close_stream(&s);
    admin_ask(world, "GET /v1/history", ADMIN, "", &a);
    assert_non_null(strstr(a.body, "<img onerror>"));
}

/* A page on a busy machine may lose each of its streams before the next `top` is due. */
static void an_admin_is_told_the_keys_denied_most_at_once(void **state)
{
    static struct stream s;
    admin_check(world, "{\"limit\":\"api\",\"key\":\"secret-key\"}", &a);
    for (int i = 0; i < 3; i++) {
        admin_check(world, "{\"limit\":\"api\",\"key\":\"secret-key\"}", &a);
    }
    for (int i = 0; i < 5; i++) {
        open_stream(&s, ADMIN);
        assert_true(next_event(&s));
        assert_string_equal(s.name, "top");
        assert_top(s.data);
        close_stream(&s);
    }
    await_metric("weir_event_streams", 0);
}

/* Waits until the stream tells of one notice, and returns it. */
static const json_t *await_notice(struct stream *s)
{
    do {
        await(s, "notices");
    } while (json_array_size(json_object_get(s->data, "notices")) != 1);
    return json_array_get(json_object_get(s->data, "notices"), 0);
}

static void notices_come_after_hello_and_when_they_change(void **state)
{
    static struct stream s;
    static struct stream late;
    open_stream(&s, ADMIN);
    assert_int_equal(json_array_size(json_object_get(s.data, "notices")), 0);
    admin_ask(world, "PUT /v1/mode", ADMIN, "{\"mode\":\"shadow\"}", &a);
    const json_t *notice = await_notice(&s);
    assert_string_equal(json_string_value(json_object_get(notice, "name")), "kill_switch");
    assert_string_equal(json_string_value(json_object_get(notice, "text")), "nothing is denied");
    open_stream(&late, "");
    assert_true(json_equal(s.data, late.data));
    admin_ask(world, "PUT /v1/mode", ADMIN, "{\"mode\":\"enforce\"}", &a);
    await(&s, "notices");
    assert_int_equal(json_array_size(json_object_get(s.data, "notices")), 0);
    close_stream(&s);
    close_stream(&late);
}

static void only_an_admin_is_told_why_there_is_a_notice(void **state)
{
    static struct stream s;
    static struct stream check;
    open_stream(&s, ADMIN);
    open_stream(&check, "");
    admin_world_write(world, "limits: [{name: api, key: [user], rate: often}]\n");
    admin_ask(world, "POST /v1/reload", ADMIN, "", &a);
    assert_int_equal(a.status, 422);
    const char *why = json_string_value(json_object_get(await_notice(&s), "why"));
    assert_non_null(strstr(why, ":1:41: found 'often'"));
    const json_t *none = json_object_get(await_notice(&check), "why");
    assert_true(json_is_null(none));
    close_stream(&s);
    close_stream(&check);
}

static void clients_of_the_role_check_see_neither(void **state)
{
    static struct stream s;
    open_stream(&s, "");
    cause_news();
    for (size_t i = 0; i < NEWS;) {
        assert_true(next_event(&s));
        assert_string_not_equal(s.name, "top");
        if (strcmp(s.name, "event") == 0) {
            assert_string_equal(string_of(&s, "kind"), news[i].kind);
            assert_int_equal(json_object_size(s.data), 2);
            i++;
        }
    }
    for (int i = 0; i < 5; i++) {
        assert_true(next_event(&s));
        assert_string_equal(s.name, "sample");
    }
    close_stream(&s);
    admin_ask(world, "GET /v1/history", "", "", &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"role\":\"check\""));
    assert_non_null(strstr(a.body, "\"kind\":\"limit\"}"));
    assert_null(strstr(a.body, "img"));
    assert_null(strstr(a.body, "text"));
    assert_null(strstr(a.body, "secret-key"));
}

static void the_129th_stream_is_refused_and_other_requests_are_not(void **state)
{
    static struct stream streams[SERVER_STREAMS];
    static struct stream more;
    char head[2048];
    for (int i = 0; i < SERVER_STREAMS; i++) {
        open_stream(&streams[i], i % 2 == 0 ? ADMIN : "");
        assert_int_equal(json_integer_value(json_object_get(streams[i].hello, "streams")), i + 1);
    }
    ask_stream(&more, "GET", "");
    assert_true(take_part(&more, "\r\n\r\n", head, sizeof head));
    assert_non_null(strstr(head, "HTTP/1.1 503 "));
    assert_non_null(strstr(head, "application/problem+json"));
    close_stream(&more);
    for (int i = 0; i < 40; i++) { /* more than one address may have of the other connections */
        admin_ask(world, "GET /v1/status", "", "", &a);
        assert_int_equal(a.status, 200);
    }
    assert_int_equal(admin_metric(world, "weir_event_streams"), SERVER_STREAMS);
    for (int i = 0; i < SERVER_STREAMS; i++) {
        await(&streams[i], "sample");
    }
    close_stream(&streams[0]);
    await_metric("weir_event_streams", SERVER_STREAMS - 1);
    open_stream(&more, "");
    await(&more, "sample");
    close_stream(&more);
    for (int i = 1; i < SERVER_STREAMS; i++) {
        close_stream(&streams[i]);
    }
    await_metric("weir_event_streams", 0);
    assert_int_equal(admin_metric(world, "weir_event_streams_dropped_total"), 0);
}

/* Reads the head of a reply that refuses a stream. */
static void assert_refused(unsigned from, const char *fields)
{
    static struct stream s;
    char head[2048];
    ask_stream_from(&s, from, "GET", fields);
    assert_true(take_part(&s, "\r\n\r\n", head, sizeof head));
    assert_non_null(strstr(head, "HTTP/1.1 503 "));
    close_stream(&s);
}

static void an_address_that_has_all_streams_gives_some_up_for_others(void **state)
{
    static struct stream streams[SERVER_STREAMS];
    static struct stream others[SERVER_STREAMS / 2];
    for (int i = 0; i < SERVER_STREAMS; i++) {
        open_stream_from(&streams[i], 2, i == 0 ? ADMIN : "");
    }
    assert_refused(2, "");
    for (int i = 0; i < SERVER_STREAMS / 2; i++) {
        open_stream_from(&others[i], 3, "");
    }
    assert_refused(3, ""); /* both have half: neither takes from the other */
    assert_refused(2, "");
    assert_int_equal(admin_metric(world, "weir_event_streams"), SERVER_STREAMS);
    await(&streams[0], "sample"); /* the oldest, but it has the secret: others went first */
    for (int i = 1; i <= SERVER_STREAMS / 4; i++) { /* of the same millisecond, any may be older */
        await(&streams[i], "dropped");
        assert_non_null(strstr(string_of(&streams[i], "why"), "another address needed room"));
    }
    await(&streams[SERVER_STREAMS - 1], "sample");
    await(&others[0], "sample");
    assert_int_equal(admin_metric(world, "weir_event_streams_dropped_total"), SERVER_STREAMS / 2);
    for (int i = 0; i < SERVER_STREAMS; i++) {
        close_stream(&streams[i]);
        if (i < SERVER_STREAMS / 2) {
            close_stream(&others[i]);
        }
    }
}

static void streams_without_the_secret_give_way_to_operators_of_their_address(void **state)
{
    static struct stream streams[SERVER_STREAMS];
    static struct stream operators[SERVER_STREAMS];
    for (int i = 0; i < SERVER_STREAMS; i++) {
        open_stream_from(&streams[i], 1, "");
    }
    for (int i = 0; i < SERVER_STREAMS; i++) {
        open_stream_from(&operators[i], 1, ADMIN);
        await(&operators[i], "sample");
    }
    for (int i = 0; i < SERVER_STREAMS; i++) {
        await(&streams[i], "dropped");
        assert_non_null(strstr(string_of(&streams[i], "why"), "a higher role"));
    }
    assert_refused(1, ADMIN);
    assert_refused(1, "");
    assert_refused(2, ""); /* an operator's stream makes room for an operator's only */
    close_stream(&streams[0]);
    open_stream_from(&streams[0], 2, ADMIN);
    assert_int_equal(admin_metric(world, "weir_event_streams"), SERVER_STREAMS);
    for (int i = 0; i < SERVER_STREAMS; i++) {
        close_stream(&streams[i]);
        close_stream(&operators[i]);
    }
}

/* Neither is it closed by the times that other connections have. */
static void an_open_stream_is_not_idle(void **state)
{
    static struct stream s;
    (void)stop(state);
    start_with(
        (struct server_options){.idle_ms = 40, .request_ms = 40, .write_ms = 40, .sample_ms = 100});
    open_stream(&s, "");
    for (int i = 0; i < 5; i++) {
        await(&s, "sample");
    }
    close_stream(&s);
}

static void a_slow_reader_is_dropped_and_told_and_others_go_on(void **state)
{
    static struct stream slow;
    static struct stream other;
    int small = 4096;
    (void)stop(state);
    start_with((struct server_options){.sample_ms = 1});
    slow = (struct stream){.fd = admin_connect(world, 1)};
    assert_int_equal(setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    static const char request[] = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    http_send(slow.fd, request, strlen(request));
    open_stream(&other, "");
    while (admin_metric(world, "weir_event_streams_dropped_total") == 0) {
        for (int i = 0; i < 100; i++) {
            assert_true(next_event(&other));
        }
    }
    assert_int_equal(admin_metric(world, "weir_event_streams_dropped_total"), 1);
    assert_int_equal(admin_metric(world, "weir_event_streams"), 1);
    int large = 1 << 20;
    char head[1024];
    assert_int_equal(setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large), 0);
    assert_true(take_part(&slow, "\r\n\r\n", head, sizeof head));
    while (next_event(&slow)) {
    }
    assert_string_equal(slow.name, "dropped");
    assert_non_null(strstr(string_of(&slow, "why"), "not fetched fast enough"));
    await(&other, "sample");
    close_stream(&other);
    close_stream(&slow);
}

static void a_withdrawn_secret_ends_its_streams(void **state)
{
    static struct stream admin;
    static struct stream check;
    open_stream(&admin, ADMIN);
    open_stream(&check, "");
    write_secrets("another-secret-of-operators\n");
    assert_int_equal(server_reload(&world->server, NULL, NULL), 0);
    while (next_event(&admin)) { /* the last thing it learns is not about the reload */
        assert_true(strcmp(admin.name, "event") != 0);
    }
    assert_string_equal(admin.name, "dropped");
    assert_non_null(strstr(string_of(&admin, "why"), "secrets were changed"));
    await(&check, "event");
    assert_string_equal(string_of(&check, "kind"), "reload");
    await(&check, "sample");
    close_stream(&admin);
    close_stream(&check);
}

static void a_secret_that_stays_keeps_its_streams(void **state)
{
    static struct stream admin;
    open_stream(&admin, ADMIN);
    write_secrets("another-secret-of-operators\na-secret-of-operators\n");
    assert_int_equal(server_reload(&world->server, NULL, NULL), 0);
    await(&admin, "event");
    assert_string_equal(string_of(&admin, "kind"), "reload");
    assert_non_null(string_of(&admin, "text"));
    await(&admin, "sample");
    close_stream(&admin);
}

static void streams_end_at_once_when_the_server_stops(void **state)
{
    static struct stream s[3];
    uint64_t took_ms = UINT64_MAX;
    for (int i = 0; took_ms >= SERVER_LINGER_MS && i < 5; i++) { /* the machine may be busy */
        if (i > 0) {
            (void)start(state);
        }
        for (int k = 0; k < 3; k++) {
            open_stream(&s[k], "");
        }
        uint64_t began = clock_boot_ns();
        admin_world_stop(world);
        took_ms = (clock_boot_ns() - began) / WEIR_MILLISECOND;
        for (int k = 0; k < 3; k++) {
            while (next_event(&s[k])) {
            }
            close_stream(&s[k]);
        }
        free(world);
        world = NULL;
        (void)stop(state);
    }
    assert_true(took_ms < SERVER_LINGER_MS);
}

static void head_gets_the_head_alone(void **state)
{
    static struct stream s;
    char head[1024];
    ask_stream(&s, "HEAD", "");
    assert_true(take_part(&s, "\r\n\r\n", head, sizeof head));
    assert_non_null(strstr(head, "Content-Type: text/event-stream\r\n"));
    assert_null(strstr(head, "Content-Length"));
    assert_false(read_more(&s));
    assert_int_equal(s.len, 0);
    close_stream(&s);
}

static void requests_after_a_stream_are_thrown_away(void **state)
{
    static struct stream s;
    static const char more[] = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char request[512];
    char head[1024];
    s = (struct stream){.fd = admin_connect(world, 1)};
    int n = snprintf(request, sizeof request,
                     "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n%s", more);
    http_send(s.fd, request, (size_t)n);
    assert_true(take_part(&s, "\r\n\r\n", head, sizeof head));
    await(&s, "sample");
    http_send(s.fd, more, strlen(more));
    for (int i = 0; i < 5; i++) {
        assert_true(next_event(&s)); /* each part is an event */
    }
    close_stream(&s);
}

static void a_stream_needs_the_role_check(void **state)
{
    static struct stream s;
    char head[1024];
    ask_stream(&s, "GET", "Authorization: Bearer wrong\r\n");
    assert_true(take_part(&s, "\r\n\r\n", head, sizeof head));
    assert_non_null(strstr(head, "HTTP/1.1 401 "));
    close_stream(&s);
    ask_stream(&s, "GET", "Origin: http://elsewhere.example\r\n");
    assert_true(take_part(&s, "\r\n\r\n", head, sizeof head));
    assert_non_null(strstr(head, "HTTP/1.1 403 "));
    close_stream(&s);
}

/* ---- what pages cost ---- */

#define PAGES 100
#define LIMITS 64
#define TICKS 40

/* Returns the processor time of the operators' thread. */
static uint64_t operators_cpu_ns(void)
{
    clockid_t clock;
    struct timespec t;
    pthread_t thread = world->server.workers[world->server.threads].thread;
    assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (uint64_t)t.tv_sec * WEIR_SECOND + (uint64_t)t.tv_nsec;
}

/* Fills rules with LIMITS limits, and a batch that asks each of them. */
static void put_limits(char *rules, char *batch)
{
    size_t n = (size_t)sprintf(rules, "limits:\n");
    size_t m = (size_t)sprintf(batch, "{\"requests\":[");
    for (int i = 0; i < LIMITS; i++) {
        n += (size_t)sprintf(rules + n, "  - {name: limit-%02d, key: [user], rate: 9/day}\n", i);
        m += (size_t)sprintf(batch + m, "%s{\"limit\":\"limit-%02d\",\"key\":\"x\"}",
                             i > 0 ? "," : "", i);
    }
    (void)sprintf(batch + m, "]}");
}

/* The bound is for samples that are a second apart; here they are closer, to save time. */
static void a_hundred_pages_take_less_than_a_twentieth_of_a_processor(void **state)
{
    static struct stream streams[PAGES];
    static char rules[LIMITS * 64];
    static char batch[LIMITS * 64];
    (void)stop(state);
    put_limits(rules, batch);
    start_rules(rules, (struct server_options){.sample_ms = 50});
    for (int i = 0; i < PAGES; i++) {
        open_stream(&streams[i], i % 2 == 0 ? ADMIN : "");
    }
    uint64_t before = operators_cpu_ns();
    for (int tick = 0; tick < TICKS; tick++) {
        admin_check_batch(world, batch, &a);
        assert_int_equal(a.status, 200);
        for (int i = 0; i < PAGES; i++) {
            await(&streams[i], "sample");
        }
    }
    uint64_t each_us = (operators_cpu_ns() - before) / WEIR_MICROSECOND / TICKS;
    print_message("a sample to %d pages: %d us of processor time\n", PAGES, (int)each_us);
    assert_in_range(each_us, 1, 50000);
    for (int i = 0; i < PAGES; i++) {
        close_stream(&streams[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stream_says_hello_and_then_sends_each_sample),
        TEST(admins_see_texts_messages_and_keys),
        TEST(an_admin_is_told_the_keys_denied_most_at_once),
        TEST(notices_come_after_hello_and_when_they_change),
        TEST(only_an_admin_is_told_why_there_is_a_notice),
        TEST(clients_of_the_role_check_see_neither),
        TEST(the_129th_stream_is_refused_and_other_requests_are_not),
        TEST(an_address_that_has_all_streams_gives_some_up_for_others),
        TEST(streams_without_the_secret_give_way_to_operators_of_their_address),
        TEST(an_open_stream_is_not_idle),
        TEST(a_slow_reader_is_dropped_and_told_and_others_go_on),
        TEST(a_withdrawn_secret_ends_its_streams),
        TEST(a_secret_that_stays_keeps_its_streams),
        TEST(streams_end_at_once_when_the_server_stops),
        TEST(head_gets_the_head_alone),
        TEST(requests_after_a_stream_are_thrown_away),
        TEST(a_stream_needs_the_role_check),
        TEST(a_hundred_pages_take_less_than_a_twentieth_of_a_processor),
    };
    int fd = mkstemp(secrets);
    assert_true(fd >= 0);
    (void)close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(secrets);
    return failed;
}
