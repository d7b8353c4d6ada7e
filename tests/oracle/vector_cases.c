#include "oracle/vector_cases.h"

#include <stdlib.h>

#include "support/oracle/oracle_vector.h"

enum { ALICE, BOB, CAROL };

/* A call in whole microseconds. */
struct call {
    uint64_t time;
    unsigned key;
    uint64_t cost;
    enum oracle_verb verb;
    uint64_t wait;
    uint64_t charged;
};

#define SECOND UINT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEARS_100 (UINT64_C(36525) * DAY)
#define CALLS_MOST 256

static struct oracle_op op_of(const struct call *c)
{
    return (struct oracle_op){
        .verb = c->verb,
        .key = c->key,
        .time_ns = c->time * ORACLE_US,
        .cost = c->cost,
        .wait_ns = c->wait * ORACLE_US,
        .charged_ns = c->charged * ORACLE_US,
    };
}

/*
 * Buckets only where a unit's time is exact: then every path has the same state,
 * whatever fraction of a microsecond it counts in. And nothing that a path which
 * counts in doubles could not hold.
 */
static void must_be_for_everyone(const struct oracle_rule *r)
{
    bool bucket = r->algorithm == WEIR_TOKEN_BUCKET || r->algorithm == WEIR_LEAKY_BUCKET;
    bool exact = ((oracle_int)r->period_ns << r->shift) % r->count == 0;
    oracle_int product = (oracle_int)(r->quota + r->max_debt) * (r->period_ns / ORACLE_US);
    if ((bucket && !exact) || product >= (oracle_int)1 << 53) {
        fprintf(stderr, "count %ju per %ju ns is not for everyone\n", (uintmax_t)r->count,
                (uintmax_t)r->period_ns);
        abort();
    }
}

/* rule: period and offset in microseconds. */
static void section(FILE *out, const char *title, struct oracle_rule rule, const struct call *calls,
                    size_t n)
{
    struct oracle_op ops[CALLS_MOST];
    struct oracle_trace t = {rule, ops, n};
    t.rule.period_ns *= ORACLE_US;
    t.rule.offset_ns *= ORACLE_US;
    oracle_rule_init(&t.rule);
    must_be_for_everyone(&t.rule);
    if (n > CALLS_MOST) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        ops[i] = op_of(&calls[i]);
    }
    fprintf(out, "\n# %s\n", title);
    oracle_vector_print(out, &t, ORACLE_US);
}

#define CALL(how, at, who, units)                                                                  \
    {                                                                                              \
        .time = (at), .key = (who), .cost = (units), .verb = (how)                                 \
    }
#define CHECK(at, who, units) CALL(ORACLE_CHECK, at, who, units)
#define PEEK(at, who, units) CALL(ORACLE_PEEK, at, who, units)

#define SECTION(out, title, rule, ...)                                                             \
    do {                                                                                           \
        const struct call calls_[] = {__VA_ARGS__};                                                \
        section(out, title, (struct oracle_rule)rule, calls_, sizeof calls_ / sizeof calls_[0]);   \
    } while (0)

#define RULE(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void heading(FILE *out, const char *what)
{
    fprintf(out, "# %s: generated from the oracle (tests/oracle/vector_cases.c). See README.md.\n",
            what);
}

/* Calls of three keys with bursts, idles and costs, at times that mean something to the rule. */
static void wander(FILE *out, const char *title, struct oracle_rule rule, uint64_t seed, size_t n)
{
    struct oracle_random g = {seed};
    struct call calls[CALLS_MOST];
    uint64_t now = oracle_between(&g, 0, 3 * rule.period_ns);
    uint64_t unit = rule.period_ns / rule.count;
    for (size_t i = 0; i < n; i++) {
        if (oracle_once_in(&g, 3)) {
            now += oracle_between(&g, 0, unit + 1);
        }
        if (oracle_once_in(&g, 12)) {
            now += oracle_between(&g, 0, 2 * rule.period_ns);
        }
        calls[i] = (struct call){
            .time = now,
            .key = (unsigned)oracle_between(&g, ALICE, CAROL),
            .cost = oracle_once_in(&g, 3) ? oracle_between(&g, 1, 5) : 1,
            .verb = oracle_once_in(&g, 8) ? ORACLE_PEEK : ORACLE_CHECK,
        };
    }
    section(out, title, rule, calls, n);
}

/* ---- the buckets ---- */

static void token_bucket(FILE *out)
{
    const int a = WEIR_TOKEN_BUCKET;
    heading(out, "token_bucket");
    SECTION(out, "A burst, then one token each 600 ms, and full again after an idle.",
            RULE(.algorithm = a, .count = 100, .period_ns = MINUTE, .burst = 3), CHECK(0, ALICE, 1),
            CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(599999, ALICE, 1),
            CHECK(600000, ALICE, 1), CHECK(600000, ALICE, 1), CHECK(1800000, ALICE, 2),
            CHECK(1800000, ALICE, 1), CHECK(10 * MINUTE, ALICE, 3), CHECK(10 * MINUTE, ALICE, 1));
    SECTION(out, "Costs; what is more than the burst never fits, and costs nothing.",
            RULE(.algorithm = a, .count = 5, .period_ns = SECOND, .burst = 10),
            CHECK(SECOND, ALICE, 7), CHECK(SECOND, ALICE, 4), CHECK(SECOND, ALICE, 3),
            CHECK(SECOND, ALICE, 11), CHECK(SECOND, ALICE, 10), CHECK(1200000, ALICE, 2),
            CHECK(1200000, ALICE, 1), CHECK(1399999, ALICE, 1), CHECK(3200000, ALICE, 10));
    SECTION(out, "Keys do not know of each other; a peek changes nothing.",
            RULE(.algorithm = a, .count = 2, .period_ns = SECOND, .burst = 2), CHECK(7, ALICE, 2),
            CHECK(7, ALICE, 1), CHECK(7, BOB, 1), PEEK(8, CAROL, 2), CHECK(8, CAROL, 2),
            PEEK(8, BOB, 1), CHECK(9, BOB, 1), CHECK(9, BOB, 1), CHECK(500007, ALICE, 1),
            PEEK(500007, ALICE, 0), CHECK(500007, CAROL, 1), CHECK(500008, CAROL, 1));
    SECTION(out, "A quota of one.",
            RULE(.algorithm = a, .count = 1, .period_ns = SECOND, .burst = 1), CHECK(0, ALICE, 1),
            CHECK(0, ALICE, 1), CHECK(999999, ALICE, 1), CHECK(SECOND, ALICE, 1),
            CHECK(SECOND, ALICE, 1), CHECK(SECOND, ALICE, 2));
    SECTION(out, "Ten million a second: ten in each microsecond.",
            RULE(.algorithm = a, .count = 10000000, .period_ns = SECOND, .burst = 25),
            CHECK(100, ALICE, 25), CHECK(100, ALICE, 1), CHECK(101, ALICE, 11),
            CHECK(101, ALICE, 10), CHECK(101, ALICE, 5), CHECK(102, ALICE, 5), CHECK(102, ALICE, 6),
            CHECK(103, ALICE, 15), CHECK(200, ALICE, 25));
    SECTION(out, "A thousand million a second: the most there is.",
            RULE(.algorithm = a, .count = 1000000000, .period_ns = SECOND, .burst = 1500),
            CHECK(5, ALICE, 1500), CHECK(5, ALICE, 1), CHECK(6, ALICE, 1000), CHECK(6, ALICE, 1),
            CHECK(7, ALICE, 500), CHECK(7, ALICE, 501), CHECK(8, ALICE, 1500));
    SECTION(out, "One a day.", RULE(.algorithm = a, .count = 1, .period_ns = DAY, .burst = 2),
            CHECK(0, ALICE, 2), CHECK(1, ALICE, 1), CHECK(DAY - 1, ALICE, 1), CHECK(DAY, ALICE, 1),
            CHECK(DAY, ALICE, 2));
    SECTION(out, "One in ten thousand days.",
            RULE(.algorithm = a, .count = 1, .period_ns = 10000 * DAY, .burst = 1),
            CHECK(1, ALICE, 1), CHECK(2, ALICE, 1), CHECK(HOUR, ALICE, 1), CHECK(HOUR, ALICE, 2));
    wander(out, "Twenty per 90 s.",
           (struct oracle_rule){.algorithm = a, .count = 20, .period_ns = 90 * SECOND, .burst = 6},
           1, 120);
    wander(out, "A million a second.",
           (struct oracle_rule){.algorithm = a, .count = 1000000, .period_ns = SECOND, .burst = 8},
           2, 120);
}

static void leaky_bucket(FILE *out)
{
    const int a = WEIR_LEAKY_BUCKET;
    heading(out, "leaky_bucket");
    SECTION(out, "One is served, three wait; each is told when its turn is.",
            RULE(.algorithm = a, .count = 2, .period_ns = SECOND, .queue = 3), CHECK(0, ALICE, 1),
            CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(0, ALICE, 1),
            CHECK(499999, ALICE, 1), CHECK(500000, ALICE, 1), CHECK(500000, ALICE, 1),
            PEEK(1700000, ALICE, 1), CHECK(1700000, ALICE, 2), CHECK(1700000, ALICE, 1),
            CHECK(MINUTE, ALICE, 1));
    SECTION(out, "Without a queue: one at a time, never two.",
            RULE(.algorithm = a, .count = 1, .period_ns = SECOND, .queue = 0), CHECK(3, ALICE, 1),
            CHECK(3, ALICE, 1), CHECK(1000002, ALICE, 1), CHECK(1000003, ALICE, 1),
            CHECK(1000003, ALICE, 2));
    SECTION(out, "Costs and keys; five places and one being served.",
            RULE(.algorithm = a, .count = 10, .period_ns = SECOND, .queue = 5), CHECK(0, ALICE, 6),
            CHECK(0, ALICE, 1), CHECK(0, BOB, 4), CHECK(0, BOB, 3), CHECK(0, BOB, 2),
            CHECK(0, BOB, 7), CHECK(100000, ALICE, 1), CHECK(150000, BOB, 1), CHECK(200000, BOB, 1),
            CHECK(600000, ALICE, 6), CHECK(700000, ALICE, 6));
    SECTION(out, "Ten million a second.",
            RULE(.algorithm = a, .count = 10000000, .period_ns = SECOND, .queue = 19),
            CHECK(50, ALICE, 20), CHECK(50, ALICE, 1), CHECK(51, ALICE, 5), CHECK(51, ALICE, 5),
            CHECK(51, ALICE, 1), CHECK(52, ALICE, 1), CHECK(60, ALICE, 20));
    SECTION(out, "One a day.", RULE(.algorithm = a, .count = 1, .period_ns = DAY, .queue = 1),
            CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(DAY - 1, ALICE, 1),
            CHECK(DAY, ALICE, 1));
    SECTION(out, "One is served, two of the queue need not wait, two wait.",
            RULE(.algorithm = a, .count = 2, .period_ns = SECOND, .queue = 4, .undelayed = 2),
            CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), PEEK(0, ALICE, 1),
            CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(0, ALICE, 1), CHECK(499999, ALICE, 1),
            CHECK(500000, ALICE, 1), CHECK(1700000, ALICE, 2), CHECK(0, BOB, 5));
    wander(out, "A hundred per minute.",
           (struct oracle_rule){.algorithm = a, .count = 100, .period_ns = MINUTE, .queue = 7}, 3,
           120);
    wander(out, "A hundred per minute; three need not wait.",
           (struct oracle_rule){
               .algorithm = a, .count = 100, .period_ns = MINUTE, .queue = 7, .undelayed = 3},
           4, 120);
}

/* ---- the windows and the log: the same calls, so that they can be compared ---- */

static void edge_burst(FILE *out, int algorithm)
{
    SECTION(out, "The edge: a full quota just before a window ends, another just after.",
            RULE(.algorithm = algorithm, .count = 5, .period_ns = SECOND), CHECK(999999, ALICE, 5),
            CHECK(999999, ALICE, 1), CHECK(1000000, ALICE, 1), CHECK(1000000, ALICE, 4),
            CHECK(1000000, ALICE, 1), CHECK(1199999, ALICE, 1), CHECK(1200000, ALICE, 1),
            CHECK(1500000, ALICE, 2), CHECK(1999998, ALICE, 5), CHECK(1999999, ALICE, 5),
            CHECK(2000000, ALICE, 5), CHECK(2200000, ALICE, 1), CHECK(3000000, ALICE, 5));
}

static void small_cases(FILE *out, int algorithm)
{
    SECTION(out, "Costs; what is more than the quota never fits, and costs nothing.",
            RULE(.algorithm = algorithm, .count = 10, .period_ns = MINUTE), CHECK(SECOND, ALICE, 6),
            CHECK(2 * SECOND, ALICE, 5), CHECK(2 * SECOND, ALICE, 4), CHECK(2 * SECOND, ALICE, 11),
            CHECK(2 * SECOND, ALICE, 1), CHECK(MINUTE - 1, ALICE, 1), CHECK(MINUTE, ALICE, 1),
            CHECK(MINUTE + SECOND - 1, ALICE, 6), CHECK(MINUTE + SECOND, ALICE, 6),
            CHECK(MINUTE + 2 * SECOND, ALICE, 3), CHECK(90 * SECOND, ALICE, 5),
            CHECK(2 * MINUTE, ALICE, 10), CHECK(10 * MINUTE, ALICE, 10));
    SECTION(out, "Keys do not know of each other; a peek changes nothing.",
            RULE(.algorithm = algorithm, .count = 2, .period_ns = SECOND), CHECK(7, ALICE, 2),
            CHECK(7, ALICE, 1), CHECK(7, BOB, 1), PEEK(8, CAROL, 2), CHECK(8, CAROL, 2),
            PEEK(8, BOB, 1), CHECK(9, BOB, 1), CHECK(9, BOB, 1), CHECK(500007, ALICE, 1),
            CHECK(1000000, ALICE, 1), CHECK(1000007, BOB, 1), PEEK(1000009, CAROL, 2));
    SECTION(out, "A quota of one.", RULE(.algorithm = algorithm, .count = 1, .period_ns = SECOND),
            CHECK(400000, ALICE, 1), CHECK(400000, ALICE, 1), CHECK(999999, ALICE, 1),
            CHECK(1000000, ALICE, 1), CHECK(1399999, ALICE, 1), CHECK(1400000, ALICE, 1),
            CHECK(1999999, ALICE, 1), CHECK(2000000, ALICE, 1), CHECK(2000000, ALICE, 2),
            CHECK(2999999, ALICE, 1), CHECK(3000000, ALICE, 1));
    SECTION(out, "A day.", RULE(.algorithm = algorithm, .count = 3, .period_ns = DAY),
            CHECK(DAY / 2, ALICE, 3), CHECK(DAY / 2, ALICE, 1), CHECK(DAY, ALICE, 1),
            CHECK(DAY + DAY / 3, ALICE, 1), CHECK(DAY + DAY / 2, ALICE, 1),
            CHECK(2 * DAY, ALICE, 2), CHECK(5 * DAY, ALICE, 3));
    SECTION(out, "A hundred years.",
            RULE(.algorithm = algorithm, .count = 1, .period_ns = YEARS_100), CHECK(1, ALICE, 1),
            CHECK(2, ALICE, 1), CHECK(HOUR, ALICE, 1));
}

static void high_rates(FILE *out, int algorithm, uint64_t seed)
{
    SECTION(out, "Three each ten microseconds.",
            RULE(.algorithm = algorithm, .count = 3, .period_ns = 10), CHECK(19, ALICE, 3),
            CHECK(19, ALICE, 1), CHECK(20, ALICE, 1), CHECK(23, ALICE, 1), CHECK(24, ALICE, 1),
            CHECK(27, ALICE, 1), CHECK(29, ALICE, 1), CHECK(30, ALICE, 2), CHECK(33, ALICE, 2),
            CHECK(34, ALICE, 1), CHECK(60, ALICE, 3));
    wander(out, "Seven per second.",
           (struct oracle_rule){.algorithm = algorithm, .count = 7, .period_ns = SECOND}, seed,
           120);
    wander(out, "Fifty per 90 s.",
           (struct oracle_rule){.algorithm = algorithm, .count = 50, .period_ns = 90 * SECOND},
           seed + 1, 200);
}

/* As many as a word of the algorithm has room for beside the number of a one-second window. */
static void many_a_second(FILE *out, int algorithm, uint64_t many)
{
    SECTION(out, "Many a second.", RULE(.algorithm = algorithm, .count = many, .period_ns = SECOND),
            CHECK(999999, ALICE, many - 1), CHECK(999999, ALICE, 2), CHECK(1000000, ALICE, 1),
            CHECK(1000000, ALICE, many), CHECK(1000001, ALICE, 11), CHECK(1000001, ALICE, 9),
            CHECK(1500000, ALICE, many / 2), CHECK(3000000, ALICE, many),
            CHECK(3000000, ALICE, many + 1));
}

/* Weeks begin on a Monday, months on the first. Time 0 is 1970-01-01, a Thursday. */
static void calendar(FILE *out)
{
    const int a = WEIR_FIXED_WINDOW;
    const uint64_t month = WEIR_MONTH / ORACLE_US;
    SECTION(out, "A week.", RULE(.algorithm = a, .count = 3, .period_ns = 7 * DAY),
            CHECK(3 * DAY, ALICE, 3), CHECK(4 * DAY - 1, ALICE, 1), CHECK(4 * DAY, ALICE, 2),
            CHECK(10 * DAY, ALICE, 1), CHECK(10 * DAY, ALICE, 1), CHECK(11 * DAY - 1, ALICE, 1),
            CHECK(11 * DAY, ALICE, 3), CHECK(30 * DAY, BOB, 1));
    SECTION(out, "Calendar months: January 1970 to April, which have 31, 28 and 31 days.",
            RULE(.algorithm = a, .count = 3, .period_ns = month), CHECK(0, ALICE, 1),
            CHECK(30 * DAY, ALICE, 2), CHECK(30 * DAY, ALICE, 1), CHECK(31 * DAY - 1, ALICE, 1),
            CHECK(31 * DAY, ALICE, 3), CHECK(31 * DAY, ALICE, 4), CHECK(58 * DAY, ALICE, 1),
            CHECK(59 * DAY - 1, ALICE, 1), CHECK(59 * DAY, ALICE, 1), CHECK(89 * DAY, ALICE, 2),
            CHECK(90 * DAY - 1, ALICE, 1), CHECK(90 * DAY, ALICE, 1), PEEK(200 * DAY, ALICE, 3));
    SECTION(out, "The ends of February in 1972, 2026 and 2100, and the end of the year 2026.",
            RULE(.algorithm = a, .count = 2, .period_ns = month), CHECK(788 * DAY, ALICE, 2),
            CHECK(789 * DAY, ALICE, 1), CHECK(790 * DAY - 1, ALICE, 1), CHECK(790 * DAY, ALICE, 1),
            CHECK(20512 * DAY, ALICE, 2), CHECK(20513 * DAY - 1, ALICE, 1),
            CHECK(20513 * DAY, ALICE, 1), CHECK(20818 * DAY, ALICE, 1),
            CHECK(20819 * DAY - 1, ALICE, 2), CHECK(20819 * DAY, ALICE, 2),
            CHECK(47540 * DAY, ALICE, 2), CHECK(47541 * DAY - 1, ALICE, 1),
            CHECK(47541 * DAY, ALICE, 2));
    wander(out, "A hundred a month.",
           (struct oracle_rule){.algorithm = a, .count = 100, .period_ns = month}, 12, 120);
}

static void fixed_window(FILE *out)
{
    heading(out, "fixed_window");
    edge_burst(out, WEIR_FIXED_WINDOW);
    small_cases(out, WEIR_FIXED_WINDOW);
    many_a_second(out, WEIR_FIXED_WINDOW, 10000000);
    high_rates(out, WEIR_FIXED_WINDOW, 10);
    calendar(out);
}

static void sliding_window(FILE *out)
{
    heading(out, "sliding_window");
    edge_burst(out, WEIR_SLIDING_WINDOW);
    small_cases(out, WEIR_SLIDING_WINDOW);
    many_a_second(out, WEIR_SLIDING_WINDOW, 60000);
    high_rates(out, WEIR_SLIDING_WINDOW, 20);
}

static void sliding_log(FILE *out)
{
    heading(out, "sliding_log");
    edge_burst(out, WEIR_SLIDING_LOG);
    small_cases(out, WEIR_SLIDING_LOG);
    high_rates(out, WEIR_SLIDING_LOG, 30);
}

/* ---- stepped_bucket ---- */

struct request {
    unsigned client;
    int64_t time;
};

static void stepped(FILE *out, const char *title, int64_t capacity, int64_t window,
                    const struct request *requests, size_t n)
{
    struct oracle_op ops[CALLS_MOST];
    struct oracle_trace t = {.ops = ops, .n = n};
    for (size_t i = 0; i < n; i++) {
        ops[i] =
            (struct oracle_op){.key = requests[i].client, .time_ns = (uint64_t)requests[i].time};
    }
    fprintf(out, "\n# %s\n", title);
    oracle_vector_print_stepped(out, &t, capacity, window);
}

#define STEPPED(out, title, capacity, window, ...)                                                 \
    do {                                                                                           \
        const struct request requests_[] = {__VA_ARGS__};                                          \
        stepped(out, title, capacity, window, requests_, sizeof requests_ / sizeof requests_[0]);  \
    } while (0)

static void stepped_bucket(FILE *out)
{
    heading(out, "stepped_bucket");
    STEPPED(out, "Four at once, and four when the window has passed.", 3, 10, {ALICE, 0},
            {ALICE, 0}, {ALICE, 0}, {ALICE, 0}, {ALICE, 10}, {ALICE, 10}, {ALICE, 10}, {ALICE, 10});
    STEPPED(out, "Whole tokens only; what is left of the time counts for the next.", 3, 10,
            {ALICE, 0}, {ALICE, 0}, {ALICE, 0}, {ALICE, 3}, {ALICE, 4}, {ALICE, 4}, {ALICE, 6},
            {ALICE, 7}, {ALICE, 9}, {ALICE, 10}, {ALICE, 13}, {ALICE, 14});
    STEPPED(out, "Clients do not know of each other; each starts full when it first comes.", 2, 4,
            {ALICE, 100}, {ALICE, 100}, {BOB, 100}, {ALICE, 100}, {CAROL, 101}, {BOB, 101},
            {BOB, 101}, {ALICE, 102}, {ALICE, 103}, {CAROL, 103}, {CAROL, 103});
    STEPPED(out, "A decreasing time refills nothing.", 2, 10, {ALICE, 50}, {ALICE, 40}, {ALICE, 30},
            {ALICE, 54}, {ALICE, 55}, {ALICE, -60}, {ALICE, 60});
    STEPPED(out, "Capacity 0 denies everything.", 0, 10, {ALICE, 0}, {ALICE, 100}, {BOB, 7});
    STEPPED(out, "Window 0 never refills.", 2, 0, {ALICE, 0}, {ALICE, 1}, {ALICE, 1000000},
            {BOB, 5});
    STEPPED(out, "The ends of 64 bits.", INT64_MAX, INT64_MAX, {ALICE, INT64_MIN}, {ALICE, 0},
            {ALICE, INT64_MAX}, {BOB, INT64_MAX}, {BOB, INT64_MIN});
    STEPPED(out, "One token in the longest window.", 1, INT64_MAX, {ALICE, -1}, {ALICE, -1},
            {ALICE, INT64_MAX - 2}, {ALICE, INT64_MAX - 1}, {ALICE, INT64_MAX - 1});
}

/* ---- verbs, and clocks that disagree ---- */

static void verbs_of(FILE *out, struct oracle_rule rule)
{
    static const struct call calls[] = {
        {1500000, ALICE, 3, ORACLE_CHECK, 0, 0},
        {1500000, ALICE, 1, ORACLE_CHECK, 0, 0},
        {1500000, ALICE, 2, ORACLE_REFUND, 0, 1500000},
        {1500001, ALICE, 9, ORACLE_UP_TO, 0, 0},
        {1500001, ALICE, 9, ORACLE_UP_TO, 0, 0},
        {1600000, ALICE, 2, ORACLE_PENALIZE, 0, 0},
        {1600000, ALICE, 9, ORACLE_PENALIZE, 0, 0},
        {2200000, ALICE, 1, ORACLE_CHECK, 0, 0},
        {2200000, ALICE, 1, ORACLE_REFUND, 0, 1500000},
        {4000000, ALICE, 2, ORACLE_CHECK, 0, 0},
        {9000000, ALICE, 5, ORACLE_REFUND, 0, 4000000},
        {9000000, ALICE, 3, ORACLE_CHECK, 0, 0},
        {9000000, BOB, 2, ORACLE_PENALIZE, 0, 0},
        {9000000, BOB, 1, ORACLE_REFUND, 0, 9000000},
        {9000000, BOB, 3, ORACLE_PEEK, 0, 0},
        {9000000, BOB, 2, ORACLE_UP_TO, 0, 0},
    };
    section(out, weir_algorithm_name(rule.algorithm), rule, calls, sizeof calls / sizeof calls[0]);
}

static void waits_of(FILE *out, struct oracle_rule rule)
{
    static const struct call calls[] = {
        {0, ALICE, 3, ORACLE_CHECK, 0, 0},         {0, ALICE, 1, ORACLE_CHECK, 499999, 0},
        {0, ALICE, 1, ORACLE_PEEK, 2000000, 0},    {0, ALICE, 1, ORACLE_CHECK, 2000000, 0},
        {0, ALICE, 1, ORACLE_CHECK, 2000000, 0},   {0, ALICE, 1, ORACLE_CHECK, HOUR, 0},
        {0, ALICE, 1, ORACLE_CHECK, HOUR, 0},      {SECOND, ALICE, 1, ORACLE_CHECK, 0, 0},
        {SECOND, ALICE, 2, ORACLE_CHECK, HOUR, 0},
    };
    section(out, "The same with patience: check with max_wait.", rule, calls,
            sizeof calls / sizeof calls[0]);
}

/* A busy bucket gets back what was charged long ago. */
static void late_refund_of(FILE *out, struct oracle_rule rule)
{
    static const struct call calls[] = {
        {0, ALICE, 3, ORACLE_CHECK, 0, 0},           {500000, ALICE, 1, ORACLE_CHECK, 0, 0},
        {SECOND, ALICE, 1, ORACLE_CHECK, 0, 0},      {2 * SECOND, ALICE, 2, ORACLE_CHECK, 0, 0},
        {3 * SECOND, ALICE, 2, ORACLE_CHECK, 0, 0},  {3 * SECOND, ALICE, 2, ORACLE_REFUND, 0, 0},
        {3 * SECOND, ALICE, 3, ORACLE_REFUND, 0, 0},
    };
    rule.max_debt = 0;
    section(out, "Units of a busy key come back however late.", rule, calls,
            sizeof calls / sizeof calls[0]);
}

/* `charged` is when the place ends. */
static void places_of(FILE *out, struct oracle_rule rule)
{
    static const struct call calls[] = {
        {0, ALICE, 1, ORACLE_CHECK, 0, 0},        {0, ALICE, 2, ORACLE_CHECK, 0, 0},
        {0, ALICE, 1, ORACLE_REFUND, 0, 500000},  {0, ALICE, 1, ORACLE_REFUND, 0, 1500000},
        {0, ALICE, 1, ORACLE_REFUND, 0, 1500000}, {200000, ALICE, 1, ORACLE_REFUND, 0, SECOND},
        {200000, ALICE, 1, ORACLE_CHECK, 0, 0},   {700000, ALICE, 9, ORACLE_REFUND, 0, SECOND},
        {700000, ALICE, 3, ORACLE_CHECK, 0, 0},
    };
    section(out, "The last place in the queue comes back, another one does not.", rule, calls,
            sizeof calls / sizeof calls[0]);
}

static void verbs(FILE *out)
{
    heading(out, "Take up to, refund, penalize, max_wait");
    struct oracle_rule token = {
        .algorithm = WEIR_TOKEN_BUCKET, .count = 2, .period_ns = SECOND, .burst = 3, .max_debt = 3};
    struct oracle_rule leaky = {
        .algorithm = WEIR_LEAKY_BUCKET, .count = 2, .period_ns = SECOND, .queue = 2, .max_debt = 3};
    verbs_of(out, token);
    waits_of(out, token);
    late_refund_of(out, token);
    verbs_of(out, leaky);
    waits_of(out, leaky);
    places_of(out, leaky);
    leaky.undelayed = 1;
    verbs_of(out, leaky);
    waits_of(out, leaky);
    for (int a = WEIR_FIXED_WINDOW; a <= WEIR_SLIDING_LOG; a++) {
        struct oracle_rule rule = {.algorithm = a,
                                   .count = 3,
                                   .period_ns = SECOND,
                                   .max_debt = a == WEIR_SLIDING_LOG ? 0 : 3};
        verbs_of(out, rule);
    }
}

static void skew_of(FILE *out, struct oracle_rule rule)
{
    static const struct call calls[] = {
        {10 * SECOND, ALICE, 2, ORACLE_CHECK, 0, 0},
        {9500000, ALICE, 1, ORACLE_CHECK, 0, 0}, /* behind, within the slack of a second */
        {9000000, ALICE, 1, ORACLE_CHECK, 0, 0}, /* to the end of it */
        {10 * SECOND, ALICE, 1, ORACLE_CHECK, 0, 0},
        {8999999, BOB, 3, ORACLE_CHECK, 0, 0},
        {8999999, BOB, 1, ORACLE_CHECK, 0, 0},
        {5 * SECOND, BOB, 1, ORACLE_CHECK, 0, 0}, /* set back: pulled to the most it can be now */
        {5 * SECOND, BOB, 1, ORACLE_CHECK, 0, 0},
        {5500000, BOB, 1, ORACLE_CHECK, 0, 0},
        {6 * SECOND, BOB, 1, ORACLE_CHECK, 0, 0},
        {7 * SECOND, BOB, 1, ORACLE_CHECK, 0, 0},
        {100 * SECOND, CAROL, 3, ORACLE_CHECK, 0, 0},
        {98999999, CAROL, 1, ORACLE_CHECK, 0, 0}, /* just beyond the slack */
        {1 * SECOND, CAROL, 3, ORACLE_PEEK, 0, 0},
        {1 * SECOND, CAROL, 3, ORACLE_CHECK, 0, 0},
        {3 * SECOND, CAROL, 3, ORACLE_CHECK, 0, 0},
        {200 * SECOND, CAROL, 3, ORACLE_CHECK, 0, 0},
        {5 * SECOND, CAROL, 3, ORACLE_PEEK, 0,
         0}, /* pulled as well, so that its retry comes true */
        {6 * SECOND, CAROL, 3, ORACLE_PEEK, 0, 0},
        {6999999, CAROL, 3, ORACLE_PEEK, 0, 0},
        {7 * SECOND, CAROL, 3, ORACLE_CHECK, 0, 0},
    };
    section(out, weir_algorithm_name(rule.algorithm), rule, calls, sizeof calls / sizeof calls[0]);
}

static void skew(FILE *out)
{
    heading(out, "Clocks that disagree, and clocks that are set back");
    skew_of(out, (struct oracle_rule){.algorithm = WEIR_TOKEN_BUCKET,
                                      .count = 2,
                                      .period_ns = SECOND,
                                      .burst = 3,
                                      .max_debt = 1});
    skew_of(out, (struct oracle_rule){
                     .algorithm = WEIR_LEAKY_BUCKET, .count = 2, .period_ns = SECOND, .queue = 2});
    for (int a = WEIR_FIXED_WINDOW; a <= WEIR_SLIDING_LOG; a++) {
        skew_of(out, (struct oracle_rule){.algorithm = a, .count = 3, .period_ns = 2 * SECOND});
    }
}

const struct vector_file vector_files[] = {
    {"token_bucket.vec", token_bucket},
    {"leaky_bucket.vec", leaky_bucket},
    {"fixed_window.vec", fixed_window},
    {"sliding_window.vec", sliding_window},
    {"sliding_log.vec", sliding_log},
    {"stepped_bucket.vec", stepped_bucket},
    {"verbs.vec", verbs},
    {"skew.vec", skew},
    {NULL, NULL},
};
