#include "wire/ratelimit.h"

#include <weir.h>

#include "base/maths.h"

#define INTEGER_MAX UINT64_C(999999999999999) /* the largest Integer of RFC 9651 */
#define NEVER_MS (UINT64_MAX / 1000000)       /* 64 bits of nanoseconds: never */

/* Rounds up, so that a client that waits this long has waited long enough. */
static uint64_t seconds(uint64_t ms)
{
    return ms / 1000 + (ms % 1000 != 0);
}

static void put_integer(struct buffer *b, struct weir_text before, uint64_t number)
{
    buffer_put(b, before);
    buffer_put_u64(b, min_u64(number, INTEGER_MAX));
}

/* A String of RFC 9651 has printable ASCII; other bytes become '?'. */
static void put_string(struct buffer *b, struct weir_text text)
{
    buffer_put_char(b, '"');
    if (text_is_made_of(text, "_-.")) { /* the name of a limit, nearly always */
        buffer_put(b, text);
        text.len = 0;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '"' || c == '\\') {
            buffer_put_char(b, '\\');
        }
        buffer_put_char(b, c >= ' ' && c <= '~' ? c : '?');
    }
    buffer_put_char(b, '"');
}

static void put_policy(struct buffer *b, const struct ratelimit *r)
{
    put_string(b, r->policy);
    put_integer(b, TEXT(";q="), r->quota);
    if (r->window_ns > 0) {
        put_integer(b, TEXT(";w="), r->window_ns / WEIR_SECOND + (r->window_ns % WEIR_SECOND != 0));
    }
}

/* t is the time after which another request is useful, so it is never later than Retry-After. */
static void put_state(struct buffer *b, const struct ratelimit *r)
{
    uint64_t wait_ms = r->retry_after_ms > 0 ? r->retry_after_ms : r->reset_after_ms;
    put_string(b, r->policy);
    put_integer(b, TEXT(";r="), r->remaining);
    if (wait_ms < NEVER_MS) {
        put_integer(b, TEXT(";t="), seconds(wait_ms));
    }
}

static void put_quota(struct buffer *b, const struct ratelimit *r)
{
    put_integer(b, TEXT(""), r->quota);
}

static void put_remaining(struct buffer *b, const struct ratelimit *r)
{
    put_integer(b, TEXT(""), r->remaining);
}

static void put_reset_in(struct buffer *b, const struct ratelimit *r)
{
    put_integer(b, TEXT(""), seconds(r->reset_after_ms));
}

static void put_reset_at(struct buffer *b, const struct ratelimit *r)
{
    put_integer(b, TEXT(""), add_sat(r->now_s, seconds(r->reset_after_ms)));
}

#define FIELD(name, put)                                                                           \
    {                                                                                              \
        name ": ", sizeof name - 1, put                                                            \
    }

const struct ratelimit_field *ratelimit_fields(enum ratelimit_format format)
{
    static const struct ratelimit_field fields[RATELIMIT_FORMATS][4] = {
        [RATELIMIT_IETF] = {FIELD("RateLimit-Policy", put_policy), FIELD("RateLimit", put_state)},
        [RATELIMIT_X_EPOCH] = {FIELD("X-RateLimit-Limit", put_quota),
                               FIELD("X-RateLimit-Remaining", put_remaining),
                               FIELD("X-RateLimit-Reset", put_reset_at)},
        [RATELIMIT_X_DELTA] = {FIELD("X-RateLimit-Limit", put_quota),
                               FIELD("X-RateLimit-Remaining", put_remaining),
                               FIELD("X-RateLimit-Reset", put_reset_in)},
    };
    return fields[format];
}

void ratelimit_put(struct buffer *b, enum ratelimit_format format, const struct ratelimit *r)
{
    for (const struct ratelimit_field *f = ratelimit_fields(format); f->line != NULL; f++) {
        buffer_put(b, (struct weir_text){f->line, f->name_len + 2});
        f->put(b, r);
        buffer_put(b, TEXT("\r\n"));
    }
}

uint64_t ratelimit_jitter(uint64_t ms, unsigned jitter, uint64_t random)
{
    uint64_t most = mul_div(ms, jitter, 10000);
    return add_sat(ms, mul_high(random, add_sat(most, 1)));
}

void ratelimit_put_retry_after(struct buffer *b, uint64_t ms)
{
    put_integer(b, TEXT(""), max_u64(seconds(ms), 1));
}
