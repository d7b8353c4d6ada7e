#include <stdio.h>

#include "common/log.h"
#include "server/ask/verbs_later.h"

/* Writes the parts of a key: "alice", "tenant,alice"; cut if they are too long. */
static void join_parts(const struct weir_rules_key *key, struct verb_audit *a)
{
    size_t most = sizeof a->key;
    size_t n = 0;
    for (size_t i = 0; i < key->parts_count && n < most; i++) {
        if (i > 0) {
            a->key[n++] = ',';
        }
        size_t len = key->parts[i].len < most - n ? key->parts[i].len : most - n;
        memcpy(a->key + n, key->parts[i].at, len);
        n += len;
    }
    a->key_len = n;
}

static void copy(struct weir_rules_value from, char *to)
{
    size_t n = from.len < WEIR_RULES_NAME ? from.len : WEIR_RULES_NAME - 1;
    if (n > 0) {
        memcpy(to, from.at, n);
    }
    to[n] = 0;
}

void verb_audit_init(struct verb_audit *a, const struct verb_call *call, const struct actor *by)
{
    *a = (struct verb_audit){.verb = call->verb,
                             .role = by->role,
                             .peer = "unix",
                             .units = call->units,
                             .for_ms = call->for_ms};
    if (by->peer->family != 0) {
        (void)address_print(by->peer, a->peer);
    }
    copy(call->key.limit, a->limit);
    copy(call->key.tier, a->tier);
    join_parts(&call->key, a);
}

void verb_audit_tell(const struct verb_audit *a)
{
    const struct verb_row *row = &verb_rows[a->verb];
    struct log_field fields[8] = {
        LOG_STRING("verb", row->name),
        LOG_STRING("address", a->peer),
        LOG_STRING("role", role_names[a->role]),
        LOG_STRING("limit", a->limit),
        LOG_KEY("key", ((struct text){a->key, a->key_len})),
    };
    size_t n = 5;
    if (a->tier[0] != 0) {
        fields[n++] = LOG_STRING("tier", a->tier);
    }
    if (row->units) {
        fields[n++] = LOG_COUNT("units", a->units > INT64_MAX ? INT64_MAX : a->units);
    }
    if (row->time) {
        fields[n++] = a->for_ms > INT64_MAX ? LOG_STRING("for_ms", "forever")
                                            : LOG_COUNT("for_ms", a->for_ms);
    }
    log_event(LEVEL_AUDIT, "key changed", fields, n);
}
