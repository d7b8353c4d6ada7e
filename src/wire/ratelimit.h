/*
 * Writes the header fields that tell a client how much is left. Several formats are in use, and the
 * draft that is to replace them changes its form every few revisions.
 */
#ifndef WEIR_WIRE_RATELIMIT_H
#define WEIR_WIRE_RATELIMIT_H

#include "common/buffer.h"

/* In the order of `server.headers` in the rule file. */
enum ratelimit_format {
    RATELIMIT_IETF, /* RateLimit-Policy, RateLimit: draft-ietf-httpapi-ratelimit-headers 8 to 11 */
    RATELIMIT_X_EPOCH, /* X-RateLimit-Limit, -Remaining, -Reset in Unix seconds: GitHub, Twitter */
    RATELIMIT_X_DELTA, /* -Reset in seconds from now: Envoy, Kong, Reddit */
    RATELIMIT_OFF,
    RATELIMIT_FORMATS
};

struct ratelimit {
    struct weir_text policy; /* the name of the limit */
    uint64_t quota;
    uint64_t remaining;
    uint64_t retry_after_ms; /* 0: it was allowed, or never will be */
    uint64_t reset_after_ms;
    uint64_t now_s;     /* Unix time */
    uint64_t window_ns; /* the time that the quota is for; 0: not known */
};

/* A header field: "NAME: ", the length of its name, and a function that puts its value. Numbers
 * above the largest Integer of RFC 9651 are replaced by it. */
struct ratelimit_field {
    const char *line;
    size_t name_len;
    void (*put)(struct buffer *b, const struct ratelimit *r);
};

/* Returns the fields of a format; after the last one the line is NULL. */
const struct ratelimit_field *ratelimit_fields(enum ratelimit_format format);

/* Puts the fields as whole lines. */
void ratelimit_put(struct buffer *b, enum ratelimit_format format, const struct ratelimit *r);

/*
 * Returns a wait that is longer by 0 to `jitter` hundredths of a percent, never shorter, so that
 * clients that were denied at the same time do not all come back at the same time. `random` is any
 * number.
 */
uint64_t ratelimit_jitter(uint64_t ms, unsigned jitter, uint64_t random);

/* Puts the value of Retry-After: whole seconds, rounded up, at least 1. */
void ratelimit_put_retry_after(struct buffer *b, uint64_t ms);

#endif
