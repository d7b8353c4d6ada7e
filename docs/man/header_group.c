/* The declarations of a header's page: prototypes, structs and enums with their members, macros. */
#include "header_group.h"

#include <ctype.h>
#include <stdio.h>

#include "roff.h"

#define WIDTH 70 /* of a prototype, which is indented by 7 */

/* ---- one declaration ---- */

static bool is_compound(const struct header_item *item)
{
    return item->kind == HEADER_DECLARATION && memchr(item->text.at, '{', item->text.len) != NULL;
}

struct weir_text header_flat(struct weir_text declaration, char *to, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < declaration.len && n < size; i++) {
        bool space = isspace((unsigned char)declaration.at[i]) != 0;
        if (!space || (n > 0 && to[n - 1] != ' ')) {
            to[n++] = space ? ' ' : declaration.at[i];
        }
    }
    return text_trim((struct weir_text){to, n});
}

/* Puts "const void *key" with the name in italics; what is around it is bold. */
static void put_parameter(struct weir_text parameter)
{
    size_t name = parameter.len;
    while (name > 0 && text_is_plain(parameter.at[name - 1], "_")) {
        name--;
    }
    roff_put((struct weir_text){parameter.at, name > 0 ? name : parameter.len});
    if (name > 0) {
        (void)fputs("\\fI", stdout);
        roff_put(text_after(parameter, name));
        (void)fputs("\\fB", stdout);
    }
}

/* Returns the column of the parameters: after the parenthesis, or 8 if one would not fit there. */
static size_t column_of(size_t before, struct weir_text parameters)
{
    size_t column = before;
    while (parameters.len > 0) {
        struct weir_text one = text_trim(text_cut(&parameters, ','));
        column = before + one.len + 2 > WIDTH ? 8 : column;
    }
    return column;
}

/* Puts a function or the type of one, in lines that fit a page. */
static void put_prototype(struct weir_text declaration)
{
    char line[1024];
    struct weir_text all = header_flat(declaration, line, sizeof line);
    size_t open = all.len;
    while (open > 0 && all.at[open - 1] != '(') {
        open--;
    }
    struct weir_text parameters = {all.at + open, all.len - open - 1};
    size_t column = column_of(open, parameters);
    size_t at = open;
    (void)fputs("\\fB", stdout);
    roff_put((struct weir_text){all.at, open});
    for (bool first = true; parameters.len > 0; first = false) {
        struct weir_text one = text_trim(text_cut(&parameters, ','));
        if (!first && at + one.len + 2 > WIDTH) {
            (void)printf("\n%*s", (int)column, "");
            at = column;
        } else if (!first) {
            (void)fputc(' ', stdout);
            at++;
        }
        put_parameter(one);
        (void)fputs(parameters.len > 0 ? "," : ");\\fR\n", stdout);
        at += one.len + 1;
    }
}

/* Puts a macro; one whose value takes several lines without it. */
static void put_macro(struct weir_text macro)
{
    bool long_value = memchr(macro.at, '\n', macro.len) != NULL;
    size_t name = text_before(macro, long_value ? '\\' : '\n').len;
    (void)fputs("\\fB#define ", stdout);
    roff_put(text_trim((struct weir_text){macro.at, name}));
    (void)fputs("\\fR\n", stdout);
}

/* Puts a declaration; a struct or an enum without its members. */
static void put_simple(const struct header_item *item)
{
    struct weir_text text = item->text;
    bool compound = is_compound(item);
    if (item->kind == HEADER_MACRO) {
        put_macro(text);
    } else if (header_function(text).len > 0) {
        put_prototype(text_after(text, strlen("WEIR_API ")));
    } else if (text.len > 0 && text.at[text.len - 1] == ')') {
        put_prototype(text);
    } else {
        (void)fputs("\\fB", stdout);
        roff_put(compound ? text_trim(text_before(text, '{')) : text);
        (void)fputs(compound ? "\\fR\n" : ";\\fR\n", stdout);
    }
}

/* ---- members ---- */

void header_put_tag(struct weir_text tag)
{
    char line[256];
    (void)fputs(".TP 4\n\\fB", stdout);
    roff_put(header_flat(tag, line, sizeof line));
    (void)fputs("\\fR\n", stdout);
}

/*
 * Puts the members of a struct or an enum. A comment before a single member describes that; before
 * several, or before one that has its own, it is a paragraph.
 */
static void put_members(struct weir_text declaration)
{
    struct weir_text rest = text_after(declaration, text_before(declaration, '{').len + 1);
    struct header_member member;
    struct weir_text above = {"", 0};
    rest.len--; /* the brace */
    (void)fputs(".PD 0\n", stdout);
    while (header_next_member(&rest, &member)) {
        struct weir_text after = rest;
        struct header_member next;
        bool single =
            member.text.len > 0 && member.comment.len == 0 &&
            (!header_next_member(&after, &next) || next.text.len == 0 || next.comment.len > 0);
        if (above.len > 0 && !single) {
            (void)fputs(".PD\n.PP\n", stdout);
            roff_put_comment(above);
            (void)fputs(".PD 0\n", stdout);
        }
        if (memchr(member.text.at, '(', member.text.len) !=
            NULL) { /* made from put_errors()' list */
            header_put_tag(TEXT("WEIR_E..."));
            roff_put_comment(TEXT("see ERRORS"));
        } else if (member.text.len > 0) {
            header_put_tag(member.text);
            roff_put_comment(single ? above : member.comment);
        }
        above = member.text.len == 0 ? member.comment : (struct weir_text){"", 0};
    }
    (void)fputs(".PD\n", stdout);
}

/* ---- groups ---- */

/* Puts macros that have a comment each, as a list. */
static void put_macros(const struct header_group *g)
{
    (void)fputs(g->first ? "" : ".PP\n", stdout);
    roff_put_comment(g->comment);
    (void)fputs(".RS 4\n.PD 0\n", stdout);
    for (size_t i = 0; i < g->count; i++) {
        header_put_tag(g->items[i].text);
        roff_put_comment(g->notes[i]);
    }
    (void)fputs(".PD\n.RE\n", stdout);
}

/* Puts what the comments say about the declarations, and their members. */
static void put_description(const struct header_group *g)
{
    bool above = g->comment.len > 0;
    (void)fputs(".RS 4\n", stdout);
    roff_put_comment(g->comment);
    for (size_t i = 0; i < g->count; i++) {
        bool compound = is_compound(&g->items[i]);
        (void)fputs(above && g->notes[i].len > 0 ? ".PP\n" : "", stdout);
        roff_put_comment(g->notes[i]);
        above |= g->notes[i].len > 0;
        (void)fputs(above && compound ? ".sp\n" : "", stdout);
        if (compound) {
            put_members(g->items[i].text);
        }
    }
    (void)fputs(".RE\n", stdout);
}

static void put_described(const struct header_group *g)
{
    bool described = g->comment.len > 0;
    (void)fputs(g->first ? ".nf\n" : ".PP\n.nf\n", stdout);
    for (size_t i = 0; i < g->count; i++) {
        described |= is_compound(&g->items[i]) || g->notes[i].len > 0;
        put_simple(&g->items[i]);
    }
    (void)fputs(".fi\n", stdout);
    if (described) {
        put_description(g);
    }
}

void header_group_put(struct header_group *g)
{
    size_t macros = 0;
    size_t notes = 0;
    for (size_t i = 0; i < g->count; i++) {
        macros += g->items[i].kind == HEADER_MACRO;
        notes += g->notes[i].len > 0;
    }
    if (notes > 0 && macros == g->count) {
        put_macros(g);
    } else if (g->count > 0) {
        put_described(g);
    }
    *g = (struct header_group){.first = g->first && g->count == 0};
}
