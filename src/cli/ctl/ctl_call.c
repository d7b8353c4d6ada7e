/* What the commands of weir ctl share: requests to the server, and printing. */
#include "cli/ctl/ctl.h"

#include <stdlib.h>

#include "cli/output/colour.h"

/* ---- requests ---- */

int ctl_call(struct ctl *ctl, const struct http_call *call, ctl_print_fn print)
{
    json_t *said;
    int code = admin_call_json(&ctl->client, call, &said, &ctl->status, NULL);
    admin_tell_messages(json_object_get(said, "messages")); /* warnings about rules */
    if (code == CLI_OK && ctl->json) {
        ctl_print_json(said);
    } else if (code == CLI_OK) {
        print(ctl, said);
    }
    json_decref(said);
    return code;
}

int ctl_get(struct ctl *ctl, const char *target, ctl_print_fn print)
{
    struct http_call call = {.method = "GET", .target = target};
    return ctl_call(ctl, &call, print);
}

int ctl_send(struct ctl *ctl, const char *method, const char *target, json_t *body,
             ctl_print_fn print)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (text == NULL) {
        return cli_complain(&cli_ctl, "found an argument that is not UTF-8, expected text");
    }
    struct http_call call = {method, target, "application/json", text_of(text)};
    int code = ctl_call(ctl, &call, print);
    free(text);
    return code;
}

/* ---- printing ---- */

void ctl_print_json(const json_t *value)
{
    if (value != NULL) {
        (void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
        (void)putchar('\n');
    }
}

void ctl_print_grid(struct grid *g)
{
    struct buffer out;
    buffer_init(&out, CTL_OUTPUT_MAX);
    grid_print(g, &out, 0, 0);
    struct weir_text rows = buffer_text(&out);
    if (g->columns[0].title != NULL) {
        struct weir_text titles = text_cut(&rows, '\n');
        (void)printf("%s%.*s%s\n", colour_begin(stdout, COLOUR_TITLE), TEXT_ARGS(titles),
                     colour_end(stdout));
    }
    (void)fwrite(rows.at, 1, rows.len, stdout);
    buffer_finish(&out);
    grid_finish(g);
}

void ctl_print_line(struct weir_text name, const char *what)
{
    safe_print(stdout, name, false);
    (void)printf(": %s\n", what);
}

uint64_t ctl_count(const json_t *object, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(object, name));
    return number > 0 ? (uint64_t)number : 0;
}
