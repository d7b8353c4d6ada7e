/* Checks I2, I3, I4 and I7 of `leased`. */
#include <inttypes.h>
#include <stdlib.h>

#include "shared/leased/lease_part.h"
#include "shared/core/script.h"
#include "simulate/world.h"

#define FEW_NODES 8

#define USE_PAUSE_US UINT64_C(30000) /* until a node asks again after a denial: lease_pause() */

/* ---- I3 ---- */

/* Reads the state of a bucket, "full at[:remainder][;mark,units,leases]...". Returns the units
 * whose mark is in the future. */
static uint64_t read_marks(const char *text, uint64_t now_us)
{
    char *end;
    uint64_t units = 0;
    uint64_t at = 0;
    const char *list = strchr(text, ';');
    while (list != NULL && *list == ';') {
        at += strtoull(list + 1, &end, 10);
        uint64_t n = *end == ',' ? strtoull(end + 1, &end, 10) : 0;
        units += at > now_us ? n : 0;
        list = strchr(end, ';');
    }
    return units;
}

/* Returns how much of a lease the node could spend now. */
static uint64_t spendable(const struct world *w, unsigned n, const struct subject *s)
{
    struct node_keys *keys = w->nodes[n].keys;
    uint64_t now_ns = node_ns(w, n, w->now_us);
    if (!w->nodes[n].up) {
        return 0;
    }
    struct hash hash = node_key_hash(keys, PART(s->limit, text_of(s->name), 1));
    uint64_t unused = now_ns;
    struct key_stripe *stripe = node_keys_lock(keys, hash, &unused);
    const struct lease *e = node_key_part(node_key_find(stripe, hash), KEY_LEASED);
    uint64_t units = e != NULL && now_ns < e->expires_ns && !e->drop ? e->left : 0;
    node_keys_unlock(stripe);
    return units;
}

/* Returns the outstanding units that the store knows of for a bucket; for a window, the units taken
 * from it. */
static uint64_t outstanding(struct world *w, const struct subject *s)
{
    char copy[1024];
    uint64_t now_us = store_us(w, w->now_us);
    struct weir_text value = fake_redis_value(w->redis, store_key_text(&s->key));
    if (value.len >= sizeof copy) {
        world_fail(w, "%s: a state of %zu bytes", s->name, value.len);
        return 0;
    }
    (void)snprintf(copy, sizeof copy, "%.*s", TEXT_ARGS(value));
    if (is_bucket(s->params)) {
        return read_marks(copy, now_us);
    }
    const char *colon = strchr(copy, ':');
    bool now = strtoll(copy, NULL, 10) == window_of(s->params, now_us);
    return now && colon != NULL ? strtoull(colon + 1, NULL, 10) : 0;
}

/* Checks the level that the store itself gives in its reply to a call. */
void check_level(struct world *w, const struct message *m)
{
    const struct subject *s = &w->subjects[m->subject];
    struct store_reply reply;
    if (s->limit->mode != REMOTE_LEASED || !is_bucket(s->params) ||
        store_reply_read((struct weir_text){m->reply, m->reply_len}, &reply) != STORE_REPLY ||
        reply.n < SCRIPT_ANSWER_COUNT) {
        return;
    }
    uint64_t left = (uint64_t)reply.integers[2];
    uint64_t out = outstanding(w, s);
    if (left + out > s->params->quota) {
        world_fail(w, "%s: %" PRIu64 " units are left, and %" PRIu64 " outstanding, of %" PRIu64,
                   s->name, left, out, s->params->quota);
    }
}

/* Checks all nodes if there are few, otherwise only this one. */
void check_spendable(struct world *w, unsigned subject, unsigned node)
{
    const struct subject *s = &w->subjects[subject];
    uint64_t units = 0;
    if (s->limit->mode != REMOTE_LEASED || s->uncertain) {
        return;
    }
    fake_redis_set_time(w->redis, store_us(w, w->now_us));
    for (unsigned n = 0; w->plan.nodes <= FEW_NODES && n < w->plan.nodes; n++) {
        units += spendable(w, n, s);
    }
    units = w->plan.nodes <= FEW_NODES ? units : spendable(w, node, s);
    uint64_t known = units > 0 ? outstanding(w, s) : 0;
    if (units > known) {
        world_fail(w, "%s: nodes could spend %" PRIu64 " units, of which the store knows %" PRIu64,
                   s->name, units, known);
    }
}

/* ---- I4: the least that is admitted ---- */

static uint64_t admitted_by(const struct subject *s, uint64_t at_us)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->admitted_n; i++) {
        sum += s->admissions[i].at_us <= at_us ? s->admissions[i].units : 0;
    }
    return sum;
}

static void check_use_of_bucket(struct world *w, const struct subject *s, uint64_t unused)
{
    i128 time = (i128)w->plan.length_us * STORE_PARTS;
    uint64_t refilled = s->params->quota + (uint64_t)(time / unit_parts(s->params));
    uint64_t least = sub_floor0(refilled, unused);
    uint64_t admitted = admitted_by(s, w->plan.length_us);
    if (admitted < least) {
        world_fail(w,
                   "%s: admitted %" PRIu64 " of %" PRIu64
                   " that there were or refilled, expected at least %" PRIu64
                   ": the largest lease was %" PRIu64,
                   s->name, admitted, refilled, least, s->q);
    }
}

static void check_use_of_windows(struct world *w, const struct subject *s, uint64_t unused)
{
    int64_t first =
        window_of(s->params, w->epoch_us) + 1; /* the first and the last window are not complete */
    int64_t last = window_of(s->params, w->epoch_us + w->plan.length_us) - 1;
    for (int64_t window = first; window <= last; window++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < s->admitted_n; i++) {
            const struct admission *a = &s->admissions[i];
            sum += window_of(s->params, a->store_us) == window ? a->units : 0;
        }
        if (sum + unused < s->params->quota) {
            world_fail(w,
                       "%s: window %" PRId64 " has admitted %" PRIu64 " of %" PRIu64
                       ", expected at most %" PRIu64 " less: the largest lease was %" PRIu64,
                       s->name, window, sum, s->params->quota, unused, s->q);
            return;
        }
    }
}

/* Apart from N q, the units that refill while calls and questions are in flight may stay unused. */
static void check_use(struct world *w, const struct subject *s)
{
    const struct plan *p = &w->plan;
    uint64_t way_us = 2 * (p->delay_us + p->jitter_us) + 4 * p->gap_us + p->late_us + USE_PAUSE_US;
    uint64_t meanwhile = (uint64_t)((i128)way_us * STORE_PARTS / unit_parts(s->params)) + 1;
    uint64_t unused = p->nodes * s->q + (is_bucket(s->params) ? meanwhile : 0);
    uint64_t capacity =
        s->params->quota + (uint64_t)((i128)p->length_us * STORE_PARTS / unit_parts(s->params));
    if (!p->calm || s->limit->mode != REMOTE_LEASED) {
        return;
    }
    if (is_bucket(s->params)) {
        if (s->offered >= 2 * capacity) {
            check_use_of_bucket(w, s, unused);
        }
    } else if (s->offered / 2 >= s->params->quota * (p->length_us / s->params->a + 1)) {
        check_use_of_windows(w, s, unused);
    }
}

/* ---- I7 ---- */

/* Returns until when units that were leased before a block may still be spent. */
static uint64_t held_until_us(const struct world *w, const struct subject *s, uint64_t from_us)
{
    if (s->limit->mode != REMOTE_LEASED) {
        return from_us;
    }
    if (is_bucket(s->params)) {
        return from_us + LEASE_LIFE_US;
    }
    uint64_t store = w->epoch_us + from_us;
    int64_t next = window_of(s->params, store) + 1;
    return (uint64_t)(next * (int64_t)s->params->a + (int64_t)s->params->b) - w->epoch_us;
}

static void check_blocks(struct world *w, const struct subject *s)
{
    for (size_t b = 0; b < s->blocks_n; b++) {
        uint64_t from_us = held_until_us(w, s, s->blocks[b].from_us);
        for (size_t i = 0; i < s->admitted_n; i++) {
            uint64_t at_us = s->admissions[i].at_us;
            if (at_us > from_us && at_us < s->blocks[b].to_us) {
                world_fail_at(w, at_us,
                              "%s: blocked at %" PRIu64 " until %" PRIu64
                              ", and node %u admits it at %" PRIu64,
                              s->name, s->blocks[b].from_us, s->blocks[b].to_us,
                              s->admissions[i].node, at_us);
                return;
            }
        }
    }
}

void check_leased(struct world *w)
{
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        struct subject *s = &w->subjects[i];
        if (is_bucket(s->params)) {
            check_bucket(w, s, 0, 0);
        } else {
            check_windows(w, s, 0, 0);
        }
        check_use(w, s);
        check_blocks(w, s);
    }
}
