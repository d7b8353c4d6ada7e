#include "explore/oracle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Outcomes for one set of finished operations and dead users. */
struct set {
    unsigned dead;
    unsigned done[USERS_MAX];
    struct outcome *outcomes;
    size_t count;
    size_t room;
};

#define SETS_MAX 512

static struct set sets[SETS_MAX];
static unsigned set_count;

/* What became of the operation that a user died in. */
enum fate { NOT_DONE, WAS_DONE, PLACE_TAKEN, FATES };

/* A serial order under construction. */
struct order {
    const struct scenario *s;
    struct set *set;
    unsigned length[USERS_MAX]; /* operations to do */
    enum fate fate[USERS_MAX];
    unsigned char user[USERS_MAX * SCRIPT_MAX];
};

void oracle_forget(void)
{
    for (unsigned i = 0; i < set_count; i++) {
        free(sets[i].outcomes);
    }
    memset(sets, 0, sizeof sets);
    set_count = 0;
}

unsigned script_length(const struct op *script)
{
    unsigned n = 0;
    while (n < SCRIPT_MAX && script[n].kind != END) {
        n++;
    }
    return n;
}

static bool has(const struct set *set, const struct outcome *o)
{
    for (size_t i = 0; i < set->count; i++) {
        if (memcmp(set->outcomes[i].told, o->told, sizeof o->told) == 0 &&
            memcmp(set->outcomes[i].left, o->left, sizeof o->left) == 0) {
            return true;
        }
    }
    return false;
}

static void keep(struct set *set, const struct outcome *o)
{
    if (has(set, o)) {
        return;
    }
    if (set->count == set->room) {
        set->room = set->room * 2 + 8;
        set->outcomes = realloc(set->outcomes, set->room * sizeof *o);
        assert(set->outcomes != NULL);
    }
    set->outcomes[set->count++] = *o;
}

/* Does the operations in this order and keeps the outcome. */
static void play(const struct order *order, unsigned total)
{
    struct outcome o;
    unsigned at[USERS_MAX] = {0};
    memset(&o, 0, sizeof o);
    world_reset();
    for (unsigned i = 0; i < total; i++) {
        unsigned u = order->user[i];
        struct op op = order->s->script[u][at[u]];
        uint64_t told = world_do(op);
        bool last = at[u] >= order->set->done[u]; /* died in it: nobody was told */
        if (!last) {
            o.told[u][at[u]] = told;
        } else if (order->fate[u] == PLACE_TAKEN) {
            (void)world_do((struct op){REFUND, op.key, op.units});
        }
        at[u]++;
    }
    (void)world_do((struct op){SWEEP, 0, (unsigned char)order->s->world.lines});
    world_survey(o.left);
    keep(order->set, &o);
}

static void extend(struct order *order, unsigned *at, unsigned total)
{
    bool complete = true;
    for (unsigned u = 0; u < order->s->users; u++) {
        if (at[u] < order->length[u]) {
            complete = false;
            order->user[total] = (unsigned char)u;
            at[u]++;
            extend(order, at, total + 1);
            at[u]--;
        }
    }
    if (complete) {
        play(order, total);
    }
}

/* Every fate of every dead user in turn. */
static void play_fates(struct order *order, unsigned u)
{
    unsigned at[USERS_MAX] = {0};
    if (u == order->s->users) {
        extend(order, at, 0);
        return;
    }
    unsigned done = order->set->done[u];
    bool open = (order->set->dead >> u & 1) != 0 && done < script_length(order->s->script[u]);
    for (enum fate f = NOT_DONE; f < (open ? FATES : WAS_DONE); f++) {
        if (f != PLACE_TAKEN || order->s->torn) {
            order->fate[u] = f;
            order->length[u] = done + (f != NOT_DONE);
            play_fates(order, u + 1);
        }
    }
}

static struct set *set_of(const struct scenario *s, const struct outcome *o)
{
    for (unsigned i = 0; i < set_count; i++) {
        if (sets[i].dead == o->dead && memcmp(sets[i].done, o->done, sizeof o->done) == 0) {
            return &sets[i];
        }
    }
    assert(set_count < SETS_MAX);
    struct set *set = &sets[set_count++];
    struct order order = {.s = s, .set = set};
    set->dead = o->dead;
    memcpy(set->done, o->done, sizeof set->done);
    play_fates(&order, 0);
    return set;
}

bool oracle_accepts(const struct scenario *s, const struct outcome *outcome)
{
    bool accepted = has(set_of(s, outcome), outcome);
    world_reset();
    return accepted;
}
