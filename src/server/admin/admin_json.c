/*
 * Reads a limit that is written as JSON. The rules read YAML, which is nearly the same, but not in
 * all: YAML has no surrogate pairs, takes `null` for a word, and folds some characters in texts. So
 * JSON is checked as JSON and then rewritten. Nearly all lines and columns stay the same, so that
 * messages name the right places.
 */
#include <stdio.h>

#include "common/utf8.h"
#include "server/admin/admin.h"
#include "wire/jsontext.h"

static bool is_json_type(const struct exchange *x)
{
    struct weir_text type = text_trim(text_before(http_value(x->request, "content-type"), ';'));
    return text_is_word(type, "APPLICATION/JSON");
}

static void put_escape(struct buffer *out, uint32_t character)
{
    char text[16];
    int n = snprintf(text, sizeof text, "\\U%08x", character);
    buffer_put(out, (struct weir_text){text, (size_t)n});
}

/* Puts a text with its quotes; returns its length in the JSON. Of the short escapes of JSON, YAML
 * 1.1 lacks only that of the slash. */
static size_t rewrite_string(struct buffer *out, struct weir_text from)
{
    size_t i = 1;
    buffer_put_char(out, '"');
    while (from.at[i] != '"') {
        struct weir_text rest = text_after(from, i);
        uint32_t number = 0;
        bool escaped = rest.at[0] == '\\';
        size_t n = escaped ? jsontext_escape(rest.at, rest.at + rest.len, &number)
                           : utf8_next(rest, &number); /* never 0: it is JSON */
        if (escaped ? n == 2 && rest.at[1] != '/' : utf8_visible(number)) {
            buffer_put(out, (struct weir_text){rest.at, n});
        } else {
            put_escape(out, number);
        }
        i += n > 0 ? n : 1;
    }
    buffer_put_char(out, '"');
    return i + 1;
}

/* Puts YAML that means the same. `json` has been read as JSON before. */
static void rewrite(struct buffer *out, struct weir_text json)
{
    for (size_t i = 0; i < json.len;) {
        char c = json.at[i];
        if (c == '"') {
            i += rewrite_string(out, text_after(json, i));
        } else if (c == 'n') { /* null: nothing */
            buffer_put(out, TEXT("    "));
            i += 4;
        } else {
            buffer_put_char(out, c == '\t' || c == '\r' ? ' ' : c);
            i++;
        }
    }
}

bool admin_read_limit(struct exchange *x, struct buffer *room, struct weir_text *yaml)
{
    struct weir_text body = x->request->body;
    struct weir_text begin = text_trim(body);
    bool declared = is_json_type(x);
    json_t *json = NULL;
    *yaml = body;
    if (declared) {
        json = http_read_json(x);
    } else if (begin.len > 0 && begin.at[0] == '{') {
        json = json_loadb(body.at, body.len, JSON_REJECT_DUPLICATES, NULL);
    }
    if (json == NULL) {
        return !declared;
    }
    json_decref(json);
    rewrite(room, body);
    *yaml = buffer_text(room);
    return true;
}
