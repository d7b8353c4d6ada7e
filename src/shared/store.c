#include "shared/store.h"

#include <stdlib.h>

#include "base/maths.h"
#include "shared/store_question.h"

#define ARGUMENTS_MAX (1u << 18) /* bytes of one call, which may have WEIR_SEVERAL_MAX keys */
#define SENDS_MAX 256            /* calls of one tick; the rest is sent by the next */

int store_create(struct store **out, struct store_shared *shared,
                 const struct client_options *options, const struct client_driver *driver,
                 uint64_t now_ns)
{
    struct store *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return WEIR_ENOMEM;
    }
    s->options = *options;
    s->options.scripts = &shared->scripts;
    s->shared = shared;
    s->cluster = options->url->kind == STORE_CLUSTER;
    buffer_init(&s->arguments, ARGUMENTS_MAX);
    send_lease_init(s);
    int e = client_create(&s->client, &s->options, driver, now_ns);
    if (e != 0) {
        free(s);
        return e;
    }
    *out = s;
    return 0;
}

bool store_is_idle(const struct store *s)
{
    return client_in_flight(s->client) == 0;
}

const char *store_last_error(const struct store *s)
{
    return client_last_error(s->client);
}

void store_destroy(struct store *s, uint64_t now_ns)
{
    if (s != NULL) {
        s->closing = true;
        client_destroy(s->client, now_ns);
        buffer_finish(&s->arguments);
        free(s);
    }
}

/* ---- asking ---- */

static int check(const struct remote_question *q)
{
    bool many = q->verb == REMOTE_CHECK || q->verb == REMOTE_PEEK;
    bool units = q->verb <= REMOTE_PENALIZE && q->verb != REMOTE_PEEK;
    if (q->n == 0 || q->n > WEIR_SEVERAL_MAX || (q->n > 1 && (!many || q->time_ns != 0))) {
        return WEIR_EINVAL;
    }
    for (size_t i = 0; i < q->n; i++) {
        const struct remote_part *p = &q->parts[i];
        if (p->key.len == 0 || p->key.len > WEIR_KEY_MAX) {
            return WEIR_EKEY;
        }
        if (units && p->cost == 0) {
            return WEIR_ECOST;
        }
        if (p->limit == NULL && (p->local == NULL || q->verb > REMOTE_UP_TO)) {
            return WEIR_EINVAL;
        }
    }
    return 0;
}

/* Checks max_wait, which only buckets support. */
static int check_wait(const struct remote_question *q)
{
    const struct store_limit *limit = q->parts[0].limit;
    if (q->time_ns == 0 || q->verb > REMOTE_UP_TO || limit == NULL) {
        return 0;
    }
    int algorithm = store_limit_numbers(limit)->params.algorithm;
    return q->verb == REMOTE_UP_TO                                            ? WEIR_EINVAL
           : algorithm == WEIR_TOKEN_BUCKET || algorithm == WEIR_LEAKY_BUCKET ? 0
                                                                              : WEIR_ENOTSUP;
}

/* Asks a plain question of one limit without sending anything: out of memory, a lease or a synced
 * count. Returns what lease_ask() returns: with LEASE_SEND, *call is to be sent; if `call` is NULL,
 * no call is made. 0: a store must be asked. *due: a renewal or an exchange has become due, earlier
 * than node_keys_due() said before. */
static unsigned ask_one(const struct remote_question *q, uint64_t now_ns,
                        struct weir_answer *answer, struct lease_call *call, bool *due)
{
    const struct remote_part *p = &q->parts[0];
    struct store_limit *limit = p->limit;
    struct store_shared *shared = limit->shared;
    int mode = store_limit_mode(limit);
    *due = false;
    if (mode == REMOTE_LEASED) {
        unsigned said =
            lease_ask(shared->keys, p, call == NULL ? LEASE_HERE : LEASE_ASK, now_ns, answer, call);
        *due = (said & LEASE_DUE) != 0;
        return said;
    }
    if (mode == REMOTE_SYNCED) {
        int said = sync_ask(shared->keys, p, now_ns, answer);
        if ((said & SYNC_ANSWERED) == 0) {
            store_limit_failed(p, q->verb, now_ns, answer);
        }
        *due = (said & SYNC_DUE) != 0;
        return LEASE_ANSWERED;
    }
    struct hash hash = node_key_hash(shared->keys, p);
    return store_limit_denies(limit, store_limit_numbers(limit), hash, p->cost, now_ns, answer)
               ? LEASE_ANSWERED
               : 0;
}

static bool is_one(const struct remote_question *q)
{
    return q->n == 1 && q->parts[0].limit != NULL && store_question_is_plain(q);
}

static int answered(const struct remote_question *q, struct remote_answer *answer)
{
    answer->answer.limit = 0;
    answer->stamp = 0;
    answer->found = 0;
    if (q->verb != REMOTE_PEEK) {
        store_limit_count(q->parts[0].limit, answer->answer.verdict);
    }
    return REMOTE_ANSWERED;
}

int store_ask_here(const struct remote_question *q, uint64_t now_ns, struct remote_answer *answer)
{
    int e = check(q);
    e = e == 0 ? check_wait(q) : e;
    if (e != 0) {
        return e;
    }
    if (!is_one(q)) {
        return REMOTE_PENDING;
    }
    struct store_shared *shared = ((struct store_limit *)q->parts[0].limit)->shared;
    bool due;
    bool done = (ask_one(q, now_ns, &answer->answer, NULL, &due) & LEASE_ANSWERED) != 0;
    if (due && shared->options.wake != NULL) {
        shared->options.wake(shared->options.wake_arg);
    }
    return done ? answered(q, answer) : REMOTE_PENDING;
}

int store_ask_failed(const struct remote_question *q, uint64_t now_ns, struct remote_answer *answer)
{
    const struct remote_part *p = &q->parts[0];
    if (q->n != 1 || p->limit == NULL || q->verb > REMOTE_UP_TO) {
        return WEIR_EFULL;
    }
    store_limit_failed(p, q->verb, now_ns, &answer->answer);
    return answered(q, answer);
}

/* Asks a plain question of one limit, and sends the renewal that comes with an answer. Returns what
 * ask_one() returns: without LEASE_ANSWERED, *call is the call to send (LEASE_SEND) or to wait for
 * (LEASE_WAIT), or there is none (0). */
static unsigned try_one(struct store *s, const struct remote_question *q, uint64_t now_ns,
                        struct remote_answer *answer, struct lease_call *call)
{
    bool due; /* not used: this store's tick follows anyway */
    unsigned said = ask_one(q, now_ns, &answer->answer, call, &due);
    if (said == (LEASE_ANSWERED | LEASE_SEND)) {
        send_lease(s, call, now_ns);
    }
    return said;
}

int store_ask(struct store *s, const struct remote_question *q, uint64_t now_ns,
              struct remote_answer *answer)
{
    struct lease_call call;
    bool one = is_one(q);
    int e = check(q);
    e = e == 0 ? check_wait(q) : e;
    if (e != 0) {
        return e;
    }
    unsigned said = one ? try_one(s, q, now_ns, answer, &call) : 0;
    if ((said & LEASE_ANSWERED) != 0) {
        return answered(q, answer);
    }
    struct store_question *a = store_question_init(s, q);
    a->looked = one;
    bool complete =
        said != 0 ? store_question_wait(a, said, &call, now_ns) : store_question_start(a, now_ns);
    if (!complete) {
        return REMOTE_PENDING;
    }
    e = store_question_finish(a, now_ns, answer);
    return e != 0 ? e : REMOTE_ANSWERED;
}

/* ---- work that is due without a question ---- */

/* Sends the calls that are due. Returns how many were sent; SENDS_MAX: there may be more. */
static unsigned send_what_is_due(struct store *s, uint64_t now_ns)
{
    struct store_shared *shared = s->shared;
    struct lease_call lease;
    struct sync_call sync;
    unsigned n = 0;
    for (; n < SENDS_MAX && lease_next(shared->keys, now_ns, &lease); n++) {
        send_lease(s, &lease, now_ns);
    }
    for (; n < SENDS_MAX && sync_next(shared->keys, now_ns, &sync); n++) {
        (void)send_sync(s, &sync, now_ns);
    }
    if (members_take_beat(&shared->members, now_ns)) {
        send_beat(s, now_ns);
    }
    return n;
}

uint64_t store_tick(struct store *s, uint64_t now_ns)
{
    unsigned sent = send_what_is_due(s, now_ns);
    send_lease_tick(s, now_ns);
    uint64_t due_ns = client_tick(s->client, now_ns);
    if (sent == SENDS_MAX) {
        return now_ns;
    }
    due_ns = min_u64(due_ns, node_keys_due(s->shared->keys));
    due_ns = min_u64(due_ns, lease_waits_due(&s->waits));
    return min_u64(due_ns, members_due(&s->shared->members));
}
