/*
 * Texts of a hostile store: common/redact.c. The first byte says how much may be shown. Whatever
 * the text is, the secret is not in what is shown, also not percent-encoded.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "a@B%41/"

/* Returns whether the text has the secret, as it is or percent-encoded. */
static bool has_secret(const char *text, size_t len)
{
    for (size_t begin = 0; begin < len; begin++) {
        size_t at = begin;
        size_t n = 0;
        for (; n < strlen(SECRET) && at < len; n++) {
            if (text_percent_byte((struct weir_text){text, len}, at) == SECRET[n]) {
                at += 3;
            } else if (text[at] == SECRET[n]) {
                at++;
            } else {
                break;
            }
        }
        if (n == strlen(SECRET)) {
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct redact redact;
    char out[256];
    if (size == 0) {
        return 0;
    }
    if (redact.count == 0) {
        if (redact_init(&redact) != 0) {
            abort();
        }
        redact_learn(&redact, TEXT(SECRET));
    }
    struct weir_text from = {(const char *)data + 1, size - 1};
    struct weir_text shown = redact_write(&redact, from, out, data[0]);
    if (shown.len > data[0] || has_secret(shown.at, shown.len)) {
        abort();
    }
    (void)redact_finds(&redact, from);
    return 0;
}
