#include "server/ask/reservations_id.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static const char digits[] = "0123456789abcdef";

void id_print(struct id id, char *text)
{
    for (unsigned i = 0; i < 32; i++) {
        text[i] = digits[id.word[i / 16] >> (60 - 4 * (i % 16)) & 15];
    }
    text[32] = 0;
}

bool id_parse(struct text text, struct id *id)
{
    *id = (struct id){{0, 0}};
    for (unsigned i = 0; i < 32 && text.len == 32; i++) {
        char c =
            (char)(text.at[i] >= 'A' && text.at[i] <= 'F' ? text.at[i] - 'A' + 'a' : text.at[i]);
        const char *at = c != 0 ? strchr(digits, c) : NULL;
        if (at == NULL) {
            return false;
        }
        id->word[i / 16] = id->word[i / 16] << 4 | (uint64_t)(at - digits);
    }
    return text.len == 32;
}

bool id_random(struct id *id)
{
    ssize_t n;
    do {
        n = getrandom(id, sizeof *id, 0);
    } while (n < 0 && errno == EINTR);
    return n == sizeof *id;
}
