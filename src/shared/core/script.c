#include "shared/core/script.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/maths.h"
#include "common/sha256.h"
#include "redis/breaker.h"
#include "wire/resp.h"

/* ---- the scripts ---- */

_Static_assert(WEIR_TOKEN_BUCKET == 1 && WEIR_SLIDING_LOG == 5, "scripts are by algorithm");

/* Returns the number of the operations that read and write a state: it names them in the scripts,
 * and is the index of their script. */
static unsigned keeper_of(const struct store_params *p)
{
    bool own = p->leased && p->algorithm == WEIR_TOKEN_BUCKET;
    return own ? SCRIPT_LEASED_BUCKET : (unsigned)p->algorithm;
}

const struct script *script_for(const struct scripts *s, const struct store_part *parts, size_t n)
{
    unsigned keeper = keeper_of(parts[0].params);
    for (size_t i = 1; i < n; i++) {
        if (keeper_of(parts[i].params) != keeper) {
            return &s->row[0];
        }
    }
    return &s->row[keeper];
}

/* ---- keys ---- */

_Static_assert(STORE_KEY_MAX <= BREAKER_KEY_MAX, "a breaker can remember any key");

static bool has_brace(struct weir_text t)
{
    return t.len != 0 && (memchr(t.at, '{', t.len) != NULL || memchr(t.at, '}', t.len) != NULL);
}

static int check_name(const char *what, struct weir_text t, size_t most, struct weir_error *error)
{
    if (t.len > most) {
        return fail(error, WEIR_EINVAL, "the %s has %zu bytes, expected at most %zu", what, t.len,
                    most);
    }
    if (has_brace(t)) {
        return fail(error, WEIR_EINVAL,
                    "found a brace in the %s '%.*s', expected none: in a Cluster, braces choose "
                    "the slot of a key",
                    what, TEXT_ARGS(t));
    }
    return 0;
}

int store_key_head(struct weir_text prefix, struct weir_text limit,
                   const struct store_params *params, struct store_key *head,
                   struct weir_error *error)
{
    int e = check_name("prefix", prefix, STORE_PREFIX_MAX, error);
    e = e != 0 ? e : check_name("name of the limit", limit, STORE_LIMIT_MAX, error);
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

static void add(struct store_key *out, struct weir_text t)
{
    memcpy(out->at + out->len, t.at, t.len);
    out->len += t.len;
}

static void add_subject(struct store_key *out, struct weir_text subject)
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
    sha256(subject, hash);
    out->at[out->len++] = 'h';
    for (size_t i = 0; i < 16; i++) {
        out->at[out->len++] = "0123456789abcdef"[hash[i] >> 4];
        out->at[out->len++] = "0123456789abcdef"[hash[i] & 15];
    }
}

void store_key(const struct store_key *head, struct weir_text shard, struct weir_text key,
               struct store_key *out)
{
    out->len = 0;
    add(out, store_key_text(head));
    add_subject(out, shard.at != NULL ? shard : key);
    add(out, TEXT("}"));
    if (shard.at != NULL) {
        add_subject(out, key);
    }
}

/* ---- calls ---- */

/* Number of keys and verb; for each part a key and numbers. */
enum { CALL_FIXED = 2, CALL_PART = 8 };

static const char *const verbs[] = {
    [REMOTE_CHECK] = "check",     [REMOTE_PEEK] = "peek",         [REMOTE_UP_TO] = "upto",
    [REMOTE_REFUND] = "refund",   [REMOTE_PENALIZE] = "penalize", [SCRIPT_BLOCK_UNTIL] = "block",
    [REMOTE_UNBLOCK] = "unblock", [REMOTE_RESET] = "reset",       [REMOTE_BLOCK] = "blockfor",
    [REMOTE_BAN] = "banfor",      [SCRIPT_LEASE] = "lease",       [SCRIPT_UNDO] = "undo",
};

unsigned script_put_numbers(struct buffer *b, const int64_t *numbers, size_t n)
{
    resp_put_bulk_integers(b, numbers, n);
    return (unsigned)n;
}

/*
 * Returns microseconds, rounded up: a wait of less than one is still a wait, and a block lasts to
 * its end. The times of charges are whole microseconds already.
 */
static uint64_t microseconds(uint64_t ns)
{
    uint64_t us = ns / WEIR_MICROSECOND + (ns % WEIR_MICROSECOND != 0);
    return ns == WEIR_FOREVER ? STORE_MOST : min_u64(us, STORE_MOST);
}

uint64_t script_offset(const struct store_params *p, struct weir_text key)
{
    static const struct hash_secret fixed = {{0, 0}, {0}};
    if (!p->align_key) {
        return p->b;
    }
    return (p->b + mul_high(hash_sip(&fixed, key.at, key.len).low, p->a)) % p->a;
}

/* Returns whether the call is a CHECK that the first piece of its script may decide
 * (lua/plain_bucket.lua, plain_window.lua). */
static bool is_plain(unsigned verb, const struct store_part *parts, size_t n)
{
    const struct store_params *p = parts[0].params;
    bool bucket = keeper_of(p) == WEIR_TOKEN_BUCKET;
    bool window = p->algorithm == WEIR_FIXED_WINDOW && p->a != WEIR_MONTH / WEIR_MICROSECOND;
    return verb == REMOTE_CHECK && n == 1 && (bucket || window) && parts[0].time_ns == 0 &&
           parts[0].cost <= p->quota;
}

/* Puts the numbers of a part. The units that need not wait travel with `b` (lua/leaky_bucket.lua),
 * which is below STORE_PARTS. */
static void put_part(struct buffer *b, const struct store_part *part)
{
    const struct store_params *p = part->params;
    const int64_t numbers[CALL_PART - 1] = {
        keeper_of(p),
        (int64_t)p->quota,
        (int64_t)p->max_debt,
        (int64_t)p->a,
        (int64_t)(script_offset(p, part->key) + p->undelayed * STORE_PARTS),
        (int64_t)min_u64(part->cost, STORE_MOST),
        (int64_t)microseconds(part->time_ns),
    };
    (void)script_put_numbers(b, numbers, CALL_PART - 1);
}

unsigned script_put_arguments(struct buffer *b, unsigned verb, const struct store_part *parts,
                              size_t n)
{
    (void)script_put_numbers(b, &(int64_t){(int64_t)n}, 1);
    for (size_t i = 0; i < n; i++) {
        resp_put_bulk(b, parts[i].key);
    }
    resp_put_bulk(b, is_plain(verb, parts, n) ? TEXT("plain") : text_of(verbs[verb]));
    for (size_t i = 0; i < n; i++) {
        put_part(b, &parts[i]);
    }
    return (unsigned)(CALL_FIXED + CALL_PART * n);
}

/* ---- answers ---- */

enum {
    AT_VERDICT,
    AT_BLOCKED,
    AT_REMAINING,
    AT_GRANTED,
    AT_RETRY,
    AT_RESET,
    AT_DELAY,
    AT_STAMP,
    AT_LIMIT,
    ANSWER_COUNT
};

_Static_assert((int)ANSWER_COUNT == (int)SCRIPT_ANSWER_COUNT &&
                   (int)AT_STAMP == (int)SCRIPT_ANSWER_STAMP,
               "what else a script says is behind them");

/* The numbers of the limit that clients may be told are in this order after an answer. */
static const unsigned told_at[] = {AT_VERDICT, AT_BLOCKED, AT_REMAINING,
                                   AT_RETRY,   AT_RESET,   AT_LIMIT};

enum { TOLD_COUNT = sizeof told_at / sizeof told_at[0] };

_Static_assert(ANSWER_COUNT + TOLD_COUNT == SCRIPT_TOLD_COUNT &&
                   (int)SCRIPT_TOLD_COUNT <= STORE_INTEGERS_MAX,
               "both are read at once");

/* Sets the numbers that follow an answer as if they were one. */
static void told_numbers(const struct store_reply *reply, int64_t x[ANSWER_COUNT])
{
    memset(x, 0, ANSWER_COUNT * sizeof *x);
    for (size_t i = 0; i < TOLD_COUNT; i++) {
        x[told_at[i]] = reply->integers[ANSWER_COUNT + i];
    }
}

/* Returns whether a script can have said these numbers of one of n parts. Only retry and reset may
 * be -1 (never). */
static bool plausible(const int64_t *x, size_t n)
{
    for (size_t i = 0; i < ANSWER_COUNT; i++) {
        int64_t least = i == AT_RETRY || i == AT_RESET ? -1 : 0;
        if (x[i] < least || x[i] > (int64_t)STORE_MOST) {
            return false;
        }
    }
    return x[AT_VERDICT] >= WEIR_ALLOW && x[AT_VERDICT] <= WEIR_NEVER && x[AT_LIMIT] < (int64_t)n;
}

static bool plausible_reply(const struct store_reply *reply, size_t n)
{
    int64_t told[ANSWER_COUNT];
    if (reply->type != ':' || (reply->n != ANSWER_COUNT && reply->n != SCRIPT_TOLD_COUNT) ||
        !plausible(reply->integers, n)) {
        return false;
    }
    if (reply->n == ANSWER_COUNT) {
        return true;
    }
    told_numbers(reply, told);
    return plausible(told, n);
}

static uint64_t nanoseconds(int64_t us)
{
    return us < 0 ? WEIR_FOREVER : (uint64_t)us * WEIR_MICROSECOND;
}

static struct weir_answer answer_of(const int64_t *x, const struct store_part *parts)
{
    return (struct weir_answer){
        .verdict = (int)x[AT_VERDICT],
        .flags = (x[AT_BLOCKED] != 0 ? WEIR_FLAG_BLOCKED : 0) |
                 (x[AT_BLOCKED] > 1 ? WEIR_FLAG_BANNED : 0),
        .quota = parts[x[AT_LIMIT]].params->quota,
        .remaining = (uint64_t)x[AT_REMAINING],
        .granted = (uint64_t)x[AT_GRANTED],
        .retry_after_ns = nanoseconds(x[AT_RETRY]),
        .reset_after_ns = nanoseconds(x[AT_RESET]),
        .delay_ns = nanoseconds(x[AT_DELAY]),
        .limit = (uint32_t)x[AT_LIMIT],
    };
}

int script_answer(const struct store_reply *reply, const struct store_part *parts, size_t n,
                  struct weir_answer *answer, uint64_t *stamp_us)
{
    if (reply->type == ':' && reply->n == SCRIPT_PLAIN_COUNT && n == 1) {
        return script_plain_answer(reply->integers, &parts[0], answer, stamp_us);
    }
    if (!plausible_reply(reply, n)) {
        return WEIR_EIO;
    }
    *answer = answer_of(reply->integers, parts);
    if (stamp_us != NULL) {
        *stamp_us = (uint64_t)reply->integers[AT_STAMP];
    }
    return 0;
}

bool script_told(const struct store_reply *reply, const struct store_part *parts,
                 struct weir_answer *answer)
{
    int64_t told[ANSWER_COUNT];
    if (reply->n != SCRIPT_TOLD_COUNT) {
        return false;
    }
    told_numbers(reply, told);
    *answer = answer_of(told, parts);
    return true;
}

bool script_says_full(const struct store_reply *reply, size_t n, uint64_t *absent)
{
    if (reply->type != ':' || reply->n != 2 || reply->integers[0] != -1 || reply->integers[1] < 1 ||
        (uint64_t)reply->integers[1] >> n != 0) {
        return false;
    }
    *absent = (uint64_t)reply->integers[1];
    return true;
}

int script_done(const struct store_reply *reply, unsigned verb)
{
    if (reply->type != ':' || reply->n != 1 || (reply->integers[0] & ~INT64_C(1)) != 0) {
        return WEIR_EIO;
    }
    bool yes = reply->integers[0] == 1;
    if (verb == SCRIPT_BLOCK_UNTIL || verb == REMOTE_BLOCK || verb == REMOTE_BAN) {
        return yes ? 0 : WEIR_ETIME;
    }
    return yes;
}
