/*
 * The first byte is the room, the rest a key: its text fits, is terminated, shows nothing but
 * visible characters, and a longer room only ever shows more of it.
 */
#include <stdlib.h>
#include <string.h>

#include <weir_rules.h>

#include "common/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void require_visible(struct weir_text text)
{
    while (text.len > 0) {
        uint32_t c = 0;
        size_t bytes = utf8_next(text, &c);
        require(bytes > 0 && utf8_visible(c));
        text = text_after(text, bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t room = data[0];
    size_t whole_room = 4 * size + 600; /* every byte an escape; names and addresses besides */
    char *text = malloc(room + 1);
    char *whole = malloc(whole_room);
    require(text != NULL && whole != NULL);
    text[room] = '#';
    size_t len = weir_rules_key_text(data + 1, size - 1, text, room);
    size_t whole_len = weir_rules_key_text(data + 1, size - 1, whole, whole_room);
    require(text[room] == '#' && whole_len < whole_room && strlen(whole) == whole_len);
    require_visible((struct weir_text){whole, whole_len});
    require(room == 0 ? len == 0 : len < room && strlen(text) == len);
    if (room > whole_len) {
        require(strcmp(text, whole) == 0);
    } else if (room > 3) {
        require(strcmp(text + len - 3, "...") == 0 && memcmp(text, whole, len - 3) == 0);
        require_visible((struct weir_text){text, len});
    }
    free(text);
    free(whole);
    return 0;
}
