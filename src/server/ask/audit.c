#include "server/ask/audit.h"

#include <stdio.h>

#include "common/log.h"

/* Writes the parts of a key: "alice", "tenant,alice"; cut if they are too long. */
static void join_parts(const struct ask *ask, struct audit *a)
{
    size_t most = sizeof a->key;
    size_t n = 0;
    for (size_t i = 0; i < ask->parts_count && n < most; i++) {
        if (i > 0) {
            a->key[n++] = ',';
        }
        size_t len = ask->parts[i].len < most - n ? ask->parts[i].len : most - n;
        memcpy(a->key + n, ask->parts[i].at, len);
        n += len;
    }
    a->key_len = n;
}

void audit_init(struct audit *a, enum operation operation, const struct ask *ask,
                const struct actor *by)
{
    *a = (struct audit){.operation = operation,
                        .role = by->role,
                        .units = ask->number[ASK_UNITS],
                        .for_ms = ask->number[ASK_FOR]};
    char peer[ADDRESS_MAX];
    (void)snprintf(a->peer, sizeof a->peer, "%s", peer_print(by->peer, peer));
    (void)snprintf(a->limit, sizeof a->limit, "%.*s", TEXT_ARGS(ask->text[ASK_LIMIT]));
    (void)snprintf(a->tier, sizeof a->tier, "%.*s", TEXT_ARGS(ask->text[ASK_TIER]));
    join_parts(ask, a);
}

void audit_tell(const struct audit *a)
{
    const struct operation_row *row = &operation_rows[a->operation];
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
    if ((row->members & ASK_BIT(ASK_UNITS)) != 0) {
        fields[n++] = LOG_COUNT("units", a->units > INT64_MAX ? INT64_MAX : a->units);
    }
    if ((row->members & ASK_BIT(ASK_FOR)) != 0) {
        fields[n++] = a->for_ms > INT64_MAX ? LOG_STRING("for_ms", "forever")
                                            : LOG_COUNT("for_ms", a->for_ms);
    }
    log_event(LEVEL_AUDIT, "key changed", fields, n);
}
