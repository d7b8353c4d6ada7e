/*
 * A string of bytes drives calls on a small limiter: the first bytes choose it,
 * each call takes what it needs. Every answer must be sound, and the retry of a
 * denied call exact.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PERIOD WEIR_SECOND
#define KEYS 8

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

struct run {
    struct input in;
    struct weir *w;
    int algorithm;
    uint64_t now;
    struct weir_reservation held[4];
};

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static unsigned byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Small numbers often, any number sometimes. */
static uint64_t number(struct input *in)
{
    unsigned kind = byte(in);
    uint64_t x = 0;
    if (kind < 160) {
        return kind % 16;
    }
    for (unsigned i = 0; i < kind % 9; i++) {
        x = x << 8 | byte(in);
    }
    return kind < 200 ? x : UINT64_MAX - x;
}

static void require_sound(const struct weir_answer *a, uint64_t cost, int mode)
{
    require(a->remaining <= a->quota && a->quota >= 1 && a->reserved == 0);
    require(a->verdict >= WEIR_ALLOW && a->verdict <= WEIR_NEVER);
    require(a->verdict != WEIR_ALLOW || a->retry_after_ns == 0);
    require(a->verdict != WEIR_DENY || (a->retry_after_ns >= 1 && a->delay_ns == 0));
    require(a->verdict != WEIR_NEVER || a->retry_after_ns == WEIR_FOREVER);
    require(a->verdict != WEIR_NEVER || (cost > a->quota && mode != WEIR_UP_TO));
    bool charged =
        a->verdict == WEIR_ALLOW && mode != WEIR_PEEK && (a->flags & WEIR_FLAG_FULL) == 0;
    require(charged ? a->granted >= 1 && a->granted <= cost : a->granted == 0);
    require(!charged || mode == WEIR_UP_TO || a->granted == cost);
}

/*
 * With nobody else around, a denied call is allowed at its retry and not before.
 * (A peek, and a call stopped by a block, may look at a state of a far future
 * that only a call that reaches it will pull down.)
 */
static void require_exact_retry(struct run *r, const struct weir_question *ask,
                                const struct weir_answer *a)
{
    struct weir_question peek = *ask;
    struct weir_answer then;
    if (a->verdict != WEIR_DENY || ask->mode != WEIR_CHECK || a->flags != 0) {
        return;
    }
    peek.mode = WEIR_PEEK;
    if (weir_ask_at(r->w, &peek, r->now + a->retry_after_ns, &then) == 0) {
        require(then.verdict == WEIR_ALLOW);
        require(weir_ask_at(r->w, &peek, r->now + a->retry_after_ns - 1, &then) == 0);
        require(then.verdict == WEIR_DENY);
    }
}

static void ask(struct run *r, const char *key)
{
    struct weir_answer a;
    struct weir_question q = {.key = key, .key_len = 1, .cost = number(&r->in)};
    q.mode = (int)(byte(&r->in) % 3);
    q.max_wait_ns = byte(&r->in) % 4 == 0 ? number(&r->in) : 0;
    int e = weir_ask_at(r->w, &q, r->now, &a);
    require(e == 0 || e == WEIR_ETIME || e == WEIR_ECOST || e == WEIR_ENOTSUP || e == WEIR_EINVAL);
    if (e == 0) {
        require_sound(&a, q.cost, q.mode);
        require(q.max_wait_ns == 0 || a.delay_ns <= q.max_wait_ns);
        require_exact_retry(r, &q, &a);
    }
}

static void reserve(struct run *r, const char *key)
{
    struct weir_answer a;
    struct weir_reservation *h = &r->held[byte(&r->in) % 4];
    uint64_t amount = number(&r->in);
    if (weir_reserve_at(r->w, key, 1, amount, number(&r->in), r->now, h, &a) == 0) {
        require_sound(&a, amount, WEIR_CHECK);
    }
}

static void settle(struct run *r)
{
    struct weir_answer a;
    struct weir_reservation *h = &r->held[byte(&r->in) % 4];
    int e = weir_settle_at(r->w, h, number(&r->in), r->now, &a);
    require(e == 0 || e == WEIR_ESTALE || e == WEIR_EEXPIRED || e == WEIR_ETIME || e == WEIR_EFULL);
    if (e == 0) {
        require(weir_settle_at(r->w, h, 1, r->now, &a) == WEIR_ESTALE);
    }
}

static void several(struct run *r, const char *key)
{
    static const char other[] = "z";
    struct weir_part parts[2];
    struct weir_answer a;
    memset(parts, 0, sizeof parts);
    for (int i = 0; i < 2; i++) {
        parts[i].limiter = r->w;
        parts[i].ask = (struct weir_question){.key = i == 0 ? key : other, .key_len = 1};
        parts[i].ask.cost = number(&r->in);
    }
    int e = weir_check_several_at(parts, 2, r->now, &a);
    if (e == 0) {
        require(a.limit < 2 && (a.flags & WEIR_FLAG_SPURIOUS) == 0);
        require_sound(&a, parts[a.limit].ask.cost, WEIR_CHECK);
    }
}

static void verb(struct run *r, const char *key, unsigned which)
{
    struct weir_answer a;
    uint64_t x = number(&r->in);
    switch (which) {
    case 0:
        (void)weir_refund_at(r->w, key, 1, x, number(&r->in), r->now, &a);
        break;
    case 1:
        (void)weir_penalize_at(r->w, key, 1, x, r->now, &a);
        break;
    case 2:
        (void)weir_block_at(r->w, key, 1, x, r->now);
        break;
    case 3:
        (void)weir_unblock(r->w, key, 1);
        break;
    case 4:
        (void)weir_reset(r->w, key, 1);
        break;
    case 5:
        (void)weir_sweep_at(r->w, x, r->now);
        break;
    default:
        (void)weir_change(r->w, x, number(&r->in), NULL);
    }
}

static void step(struct run *r)
{
    unsigned op = byte(&r->in);
    char key[2] = {(char)('a' + op / 16 % KEYS), 0};
    switch (op % 16) {
    case 0:
        r->now += number(&r->in) * (PERIOD / 8);
        break;
    case 1:
        r->now = number(&r->in);
        break;
    case 2:
        reserve(r, key);
        break;
    case 3:
        settle(r);
        break;
    case 4:
        several(r, key);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        verb(r, key, op % 16 - 5 + (op & 128 ? 3 : 0));
        break;
    default:
        ask(r, key);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run r = {.in = {data, data + size}, .now = 100 * PERIOD};
    struct weir_options o = WEIR_OPTIONS_INIT;
    unsigned kind = byte(&r.in);
    r.algorithm = o.algorithm = (int)(1 + kind % 5);
    o.on_full = (int)(kind / 5 % 3);
    o.hash = (int)(kind / 15 % 2);
    o.align = o.algorithm == WEIR_FIXED_WINDOW && kind / 30 % 2;
    o.count = 1 + byte(&r.in) % 20;
    o.period_ns = PERIOD;
    o.queue = o.algorithm == WEIR_LEAKY_BUCKET ? byte(&r.in) % 10 : 0;
    o.max_keys = 1 + byte(&r.in) % 8;
    o.flags = WEIR_EXPLICIT_TIME;
    require(weir_open(&r.w, &o, NULL) == 0);
    while (r.in.at < r.in.end) {
        step(&r);
    }
    weir_close(r.w);
    return 0;
}
