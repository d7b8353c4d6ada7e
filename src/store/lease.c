#include "store/lease.h"

#include "base/atomic.h"
#include "base/maths.h"
#include "store/lease_size.h"

#define DRIFT_PART 100u /* of a life, that clocks may drift apart (L1) */
#define RETRY_LEAST WEIR_MICROSECOND
#define LINGER_NS (10 * WEIR_MILLISECOND) /* behind a denial, while the next answer is on its way */

static const struct store_params *params_of(const struct lease_entry *e)
{
    return &store_limit_numbers(e->limit)->params;
}

static uint64_t until(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns == WEIR_FOREVER ? WEIR_FOREVER : sub_floor0(at_ns, now_ns);
}

/* ---- calls ---- */

static void fill(struct lease_call *call, struct store_limit *limit, const uint64_t hash[2],
                 uint64_t cost, uint64_t now_ns)
{
    *call = (struct lease_call){
        .limit = limit, .hash = {hash[0], hash[1]}, .made_ns = now_ns, .cost = cost};
    store_limit_hold(limit);
}

/* What is out is the call's to tell of, from now on: should it be lost, nobody else may (L2). */
static void make_call(struct lease_stripe *s, struct lease_entry *e, uint64_t cost, uint64_t want,
                      bool keep, uint64_t now_ns, struct lease_call *call)
{
    fill(call, e->limit, e->hash, cost, now_ns);
    memcpy(call->key.at, e->key, e->key_len);
    call->key.len = e->key_len;
    call->id = ++s->calls;
    call->want = want;
    if (e->mark != 0) {
        call->lease = e->mark;
        call->held = e->held;
        call->keep = keep && now_ns < e->expires_ns ? e->left : 0;
        call->back = e->left - call->keep;
        e->left = call->keep;
        e->mark = 0;
        e->held = 0;
    }
    e->flight = call->id;
    e->drop = false;
    list_take(&e->ready);
}

/* A question alone: nothing is settled, nothing taken out. */
static void make_plain(struct store_limit *limit, struct text shard, struct text key,
                       const uint64_t hash[2], uint64_t cost, uint64_t now_ns,
                       struct lease_call *call)
{
    fill(call, limit, hash, cost, now_ns);
    store_key(&limit->head, shard, key, &call->key);
}

const struct script *lease_script(const struct scripts *s, const struct lease_call *call)
{
    return script_lease(s, &store_limit_numbers(call->limit)->params);
}

void lease_put_arguments(const struct lease_call *call, struct buffer *b, unsigned *count)
{
    const uint64_t numbers[SCRIPT_LEASE_NUMBERS] = {call->want, call->lease, call->held, call->back,
                                                    call->keep};
    struct store_part part = {
        .params = &store_limit_numbers(call->limit)->params,
        .key = store_key_text(&call->key),
        .cost = call->cost,
    };
    *count = script_put_lease(b, &part, numbers);
}

/* ---- questions ---- */

static uint64_t to_spend(const struct lease_entry *e, uint64_t now_ns)
{
    return now_ns < e->expires_ns && !e->drop ? e->left : 0;
}

static void answer_from_lease(const struct lease_entry *e, uint64_t cost, uint64_t now_ns,
                              struct weir_answer *answer)
{
    *answer = (struct weir_answer){
        .verdict = WEIR_ALLOW,
        .quota = e->quota,
        .remaining = e->left + e->rest,
        .granted = cost,
        .reset_after_ns = until(e->reset_at_ns, now_ns),
    };
}

/*
 * The store has denied as much, a moment ago. And when that moment is over, one question goes there
 * again: the others are denied until its answer is here, or all that come meanwhile would go too.
 */
static bool is_denied(const struct lease_entry *e, uint64_t cost, uint64_t now_ns)
{
    uint64_t linger = e->flight != 0 ? LINGER_NS : 0;
    return e->denied_cost != 0 && cost >= e->denied_cost && cost <= e->quota &&
           now_ns < add_sat(e->denied_until_ns, linger);
}

static void answer_from_denial(const struct lease_entry *e, uint64_t now_ns,
                               struct weir_answer *answer)
{
    *answer = (struct weir_answer){
        .verdict = WEIR_DENY,
        .flags = e->denied_flags,
        .quota = e->quota,
        .remaining = to_spend(e, now_ns),
        .retry_after_ns = max_u64(until(e->retry_at_ns, now_ns), RETRY_LEAST),
        .reset_after_ns = until(e->reset_at_ns, now_ns),
    };
}

static bool wants_renewal(const struct lease_entry *e, uint64_t now_ns)
{
    return (e->left < e->renew_below || now_ns >= e->renew_ns) && e->flight == 0;
}

/* False: what is left is enough for the demand. */
static bool renew(struct leases *l, struct lease_stripe *s, struct lease_entry *e, uint64_t now_ns,
                  struct lease_call *call)
{
    uint64_t want = lease_want(e, params_of(e), 0, now_ns);
    bool enough = want <= e->left && now_ns < e->renew_ns;
    if (enough || load_relaxed(&l->stopping) != 0) {
        e->renew_below = e->left / 2;
        return false;
    }
    make_call(s, e, 0, max_u64(want, e->left), true, now_ns, call);
    return true;
}

static unsigned spend(struct leases *l, struct lease_stripe *s, struct lease_entry *e,
                      uint64_t cost, uint64_t now_ns, struct weir_answer *answer,
                      struct lease_call *call)
{
    e->left -= cost;
    answer_from_lease(e, cost, now_ns, answer);
    if (!wants_renewal(e, now_ns)) {
        return LEASE_ANSWERED;
    }
    if (call == NULL) {
        lease_make_ready(s, e);
        return LEASE_ANSWERED;
    }
    return renew(l, s, e, now_ns, call) ? LEASE_ANSWERED | LEASE_SEND : LEASE_ANSWERED;
}

/* L6. More than the quota is never allowed: no reason to give back what is there. */
static bool ask_store(struct leases *l, struct lease_stripe *s, struct lease_entry *e,
                      uint64_t cost, uint64_t now_ns, struct lease_call *call)
{
    const struct store_params *p = params_of(e);
    if (e->flight != 0 || cost > p->quota) {
        return false;
    }
    uint64_t want = load_relaxed(&l->stopping) != 0 ? 0 : lease_want(e, p, cost, now_ns);
    if (want == 0 && e->mark == 0) {
        return false;
    }
    make_call(s, e, cost, want, false, now_ns, call);
    return true;
}

unsigned lease_ask(struct leases *l, struct store_limit *limit, struct text shard, struct text key,
                   uint64_t cost, uint64_t now_ns, struct weir_answer *answer,
                   struct lease_call *call)
{
    struct hash h = lease_hash(l, limit->id, shard, key);
    const uint64_t hash[2] = {h.low, h.high};
    struct lease_stripe *s = lease_lock(l, hash, &now_ns);
    struct lease_entry *e = lease_find(s, hash);
    unsigned done = 0;
    if (e == NULL && call != NULL) {
        e = lease_make(s, hash, limit, shard, key, now_ns);
    }
    if (e != NULL) {
        bool here = to_spend(e, now_ns) >= cost;
        bool denied = !here && is_denied(e, cost, now_ns);
        if (here || denied || call != NULL) {
            lease_count(e, cost, now_ns);
        }
        if (here) {
            done = spend(l, s, e, cost, now_ns, answer, call);
        } else if (denied) {
            answer_from_denial(e, now_ns, answer);
            done = LEASE_ANSWERED;
        } else if (call != NULL && ask_store(l, s, e, cost, now_ns, call)) {
            done = LEASE_SEND;
        }
    }
    lease_unlock(s);
    if (done == 0 && call != NULL) {
        make_plain(limit, shard, key, hash, cost, now_ns, call);
        done = LEASE_SEND;
    }
    return done;
}

/* ---- what comes back ---- */

enum { AT_GRANTED = SCRIPT_ANSWER_COUNT, AT_MARK, AT_LIFE, AT_KEPT };

/* Units that are the node's under the new mark. */
static uint64_t held_now(const struct lease_call *call, const struct store_reply *reply)
{
    bool kept = reply->integers[AT_KEPT] != 0 && call->lease != 0;
    return (uint64_t)reply->integers[AT_GRANTED] + (kept ? call->keep : 0);
}

static bool is_lease(const struct lease_call *call, const struct store_reply *reply)
{
    if (reply->type != ':' || reply->n != SCRIPT_LEASE_COUNT) {
        return false;
    }
    for (unsigned i = AT_GRANTED; i <= AT_KEPT; i++) {
        if (reply->integers[i] < 0 || reply->integers[i] > (int64_t)STORE_MOST) {
            return false;
        }
    }
    return (uint64_t)reply->integers[AT_GRANTED] <= call->want && reply->integers[AT_KEPT] <= 1 &&
           (reply->integers[AT_MARK] != 0) == (held_now(call, reply) != 0);
}

static int read_answer(const struct lease_call *call, const struct store_reply *reply,
                       struct weir_answer *answer)
{
    struct store_part part = {.params = &store_limit_numbers(call->limit)->params};
    if (!is_lease(call, reply)) {
        return WEIR_EIO;
    }
    struct store_reply first = *reply;
    first.n = SCRIPT_ANSWER_COUNT;
    return script_answer(&first, &part, 1, answer, NULL);
}

static void note_denial(struct lease_entry *e, uint64_t cost, uint64_t retry_ns,
                        const struct weir_answer *a, uint64_t now_ns)
{
    e->denied_cost = cost;
    e->denied_flags = a->flags;
    e->denied_until_ns = add_sat(now_ns, lease_pause(e->limit, params_of(e), a->flags, retry_ns));
    e->retry_at_ns = add_sat(now_ns, retry_ns);
}

/* A store that has nothing left would deny the next question: as good as a denial of it. */
static void note_answer(struct lease_entry *e, const struct lease_call *call,
                        const struct weir_answer *a, uint64_t now_ns)
{
    e->quota = a->quota;
    e->rest = a->remaining;
    e->reset_at_ns = add_sat(now_ns, a->reset_after_ns);
    if (a->verdict == WEIR_DENY && call->cost != 0) {
        note_denial(e, call->cost, a->retry_after_ns, a, now_ns);
    } else if (a->remaining == 0 && a->verdict != WEIR_NEVER) {
        note_denial(e, 1, 0, a, now_ns);
    } else if (max_u64(call->cost, a->remaining) >= e->denied_cost) {
        e->denied_cost = 0;
    }
}

/* L1: from when the call was made. */
static void begin(struct lease_entry *e, const struct lease_call *call, uint64_t life_us)
{
    uint64_t life_ns = life_us * WEIR_MICROSECOND;
    bool ends_with_window = params_of(e)->algorithm == WEIR_FIXED_WINDOW;
    e->expires_ns = call->made_ns + life_ns - life_ns / DRIFT_PART;
    e->over_ns = call->made_ns + life_ns;
    e->life_ns = min_u64(life_ns, LEASE_LIFE_NS);
    e->renew_ns = ends_with_window ? UINT64_MAX : call->made_ns + life_ns / 4 * 3;
}

/*
 * Units that were kept while the call was on its way are the new lease's, if the store says so. If it
 * does not, or was not told of them (L2: nobody knows their mark), they end here: what they were taken
 * under ends sooner than the new lease.
 */
static void take_lease(struct lease_entry *e, const struct lease_call *call,
                       const struct store_reply *reply, const struct weir_answer *a)
{
    uint64_t granted = (uint64_t)reply->integers[AT_GRANTED];
    uint64_t mark = (uint64_t)reply->integers[AT_MARK];
    bool kept = reply->integers[AT_KEPT] != 0 && call->lease != 0;
    if (!kept && (call->lease != 0 || granted != 0)) {
        e->left = 0;
    }
    if (mark != 0) {
        e->left += granted;
        e->held = held_now(call, reply);
        e->mark = mark;
        e->size = call->want;
        begin(e, call, (uint64_t)reply->integers[AT_LIFE]);
    }
    /* A store that has no more is asked when there is none left here, either. */
    e->renew_below = granted != 0 && a->remaining != 0 ? e->left / 2 + 1 : 0;
}

static void land(struct leases *l, struct lease_stripe *s, struct lease_entry *e)
{
    e->flight = 0;
    if (lease_is_out(e) && (e->drop || load_relaxed(&l->stopping) != 0)) {
        lease_make_ready(s, e);
    }
}

/* Its entry, if the call is the one that the entry waits for (L3); plain calls wait for nothing. */
static struct lease_entry *waiting(const struct lease_stripe *s, const struct lease_call *call)
{
    struct lease_entry *e = lease_find(s, call->hash);
    return e != NULL && call->id != 0 && e->flight == call->id ? e : NULL;
}

int lease_reply(struct leases *l, const struct lease_call *call, const struct store_reply *reply,
                uint64_t now_ns, struct weir_answer *answer)
{
    struct weir_answer a;
    int bad = read_answer(call, reply, &a);
    if (bad != 0) {
        lease_lost(l, call, now_ns);
        return bad;
    }
    struct lease_stripe *s = lease_lock(l, call->hash, &now_ns);
    struct lease_entry *e = waiting(s, call);
    if (e != NULL) {
        take_lease(e, call, reply, &a);
        note_answer(e, call, &a, now_ns);
        land(l, s, e);
    } else if (call->id == 0 && (e = lease_find(s, call->hash)) != NULL) {
        note_answer(e, call, &a, now_ns);
    }
    a.remaining = e != NULL ? e->rest + to_spend(e, now_ns) : a.remaining;
    lease_unlock(s);
    store_limit_release(call->limit);
    if (answer != NULL) {
        *answer = a;
    }
    return 0;
}

uint64_t lease_stamp(const struct store_reply *reply)
{
    return (uint64_t)reply->integers[SCRIPT_ANSWER_STAMP];
}

/* What it kept may be spent until its old end, which is the sooner one; but is settled no more. */
void lease_lost(struct leases *l, const struct lease_call *call, uint64_t now_ns)
{
    struct lease_stripe *s = lease_lock(l, call->hash, &now_ns);
    struct lease_entry *e = waiting(s, call);
    if (e != NULL) {
        e->renew_below = e->left / 2;
        e->renew_ns = UINT64_MAX;
        land(l, s, e);
    }
    lease_unlock(s);
    store_limit_release(call->limit);
}

void lease_unsent(struct leases *l, const struct lease_call *call, uint64_t now_ns)
{
    struct lease_stripe *s = lease_lock(l, call->hash, &now_ns);
    struct lease_entry *e = waiting(s, call);
    if (e != NULL) {
        if (call->lease != 0 && load_relaxed(&l->stopping) == 0) {
            e->mark = call->lease;
            e->held = call->held;
            e->left += call->back;
        }
        e->renew_below = e->left / 2; /* not at once again: there is no way to the store */
        e->renew_ns = max_u64(e->renew_ns, now_ns + LINGER_NS);
        land(l, s, e);
    }
    lease_unlock(s);
    store_limit_release(call->limit);
}

/* ---- looking after them ---- */

static void end_lease(struct lease_entry *e)
{
    e->left = 0;
    e->held = 0;
    e->mark = 0;
    e->drop = false;
    e->renew_below = 0;
    e->renew_ns = UINT64_MAX;
}

/* L5. True: *call is to be sent. An entry of which nothing is out, and nothing was asked, goes. */
static bool look_after(struct leases *l, struct lease_stripe *s, struct lease_entry *e,
                       uint64_t now_ns, struct lease_call *call)
{
    uint64_t idle_ns = sub_floor0(now_ns, e->used_ns);
    bool stopping = load_relaxed(&l->stopping) != 0;
    if (e->flight != 0) {
        return false;
    }
    if (now_ns >= e->over_ns || (e->mark == 0 && now_ns >= e->expires_ns)) {
        end_lease(e);
    }
    if (!lease_is_out(e)) {
        if (idle_ns >= LEASE_LIFE_NS || stopping) {
            lease_remove(s, e);
        }
        return false;
    }
    if (e->mark == 0) {
        return false; /* spent until it expires; there is nobody to tell */
    }
    bool idle = idle_ns >= e->life_ns / 2 || (now_ns >= e->renew_ns && idle_ns >= e->life_ns / 4);
    if (idle && e->left == 0 && params_of(e)->algorithm == WEIR_FIXED_WINDOW) {
        end_lease(e); /* a window knows that it was taken, and need not know that it was spent */
        return false;
    }
    if (e->drop || stopping || idle) {
        make_call(s, e, 0, 0, false, now_ns, call);
        return true;
    }
    return wants_renewal(e, now_ns) && renew(l, s, e, now_ns, call);
}

static bool next_of(struct leases *l, struct lease_stripe *s, uint64_t now_ns,
                    struct lease_call *call)
{
    while (!list_is_empty(&s->ready)) {
        struct lease_entry *e = LIST_OF(s->ready.next, struct lease_entry, ready);
        list_take(&e->ready);
        if (look_after(l, s, e, now_ns, call)) {
            return true;
        }
    }
    while (!list_is_empty(&s->look)) {
        struct lease_entry *e = LIST_OF(s->look.next, struct lease_entry, look);
        if (e->look_ns > now_ns) {
            break;
        }
        lease_look_later(s, e, now_ns);
        if (look_after(l, s, e, now_ns, call)) {
            return true;
        }
    }
    return false;
}

bool lease_next(struct leases *l, uint64_t now_ns, struct lease_call *call)
{
    uint64_t from = load_relaxed(&l->turn); /* by any thread; nobody need be exact about it */
    for (uint64_t i = 0; i < LEASE_STRIPES; i++) {
        uint64_t at = (from + i) % LEASE_STRIPES;
        if (load_relaxed(&l->stripe[at].due_ns) > now_ns) {
            continue;
        }
        uint64_t its_now = now_ns;
        struct lease_stripe *s = lease_lock(l, (const uint64_t[2]){at << 58, 0}, &its_now);
        bool found = next_of(l, s, its_now, call);
        lease_unlock(s);
        if (found) {
            store_relaxed(&l->turn, at);
            return true;
        }
    }
    return false;
}

void lease_stop(struct leases *l)
{
    store_relaxed(&l->stopping, 1);
    for (uint64_t i = 0; i < LEASE_STRIPES; i++) {
        uint64_t now_ns = 0;
        struct lease_stripe *s = lease_lock(l, (const uint64_t[2]){i << 58, 0}, &now_ns);
        for (struct list *at = s->look.next; at != &s->look; at = at->next) {
            lease_make_ready(s, LIST_OF(at, struct lease_entry, look));
        }
        lease_unlock(s);
    }
}

void lease_forget(struct leases *l, const struct store_limit *limit, struct text shard,
                  struct text key)
{
    struct hash h = lease_hash(l, limit->id, shard, key);
    const uint64_t hash[2] = {h.low, h.high};
    uint64_t now_ns = 0;
    struct lease_stripe *s = lease_lock(l, hash, &now_ns);
    struct lease_entry *e = lease_find(s, hash);
    if (e != NULL) {
        e->denied_cost = 0;
        e->left = e->mark != 0 || e->flight != 0 ? e->left : 0;
        if (lease_is_out(e)) {
            e->drop = true;
            lease_make_ready(s, e);
        }
    }
    lease_unlock(s);
}

bool lease_refund(struct leases *l, const struct store_limit *limit, struct text shard,
                  struct text key, uint64_t units, uint64_t now_ns)
{
    struct hash h = lease_hash(l, limit->id, shard, key);
    const uint64_t hash[2] = {h.low, h.high};
    struct lease_stripe *s = lease_lock(l, hash, &now_ns);
    struct lease_entry *e = lease_find(s, hash);
    bool here = e != NULL && e->mark != 0 && now_ns < e->expires_ns && units <= e->held - e->left;
    if (here) {
        e->left += units;
    }
    lease_unlock(s);
    return here;
}
