#include "common/redact.h"

#include <stdint.h>

/*
 * How much of a text is read. Of a text that is longer, the end is not shown: a secret that begins
 * there may have been cut, and would not be recognised.
 */
#define READ_MAX 4096
#define ENCODED_BYTE 3 /* "%2F" */

/* A text, or a text percent-decoded, with the place of each of its bytes in the text. */
struct view {
    struct weir_text text;
    size_t len;
    char *at; /* in `room`, with a free byte before it for mark_split() */
    char room[1 + READ_MAX];
    uint16_t begin[READ_MAX + 1]; /* the last one is the end of the text */
};

static void view_decoded(struct weir_text text, bool decode, struct view *v)
{
    size_t n = 0;
    v->text = text;
    v->at = v->room + 1;
    for (size_t i = 0; i < text.len && n < READ_MAX; n++) {
        int byte = decode ? text_percent_byte(text, i) : -1;
        v->at[n] = byte >= 0 ? (char)byte : text.at[i];
        v->begin[n] = (uint16_t)i;
        i += byte >= 0 ? ENCODED_BYTE : 1;
    }
    v->len = n;
    v->begin[n] = (uint16_t)text.len;
}

/* ---- learning ---- */

static uint64_t sum_of(const char *at, size_t len)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < len; i++) {
        sum += (unsigned char)at[i];
    }
    return sum;
}

int redact_init(struct redact *r)
{
    *r = (struct redact){.lock = PTHREAD_MUTEX_INITIALIZER};
    return hash_secret_init(&r->key);
}

static void learn_one(struct redact *r, const char *at, size_t len)
{
    struct redacted_secret s = {len, sum_of(at, len), hash_sip(&r->key, at, len)};
    bool known = len == 0;
    (void)pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < REDACT_SECRETS && !known; i++) {
        known = memcmp(&r->secrets[i], &s, sizeof s) == 0;
    }
    if (!known) {
        r->secrets[r->count++ % REDACT_SECRETS] = s;
    }
    (void)pthread_mutex_unlock(&r->lock);
}

void redact_learn(struct redact *r, struct weir_text secret)
{
    struct view decoded;
    secret.len = secret.len < REDACT_SECRET_MAX ? secret.len : REDACT_SECRET_MAX;
    learn_one(r, secret.at, secret.len);
    view_decoded(secret, true, &decoded);
    learn_one(r, decoded.at, decoded.len);
    explicit_bzero(&decoded, sizeof decoded);
}

/* ---- finding ---- */

static bool is_secret(const struct redact *r, const struct redacted_secret *s, const char *at,
                      uint64_t sum)
{
    if (sum != s->sum) {
        return false;
    }
    struct hash h = hash_sip(&r->key, at, s->len);
    return h.low == s->hash.low && h.high == s->hash.high;
}

/* Marks the text from a place up to the byte of the view. */
static void mark_up_to(const struct view *v, size_t from, size_t end, bool *marked)
{
    memset(marked + from, true, v->begin[end] - from);
}

/*
 * Marks the secret if it begins with the last digits of an escape, v->at[i], and goes on after it:
 * a reader of "%2a%40" sees "a%40" too. Puts the digits before the bytes that follow, for the hash.
 */
static void mark_split(const struct redact *r, const struct redacted_secret *s, struct view *v,
                       size_t i, size_t digits, bool *marked)
{
    size_t end = i + 1 + s->len - digits;
    size_t from = v->begin[i] + ENCODED_BYTE - digits;
    char *at = v->at + i + 1 - digits;
    char kept[2];
    if (digits > s->len || end > v->len) {
        return;
    }
    memcpy(kept, at, digits);
    memcpy(at, v->text.at + from, digits);
    if (is_secret(r, s, at, sum_of(at, s->len))) {
        mark_up_to(v, from, end, marked);
    }
    memcpy(at, kept, digits);
}

/* Marks the bytes of the text that are this secret, wherever it is in the view. */
static void mark_secret(const struct redact *r, const struct redacted_secret *s, struct view *v,
                        bool *marked)
{
    uint64_t sum = s->len <= v->len ? sum_of(v->at, s->len) : 0;
    for (size_t i = 0; s->len > 0 && i < v->len; i++) {
        bool fits = i + s->len <= v->len;
        if (fits && is_secret(r, s, v->at + i, sum)) {
            mark_up_to(v, v->begin[i], i + s->len, marked);
        }
        if (v->begin[i + 1] - v->begin[i] == ENCODED_BYTE) {
            mark_split(r, s, v, i, 1, marked);
            mark_split(r, s, v, i, 2, marked);
        }
        sum += i + s->len < v->len ? (unsigned char)v->at[i + s->len] : 0;
        sum -= fits ? (unsigned char)v->at[i] : 0;
    }
}

/* Marks what stands between "://" and the last '@' of the same word. */
static void mark_url(struct weir_text text, bool *marked)
{
    for (size_t i = 0; i + 3 <= text.len; i++) {
        if (memcmp(text.at + i, "://", 3) != 0) {
            continue;
        }
        size_t last = 0;
        for (size_t k = i + 3; k < text.len && strchr(" \t\r\n\"'`<>", text.at[k]) == NULL; k++) {
            last = text.at[k] == '@' ? k : last;
        }
        if (last > i + 3) {
            memset(marked + i + 3, true, last - i - 3);
        }
    }
}

/* Marks all secrets in a text of up to READ_MAX bytes. Returns the length of the longest secret. */
static size_t mark_all(struct redact *r, struct weir_text text, bool *marked)
{
    static const bool ways[] = {false, true};
    struct view v;
    size_t longest = 0;
    memset(marked, false, text.len);
    mark_url(text, marked);
    if (r == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&r->lock);
    for (size_t way = 0; way < sizeof ways; way++) {
        view_decoded(text, ways[way], &v);
        for (size_t i = 0; i < REDACT_SECRETS; i++) {
            mark_secret(r, &r->secrets[i], &v, marked);
            longest = r->secrets[i].len > longest ? r->secrets[i].len : longest;
        }
    }
    (void)pthread_mutex_unlock(&r->lock);
    return longest;
}

struct weir_text redact_write(struct redact *r, struct weir_text from, char *out, size_t size)
{
    bool marked[READ_MAX];
    struct weir_text text = {from.at, from.len < READ_MAX ? from.len : READ_MAX};
    size_t longest = mark_all(r, text, marked);
    size_t shown = text.len < from.len ? text.len - ENCODED_BYTE * longest : text.len;
    size_t n = 0;
    for (size_t i = 0; i < shown; i++) {
        bool begins = marked[i] && (i == 0 || !marked[i - 1]);
        struct weir_text next = !marked[i] ? (struct weir_text){&text.at[i], 1}
                                : begins   ? TEXT(REDACT_MARK)
                                           : TEXT("");
        if (n + next.len > size) {
            break;
        }
        memcpy(out + n, next.at, next.len);
        n += next.len;
    }
    return (struct weir_text){out, n};
}

bool redact_finds(struct redact *r, struct weir_text text)
{
    bool marked[READ_MAX];
    text.len = text.len < READ_MAX ? text.len : READ_MAX;
    (void)mark_all(r, text, marked);
    return memchr(marked, true, text.len) != NULL;
}
