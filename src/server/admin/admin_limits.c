/* Routes about limits: a live view, adding, replacing and removing one, reloading
 * all, all as a file. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "rules/live/live.h"
#include "rules/yaml/document.h"
#include "rules/live/live_show.h"
#include "server/admin/admin.h"
#include "server/admin/events.h"
#include "server/record/history.h"
#include "server/admin/limit_counts.h"
#include "server/status/numbers.h"

#define PREFIX "/v1/limits/"

/* ---- the name in the path ---- */

/* Reads the limit's name from the path into `room`, of WEIR_RULES_NAME bytes. Returns
 * false after a reply. */
static bool read_name(struct exchange *x, char *room)
{
    char decoded[HTTP_HEAD_MAX];
    struct http_pair pair = {0};
    struct weir_text rest = x->request->path.len > strlen(PREFIX)
                                ? text_after(x->request->path, strlen(PREFIX))
                                : (struct weir_text){"", 0};
    bool good = http_next_pair(&rest, decoded, &pair) && rest.len == 0 && pair.value.len == 0 &&
                pair.name.len < WEIR_RULES_NAME && memchr(pair.name.at, 0, pair.name.len) == NULL;
    if (!good) {
        http_reply_problem(x, 404, "found no name, expected the name of a limit after " PREFIX);
        return false;
    }
    memcpy(room, pair.name.at, pair.name.len);
    room[pair.name.len] = 0;
    return true;
}

bool admin_is_adhoc(const struct exchange *x, const char *name)
{
    return server_has_adhoc(x->server) && strcmp(name, SERVER_ADHOC) == 0;
}

static bool is_there(const struct exchange *x, const char *name)
{
    return weir_rules_key_parts(x->server->rules, name, strlen(name)) != WEIR_ENOLIMIT;
}

/* ---- the live view ---- */

struct limits_listing {
    const struct worker *worker;
    const char *only; /* name of the limit to list; NULL: all */
    json_t *items;
};

/* The numbers of a limiter that are reported, in this order, and for which kinds of limits this
 * node knows them. Others are null: what is in the store, and what is in tables that all leased
 * or synced limits share. */
#define BY(consistency) (1u << (consistency))
#define BY_ALL (BY(WEIR_RULES_LOCAL) | BY(WEIR_RULES_EXACT) | BY_KEEPERS)
#define BY_KEEPERS (BY(WEIR_RULES_LEASED) | BY(WEIR_RULES_SYNCED))

static const struct {
    const char *name;
    size_t offset;
    unsigned known; /* BY(enum weir_rules_consistency) */
} numbers[] = {
    {"keys", offsetof(struct weir_stats, keys), BY(WEIR_RULES_LOCAL) | BY_KEEPERS},
    {"capacity", offsetof(struct weir_stats, capacity), BY(WEIR_RULES_LOCAL)},
    {"blocks", offsetof(struct weir_stats, blocks), BY(WEIR_RULES_LOCAL)},
    {"bytes", offsetof(struct weir_stats, bytes), BY(WEIR_RULES_LOCAL)},
    {"allowed", offsetof(struct weir_stats, allowed), BY_ALL},
    {"denied", offsetof(struct weir_stats, denied), BY_ALL},
    {"never", offsetof(struct weir_stats, never), BY_ALL},
    {"shadow_denied", offsetof(struct weir_stats, shadow_denied), BY_ALL},
    {"evicted", offsetof(struct weir_stats, evicted), BY(WEIR_RULES_LOCAL)},
    {"reclaimed", offsetof(struct weir_stats, reclaimed), BY(WEIR_RULES_LOCAL)},
    {"full_denied", offsetof(struct weir_stats, full_denied), BY_ALL},
    {"full_allowed", offsetof(struct weir_stats, full_allowed), BY_ALL},
};

static double round_rate(double rate)
{
    return (double)(uint64_t)(rate * 100 + 0.5) / 100;
}

static json_t *number_or_null(bool known, uint64_t number)
{
    return known ? json_integer((json_int_t)number) : json_null();
}

static void put_numbers(json_t *item, const struct weir_rules_limit *limit)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint64_t n;
        memcpy(&n, (const char *)&limit->stats + numbers[i].offset, sizeof n);
        bool known = (numbers[i].known & BY(limit->consistency)) != 0;
        (void)json_object_set_new(item, numbers[i].name, number_or_null(known, n));
    }
}

static json_t *make_item(const struct weir_rules_limit *limit)
{
    static const char *const modes[] = {"local", "exact", "leased", "synced"};
    uint64_t degraded = limit->degraded[0] + limit->degraded[1] + limit->degraded[2];
    bool rated = limit->rate != NULL && limit->count != WEIR_UNLIMITED;
    return json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:b, s:s, s:I, s:I, s:I, s:s, s:I}",
                     "name", limit->name, "tier", limit->tier, "algorithm",
                     weir_algorithm_name(limit->algorithm), "rate", limit->rate, "count",
                     number_or_null(rated, limit->count), "period_ms",
                     number_or_null(rated, limit->period_ns / WEIR_MILLISECOND), "burst",
                     number_or_null(rated, limit->burst), "shadow", limit->shadow, "mode",
                     limit->shadow || limit->switched ? "shadow" : "enforce", "missing",
                     (json_int_t)limit->missing, "uncovered", (json_int_t)limit->uncovered, "bans",
                     (json_int_t)limit->bans, "consistency", modes[limit->consistency & 3],
                     "degraded", (json_int_t)degraded);
}

/* Puts the rates of the limit, which its tiers share, with two digits after the point. */
static void put_rates(json_t *item, const struct limit_counts *found)
{
    static const struct limit_counts none;
    const struct limit_counts *l = found != NULL ? found : &none;
    (void)json_object_set_new(item, "denied_rate", json_real(round_rate(l->denied_rate)));
    (void)json_object_set_new(item, "decided_rate", json_real(round_rate(l->decided_rate)));
}

static int list_one(void *arg, const struct weir_rules_limit *limit)
{
    struct limits_listing *l = arg;
    if (l->only != NULL && strcmp(l->only, limit->name) != 0) {
        return 0;
    }
    json_t *item = make_item(limit);
    if (item == NULL) {
        return WEIR_ENOMEM;
    }
    put_numbers(item, limit);
    put_rates(item, events_limit(l->worker, limit->name));
    return json_array_append_new(l->items, item) == 0 ? 0 : WEIR_ENOMEM;
}

/* `messages`: what the rules said about a change; NULL: nothing was changed. */
static void reply_limits(struct exchange *x, const char *only, int status, json_t *messages)
{
    struct limits_listing l = {x->connection->worker, only, json_array()};
    int e = numbers_limits(x->server, list_one, &l);
    if (e == 0) {
        admin_reply_json(x, status,
                         json_pack("{s:O, s:O*}", "limits", l.items, "messages", messages));
    } else {
        http_reply_problem(x, 500, weir_strerror(e));
    }
    json_decref(l.items);
}

static void reply_unknown(struct exchange *x, const char *name)
{
    struct weir_error error;
    (void)fail(&error, WEIR_ENOLIMIT, "there is no limit named '%.63s'", name);
    http_reply_failure(x, WEIR_ENOLIMIT, &error);
}

static void run_list(struct exchange *x)
{
    char name[WEIR_RULES_NAME];
    if (x->request->path.len < strlen(PREFIX)) {
        reply_limits(x, NULL, 200, NULL);
    } else if (read_name(x, name)) {
        if (is_there(x, name) || admin_is_adhoc(x, name)) {
            reply_limits(x, name, 200, NULL);
        } else {
            reply_unknown(x, name);
        }
    }
}

/* ---- changes ---- */

/* Returns the messages about rules as a list of strings. */
static json_t *split_messages(const struct buffer *said)
{
    json_t *list = json_array();
    struct weir_text rest = buffer_text(said);
    while (rest.len > 0) {
        size_t n = strnlen(rest.at, rest.len);
        json_t *one = json_stringn(rest.at, n);
        (void)json_array_append_new(list, one != NULL ? one : json_string("(not UTF-8)"));
        rest = text_after(rest, n + (n < rest.len)); /* the last may lack its NUL */
    }
    return list;
}

/* Returns false if the body is a map whose `name` is not this one: it would
 * change another limit. */
static bool names(struct weir_text body, const char *name)
{
    struct arena arena = ARENA_INIT;
    struct problems problems = {0};
    const struct node *node = document_read(&arena, "limit", body, &problems);
    const struct node *found =
        node != NULL && node->kind == NODE_MAP ? node_find(node, "name") : NULL;
    bool other = node != NULL && node->kind == NODE_MAP &&
                 (found == NULL || found->kind != NODE_SCALAR || !text_is(found->scalar, name));
    problems_finish(&problems);
    arena_finish(&arena);
    return !other; /* if it is not a map at all, the rules give a better message */
}

/* Logs that a limit was added, replaced or removed, and notes it for operators' pages. */
static void note_change(const struct exchange *x, const char *name, const char *done)
{
    char what[32];
    char text[WEIR_RULES_NAME + 32];
    (void)snprintf(what, sizeof what, "limit %s", done);
    (void)snprintf(text, sizeof text, "%s: %s", name, done);
    admin_audit(x, what, LOG_STRING("limit", name));
    history_note(x->server->history, HISTORY_LIMIT, text, NULL);
}

static void put_limit(struct exchange *x, const char *name, struct weir_text yaml)
{
    struct weir_error error = {0};
    struct buffer said;
    bool there = is_there(x, name);
    buffer_init(&said, SERVER_REPLY_BYTES / 2);
    int e = rules_put(x->server->rules, yaml, server_log_message, &said, &error);
    json_t *messages = split_messages(&said);
    buffer_finish(&said);
    if (e == 0) {
        note_change(x, name, there ? "replaced" : "added");
        reply_limits(x, name, there ? 200 : 201, messages);
    } else {
        admin_reply_refused(x, e, &error, messages);
    }
    json_decref(messages);
}

static void run_put(struct exchange *x)
{
    char name[WEIR_RULES_NAME];
    struct buffer room;
    struct weir_text yaml;
    if (!read_name(x, name)) {
        return;
    }
    buffer_init(&room, 10 * HTTP_BODY_MAX); /* a byte becomes at most an escape of ten */
    if (!admin_read_limit(x, &room, &yaml)) {
        /* it has replied */
    } else if (room.full) {
        http_reply_problem(x, 500, "out of memory");
    } else if (names(yaml, name)) {
        put_limit(x, name, yaml);
    } else {
        http_reply_problem(
            x, 400,
            "found another name or none, expected one limit whose `name` is the name in the path");
    }
    buffer_finish(&room);
}

static void run_delete(struct exchange *x)
{
    char name[WEIR_RULES_NAME];
    struct weir_error error = {0};
    if (!read_name(x, name)) {
        return;
    }
    int e = weir_rules_remove(x->server->rules, name, &error);
    if (e == 0) {
        note_change(x, name, "removed");
        http_reply(x, 204, NULL, NULL);
    } else {
        admin_reply_refused(x, e, &error, NULL);
    }
}

/* ---- all of them ---- */

static void run_reload(struct exchange *x)
{
    struct weir_error error = {0};
    struct buffer said;
    buffer_init(&said, SERVER_REPLY_BYTES / 2);
    int e = server_reload(x->server, &said, &error);
    json_t *messages = split_messages(&said);
    buffer_finish(&said);
    if (e == 0) {
        uint64_t now = server_generation(x->server);
        admin_audit(x, "reload", LOG_COUNT("generation", now));
        admin_reply_json(
            x, 200, json_pack("{s:I, s:O}", "generation", (json_int_t)now, "messages", messages));
    } else {
        admin_audit(x, "reload failed", LOG_STRING("why", error.text));
        admin_reply_refused(x, WEIR_ERULES, &error, messages);
    }
    json_decref(messages);
}

static void run_config(struct exchange *x)
{
    const struct server *server = x->server;
    const struct config *started = &server->rules->started;
    struct live_settings s = {started->server, started->store};
    struct weir_text *const listen[PROTOCOLS] = {&s.server.resp, &s.server.http, &s.server.grpc,
                                                 &s.server.admin, &s.server.metrics};
    char addresses[PROTOCOLS][SERVER_ADDRESS_MAX];
    char *text = NULL;
    size_t len = 0;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        *listen[i] = text_of(
            server_address(server, (enum server_protocol)i, addresses[i], sizeof addresses[i]));
    }
    s.server.state = (struct weir_text){NULL, 0};
    if (server->rules->state != NULL) {
        s.server.state = text_of(server->rules->state->folder);
    }
    s.server.client_field = server->options.client_field;
    s.server.page = server->options.no_page ? PAGE_OFF : PAGE_ON;
    if (server->fleet.fleet == NULL) {
        s.store.url.len = 0;
    } else if (server->fleet.url != NULL) {
        s.store.url = text_of(server->fleet.url);
    }
    if (live_show(x->server->rules, &s, &text, &len) != 0) {
        http_reply_problem(x, 500, "out of memory");
        return;
    }
    buffer_put(&x->body, (struct weir_text){text, len});
    http_reply(x, 200, "application/yaml", NULL);
    free(text);
}

const struct http_route admin_limits_routes[] = {
    {"GET", "/v1/limits", HTTP_AT_OR_BELOW, ROLE_ADMIN, run_list,
     .summary = "limits, live: all, or one by its name"},
    {"PUT", "/v1/limits", HTTP_BELOW, ROLE_ADMIN, run_put,
     .summary = "adds or replaces one limit: JSON or YAML"},
    {"DELETE", "/v1/limits", HTTP_BELOW, ROLE_ADMIN, run_delete,
     .summary = "removes one limit and its keys"},
    {"POST", "/v1/reload", HTTP_AT, ROLE_ADMIN, run_reload, .summary = "reads the rules again"},
    {"GET", "/v1/config", HTTP_AT, ROLE_ADMIN, run_config,
     .summary = "the rules and settings in use, as a file"},
    {.path = NULL},
};
