#include "server/ask/audit.h"

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

static void copy(struct text from, char *to)
{
    size_t n = from.len < WEIR_RULES_NAME ? from.len : WEIR_RULES_NAME - 1;
    if (n > 0) {
        memcpy(to, from.at, n);
    }
    to[n] = 0;
}

void audit_init(struct audit *a, enum operation operation, const struct ask *ask,
                const struct actor *by)
{
    *a = (struct audit){.operation = operation,
                        .role = by->role,
                        .peer = "unix",
                        .units = ask->number[ASK_UNITS],
                        .for_ms = ask->number[ASK_FOR]};
    if (by->peer->family != 0) {
        (void)address_print(by->peer, a->peer);
    }
    copy(ask->text[ASK_LIMIT], a->limit);
    copy(ask->text[ASK_TIER], a->tier);
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
