// test-labels: nosan
/*
 * A process is killed at each instruction of the calls that change a table.
 * Whoever lives finds the world before the call or the one after it, hangs
 * nowhere, and goes on.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_scene.h"
#include "support/engine/process_step.h"

#define QUOTA 5

static uint64_t chance;

/* ---- the calls ---- */

static void take_one(struct weir *w, unsigned key)
{
    (void)process_take(w, key, PROCESS_NOW);
}

static void penalize(struct weir *w, unsigned key)
{
    (void)weir_penalize_at(w, &key, sizeof key, 3, PROCESS_NOW, NULL);
}

static void give_back(struct weir *w, unsigned key)
{
    (void)weir_refund_at(w, &key, sizeof key, 2, PROCESS_NOW - WEIR_MINUTE, PROCESS_NOW, NULL);
}

static void block(struct weir *w, unsigned key)
{
    (void)weir_block_at(w, &key, sizeof key, PROCESS_NOW + WEIR_HOUR, PROCESS_NOW);
}

static void unblock(struct weir *w, unsigned key)
{
    (void)weir_unblock(w, &key, sizeof key);
}

static void reset(struct weir *w, unsigned key)
{
    (void)weir_reset(w, &key, sizeof key);
}

static void change(struct weir *w, unsigned key)
{
    (void)key;
    (void)weir_change(w, QUOTA - 2, 0, NULL);
}

/* ---- the scenes ---- */

/* A shared limiter with some residents, not `own` among them. */
static void set_scene(struct scene *s, int algorithm, void (*call)(struct weir *, unsigned))
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.memory = WEIR_SHARED;
    scene_init(s, process_open(&o), call, 1);
    for (unsigned key = 100; key < 105; key++) {
        for (unsigned i = 100; i <= key; i++) {
            (void)process_take(s->w, key, PROCESS_NOW);
        }
        scene_add(s, key);
    }
}

static void step_through(struct scene *s, const char *name)
{
    scene_freeze(s);
    scene_step(s, name, &chance);
}

static void killed_while_inserting_a_new_key(void **state)
{
    static const char *const name[] = {"",
                                       "insert, token_bucket",
                                       "insert, leaky_bucket",
                                       "insert, fixed_window",
                                       "insert, sliding_window",
                                       "insert, sliding_log"};
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct scene s;
        set_scene(&s, algorithm, take_one);
        step_through(&s, name[algorithm]);
    }
}

static void killed_while_checking_a_known_key(void **state)
{
    static const char *const name[] = {"",
                                       "check, token_bucket",
                                       "check, leaky_bucket",
                                       "check, fixed_window",
                                       "check, sliding_window",
                                       "check and record commit, sliding_log"};
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct scene s;
        set_scene(&s, algorithm, take_one);
        take_one(s.w, s.own);
        step_through(&s, name[algorithm]);
    }
}

static void killed_while_a_log_goes_round(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_SLIDING_LOG, take_one);
    for (unsigned lap = 0; lap < 3; lap++) { /* old units make room for new ones in the ring */
        for (unsigned i = 0; i < QUOTA; i++) {
            (void)process_take(s.w, s.own, lap * 2 * WEIR_HOUR + i);
        }
    }
    step_through(&s, "record commit over old units");
}

/* The log's newest unit, in the first place of the ring, lies in a far future: it is forgotten. */
static void killed_while_a_log_of_a_far_future_is_pulled_down(void **state)
{
    struct scene s;
    uint64_t future = PROCESS_NOW + 10000 * WEIR_HOUR;
    set_scene(&s, WEIR_SLIDING_LOG, take_one);
    for (unsigned i = 0; i < 2 * (QUOTA + 1) - 4; i++) {
        (void)process_take(s.w, s.own, i * WEIR_HOUR);
    }
    for (unsigned i = 0; i < QUOTA; i++) {
        (void)process_take(s.w, s.own, future);
    }
    step_through(&s, "a log of a far future");
}

static void killed_while_penalizing_a_log(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_SLIDING_LOG, penalize);
    take_one(s.w, s.own);
    s.partial = true;
    step_through(&s, "penalize, sliding_log");
    set_scene(&s, WEIR_SLIDING_LOG, penalize);
    s.partial = true;
    step_through(&s, "penalize of a new key, sliding_log");
}

static void killed_while_giving_back_to_a_log(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_SLIDING_LOG, give_back);
    (void)process_take(s.w, s.own, PROCESS_NOW - WEIR_MINUTE);
    for (unsigned i = 0; i < 3; i++) {
        take_one(s.w, s.own);
    }
    s.partial = true;
    step_through(&s, "refund, sliding_log");
}

static void killed_while_penalizing_a_bucket(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_TOKEN_BUCKET, penalize);
    take_one(s.w, s.own);
    step_through(&s, "penalize, token_bucket");
}

static void killed_while_blocking(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_TOKEN_BUCKET, block);
    take_one(s.w, s.own);
    step_through(&s, "block");
    set_scene(&s, WEIR_SLIDING_LOG, block);
    step_through(&s, "block, sliding_log");
}

static void killed_while_unblocking(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_TOKEN_BUCKET, unblock);
    take_one(s.w, s.own);
    block(s.w, s.own);
    step_through(&s, "unblock");
}

static void killed_while_resetting(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_TOKEN_BUCKET, reset);
    take_one(s.w, s.own);
    step_through(&s, "reset");
    set_scene(&s, WEIR_SLIDING_LOG, reset);
    take_one(s.w, s.own);
    step_through(&s, "reset, sliding_log");
}

static void killed_while_changing_parameters(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct scene s;
        set_scene(&s, algorithm, change);
        take_one(s.w, s.own);
        step_through(&s, "change of parameters");
    }
}

/* ---- with a lock that the one before died with ---- */

struct holder {
    struct lock_owner *owner;
    struct lock *lock[2];
    volatile bool *holds;
};

static void hold_and_wait(void *arg)
{
    struct holder *h = arg;
    lock_take(h->lock[0], h->owner);
    if (h->lock[1] != h->lock[0]) {
        lock_take(h->lock[1], h->owner);
    }
    *h->holds = true;
    for (;;) {
        (void)pause();
    }
}

/* Leaves the locks as one does who was killed with them. */
static void die_with(const struct weir *w, struct lock *a, struct lock *b)
{
    struct holder h = {w->table.owner, {a, b}, process_shared_memory(sizeof(bool))};
    pid_t pid = process_start(hold_and_wait, &h);
    while (!*h.holds) {
        (void)usleep(10);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    process_shared_free((void *)(uintptr_t)h.holds, sizeof(bool));
}

static void killed_while_taking_over_from_one_who_was_killed(void **state)
{
    struct scene s;
    set_scene(&s, WEIR_TOKEN_BUCKET, take_one);
    struct lock *stripe = table_stripe(&s.w->table, scene_place(s.w, s.own).tag);
    die_with(s.w, stripe, &s.w->head->change);
    step_through(&s, "insert behind a dead owner's lock");
    set_scene(&s, WEIR_TOKEN_BUCKET, change);
    take_one(s.w, s.own);
    die_with(s.w, stripe = table_stripe(&s.w->table, scene_place(s.w, s.own).tag),
             &s.w->head->change);
    step_through(&s, "change behind a dead owner's lock");
}

static int get_seed(void **state)
{
    chance = process_seed();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_while_inserting_a_new_key),
        cmocka_unit_test(killed_while_checking_a_known_key),
        cmocka_unit_test(killed_while_a_log_goes_round),
        cmocka_unit_test(killed_while_a_log_of_a_far_future_is_pulled_down),
        cmocka_unit_test(killed_while_penalizing_a_log),
        cmocka_unit_test(killed_while_giving_back_to_a_log),
        cmocka_unit_test(killed_while_penalizing_a_bucket),
        cmocka_unit_test(killed_while_blocking),
        cmocka_unit_test(killed_while_unblocking),
        cmocka_unit_test(killed_while_resetting),
        cmocka_unit_test(killed_while_changing_parameters),
        cmocka_unit_test(killed_while_taking_over_from_one_who_was_killed),
    };
    return cmocka_run_group_tests(tests, get_seed, NULL);
}
