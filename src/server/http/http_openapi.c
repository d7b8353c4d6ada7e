/*
 * Serves the OpenAPI document, which describes both HTTP listeners, on each of them. The operations
 * are described by their rows; everything else is in openapi_base.json.
 */
#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

#include "server/operations/reservations.h"
#include "server/http/http_json.h"
#include "server/http/http_routes.h"
#include "server/http/openapi.h"

/* ---- what an operation takes ---- */

/* Returns {"type": "integer", ...} for a number. */
static json_t *number_schema(const struct ask_member_row *row)
{
    json_t *type = row->endless ? json_pack("[s, s]", "integer", "null") : json_string("integer");
    return json_pack("{s: o, s: I, s: I}", "type", type, "minimum", (json_int_t)row->least,
                     "maximum", (json_int_t)http_number_most(row));
}

static json_t *text_schema(const struct ask_member_row *row)
{
    json_t *schema = json_pack("{s: s}", "type", "string");
    if (row->least > 0) {
        (void)json_object_set_new(schema, "minLength", json_integer((json_int_t)row->least));
    }
    return schema;
}

/* The default is told in words: generators of clients make a member with `default` required. */
static json_t *description(unsigned member, bool needed)
{
    const char *about = ask_members[member].about;
    uint64_t absent = ask_absent[member];
    return needed || absent == 0 || absent == ASK_FOREVER
               ? json_string(about)
               : json_sprintf("%s; default: %" PRIu64, about, absent);
}

static json_t *member_schema(unsigned member, bool needed)
{
    const struct ask_member_row *row = &ask_members[member];
    json_t *schema = NULL;
    switch (row->kind) {
    case ASK_TEXT:
        schema = text_schema(row);
        break;
    case ASK_PARTS:
        schema = json_pack("{s: [o, {s: s, s: i, s: o}]}", "oneOf", text_schema(row), "type",
                           "array", "maxItems", CONFIG_KEY_PARTS_MAX, "items", text_schema(row));
        break;
    case ASK_PAIRS:
        schema =
            json_pack("{s: s, s: i, s: {s: [s, s], s: i, s: I}}", "type", "object", "maxProperties",
                      WEIR_RULES_ATTRIBUTES_MAX, "additionalProperties", "type", "string",
                      "integer", "minimum", 0, "maximum", (json_int_t)INT64_MAX);
        break;
    default:
        schema = number_schema(row);
        break;
    }
    (void)json_object_set_new(schema, "description", description(member, needed));
    return schema;
}

/* Components have names of their own in generated clients: /v1/keys/block takes a Block. */
static const char *component_of(const char *name, char component[32])
{
    (void)snprintf(component, 32, "%c%s", toupper((unsigned char)name[0]), name + 1);
    return component;
}

static json_t *reference_to(const char *component)
{
    return json_pack("{s: s+}", "$ref", "#/components/schemas/", component);
}

static json_t *members_schema(unsigned members, unsigned needed)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    for (unsigned i = 0; i < ASK_MEMBERS; i++) {
        if ((members & ASK_BIT(i)) != 0) {
            const struct ask_member_row *row = &ask_members[i];
            bool shared = row->kind == ASK_PARTS || row->kind == ASK_PAIRS;
            char component[32];
            (void)json_object_set_new(properties, row->name,
                                      shared ? reference_to(component_of(row->name, component))
                                             : member_schema(i, (needed & ASK_BIT(i)) != 0));
        }
        if ((needed & ASK_BIT(i)) != 0) {
            (void)json_array_append_new(required, json_string(ask_members[i].name));
        }
    }
    return json_pack("{s: s, s: o, s: o, s: b}", "type", "object", "required", required,
                     "properties", properties, "additionalProperties", 0);
}

/* Adds what an operation takes as a component. If that is a limit or attributes, it is one of two
 * components: generators give no good name to a choice that is not made of names. */
static void add_question(const struct operation_row *row, const char *component, json_t *schemas)
{
    unsigned by_name = ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY) | ASK_BIT(ASK_TIER);
    unsigned pairs = ASK_BIT(ASK_ATTRIBUTES);
    if ((row->members & by_name) == 0 || (row->members & pairs) == 0) {
        (void)json_object_set_new(schemas, component, members_schema(row->members, row->needed));
        return;
    }
    char named[48];
    char matched[48];
    (void)snprintf(named, sizeof named, "%sByName", component);
    (void)snprintf(matched, sizeof matched, "%sByAttributes", component);
    (void)json_object_set_new(
        schemas, component,
        json_pack("{s: [o, o]}", "oneOf", reference_to(named), reference_to(matched)));
    (void)json_object_set_new(schemas, named,
                              members_schema(row->members & ~pairs, ASK_BIT(ASK_LIMIT)));
    (void)json_object_set_new(schemas, matched, members_schema(row->members & ~by_name, pairs));
}

/* ---- what it answers ---- */

static void refer(json_t *responses, const char *status, const char *name)
{
    (void)json_object_set_new(responses, status,
                              json_pack("{s: s+}", "$ref", "#/components/responses/", name));
}

/* Returns the name of the response with status 200. */
static const char *success_of(const struct operation_row *row)
{
    if (row->extra == EXTRA_BLOCKED) {
        return "Changed";
    }
    if (row->extra == EXTRA_RESERVATION) {
        return "Reserved";
    }
    return row->decides ? "Allowed" : "Answered";
}

static json_t *responses_of(const struct operation_row *row, bool operators)
{
    static const char *const every[][2] = {{"400", "BadRequest"},     {"401", "Unauthorized"},
                                           {"403", "Forbidden"},      {"404", "NotFound"},
                                           {"413", "TooLarge"},       {"500", "Failed"},
                                           {"431", "FieldsTooLarge"}, {"503", "Overloaded"}};
    static const char *const denials[][2] = {
        {"403", "Blocked"}, {"422", "Never"}, {"429", "Denied"}};
    json_t *responses = json_object();
    refer(responses, "200", success_of(row));
    for (size_t i = 0; i < sizeof every / sizeof every[0]; i++) {
        refer(responses, every[i][0], every[i][1]);
    }
    for (size_t i = 0; row->decides && i < sizeof denials / sizeof denials[0]; i++) {
        refer(responses, denials[i][0], denials[i][1]);
    }
    if (operators) {
        refer(responses, "415", "BadType");
    }
    return responses;
}

/* ---- the document ---- */

static void describe(const struct operation_row *row, json_t *paths, json_t *schemas)
{
    bool operators = (row->reach & BY_OPERATORS) != 0;
    char path[64];
    char component[32];
    (void)snprintf(path, sizeof path, "/v1/%s%s", operators ? "keys/" : "", row->name);
    add_question(row, component_of(row->name, component), schemas);
    json_t *post = json_pack("{s: [s], s: s, s: s, s: s, s: {s: b, s: {s: {s: o}}}, s: o}", "tags",
                             operators ? "admin" : "http", "summary", row->summary, "operationId",
                             row->name, "x-role", role_names[row->role], "requestBody", "required",
                             1, "content", "application/json", "schema", reference_to(component),
                             "responses", responses_of(row, operators));
    if (row->role == ROLE_ADMIN) { /* the others need a secret only if check secrets are given */
        (void)json_object_set_new(
            post, "security",
            json_pack("[{s: []}, {s: []}, {s: []}]", "bearer", "basic", "secret"));
    }
    (void)json_object_set_new(paths, path, json_pack("{s: o}", "post", post));
}

/* Adds the components that several operations share. */
static void add_shared(json_t *schemas)
{
    static const unsigned members[] = {ASK_KEY, ASK_ATTRIBUTES};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        char component[32];
        (void)json_object_set_new(schemas, component_of(ask_members[members[i]].name, component),
                                  member_schema(members[i], true));
    }
}

/* The longest time of a reservation is a setting; the row has the most that the setting may be. */
static void bound_ttl(json_t *schemas, uint64_t longest_ms)
{
    json_t *properties = json_object_get(json_object_get(schemas, "Reserve"), "properties");
    (void)json_object_set_new(json_object_get(properties, ask_members[ASK_TTL].name), "maximum",
                              json_integer((json_int_t)longest_ms));
}

char *http_openapi(size_t json_flags, uint64_t ttl_longest_ms)
{
    json_t *document = json_loadb(openapi_json, openapi_json_size, 0, NULL);
    json_t *paths = json_object_get(document, "paths");
    json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    add_shared(schemas);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if ((operation_rows[i].reach & (BY_CLIENTS | BY_OPERATORS)) != 0) {
            describe(&operation_rows[i], paths, schemas);
        }
    }
    bound_ttl(schemas, ttl_longest_ms);
    char *text = json_dumps(document, json_flags);
    json_decref(document);
    return text;
}

/* The document is composed once, unless a process has servers with different settings: that takes
 * milliseconds, and every client may ask for it. */
static bool put_document(struct buffer *body, uint64_t ttl_longest_ms)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char *composed;
    static uint64_t composed_for;
    (void)pthread_mutex_lock(&lock);
    if (composed == NULL || composed_for != ttl_longest_ms) {
        free(composed);
        composed = http_openapi(JSON_COMPACT, ttl_longest_ms);
        composed_for = ttl_longest_ms;
    }
    bool good = composed != NULL;
    if (good) {
        buffer_put(body, text_of(composed));
    }
    (void)pthread_mutex_unlock(&lock);
    return good;
}

static void run_openapi(struct exchange *x)
{
    if (!put_document(&x->body, reservation_ttl_longest_ms(x->server))) {
        http_reply_problem(x, 500, "out of memory");
        return;
    }
    http_reply(x, 200, "application/json", NULL);
}

const struct http_route http_openapi_routes[] = {
    {"GET", "/openapi.json", HTTP_AT, ROLE_NONE, run_openapi,
     .summary = "describes this listener, as OpenAPI 3.1"},
    {.path = NULL},
};
