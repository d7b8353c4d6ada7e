/* What the server remembers and logs, and how it ends. */
#include <sys/socket.h>

#include "base/clock.h"
#include "bounds/bounds_scene.h"
#include "common/log.h"
#include "server/record/denied_log.h"
#include "server/record/history.h"
#include "server/record/top_denied.h"
#include "support/server/access_secrets.h"

static struct http_answer a;

/* ---- lines of the log ---- */

static FILE *lines;

/* Lets the log go to a file; end_log() lets it go to stderr again. */
static void begin_log(void)
{
    lines = tmpfile();
    assert_non_null(lines);
    log_init(fileno(lines), LOG_AS_TEXT, LOG_KEYS_CUT);
}

static void end_log(void)
{
    log_init(STDERR_FILENO, LOG_AS_TEXT, LOG_KEYS_CUT);
    (void)fclose(lines);
}

/* Returns how many lines have both texts in them. */
static unsigned count_lines(const char *text, const char *other)
{
    char line[8192];
    unsigned n = 0;
    rewind(lines);
    while (fgets(line, sizeof line, lines) != NULL) {
        n += strstr(line, text) != NULL && strstr(line, other) != NULL;
    }
    return n;
}

/* Connections that make room: one line in a second, however many there are. */
static void log_lines(struct scene *s)
{
    enum { CLOSED = 200 };
    struct server_options o = scene_options();
    o.connections_per_address = 2;
    (void)usleep(1100000); /* the last line of another driver is long ago */
    begin_log();
    scene_start(s, SCENE_RULES, &o);
    uint64_t begun = clock_boot_ns();
    for (unsigned i = 0; i < CLOSED; i++) {
        assert_string_equal(server_ask(scene_add(s, PROTOCOL_RESP, CROWD), "PING"), "+PONG");
    }
    scene_both_are_served(s);
    uint64_t seconds = (clock_boot_ns() - begun) / WEIR_SECOND + 1;
    assert_true(threads_get(&scene_worker(s)->counts.replaced_address) > CLOSED / 2);
    assert_in_range(count_lines("connection closed", "opened a newer one"), 1, seconds + 1);
    scene_stop(s);
    end_log();
}

#define LOGGED                                                                                     \
    "limits: [{name: api, key: [user], rate: 1000000/s, max_keys: 100},\n"                         \
    "         {name: few, key: [user], rate: 1/day, log: {denied: 100000/s}}]"

/* The first request of a key passes. */
static void deny(struct server_client *c, const char *key)
{
    char words[256];
    (void)snprintf(words, sizeof words, "WEIR.CHECK few %s", key);
    if (strncmp(server_ask(c, words), "['allow'", 8) == 0) {
        (void)server_ask(c, words);
    }
    assert_memory_equal(c->reply, "['deny'", 7);
}

static void denied_lines(struct scene *s)
{
    enum { DENIED = 10 * DENIED_LOG_EACH };
    char key[32];
    struct server_options o = scene_options();
    begin_log();
    scene_start(s, LOGGED, &o);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    for (unsigned i = 0; i < DENIED; i++) {
        deny(c, "alice");
    }
    assert_int_equal(count_lines("limit=few", "key=alice"), 1 + DENIED / DENIED_LOG_EACH);
    for (unsigned i = 0; i < 20 * DENIED_LOG_KEYS; i++) {
        (void)snprintf(key, sizeof key, "other%u", i);
        deny(c, key);
    }
    deny(c, "alice"); /* she was forgotten, and is new */
    assert_int_equal(count_lines("limit=few", "key=alice"), 2 + DENIED / DENIED_LOG_EACH);
    scene_both_are_served(s);
    scene_stop(s);
    end_log();
}

/* Calls that would give units back to many limits: few lines in a second, however many those
 * are. */
static void withheld_lines(struct scene *s)
{
    enum { LIMITS = 640, EACH = 10 };
    static char text[LIMITS * 80];
    char *to = stpcpy(text, "limits:\n"
                            "  - {name: api, key: [user], rate: 1000000/s, max_keys: 100}\n");
    struct server_options o = scene_options();
    for (unsigned i = 0; i < LIMITS; i++) {
        to += sprintf(to, "  - {name: l%u, when: {n: v%u}, key: [n], rate: 9/s, max_keys: 10}\n", i,
                      i);
    }
    o.access = secrets(NULL, "a-secret-of-operators");
    begin_log();
    scene_start(s, text, &o);
    uint64_t begun = clock_boot_ns();
    for (unsigned i = 0; i < LIMITS; i += EACH) {
        to = stpcpy(text, "{\"domain\":\"d\",\"descriptors\":[");
        for (unsigned n = i; n < i + EACH; n++) {
            to += sprintf(to,
                          "%s{\"entries\":[{\"key\":\"n\",\"value\":\"v%u\"}],"
                          "\"isNegativeHits\":true}",
                          n > i ? "," : "", n);
        }
        (void)stpcpy(to, "]}");
        assert_int_equal(scene_http(s, PROTOCOL_HTTP, CROWD, "POST /json", "", text, &a), 200);
    }
    scene_both_are_served(s);
    uint64_t seconds = (clock_boot_ns() - begun) / WEIR_SECOND + 1;
    assert_int_equal(threads_get(&scene_worker(s)->counts.hits_withheld), LIMITS);
    assert_in_range(count_lines("gave nothing back", "limit=l"), 2, 64 * (seconds + 1));
    scene_stop(s);
    access_close(o.access);
    end_log();
}

/* Keys that differ only after what is kept of them are two entries, and are shown without their
 * ends. */
static void top_keys(struct scene *s)
{
    char key[2 * TOP_KEY_BYTES];
    struct server_options o = scene_options();
    scene_start(s, LOGGED, &o);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    memset(key, 'k', sizeof key);
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(key + TOP_KEY_BYTES, sizeof key - TOP_KEY_BYTES, "-end-%u", i);
        for (unsigned n = 0; n < 50; n++) {
            deny(c, key);
        }
    }
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/top", "", "", &a), 200);
    key[TOP_KEY_BYTES] = 0;
    const char *first = strstr(a.body, key);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, key));
    assert_null(strstr(a.body, "-end-"));
    scene_both_are_served(s);
    scene_stop(s);
}

/* ---- the history ---- */

static void history_samples(struct scene *s)
{
    struct server_options o = scene_options();
    o.sample_ms = 2;
    scene_start(s, SCENE_RULES, &o);
    size_t most = 0;
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/history", "", "", &a), 200);
        most = strlen(a.body) > most ? strlen(a.body) : most;
        (void)usleep(50000);
    }
    assert_in_range(most, 1000, (64u << 10) + 8192); /* small.sed, and the events */
    scene_both_are_served(s);
    scene_stop(s);
}

static void history_events_kept(struct scene *s)
{
    char text[32];
    struct buffer messages;
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    buffer_init(&messages, 1u << 20);
    for (unsigned i = 0; i < 1000; i++) {
        buffer_put(&messages, (struct weir_text){"a message of the rules", 23});
    }
    for (unsigned i = 0; i < 3 * HISTORY_EVENTS; i++) {
        (void)snprintf(text, sizeof text, "attempt-%u.", i);
        history_note(s->world.server.history, HISTORY_RELOAD_FAILED, text, &messages);
    }
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/history", "", "", &a), 200);
    assert_int_equal(scene_count(a.body, "attempt-"), HISTORY_EVENTS);
    assert_non_null(strstr(a.body, text)); /* the newest */
    unsigned told = scene_count(a.body, "a message of the rules");
    assert_in_range(told, 1, HISTORY_EVENTS * HISTORY_EVENT_BYTES / 23);
    buffer_finish(&messages);
    scene_both_are_served(s);
    scene_stop(s);
}

/* ---- the end ---- */

/* Some are silent, some have begun a request, some do not fetch their replies: the server ends. */
static void ends_in_time(struct scene *s)
{
    static const char docs[] = "*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n";
    struct server_options o = scene_options();
    o.request_ms = o.write_ms = o.idle_ms = 3600000;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 24; i++) {
        struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
        for (unsigned n = 0; i % 3 == 1 && n < 2000; n++) {
            (void)send(c->fd, docs, sizeof docs - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        assert_true(i % 3 != 2 || server_send(c, docs, 10));
    }
    scene_both_are_served(s);
    uint64_t begun = clock_boot_ns();
    server_world_stop(&s->world);
    assert_true(clock_boot_ns() - begun < 120 * WEIR_SECOND); /* not an hour */
    scene_close_crowd(s);
}

const struct driver drivers_kept[] = {
    {"log.h", "LOG_LIMIT_NS", log_lines, NULL, NULL},
    {"rls.c", "WITHHELD_LINES", withheld_lines, NULL, NULL},
    {"uncovered.h", "UNCOVERED_LINES", NULL, "server/admin/test_uncovered.c",
     "many_faults_get_some_lines"},
    {"denied_log.h", "DENIED_LOG_EACH", denied_lines, NULL, NULL},
    {"denied_log.h", "DENIED_LOG_KEYS", denied_lines, NULL, NULL},
    {"history.h", "HISTORY_BYTES", history_samples, NULL, NULL},
    {"history.h", "HISTORY_EVENTS", history_events_kept, NULL, NULL},
    {"history.h", "HISTORY_EVENT_BYTES", history_events_kept, NULL, NULL},
    {"top_denied.h", "TOP_KEY_BYTES", top_keys, NULL, NULL},
    {"top_panes.h", "TOP_BYTES", NULL, "unit/server/test_top_panes.c",
     "all_of_it_takes_at_most_8_mb"},
    {"server.h", "SERVER_FIRST_MS", ends_in_time, NULL, NULL},
    {"server.h", "SERVER_DRAIN_MS", ends_in_time, NULL, NULL},
    {0},
};
