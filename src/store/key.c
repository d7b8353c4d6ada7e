#include "store/key.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "store/sha.h"

static bool has_brace(struct text t)
{
    return t.len != 0 && (memchr(t.at, '{', t.len) != NULL || memchr(t.at, '}', t.len) != NULL);
}

static int check(const char *what, struct text t, size_t most, struct weir_error *error)
{
    if (t.len > most) {
        return fail(error, WEIR_EINVAL, "the %s has %zu bytes, expected at most %zu", what, t.len,
                    most);
    }
    if (has_brace(t)) {
        return fail(error, WEIR_EINVAL,
                    "the %s '%.*s' has a brace, which would say where a key lies: expected none",
                    what, TEXT_ARGS(t));
    }
    return 0;
}

int store_key_head(struct text prefix, struct text limit, const struct store_params *params,
                   struct store_key_head *head, struct weir_error *error)
{
    int e = check("prefix", prefix, STORE_PREFIX_MAX, error);
    e = e != 0 ? e : check("name of the limit", limit, STORE_LIMIT_MAX, error);
    if (e == 0 && limit.len == 0) {
        e = fail(error, WEIR_EINVAL, "the name of the limit is empty");
    }
    if (e != 0) {
        return e;
    }
    head->len = (size_t)snprintf(head->at, sizeof head->at, "%.*s:" STORE_VERSION ":%.*s:%s:{",
                                 TEXT_ARGS(prefix), TEXT_ARGS(limit), params->kind);
    return 0;
}

static void add(struct store_key *out, struct text t)
{
    memcpy(out->at + out->len, t.at, t.len);
    out->len += t.len;
}

static void add_subject(struct store_key *out, struct text subject)
{
    if (subject.len <= STORE_RAW_MAX &&
        (subject.len == 0 || memchr(subject.at, '}', subject.len) == NULL)) {
        add(out, TEXT("r"));
        if (subject.len != 0) {
            add(out, subject);
        }
        return;
    }
    unsigned char hash[SHA256_SIZE];
    char digits[33];
    sha256(subject, hash);
    hex_digits(hash, 16, digits);
    add(out, TEXT("h"));
    add(out, text_of(digits));
}

void store_key(const struct store_key_head *head, struct text shard, struct text key,
               struct store_key *out)
{
    out->len = 0;
    add(out, (struct text){head->at, head->len});
    add_subject(out, shard.at != NULL ? shard : key);
    add(out, TEXT("}"));
    if (shard.at != NULL) {
        add_subject(out, key);
    }
}

/* ---- slots ---- */

/* CRC16-XMODEM: polynomial 0x1021, from 0, bit by bit. A key is a few dozen bytes. */
static uint16_t crc16(struct text t)
{
    unsigned crc = 0;
    for (size_t i = 0; i < t.len; i++) {
        crc ^= (unsigned)(unsigned char)t.at[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021u : 0);
        }
        crc &= 0xffff;
    }
    return (uint16_t)crc;
}

unsigned store_slot(struct text key)
{
    const char *open = key.len != 0 ? memchr(key.at, '{', key.len) : NULL;
    if (open != NULL) {
        struct text rest = {open + 1, key.len - (size_t)(open + 1 - key.at)};
        const char *close = rest.len != 0 ? memchr(rest.at, '}', rest.len) : NULL;
        if (close != NULL && close != rest.at) {
            key = (struct text){rest.at, (size_t)(close - rest.at)};
        }
    }
    return crc16(key) % STORE_SLOTS;
}
