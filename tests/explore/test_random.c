// test-labels: nosan
/*
 * Three and four users with random scripts under random priorities, with up to
 * two deaths. Everything follows from one number, the seed of the scenario:
 * WEIR_EXPLORE_SEED=n runs that one alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "explore/oracle.h"
#include "explore/scenario.h"

#ifdef WEIR_LONG
#define SCENARIOS 200000
#else
#define SCENARIOS 1200
#endif
#define SCHEDULES 60
#define KILLS_MAX 2

/*
 * What may be done to a key that is not blocked, and to the one that is. A check
 * looks for a block and then for room, so that in a full table a block may take
 * the room of the very check that did not see it: there nobody blocks.
 */
static const enum op_kind plain[] = {CHECK, CHECK, CHECK, CHECK,    PEEK, REFUND,
                                     RESET, SWEEP, CHECK, PENALIZE, SWEEP};
static const enum op_kind blocked[] = {CHECK, BLOCK, UNBLOCK, CHECK};
static const enum op_kind counted[] = {CHECK, CHECK, CHECK, CHECK, SWEEP, CHANGE, PEEK, RESET};

#define PICK(list, state) list[random_next(state) % (sizeof(list) / sizeof(list[0]))]

static struct op random_op(const struct scenario *s, uint64_t *state)
{
    bool log = s->world.algorithm == WEIR_SLIDING_LOG;
    struct op op;
    op.key = (unsigned char)(random_next(state) % s->world.keys);
    op.units = (unsigned char)(1 + random_next(state) % (log ? 2 : 7));
    if (s->judge == BY_ORDERS) {
        bool roomy = s->world.keys < 4;
        op.kind = roomy && op.key == 0 ? PICK(blocked, state) : PICK(plain, state);
    } else {
        op.kind = PICK(counted, state);
        op.key = op.kind == RESET ? 1 : op.key;
    }
    if (op.kind == PENALIZE && log) {
        op.units = 1; /* a log is charged unit by unit, and who dies has charged some */
    }
    if (op.kind == CHANGE) {
        op.units = log ? LOG_QUOTA : QUOTA; /* the same again: a new version all the same */
    }
    return op;
}

/* One of the small worlds, with more users and other scripts. */
static struct scenario random_scenario(uint64_t seed)
{
    uint64_t state = seed;
    struct scenario s = scenarios[random_next(&state) % scenario_count];
    unsigned length;
    if (s.world.on_full == WEIR_EVICT) {
        s.judge = BY_STATES; /* who is forgotten depends on who is where */
    } else {
        s.judge = random_next(&state) % 2 == 0 ? BY_ORDERS : BY_TOTALS;
    }
    s.name = "random";
    s.users = 3 + (unsigned)(random_next(&state) % 2);
    s.torn = s.world.algorithm == WEIR_SLIDING_LOG;
    length = s.judge == BY_ORDERS ? 5 - s.users : SCRIPT_MAX;
    memset(s.script, 0, sizeof s.script);
    for (unsigned u = 0; u < s.users; u++) {
        for (unsigned i = 0; i < length; i++) {
            s.script[u][i] = random_op(&s, &state);
        }
    }
    return s;
}

/* How far the deepest of the runs was; where priorities change is chosen within it. */
static void explore(uint64_t seed, uint64_t *schedules, uint64_t *steps)
{
    struct scenario s = random_scenario(seed);
    uint64_t length = 200;
    struct subject subject;
    assert_true(scenario_begin(&s, &subject));
    for (unsigned i = 0; i < SCHEDULES; i++) {
        struct run run;
        const char *failure =
            search_random(&subject, seed * SCHEDULES + i, i % (KILLS_MAX + 1), length, &run);
        length = run.steps > length ? run.steps : length;
        (*schedules)++;
        *steps += run.steps;
        if (failure != NULL) {
            printf("WEIR_EXPLORE_SEED=%llu, schedule %u: ", (unsigned long long)seed, i);
            scenario_print(&s, failure);
            fail();
        }
    }
}

static void many_users_at_random_keep_every_promise(void **state)
{
    const char *only = getenv("WEIR_EXPLORE_SEED");
    uint64_t schedules = 0;
    uint64_t steps = 0;
    if (only != NULL) {
        explore(strtoull(only, NULL, 0), &schedules, &steps);
        return;
    }
    for (uint64_t seed = 1; seed <= SCENARIOS; seed++) {
        explore(seed, &schedules, &steps);
    }
    printf("    seeds 1 to %d: %llu schedules of 3 and 4 users, %llu steps, up to %d deaths each\n",
           SCENARIOS, (unsigned long long)schedules, (unsigned long long)steps, KILLS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_users_at_random_keep_every_promise)};
    return cmocka_run_group_tests_name("random priorities", tests, NULL, NULL);
}
