#include "explore/search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* So many states from the beginning to the end of a run; beyond that the search gives up. */
#define DEPTH_MAX 65536
#define OPTIONS_MAX (2 * USERS_MAX)

/* What can happen next: a step of this user, or its death. */
struct option {
    unsigned char user;
    bool dies;
};

/* A state in which there is a choice. */
struct fork {
    struct moment *moment;
    struct option options[OPTIONS_MAX];
    unsigned count, next;
    size_t way; /* how long it was */
};

/* A state on the way. */
struct place {
    struct digest state;
    uint64_t pauses; /* that were made on the way to it */
};

static struct {
    const struct subject *subject;
    struct how how;
    struct found found;
    struct digest_set seen, ends;
    struct fork forks[DEPTH_MAX];
    unsigned depth;
    struct place way[DEPTH_MAX]; /* the states from the beginning to here */
    size_t way_count;
} dfs;

/* ---- choices ---- */

static void add(struct fork *f, unsigned user, bool dies)
{
    f->options[f->count++] = (struct option){(unsigned char)user, dies};
}

/* Would its death lead to something that is not known? */
static bool worth_dying(unsigned v)
{
    return scheduler_run()->kills != 0 && scheduler_lives(v) &&
           !(dfs.how.merge && set_has(&dfs.seen, moment_digest((int)v)));
}

static void list_options(struct fork *f)
{
    f->count = 0;
    f->next = 0;
    for (unsigned v = 0; v < dfs.subject->task.users; v++) {
        if (scheduler_enabled(v)) {
            add(f, v, false);
        }
    }
    for (unsigned v = 0; v < dfs.subject->task.users; v++) {
        if (worth_dying(v)) {
            add(f, v, true);
        }
    }
}

static void take(struct option o)
{
    if (o.dies) {
        scheduler_kill(o.user);
    } else {
        scheduler_step(o.user);
        dfs.found.steps++;
    }
}

/* ---- the way ---- */

static void cut_way(size_t length)
{
    while (dfs.way_count > length) {
        struct digest last = dfs.way[--dfs.way_count].state;
        if (dfs.how.merge) {
            set_close(&dfs.seen, last);
        }
    }
}

/*
 * Where we are is where we were. That can go on for ever; unless somebody pauses
 * on the way round, for nobody's patience is endless.
 */
static void judge_round(struct digest here)
{
    size_t i = dfs.way_count;
    do {
        assert(i > 0);
        i--;
    } while (!digest_same(dfs.way[i].state, here));
    if (dfs.way[i].pauses == scheduler_run()->pauses) {
        scheduler_fail("no end: the users can go round for ever");
    }
}

/* False: this state is known. */
static bool enter(void)
{
    struct digest here = {0, 0};
    enum set_found found = SET_NEW;
    if (dfs.how.merge) {
        here = moment_digest(-1);
        found = set_enter(&dfs.seen, here);
    }
    if (found == SET_OPEN) {
        judge_round(here);
    }
    if (found == SET_NEW) {
        dfs.way[dfs.way_count++] = (struct place){here, scheduler_run()->pauses};
        dfs.found.states++;
    }
    return found == SET_NEW;
}

static void branch(struct fork *f)
{
    if (f->count > 1) {
        if (f->moment == NULL) {
            f->moment = moment_make();
        }
        moment_keep(f->moment);
        f->way = dfs.way_count;
        dfs.depth++;
    }
    take(f->options[f->next++]);
}

/* From the last state with something left to try. False: there is none. */
static bool go_back(void)
{
    dfs.found.schedules++;
    while (dfs.depth > 0) {
        struct fork *f = &dfs.forks[dfs.depth - 1];
        cut_way(f->way);
        if (f->next < f->count) {
            moment_return(f->moment);
            take(f->options[f->next++]);
            return true;
        }
        dfs.depth--;
    }
    cut_way(0);
    return false;
}

/* ---- the search ---- */

static const char *judge_end(void)
{
    struct digest d = moment_end();
    unsigned dead = scheduler_run()->dead;
    if (set_enter(&dfs.ends, d) != SET_NEW) {
        return NULL;
    }
    dfs.found.ends++;
    dfs.found.all.a += d.a;
    dfs.found.all.b += d.b;
    return dfs.subject->judge(dfs.subject->arg, dead);
}

/* One step on, or back. False: a failure, or nothing is left. */
static bool go_on(void)
{
    struct fork *f = &dfs.forks[dfs.depth];
    bool ended = scheduler_ended();
    if (!ended && enter()) {
        list_options(f);
        branch(f);
        return true;
    }
    dfs.found.failure = scheduler_run()->failure;
    if (ended && dfs.found.failure == NULL) {
        dfs.found.failure = judge_end();
    }
    return dfs.found.failure == NULL && go_back();
}

static void begin(const struct subject *subject, const struct how *how)
{
    struct rules rules = {.kills = how->kills, .clean = true};
    dfs.subject = subject;
    dfs.how = *how;
    dfs.found = (struct found){.complete = false};
    dfs.depth = 0;
    dfs.way_count = 0;
    set_clear(&dfs.ends);
    subject->reset(subject->arg);
    scheduler_begin(&subject->task, &rules);
}

static void finish(void)
{
    for (unsigned i = 0; i < DEPTH_MAX && dfs.forks[i].moment != NULL; i++) {
        moment_free(dfs.forks[i].moment);
        dfs.forks[i].moment = NULL;
    }
    set_clear(&dfs.seen);
}

struct found search_all(const struct subject *subject, const struct how *how)
{
    bool more = true;
    begin(subject, how);
    while (more && dfs.found.states < how->states_most && dfs.way_count < DEPTH_MAX) {
        more = go_on();
    }
    dfs.found.complete = !more && dfs.found.failure == NULL;
    finish();
    return dfs.found;
}

bool search_knew_end(struct digest end)
{
    return set_has(&dfs.ends, end);
}
