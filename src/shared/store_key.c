#include "shared/store_key.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "redis/breaker.h"
#include "shared/sha.h"

_Static_assert(STORE_KEY_MAX <= BREAKER_KEY_MAX, "a breaker can remember any key");

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
