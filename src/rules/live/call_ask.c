#include "rules/live/call_ask.h"

#include "base/atomic.h"
#include "base/error.h"
#include "rules/compiled/holder.h"

#define STAGES 3

static void resume(struct call *call);

static bool denies(const struct weir_answer *a)
{
    return a->verdict != WEIR_ALLOW;
}

/* ---- one part ---- */

/* Takes the answer of a part. One that takes as much as there is (UP_TO) denies if that is not
 * enough. One that was charged allows, whatever is left for others. */
static void take(struct call_part *part, int verb, const struct weir_answer *said)
{
    part->answer = *said;
    rate_answer(part->limit.bound.kind, &part->answer);
    part->charged = part->charged || (verb == REMOTE_CHECK && !denies(said));
    if (verb == REMOTE_UP_TO && said->verdict == WEIR_ALLOW && said->granted < part->remote.cost &&
        (said->flags & WEIR_FLAG_FULL) == 0) {
        part->answer.verdict = WEIR_DENY;
        part->answer.retry_after_ns = part->answer.reset_after_ns;
    }
    part->given = part->role == PART_BACK && verb == REMOTE_REFUND;
    if (verb == REMOTE_REFUND || part->charged || part->role == PART_BACK) {
        part->answer.verdict = WEIR_ALLOW;
        part->answer.retry_after_ns = 0;
    }
    part->answered = true;
}

/* Takes an error. It fails the call if the call is not decided without the part. */
static void take_error(struct call_part *part, int error)
{
    struct call *call = part->call;
    bool shadow = part_is_shadow(part);
    bool decides =
        call->stage < STAGES || (!call->denied && !part->withheld &&
                                 (part->role == PART_OVERRIDE || part->role == PART_BACK));
    if (decides && !shadow) {
        call->error = error;
    } else {
        part->dropped = !part->answered;
        call->shadow_failed += shadow;
    }
}

static int ask_here(const struct call_part *part, int verb, uint64_t cost, unsigned flags,
                    struct weir_answer *said)
{
    const struct remote_part *r = &part->remote;
    uint64_t now_ns = part->call->now_ns;
    struct weir_question q = {.key = r->key.at,
                              .key_len = r->key.len,
                              .cost = cost,
                              .max_wait_ns = verb == REMOTE_UP_TO ? 0 : r->wait_ns,
                              .mode = verb,
                              .flags = flags};
    if (verb == REMOTE_REFUND) {
        return weir_refund_at(r->local, r->key.at, r->key.len, cost, now_ns, now_ns, said);
    }
    return r->rate.burst != 0
               ? weir_throttle_at(r->local, r->rate.interval_ns, r->rate.burst, &q, now_ns, said)
               : weir_ask_at(r->local, &q, now_ns, said);
}

_Static_assert((int)REMOTE_CHECK == (int)WEIR_CHECK && (int)REMOTE_PEEK == (int)WEIR_PEEK &&
                   (int)REMOTE_UP_TO == (int)WEIR_UP_TO,
               "the modes of these questions are verbs of a fleet");

static void on_part(void *arg, int error, const struct remote_answer *said)
{
    struct call_part *part = arg;
    struct call *call = part->call;
    if (error == 0) {
        take(part, part->asked.verb, &said->answer);
    } else {
        take_error(part, error);
    }
    if (--call->out == 0) {
        resume(call);
    }
}

/* Asks the fleet. Returns REMOTE_ANSWERED, REMOTE_PENDING or WEIR_E... */
static int ask_fleet(struct call *call, struct remote_question *q, struct remote_answer *said)
{
    struct weir_fleet *fleet = call->rules->options.fleet;
    const struct remote_ops *ops = remote_ops(fleet);
    bool many = !call->kept && load_relaxed(&call->rules->references) > WEIR_RULES_PENDING_MAX;
    q->now_ns = call->now_ns;
    if (q->memory == NULL) {
        q->memory = arena_room(call->memory, ops->bytes(q->n));
    }
    return q->memory != NULL && !many ? ops->ask(fleet, call->where, q, said) : WEIR_ENOMEM;
}

/* Asks about one part. */
static void ask_part(struct call_part *part, int verb, uint64_t cost)
{
    struct call *call = part->call;
    bool shadow = part_is_shadow(part);
    struct remote_answer said;
    int e;
    if (part->remote.limit == NULL) {
        e = ask_here(part, verb, cost, shadow ? WEIR_SHADOW : 0, &said.answer);
        e = e == 0 ? REMOTE_ANSWERED : e;
    } else {
        void *memory = part->asked.memory;
        uint64_t own = part->remote.cost;
        part->remote.cost = cost;
        part->asked = (struct remote_question){.verb = verb,
                                               .shadow = shadow,
                                               .parts = &part->remote,
                                               .n = 1,
                                               .done = on_part,
                                               .arg = part,
                                               .memory = memory};
        e = ask_fleet(call, &part->asked, &said);
        if (e != REMOTE_PENDING) {
            part->remote.cost = own;
        }
    }
    if (e == REMOTE_PENDING) {
        call->out++;
    } else if (e == REMOTE_ANSWERED) {
        take(part, verb, &said.answer);
    } else {
        take_error(part, e);
    }
}

/* ---- stage 1: parts that deny by themselves ---- */

/* Returns whether the part is asked at all: no other limit replaces it, or charges for it. */
static bool is_asked(const struct call_part *part)
{
    return !part->dropped && part->same == NULL;
}

/* Asks a part that is charged by itself. With `charge: each` it takes as much as there is, unless
 * that would use a queue: UP_TO cannot say that the caller does not wait. */
static void ask_alone(struct call_part *part)
{
    bool drain = part->call->charge == CHARGE_EACH && part->limit.bound.kind == RATE_COUNTS &&
                 part->remote.wait_ns == 0;
    ask_part(part,
             part->looks ? REMOTE_PEEK
             : drain     ? REMOTE_UP_TO
                         : REMOTE_CHECK,
             part->remote.cost);
}

static void begin_alone(struct call *call)
{
    bool each = call->charge == CHARGE_EACH;
    for (size_t i = 0; i < call->parts_count && call->error == 0 && (each || !call->denied); i++) {
        struct call_part *part = call->parts[i];
        if (!is_asked(part)) {
            continue;
        }
        if (part->role == PART_OVERRIDE && !each) {
            ask_part(part, REMOTE_PEEK, part->remote.cost);
        } else if (part->role == PART_LOOK) {
            ask_part(part, REMOTE_PEEK, rate_cost(part->limit.bound.kind, 1));
        } else if (part->role == PART_QUOTA ||
                   (each && (part->role == PART_ENFORCED || part->role == PART_OVERRIDE))) {
            ask_alone(part);
        }
    }
}

/* Finds out whether the parts that have answered deny the call. */
static void end_alone(struct call *call)
{
    size_t quota = 0;
    size_t over = 0;
    for (size_t i = 0; i < call->parts_count; i++) {
        const struct call_part *part = call->parts[i];
        bool no = part->answered && part_denies(part) && !part_is_shadow(part);
        bool quota_mode =
            part->role == PART_QUOTA && !part->dropped && part->limit.bound.kind != RATE_UNLIMITED;
        quota += quota_mode;
        over += quota_mode && no;
        call->denied |= no && !quota_mode;
    }
    call->over = quota > 0 && over == quota;
    call->denied |= call->over;
}

/* ---- stage 2: the group ---- */

/* Takes the answer of the group, which is that of one part. The others are peeked at later. */
static void take_group(struct call *call, const struct weir_answer *said)
{
    size_t n = 0;
    for (size_t i = 0; i < call->parts_count; i++) {
        struct call_part *part = call->parts[i];
        if (part->role != PART_ENFORCED || !is_asked(part)) {
            continue;
        }
        part->charged = !denies(said);
        if (n++ == said->limit) {
            take(part, REMOTE_PEEK, said);
        }
    }
    call->denied |= denies(said);
}

static void on_group(void *arg, int error, const struct remote_answer *said)
{
    struct call *call = arg;
    if (error == 0) {
        take_group(call, &said->answer);
    } else {
        call->error = error;
    }
    if (--call->out == 0) {
        resume(call);
    }
}

static int ask_group_here(const struct remote_part *parts, size_t n, uint64_t now_ns,
                          struct weir_answer *said)
{
    struct weir_part asks[CALL_MAX];
    for (size_t i = 0; i < n; i++) {
        asks[i] = (struct weir_part){.limiter = parts[i].local,
                                     .ask = {.key = parts[i].key.at,
                                             .key_len = parts[i].key.len,
                                             .cost = parts[i].cost,
                                             .max_wait_ns = parts[i].wait_ns,
                                             .mode = WEIR_CHECK}};
    }
    int e = n == 1 ? weir_ask_at(asks[0].limiter, &asks[0].ask, now_ns, said)
                   : weir_check_several_at(asks, n, now_ns, said);
    said->limit = n == 1 ? 0 : said->limit;
    return e == 0 ? REMOTE_ANSWERED : e;
}

static void begin_group(struct call *call)
{
    struct remote_part *parts = arena_room(call->memory, call->parts_count * sizeof *parts);
    struct remote_answer said;
    size_t n = 0;
    bool shared = false;
    end_alone(call);
    if (call->denied || call->charge == CHARGE_EACH) {
        return;
    }
    for (size_t i = 0; parts != NULL && i < call->parts_count; i++) {
        const struct call_part *part = call->parts[i];
        if (part->role == PART_ENFORCED && is_asked(part)) {
            shared = shared || part->remote.limit != NULL;
            parts[n++] = part->remote;
        }
    }
    if (n == 0) {
        call->error = parts == NULL ? WEIR_ENOMEM : 0;
        return;
    }
    call->group = (struct remote_question){
        .verb = REMOTE_CHECK, .parts = parts, .n = n, .done = on_group, .arg = call};
    int e = shared ? ask_fleet(call, &call->group, &said)
                   : ask_group_here(parts, n, call->now_ns, &said.answer);
    if (e == REMOTE_PENDING) {
        call->out++;
    } else if (e == REMOTE_ANSWERED) {
        take_group(call, &said.answer);
    } else {
        call->error = e;
    }
}

/* ---- stage 3: the rest ---- */

/* Counts the denial of an enforced limit, for its ban, and reports it. */
static void note_denial(struct call_part *part)
{
    struct call *call = part->call;
    struct weir_rules *rules = call->rules;
    struct weir_rules_answer told = {.answer = part->answer};
    struct denial denial = {
        rules, call->where, part->limit.holder, part->remote.key, part->remote.shard, call->now_ns};
    if (rules->ended) {
        return;
    }
    answer_put_bound(&told, &part->limit.bound);
    answer_note_denial(&told, &denial, part->limit.bound.log, rules->options.denied,
                       rules->options.denied_arg);
    part->answer = told.answer;
}

/* Notes the denials of limits that made the call be denied, and would have been charged. */
static void note_denials(struct call *call)
{
    for (size_t i = 0; i < call->parts_count; i++) {
        struct call_part *part = call->parts[i];
        bool own =
            part->role == PART_ENFORCED || (part->role == PART_QUOTA && call->over && !part->looks);
        if (own && is_asked(part) && part->answered && part_denies(part)) {
            note_denial(part);
        }
    }
}

static void finish_part(struct call_part *part)
{
    struct call *call = part->call;
    uint64_t cost = part->remote.cost;
    uint64_t one = rate_cost(part->limit.bound.kind, 1);
    bool free = call->denied && call->charge == CHARGE_TOGETHER;
    switch (part->role) {
    case PART_ENFORCED:
        if (!part->answered) {
            ask_part(part, REMOTE_PEEK, call->denied ? cost : one);
        }
        break;
    case PART_QUOTA:
        if (call->denied && part->charged && part->limit.bound.kind == RATE_COUNTS) {
            ask_part(part, REMOTE_REFUND, cost);
        } else if (!part->answered) {
            ask_part(part, REMOTE_PEEK, cost);
        }
        break;
    case PART_OVERRIDE:
        if (!call->denied && call->charge == CHARGE_TOGETHER) {
            ask_part(part, REMOTE_CHECK, cost);
        } else if (!part->answered) {
            ask_part(part, REMOTE_PEEK, cost);
        }
        break;
    case PART_SHADOW:
        ask_part(part, free || part->looks ? REMOTE_PEEK : REMOTE_CHECK, cost);
        break;
    case PART_LOOK:
        if (!part->answered) {
            ask_part(part, REMOTE_PEEK, one);
        }
        break;
    case PART_BACK:
        if (part->limit.bound.kind == RATE_COUNTS && !part->withheld) {
            ask_part(part, REMOTE_REFUND, cost);
        } else {
            ask_part(part, REMOTE_PEEK, one);
        }
        break;
    }
}

static void begin_rest(struct call *call)
{
    note_denials(call);
    for (size_t i = 0; i < call->parts_count && call->error == 0; i++) {
        struct call_part *part = call->parts[i];
        if (is_asked(part)) {
            finish_part(part);
        }
    }
}

/* Lets an override deny the call whose units another call has taken meanwhile. */
static void end_rest(struct call *call)
{
    for (size_t i = 0; i < call->parts_count; i++) {
        struct call_part *part = call->parts[i];
        if (part->same != NULL) {
            part->answer = part->same->answer;
            part->dropped = part->same->dropped;
        }
        call->denied |= part->role == PART_OVERRIDE && is_asked(part) && part_denies(part) &&
                        !part_is_shadow(part);
    }
}

/* ---- the whole ---- */

/* Takes references while answers are pending: the rules may be switched meanwhile. */
static void keep(struct call *call)
{
    if (call->kept) {
        return;
    }
    for (size_t i = 0; i < call->parts_count; i++) {
        if (call->parts[i]->limit.holder != NULL) {
            holder_keep(call->parts[i]->limit.holder);
        }
    }
    rules_keep(call->rules);
    call->kept = true;
}

static void let_go(struct call *call)
{
    for (size_t i = 0; call->kept && i < call->parts_count; i++) {
        if (call->parts[i]->limit.holder != NULL) {
            holder_release(call->parts[i]->limit.holder);
        }
    }
    if (call->kept) {
        rules_release(call->rules);
    }
}

/* Goes from stage to stage until answers are pending, or the call is answered. Inside the gate. */
static int advance(struct call *call, struct ask_counts *counts)
{
    static void (*const stages[STAGES])(struct call * call) = {begin_alone, begin_group,
                                                               begin_rest};
    while (call->stage < STAGES && call->error == 0) {
        stages[call->stage++](call);
        if (call->out > 0) {
            keep(call);
            return RULES_PENDING;
        }
    }
    if (call->error == 0) {
        end_rest(call);
        call_conclude(call);
        counts->shadow_denied += call->answer.shadow_denied > 0;
        counts->shadow_failed += call->shadow_failed;
    }
    return call->error;
}

static void resume(struct call *call)
{
    struct weir_rules *rules = call->rules;
    struct ask_counts counts = {0};
    struct slot *slot = gate_enter(rules);
    int e = advance(call, &counts);
    rules_count(rules, slot, &counts, e < 0);
    gate_leave(slot);
    if (e != RULES_PENDING) {
        let_go(call);
        call->done(call->arg);
    }
}

int call_ask(struct call *call, struct weir_error *error)
{
    struct ask_counts counts = {.asked = (unsigned)call->count};
    struct weir_rules *rules = call->rules;
    if (call->count == 0 || call->count > CALL_MAX) {
        return fail(error, WEIR_EINVAL, "found %zu descriptors, expected 1 to %d", call->count,
                    CALL_MAX);
    }
    struct slot *slot = gate_enter(rules);
    int e = call_gather(call, rules->set, &counts, error);
    if (e == 0) {
        e = advance(call, &counts);
        if (e < 0) {
            (void)fail(error, e, "%s", weir_strerror(e));
        }
    }
    rules_count(rules, slot, &counts, e < 0);
    gate_leave(slot);
    return e;
}
