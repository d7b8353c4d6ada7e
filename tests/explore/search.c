#include "explore/search.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* ---- all ---- */

#define DEPTH_MAX 65536

struct fork {
    unsigned char taken;
    unsigned char options;
};

struct depth_first {
    struct strategy strategy;
    struct fork path[DEPTH_MAX];
    unsigned depth; /* of the path to repeat */
    unsigned at;
};

static struct depth_first dfs;

static unsigned pick_next(struct strategy *s, const struct option *options, unsigned n)
{
    (void)s;
    (void)options;
    if (n == 1) {
        return 0;
    }
    assert(dfs.at < DEPTH_MAX);
    struct fork *f = &dfs.path[dfs.at++];
    if (dfs.at > dfs.depth) {
        *f = (struct fork){0, (unsigned char)n};
        dfs.depth = dfs.at;
    }
    assert(f->options == n); /* else a run does not repeat */
    return f->taken;
}

/* The next path; false if there is none. */
static bool advance(void)
{
    while (dfs.depth > 0) {
        struct fork *f = &dfs.path[dfs.depth - 1];
        if (f->taken + 1 < f->options) {
            f->taken++;
            return true;
        }
        dfs.depth--;
    }
    return false;
}

/* All schedules of one bound. False: a failure, or no steps left. */
static bool exhaust(attempt_fn attempt, void *arg, unsigned preemptions, unsigned kills,
                    uint64_t steps_most, struct found *f)
{
    bool refused = false;
    bool more = true;
    dfs.depth = 0;
    for (f->schedules = 0; more;) {
        struct run run;
        dfs.strategy = (struct strategy){preemptions, kills, false, pick_next};
        dfs.at = 0;
        f->failure = attempt(arg, &dfs.strategy, &run);
        f->steps += run.steps;
        f->schedules++;
        refused |= run.refused;
        if (f->failure != NULL || f->steps > steps_most) {
            return false;
        }
        dfs.depth = dfs.at;
        if (run.found_shared) { /* begin again, with more points to switch at */
            dfs.depth = 0;
            f->schedules = 0;
            refused = false;
        } else {
            more = advance();
        }
    }
    f->bound = preemptions;
    f->any = true;
    f->unbounded = !refused;
    return true;
}

/* ---- at random ---- */

#define CHANGES 3

struct priorities {
    struct strategy strategy;
    uint64_t state;
    int rank[USERS_MAX]; /* the highest runs */
    int lowest;
    uint64_t at;
    uint64_t change_at[CHANGES];
    uint64_t kill_at;
};

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The present user falls behind all others. */
static void demote(struct priorities *p)
{
    int user = scheduler_user();
    if (user >= 0) {
        p->rank[user] = --p->lowest;
    }
}

static bool due(const struct priorities *p)
{
    bool now = false;
    for (unsigned i = 0; i < CHANGES; i++) {
        now |= p->change_at[i] == p->at;
    }
    return now;
}

static unsigned pick_ranked(struct strategy *s, const struct option *options, unsigned n)
{
    struct priorities *p = (struct priorities *)(void *)s;
    unsigned best = n;
    p->at++;
    for (unsigned i = 0; i < n && p->at >= p->kill_at; i++) {
        if (options[i].kind == KILL && random_next(&p->state) % 2 == 0) {
            return i;
        }
    }
    if (options[0].kind == SWITCH || due(p)) { /* paused, or ran too long, or by chance */
        demote(p);
    }
    for (unsigned i = 0; i < n; i++) {
        if (options[i].kind != KILL &&
            (best == n || p->rank[options[i].user] > p->rank[options[best].user])) {
            best = i;
        }
    }
    return best;
}

const char *search_random(attempt_fn attempt, void *arg, uint64_t seed, unsigned kills,
                          uint64_t length, struct run *run)
{
    struct priorities p = {{UINT32_MAX, kills, true, pick_ranked}, seed, {0}, 0, 0, {0}, 0};
    for (unsigned i = 0; i < USERS_MAX; i++) {
        p.rank[i] = (int)(random_next(&p.state) % 1000) * USERS_MAX + (int)i;
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        p.change_at[i] = 1 + random_next(&p.state) % length;
    }
    p.kill_at = 1 + random_next(&p.state) % length;
    return attempt(arg, &p.strategy, run);
}

/* ---- all, continued ---- */

/* Random runs first: they show which memory is shared, so that the search need not begin again. */
#define SCOUTS 100

static bool scout(attempt_fn attempt, void *arg, unsigned kills, struct found *f)
{
    uint64_t length = 100;
    for (unsigned i = 0; i < SCOUTS && f->failure == NULL; i++) {
        struct run run;
        f->failure = search_random(attempt, arg, i, kills, length, &run);
        f->schedules++;
        f->steps += run.steps;
        length = run.steps > length ? run.steps : length;
    }
    return f->failure == NULL;
}

struct found search_all(attempt_fn attempt, void *arg, unsigned least, unsigned most,
                        unsigned kills, uint64_t steps)
{
    struct found f = {NULL, 0, 0, 0, false, false};
    if (!scout(attempt, arg, kills, &f)) {
        return f;
    }
    struct found done = f;
    for (unsigned bound = 0; bound <= most && !done.unbounded; bound++) {
        if (!exhaust(attempt, arg, bound, kills, bound <= least ? UINT64_MAX : steps, &f)) {
            done.failure = f.failure;
            done.schedules = f.failure != NULL ? done.schedules + f.schedules : done.schedules;
            break;
        }
        done = f;
    }
    done.steps = f.steps;
    return done;
}
