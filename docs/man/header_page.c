/* The manual page of a public header: its opening comment as sections, then its declarations. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "header_group.h"
#include "roff.h"

#define HEADER_MAX (1u << 20)

/* The public headers, in the order of SEE ALSO. */
static const struct {
    const char *page;
    const char *package; /* of pkg-config; the library has the same name */
} headers[] = {{"weir", "weir"}, {"weir_rules", "weir-rules"}, {"weir_fleet", "weir-redis"}};

#define HEADERS (sizeof headers / sizeof headers[0])

/* ---- errors ---- */

/* The rows of a macro that lists errors: X(WEIR_EKEY, -2, "a key must ..."). */
static bool is_error_list(const struct header_item *item)
{
    return item->kind == HEADER_MACRO &&
           memmem(item->text.at, item->text.len, "\n    X(", 7) != NULL;
}

static void put_errors(struct weir_text rows)
{
    (void)fputs(".SH ERRORS\n.PD 0\n", stdout);
    (void)text_cut(&rows, '\n');
    while (rows.len > 0) {
        struct weir_text row = text_cut(&rows, '\n');
        (void)text_cut(&row, '(');
        struct weir_text name = text_cut(&row, ',');
        struct weir_text value = text_trim(text_cut(&row, ','));
        char tag[64];
        (void)text_cut(&row, '"');
        (void)snprintf(tag, sizeof tag, "%.*s (%.*s)", TEXT_ARGS(name), TEXT_ARGS(value));
        header_put_tag(text_of(tag));
        roff_put(text_before(row, '"'));
        (void)fputc('\n', stdout);
    }
    (void)fputs(".PD\n", stdout);
}

/* ---- the page ---- */

static void put_upper(struct weir_text text)
{
    for (size_t i = 0; i < text.len; i++) {
        (void)fputc(toupper((unsigned char)text.at[i]), stdout);
    }
}

static void put_title(struct weir_text title)
{
    (void)fputs(".SH ", stdout);
    put_upper(title);
    (void)fputc('\n', stdout);
}

/* Lists the functions by section. */
static void put_functions(struct weir_text rest)
{
    struct weir_text title = TEXT("definitions");
    struct header_item item;
    bool first = true; /* of its section */
    bool any = false;
    (void)fputs(".SH FUNCTIONS\n.PD 0\n", stdout);
    while ((item = header_next(&rest)).kind != HEADER_END) {
        struct weir_text name = header_function(item.text);
        if (item.kind == HEADER_TITLE) {
            title = item.text;
            first = true;
        }
        if (item.kind != HEADER_DECLARATION || name.len == 0) {
            continue;
        }
        if (first) {
            (void)fputs(any ? "\n" : "", stdout);
            header_put_tag(title);
        } else {
            (void)fputs(",\n", stdout);
        }
        (void)printf("\\fB%.*s\\fR()", TEXT_ARGS(name));
        first = false;
        any = true;
    }
    (void)fputs("\n.PD\n", stdout);
}

static void put_sections(struct weir_text rest)
{
    struct header_item item;
    struct header_group g = {.first = true};
    struct weir_text errors = {"", 0};
    put_title(TEXT("definitions"));
    while ((item = header_next(&rest)).kind != HEADER_END) {
        bool beside = item.kind == HEADER_COMMENT && item.beside && g.count > 0;
        bool ends = item.kind == HEADER_GAP || item.kind == HEADER_TITLE ||
                    (item.kind == HEADER_COMMENT && !beside) || g.count == HEADER_GROUP_MAX;
        if (is_error_list(&item)) {
            errors = item.text;
            continue;
        }
        if (ends) {
            header_group_put(&g);
        }
        if (beside) {
            g.notes[g.count - 1] = item.text;
        } else if (item.kind == HEADER_COMMENT) {
            g.comment = item.text;
        } else if (item.kind == HEADER_TITLE) {
            put_title(item.text);
            g.first = true;
        } else if (item.kind != HEADER_GAP) {
            g.items[g.count++] = item;
        }
    }
    header_group_put(&g);
    if (errors.len > 0) {
        put_errors(errors);
    }
}

/*
 * The first paragraph of the opening comment is "topic: one line." and may have more sentences,
 * which go to the section LIBRARY. Returns the other paragraphs.
 */
static struct weir_text put_head(struct weir_text comment, const char *page, const char *package)
{
    char words[1024];
    const char *end = memmem(comment.at, comment.len, "\n *\n", 4);
    struct weir_text paragraph = {comment.at,
                                  end != NULL ? (size_t)(end - comment.at) : comment.len};
    struct weir_text rest = text_after(comment, paragraph.len);
    (void)text_cut(&paragraph, '*');
    size_t n = 0;
    for (size_t i = 0; i < paragraph.len; i++) { /* without the stars */
        words[n] = paragraph.at[i];
        n += n < sizeof words - 1 && paragraph.at[i] != '*';
    }
    struct weir_text text = header_flat((struct weir_text){words, n}, words, sizeof words);
    struct weir_text topic = text_before(text, ':');
    text =
        topic.len < text_before(text, ' ').len ? text_trim(text_after(text, topic.len + 1)) : text;
    struct weir_text line = text_cut(&text, '.');
    (void)fputs(".TH ", stdout);
    put_upper(text_of(page));
    (void)printf(" 3 \"\" \"weir %s\" \"Library Functions\"\n", weir_version());
    (void)printf(".nr HY 0\n.nh\n.ad l\n.ss 12 0\n.SH NAME\n%s \\- %c", page,
                 tolower((unsigned char)line.at[0]));
    roff_put(text_after(line, 1));
    (void)printf("\n.SH LIBRARY\n.I lib%s\n.RB ( pkg\\-config :\n.BR %s ).\n", package, package);
    roff_put_comment(text);
    return rest;
}

static void put_see_also(size_t self)
{
    (void)fputs(".SH SEE ALSO\n.BR weir (1),\n", stdout);
    for (size_t i = 0; i < HEADERS; i++) {
        if (i != self) {
            (void)printf(".BR %s (3),\n", headers[i].page);
        }
    }
    (void)fputs(".BR weir.yaml (5)\n", stdout);
}

static void put_page(struct weir_text rest, size_t self)
{
    struct header_item opening = header_next(&rest);
    struct weir_text comment = put_head(opening.text, headers[self].page, headers[self].package);
    (void)printf(".SH SYNOPSIS\n.B #include <%s.h>\n", headers[self].page);
    (void)printf(".PP\n.B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs %s)\n",
                 headers[self].package);
    roff_put_essay(comment, true);
    put_functions(rest);
    roff_put_essay(comment, false);
    put_sections(rest);
    put_see_also(self);
}

int header_page(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct weir_text name = text_before(text_of(slash != NULL ? slash + 1 : path), '.');
    size_t self = 0;
    while (self < HEADERS && !text_is(name, headers[self].page)) {
        self++;
    }
    FILE *in = self < HEADERS ? fopen(path, "r") : NULL;
    if (in == NULL) {
        (void)fprintf(stderr, "make_manual: %s: not a public header, or it cannot be read\n", path);
        return CLI_USAGE;
    }
    char *bytes = malloc(HEADER_MAX);
    struct weir_text text = {bytes, bytes != NULL ? fread(bytes, 1, HEADER_MAX, in) : 0};
    (void)fclose(in);
    if (text.len == 0) {
        free(bytes);
        return CLI_FAILED;
    }
    put_page(text, self);
    free(bytes);
    return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}
