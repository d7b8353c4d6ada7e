#include "shared/script.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/maths.h"
#include "shared/lua.h"
#include "shared/sha.h"
#include "wire/resp.h"

/* ---- the scripts ---- */

enum {
#define PIECE(name) PIECE_##name,
    LUA_PIECES(PIECE)
#undef PIECE
        PIECES
};

#define PIECE(name) (1u << PIECE_##name)
#define EVERYWHERE (PIECE(common) | PIECE(decide))
#define BUCKETS (EVERYWHERE | PIECE(bucket))

/* The first script is for several algorithms. The next are in the order of enum weir_algorithm,
 * then the leased ones, known by SCRIPT_LEASED_... The last does not decide. */
static const struct {
    const char *name;
    unsigned pieces; /* besides the clock */
} rows[SCRIPT_COUNT] = {
    {"several", (1u << PIECES) - 1 - PIECE(members)},
    {"token_bucket", BUCKETS | PIECE(token_bucket) | PIECE(sync)},
    {"leaky_bucket", BUCKETS | PIECE(leaky_bucket)},
    {"fixed_window", EVERYWHERE | PIECE(fixed_window) | PIECE(sync)},
    {"sliding_window", EVERYWHERE | PIECE(sliding_window) | PIECE(sync)},
    {"sliding_log", EVERYWHERE | PIECE(sliding_log)},
    {"leased_bucket", BUCKETS | PIECE(token_bucket) | PIECE(lease) | PIECE(leased_bucket)},
    {"leased_window", EVERYWHERE | PIECE(fixed_window) | PIECE(lease) | PIECE(leased_window)},
    {"members", PIECE(members)},
};
#undef PIECE

_Static_assert(WEIR_TOKEN_BUCKET == 1 && WEIR_SLIDING_LOG == 5, "rows are by algorithm");

static void name_pieces(const struct text *clock, struct text piece[PIECES])
{
#define PIECE(name) piece[PIECE_##name] = (struct text){lua_##name, lua_##name##_size};
    LUA_PIECES(PIECE)
#undef PIECE
    if (clock != NULL) {
        piece[PIECE_clock] = *clock;
    }
}

static char *put_together(const struct text piece[PIECES], size_t row, char *at, struct script *out)
{
    unsigned char hash[SHA1_SIZE];
    out->name = rows[row].name;
    out->text = (struct text){at, 0};
    for (unsigned i = 0; i < PIECES; i++) {
        if (i == PIECE_clock || (rows[row].pieces >> i & 1) != 0) {
            memcpy(at, piece[i].at, piece[i].len);
            at += piece[i].len;
        }
    }
    out->text.len = (size_t)(at - out->text.at);
    sha1(out->text, hash);
    hex_digits(hash, sizeof hash, out->sha1);
    return at;
}

int scripts_init(struct scripts *s, const struct text *clock)
{
    struct text piece[PIECES];
    size_t size = 0;
    name_pieces(clock, piece);
    for (size_t i = 0; i < PIECES; i++) {
        size += piece[i].len;
    }
    s->memory = malloc(size * SCRIPT_COUNT);
    if (s->memory == NULL) {
        return WEIR_ENOMEM;
    }
    char *at = s->memory;
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        at = put_together(piece, i, at, &s->row[i]);
    }
    return 0;
}

void scripts_finish(struct scripts *s)
{
    free(s->memory);
    s->memory = NULL;
}

const struct script *script_members(const struct scripts *s)
{
    return &s->row[SCRIPT_COUNT - 1];
}

/* Returns the number of the operations that read and write a state: it names them in the scripts,
 * and is the index of their script in rows[]. */
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

const struct script *script_lease(const struct scripts *s, const struct store_params *params)
{
    bool bucket = params->algorithm == WEIR_TOKEN_BUCKET;
    return &s->row[bucket ? SCRIPT_LEASED_BUCKET : SCRIPT_LEASED_WINDOW];
}

/* ---- calls ---- */

/* Number of keys and verb; for each part a key and numbers. */
enum { CALL_FIXED = 2, CALL_PART = 8 };

static const char *const verbs[] = {
    [REMOTE_CHECK] = "check",     [REMOTE_PEEK] = "peek",         [REMOTE_UP_TO] = "upto",
    [REMOTE_REFUND] = "refund",   [REMOTE_PENALIZE] = "penalize", [SCRIPT_BLOCK_UNTIL] = "block",
    [REMOTE_UNBLOCK] = "unblock", [REMOTE_RESET] = "reset",       [REMOTE_BLOCK] = "blockfor",
    [SCRIPT_LEASE] = "lease",     [SCRIPT_UNDO] = "undo",
};

unsigned script_put_numbers(struct buffer *b, const int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char digits[20];
        char *at = digits + sizeof digits;
        uint64_t rest = numbers[i] < 0 ? 0 - (uint64_t)numbers[i] : (uint64_t)numbers[i];
        do {
            *--at = (char)('0' + rest % 10);
            rest /= 10;
        } while (rest != 0);
        if (numbers[i] < 0) {
            *--at = '-';
        }
        resp_put_bulk(b, (struct text){at, (size_t)(digits + sizeof digits - at)});
    }
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

uint64_t script_offset(const struct store_params *p, struct text key)
{
    static const struct hash_secret fixed = {{0, 0}, {0}};
    if (!p->align_key) {
        return p->b;
    }
    return (p->b + mul_high(hash_sip(&fixed, key.at, key.len).low, p->a)) % p->a;
}

static void put_part(struct buffer *b, const struct store_part *part)
{
    const struct store_params *p = part->params;
    const int64_t numbers[CALL_PART - 1] = {
        keeper_of(p),
        (int64_t)p->quota,
        (int64_t)p->max_debt,
        (int64_t)p->a,
        (int64_t)script_offset(p, part->key),
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
    resp_put_bulk(b, text_of(verbs[verb]));
    for (size_t i = 0; i < n; i++) {
        put_part(b, &parts[i]);
    }
    return (unsigned)(CALL_FIXED + CALL_PART * n);
}

unsigned script_put_lease(struct buffer *b, const struct store_part *part,
                          const int64_t numbers[SCRIPT_LEASE_NUMBERS])
{
    unsigned count = script_put_arguments(b, SCRIPT_LEASE, part, 1);
    return count + script_put_numbers(b, numbers, SCRIPT_LEASE_NUMBERS);
}

void script_put_call(struct buffer *b, const struct script *script, enum script_how how,
                     unsigned verb, const struct store_part *parts, size_t n)
{
    script_put_head(b, script, how, (unsigned)(CALL_FIXED + CALL_PART * n));
    (void)script_put_arguments(b, verb, parts, n);
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

/* Returns whether a script can have made the reply. Only retry and reset may be -1 (never). */
static bool plausible(const struct store_reply *reply, size_t n)
{
    if (reply->type != ':' || reply->n != ANSWER_COUNT) {
        return false;
    }
    for (size_t i = 0; i < ANSWER_COUNT; i++) {
        int64_t least = i == AT_RETRY || i == AT_RESET ? -1 : 0;
        if (reply->integers[i] < least || reply->integers[i] > (int64_t)STORE_MOST) {
            return false;
        }
    }
    return reply->integers[AT_VERDICT] >= WEIR_ALLOW && reply->integers[AT_VERDICT] <= WEIR_NEVER &&
           reply->integers[AT_LIMIT] < (int64_t)n;
}

static uint64_t nanoseconds(int64_t us)
{
    return us < 0 ? WEIR_FOREVER : (uint64_t)us * WEIR_MICROSECOND;
}

int script_answer(const struct store_reply *reply, const struct store_part *parts, size_t n,
                  struct weir_answer *answer, uint64_t *stamp_us)
{
    const int64_t *x = reply->integers;
    if (!plausible(reply, n)) {
        return WEIR_EIO;
    }
    *answer = (struct weir_answer){
        .verdict = (int)x[AT_VERDICT],
        .flags = x[AT_BLOCKED] != 0 ? WEIR_FLAG_BLOCKED : 0,
        .quota = parts[x[AT_LIMIT]].params->quota,
        .remaining = (uint64_t)x[AT_REMAINING],
        .granted = (uint64_t)x[AT_GRANTED],
        .retry_after_ns = nanoseconds(x[AT_RETRY]),
        .reset_after_ns = nanoseconds(x[AT_RESET]),
        .delay_ns = nanoseconds(x[AT_DELAY]),
        .limit = (uint32_t)x[AT_LIMIT],
    };
    if (stamp_us != NULL) {
        *stamp_us = (uint64_t)x[AT_STAMP];
    }
    return 0;
}

int script_done(const struct store_reply *reply, unsigned verb)
{
    if (reply->type != ':' || reply->n != 1 || (reply->integers[0] & ~INT64_C(1)) != 0) {
        return WEIR_EIO;
    }
    bool yes = reply->integers[0] == 1;
    if (verb == SCRIPT_BLOCK_UNTIL || verb == REMOTE_BLOCK) {
        return yes ? 0 : WEIR_ETIME;
    }
    return yes;
}
