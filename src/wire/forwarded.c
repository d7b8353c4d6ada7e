#include "wire/forwarded.h"

#include "wire/http_request.h"

/* ---- from the right: one hop ---- */

/* Returns true if the quote at `i` is part of the text: it follows a backslash that is not escaped
 * itself. */
static bool is_escaped(struct weir_text list, size_t i)
{
    size_t slashes = 0;
    while (slashes < i && list.at[i - slashes - 1] == '\\') {
        slashes++;
    }
    return slashes % 2 == 1;
}

/* Returns the last comma outside of quotes. */
static const char *last_comma(struct weir_text list)
{
    bool quoted = false;
    for (size_t i = list.len; i-- > 0;) {
        if (list.at[i] == '"' && !(quoted && is_escaped(list, i))) {
            quoted = !quoted;
        } else if (list.at[i] == ',' && !quoted) {
            return list.at + i;
        }
    }
    return NULL;
}

bool forwarded_last(struct weir_text *list, bool quotes, struct weir_text *hop)
{
    if (list->len == 0) {
        return false;
    }
    const char *comma = quotes ? last_comma(*list) : memrchr(list->at, ',', list->len);
    size_t at = comma != NULL ? (size_t)(comma - list->at) : 0;
    *hop = text_trim(text_after(*list, at + (comma != NULL)));
    list->len = at;
    return true;
}

/* ---- from the left: the parts of a hop ---- */

static bool is_token(char c)
{
    return text_is_plain(c, HTTP_TOKEN);
}

static bool is_bare(char c)
{
    return is_token(c) || c == ':' || c == '[' || c == ']';
}

/* Takes the characters that fit from the beginning. */
static struct weir_text take_while(struct weir_text *from, bool (*fits)(char c))
{
    size_t n = 0;
    while (n < from->len && fits(from->at[n])) {
        n++;
    }
    struct weir_text taken = {from->at, n};
    *from = text_after(*from, n);
    return taken;
}

/* Takes a quoted string. The value is without its quotes, but still has its backslashes. */
static bool take_quoted(struct weir_text *from, struct weir_text *value)
{
    size_t n = 1;
    while (n < from->len && from->at[n] != '"') {
        n += from->at[n] == '\\' ? 2 : 1;
    }
    if (n >= from->len) {
        return false;
    }
    *value = (struct weir_text){from->at + 1, n - 1};
    *from = text_after(*from, n + 1);
    return true;
}

static bool take_value(struct weir_text *from, struct weir_text *value)
{
    if (from->len > 0 && from->at[0] == '"') {
        return take_quoted(from, value);
    }
    *value = take_while(from, is_bare);
    return value->len > 0;
}

static bool take_character(struct weir_text *from, char c)
{
    *from = text_trim(*from);
    if (from->len == 0 || from->at[0] != c) {
        return false;
    }
    *from = text_trim(text_after(*from, 1));
    return true;
}

/* Takes "for=192.0.2.1", which must end the hop or be followed by a semicolon. */
static bool take_pair(struct weir_text *hop, struct weir_text *name, struct weir_text *value)
{
    *name = take_while(hop, is_token);
    return name->len > 0 && take_character(hop, '=') && take_value(hop, value) &&
           (take_character(hop, ';') || hop->len == 0);
}

/* Copies the value without its backslashes and without a hidden port. */
static bool copy_node(struct weir_text value, char *room, struct weir_text *node)
{
    size_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        i += value.at[i] == '\\';
        if (n == FORWARDED_NODE_MAX) {
            return false;
        }
        room[n++] = value.at[i];
    }
    const char *hidden = n > 0 ? memmem(room, n, ":_", 2) : NULL;
    *node = (struct weir_text){room, hidden != NULL ? (size_t)(hidden - room) : n};
    return node->len > 0;
}

bool forwarded_node(struct weir_text hop, char *room, struct weir_text *node)
{
    struct weir_text name;
    struct weir_text value;
    bool found = false;
    while (hop.len > 0) {
        if (take_character(&hop, ';')) {
            continue;
        }
        if (!take_pair(&hop, &name, &value)) {
            return false;
        }
        if (text_is_word(name, "FOR")) {
            if (found || !copy_node(value, room, node)) {
                return false;
            }
            found = true;
        }
    }
    return found;
}
