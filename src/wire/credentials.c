#include "wire/credentials.h"

/* ---- base64 (RFC 4648) ---- */

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != 0 ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes into `room`, of CREDENTIALS_BASIC_MAX bytes; returns false if it is not
 * base64, or too long. */
static bool decode(struct weir_text text, char *room, struct weir_text *out)
{
    unsigned bits = 0;
    unsigned have = 0;
    size_t n = 0;
    for (unsigned pads = 0; pads < 2 && text.len > 0 && text.at[text.len - 1] == '='; pads++) {
        text.len--;
    }
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_of(text.at[i]);
        if (digit < 0 || n == CREDENTIALS_BASIC_MAX) {
            return false;
        }
        bits = bits << 6 | (unsigned)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            room[n++] = (char)(bits >> have);
        }
    }
    *out = (struct weir_text){room, n};
    return true;
}

/* ---- credentials ---- */

/* Finds the text after a scheme such as "Basic ", in upper or lower case; returns false if the
 * value begins with something else. */
static bool after_scheme(struct weir_text value, const char *scheme, struct weir_text *rest)
{
    size_t n = strlen(scheme);
    if (value.len <= n || value.at[n] != ' ' ||
        !text_is_word((struct weir_text){value.at, n}, scheme)) {
        return false;
    }
    *rest = text_trim(text_after(value, n));
    return true;
}

static bool read_basic(struct weir_text coded, struct credentials *c)
{
    struct weir_text pair;
    if (!decode(coded, c->room, &pair)) {
        return false;
    }
    c->secret = pair;
    c->user = text_cut(&c->secret, ':');
    return c->user.len < pair.len;
}

bool credentials_read(struct weir_text authorization, struct weir_text weir_secret,
                      struct credentials *c)
{
    struct weir_text coded;
    c->user = (struct weir_text){"", 0};
    c->secret = weir_secret;
    return c->secret.at != NULL || after_scheme(authorization, "BEARER", &c->secret) ||
           (after_scheme(authorization, "BASIC", &coded) && read_basic(coded, c));
}
