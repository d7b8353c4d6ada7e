#include "explore/search.h"

#define CHANGES 3
#define DEATHS_MAX 4
/*
 * After so many steps in a row the others get their turn, as under any real
 * scheduler; and as there, a time slice is long against one operation.
 */
#define FAIR_STEPS 50000

struct priorities {
    uint64_t state;
    int rank[USERS_MAX]; /* the highest runs */
    int lowest;
    unsigned current;
    uint64_t stretch; /* steps since the last switch */
    uint64_t change_at[CHANGES];
    uint64_t kill_at[DEATHS_MAX];
};

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool due(const struct priorities *p, uint64_t step)
{
    bool now = false;
    for (unsigned i = 0; i < CHANGES; i++) {
        now |= p->change_at[i] == step;
    }
    return now;
}

/* The present user or any other. */
static void kill_somebody(struct priorities *p, unsigned users)
{
    uint64_t r = random_next(&p->state);
    unsigned v = r % 2 == 0 ? p->current : (unsigned)(r / 2 % users);
    if (scheduler_lives(v)) {
        scheduler_kill(v);
    }
}

static void choose(struct priorities *p, unsigned users)
{
    unsigned best = USERS_MAX;
    for (unsigned v = 0; v < users; v++) {
        if (scheduler_enabled(v) && (best == USERS_MAX || p->rank[v] > p->rank[best])) {
            best = v;
        }
    }
    p->stretch = best == p->current ? p->stretch + 1 : 0;
    p->current = best;
}

static void step(struct priorities *p, unsigned users)
{
    const struct run *run = scheduler_run();
    for (unsigned i = 0; i < DEATHS_MAX && run->kills != 0; i++) {
        if (p->kill_at[i] == run->steps) {
            p->kill_at[i] = UINT64_MAX;
            kill_somebody(p, users);
        }
    }
    if (scheduler_pausing(p->current) || due(p, run->steps) || p->stretch > FAIR_STEPS) {
        p->rank[p->current] = --p->lowest; /* behind all others */
        p->stretch = 0;
    }
    if (!scheduler_ended()) {
        choose(p, users);
        scheduler_step(p->current);
    }
}

const char *search_random(const struct subject *subject, uint64_t seed, unsigned kills,
                          uint64_t length, struct run *run)
{
    struct priorities p = {.state = seed};
    struct rules rules = {.kills = kills};
    for (unsigned i = 0; i < USERS_MAX; i++) {
        p.rank[i] = (int)(random_next(&p.state) % 1000) * USERS_MAX + (int)i;
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        p.change_at[i] = 1 + random_next(&p.state) % length;
    }
    for (unsigned i = 0; i < DEATHS_MAX; i++) {
        p.kill_at[i] = i < kills ? 1 + random_next(&p.state) % length : UINT64_MAX;
    }
    subject->reset(subject->arg);
    scheduler_begin(&subject->task, &rules);
    while (!scheduler_ended()) {
        step(&p, subject->task.users);
    }
    *run = *scheduler_run();
    return run->failure != NULL ? run->failure : subject->judge(subject->arg, run->dead);
}

/* ---- without aim ---- */

/* Now and then somebody dies; now and then somebody else goes on. */
static void stroll(unsigned *current, unsigned users, unsigned stay, uint64_t *state)
{
    unsigned v = (unsigned)(random_next(state) % users);
    if (scheduler_run()->kills != 0 && random_next(state) % 64 == 0 && scheduler_lives(v)) {
        scheduler_kill(v);
    }
    while (!scheduler_ended() && (random_next(state) % stay == 0 || !scheduler_enabled(*current))) {
        *current = (unsigned)(random_next(state) % users);
    }
    if (!scheduler_ended()) {
        scheduler_step(*current);
    }
}

struct digest search_walk(const struct subject *subject, unsigned kills, uint64_t seed)
{
    struct rules rules = {.kills = kills};
    uint64_t state = seed;
    unsigned current = 0;
    unsigned stay = 2u << random_next(&state) % 6; /* steps in a row, on the whole */
    subject->reset(subject->arg);
    scheduler_begin(&subject->task, &rules);
    while (!scheduler_ended()) {
        stroll(&current, subject->task.users, stay, &state);
    }
    return moment_end();
}
