/*
 * Many clients at once: exact totals, also while rules are switched and when the
 * server ends under them; deep pipelines; nothing is left behind.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_client.h"
#include "support/engine/threads_run.h"
#include "support/engine/unit_limiter.h"

#define CLIENTS 4

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/day}]";

struct scene {
    struct server_world world;
    uint64_t asks; /* of each client */
    uint64_t asked;
    uint64_t allowed;
    uint64_t denied;
    uint64_t done; /* clients */
    uint64_t switches;
};

/* True if the server answered. */
static bool ask_once(struct scene *s, struct server_client *c)
{
    const char *heard = server_ask(c, "WEIR.CHECK api alice");
    bool allowed = strncmp(heard, "['allow' 'api' ", 15) == 0;
    bool denied = strncmp(heard, "['deny' 'api' ", 14) == 0;
    (void)threads_add(&s->allowed, allowed);
    (void)threads_add(&s->denied, denied);
    return allowed || denied;
}

static void hammer(unsigned index, void *arg)
{
    struct scene *s = arg;
    struct server_client c;
    (void)index;
    server_connect(&c, s->world.address);
    for (uint64_t i = 0; i < s->asks; i++) {
        threads_require(ask_once(s, &c));
        (void)threads_add(&s->asked, 1);
    }
    server_disconnect(&c);
    (void)threads_add(&s->done, 1);
}

static void four_clients_on_one_key_are_admitted_exactly_the_limit(void **state)
{
    static struct scene s;
    struct server_options o = server_world_options();
    s = (struct scene){.asks = THREADS_ROUNDS(5000, 1000, 500)};
    server_world_start(&s.world, rules, &o);
    threads_run(CLIENTS, hammer, &s);
    assert_int_equal(s.allowed, 1000);
    assert_int_equal(s.denied, CLIENTS * s.asks - 1000);
    server_world_stop(&s.world);
}

/* ---- reload ---- */

static void reload(struct scene *s, const char *text)
{
    struct weir_error error;
    threads_require(
        weir_rules_reload_text(s->world.server.rules, "test", text, strlen(text), &error) == 0);
    (void)threads_add(&s->switches, 1);
}

static void reload_or_hammer(unsigned index, void *arg)
{
    static const char other[] = "limits: [{name: api, key: [user], rate: 1000/day},"
                                " {name: more, key: [user], rate: 5/s}]";
    struct scene *s = arg;
    if (index > 0) {
        hammer(index, arg);
        return;
    }
    while (threads_get(&s->done) < CLIENTS) {
        reload(s, other);
        reload(s, rules);
    }
}

static void a_reload_under_load_neither_loses_nor_mints(void **state)
{
    static struct scene s;
    struct server_options o = server_world_options();
    s = (struct scene){.asks = THREADS_ROUNDS(5000, 1000, 500)};
    server_world_start(&s.world, rules, &o);
    threads_run(CLIENTS + 1, reload_or_hammer, &s);
    assert_int_equal(s.allowed, 1000);
    assert_int_equal(s.denied, CLIENTS * s.asks - 1000);
    assert_true(s.switches >= 2);
    server_world_stop(&s.world);
}

/* ---- pipelines ---- */

/* All is sent before anything is read. */
static void pipeline(const char *address, unsigned n, const char *words, const char *reply)
{
    struct server_client c;
    char one[128];
    size_t len = server_pack(words, one, sizeof one);
    char *all = malloc(len * n);
    assert_non_null(all);
    for (unsigned i = 0; i < n; i++) {
        memcpy(all + i * len, one, len);
    }
    server_connect(&c, address);
    assert_true(server_send(&c, all, len * n));
    for (unsigned i = 0; i < n; i++) {
        assert_string_equal(server_reply(&c), reply);
    }
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    server_disconnect(&c);
    free(all);
}

static void a_deep_pipeline_may_be_read_late(void **state)
{
    struct server_world w;
    struct server_options o = server_world_options();
    unsigned n = (unsigned)THREADS_ROUNDS(100000, 20000, 10000);
    char *folder = unit_folder();
    char path[256];
    server_world_start(&w, rules, &o);
    pipeline(w.address, n, "WEIR.PEEK api alice", "['allow' 'api' 1000 1000 0 0 0 '' 'limit']");
    pipeline(w.address, n, "CL.THROTTLE k 4 6 60 0", "[0 5 5 -1 0]");
    server_world_stop(&w);
    (void)snprintf(path, sizeof path, "unix:%s/s", folder);
    o.listen[PROTOCOL_RESP] = path;
    server_world_start(&w, rules, &o);
    pipeline(w.address, n, "WEIR.PEEK api alice", "['allow' 'api' 1000 1000 0 0 0 '' 'limit']");
    server_world_stop(&w);
    unit_folder_remove(folder);
}

/*
 * Replies fifty times as large as the requests: written as they are made, also when the client has
 * said all before it fetches the first.
 */
static void large_replies_to_small_requests_do_not_end_a_good_client(void **state)
{
    struct server_world w;
    struct server_client c;
    struct server_options o = server_world_options();
    char one[64];
    enum { MANY = 8000 };
    static char many[MANY * sizeof one];
    size_t len = server_pack("COMMAND DOCS", one, sizeof one);
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    for (unsigned i = 0; i < MANY; i++) {
        memcpy(many + i * len, one, len);
    }
    assert_true(server_send(&c, many, MANY * len));
    assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
    for (unsigned i = 0; i < MANY; i++) {
        assert_memory_equal(server_reply(&c), "['cl.throttle' ", 15);
    }
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    server_world_stop(&w);
}

#define BEYOND 30000 /* replies of more than a kilobyte: more than the server would keep */

/* One sends, the other begins to read when the server keeps as much as it will. */
static void send_or_read(unsigned index, void *arg)
{
    static struct server_client c;
    static uint64_t bytes; /* of one reply */
    struct scene *s = arg;
    if (index == 0) {
        server_connect(&c, s->world.address);
        threads_require(strncmp(server_ask(&c, "COMMAND DOCS"), "['cl", 4) == 0);
        (void)threads_add(&bytes, c.begin);
        for (unsigned i = 0; i < BEYOND; i++, (void)threads_add(&s->asked, 1)) {
            threads_require(server_say(&c, "COMMAND DOCS"));
        }
        return;
    }
    while (threads_get(&bytes) == 0 ||
           threads_get(&s->asked) < SERVER_OUTPUT_BYTES / threads_get(&bytes)) {
        threads_pause();
    }
    for (unsigned i = 0; i < BEYOND; i++) {
        threads_require(strncmp(server_reply(&c), "['cl.throttle' ", 15) == 0);
    }
    threads_require(strcmp(server_ask(&c, "PING"), "+PONG") == 0);
    server_disconnect(&c);
}

static void a_pipeline_of_any_depth_needs_only_a_client_that_reads(void **state)
{
    static struct scene s;
    struct server_options o = server_world_options();
    char *folder = unit_folder();
    char path[256];
    s = (struct scene){0};
    (void)snprintf(path, sizeof path, "unix:%s/s", folder);
    o.listen[PROTOCOL_RESP] = path;
    server_world_start(&s.world, rules, &o);
    threads_run(2, send_or_read, &s);
    server_world_stop(&s.world);
    unit_folder_remove(folder);
}

/* Requests that the server has read but has no room to answer are answered when there is room. */
static void what_waits_for_room_is_answered_without_another_word(void **state)
{
    struct server_world w;
    struct server_client c;
    struct server_options o = server_world_options();
    char *folder = unit_folder();
    char path[256];
    char one[64];
    static char many[32 * BEYOND];
    size_t len = server_pack("COMMAND DOCS", one, sizeof one);
    (void)snprintf(path, sizeof path, "unix:%s/s", folder);
    o.listen[PROTOCOL_RESP] = path;
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    assert_memory_equal(server_ask(&c, "COMMAND DOCS"), "['cl.throttle' ", 15);
    size_t n = SERVER_OUTPUT_BYTES / c.begin + 800; /* c.begin: the bytes of one reply */
    assert_true(n * len <= sizeof many);
    for (size_t i = 0; i < n; i++) {
        memcpy(many + i * len, one, len);
    }
    assert_true(server_send(&c, many, n * len));
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(server_reply(&c), "['cl.throttle' ", 15);
    }
    server_disconnect(&c);
    server_world_stop(&w);
    unit_folder_remove(folder);
}

/* ---- the end ---- */

/* Until the server ends; what was charged was told. */
static void hammer_to_the_end(unsigned index, void *arg)
{
    struct scene *s = arg;
    struct server_client c;
    if (index == 0) {
        while (threads_get(&s->allowed) < s->asks) {
            threads_pause();
        }
        server_stop(&s->world.server);
        return;
    }
    server_connect(&c, s->world.address);
    while (ask_once(s, &c)) {
    }
    server_disconnect(&c);
}

static uint64_t remaining(struct scene *s)
{
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 1, .mode = WEIR_PEEK};
    struct weir_rules_answer a;
    assert_int_equal(weir_rules_ask(s->world.server.rules, &q, &a, NULL), 0);
    return a.answer.remaining;
}

static void what_is_charged_while_the_server_ends_is_told(void **state)
{
    static struct scene s;
    struct server_options o = server_world_options();
    unsigned files = server_open_files();
    for (unsigned round = 0; round < THREADS_ROUNDS(5, 3, 2); round++) {
        s = (struct scene){.asks = 500};
        server_world_start(&s.world, "limits: [{name: api, key: [user], rate: 10M/day}]", &o);
        threads_run(CLIENTS + 1, hammer_to_the_end, &s);
        assert_int_equal(s.denied, 0);
        assert_int_equal(s.allowed + remaining(&s), 10000000);
        weir_rules_close(s.world.server.rules);
        assert_int_equal(s.world.server.connections, 0);
        assert_int_equal(server_open_files(), files);
    }
}

/* A pipeline that has arrived when the server is told to end is answered. */
static void what_has_arrived_is_answered_before_the_end(void **state)
{
    struct server_world w;
    struct server_client c;
    struct server_client idle;
    struct server_options o = server_world_options();
    server_world_start(&w, rules, &o);
    server_connect(&idle, w.address);
    assert_string_equal(server_ask(&idle, "PING"), "+PONG");
    server_connect(&c, w.address);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(server_say(&c, "PING"));
    }
    server_stop(&w.server);
    for (unsigned i = 0; i < 1000; i++) {
        assert_string_equal(server_reply(&c), "+PONG");
    }
    assert_string_equal(server_reply(&c), "end");
    assert_string_equal(server_reply(&idle), "end");
    server_disconnect(&c);
    server_disconnect(&idle);
    weir_rules_close(w.server.rules);
}

/* Nobody can keep the server from ending: neither by not reading, nor by half a request. */
static void who_does_not_listen_does_not_hold_up_the_end(void **state)
{
    struct server_world w;
    struct server_client c;
    struct server_client half;
    struct server_options o = server_world_options();
    o.write_ms = 3600000;
    server_world_start(&w, rules, &o);
    server_connect(&half, w.address);
    assert_true(server_send(&half, "*1\r\n$4\r\nPI", 10));
    server_connect(&c, w.address);
    for (unsigned i = 0; i < 8000; i++) {
        assert_true(server_say(&c, "COMMAND DOCS"));
    }
    server_stop(&w.server);
    assert_int_equal(w.server.connections, 0);
    server_disconnect(&c);
    server_disconnect(&half);
    weir_rules_close(w.server.rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_clients_on_one_key_are_admitted_exactly_the_limit),
        cmocka_unit_test(a_reload_under_load_neither_loses_nor_mints),
        cmocka_unit_test(a_deep_pipeline_may_be_read_late),
        cmocka_unit_test(large_replies_to_small_requests_do_not_end_a_good_client),
        cmocka_unit_test(a_pipeline_of_any_depth_needs_only_a_client_that_reads),
        cmocka_unit_test(what_waits_for_room_is_answered_without_another_word),
        cmocka_unit_test(what_is_charged_while_the_server_ends_is_told),
        cmocka_unit_test(what_has_arrived_is_answered_before_the_end),
        cmocka_unit_test(who_does_not_listen_does_not_hold_up_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
