/* Routes for settings: the log's level, and the kill switch, by which limits stop denying. */
#include <jansson.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/error.h"
#include "server/admin/admin.h"
#include "server/record/history.h"
#include "server/status/numbers.h"

/* ---- the log's level ---- */

static void run_get_level(struct exchange *x)
{
    admin_reply_json(x, 200, json_pack("{s:s}", "level", log_level_names[log_get_level()]));
}

/* Runs a function on the body as JSON; without one a 400 has been sent. */
static void with_body(struct exchange *x, void (*set)(struct exchange *x, const json_t *body))
{
    json_t *body = http_read_json(x);
    if (body != NULL) {
        set(x, body);
        json_decref(body);
    }
}

static void set_level(struct exchange *x, const json_t *body)
{
    enum log_level level;
    const char *name = admin_member(x, body, "level");
    if (name == NULL) {
        return;
    }
    if (json_object_size(body) != 1 || !log_level_parse(text_of(name), &level)) {
        http_reply_problem(
            x, 400,
            "found another body, expected {\"level\":...} with error, warning, info or debug");
        return;
    }
    log_set_level(level);
    admin_audit(x, "log level", LOG_STRING("level", log_level_names[level]));
    run_get_level(x);
}

static void run_set_level(struct exchange *x)
{
    with_body(x, set_level);
}

/* ---- the kill switch ---- */

static const char *mode_name(int shadow)
{
    return shadow != 0 ? "shadow" : "enforce";
}

struct modes {
    int all; /* 1: shadow, for limits that were not switched by their name */
    json_t *limits;
};

/* Adds a limit that was switched to another mode than the general one. */
static int list_mode(void *arg, const struct weir_rules_limit *limit)
{
    const struct modes *m = arg;
    if (limit->switched != m->all) {
        (void)json_object_set_new(m->limits, limit->name, json_string(mode_name(limit->switched)));
    }
    return 0;
}

static void run_get_mode(struct exchange *x)
{
    struct modes m = {weir_rules_shadow_get(x->server->rules, NULL), json_object()};
    (void)numbers_limits(x->server, list_mode, &m);
    admin_reply_json(x, 200, json_pack("{s:s, s:o}", "mode", mode_name(m.all), "limits", m.limits));
}

/* Returns 0 for enforce, 1 for shadow, -1 for anything else. */
static int read_mode(const char *name)
{
    return strcmp(name, "shadow") == 0 ? 1 : strcmp(name, "enforce") == 0 ? 0 : -1;
}

/* Switches a limit; if `limit` is NULL, all of them, with the built-in one. */
static int switch_limits(struct exchange *x, int on, const char *limit, struct weir_error *error)
{
    bool adhoc = limit != NULL && admin_is_adhoc(x, limit);
    int e = adhoc ? 0 : weir_rules_shadow_set(x->server->rules, limit, on, error);
    if (e == 0 && (adhoc || limit == NULL)) {
        store_relaxed(&x->server->adhoc_shadow, (uint64_t)on);
    }
    return e;
}

/* Notes the switch for operators' pages: "search: shadow". */
static void note_mode(const struct exchange *x, int on, const char *limit)
{
    char text[WEIR_RULES_NAME + 32];
    (void)snprintf(text, sizeof text, "%s: %s", limit != NULL ? limit : "all limits",
                   mode_name(on));
    history_note(x->server->history, HISTORY_MODE, text, NULL);
}

static void switch_mode(struct exchange *x, int on, const char *limit)
{
    struct weir_error error = {0};
    int e = switch_limits(x, on, limit, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
        return;
    }
    admin_audit(x, on ? "mode shadow" : "mode enforce",
                LOG_STRING("limit", limit != NULL ? limit : "(all)"));
    note_mode(x, on, limit);
    run_get_mode(x);
}

static void set_mode(struct exchange *x, const json_t *body)
{
    const char *mode = admin_member(x, body, "mode");
    const json_t *limit = json_object_get(body, "limit");
    if (mode == NULL) {
        return;
    }
    bool named = json_is_string(limit);
    if (read_mode(mode) < 0 || json_object_size(body) != (named ? 2 : 1) ||
        (named && strlen(json_string_value(limit)) != json_string_length(limit))) {
        http_reply_problem(
            x, 400,
            "found another body, expected {\"mode\":\"enforce\"} or {\"mode\":\"shadow\"}, "
            "optionally with \"limit\" and its name");
        return;
    }
    switch_mode(x, read_mode(mode), json_string_value(limit));
}

static void run_set_mode(struct exchange *x)
{
    with_body(x, set_mode);
}

const struct http_route admin_settings_routes[] = {
    {"GET", "/v1/log-level", HTTP_AT, ROLE_ADMIN, run_get_level, .summary = "how much is logged"},
    {"PUT", "/v1/log-level", HTTP_AT, ROLE_ADMIN, run_set_level,
     .summary = "sets how much is logged (error, warning, info or debug), until the next start"},
    {"GET", "/v1/mode", HTTP_AT, ROLE_ADMIN, run_get_mode,
     .summary = "whether limits are enforced"},
    {"PUT", "/v1/mode", HTTP_AT, ROLE_ADMIN, run_set_mode,
     .summary = "the kill switch: shadow denies nothing, enforce does as the rules say"},
    {.path = NULL},
};
