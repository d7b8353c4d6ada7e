/*
 * Nodes that exchange with a real redis-server, by its scripts, at times that the test chooses. One
 * seed is one run: who asks when, what gets lost on the way there or back, how far clocks are apart.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/maths.h"
#include "support/oracle_trace.h"
#include "support/store_run.h"
#include "support/sync_fakes.h"

#define NODES_MAX 6
#define STORE_US UINT64_C(1700000000000000)
#define KEY "alice"

static struct store_redis redis;
static struct scripts scripts;

/* ---- a fleet ---- */

struct node {
    struct syncs *syncs;
    uint64_t ahead_ns; /* of its clock ... */
    int64_t drift_ppm; /* ... which also runs slow or fast */
    /* A call on its way: when it runs and ends, on the true line. */
    struct sync_call call;
    struct store_reply reply;
    bool out, ran, lost_there, lost_back, again;
    uint64_t runs_ns, ends_ns;
    /* What was offered here; when the last exchange was made that was heard of; the most between that
     * and hearing of the next. */
    uint64_t offered, offered_at_call, offered_at_known, unheard;
    bool busy; /* somebody asks, for a while */
    uint64_t until_ns;
};

static struct fake_limit fake;
static struct node nodes[NODES_MAX];
static unsigned node_count;

static void start(unsigned n)
{
    node_count = n;
    fleet_size = n;
    (void)store_redis_do(&redis, "FLUSHALL");
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        script_put_load(&redis.out, &scripts.row[i]);
        store_redis_send(&redis);
        (void)store_redis_next(&redis);
    }
    memset(nodes, 0, sizeof nodes);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(syncs_create(&nodes[i].syncs, 64), 0);
        nodes[i].ahead_ns = (i * 977 + 1) * WEIR_SECOND; /* nobody's clock is another's */
    }
}

static void stop(void)
{
    for (unsigned i = 0; i < node_count; i++) {
        if (nodes[i].out) {
            sync_lost(nodes[i].syncs, &nodes[i].call, 0);
        }
        syncs_destroy(nodes[i].syncs);
    }
    assert_int_equal(fake.limit.references, 0);
}

/* True time counts from 0, when the store's clock says STORE_US. */
static uint64_t store_ns(uint64_t now_ns)
{
    return STORE_US * WEIR_MICROSECOND + now_ns;
}

static void run_script(const struct sync_call *call, uint64_t now_ns, struct store_reply *reply)
{
    unsigned count;
    struct buffer arguments;
    buffer_init(&arguments, 4096);
    sync_put_arguments(call, &arguments, &count);
    store_run_clock(&redis, store_ns(now_ns));
    script_put_head(&redis.out, sync_script(&scripts, call), SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&arguments));
    store_redis_send(&redis);
    assert_int_equal(store_redis_next(&redis)->type, '+');
    *reply = *store_redis_next(&redis);
    if (reply->type != ':') {
        fail_msg("%.*s", TEXT_ARGS(reply->text));
    }
    buffer_finish(&arguments);
}

/* What the store has, as `exact` would see it. */
static struct weir_answer peek(uint64_t now_ns)
{
    struct store_key key;
    struct weir_answer a;
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    struct store_part part = {&fake.numbers.params, store_key_text(&key), 1, 0};
    store_run_clock(&redis, store_ns(now_ns));
    script_put_call(&redis.out, script_for(&scripts, &part, 1), SCRIPT_BY_SHA, STORE_PEEK, &part,
                    1);
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    assert_int_equal(script_answer(store_redis_next(&redis), &part, 1, &a, NULL), 0);
    return a;
}

static struct text state_of_key(void)
{
    struct store_key key;
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    key.at[key.len] = '\0';
    const struct store_reply *v = store_redis_do(&redis, "GET", key.at);
    return v->type == '$' ? v->text : TEXT("0:0");
}

static int64_t units_of(const struct sync_call *call)
{
    return call->delta + (fake.numbers.params.algorithm == WEIR_TOKEN_BUCKET ? 0 : call->extra);
}

/* At once, with nothing on the way. */
static int64_t exchange(struct node *n, uint64_t now_ns)
{
    struct sync_call call;
    struct store_reply reply;
    if (!sync_next(n->syncs, now_ns + n->ahead_ns, &call)) {
        return 0;
    }
    run_script(&call, now_ns, &reply);
    assert_int_equal(sync_reply(n->syncs, &call, &reply, now_ns + n->ahead_ns), 0);
    return units_of(&call);
}

/* ---- what the script does ---- */

static void what_two_nodes_tell_is_what_exact_sees(void **state)
{
    static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW};
    for (unsigned i = 0; i < 3; i++) {
        struct store_limit *l = fake_limit(&fake, algorithms[i], 100, WEIR_MINUTE, 0);
        start(2);
        assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 30, nodes[0].ahead_ns), 30);
        assert_int_equal(fake_admit(nodes[1].syncs, l, KEY, 25, nodes[1].ahead_ns), 25);
        assert_int_equal(exchange(&nodes[0], 0), 30);
        assert_int_equal(peek(0).remaining, 70);
        assert_int_equal(exchange(&nodes[1], 0), 25);
        assert_int_equal(peek(0).remaining, 45);
        assert_int_equal(fake_ask(nodes[1].syncs, l, KEY, 1, nodes[1].ahead_ns).remaining, 44);
        assert_int_equal(fake_ask(nodes[0].syncs, l, KEY, 1, nodes[0].ahead_ns).remaining, 69);
        assert_int_equal(exchange(&nodes[0], S_NS), 1);
        uint64_t left = fake_ask(nodes[0].syncs, l, KEY, 1, S_NS + nodes[0].ahead_ns).remaining;
        assert_int_equal(left, 43); /* does not know of the other's last */
        stop();
    }
}

static void the_store_goes_into_debt_and_nobody_admits_until_it_is_paid(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    start(3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_admit(nodes[i].syncs, l, KEY, 20, nodes[i].ahead_ns), 10);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    struct weir_answer a = peek(0);
    assert_int_equal(a.remaining, 0);
    assert_int_equal(a.reset_after_ns, 3 * WEIR_SECOND); /* 30 units, not cut off */
    a = fake_ask(nodes[2].syncs, l, KEY, 1, nodes[2].ahead_ns);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, 2100 * MS);
    stop();
}

/* As store/send.c makes the call. */
static struct weir_answer run_verb(enum store_verb verb, uint64_t cost, uint64_t time_ns,
                                   uint64_t now_ns)
{
    struct store_key key;
    struct weir_answer a;
    struct buffer b;
    buffer_init(&b, 4096);
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    struct store_part part = {&fake.numbers.params, store_key_text(&key), cost, time_ns};
    uint64_t beyond = sync_beyond(&fake.limit, part.params);
    unsigned count = script_put_arguments(&b, verb, &part, 1);
    count += script_put_beyond(&b, &beyond, 1);
    store_run_clock(&redis, store_ns(now_ns));
    script_put_head(&redis.out, script_for(&scripts, &part, 1), SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&b));
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    assert_int_equal(script_answer(store_redis_next(&redis), &part, 1, &a, NULL), 0);
    buffer_finish(&b);
    return a;
}

/* 60 units of a bucket of 10, which by itself owes 20 at the most: that is 6 s, and no clock's fault. */
static void verbs_forgive_no_debt_but_what_they_give_back(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    start(6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(fake_admit(nodes[i].syncs, l, KEY, 20, nodes[i].ahead_ns), 10);
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    static const struct {
        enum store_verb verb;
        uint64_t cost, time_ns, left_ms;
    } steps[] = {
        {STORE_CHECK, 1, WEIR_SECOND, 6000}, /* would wait, and is denied */
        {STORE_UP_TO, 5, 0, 6000},
        {STORE_PEEK, 1, WEIR_SECOND, 6000},
        {STORE_PENALISE, 3, 0, 6000}, /* finds no room */
        {STORE_REFUND, 3, WEIR_FOREVER, 5700},
        {STORE_REFUND, 10, WEIR_FOREVER, 4700},
    };
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct weir_answer a = run_verb(steps[i].verb, steps[i].cost, steps[i].time_ns, 0);
        assert_int_equal(a.reset_after_ns, steps[i].left_ms * MS);
        assert_int_equal(a.granted, 0);
        a = run_verb(STORE_PEEK, 1, 0, 0); /* and that is what the store has */
        assert_int_equal(a.reset_after_ns, steps[i].left_ms * MS);
    }
    stop();
}

/* The other side of it: (1 + 1 + 2 * 8) times to full of 1 s, and a second, is all that is believed. */
static void verbs_bring_a_bucket_of_another_time_down_as_exchanges_do(void **state)
{
    (void)fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    start(2);
    struct store_key key;
    char full_at[32];
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    key.at[key.len] = '\0';
    static const uint64_t leads_ms[][2] = {{19000, 18900}, {19001, 17900}};
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(full_at, sizeof full_at, "%" PRIu64, STORE_US + leads_ms[i][0] * 1000);
        (void)store_redis_do(&redis, "SET", key.at, full_at);
        struct weir_answer a = run_verb(STORE_REFUND, 1, WEIR_FOREVER, 0);
        assert_int_equal(a.reset_after_ns, leads_ms[i][1] * MS);
    }
    stop();
}

static void a_windows_debt_stays_in_its_window(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_FIXED_WINDOW, 10, WEIR_SECOND, 0);
    start(3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_admit(nodes[i].syncs, l, KEY, 20, nodes[i].ahead_ns), 10);
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 5, 990 * MS + nodes[0].ahead_ns), 0);
    assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 20, 1010 * MS + nodes[0].ahead_ns), 10);
    stop();
}

static void verbs_go_straight_to_the_state_and_are_heard_of(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_SLIDING_WINDOW, 100, WEIR_MINUTE, 0);
    struct store_key key;
    start(1);
    uint64_t ahead = nodes[0].ahead_ns;
    store_key(&l->head, NO_SHARD, TEXT(KEY), &key);
    static const struct {
        enum store_verb verb;
        uint64_t cost, left;
        unsigned flags;
    } steps[] = {
        {STORE_PENALISE, 20, 75, 0},
        {STORE_REFUND, 10, 84, 0},
        {STORE_BLOCK, 1, 0, WEIR_FLAG_BLOCKED},
        {STORE_UNBLOCK, 1, 83, 0},
        {STORE_RESET, 1, 99, 0},
    };
    assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 4, ahead), 4);
    assert_int_equal(exchange(&nodes[0], 0), 4);
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        uint64_t now_ns = (i + 1) * S_NS;
        struct store_part part = {&fake.numbers.params, store_key_text(&key), steps[i].cost,
                                  store_ns(steps[i].verb == STORE_BLOCK ? WEIR_HOUR : now_ns)};
        store_run_clock(&redis, store_ns(now_ns));
        script_put_call(&redis.out, script_for(&scripts, &part, 1), SCRIPT_BY_SHA, steps[i].verb,
                        &part, 1);
        store_redis_send(&redis);
        (void)store_redis_next(&redis);
        assert_int_equal(store_redis_next(&redis)->type, ':');
        (void)fake_ask(nodes[0].syncs, l, KEY, 1, now_ns - 1 + ahead);
        (void)exchange(&nodes[0], now_ns);
        struct weir_answer a = fake_ask(nodes[0].syncs, l, KEY, 101, now_ns + ahead);
        assert_int_equal(a.remaining, steps[i].left);
        assert_int_equal(a.flags, steps[i].flags);
    }
    stop();
}

/* Late units of a sliding window count in the previous one; those of a fixed one for nothing. */
static void a_delta_of_a_window_that_is_over_counts_there_or_is_dropped(void **state)
{
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        struct store_limit *l = fake_limit(&fake, algorithm, 100, WEIR_SECOND, 0);
        struct sync_counts n;
        start(1);
        uint64_t ahead = nodes[0].ahead_ns;
        (void)fake_ask(nodes[0].syncs, l, KEY, 1, 900 * MS + ahead);
        (void)exchange(&nodes[0], 900 * MS);
        assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 40, 950 * MS + ahead), 40);
        assert_int_equal(exchange(&nodes[0], 1000 * MS), 40);
        sync_counts(nodes[0].syncs, &n);
        bool fixed = algorithm == WEIR_FIXED_WINDOW;
        assert_int_equal(n.dropped, fixed ? 40 : 0);
        assert_int_equal(peek(1000 * MS).remaining, fixed ? 100 : 59);
        stop();
    }
}

static void a_store_whose_clock_was_set_back_goes_on(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        if (algorithm == WEIR_LEAKY_BUCKET) {
            continue;
        }
        struct store_limit *l = fake_limit(&fake, algorithm, 10, WEIR_SECOND, 0);
        start(1);
        uint64_t back_ns = 0;
        uint64_t admitted = 0;
        for (uint64_t now_ns = WEIR_HOUR; now_ns < WEIR_HOUR + 60 * WEIR_SECOND;
             now_ns += 10 * MS) {
            struct sync_call call;
            struct store_reply reply;
            uint64_t here_ns = now_ns + nodes[0].ahead_ns;
            back_ns = now_ns > WEIR_HOUR + 10 * WEIR_SECOND ? WEIR_HOUR : 0;
            admitted += fake_admit(nodes[0].syncs, l, KEY, 1, here_ns);
            if (sync_next(nodes[0].syncs, here_ns, &call)) {
                run_script(&call, now_ns - back_ns, &reply);
                assert_int_equal(sync_reply(nodes[0].syncs, &call, &reply, here_ns), 0);
            }
        }
        /* One burst more at the most; what was taken in an hour's time counts for one time to full. */
        assert_in_range(admitted, algorithm == WEIR_TOKEN_BUCKET ? 590 : 520, 620);
        stop();
    }
}

/* Also if it was by less than what a fleet could owe. The second is how far clocks may differ. */
static void a_clock_that_was_set_back_locks_a_bucket_out_for_one_time_to_full_and_a_second(void **state)
{
    static const unsigned seconds[] = {2, 5, 16, 18, 1000};
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 0);
        uint64_t begin_ns = WEIR_HOUR;
        uint64_t locked_ns = 0;
        start(1);
        for (uint64_t t = 0; t < 10 * WEIR_SECOND; t += 10 * MS) {
            struct sync_call call;
            struct store_reply reply;
            uint64_t here_ns = begin_ns + t + nodes[0].ahead_ns;
            bool set_back = t >= 2 * WEIR_SECOND;
            uint64_t store_ns = begin_ns + t - (set_back ? seconds[i] * WEIR_SECOND : 0);
            if (fake_admit(nodes[0].syncs, l, KEY, 1, here_ns) > 0 && set_back && locked_ns == 0) {
                locked_ns = t >= 2200 * MS ? t - 2 * WEIR_SECOND : 0;
            }
            if (sync_next(nodes[0].syncs, here_ns, &call)) {
                run_script(&call, store_ns, &reply);
                assert_int_equal(sync_reply(nodes[0].syncs, &call, &reply, here_ns), 0);
            }
        }
        assert_in_range(locked_ns, 900 * MS, 2200 * MS);
        stop();
    }
}

/* A bucket that is smaller than the rate times S still gives its rate. */
static void a_small_burst_does_not_cost_its_rate(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 2);
    uint64_t admitted = 0;
    start(1);
    for (uint64_t now_ns = 0; now_ns < 5 * WEIR_SECOND; now_ns += MS / 2) {
        admitted += fake_admit(nodes[0].syncs, l, KEY, 1, now_ns + nodes[0].ahead_ns);
        (void)exchange(&nodes[0], now_ns);
    }
    assert_in_range(admitted, 4900, 5002);
    stop();
}

/* One node at a million a second: each millisecond a thousand of them. */
static void a_million_decisions_are_a_dozen_calls(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000000, WEIR_SECOND, 1000000);
    struct sync_counts n;
    struct timespec from, to;
    uint64_t admitted = 0;
    uint64_t spent_ns = 0;
    start(1);
    for (uint64_t now_ns = 0; now_ns < WEIR_SECOND; now_ns += MS) {
        (void)clock_gettime(CLOCK_MONOTONIC, &from);
        admitted += fake_admit(nodes[0].syncs, l, KEY, 1000, now_ns + nodes[0].ahead_ns);
        (void)clock_gettime(CLOCK_MONOTONIC, &to);
        spent_ns += (uint64_t)(to.tv_sec - from.tv_sec) * WEIR_SECOND + (uint64_t)to.tv_nsec -
                    (uint64_t)from.tv_nsec;
        (void)exchange(&nodes[0], now_ns);
    }
    sync_counts(nodes[0].syncs, &n);
    print_message("%" PRIu64 " ns for each decision, %" PRIu64 " calls for %" PRIu64 "\n",
                  spent_ns / admitted, n.exchanges, admitted);
    assert_int_equal(admitted, 1000000);
    assert_in_range(n.exchanges, 9, 11);
    stop();
}

/* The state is that of `exact`: a plain number where the rate has no remainder. */
static void a_synced_bucket_is_no_larger_than_an_exact_one(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 100);
    start(1);
    (void)fake_admit(nodes[0].syncs, l, KEY, 50, 12345 + nodes[0].ahead_ns);
    (void)exchange(&nodes[0], MS + 23456);
    struct text value = state_of_key();
    assert_int_equal(value.len, 16);
    assert_null(memchr(value.at, ':', value.len));
    stop();
}

/* ---- random schedules ---- */

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
    uint64_t told_twice;             /* units of calls that ran, and whose reply was lost */
    uint64_t in_window[WINDOWS_MAX]; /* admitted, by the store's time */
    i128 full_at;                    /* of one bucket that all had asked: 1/128 ns */
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
        int e = sync_ask(n->syncs, &fake.limit, NO_SHARD, TEXT(KEY), cost, here(n, now_ns), &a);
        n->offered += cost;
        r->degraded += (e & SYNC_DEGRADED) != 0;
        if ((e & SYNC_ANSWERED) != 0 && a.verdict == WEIR_ALLOW) {
            note_admission(r, cost, now_ns);
        }
    }
}

static void send(struct run *r, struct node *n, uint64_t now_ns)
{
    if (n->out || !sync_next(n->syncs, here(n, now_ns), &n->call)) {
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
        n->offered_at_call = n->offered; /* which it tells of */
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
        sync_lost(n->syncs, &n->call, here(n, now_ns));
        return;
    }
    assert_int_equal(sync_reply(n->syncs, &n->call, &n->reply, here(n, now_ns)), 0);
    uint64_t unheard = n->offered - n->offered_at_known;
    n->unheard = unheard > n->unheard ? unheard : n->unheard;
    n->offered_at_known = n->offered_at_call;
}

/* A round trip takes whole ticks; so a call that comes back within one is none. */
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

/* The sum over all nodes but the least of min(most, offered within an exchange and its reply). */
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
        /* On top of what refills; a node alone admits what refills within 5 S, too. */
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
        syncs_seed(nodes[i].syncs, seed);
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

/* What the store has counted in a window that does not end. */
static uint64_t counted(void)
{
    struct text value = state_of_key();
    return strtoull((const char *)memchr(value.at, ':', value.len) + 1, NULL, 10);
}

/* Told by all, with nothing lost any more. */
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

/* A bucket's state is never behind that of one bucket which all had asked. */
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
        cmocka_unit_test(what_two_nodes_tell_is_what_exact_sees),
        cmocka_unit_test(the_store_goes_into_debt_and_nobody_admits_until_it_is_paid),
        cmocka_unit_test(verbs_forgive_no_debt_but_what_they_give_back),
        cmocka_unit_test(verbs_bring_a_bucket_of_another_time_down_as_exchanges_do),
        cmocka_unit_test(a_windows_debt_stays_in_its_window),
        cmocka_unit_test(verbs_go_straight_to_the_state_and_are_heard_of),
        cmocka_unit_test(a_delta_of_a_window_that_is_over_counts_there_or_is_dropped),
        cmocka_unit_test(a_store_whose_clock_was_set_back_goes_on),
        cmocka_unit_test(a_clock_that_was_set_back_locks_a_bucket_out_for_one_time_to_full_and_a_second),
        cmocka_unit_test(a_small_burst_does_not_cost_its_rate),
        cmocka_unit_test(a_million_decisions_are_a_dozen_calls),
        cmocka_unit_test(a_synced_bucket_is_no_larger_than_an_exact_one),
        cmocka_unit_test(whatever_is_lost_the_fleet_admits_no_more_than_the_bound),
        cmocka_unit_test(units_are_never_lost_and_counted_twice_only_with_a_lost_reply),
        cmocka_unit_test(a_bucket_in_the_store_leads_at_least_as_far_as_one_that_all_had_asked),
    };
    store_redis_start(&redis, NULL);
    store_run_scripts(&scripts);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scripts_finish(&scripts);
    store_redis_stop(&redis);
    return failed;
}
