/*
 * Random rule files, loaded and asked, against the naive matcher of
 * support/oracle/matching_naive.c: the same limits must apply to every request, with the same
 * tier and the same keys, however the request is written. Rules that differ are made as small as
 * they get and printed.
 *
 * WEIR_SEED=n in the environment runs another set, or the one that failed.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <cmocka.h>

#include "support/oracle/matching_world.h"
#include "support/engine/unit_limiter.h"

#if defined(WEIR_LONG)
#define WORLDS UINT64_C(300000)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_COVERAGE)
#define WORLDS UINT64_C(1000)
#else
#define WORLDS UINT64_C(3000)
#endif

#define NOW (UINT64_C(1767225600) * WEIR_SECOND)

/* What the two of them said, and of which request. */
struct difference {
    char text[1200];
    unsigned request;
};

/* Where the files are that the rules name. */
static char *folder;

static struct weir_rules *open_rules(const struct matching_world *world, struct difference *d)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0};
    struct weir_rules *rules;
    char name[256];
    char *yaml = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&yaml, &len);
    assert_non_null(out);
    matching_print(out, world);
    assert_int_equal(fclose(out), 0);
    options.flags = WEIR_EXPLICIT_TIME;
    (void)snprintf(name, sizeof name, "%s/random.yaml", folder);
    int e = weir_rules_open_text(&rules, name, yaml, len, &options, &error);
    free(yaml);
    if (e != 0) {
        (void)snprintf(d->text, sizeof d->text, "the rules are refused: %s", error.text);
        return NULL;
    }
    return rules;
}

static void describe(char *to, size_t size, const struct matching_answer *a)
{
    (void)snprintf(to, size,
                   "verdict %d reason %d limit '%s' tier '%s' remaining %" PRIu64
                   " applied %u missing %u shadow denied %u '%s'",
                   a->verdict, a->reason, a->limit, a->tier, a->remaining, a->applied, a->missing,
                   a->shadow_denied, a->shadow);
}

static struct matching_answer comparable(const struct weir_rules_answer *said)
{
    struct matching_answer a = {.verdict = said->answer.verdict,
                                .reason = said->reason,
                                .applied = said->applied,
                                .missing = said->missing,
                                .shadow_denied = said->shadow_denied};
    a.remaining =
        said->limit[0] != 0 && said->reason != WEIR_REASON_MISSING ? said->answer.remaining : 0;
    (void)snprintf(a.limit, sizeof a.limit, "%s", said->limit);
    (void)snprintf(a.tier, sizeof a.tier, "%s", said->tier);
    (void)snprintf(a.shadow, sizeof a.shadow, "%s", said->shadow);
    return a;
}

/* True if the answers differ. */
static bool ask_both(struct weir_rules *rules, const struct matching_world *world,
                     const struct matching_request *request, struct matching_state *state,
                     struct difference *d)
{
    struct matching_spelled spelled;
    struct matching_answer expected;
    struct weir_rules_answer said;
    struct weir_error error;
    char left[512];
    char right[512];
    matching_spell(request, &spelled);
    matching_ask(world, request, state, &expected);
    struct weir_rules_question q = {.attributes = spelled.attributes,
                                    .attributes_count = spelled.n,
                                    .mode = request->peek ? WEIR_PEEK : WEIR_CHECK};
    if (weir_rules_ask_at(rules, &q, NOW, &said, &error) != 0) {
        (void)snprintf(d->text, sizeof d->text, "refused: %s", error.text);
        return true;
    }
    struct matching_answer got = comparable(&said);
    describe(left, sizeof left, &got);
    describe(right, sizeof right, &expected);
    bool flag = (said.answer.flags & WEIR_FLAG_SHADOW) != 0;
    (void)snprintf(d->text, sizeof d->text, "got      %s%s\nexpected %s", left,
                   flag != (got.shadow_denied > 0) ? " (wrong flag)" : "", right);
    return strcmp(left, right) != 0 || flag != (got.shadow_denied > 0);
}

static bool statistics_differ(struct weir_rules *rules, const struct matching_state *state,
                              uint64_t asked, struct difference *d)
{
    struct weir_rules_stats s = {.size = sizeof s};
    assert_int_equal(weir_rules_stats_read(rules, &s), 0);
    (void)snprintf(d->text, sizeof d->text,
                   "statistics: got %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                   " %" PRIu64 " expected %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                   " %" PRIu64,
                   s.unmatched, s.allow_listed, s.block_listed, s.missing, s.tier_unknown,
                   s.shadow_denied, state->unmatched, state->allow_listed, state->block_listed,
                   state->missing, state->tier_unknown, state->shadow_denied);
    return s.asked != asked || s.unmatched != state->unmatched ||
           s.allow_listed != state->allow_listed || s.block_listed != state->block_listed ||
           s.missing != state->missing || s.tier_unknown != state->tier_unknown ||
           s.shadow_denied != state->shadow_denied || s.bad != 0;
}

/* How often each reason was met: a test that never denies tests little. */
static uint64_t met[WEIR_REASON_DEGRADED + 1];
static uint64_t tiers_unknown;

/* True if the library and the naive matcher differ somewhere. */
static bool differs(const struct matching_world *world, struct difference *d)
{
    static struct matching_state state;
    memset(&state, 0, sizeof state);
    d->request = world->requests_n;
    struct weir_rules *rules = open_rules(world, d);
    bool differ = rules == NULL;
    for (unsigned i = 0; !differ && i < world->requests_n; i++) {
        differ = ask_both(rules, world, &world->requests[i], &state, d);
        d->request = differ ? i : d->request;
    }
    if (rules != NULL && !differ) {
        differ = statistics_differ(rules, &state, world->requests_n, d);
        met[WEIR_REASON_UNMATCHED] += state.unmatched;
        met[WEIR_REASON_ALLOW_LIST] += state.allow_listed;
        met[WEIR_REASON_BLOCK_LIST] += state.block_listed;
        met[WEIR_REASON_MISSING] += state.missing;
        met[WEIR_REASON_SHADOW] += state.shadow_denied;
        tiers_unknown += state.tier_unknown;
    }
    weir_rules_close(rules);
    return differ;
}

/* ---- making it small ---- */

static struct difference ignored;

/* Tries one change; keeps it if they still differ. */
#define TRY(world, change)                                                                         \
    do {                                                                                           \
        struct matching_world saved_ = *(world);                                                   \
        change;                                                                                    \
        if (differs(world, &ignored)) {                                                            \
            smaller = true;                                                                        \
        } else {                                                                                   \
            *(world) = saved_;                                                                     \
        }                                                                                          \
    } while (0)

static void drop(void *array, unsigned *n, unsigned i, size_t size)
{
    char *at = (char *)array + i * size;
    memmove(at, at + size, (*n - i - 1) * size);
    (*n)--;
}

static bool shrink_conditions(struct matching_world *world, struct matching_conditions *c)
{
    bool smaller = false;
    for (unsigned i = c->n; i-- > 0;) {
        TRY(world, drop(c->at, &c->n, i, sizeof c->at[0]));
    }
    for (unsigned i = 0; i < c->n; i++) {
        for (unsigned k = c->at[i].n; k-- > 0 && c->at[i].n > 1;) {
            TRY(world, drop(c->at[i].values, &c->at[i].n, k, sizeof c->at[i].values[0]));
        }
    }
    return smaller;
}

static bool shrink_limit(struct matching_world *world, struct matching_limit *l)
{
    bool smaller = shrink_conditions(world, &l->when);
    smaller = shrink_conditions(world, &l->unless) || smaller;
    for (unsigned i = l->parts; i-- > 0;) {
        TRY(world, drop(l->key, &l->parts, i, sizeof l->key[0]));
    }
    if (l->group != 0) {
        TRY(world, l->group = 0);
    }
    if (l->tiers_n != 0) {
        TRY(world, (l->tiers_n = 0, l->tier_default = -1));
    }
    if (l->shadow) {
        TRY(world, l->shadow = false);
    }
    if (l->overrides) {
        TRY(world, l->overrides = false);
    }
    return smaller;
}

static bool shrink_list(struct matching_world *world, struct matching_list *list)
{
    bool smaller = false;
    for (unsigned i = list->n; i-- > 0;) {
        TRY(world, drop(list->at, &list->n, i, sizeof list->at[0]));
    }
    return smaller;
}

static bool shrink_once(struct matching_world *world)
{
    bool smaller = false;
    if (world->derives) {
        TRY(world, world->derives = false);
    }
    for (unsigned i = world->requests_n; i-- > 0;) {
        TRY(world, drop(world->requests, &world->requests_n, i, sizeof world->requests[0]));
    }
    for (unsigned i = world->limits_n; i-- > 0;) {
        TRY(world, drop(world->limits, &world->limits_n, i, sizeof world->limits[0]));
    }
    smaller = shrink_list(world, &world->block) || smaller;
    smaller = shrink_list(world, &world->allow) || smaller;
    for (unsigned i = 0; i < world->limits_n; i++) {
        smaller = shrink_limit(world, &world->limits[i]) || smaller;
    }
    for (unsigned i = 0; i < world->requests_n; i++) {
        for (int k = 0; k < M_ATTRIBUTES; k++) {
            if (world->requests[i].has[k]) {
                TRY(world, world->requests[i].has[k] = false);
            }
        }
    }
    return smaller;
}

static void fail_with(struct matching_world *world, uint64_t seed)
{
    struct difference d;
    (void)fprintf(stderr, "WEIR_SEED=%" PRIu64 " fails; making it smaller\n", seed);
    while (shrink_once(world)) {
    }
    assert_true(differs(world, &d));
    matching_print(stderr, world);
    for (unsigned i = 0; i < world->requests_n; i++) {
        matching_print_request(stderr, &world->requests[i]);
    }
    fail_msg("request %u: %s", d.request, d.text);
}

/* ---- the tests ---- */

static uint64_t first_seed(void)
{
    const char *given = getenv("WEIR_SEED");
    uint64_t seed = 1;
    if (given != NULL) {
        return strtoull(given, NULL, 0);
    }
#if defined(WEIR_LONG)
    assert_int_equal(getrandom(&seed, sizeof seed, 0), sizeof seed);
#endif
    return seed;
}

static void the_limits_that_apply_are_those_of_a_naive_matcher(void **state)
{
    static struct matching_world world;
    struct difference d;
    uint64_t seed = first_seed();
    folder = unit_folder();
    matching_write_files(folder);
    for (uint64_t i = 0; i < WORLDS; i++) {
        struct oracle_random g = {seed + i};
        matching_make(&g, &world);
        if (differs(&world, &d)) {
            fail_with(&world, seed + i);
        }
    }
    unit_folder_remove(folder);
    static const int expected[] = {WEIR_REASON_UNMATCHED, WEIR_REASON_ALLOW_LIST,
                                   WEIR_REASON_BLOCK_LIST, WEIR_REASON_MISSING, WEIR_REASON_SHADOW};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(met[expected[i]] > WORLDS / 20);
    }
    assert_true(tiers_unknown > WORLDS / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limits_that_apply_are_those_of_a_naive_matcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
