/*
 * How much each algorithm admits: never more than it says in any interval (P1),
 * and when more is offered, hardly less (P2). Counted on what was admitted,
 * without regard to how it was decided.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/oracle/oracle_trace.h"

#if defined(WEIR_LONG)
#define RULES 5000
#define QUOTAS 64
#define OFFERS UINT64_C(10000000)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_EMULATED)
#define RULES 4
#define QUOTAS 8
#define OFFERS UINT64_C(10000)
#else
#define RULES 200
#define QUOTAS 64
#define OFFERS UINT64_C(500000)
#endif

#define ADMITTED_MOST 600

/* What was let through, in order. */
struct admitted {
    uint64_t at_ns[ADMITTED_MOST];
    uint64_t units[ADMITTED_MOST];
    uint64_t delay_ns[ADMITTED_MOST];
    size_t n;
};

static struct weir *open_rule(const struct oracle_rule *r)
{
    struct weir_options o = oracle_options(r);
    struct weir *w;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    return w;
}

static struct weir_answer check(struct weir *w, uint64_t cost, uint64_t now)
{
    struct weir_answer a;
    assert_int_equal(weir_check_at(w, "k", 1, cost, now, &a), 0);
    return a;
}

/* ---- P1 ---- */

/* Some traffic: bursts, pauses of about a unit or a period, and callers who come when told to. */
static uint64_t next_time(struct oracle_random *g, const struct oracle_rule *r, uint64_t now,
                          const struct weir_answer *last)
{
    uint64_t by = 0;
    switch (oracle_between(g, 0, 9)) {
    case 0:
    case 1:
        by = oracle_between(g, 0, r->period_ns / r->count);
        break;
    case 2:
        by = oracle_between(g, 0, r->period_ns);
        break;
    case 3:
    case 4:
    case 5:
        by = last->verdict == WEIR_DENY ? last->retry_after_ns : 0;
        break;
    case 6:
        by = (uint64_t)(oracle_window_end(r, now) - 1 - now); /* a window's last moment */
        break;
    default:
        break;
    }
    return now + by;
}

static void let_through(struct oracle_random *g, const struct oracle_rule *r, uint64_t cost_most,
                        struct admitted *out)
{
    struct weir *w = open_rule(r);
    uint64_t last = oracle_last_time(r);
    uint64_t now = r->period_ns;
    struct weir_answer a = {0};
    out->n = 0;
    for (size_t i = 0; i < 3000 && out->n < ADMITTED_MOST; i++) {
        uint64_t cost = oracle_between(g, 1, cost_most);
        now = next_time(g, r, now, &a);
        if (now > last) {
            break;
        }
        a = check(w, cost, now);
        if (a.verdict == WEIR_ALLOW) {
            out->at_ns[out->n] = now;
            out->units[out->n] = cost;
            out->delay_ns[out->n++] = a.delay_ns;
        }
    }
    weir_close(w);
}

/* The most units admitted in any interval that begins with an admission and ends before `length`.*/
static uint64_t most_within(const struct admitted *a, uint64_t length)
{
    uint64_t most = 0;
    for (size_t i = 0; i < a->n; i++) {
        uint64_t sum = 0;
        for (size_t j = i; j < a->n && a->at_ns[j] - a->at_ns[i] < length; j++) {
            sum += a->units[j];
        }
        most = sum > most ? sum : most;
    }
    return most;
}

typedef void (*bound_fn)(const struct oracle_rule *r, const struct admitted *a);

/* costs: up to a third of the quota, so that it is used up now and then; else single units. */
static void under_random_rules(int algorithm, bool costs, bound_fn holds)
{
    static struct admitted a;
    for (uint64_t i = 0; i < RULES; i++) {
        struct oracle_random g = {i};
        struct oracle_rule r = oracle_random_rule(&g, algorithm);
        let_through(&g, &r, costs ? (r.quota + 2) / 3 : 1, &a);
        holds(&r, &a);
    }
}

/* For every interval t between two admissions: units <= quota + rate * t. */
static void within_burst_and_rate(const struct oracle_rule *r, const struct admitted *a)
{
    for (size_t i = 0; i < a->n; i++) {
        oracle_int sum = 0;
        for (size_t j = i; j < a->n; j++) {
            oracle_int t = a->at_ns[j] - a->at_ns[i];
            sum += a->units[j];
            assert_true((sum - r->quota) * r->period_ns <= t * r->count);
        }
    }
}

static void a_token_bucket_admits_at_most_burst_and_rate_in_any_interval(void **state)
{
    under_random_rules(WEIR_TOKEN_BUCKET, true, within_burst_and_rate);
}

static void a_leaky_bucket_takes_at_most_its_queue_and_rate_in_any_interval(void **state)
{
    under_random_rules(WEIR_LEAKY_BUCKET, true, within_burst_and_rate);
}

/* At most 1 + undelayed + rate * t in any t; a nanosecond more, as release times are whole ones. */
static void released_at_the_rate(const struct oracle_rule *r, const struct admitted *a)
{
    for (size_t i = 0; i < a->n; i++) {
        oracle_int first = (oracle_int)a->at_ns[i] + a->delay_ns[i];
        for (size_t j = i + 1; j < a->n; j++) {
            oracle_int t = (oracle_int)a->at_ns[j] + a->delay_ns[j] - first;
            oracle_int paced = (oracle_int)(j - i) - r->undelayed;
            assert_true(t >= 0 && paced * r->period_ns <= (t + 1) * r->count);
        }
    }
}

static void a_leaky_bucket_releases_at_the_rate_and_what_is_undelayed(void **state)
{
    under_random_rules(WEIR_LEAKY_BUCKET, false, released_at_the_rate);
}

static void quota_in_each_window(const struct oracle_rule *r, const struct admitted *a)
{
    for (size_t i = 0; i < a->n; i++) {
        oracle_int end = oracle_window_end(r, a->at_ns[i]);
        uint64_t sum = 0;
        for (size_t j = i; j < a->n && a->at_ns[j] < end; j++) {
            sum += a->units[j];
        }
        assert_true(sum <= r->quota);
    }
}

static void a_fixed_window_admits_at_most_its_quota_in_each_window(void **state)
{
    under_random_rules(WEIR_FIXED_WINDOW, true, quota_in_each_window);
}

static void twice_the_quota_less_one(const struct oracle_rule *r, const struct admitted *a)
{
    assert_true(most_within(a, r->period_ns) <= 2 * r->quota - 1);
}

static void a_sliding_window_admits_at_most_twice_its_quota_less_one_in_any_interval(void **state)
{
    under_random_rules(WEIR_SLIDING_WINDOW, true, twice_the_quota_less_one);
}

static void quota_in_any_interval(const struct oracle_rule *r, const struct admitted *a)
{
    assert_true(most_within(a, r->period_ns) <= r->quota);
}

static void a_sliding_log_admits_at_most_its_quota_in_any_interval(void **state)
{
    under_random_rules(WEIR_SLIDING_LOG, true, quota_in_any_interval);
}

/* The bound is reached: a flood is released as 1 + undelayed at once, then one in each step. */
static void a_flood_uses_all_that_is_undelayed(void **state)
{
    struct oracle_rule r = {.algorithm = WEIR_LEAKY_BUCKET,
                            .count = 10,
                            .period_ns = WEIR_SECOND,
                            .queue = 20,
                            .undelayed = 8};
    oracle_rule_init(&r);
    struct weir *w = open_rule(&r);
    for (uint64_t i = 0; i <= 20; i++) {
        struct weir_answer a = check(w, 1, WEIR_SECOND);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.delay_ns, i <= 8 ? 0 : (i - 8) * WEIR_SECOND / 10);
    }
    assert_int_equal(check(w, 1, WEIR_SECOND).verdict, WEIR_DENY);
    weir_close(w);
}

/*
 * The measures must be able to tell: the edge burst of a fixed window breaks the
 * sliding window's bound, and one that a sliding window lets through the log's.
 */
static void the_measures_tell_the_algorithms_apart(void **state)
{
    static struct admitted a;
    uint64_t worst_fixed = 0;
    uint64_t worst_sliding = 0;
    for (uint64_t i = 0; i < 50; i++) {
        struct oracle_random g = {i};
        struct oracle_rule r = {.count = 5, .period_ns = WEIR_SECOND};
        r.algorithm = WEIR_FIXED_WINDOW;
        oracle_rule_init(&r);
        let_through(&g, &r, 1, &a);
        uint64_t most = most_within(&a, r.period_ns);
        worst_fixed = most > worst_fixed ? most : worst_fixed;
        r.algorithm = WEIR_SLIDING_WINDOW;
        let_through(&g, &r, 1, &a);
        most = most_within(&a, r.period_ns);
        worst_sliding = most > worst_sliding ? most : worst_sliding;
    }
    print_message("# quota 5, worst second: fixed %" PRIu64 ", sliding %" PRIu64 "\n", worst_fixed,
                  worst_sliding);
    assert_int_equal(worst_fixed, 10);
    assert_in_range(worst_sliding, 6, 9);
}

/* ---- P2 ---- */

/* Offers single units, a tenth of a percent faster than the rate; returns what was admitted. */
static uint64_t offer_just_above(const struct oracle_rule *r, uint64_t *elapsed_ns)
{
    struct weir *w = open_rule(r);
    uint64_t end = oracle_last_time(r);
    uint64_t admitted = 0;
    *elapsed_ns = 0;
    for (uint64_t i = 0; i < OFFERS; i++) {
        oracle_int then = (oracle_int)r->period_ns * i * 1000 / r->count / 1001;
        if (then > end) {
            break;
        }
        *elapsed_ns = (uint64_t)then;
        admitted += check(w, 1, *elapsed_ns).verdict == WEIR_ALLOW;
    }
    weir_close(w);
    return admitted;
}

static void admits_nearly_all_of(struct oracle_rule r)
{
    uint64_t elapsed;
    oracle_rule_init(&r);
    uint64_t admitted = offer_just_above(&r, &elapsed);
    oracle_int due = (oracle_int)elapsed * r.count / r.period_ns;
    if ((oracle_int)admitted * 10000 < due * 9999) {
        fail_msg("%" PRIu64 " per %" PRIu64 " ns: %" PRIu64 " of %" PRIu64 " admitted", r.count,
                 r.period_ns, admitted, (uint64_t)due);
    }
}

static const struct {
    uint64_t count;
    uint64_t period_ns;
} rates[] = {
    {1, WEIR_DAY},          {7, WEIR_HOUR},         {3, WEIR_SECOND},        {100, WEIR_MINUTE},
    {999, WEIR_SECOND},     {99999, WEIR_SECOND},   {399999, WEIR_SECOND},   {400001, WEIR_SECOND},
    {777777, WEIR_SECOND},  {1234567, WEIR_SECOND}, {3333333, WEIR_SECOND},  {5000001, WEIR_SECOND},
    {7500001, WEIR_SECOND}, {9999999, WEIR_SECOND}, {10000000, WEIR_SECOND},
};

static void buckets_admit_9999_of_10000_when_more_is_offered(void **state)
{
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct oracle_rule r = {.count = rates[i].count, .period_ns = rates[i].period_ns};
        r.algorithm = WEIR_TOKEN_BUCKET;
        r.burst = 2;
        admits_nearly_all_of(r);
        r.algorithm = WEIR_LEAKY_BUCKET;
        r.burst = 0;
        r.queue = 1;
        admits_nearly_all_of(r);
    }
}

/* A caller who always comes back when told to, for so many periods. */
static uint64_t insist(const struct oracle_rule *r, uint64_t periods)
{
    struct weir *w = open_rule(r);
    uint64_t admitted = 0;
    uint64_t denied = 0;
    for (uint64_t now = 0; now < periods * r->period_ns;) {
        struct weir_answer a = check(w, 1, now);
        admitted += a.verdict == WEIR_ALLOW;
        denied += a.verdict == WEIR_DENY;
        now += a.retry_after_ns;
        /* Told when to come, nobody is sent away twice; else this could go on for ever. */
        assert_true(denied <= admitted && admitted <= 2 * periods * r->quota);
    }
    weir_close(w);
    return admitted;
}

static void a_fixed_window_admits_exactly_its_quota_when_more_is_offered(void **state)
{
    for (uint64_t quota = 1; quota <= QUOTAS; quota++) {
        struct oracle_rule r = {
            .algorithm = WEIR_FIXED_WINDOW, .count = quota, .period_ns = 997000};
        oracle_rule_init(&r);
        assert_int_equal(insist(&r, 100), 100 * quota);
    }
}

static void calendar_months_admit_exactly_their_quota_when_more_is_offered(void **state)
{
    struct oracle_rule r = {.algorithm = WEIR_FIXED_WINDOW, .count = 3, .period_ns = WEIR_MONTH};
    oracle_rule_init(&r);
    assert_int_equal(insist(&r, 12 * 140), 12 * 140 * 3); /* with 2100, which is no leap year */
}

static void a_sliding_log_admits_exactly_its_quota_when_more_is_offered(void **state)
{
    for (uint64_t quota = 1; quota <= QUOTAS; quota++) {
        struct oracle_rule r = {.algorithm = WEIR_SLIDING_LOG, .count = quota, .period_ns = 997000};
        oracle_rule_init(&r);
        assert_int_equal(insist(&r, 100), 100 * quota);
    }
}

/* (quota - 1) in each period; one in two with a quota of one. The first may be a whole quota. */
static void a_sliding_window_admits_all_but_one_of_its_quota_when_more_is_offered(void **state)
{
    for (uint64_t quota = 1; quota <= QUOTAS; quota++) {
        struct oracle_rule r = {
            .algorithm = WEIR_SLIDING_WINDOW, .count = quota, .period_ns = 997000};
        oracle_rule_init(&r);
        uint64_t admitted = insist(&r, 1000);
        assert_true(admitted >= (quota == 1 ? 500 : 1000 * (quota - 1)));
        assert_true(admitted <= 1000 * quota);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_bucket_admits_at_most_burst_and_rate_in_any_interval),
        cmocka_unit_test(a_leaky_bucket_takes_at_most_its_queue_and_rate_in_any_interval),
        cmocka_unit_test(a_leaky_bucket_releases_at_the_rate_and_what_is_undelayed),
        cmocka_unit_test(a_flood_uses_all_that_is_undelayed),
        cmocka_unit_test(a_fixed_window_admits_at_most_its_quota_in_each_window),
        cmocka_unit_test(a_sliding_window_admits_at_most_twice_its_quota_less_one_in_any_interval),
        cmocka_unit_test(a_sliding_log_admits_at_most_its_quota_in_any_interval),
        cmocka_unit_test(the_measures_tell_the_algorithms_apart),
        cmocka_unit_test(buckets_admit_9999_of_10000_when_more_is_offered),
        cmocka_unit_test(a_fixed_window_admits_exactly_its_quota_when_more_is_offered),
        cmocka_unit_test(calendar_months_admit_exactly_their_quota_when_more_is_offered),
        cmocka_unit_test(a_sliding_log_admits_exactly_its_quota_when_more_is_offered),
        cmocka_unit_test(a_sliding_window_admits_all_but_one_of_its_quota_when_more_is_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
