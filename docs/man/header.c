#include "header.h"

/* Returns the length of the comment at the start of the text; 0: there is none. */
static size_t comment_at(struct weir_text text)
{
    if (!text_starts(text, "/*")) {
        return 0;
    }
    const char *end = memmem(text.at + 2, text.len - 2, "*/", 2);
    return end != NULL ? (size_t)(end - text.at) + 2 : text.len;
}

/* Returns the length of the text up to the byte c, which must not be in a comment or in braces. */
static size_t until(struct weir_text text, char c)
{
    size_t i = 0;
    int depth = 0;
    while (i < text.len && (depth > 0 || text.at[i] != c)) {
        size_t comment = comment_at(text_after(text, i));
        depth += text.at[i] == '{';
        depth -= text.at[i] == '}';
        i += comment > 0 ? comment : 1;
    }
    return i;
}

static struct weir_text take(struct weir_text *rest, size_t n)
{
    struct weir_text taken = {rest->at, n};
    *rest = text_after(*rest, n);
    return taken;
}

/* Takes a line that begins with #, with the lines that continue it. */
static struct weir_text take_directive(struct weir_text *rest)
{
    size_t n = text_before(*rest, '\n').len;
    while (n > 0 && rest->at[n - 1] == '\\' && n < rest->len) {
        n += 1 + text_before(text_after(*rest, n + 1), '\n').len;
    }
    return take(rest, n);
}

/* Takes lines up to the #endif of a condition that has begun. */
static void skip_condition(struct weir_text *rest)
{
    for (int depth = 1; depth > 0 && rest->len > 0;) {
        struct weir_text line = text_cut(rest, '\n');
        depth += text_starts(line, "#if");
        depth -= text_starts(line, "#endif");
    }
}

static struct header_item comment_item(struct weir_text *rest, bool beside)
{
    size_t n = comment_at(*rest);
    struct weir_text inner = text_trim((struct weir_text){rest->at + 2, n - 4});
    struct header_item item = {HEADER_COMMENT, inner, beside};
    if (text_starts(inner, "----")) {
        while (item.text.len > 0 && strchr("- ", item.text.at[0]) != NULL) {
            item.text = text_after(item.text, 1);
        }
        while (item.text.len > 0 && strchr("- ", item.text.at[item.text.len - 1]) != NULL) {
            item.text.len--;
        }
        item.kind = HEADER_TITLE;
    }
    (void)take(rest, n);
    return item;
}

/* True for a macro that has a value, and that the header does not remove again. */
static bool is_public(struct weir_text macro, struct weir_text rest)
{
    struct weir_text name = macro;
    name.len = 0;
    while (name.len < macro.len && text_is_plain(macro.at[name.len], "_")) {
        name.len++;
    }
    const char *removed = memmem(rest.at, rest.len, "#undef ", 7);
    return name.len < macro.len && (removed == NULL || memcmp(removed + 7, name.at, name.len) != 0);
}

/* Takes a directive. Returns true if it is a macro for users. */
static bool take_macro(struct weir_text *rest, struct header_item *item)
{
    static const char guard[] = "#ifndef WEIR_";
    struct weir_text line = take_directive(rest);
    if (text_starts(line, "#if") && !text_starts(line, guard)) {
        (void)text_cut(rest, '\n');
        skip_condition(rest);
        return false;
    }
    if (!text_starts(line, "#define ")) {
        return false;
    }
    struct weir_text macro = text_trim(text_after(line, 8));
    const char *comment = memmem(macro.at, macro.len, "/*", 2);
    if (comment != NULL) { /* the next item */
        rest->len += (size_t)(line.at + line.len - comment);
        rest->at = comment;
        macro.len = (size_t)(comment - macro.at);
    }
    *item = (struct header_item){HEADER_MACRO, text_trim(macro), false};
    return is_public(macro, *rest);
}

struct header_item header_next(struct weir_text *rest)
{
    struct header_item item = {HEADER_END, {"", 0}, false};
    bool line_began = false;
    while (rest->len > 0) {
        if (rest->at[0] == '\n') {
            (void)take(rest, 1);
            if (rest->len > 0 && rest->at[0] == '\n') {
                item.kind = HEADER_GAP;
                return item;
            }
            line_began = true;
        } else if (strchr(" \t", rest->at[0]) != NULL) {
            (void)take(rest, 1);
        } else if (comment_at(*rest) > 0) {
            return comment_item(rest, !line_began);
        } else if (rest->at[0] == '#') {
            if (take_macro(rest, &item)) {
                return item;
            }
        } else {
            item.kind = HEADER_DECLARATION;
            item.text = take(rest, until(*rest, ';'));
            *rest = text_after(*rest, rest->len > 0);
            return item;
        }
    }
    return item;
}

bool header_next_member(struct weir_text *rest, struct header_member *member)
{
    size_t n = 0;
    *rest = text_trim(*rest);
    *member = (struct header_member){{"", 0}, {"", 0}};
    if (rest->len == 0) {
        return false;
    }
    while (n < rest->len && strchr(";,", rest->at[n]) == NULL &&
           comment_at(text_after(*rest, n)) == 0) {
        n++;
    }
    member->text = text_trim(take(rest, n));
    *rest = text_after(*rest, rest->len > 0 && strchr(";,", rest->at[0]) != NULL);
    while (rest->len > 0 && rest->at[0] == ' ') {
        (void)take(rest, 1);
    }
    size_t comment = comment_at(*rest);
    if (comment > 0) {
        member->comment = text_trim((struct weir_text){rest->at + 2, comment - 4});
        (void)take(rest, comment);
    }
    return true;
}

struct weir_text header_function(struct weir_text declaration)
{
    struct weir_text before = text_before(declaration, '(');
    size_t begin = before.len;
    while (begin > 0 && text_is_plain(before.at[begin - 1], "_")) {
        begin--;
    }
    bool function = text_starts(declaration, "WEIR_API ") && before.len < declaration.len;
    return function ? text_after(before, begin) : (struct weir_text){"", 0};
}
