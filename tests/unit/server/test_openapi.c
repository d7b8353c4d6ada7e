/* The description and the rows of routes tell the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <ctype.h>
#include <jansson.h>

#include "server/operations/reservations.h"
#include "server/http/http_routes.h"

static const struct {
    enum server_protocol listener;
    const char *tag;
} listeners[] = {{PROTOCOL_HTTP, "http"}, {PROTOCOL_ADMIN, "admin"}};

static json_t *description;

static int begin(void **state)
{
    json_error_t error;
    char *text = http_openapi(JSON_COMPACT, RESERVATION_TTL_LONGEST_MS);
    description = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (description == NULL) {
        print_error("line %d: %s\n", error.line, error.text);
    }
    return description != NULL ? 0 : -1;
}

static int end(void **state)
{
    json_decref(description);
    return 0;
}

/* "get" and "GET"; a row that takes any method takes this one. */
static bool takes(const struct http_route *row, const char *method)
{
    return row->method == NULL || strcasecmp(row->method, method) == 0;
}

static bool has_tag(const json_t *operation, const char *tag)
{
    const json_t *tags = json_object_get(operation, "tags");
    for (size_t i = 0; i < json_array_size(tags); i++) {
        if (strcmp(json_string_value(json_array_get(tags, i)), tag) == 0) {
            return true;
        }
    }
    return false;
}

/* Calls fn for every operation of a listener that is described. */
typedef void (*operation_fn)(void *arg, const char *path, const char *method,
                             const json_t *operation);

static void each_operation(const char *tag, operation_fn fn, void *arg)
{
    const char *path;
    json_t *item;
    json_object_foreach(json_object_get(description, "paths"), path, item)
    {
        const char *method;
        json_t *operation;
        json_object_foreach(item, method, operation)
        {
            if (has_tag(operation, tag)) {
                fn(arg, path, method, operation);
            }
        }
    }
}

static const struct http_route *find(enum server_protocol listener, const char *path,
                                     const char *method)
{
    const struct http_route *const *tables = http_routes(listener);
    for (; *tables != NULL; tables++) {
        for (const struct http_route *row = *tables; row->path != NULL; row++) {
            if (takes(row, method) && http_leads_to(row, text_of(path))) {
                return row;
            }
        }
    }
    return NULL;
}

static enum role role_of(const json_t *operation)
{
    const char *role = json_string_value(json_object_get(operation, "x-role"));
    const json_t *security = json_object_get(operation, "security");
    if (role == NULL) {
        assert_true(json_is_array(security) && json_array_size(security) == 0);
        return ROLE_NONE;
    }
    if (strcmp(role, "admin") == 0) { /* always needs a secret; check may need none */
        assert_int_equal(json_array_size(security), 3);
        return ROLE_ADMIN;
    }
    assert_null(security);
    return ROLE_CHECK;
}

static void require_row(void *arg, const char *path, const char *method, const json_t *operation)
{
    const enum server_protocol *listener = arg;
    const struct http_route *row = find(*listener, path, method);
    if (row == NULL) {
        fail_msg("described, but there is no row: %s %s", method, path);
    } else if (row->role != role_of(operation)) {
        fail_msg("another role is described: %s %s", method, path);
    }
}

static void every_described_route_is_a_row_with_that_role(void **state)
{
    for (size_t i = 0; i < sizeof listeners / sizeof listeners[0]; i++) {
        enum server_protocol listener = listeners[i].listener;
        each_operation(listeners[i].tag, require_row, &listener);
    }
}

static void the_longest_reservation_is_that_of_the_server(void **state)
{
    char *text = http_openapi(JSON_COMPACT, 5000);
    assert_non_null(
        strstr(text, "\"ttl_ms\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":5000,"));
    free(text);
}

struct search {
    const struct http_route *row;
    bool found;
};

static void look_for(void *arg, const char *path, const char *method, const json_t *operation)
{
    struct search *s = arg;
    s->found = s->found || (takes(s->row, method) && http_leads_to(s->row, text_of(path)));
}

static void every_row_is_described(void **state)
{
    for (size_t i = 0; i < sizeof listeners / sizeof listeners[0]; i++) {
        const struct http_route *const *tables = http_routes(listeners[i].listener);
        for (; *tables != NULL; tables++) {
            for (const struct http_route *row = *tables; row->path != NULL; row++) {
                struct search s = {row, false};
                each_operation(listeners[i].tag, look_for, &s);
                if (!s.found) {
                    fail_msg("a row that is not described: %s %s of %s",
                             row->method != NULL ? row->method : "(any)", row->path,
                             listeners[i].tag);
                }
            }
        }
    }
}

static void the_description_has_the_programs_version(void **state)
{
    const json_t *info = json_object_get(description, "info");
    assert_string_equal(json_string_value(json_object_get(info, "version")), weir_version());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_described_route_is_a_row_with_that_role),
        cmocka_unit_test(every_row_is_described),
        cmocka_unit_test(the_longest_reservation_is_that_of_the_server),
        cmocka_unit_test(the_description_has_the_programs_version),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
