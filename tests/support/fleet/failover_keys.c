#include "support/fleet/failover_keys.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/maths.h"
#include "support/fleet/fleet_crowd.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_node.h"

#define QUIET_NS (400 * WEIR_MILLISECOND) /* several exchanges of a synced limit */
#define PATIENCE_NS (20 * WEIR_SECOND)

static struct weir_fleet *fleet;

/* ---- limits that do not refill, and the history of their keys ---- */

#define SMALL 100
#define LARGE 1000 /* enough for leases */

static const struct kind {
    const char *name;
    int algorithm;
    int consistency;
    uint64_t quota;
} kinds[] = {
    {"token_bucket", WEIR_TOKEN_BUCKET, WEIR_FLEET_EXACT, SMALL},
    {"leaky_bucket", WEIR_LEAKY_BUCKET, WEIR_FLEET_EXACT, SMALL},
    {"fixed_window", WEIR_FIXED_WINDOW, WEIR_FLEET_EXACT, SMALL},
    {"sliding_window", WEIR_SLIDING_WINDOW, WEIR_FLEET_EXACT, SMALL},
    {"sliding_log", WEIR_SLIDING_LOG, WEIR_FLEET_EXACT, SMALL},
    {"leased token_bucket", WEIR_TOKEN_BUCKET, WEIR_FLEET_LEASED, LARGE},
    {"leased fixed_window", WEIR_FIXED_WINDOW, WEIR_FLEET_LEASED, LARGE},
    {"synced token_bucket", WEIR_TOKEN_BUCKET, WEIR_FLEET_SYNCED, SMALL},
    {"synced fixed_window", WEIR_FIXED_WINDOW, WEIR_FLEET_SYNCED, SMALL},
    {"synced sliding_window", WEIR_SLIDING_WINDOW, WEIR_FLEET_SYNCED, SMALL},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static const struct history {
    const char *name;
    unsigned before; /* percent of the limit taken before the lag */
    unsigned within; /* within the lag */
    unsigned anew;   /* within the lag, after a reset */
} histories[] = {
    {"nothing within the lag", 40, 0, 0},
    {"a part within the lag", 40, 30, 0},
    {"all of it within the lag", 0, 100, 0},
    {"twice all of it, with a reset", 0, 100, 100},
};
#define HISTORIES (sizeof histories / sizeof histories[0])

struct key {
    const struct kind *kind;
    const struct history *history;
    struct weir_fleet_limit *limit;
    char name[16];
    uint64_t admitted; /* in total */
    uint64_t granted;  /* upper bound of the units that the store granted within the lag */
    uint64_t last_ns;  /* time of the last admission */
    uint64_t unsure;   /* degraded answers: each may have been charged all the same */
    bool degraded;     /* the last answer was degraded */
};

static struct weir_fleet_limit *limits[KINDS];
static struct key keys[KINDS * HISTORIES];
static char spare[16]; /* another key of that slot */
#define KEYS (sizeof keys / sizeof keys[0])

static struct weir_fleet_limit *open_limit(const struct kind *kind)
{
    struct weir_fleet_limit_options o = fleet_hourly(kind->name, kind->quota);
    o.limit.algorithm = kind->algorithm;
    o.limit.period_ns = 1000 * WEIR_DAY;
    o.limit.queue = kind->algorithm == WEIR_LEAKY_BUCKET ? kind->quota - 1 : 0;
    o.consistency = kind->consistency;
    o.on_store_failure = WEIR_FLEET_CLOSED;
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    assert_int_equal(weir_fleet_limit_consistency(limit), kind->consistency);
    return limit;
}

void failover_keys_open(const char *url, unsigned slot)
{
    fleet = fleet_open_at(url, 0, 0);
    for (unsigned i = 0; i < KINDS; i++) {
        limits[i] = open_limit(&kinds[i]);
    }
    crowd_key_in_slot(slot, HISTORIES, spare);
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned kind = i / HISTORIES;
        keys[i] = (struct key){
            .kind = &kinds[kind], .history = &histories[i % HISTORIES], .limit = limits[kind]};
        crowd_key_in_slot(slot, i % HISTORIES, keys[i].name);
    }
}

void failover_keys_close(void)
{
    for (unsigned i = 0; fleet != NULL && i < KINDS; i++) {
        weir_fleet_limit_close(limits[i]);
        limits[i] = NULL;
    }
    weir_fleet_close(fleet);
    fleet = NULL;
}

/* ---- asking ---- */

static bool take(struct key *k)
{
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(k->limit, k->name, strlen(k->name), 1, &a), 0);
    bool allowed = a.verdict == WEIR_ALLOW;
    k->admitted += allowed;
    k->degraded = (a.flags & WEIR_FLAG_DEGRADED) != 0;
    k->unsure += k->degraded;
    k->last_ns = allowed ? clock_monotonic_ns() : k->last_ns;
    return allowed;
}

struct waiting {
    uint64_t done;
    int error;
    struct weir_answer answer;
};

static void on_done(void *arg, int error, const struct weir_answer *answer)
{
    struct waiting *w = arg;
    w->error = error;
    w->answer = error == 0 ? *answer : w->answer;
    __atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
}

static void await_done(struct waiting *w)
{
    while (__atomic_load_n(&w->done, __ATOMIC_ACQUIRE) == 0) {
        redis_look_again_soon();
    }
    assert_int_equal(w->error, 0);
}

static void reset(struct key *k)
{
    struct waiting w = {0};
    assert_int_equal(weir_fleet_reset(k->limit, k->name, strlen(k->name), on_done, &w), 0);
    await_done(&w);
}

/* Asks the store how many units are used. */
static uint64_t charged(struct key *k)
{
    struct waiting w = {0};
    struct weir_question q = {
        .key = k->name, .key_len = strlen(k->name), .cost = 1, .mode = WEIR_PEEK};
    int said = weir_fleet_ask(k->limit, &q, &w.answer, on_done, &w);
    assert_true(said >= 0);
    if (said == 0) {
        await_done(&w);
    }
    assert_int_equal(w.answer.flags & WEIR_FLAG_DEGRADED, 0);
    return k->kind->quota - w.answer.remaining;
}

/* Returns true for a denial that a busy machine may cause although units are left: the store did
 * not answer in time, or there was no exchange for too long. */
static bool may_ask_again(const struct key *k)
{
    return k->degraded || k->kind->consistency == WEIR_FLEET_SYNCED;
}

/* Takes that share of the limit, which must be available; only leases may refuse a few units that
 * another lease still holds. Returns how many units it got. */
static uint64_t take_part(struct key *k, unsigned percent)
{
    uint64_t units = k->kind->quota * percent / 100;
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_NS;
    uint64_t got = 0;
    while (got < units) {
        if (take(k)) {
            got++;
        } else if (may_ask_again(k) && clock_monotonic_ns() < end_ns) {
            redis_look_again_soon();
        } else {
            break;
        }
    }
    if (got + k->unsure < units && k->kind->consistency != WEIR_FLEET_LEASED) {
        fail_msg("%s, %s: %" PRIu64 " of %" PRIu64 " units", k->kind->name, k->history->name, got,
                 units);
    }
    return got;
}

/* Waits until the store knows: `synced` tells it a moment later. */
static void await_told(struct key *k, uint64_t units)
{
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_NS;
    while (k->kind->consistency == WEIR_FLEET_SYNCED && charged(k) != units) {
        assert_true(clock_monotonic_ns() < end_ns);
        redis_look_again_soon();
    }
}

void failover_keys_take_before(void)
{
    for (unsigned i = 0; i < KEYS; i++) {
        (void)take_part(&keys[i], keys[i].history->before);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        await_told(&keys[i], keys[i].admitted);
    }
}

/* Leases are granted in advance: one lease of at most a quarter of the quota may be out. */
static void take_some_within(void)
{
    for (unsigned i = 0; i < KEYS; i++) {
        struct key *k = &keys[i];
        k->granted = k->kind->consistency == WEIR_FLEET_LEASED ? k->kind->quota / 4 : 0;
        k->granted += take_part(k, k->history->within);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        await_told(&keys[i], keys[i].admitted);
    }
}

static void take_anew_within(void)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (keys[i].history->anew > 0) {
            reset(&keys[i]);
            keys[i].granted += take_part(&keys[i], keys[i].history->anew);
        }
    }
    for (unsigned i = 0; i < KEYS; i++) {
        if (keys[i].history->anew > 0) {
            await_told(&keys[i], keys[i].kind->quota);
        }
    }
}

void failover_keys_take_within(void)
{
    take_some_within();
    take_anew_within();
}

/* Takes all that is left of every key, until none has admitted anything for a while. */
void failover_keys_take_the_rest(void)
{
    uint64_t began_ns = clock_monotonic_ns();
    uint64_t last_ns = began_ns;
    while (clock_monotonic_ns() < last_ns + QUIET_NS) {
        assert_true(clock_monotonic_ns() < began_ns + PATIENCE_NS);
        for (unsigned i = 0; i < KEYS; i++) {
            while (take(&keys[i])) {
                last_ns = keys[i].last_ns;
            }
        }
        redis_look_again_soon();
    }
}

uint64_t failover_keys_await_store(void)
{
    uint64_t began_ns = clock_monotonic_ns();
    struct key k = keys[0];
    (void)snprintf(k.name, sizeof k.name, "%s", spare);
    while (!take(&k)) {
        assert_true(clock_monotonic_ns() < began_ns + 3 * PATIENCE_NS);
        redis_look_again_soon();
    }
    return (clock_monotonic_ns() - began_ns) / WEIR_MILLISECOND;
}

/* ---- judging ---- */

static uint64_t budget_of(const struct key *k)
{
    return k->kind->quota * (k->history->anew > 0 ? 2 : 1);
}

/* For `exact` the bound is met to the unit, if the store has answered every request in time. */
static void judge(const struct key *k)
{
    uint64_t budget = budget_of(k);
    uint64_t most = budget + min_u64(k->kind->quota, k->granted);
    assert_true(k->admitted <= most);
    if (k->kind->consistency == WEIR_FLEET_EXACT) {
        assert_in_range(k->admitted, most - k->unsure, most);
    }
    if (k->history->within == 100) {
        assert_true(k->admitted > budget); /* the loss is visible */
    }
}

static void print_kind(const struct key *k)
{
    print_message("  %-21s of %4" PRIu64 ":", k->kind->name, k->kind->quota);
    for (unsigned i = 0; i < HISTORIES; i++) {
        print_message("%s %" PRIu64 " extra of at most %" PRIu64, i > 0 ? "," : "",
                      sub_floor0(k[i].admitted, budget_of(&k[i])),
                      min_u64(k[i].kind->quota, k[i].granted));
    }
    print_message("\n");
}

void failover_keys_judge(void)
{
    for (unsigned i = 0; i < KEYS; i += HISTORIES) {
        print_kind(&keys[i]);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        judge(&keys[i]);
    }
}
