/*
 * Serves the OpenAPI document, which describes both HTTP listeners, on each of them. The operations
 * are described by their rows; everything else is in openapi_base.json.
 */
#include <jansson.h>
#include <pthread.h>

#include "server/http/http_json.h"
#include "server/http/http_routes.h"
#include "server/http/openapi.h"

/* ---- what an operation takes ---- */

/* Returns {"type": "integer", ...} for a number. */
static json_t *number_schema(const struct ask_member_row *row, uint64_t absent)
{
    json_t *type = row->endless ? json_pack("[s, s]", "integer", "null") : json_string("integer");
    json_t *schema =
        json_pack("{s: o, s: I, s: I}", "type", type, "minimum", (json_int_t)row->least, "maximum",
                  (json_int_t)http_number_most(row));
    if (absent != 0 && absent != ASK_FOREVER) {
        (void)json_object_set_new(schema, "default", json_integer((json_int_t)absent));
    }
    return schema;
}

static json_t *text_schema(const struct ask_member_row *row)
{
    json_t *schema = json_pack("{s: s}", "type", "string");
    if (row->least > 0) {
        (void)json_object_set_new(schema, "minLength", json_integer((json_int_t)row->least));
    }
    return schema;
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
        schema = number_schema(row, needed ? 0 : ask_absent[member]);
        break;
    }
    (void)json_object_set_new(schema, "description", json_string(row->about));
    return schema;
}

static json_t *members_schema(unsigned members, unsigned needed)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    for (unsigned i = 0; i < ASK_MEMBERS; i++) {
        if ((members & ASK_BIT(i)) != 0) {
            (void)json_object_set_new(properties, ask_members[i].name,
                                      member_schema(i, (needed & ASK_BIT(i)) != 0));
        }
        if ((needed & ASK_BIT(i)) != 0) {
            (void)json_array_append_new(required, json_string(ask_members[i].name));
        }
    }
    return json_pack("{s: s, s: o, s: o, s: b}", "type", "object", "required", required,
                     "properties", properties, "additionalProperties", 0);
}

/* An operation that takes a limit or attributes takes one of two sets of members. */
static json_t *question_schema(const struct operation_row *row)
{
    unsigned by_name = ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY) | ASK_BIT(ASK_TIER);
    unsigned pairs = ASK_BIT(ASK_ATTRIBUTES);
    if ((row->members & by_name) == 0 || (row->members & pairs) == 0) {
        return members_schema(row->members, row->needed);
    }
    return json_pack("{s: [o, o]}", "oneOf",
                     members_schema(row->members & ~pairs, ASK_BIT(ASK_LIMIT)),
                     members_schema(row->members & ~by_name, pairs));
}

/* ---- what it answers ---- */

static void refer(json_t *responses, const char *status, const char *name)
{
    (void)json_object_set_new(responses, status,
                              json_pack("{s: s+}", "$ref", "#/components/responses/", name));
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
    refer(responses, "200",
          row->extra == EXTRA_BLOCKED       ? "Changed"
          : row->extra == EXTRA_RESERVATION ? "Reserved"
          : row->decides                    ? "Allowed"
                                            : "Answered");
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
    (void)snprintf(path, sizeof path, "/v1/%s%s", operators ? "keys/" : "", row->name);
    (void)json_object_set_new(schemas, row->name, question_schema(row));
    json_t *post = json_pack("{s: [s], s: s, s: s, s: {s: b, s: {s: {s: {s: s+}}}}, s: o}", "tags",
                             operators ? "admin" : "http", "summary", row->summary, "x-role",
                             role_names[row->role], "requestBody", "required", 1, "content",
                             "application/json", "schema", "$ref", "#/components/schemas/",
                             row->name, "responses", responses_of(row, operators));
    if (row->role == ROLE_ADMIN) { /* the others need a secret only if check secrets are given */
        (void)json_object_set_new(
            post, "security",
            json_pack("[{s: []}, {s: []}, {s: []}]", "bearer", "basic", "secret"));
    }
    (void)json_object_set_new(paths, path, json_pack("{s: o}", "post", post));
}

char *http_openapi(size_t json_flags)
{
    json_t *document = json_loadb(openapi_json, openapi_json_size, 0, NULL);
    json_t *paths = json_object_get(document, "paths");
    json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if ((operation_rows[i].reach & (BY_CLIENTS | BY_OPERATORS)) != 0) {
            describe(&operation_rows[i], paths, schemas);
        }
    }
    char *text = json_dumps(document, json_flags);
    json_decref(document);
    return text;
}

static char *composed;

static void compose(void)
{
    composed = http_openapi(JSON_COMPACT);
}

/* The document is composed once: that takes milliseconds, and every client may ask for it. */
static void run_openapi(struct exchange *x)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, compose);
    if (composed == NULL) {
        http_reply_problem(x, 500, "out of memory");
        return;
    }
    buffer_put(&x->body, text_of(composed));
    http_reply(x, 200, "application/json", NULL);
}

const struct http_route http_openapi_routes[] = {
    {"GET", "/openapi.json", HTTP_AT, ROLE_NONE, run_openapi,
     "describes this listener, as OpenAPI 3.1"},
    {NULL, NULL, HTTP_AT, ROLE_NONE, NULL, NULL},
};
