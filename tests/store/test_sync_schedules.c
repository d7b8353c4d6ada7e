/*
 * Tests random schedules. A seed determines a run: which nodes ask when, which calls and replies
 * are lost, how far clocks differ.
 */
#include "store/sync_fleet.h"

#ifdef WEIR_LONG
#define SEEDS 2000
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 20
#else
#define SEEDS 150
#endif

#define TICK_NS MS
#define DEADLINE_NS (20 * MS)
#define WINDOWS_MAX 64

struct run {
    struct oracle_random random;
    uint64_t seed;
    unsigned loss_percent;
    uint64_t length_ns;
    uint64_t admitted;
    uint64_t told_twice;             /* units of calls that ran but whose reply was lost */
    uint64_t in_window[WINDOWS_MAX]; /* units admitted, by the store's time */
    i128 full_at;                    /* when one bucket for all nodes would be full, in 1/128 ns */
    i128 furthest;                   /* its largest lead */
    uint64_t degraded;
};

static uint64_t here(const struct node *n, uint64_t now_ns)
{
    return n->ahead_ns + now_ns + (uint64_t)((int64_t)now_ns / 1000000 * n->drift_ppm);
}

static i128 step_ticks(void)
{
    return (i128)fake.numbers.params.a * STORE_PARTS + fake.numbers.params.b;
}

static uint64_t window_of(uint64_t now_ns)
{
    return store_ns(now_ns) / fake.numbers.options.period_ns;
}

static void note_admission(struct run *r, uint64_t cost, uint64_t now_ns)
{
    i128 now = (i128)now_ns * 128;
    r->admitted += cost;
    r->in_window[window_of(now_ns) - window_of(0)] += cost;
    r->full_at = (r->full_at > now ? r->full_at : now) + (i128)cost * step_ticks();
    if (r->full_at - now > r->furthest) {
        r->furthest = r->full_at - now;
    }
}

static void offer(struct run *r, struct node *n, uint64_t now_ns)
{
    uint64_t most = fake.numbers.params.quota;
    if (now_ns >= n->until_ns) {
        n->busy = !n->busy;
        n->until_ns = now_ns + oracle_between(&r->random, 5, 500) * MS;
    }
    uint64_t questions = n->busy ? oracle_between(&r->random, 0, 4) : 0;
    for (uint64_t i = 0; i < questions; i++) {
        uint64_t cost = oracle_once_in(&r->random, 4) ? oracle_between(&r->random, 1, most) : 1;
        struct weir_answer a;
        int e = sync_ask(n->keys, PART(&fake.limit, TEXT(KEY), cost), here(n, now_ns), &a);
        n->offered += cost;
        r->degraded += (e & SYNC_DEGRADED) != 0;
        if ((e & SYNC_ANSWERED) != 0 && a.verdict == WEIR_ALLOW) {
            note_admission(r, cost, now_ns);
        }
    }
}

static void send(struct run *r, struct node *n, uint64_t now_ns)
{
    if (n->out || !sync_next(n->keys, here(n, now_ns), &n->call)) {
        return;
    }
    n->out = true;
    n->ran = false;
    n->lost_there = oracle_between(&r->random, 1, 100) <= r->loss_percent;
    n->lost_back = oracle_between(&r->random, 1, 100) <= r->loss_percent;
    n->runs_ns = now_ns + oracle_between(&r->random, 0, 8 * MS);
    n->ends_ns = n->lost_there || n->lost_back ? now_ns + DEADLINE_NS
                                               : n->runs_ns + oracle_between(&r->random, 0, 8 * MS);
    if (!n->again) {
        n->offered_at_call = n->offered; /* what this call reports */
    }
}

static void arrive(struct run *r, struct node *n, uint64_t now_ns)
{
    bool lost = n->lost_there || n->lost_back;
    if (n->out && !n->ran && !n->lost_there && now_ns >= n->runs_ns) {
        run_script(&n->call, now_ns, &n->reply);
        n->ran = true;
        if (lost) {
            r->told_twice += (uint64_t)units_of(&n->call);
        }
    }
    if (!n->out || now_ns < n->ends_ns || (!lost && !n->ran)) {
        return;
    }
    n->out = false;
    n->again = lost && units_of(&n->call) != 0;
    if (lost) {
        sync_lost(n->keys, &n->call, here(n, now_ns));
        return;
    }
    assert_int_equal(sync_reply(n->keys, &n->call, &n->reply, here(n, now_ns)), 0);
    uint64_t unheard = n->offered - n->offered_at_known;
    n->unheard = unheard > n->unheard ? unheard : n->unheard;
    n->offered_at_known = n->offered_at_call;
}

/* A call that is sent in one tick can arrive in the next at the earliest, so that no round trip is
 * shorter than a tick. */
static void run(struct run *r, uint64_t from_ns)
{
    for (uint64_t now_ns = from_ns; now_ns < from_ns + r->length_ns; now_ns += TICK_NS) {
        for (unsigned i = 0; i < node_count; i++) {
            arrive(r, &nodes[i], now_ns);
            offer(r, &nodes[i], now_ns);
            send(r, &nodes[i], now_ns);
        }
    }
    for (unsigned i = 0; i < node_count; i++) {
        uint64_t unheard = nodes[i].offered - nodes[i].offered_at_known;
        nodes[i].unheard = unheard > nodes[i].unheard ? unheard : nodes[i].unheard;
    }
}

/* Returns the sum of min(most, units offered between an exchange and the next reply) over all nodes
 * except the one with the least. */
static uint64_t excess(uint64_t most)
{
    uint64_t sum = 0;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < node_count; i++) {
        uint64_t part = nodes[i].unheard < most ? nodes[i].unheard : most;
        sum += part;
        least = part < least ? part : least;
    }
    return sum - least;
}

static void check_bound(const struct run *r)
{
    const struct store_params *p = &fake.numbers.params;
    uint64_t most = p->quota + excess(p->quota);
    if (p->algorithm == WEIR_TOKEN_BUCKET) {
        /* This comes on top of what refills; a single node also admits what refills within 5 S. */
        uint64_t refill = (uint64_t)((i128)(7 * S_NS) * 128 / step_ticks()) + 1;
        most = p->quota + excess(p->quota + refill);
        if (r->furthest > (i128)most * step_ticks()) {
            fail_msg("seed %" PRIu64 ": %u nodes admitted %" PRIu64 ", expected at most %" PRIu64,
                     r->seed, node_count, (uint64_t)(r->furthest / step_ticks()), most);
        }
        return;
    }
    for (unsigned i = 0; i < WINDOWS_MAX; i++) {
        if (r->in_window[i] > most) {
            fail_msg("seed %" PRIu64 ": %u nodes admitted %" PRIu64 " in window %u, expected at "
                     "most %" PRIu64,
                     r->seed, node_count, r->in_window[i], i, most);
        }
    }
}

static void make_fleet(struct run *r, uint64_t seed)
{
    static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW};
    *r = (struct run){.seed = seed, .random = {seed}};
    uint64_t period_ns = oracle_between(&r->random, 100, 2000) * MS;
    uint64_t count = oracle_between(&r->random, 1, 200);
    (void)fake_limit(&fake, algorithms[seed % 3], count, period_ns,
                     seed % 3 == 0 ? oracle_between(&r->random, 1, 100) : 0);
    start((unsigned)oracle_between(&r->random, 1, NODES_MAX));
    for (unsigned i = 0; i < node_count; i++) {
        node_keys_seed(nodes[i].keys, seed);
        nodes[i].drift_ppm = (int64_t)oracle_between(&r->random, 0, 8000) - 4000;
    }
    r->length_ns = 4 * WEIR_SECOND;
}

static void whatever_is_lost_the_fleet_admits_no_more_than_the_bound(void **state)
{
    uint64_t degraded = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run r;
        make_fleet(&r, seed);
        r.loss_percent = seed % 4 == 0 ? 0 : (unsigned)oracle_between(&r.random, 0, 60);
        run(&r, 0);
        check_bound(&r);
        degraded += r.degraded;
        stop();
    }
    assert_true(degraded > 0);
}

/* Returns what the store has counted in a window that does not end. */
static uint64_t counted(void)
{
    struct weir_text value = state_of_key();
    return strtoull((const char *)memchr(value.at, ':', value.len) + 1, NULL, 10);
}

/* Lets all nodes report everything, without further losses. */
static void tell_everything(struct run *r, uint64_t now_ns)
{
    r->loss_percent = 0;
    for (uint64_t t = now_ns; t < now_ns + 10 * S_NS; t += TICK_NS) {
        for (unsigned i = 0; i < node_count; i++) {
            arrive(r, &nodes[i], t);
            send(r, &nodes[i], t);
        }
    }
}

static void units_are_never_lost_and_counted_twice_only_with_a_lost_reply(void **state)
{
    uint64_t twice = 0;
    for (uint64_t seed = 1; seed <= SEEDS / 3; seed++) {
        struct run r;
        make_fleet(&r, seed);
        (void)fake_limit(&fake, seed % 2 != 0 ? WEIR_FIXED_WINDOW : WEIR_SLIDING_WINDOW, 500,
                         1000 * WEIR_DAY, 0);
        r.loss_percent = seed % 3 == 0 ? 0 : 40;
        r.length_ns = WEIR_SECOND;
        run(&r, 0);
        tell_everything(&r, r.length_ns);
        twice += r.told_twice;
        assert_int_equal(counted(), r.admitted + r.told_twice);
        assert_true(r.loss_percent != 0 || r.told_twice == 0 || seed % 3 != 0);
        stop();
    }
    assert_true(twice > 0);
}

/* A bucket's state is never behind that of a single bucket for all nodes. */
static void a_bucket_in_the_store_leads_at_least_as_far_as_one_that_all_had_asked(void **state)
{
    for (uint64_t seed = 3; seed <= SEEDS / 3; seed += 3) {
        struct run r;
        make_fleet(&r, seed);
        r.loss_percent = seed % 2 == 0 ? 0 : 30;
        run(&r, 0);
        uint64_t end_ns = r.length_ns + 10 * S_NS;
        tell_everything(&r, r.length_ns);
        i128 state_us = strtoull(state_of_key().at, NULL, 10) + 1;
        assert_true(r.full_at <= (i128)end_ns * 128 ||
                    r.full_at <= (state_us - STORE_US) * STORE_PARTS);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_lost_the_fleet_admits_no_more_than_the_bound),
        cmocka_unit_test(units_are_never_lost_and_counted_twice_only_with_a_lost_reply),
        cmocka_unit_test(a_bucket_in_the_store_leads_at_least_as_far_as_one_that_all_had_asked),
    };
    return cmocka_run_group_tests(tests, start_store, stop_store);
}
