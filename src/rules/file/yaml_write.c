#include "rules/file/yaml_write.h"

#include "common/utf8.h"

static bool is_plain(struct weir_text text)
{
    return text_is_made_of(text, "_/.-") && text.at[0] != '-';
}

/* True if all characters may appear between single quotes. */
static bool is_visible(struct weir_text text)
{
    bool visible = true;
    while (visible && text.len > 0) {
        (void)utf8_take(&text, &visible);
    }
    return visible;
}

/* Writes the text as it must appear between double quotes. Texts of a YAML file are UTF-8. */
static void put_escaped(FILE *out, struct weir_text text)
{
    while (text.len > 0) {
        uint32_t c = 0xfffd;
        size_t bytes = utf8_next(text, &c);
        if (c == '"' || c == '\\') {
            (void)fprintf(out, "\\%c", (int)c);
        } else if (utf8_visible(c)) {
            (void)fwrite(text.at, 1, bytes, out);
        } else if (c < 0x100) {
            (void)fprintf(out, "\\x%02x", c);
        } else {
            (void)fprintf(out, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        }
        text = text_after(text, bytes > 0 ? bytes : 1);
    }
}

void yaml_put(FILE *out, struct weir_text text)
{
    if (is_plain(text)) {
        (void)fwrite(text.at, 1, text.len, out);
    } else if (!is_visible(text)) {
        (void)fputc('"', out);
        put_escaped(out, text);
        (void)fputc('"', out);
    } else {
        (void)fputc('\'', out);
        for (size_t i = 0; i < text.len; i++) {
            (void)fputs(text.at[i] == '\'' ? "'" : "", out);
            (void)fputc(text.at[i], out);
        }
        (void)fputc('\'', out);
    }
}

void yaml_put_list(FILE *out, const struct texts *texts)
{
    (void)fputc('[', out);
    for (size_t i = 0; i < texts->count; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        yaml_put(out, texts->at[i]);
    }
    (void)fputc(']', out);
}

void yaml_put_node(FILE *out, const struct node *node)
{
    bool map = node->kind == NODE_MAP;
    if (node->kind == NODE_SCALAR) {
        yaml_put(out, node->scalar);
        return;
    }
    (void)fputc(map ? '{' : '[', out);
    for (size_t i = 0; i < node->count; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        if (map) {
            yaml_put(out, node->keys[i]->scalar);
            (void)fputs(": ", out);
        }
        yaml_put_node(out, node->items[i]);
    }
    (void)fputc(map ? '}' : ']', out);
}
