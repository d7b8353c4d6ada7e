/* weir ctl reload, config, log-level, mode, status, ready, top-denied. */
#include "cli/ctl/ctl.h"
#include "common/log.h"
#include "rules/value/quantity.h"

/* ---- rules ---- */

static int run_reload(struct ctl *ctl)
{
    struct http_call call = {.method = "POST", .target = "/v1/reload"};
    json_t *said = NULL;
    int code = admin_call_json(&ctl->client, &call, &said);
    admin_tell_messages(json_object_get(said, "messages")); /* warnings */
    if (code == CLI_OK && ctl->json) {
        ctl_print_json(said);
    } else if (code == CLI_OK) {
        (void)printf("reloaded: generation %llu\n",
                     (unsigned long long)ctl_count(said, "generation"));
    }
    json_decref(said);
    return code;
}

static int run_config(struct ctl *ctl)
{
    struct http_result result;
    struct buffer out;
    struct http_call call = {.method = "GET", .target = "/v1/config"};
    http_result_init(&result);
    buffer_init(&out, CTL_OUTPUT_MAX);
    int code = admin_call(&ctl->client, &call, &result);
    if (code == CLI_OK && ctl->json) {
        json_t *text = json_stringn(result.response.body.at, result.response.body.len);
        json_t *said = json_object();
        (void)json_object_set_new(said, "config", text);
        ctl_print_json(said);
        json_decref(said);
    } else if (code == CLI_OK) {
        safe_put(&out, result.response.body, true);
        ctl_print(&out);
    }
    buffer_finish(&out);
    http_result_finish(&result);
    return code;
}

/* ---- switches ---- */

static int print_said(const struct ctl *ctl, json_t *said, void (*print)(const json_t *said))
{
    if (ctl->json) {
        ctl_print_json(said);
    } else {
        print(said);
    }
    json_decref(said);
    return CLI_OK;
}

static void print_level(const json_t *said)
{
    ctl_print_line(TEXT("log level"), ctl_text(said, "level"));
}

static int run_log_level(struct ctl *ctl)
{
    enum log_level level;
    json_t *said = NULL;
    int code;
    if (ctl->count == 0) {
        code = admin_get_json(&ctl->client, "/v1/log-level", &said);
    } else if (!log_level_parse(text_of(ctl->operands[0]), &level)) {
        return cli_complain(&cli_ctl, "found '%s', expected error, warning, info or debug",
                            ctl->operands[0]);
    } else {
        code = ctl_send_json(ctl, "PUT", "/v1/log-level",
                             json_pack("{ss}", "level", log_level_names[level]), &said);
    }
    return code == CLI_OK ? print_said(ctl, said, print_level) : code;
}

static void print_mode(const json_t *said)
{
    json_t *limits = json_object_get(said, "limits");
    ctl_print_line(TEXT("mode"), ctl_text(said, "mode"));
    for (void *at = json_object_iter(limits); at != NULL; at = json_object_iter_next(limits, at)) {
        const char *mode = json_string_value(json_object_iter_value(at));
        ctl_print_line(text_of(json_object_iter_key(at)), mode != NULL ? mode : "");
    }
}

/*
 * The kill switch: with `shadow`, the server denies nothing any more but still counts
 * everything.
 */
static int run_mode(struct ctl *ctl)
{
    json_t *said = NULL;
    if (ctl->count == 0) {
        int code = admin_get_json(&ctl->client, "/v1/mode", &said);
        return code == CLI_OK ? print_said(ctl, said, print_mode) : code;
    }
    const char *mode = ctl->operands[0];
    if (strcmp(mode, "enforce") != 0 && strcmp(mode, "shadow") != 0) {
        return cli_complain(&cli_ctl, "found '%s', expected enforce or shadow", mode);
    }
    json_t *body = ctl->count > 1 ? json_pack("{ssss}", "mode", mode, "limit", ctl->operands[1])
                                  : json_pack("{ss}", "mode", mode);
    int code = ctl_send_json(ctl, "PUT", "/v1/mode", body, &said);
    return code == CLI_OK ? print_said(ctl, said, print_mode) : code;
}

/* ---- status ---- */

static void put_pair(struct grid *g, const char *name, struct text value)
{
    grid_put(g, text_of(name));
    grid_put(g, value);
}

/* Writes a number, a string, or the members of an object: "resp 12, http 3". */
static void put_value(struct buffer *out, const json_t *value)
{
    char number[32];
    json_t *all = (json_t *)(uintptr_t)value; /* the iterator does not change it */
    if (json_is_string(value)) {
        buffer_put(out, (struct text){json_string_value(value), json_string_length(value)});
    } else if (json_is_integer(value)) {
        buffer_put_i64(out, json_integer_value(value));
    } else if (json_is_real(value)) {
        (void)snprintf(number, sizeof number, "%.2f", json_real_value(value));
        buffer_put(out, text_of(number));
    } else if (json_is_object(value)) {
        for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
            buffer_put(out, buffer_len(out) > 0 ? TEXT(", ") : TEXT(""));
            buffer_put(out, text_of(json_object_iter_key(at)));
            buffer_put(out, TEXT(" "));
            put_value(out, json_object_iter_value(at));
        }
    } else {
        buffer_put(out, TEXT("-"));
    }
}

static void put_special(struct grid *g, const char *name, const json_t *value, bool *done)
{
    char text[QUANTITY_MAX];
    uint64_t number = (uint64_t)json_integer_value(value);
    *done = true;
    if (strcmp(name, "uptime_s") == 0 && number < UINT64_MAX / WEIR_SECOND) {
        put_pair(g, "uptime", text_of(duration_print(number * WEIR_SECOND, text)));
    } else if (strcmp(name, "memory_bytes") == 0) {
        (void)snprintf(text, sizeof text, "%.1f MB", (double)number / 1e6);
        put_pair(g, "memory", text_of(text));
    } else {
        *done = false;
    }
}

static void print_status(const json_t *said)
{
    static const struct grid_column columns[] = {{NULL, false}, {NULL, false}};
    json_t *all = (json_t *)(uintptr_t)said; /* the iterator does not change it */
    struct grid g;
    struct buffer out;
    grid_init(&g, columns, 2);
    buffer_init(&out, CTL_OUTPUT_MAX);
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        bool done;
        put_special(&g, json_object_iter_key(at), json_object_iter_value(at), &done);
        if (!done) {
            put_value(&out, json_object_iter_value(at));
            put_pair(&g, json_object_iter_key(at), buffer_text(&out));
            buffer_take(&out, buffer_len(&out));
        }
    }
    grid_print(&g, &out, 0, 0);
    ctl_print(&out);
    buffer_finish(&out);
    grid_finish(&g);
}

static int run_status(struct ctl *ctl)
{
    json_t *said = NULL;
    int code = admin_get_json(&ctl->client, "/v1/status", &said);
    return code == CLI_OK ? print_said(ctl, said, print_status) : code;
}

/*
 * For programs that start and supervise servers. It needs no secret, whatever the server's
 * settings.
 */
static int run_ready(struct ctl *ctl)
{
    struct http_result result;
    struct http_call call = {.method = "GET", .target = "/readyz"};
    http_result_init(&result);
    int code = admin_call(&ctl->client, &call, &result);
    if (code == CLI_OK) {
        (void)puts(ctl->json ? "{\"ready\": true}" : "ready");
    }
    http_result_finish(&result);
    return code;
}

static void print_denied(const json_t *said)
{
    static const struct grid_column columns[] = {
        {"DENIED", true}, {"ERROR", true}, {"LIMIT", false}, {"KEY", false}};
    const json_t *denied = json_object_get(said, "denied");
    struct grid g;
    struct buffer out;
    grid_init(&g, columns, sizeof columns / sizeof columns[0]);
    buffer_init(&out, CTL_OUTPUT_MAX);
    for (size_t i = 0; i < json_array_size(denied); i++) {
        const json_t *row = json_array_get(denied, i);
        const json_t *key = json_object_get(row, "key");
        grid_put_count(&g, ctl_count(row, "count"));
        grid_put_count(&g, ctl_count(row, "error"));
        grid_put(&g, text_of(ctl_text(row, "limit")));
        grid_put(&g, (struct text){ctl_text(row, "key"), json_string_length(key)});
    }
    grid_print(&g, &out, 0, 0);
    ctl_print(&out);
    buffer_finish(&out);
    grid_finish(&g);
}

static int run_top_denied(struct ctl *ctl)
{
    char target[64] = "/v1/top";
    json_t *said = NULL;
    uint64_t n;
    if (ctl->count > 0) {
        if (count_parse(text_of(ctl->operands[0]), &n, NULL) != 0 || n == 0) {
            return cli_complain(&cli_ctl, "found '%s', expected how many", ctl->operands[0]);
        }
        (void)snprintf(target, sizeof target, "/v1/top?n=%llu", (unsigned long long)n);
    }
    int code = admin_get_json(&ctl->client, target, &said);
    return code == CLI_OK ? print_said(ctl, said, print_denied) : code;
}

const struct ctl_row ctl_server_rows[] = {
    {{"reload", "read the rule file again; exit status 1 if the old rules stay"},
     "reload",
     0,
     -1,
     0,
     run_reload},
    {{"config", "print the rules in effect, with their defaults"}, "config", 0, -1, 0, run_config},
    {{"log-level [LEVEL]", "print or set what is logged: error, warning, info, debug"},
     "log-level",
     0,
     1,
     0,
     run_log_level},
    {{"mode [enforce|shadow [LIMIT]]",
      "the kill switch: shadow counts and denies nothing, enforce does as the rules say"},
     "mode",
     0,
     2,
     0,
     run_mode},
    {{"status", "version, state, uptime, requests, connections, memory"},
     "status",
     0,
     -1,
     0,
     run_status},
    {{"ready", "whether it takes requests: exit status 0 if so; needs no secret"},
     "ready",
     0,
     -1,
     0,
     run_ready},
    {{"top-denied [N]", "the keys that were denied most"}, "top-denied", 0, 1, 0, run_top_denied},
    {{NULL, NULL}, NULL, 0, 0, 0, NULL},
};
