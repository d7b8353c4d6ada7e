/*
 * Random calls of several descriptors against a model of a few lines: the same calls pass, the same
 * descriptors are told that they are over their limit, and the same units are left.
 *
 * WEIR_SEED=n in the environment runs another set, or the one that failed.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/oracle/oracle_trace.h"
#include "support/rules/faked_call.h"

#if defined(WEIR_LONG)
#define WORLDS 20000
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_COVERAGE)
#define WORLDS 100
#else
#define WORLDS 500
#endif
#define CALLS 40
#define LIMITS 6
#define KEYS 2
#define QUESTIONS_MAX 6

/* Limits that never refill in the test. A letter is their name and their key's attribute. */
static const struct {
    char name;
    unsigned quota;
    enum { ENFORCED, QUOTA, SHADOW } kind;
} limits[LIMITS] = {{'a', 3, ENFORCED}, {'b', 5, ENFORCED}, {'c', 9, ENFORCED},
                    {'q', 4, QUOTA},    {'r', 6, QUOTA},    {'s', 4, SHADOW}};

static const char rules_text[] = "limits:\n"
                                 "- {name: a, key: [a], rate: 3/h}\n"
                                 "- {name: b, key: [b], rate: 5/h}\n"
                                 "- {name: c, key: [c], rate: 9/h}\n"
                                 "- {name: q, key: [q], rate: 4/h, quota_mode: true}\n"
                                 "- {name: r, key: [r], rate: 6/h, quota_mode: true}\n"
                                 "- {name: s, key: [s], rate: 4/h, shadow: true}\n";

struct question {
    unsigned limit;
    unsigned key;
    uint64_t hits;
    bool back;
};

struct model {
    bool each; /* charge: each */
    uint64_t left[LIMITS][KEYS];
    struct question questions[QUESTIONS_MAX];
    unsigned count;
    bool over[QUESTIONS_MAX]; /* what each descriptor is told */
    uint64_t taken[QUESTIONS_MAX];
    bool denied;
};

static uint64_t *left_of(struct model *m, unsigned i)
{
    return &m->left[m->questions[i].limit][m->questions[i].key];
}

/* ---- the model ---- */

static bool is_enforced(const struct model *m, unsigned i)
{
    const struct question *q = &m->questions[i];
    return limits[q->limit].kind == ENFORCED && !q->back;
}

/* Asks one limit by itself. */
static void ask_alone(struct model *m, unsigned i)
{
    uint64_t hits = m->questions[i].hits;
    uint64_t *left = left_of(m, i);
    m->over[i] = *left < (hits > 0 ? hits : 1);
    uint64_t most = m->each ? (hits < *left ? hits : *left) : (m->over[i] ? 0 : hits);
    *left -= most;
    m->taken[i] = most;
}

static void first_stage(struct model *m)
{
    unsigned quota = 0;
    unsigned quota_over = 0;
    for (unsigned i = 0; i < m->count; i++) {
        const struct question *q = &m->questions[i];
        bool in_quota = limits[q->limit].kind == QUOTA && !q->back;
        if (in_quota || (is_enforced(m, i) && (m->each || q->hits == 0))) {
            ask_alone(m, i);
            quota += in_quota;
            quota_over += in_quota && m->over[i];
            m->denied = m->denied || (m->over[i] && !in_quota);
        }
    }
    m->denied = m->denied || (quota > 0 && quota_over == quota);
}

/* Returns what all descriptors want of the limit and key of one of them. */
static uint64_t wanted(const struct model *m, unsigned i)
{
    uint64_t sum = 0;
    for (unsigned j = 0; j < m->count; j++) {
        bool same = m->questions[i].limit == m->questions[j].limit &&
                    m->questions[i].key == m->questions[j].key;
        sum += is_enforced(m, j) && same ? m->questions[j].hits : 0;
    }
    return sum;
}

static void second_stage(struct model *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (is_enforced(m, i) && m->questions[i].hits > 0) {
            m->over[i] = wanted(m, i) > *left_of(m, i);
        }
    }
    bool before = m->denied;
    for (unsigned i = 0; i < m->count; i++) {
        m->denied = m->denied || (is_enforced(m, i) && m->over[i]);
    }
    for (unsigned i = 0; i < m->count && !m->denied && !before; i++) {
        *left_of(m, i) -= is_enforced(m, i) ? m->questions[i].hits : 0;
    }
}

static void last_stage(struct model *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        const struct question *q = &m->questions[i];
        uint64_t *left = left_of(m, i);
        bool undo = limits[q->limit].kind == QUOTA && m->denied && !m->each;
        if (q->back || undo) {
            uint64_t quota = limits[q->limit].quota;
            *left += q->back ? q->hits : m->taken[i];
            *left = *left < quota ? *left : quota;
        } else if (limits[q->limit].kind == SHADOW && (m->each || !m->denied)) {
            *left -= *left >= q->hits ? q->hits : 0;
        }
    }
}

static void decide(struct model *m)
{
    m->denied = false;
    memset(m->over, 0, sizeof m->over);
    memset(m->taken, 0, sizeof m->taken);
    first_stage(m);
    if (!m->each) {
        second_stage(m);
    }
    last_stage(m);
}

/* ---- the comparison ---- */

/* Returns whether a call both takes and gives back units of one key: what is told would
 * depend on the order. */
static bool is_mixed(const struct model *m, unsigned i)
{
    const struct question *q = m->questions;
    unsigned j = 0;
    while (j < i &&
           (q[j].limit != q[i].limit || q[j].key != q[i].key || (!q[j].back && !q[i].back))) {
        j++;
    }
    return j < i;
}

static void make_questions(struct oracle_random *g, struct model *m, char *words)
{
    size_t n = 0;
    m->count = (unsigned)oracle_between(g, 1, QUESTIONS_MAX);
    for (unsigned i = 0; i < m->count; i++) {
        struct question *q = &m->questions[i];
        *q = (struct question){.limit = (unsigned)oracle_between(g, 0, LIMITS - 1),
                               .key = (unsigned)oracle_between(g, 0, KEYS - 1),
                               .hits = oracle_between(g, 0, 3),
                               .back = oracle_once_in(g, 8)};
        while (is_mixed(m, i)) {
            q->limit = (unsigned)oracle_between(g, 0, LIMITS - 1);
        }
        q->hits += q->back && q->hits == 0;
        n += (size_t)sprintf(words + n, "%s%c=%u %c%u", i > 0 ? "; " : "", limits[q->limit].name,
                             q->key, q->back ? '-' : '+', (unsigned)q->hits);
    }
}

/* Returns what is left of a key, which a look tells also of a shadow limit. */
static uint64_t left_in(struct weir_rules *rules, unsigned limit, unsigned key)
{
    struct faked_call c = faked_call_init();
    char words[20];
    (void)sprintf(words, "%c=%u +0", limits[limit].name, key);
    faked_call_ask(&c, rules, NULL, words);
    assert_int_equal(c.result, 0);
    uint64_t left = c.call.statuses[0].remaining;
    faked_call_finish(&c);
    return left;
}

static bool is_same(struct weir_rules *rules, const struct model *m, const struct call *call)
{
    bool same = (call->answer.answer.verdict != WEIR_ALLOW) == m->denied;
    for (unsigned i = 0; i < m->count; i++) {
        same = same && (call->statuses[i].verdict != WEIR_ALLOW) == m->over[i];
    }
    for (unsigned i = 0; i < LIMITS * KEYS; i++) {
        same = same && left_in(rules, i / KEYS, i % KEYS) == m->left[i / KEYS][i % KEYS];
    }
    return same;
}

static void print_difference(const struct model *m, struct weir_rules *rules,
                             const struct faked_call *c)
{
    (void)fprintf(stderr, "found '%s', expected %s:", faked_call_told(c),
                  m->denied ? "deny" : "allow");
    for (unsigned i = 0; i < m->count; i++) {
        (void)fprintf(stderr, " %s", m->over[i] ? "deny" : "allow");
    }
    for (unsigned i = 0; i < LIMITS * KEYS; i++) {
        (void)fprintf(stderr, "\n%c=%u: left %" PRIu64 ", expected %" PRIu64, limits[i / KEYS].name,
                      i % KEYS, left_in(rules, i / KEYS, i % KEYS), m->left[i / KEYS][i % KEYS]);
    }
    (void)fprintf(stderr, "\n");
}

/* Makes calls until the limits are used up. Returns how many were denied. */
static unsigned compare(uint64_t seed)
{
    struct oracle_random g = {seed};
    struct model m = {.each = seed % 3 == 0};
    char yaml[1000];
    unsigned denied = 0;
    (void)snprintf(yaml, sizeof yaml, "envoy: {charge: %s}\n%s", m.each ? "each" : "together",
                   rules_text);
    struct weir_rules *rules = rules_open(yaml);
    for (unsigned i = 0; i < LIMITS * KEYS; i++) {
        m.left[i / KEYS][i % KEYS] = limits[i / KEYS].quota;
    }
    for (unsigned i = 0; i < CALLS; i++) {
        char words[200];
        struct faked_call c = faked_call_init();
        make_questions(&g, &m, words);
        decide(&m);
        faked_call_ask(&c, rules, NULL, words);
        if (c.result != 0 || !is_same(rules, &m, &c.call)) {
            (void)fprintf(stderr, "WEIR_SEED=%" PRIu64 ", call %u: %s\n", seed, i, words);
            print_difference(&m, rules, &c);
            fail();
        }
        denied += m.denied;
        faked_call_finish(&c);
    }
    weir_rules_close(rules);
    return denied;
}

static void calls_are_decided_as_the_model_decides_them(void **state)
{
    const char *given = getenv("WEIR_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    unsigned denied = 0;
    for (uint64_t i = 0; i < WORLDS; i++) {
        denied += compare(first + i);
    }
    assert_in_range(denied, WORLDS * CALLS / 10, WORLDS * CALLS * 9 / 10);
    print_message("%u of %u calls were denied\n", denied, WORLDS * CALLS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_decided_as_the_model_decides_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
