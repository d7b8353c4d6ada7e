#include "server/operations/rls.h"

#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/maths.h"
#include "common/log.h"
#include "common/sha256.h"
#include "rules/envoy/envoy.h"
#include "server/operations/throttle_ask.h"
#include "server/operations/awaited.h"
#include "server/loop/worker.h"

#define HITS_MAX INT64_MAX /* more than any limit has */

const char *const rls_unit_names[RLS_UNITS] = {"UNKNOWN", "SECOND", "MINUTE", "HOUR",
                                               "DAY",     "MONTH",  "YEAR",   "WEEK"};

static const uint64_t periods[RLS_UNITS] = {
    0,        WEIR_SECOND,   60 * WEIR_SECOND, 3600 * WEIR_SECOND,
    WEIR_DAY, 30 * WEIR_DAY, 365 * WEIR_DAY,   7 * WEIR_DAY};

enum rls_unit rls_unit_of(uint64_t period_ns)
{
    unsigned i = RLS_SECOND;
    while (i < RLS_UNITS && periods[i] != period_ns) {
        i++;
    }
    return period_ns == WEIR_MONTH ? RLS_MONTH
           : i < RLS_UNITS         ? (enum rls_unit)i
                                   : RLS_UNIT_UNKNOWN;
}

unsigned rls_flags(const struct call *call)
{
    return answer_flags(call->answer.answer.flags) | call->oddities << ANSWER_FLAGS;
}

const char *rls_flag_name(unsigned i)
{
    static const char *const oddities[RLS_FLAGS - ANSWER_FLAGS] = {"unread_value", "unread_cost"};
    return i < ANSWER_FLAGS ? answer_flag_names[i] : oddities[i - ANSWER_FLAGS];
}

bool rls_bad_call(struct worker *w, const char *why)
{
    static struct log_limit lines;
    bool deny = rules_deny_bad_calls(w->server->rules);
    count_own(deny ? &w->counts.bad_calls_denied : &w->counts.bad_calls, 1);
    LOG_LIMITED(&lines, LEVEL_WARNING, "a call of Envoy's rate limit service cannot be decided",
                LOG_STRING("why", why),
                LOG_STRING("answer", deny ? "OVER_LIMIT"
                                          : "an error, for which Envoy lets the request pass "
                                            "unless failure_mode_deny is true"));
    return deny;
}

/* ---- checking ---- */

static int check_descriptor(const struct rls_descriptor *d, size_t number, struct weir_error *error)
{
    if (d->count == 0 || d->count > RLS_ENTRIES_MAX) {
        return fail(error, WEIR_EINVAL, "descriptors[%zu].entries: found %s, expected 1 to %d",
                    number, d->count == 0 ? "none" : "more", RLS_ENTRIES_MAX);
    }
    for (size_t i = 0; i < d->count; i++) {
        if (d->entries[i].key.len == 0) {
            return fail(error, WEIR_EINVAL,
                        "descriptors[%zu].entries[%zu].key: found an empty key, expected a text",
                        number, i);
        }
    }
    if (d->limited && (d->unit == RLS_UNIT_UNKNOWN || d->unit >= RLS_UNITS)) {
        return fail(error, WEIR_EINVAL,
                    "descriptors[%zu].limit.unit: found %llu, expected 1 (SECOND) to 7 (WEEK)",
                    number, (unsigned long long)d->unit);
    }
    return 0;
}

static int check(const struct rls_ask *ask, struct weir_error *error)
{
    if (ask->domain.len == 0) {
        return fail(error, WEIR_EINVAL, "domain: found an empty text, expected a domain");
    }
    if (ask->count == 0 || ask->count > CALL_MAX) {
        return fail(error, WEIR_EINVAL, "descriptors: found %s, expected 1 to %d",
                    ask->count == 0 ? "none" : "more", CALL_MAX);
    }
    int e = 0;
    for (size_t i = 0; e == 0 && i < ask->count; i++) {
        e = check_descriptor(&ask->descriptors[i], i, error);
    }
    return e;
}

/* ---- descriptors as questions ---- */

/* The attributes of one descriptor while they are made. */
struct attributes {
    struct weir_rules_attribute *at;
    size_t count;
};

static void add(struct attributes *a, struct weir_text name, struct weir_text value)
{
    a->at[a->count++] = (struct weir_rules_attribute){name.at, name.len, value.at, value.len};
}

static char value_names[RLS_ENTRIES_MAX][sizeof ENVOY_VALUE + 3];

static void make_names(void)
{
    for (unsigned i = 0; i < RLS_ENTRIES_MAX; i++) {
        (void)snprintf(value_names[i], sizeof value_names[i], ENVOY_VALUE "%u", i % 1000 + 1);
    }
}

/* Adds an entry under its own name, for limits of weir's rule file. Of two with one key the first
 * counts. */
static void add_named(struct attributes *a, const struct rls_descriptor *d, size_t i)
{
    struct weir_text key = d->entries[i].key;
    bool taken = envoy_has_attribute(key) || d->entries[i].value.len == 0;
    for (size_t j = 0; j < i && !taken; j++) {
        taken = text_equal(d->entries[j].key, key);
    }
    if (!taken) {
        add(a, key, d->entries[i].value);
    }
}

/* Returns the keys of a descriptor as one text; at NULL: out of memory. */
static struct weir_text keys_of(const struct rls_descriptor *d, struct arena *memory)
{
    size_t room = 0;
    size_t n = 0;
    for (size_t i = 0; i < d->count; i++) {
        room += ENVOY_KEY_BYTES(d->entries[i].key.len) + 1;
    }
    char *to = arena_room(memory, room);
    for (size_t i = 0; to != NULL && i < d->count; i++) {
        if (i > 0) {
            to[n++] = '/';
        }
        n += envoy_put_key(d->entries[i].key, to + n);
    }
    return (struct weir_text){to, n};
}

static int add_attributes(const struct rls_ask *ask, const struct rls_descriptor *d,
                          struct arena *memory, struct call_question *q)
{
    struct attributes a = {arena_room(memory, (2 + 2 * d->count) * sizeof *a.at), 0};
    struct weir_text keys = keys_of(d, memory);
    if (a.at == NULL || keys.at == NULL) {
        return WEIR_ENOMEM;
    }
    add(&a, TEXT(ENVOY_DOMAIN), ask->domain);
    add(&a, TEXT(ENVOY_DESCRIPTOR), keys);
    for (size_t i = 0; i < d->count; i++) {
        struct weir_text value = d->entries[i].value;
        add(&a, text_of(value_names[i]), value.len > 0 ? value : ENVOY_EMPTY);
        add_named(&a, d, i);
    }
    q->attributes = a.at;
    q->attributes_count = a.count;
    return 0;
}

/* Returns the key of a descriptor that brings a limit: the domain and the entries, each with its
 * length; what stands for it if it is too long; at NULL: out of memory. */
static struct weir_text override_key(const struct rls_ask *ask, const struct rls_descriptor *d,
                                     struct arena *memory)
{
    struct buffer key;
    char room[SHA256_MARKED];
    buffer_init(&key, SIZE_MAX / 2);
    for (size_t i = 0; i < 1 + 2 * d->count; i++) {
        struct weir_text part = i == 0       ? ask->domain
                                : i % 2 != 0 ? d->entries[i / 2].key
                                             : d->entries[i / 2 - 1].value;
        buffer_put_u64(&key, part.len);
        buffer_put_char(&key, ':');
        buffer_put(&key, part);
    }
    struct weir_text whole = buffer_text(&key);
    if (whole.len > WEIR_KEY_MAX) { /* no other key begins with a NUL */
        sha256_mark(whole, room);
        whole = (struct weir_text){room, sizeof room};
    }
    struct weir_text own = key.full ? (struct weir_text){NULL, 0} : arena_text(memory, whole);
    buffer_finish(&key);
    return own;
}

/* Sets the rate that the descriptor brings, and its key. */
static int add_override(const struct rls_ask *ask, const struct rls_descriptor *d,
                        struct arena *memory, struct call_question *q, struct weir_error *error)
{
    uint64_t period_ns = periods[d->unit];
    q->named = (struct rate){d->requests, period_ns};
    if (d->requests == 0) {
        return 0;
    }
    q->rate = (struct remote_rate){period_ns / d->requests, d->requests};
    if (q->rate.interval_ns == 0) {
        return fail(error, WEIR_EINVAL,
                    "limit: found %llu requests per %s, expected at most one in a nanosecond",
                    (unsigned long long)d->requests, rls_unit_names[d->unit]);
    }
    q->key = override_key(ask, d, memory);
    return q->key.at != NULL ? 0 : WEIR_ENOMEM;
}

static int make_question(const struct rls_ask *ask, const struct rls_descriptor *d,
                         struct arena *memory, struct call_question *q, struct weir_error *error)
{
    uint64_t hits = d->hits_given ? d->hits : max_u64(ask->hits, 1);
    *q = (struct call_question){.hits = min_u64(hits, HITS_MAX), .back = d->back && hits > 0};
    return d->limited ? add_override(ask, d, memory, q, error) : add_attributes(ask, d, memory, q);
}

/* ---- units given back ---- */

/* A call, and the client that made it: the connection may have closed before the answer. */
struct rls_call {
    struct call call;
    struct pending *pending;
    enum role role;
    char peer[ADDRESS_MAX]; /* of an admin */
};

/* Limits share this many places for log lines, so that a client which calls for one limit seldom
 * hides the lines of another; and all of them together write at most so many lines a second. */
#define WITHHELD_LINES 64

static void tell_withheld(const struct call_part *part)
{
    static struct log_limit lines[WITHHELD_LINES];
    struct hash place = {0, 0};
    hash_mix(&place, part->limit.bound.limit.at, part->limit.bound.limit.len);
    LOG_LIMITED(&lines[place.low % WITHHELD_LINES], LEVEL_WARNING,
                "is_negative_hits gave nothing back: it needs 'envoy: {negative_hits: true}' and a "
                "limit of --envoy-config, or an admin secret",
                LOG_TEXT("limit", part->limit.bound.limit));
}

/* Writes what a refund leaves in the audit log. */
static void audit_given(const struct rls_call *r, const struct call_part *part)
{
    char key[256];
    size_t n = weir_rules_key_text(part->remote.key.at, part->remote.key.len, key, sizeof key);
    uint64_t units = min_u64(part->remote.cost, INT64_MAX);
    LOG(LEVEL_AUDIT, "key changed", LOG_STRING("verb", "negative hits"),
        LOG_STRING("address", r->peer), LOG_STRING("role", role_names[r->role]),
        LOG_TEXT("limit", part->limit.bound.limit), LOG_KEY("key", ((struct weir_text){key, n})),
        LOG_COUNT("units", units));
}

/* Counts what was odd about the call. Counts and logs which limits have got units back, and which
 * should have and did not. Uses that negative_hits allows are counted only, as those of settle and
 * cancel are. */
static void tell_call(const struct rls_call *r, struct worker_counts *counts)
{
    count_own(&counts->calls_unread_value, (r->call.oddities & CALL_UNREAD_VALUE) != 0);
    count_own(&counts->calls_unread_cost, (r->call.oddities & CALL_UNREAD_COST) != 0);
    for (size_t i = 0; i < r->call.parts_count; i++) {
        const struct call_part *part = r->call.parts[i];
        if (part->withheld) {
            count_own(&counts->hits_withheld, 1);
            tell_withheld(part);
        } else if (part->given) {
            count_own(&counts->hits_given, 1);
            if (r->role >= ROLE_ADMIN) {
                audit_given(r, part);
            }
        }
    }
}

/* ---- running ---- */

static void on_done(void *arg)
{
    struct rls_call *r = arg;
    struct pending *p = r->pending;
    tell_call(r, &p->worker->counts);
    p->error = r->call.error;
    pending_answered(p);
}

static int begin(struct asker *asker, struct pending *p, const struct rls_ask *ask,
                 struct weir_error *error)
{
    const struct server *server = asker->server;
    struct arena *memory = &p->memory;
    struct rls_call *r = arena_take(memory, sizeof *r);
    struct call_question *questions = arena_array(memory, ask->count, sizeof *questions);
    if (r == NULL || questions == NULL) {
        return WEIR_ENOMEM;
    }
    struct call *call = &r->call;
    int e = 0;
    for (size_t i = 0; e == 0 && i < ask->count; i++) {
        e = make_question(ask, &ask->descriptors[i], memory, &questions[i], error);
    }
    r->pending = p;
    r->role = asker->by.role;
    if (r->role >= ROLE_ADMIN) {
        char peer[ADDRESS_MAX];
        (void)snprintf(r->peer, sizeof r->peer, "%s", peer_print(asker->by.peer, peer));
    }
    call->rules = asker->server->rules;
    call->where = asker->worker->where;
    call->memory = memory;
    call->now_ns = asker->now_ns;
    call->questions = questions;
    call->count = ask->count;
    call->adhoc = server->adhoc;
    call->adhoc_remote = server->adhoc_remote;
    call->adhoc_shadow = throttle_flags(server) != 0;
    call->may_give = asker->by.role >= ROLE_ADMIN;
    call->done = on_done;
    call->arg = r;
    awaited_of(p)->call = call;
    e = e != 0 ? e : call_ask(call, error);
    if (e != RULES_PENDING) {
        tell_call(r, &asker->worker->counts);
    }
    return e;
}

int rls_run(struct asker *asker, struct pending *p, const struct rls_ask *ask,
            struct weir_error *error)
{
    static uv_once_t once = UV_ONCE_INIT;
    uv_once(&once, make_names);
    error->text[0] = 0;
    int e = check(ask, error);
    if (e == 0) {
        e = begin(asker, p, ask, error);
    }
    if (e == RULES_PENDING) {
        asker->pending = p;
        return ANSWER_LATER;
    }
    return e;
}

/* ---- telling ---- */

/* Returns the time until the reset. An answer tells 0 of a key that owes nothing; Envoy expects the
 * end of the window then, too. */
static uint64_t reset_ns(const struct call_status *s, uint64_t now_ns)
{
    return s->reset_after_ns > 0 ? s->reset_after_ns
           : s->windows          ? s->rate.period_ns - now_ns % s->rate.period_ns
                                 : WEIR_SECOND;
}

struct rls_told rls_told(const struct call_status *status, uint64_t now_ns)
{
    uint64_t ns = reset_ns(status, now_ns);
    uint64_t s = ns / WEIR_SECOND + (ns % WEIR_SECOND != 0);
    struct rls_told told = {
        .requests = (uint32_t)(status->rate.count > UINT32_MAX ? UINT32_MAX : status->rate.count),
        .unit = rls_unit_of(status->rate.period_ns),
        .remaining = (uint32_t)(status->remaining > UINT32_MAX ? UINT32_MAX : status->remaining),
        .reset_s = s};
    return told;
}

size_t rls_each_field(const struct server *server, const struct call *call, answer_field_fn fn,
                      struct buffer *to)
{
    struct answer a;
    answer_from_rules(&call->answer, &a);
    return answer_each_field(&a, a.verdict != WEIR_ALLOW, server->options.headers, call->now_ns, fn,
                             to);
}
