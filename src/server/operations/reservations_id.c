#include "server/operations/reservations_id.h"

#include <errno.h>
#include <sys/random.h>

void id_print(struct id id, char *text)
{
    for (unsigned i = 0; i < 32; i++) {
        text[i] = "0123456789abcdef"[id.word[i / 16] >> (60 - 4 * (i % 16)) & 15];
    }
    text[32] = 0;
}

bool id_parse(struct weir_text text, struct id *id)
{
    *id = (struct id){{0, 0}};
    bool good = text.len == 32;
    for (unsigned i = 0; good && i < 32; i++) {
        unsigned digit = text_hex_digit(text.at[i]);
        id->word[i / 16] = id->word[i / 16] << 4 | (digit & 15);
        good = digit < 16;
    }
    return good;
}

bool id_random(struct id *id)
{
    ssize_t n;
    do {
        n = getrandom(id, sizeof *id, 0);
    } while (n < 0 && errno == EINTR);
    return n == sizeof *id;
}
