/*
 * What a stranger without a secret reaches: every route of every HTTP listener is asked, with and
 * without --demo, by a server whose operators have a secret. A route that answers a stranger and is
 * not in the list below fails the test, and so does one of the list that refuses.
 */
#include <sys/socket.h>

#include "server/admin/sandbox_story.h"
#include "server/http/http_routes.h"

enum opened { ALWAYS, WITH_DEMO };

static const struct reached {
    enum server_protocol listener;
    const char *method;
    const char *path;
    enum http_reach reach;
    enum opened opened;
} reached[] = {
    {PROTOCOL_HTTP, "POST", "/v1/check", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "POST", "/v1/check/batch", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "POST", "/v1/peek", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "POST", "/v1/throttle", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "POST", "/v1/reserve", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "POST", "/v1/settle", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "POST", "/v1/cancel", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, NULL, "/v1/auth", HTTP_AT_OR_BELOW, ALWAYS},
    {PROTOCOL_HTTP, "POST", "/json", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "GET", "/healthz", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "GET", "/readyz", HTTP_AT, ALWAYS},
    {PROTOCOL_HTTP, "GET", "/openapi.json", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/metrics", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/v1/status", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/v1/history", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/v1/events", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/healthz", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/readyz", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/openapi.json", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/", HTTP_AT, ALWAYS},
    {PROTOCOL_ADMIN, "GET", "/page", HTTP_BELOW, ALWAYS},
    {PROTOCOL_ADMIN, "POST", "/v1/demo", HTTP_AT, WITH_DEMO},
    {PROTOCOL_ADMIN, "POST", "/v1/demo", HTTP_BELOW, WITH_DEMO},
    {PROTOCOL_ADMIN, "DELETE", "/v1/demo", HTTP_BELOW, WITH_DEMO},
    {PROTOCOL_METRICS, "GET", "/metrics", HTTP_AT, ALWAYS},
    {PROTOCOL_METRICS, "GET", "/healthz", HTTP_AT, ALWAYS},
    {PROTOCOL_METRICS, "GET", "/readyz", HTTP_AT, ALWAYS},
};

#define REACHED (sizeof reached / sizeof reached[0])

static bool is_same(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static const struct reached *find_reached(unsigned listener, const struct http_route *route)
{
    for (size_t i = 0; i < REACHED; i++) {
        const struct reached *r = &reached[i];
        if (r->listener == listener && is_same(r->method, route->method) &&
            is_same(r->path, route->path) && r->reach == route->reach) {
            return r;
        }
    }
    return NULL;
}

/* Returns the status that a stranger gets for the route. */
static int status_of(unsigned listener, const struct http_route *route)
{
    struct http_server s;
    char text[512];
    const char *method = route->method != NULL ? route->method : "GET";
    bool takes_body = strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
    memcpy(s.address, world->address[listener], sizeof s.address);
    int fd = http_connect(&s);
    int n = snprintf(text, sizeof text,
                     "%s %s%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"
                     "Content-Length: %d\r\n\r\n%s",
                     method, route->path, route->reach == HTTP_BELOW ? "/x" : "",
                     takes_body ? "Content-Type: application/json\r\n" : "", takes_body ? 2 : 0,
                     takes_body ? "{}" : "");
    http_send(fd, text, (size_t)n);
    char head[13] = "";
    assert_int_equal(recv(fd, head, 12, MSG_WAITALL), 12);
    (void)close(fd);
    return atoi(head + 9);
}

/* Whether the demo is off: the routes are there, and say so. */
static bool is_closed_demo(const struct http_route *route, int status, bool demo)
{
    return !demo && strncmp(route->path, "/v1/demo", 8) == 0 && status == 404;
}

static size_t check_table(unsigned listener, const struct http_route *route, bool demo)
{
    size_t found = 0;
    for (; route->path != NULL; route++) {
        const struct reached *r = find_reached(listener, route);
        int status = status_of(listener, route);
        bool answers = status != 401 && status != 403 && !is_closed_demo(route, status, demo);
        bool expected = r != NULL && (r->opened == ALWAYS || demo);
        if (answers != expected) {
            fail_msg("listener %u, %s %s: a stranger gets %d %s --demo; %s", listener,
                     route->method != NULL ? route->method : "any method", route->path, status,
                     demo ? "with" : "without",
                     answers ? "if it is meant to be open, add a row to this test"
                             : "the row of this test says that it is open");
        }
        found += r != NULL;
    }
    return found;
}

static void check_strangers(bool demo)
{
    struct server_options options = {.demo = demo,
                                     .access = secrets(NULL, "a-secret-of-operators")};
    size_t found = 0;
    restart(&options);
    for (unsigned listener = 0; listener < PROTOCOLS; listener++) {
        const struct http_route *const *tables = http_routes((enum server_protocol)listener);
        for (; *tables != NULL; tables++) {
            found += check_table(listener, *tables, demo);
        }
    }
    assert_int_equal(found, REACHED); /* no row of the list names a route that is gone */
    restart(NULL);
    access_close(options.access);
}

static void without_demo_strangers_reach_these_routes(void **state)
{
    check_strangers(false);
}

static void with_demo_they_reach_three_more(void **state)
{
    size_t more = 0;
    for (size_t i = 0; i < REACHED; i++) {
        more += reached[i].opened == WITH_DEMO;
    }
    assert_int_equal(more, 3);
    check_strangers(true);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_demo_strangers_reach_these_routes),
        TEST(with_demo_they_reach_three_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
