/*
 * Makes the manual pages. A template is copied to standard output; where a line says @commands@,
 * @resp@, @fields SECTION@, @operators@ or @metrics@, the rows of the program are put. A header is
 * made a page of its own (header_page.c).
 *
 *     make_manual docs/man/weir.yaml.5.in >weir.yaml.5
 *     make_manual include/weir.h >weir.3
 *     make_manual --schema >schema/weir.schema.json (also --openapi, --proto, --metrics, --rules,
 *                                                             --bounds, --notices)
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "header.h"
#include "load/load.h"
#include "proto.h"
#include "reference.h"
#include "roff.h"
#include "rules/file/fields.h"
#include "schema.h"
#include "server/admin/admin.h"
#include "server/admin/metrics.h"
#include "server/operations/reservations.h"
#include "server/http/http_routes.h"
#include "server/resp/resp_commands.h"

#define LINE_MAX_BYTES 4096

static void put(const char *text)
{
    roff_put(text_of(text));
}

/* As a sentence; a first word such as token_bucket keeps its case. */
static void put_sentence(const char *text)
{
    size_t word = strcspn(text, " :");
    bool plain = memchr(text, '_', word) == NULL && text[0] >= 'a' && text[0] <= 'z';
    char first[2] = {plain ? (char)(text[0] - 'a' + 'A') : text[0], 0};
    put(first);
    put(text + 1);
    (void)fputs(".\n", stdout);
}

static void put_words(const struct cli_command *c)
{
    struct cli_word word;
    for (size_t i = 0; c->word != NULL && c->word(i, &word); i++) {
        (void)fputs(".TP\n.B ", stdout);
        put(word.usage);
        (void)fputc('\n', stdout);
        put_sentence(word.help);
    }
}

static void put_commands(void)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const struct cli_command *c = cli_commands[i];
        (void)printf(".SS weir %s", c->name);
        c = c == &cli_bench_load ? &bench_load_command : c; /* the one that has the options */
        (void)fputs(c->options_count > 0 ? " [options]" : "", stdout);
        (void)fputs(c->operands[0] != 0 ? " " : "", stdout);
        put(c->operands);
        (void)fputc('\n', stdout);
        put_sentence(c->summary);
        put_words(c);
        for (size_t j = 0; j < c->options_count; j++) {
            (void)fputs(".TP\n.B ", stdout);
            put(c->options[j].name);
            if (c->options[j].argument != NULL) {
                (void)fputs(" \\fI", stdout);
                put(c->options[j].argument);
                (void)fputs("\\fR", stdout);
            }
            (void)fputc('\n', stdout);
            put_sentence(c->options[j].help);
        }
    }
}

static void put_fields(const struct section *section)
{
    for (size_t i = 0; i < section->count; i++) {
        const struct field *f = &section->fields[i];
        (void)fputs(".TP\n.B ", stdout);
        put(f->name);
        (void)fputc('\n', stdout);
        put_sentence(f->help);
        (void)fputs("Value: ", stdout);
        put(f->expects);
        (void)fputs(".\n", stdout);
        if (f->required) {
            (void)fputs("Must be given.\n", stdout);
        } else {
            (void)fputs("Default: ", stdout);
            put(f->initial != NULL ? f->initial : f->unset);
            (void)fputs(".\n", stdout);
        }
    }
}

static void put_routes(const struct http_route *row, bool roles)
{
    static const char *const below[] = {
        [HTTP_AT] = "", [HTTP_AT_OR_BELOW] = "[/\\fINAME\\fP]", [HTTP_BELOW] = "/\\fINAME\\fP"};
    for (; row->path != NULL; row++) {
        (void)printf(".TP\n.BR \"%s%s%s%s\"", row->method != NULL ? row->method : "",
                     row->method != NULL ? " " : "", row->path, below[row->reach]);
        if (roles) {
            (void)printf(" \" (%s)\"", role_names[row->role]);
        }
        (void)fputc('\n', stdout);
        put_sentence(row->summary);
    }
}

static void put_listener(enum server_protocol listener, bool roles)
{
    for (const struct http_route *const *table = http_routes(listener); *table != NULL; table++) {
        put_routes(*table, roles);
    }
}

static void put_operators(void)
{
    put_listener(PROTOCOL_ADMIN, true);
}

static void put_clients(void)
{
    put_listener(PROTOCOL_HTTP, false);
}

static void put_metrics(void)
{
    struct metrics_about about;
    for (size_t i = 0; metrics_describe(i, &about); i++) {
        (void)printf(".TP\n.BR %s \" (%s)\"\n", about.name, about.type);
        put(about.help);
        (void)fputc('\n', stdout);
    }
}

/* "limit key ... [COST n]: takes units": the arguments, then what it does. */
static void put_resp(const struct command_row *row)
{
    const char *colon = strstr(row->summary, ": ");
    char arguments[256] = "";
    if (colon != NULL) {
        (void)snprintf(arguments, sizeof arguments, " %.*s", (int)(colon - row->summary),
                       row->summary);
    }
    (void)fputs(".TP\n.B ", stdout);
    put(row->name);
    (void)fputs("\\fR", stdout);
    put(arguments);
    (void)fputc('\n', stdout);
    put_sentence(colon != NULL ? colon + 2 : row->summary);
    (void)fputs(row->role == ROLE_ADMIN ? "For the role admin.\n" : "", stdout);
}

static void put_all_resp(void)
{
    for (const struct command_row *const *table = resp_commands(); *table != NULL; table++) {
        for (const struct command_row *row = *table; row->name != NULL; row++) {
            put_resp(row);
        }
    }
}

static const struct {
    const char *line;
    void (*put)(void);
} places[] = {
    {"@commands@\n", put_commands},   {"@resp@\n", put_all_resp},   {"@clients@\n", put_clients},
    {"@operators@\n", put_operators}, {"@metrics@\n", put_metrics},
};

/* True if the line was a place to fill in; exits if there is no such section. */
static int fill_in(const char *line)
{
    char name[64];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (strcmp(line, places[i].line) == 0) {
            places[i].put();
            return 1;
        }
    }
    if (sscanf(line, "@fields %63[^@]@", name) != 1) {
        return 0;
    }
    for (size_t i = 0; reference_sections[i] != NULL; i++) {
        if (strcmp(reference_sections[i]->name, name) == 0) {
            put_fields(reference_sections[i]);
            return 1;
        }
    }
    (void)fprintf(stderr, "make_manual: no section '%s'\n", name);
    return -1;
}

/* ---- files other than manual pages ---- */

static char *openapi_text(void)
{
    return http_openapi(JSON_INDENT(1), RESERVATION_TTL_LONGEST_MS);
}

/* Returns the function that makes a file, or NULL. */
static char *(*maker_of(const char *option))(void)
{
    static const struct {
        const char *option;
        char *(*make)(void);
    } makers[] = {{"--openapi", openapi_text},     {"--schema", schema_text},
                  {"--proto", proto_text},         {"--metrics", reference_metrics},
                  {"--rules", reference_rules},    {"--bounds", reference_bounds},
                  {"--notices", reference_notices}};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        if (strcmp(option, makers[i].option) == 0) {
            return makers[i].make;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    char line[LINE_MAX_BYTES];
    char *(*const make)(void) = argc == 2 ? maker_of(argv[1]) : NULL;
    if (make != NULL) {
        char *text = make();
        size_t len = text != NULL ? strlen(text) : 0;
        (void)printf("%s%s", len > 0 ? text : "", len > 0 && text[len - 1] == '\n' ? "" : "\n");
        free(text);
        return text != NULL ? 0 : 1;
    }
    if (argc == 2 && text_ends(text_of(argv[1]), ".h")) {
        return header_page(argv[1]);
    }
    FILE *in = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (in == NULL) {
        (void)fprintf(stderr, "usage: make_manual TEMPLATE|HEADER >PAGE\n");
        return CLI_USAGE;
    }
    while (fgets(line, sizeof line, in) != NULL) {
        int filled = fill_in(line);
        if (filled < 0) {
            return CLI_USAGE;
        }
        if (filled == 0) {
            (void)fputs(line, stdout);
        }
    }
    int failed = ferror(in) != 0 || fclose(in) != 0 || fflush(stdout) != 0;
    return failed ? CLI_FAILED : CLI_OK;
}
