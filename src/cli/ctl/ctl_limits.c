/* weir ctl limits, put, delete: shows, adds, replaces and removes limits. */
#include <stdlib.h>

#include "cli/ctl/ctl_keep.h"
#include "cli/limit_order.h"
#include "rules/yaml/document.h"
#include "rules/value/quantity.h"

/* ---- showing ---- */

/* The last two columns are shown only if a fleet shares a limit. */
static const struct grid_column columns[] = {
    {"LIMIT", false},     {"TIER", false},   {"RATE", false},   {"BURST", true},
    {"ALGORITHM", false}, {"MODE", false},   {"KEYS", true},    {"CAPACITY", true},
    {"DENIED/S", true},   {"ALLOWED", true}, {"DENIED", true},  {"NEVER", true},
    {"SHADOW", true},     {"MISSING", true}, {"EVICTED", true}, {"DEGRADED", true},
    {"SHARED", false},
};

#define COLUMNS (sizeof columns / sizeof columns[0])

static bool is_shared(const json_t *limit)
{
    return strcmp(json_text(limit, "consistency"), "local") != 0;
}

/* Puts a count, or "-" for null: then only the store knows it. */
static void put_count(struct grid *g, const json_t *limit, const char *name)
{
    if (json_is_null(json_object_get(limit, name))) {
        grid_put(g, TEXT("-"));
    } else {
        grid_put_count(g, ctl_count(limit, name));
    }
}

static void put_counts(struct grid *g, const json_t *limit, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_count(g, limit, names[i]);
    }
}

/* Puts a number per second: 0, 0.45, 12.30, 1234. */
static void put_rate(struct grid *g, double rate)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.*f", rate > 0 && rate < 100 ? 2 : 0, rate);
    grid_put(g, text_of(text));
}

static void put_limit(struct grid *g, const json_t *limit, bool fleet)
{
    static const char *const sizes[] = {"keys", "capacity"};
    static const char *const counts[] = {"allowed",       "denied",  "never",
                                         "shadow_denied", "missing", "evicted"};
    const char *tier = json_text(limit, "tier");
    bool by_call = json_is_null(json_object_get(limit, "rate"));
    char text[QUANTITY_MAX];
    grid_put(g, text_of(json_text(limit, "name")));
    grid_put(g, text_of(tier[0] != 0 ? tier : "-"));
    grid_put(g, text_of(by_call ? "by call" : json_text(limit, "rate")));
    grid_put(g, text_of(by_call ? "-" : count_print(ctl_count(limit, "burst"), text)));
    grid_put(g, text_of(json_text(limit, "algorithm")));
    grid_put(g, text_of(json_text(limit, "mode")));
    put_counts(g, limit, sizes, sizeof sizes / sizeof sizes[0]);
    put_rate(g, json_number(limit, "denied_rate"));
    put_counts(g, limit, counts, sizeof counts / sizeof counts[0]);
    if (fleet) {
        grid_put_count(g, ctl_count(limit, "degraded"));
        grid_put(g, text_of(is_shared(limit) ? json_text(limit, "consistency") : "-"));
    }
}

static void print_limits(const struct ctl *ctl, const json_t *said)
{
    json_t *limits = limits_by_denied(json_object_get(said, "limits"));
    struct grid g;
    bool fleet = false;
    (void)ctl;
    for (size_t i = 0; i < json_array_size(limits); i++) {
        fleet = fleet || is_shared(json_array_get(limits, i));
    }
    grid_init(&g, columns, fleet ? COLUMNS : COLUMNS - 2);
    for (size_t i = 0; i < json_array_size(limits); i++) {
        put_limit(&g, json_array_get(limits, i), fleet);
    }
    ctl_print_grid(&g);
    json_decref(limits);
}

/* Sends a request about one limit: to "/v1/limits/" and the encoded name. */
static int call_limit(struct ctl *ctl, struct weir_text name, struct http_call call,
                      ctl_print_fn print)
{
    struct buffer target;
    buffer_init(&target, CTL_TARGET_MAX);
    buffer_put(&target, TEXT("/v1/limits/"));
    http_put_encoded(&target, name);
    buffer_put_char(&target, 0);
    call.target = buffer_text(&target).at;
    int code;
    if (target.full) {
        code = cli_complain(&cli_ctl, "found a name of %zu bytes, which is too long for a limit",
                            name.len);
    } else {
        code = ctl->keep != NULL ? ctl_keep(ctl, name, &call) : ctl_call(ctl, &call, print);
    }
    buffer_finish(&target);
    return code;
}

static int run_limits(struct ctl *ctl)
{
    return ctl->count == 0 ? ctl_get(ctl, "/v1/limits", print_limits)
                           : call_limit(ctl, text_of(ctl->operands[0]),
                                        (struct http_call){.method = "GET"}, print_limits);
}

/* ---- changing ---- */

/* Reads a whole file, or standard input for "-". Returns CLI_OK, or CLI_USAGE after a message. */
static int read_file(const char *path, struct buffer *text)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    char *room = buffer_room(text, HTTP_BODY_MAX + 1);
    size_t n = file != NULL && room != NULL ? fread(room, 1, HTTP_BODY_MAX + 1, file) : 0;
    int code = CLI_OK;
    if (file == NULL || room == NULL || ferror(file) != 0) {
        code = cli_complain(&cli_ctl, "cannot read %s: %m", path);
    } else if (n > HTTP_BODY_MAX) {
        code = cli_complain(&cli_ctl, "found more than %d bytes in %s, expected one limit",
                            HTTP_BODY_MAX, path);
    }
    if (file != NULL && !standard) {
        (void)fclose(file);
    }
    buffer_add(text, n);
    return code;
}

/* Returns the name in the limit's own text; empty after a message. */
static struct weir_text name_in(struct arena *arena, const char *path, struct weir_text text)
{
    struct problems problems = {.tell = cli_tell_rules};
    const struct node *limit = document_read(arena, path, text, &problems);
    const struct node *name =
        limit != NULL && limit->kind == NODE_MAP ? node_find(limit, "name") : NULL;
    problems_finish(&problems);
    if (name != NULL && name->kind == NODE_SCALAR && name->scalar.len > 0) {
        return name->scalar;
    }
    if (limit != NULL) {
        (void)cli_complain(
            &cli_ctl,
            "%s: found no name, expected one limit as in a rule file: name: ..., rate: ...", path);
    }
    return (struct weir_text){"", 0};
}

static void print_put(const struct ctl *ctl, const json_t *said)
{
    const json_t *limit = json_array_get(json_object_get(said, "limits"), 0);
    ctl_print_line(text_of(json_text(limit, "name")),
                   ctl->status == 201 ? "added until the next reload or restart"
                                      : "replaced until the next reload or restart");
}

static int run_put(struct ctl *ctl)
{
    const char *path = ctl->operands[0];
    struct arena arena = ARENA_INIT;
    struct buffer text;
    buffer_init(&text, HTTP_BODY_MAX + 1);
    int code = read_file(path, &text);
    if (code == CLI_OK) {
        struct weir_text name = name_in(&arena, path, buffer_text(&text));
        struct http_call call = {"PUT", NULL, "application/yaml", buffer_text(&text)};
        code = name.len > 0 ? call_limit(ctl, name, call, print_put) : CLI_USAGE;
    }
    arena_finish(&arena);
    buffer_finish(&text);
    return code;
}

static void print_deleted(const struct ctl *ctl, const json_t *said)
{
    (void)said;
    ctl_print_line(text_of(ctl->operands[0]),
                   "deleted; if a rule file has it, it returns with the next reload or restart");
}

static int run_delete(struct ctl *ctl)
{
    return call_limit(ctl, text_of(ctl->operands[0]), (struct http_call){.method = "DELETE"},
                      print_deleted);
}

const struct ctl_row ctl_limit_rows[] = {
    {"limits [NAME]",
     "print every limit, or one: rate, mode, keys, decisions; those that deny most come first",
     "limits", 0, 1, 0, .run = run_limits},
    {"put FILE|-", "add or replace one limit, written as in a rule file", "put", 1, 1,
     CTL_TAKES(CTL_KEEP), .run = run_put},
    {"delete NAME", "remove a limit and its keys", "delete", 1, 1, 0, .run = run_delete},
    {.name = NULL},
};
