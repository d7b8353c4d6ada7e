/* weir ctl reload, config, log-level, mode, status, ready, top-denied, link. */
#include "cli/ctl/ctl.h"
#include "cli/notice_line.h"
#include "cli/output/colour.h"
#include "common/digits.h"
#include "common/log.h"
#include "rules/value/quantity.h"

/* ---- rules ---- */

static void print_reload(const struct ctl *ctl, const json_t *said)
{
    (void)ctl;
    (void)printf("reloaded: generation %llu\n", (unsigned long long)ctl_count(said, "generation"));
}

static int run_config(struct ctl *ctl)
{
    struct http_result result;
    struct http_call call = {.method = "GET", .target = "/v1/config"};
    int code = admin_call(&ctl->client, &call, &result, NULL);
    struct weir_text body = result.response.body;
    if (code == CLI_OK && ctl->json) {
        json_t *said = json_pack("{ss%}", "config", body.at, body.len);
        ctl_print_json(said);
        json_decref(said);
    } else if (code == CLI_OK) {
        safe_print(stdout, body, true);
    }
    http_result_finish(&result);
    return code;
}

/* ---- switches ---- */

static void print_level(const struct ctl *ctl, const json_t *said)
{
    (void)ctl;
    ctl_print_line(TEXT("log level"), json_text(said, "level"));
}

static int run_log_level(struct ctl *ctl)
{
    enum log_level level;
    if (ctl->count == 0) {
        return ctl_get(ctl, "/v1/log-level", print_level);
    }
    if (!log_level_parse(text_of(ctl->operands[0]), &level)) {
        return cli_complain(&cli_ctl, "found '%s', expected error, warning, info or debug",
                            ctl->operands[0]);
    }
    return ctl_send(ctl, "PUT", "/v1/log-level", json_pack("{ss}", "level", log_level_names[level]),
                    print_level);
}

static void print_mode(const struct ctl *ctl, const json_t *said)
{
    json_t *limits = json_object_get(said, "limits");
    (void)ctl;
    ctl_print_line(TEXT("mode"), json_text(said, "mode"));
    for (void *at = json_object_iter(limits); at != NULL; at = json_object_iter_next(limits, at)) {
        const char *name = json_object_iter_key(at);
        ctl_print_line(text_of(name), json_text(limits, name));
    }
}

/*
 * The kill switch: with `shadow`, the server denies nothing any more but still counts
 * everything.
 */
static int run_mode(struct ctl *ctl)
{
    if (ctl->count == 0) {
        return ctl_get(ctl, "/v1/mode", print_mode);
    }
    const char *mode = ctl->operands[0];
    if (strcmp(mode, "enforce") != 0 && strcmp(mode, "shadow") != 0) {
        return cli_complain(&cli_ctl, "found '%s', expected enforce or shadow", mode);
    }
    json_t *body = ctl->count > 1 ? json_pack("{ssss}", "mode", mode, "limit", ctl->operands[1])
                                  : json_pack("{ss}", "mode", mode);
    return ctl_send(ctl, "PUT", "/v1/mode", body, print_mode);
}

/* ---- status ---- */

/* Writes a number, a string, or the members of an object: "resp 12, http 3". */
static void put_value(struct buffer *out, const json_t *value)
{
    char number[32];
    json_t *all = (json_t *)(uintptr_t)value; /* the iterator does not change it */
    if (json_is_string(value)) {
        buffer_put(out, (struct weir_text){json_string_value(value), json_string_length(value)});
    } else if (json_is_boolean(value)) {
        buffer_put(out, json_is_true(value) ? TEXT("yes") : TEXT("no"));
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

/* Writes the value of a member, in the unit in which people read it. Returns the member's name. */
static const char *put_member(struct buffer *out, const char *name, const json_t *value)
{
    char text[QUANTITY_MAX];
    uint64_t number = (uint64_t)json_integer_value(value);
    if (strcmp(name, "uptime_s") == 0 && number < UINT64_MAX / WEIR_SECOND) {
        buffer_put(out, text_of(duration_print(number * WEIR_SECOND, text)));
        return "uptime";
    }
    if (strcmp(name, "memory_bytes") == 0) {
        (void)snprintf(text, sizeof text, "%.1f MB", (double)number / 1e6);
        buffer_put(out, text_of(text));
        return "memory";
    }
    if (strcmp(name, "notices") == 0 && json_array_size(value) == 0) {
        buffer_put(out, TEXT("none"));
        return name;
    }
    if (strcmp(name, "notices") == 0) {
        buffer_put_u64(out, json_array_size(value));
        return name;
    }
    put_value(out, value);
    return name;
}

/* Prints what is wrong, why and what to do, before all other facts. */
static void print_notice(const json_t *notice)
{
    bool critical = strcmp(json_text(notice, "severity"), "critical") == 0;
    const char *why = json_text(notice, "why");
    struct buffer line;
    struct buffer more;
    buffer_init(&line, CTL_OUTPUT_MAX);
    buffer_init(&more, CTL_OUTPUT_MAX);
    notice_line_put(&line, notice);
    buffer_put(&more, why[0] != 0 ? TEXT("\n  ") : TEXT(""));
    buffer_put(&more, text_of(why));
    buffer_put(&more, TEXT("\n  "));
    buffer_put(&more, text_of(json_text(notice, "act")));
    buffer_put(&more, TEXT("\n\n"));
    (void)fputs(colour_begin(stdout, critical ? COLOUR_BAD : COLOUR_WARNING), stdout);
    safe_print(stdout, buffer_text(&line), true);
    (void)fputs(colour_end(stdout), stdout);
    safe_print(stdout, buffer_text(&more), true);
    buffer_finish(&line);
    buffer_finish(&more);
}

static void print_status(const struct ctl *ctl, const json_t *said)
{
    static const struct grid_column columns[] = {{NULL, false}, {NULL, false}};
    json_t *all = (json_t *)(uintptr_t)said; /* the iterator does not change it */
    struct grid g;
    struct buffer value;
    (void)ctl;
    const json_t *notices = json_object_get(said, "notices");
    for (size_t i = 0; i < json_array_size(notices); i++) {
        print_notice(json_array_get(notices, i));
    }
    grid_init(&g, columns, 2);
    buffer_init(&value, CTL_OUTPUT_MAX);
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        grid_put(&g,
                 text_of(put_member(&value, json_object_iter_key(at), json_object_iter_value(at))));
        grid_put(&g, buffer_text(&value));
        buffer_take(&value, buffer_len(&value));
    }
    buffer_finish(&value);
    ctl_print_grid(&g);
}

/*
 * For programs that start and supervise servers. It needs no secret, whatever the server's
 * settings.
 */
static int run_ready(struct ctl *ctl)
{
    struct http_result result;
    struct http_call call = {.method = "GET", .target = "/readyz"};
    int code = admin_call(&ctl->client, &call, &result, NULL);
    if (code == CLI_OK) {
        (void)puts(ctl->json ? "{\"ready\": true}" : "ready");
    }
    http_result_finish(&result);
    return code;
}

/* ---- a link for a browser ---- */

/* Prints a link with the secret. It asks no server: the secret may be for a page that is opened
 * later. */
static int run_link(struct ctl *ctl)
{
    const struct http_peer *peer = &ctl->client.peer;
    const char *s = ctl->client.tls.context != NULL ? "s" : "";
    char loopback[CLIENT_ADDRESS_MAX];
    struct buffer secret;
    if (peer->secret == NULL) {
        return cli_fail(&cli_ctl,
                        "found no secret for %s; give one with --secret-file FILE or "
                        "WEIR_ADMIN_SECRET, or name the server's state folder in WEIR_STATE",
                        peer->address);
    }
    if (strncmp(peer->address, "unix:", 5) == 0) {
        return cli_complain(&cli_ctl,
                            "found %s, expected ADDRESS:PORT: browsers cannot open unix "
                            "sockets",
                            peer->address);
    }
    const char *address = admin_link_address(peer->address, loopback);
    buffer_init(&secret, CTL_TARGET_MAX);
    http_put_encoded(&secret, text_of(peer->secret));
    buffer_put_char(&secret, 0);
    if (ctl->json) {
        json_t *said = json_object();
        (void)json_object_set_new(said, "link",
                                  json_sprintf(ADMIN_LINK, s, address, buffer_text(&secret).at));
        ctl_print_json(said);
        json_decref(said);
    } else {
        (void)printf(ADMIN_LINK "\n", s, address, buffer_text(&secret).at);
    }
    buffer_finish(&secret);
    return CLI_OK;
}

static void print_denied(const struct ctl *ctl, const json_t *said)
{
    static const struct grid_column columns[] = {
        {"DENIED", true}, {"ERROR", true}, {"REASON", false}, {"LIMIT", false}, {"KEY", false}};
    const json_t *denied = json_object_get(said, "denied");
    struct grid g;
    (void)ctl;
    (void)printf("the last %llu seconds; every other key was denied at most %llu time%s\n",
                 (unsigned long long)ctl_count(said, "seconds"),
                 (unsigned long long)ctl_count(said, "others"),
                 ctl_count(said, "others") == 1 ? "" : "s");
    grid_init(&g, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < json_array_size(denied); i++) {
        const json_t *row = json_array_get(denied, i);
        const json_t *key = json_object_get(row, "key");
        grid_put_count(&g, ctl_count(row, "count"));
        grid_put_count(&g, ctl_count(row, "error"));
        grid_put(&g, text_of(json_text(row, "reason")));
        grid_put(&g, text_of(json_text(row, "limit")));
        grid_put(&g, (struct weir_text){json_text(row, "key"), json_string_length(key)});
    }
    ctl_print_grid(&g);
}

static int run_top_denied(struct ctl *ctl)
{
    char target[64];
    struct weir_error error;
    uint64_t n = 0;
    if (ctl->count > 0) {
        if (count_parse(text_of(ctl->operands[0]), &n, &error) != 0) {
            return cli_complain(&cli_ctl, "%s", error.text);
        }
        if (n == 0) {
            return cli_complain(&cli_ctl, "found '0', expected a whole number from 1 up");
        }
    }
    admin_put_top(target, sizeof target, ctl->minutes, n);
    return ctl_get(ctl, target, print_denied);
}

const struct ctl_row ctl_server_rows[] = {
    {"reload", "read rules and secrets again; exit status 1 if the old ones stay", "reload", 0, 0,
     0, .call = {"POST", "/v1/reload", NULL, {"", 0}}, .print = print_reload},
    {"config", "print the rules and settings in effect, with defaults and listeners", "config", 0,
     0, 0, .run = run_config},
    {"log-level [LEVEL]", "print or set what is logged: error, warning, info, debug", "log-level",
     0, 1, 0, .run = run_log_level},
    {"mode [enforce|shadow [LIMIT]]",
     "print or set the kill switch: shadow counts and denies nothing, enforce follows the rules",
     "mode", 0, 2, 0, .run = run_mode},
    {"status", "print what is wrong, version, state, uptime, requests, connections, memory, store",
     "status", 0, 0, 0, .call = {"GET", "/v1/status", NULL, {"", 0}}, .print = print_status},
    {"ready", "exit with status 0 if the server takes requests; needs no secret", "ready", 0, 0, 0,
     .run = run_ready},
    {"top-denied [N] [--minutes 1|5|15]",
     "print the keys that were denied most, by which limit, and why", "top-denied", 0, 1,
     CTL_TAKES(CTL_MINUTES), .run = run_top_denied},
    {"link", "print a link for a browser, with the secret in it", "link", 0, 0, 0, .run = run_link},
    {.name = NULL},
};
