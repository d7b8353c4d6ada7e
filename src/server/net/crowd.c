#include "server/net/crowd.h"

#include <stdlib.h>

#include "base/error.h"
#include "server/net/worker.h"

int crowd_init(struct crowd *crowd, uint32_t rows, struct weir_error *error)
{
    crowd->groups = calloc(rows, sizeof *crowd->groups);
    crowd->ranks = calloc((size_t)rows + 1, sizeof *crowd->ranks);
    return crowd->groups != NULL && crowd->ranks != NULL
               ? 0
               : fail(error, WEIR_ENOMEM, "out of memory for %u connections", rows);
}

void crowd_finish(struct crowd *crowd)
{
    free(crowd->groups);
    free(crowd->ranks);
}

/* ---- groups by their number of connections ---- */

static void leave_rank(struct crowd *crowd, uint32_t row)
{
    const struct crowd_group *g = &crowd->groups[row];
    if (g->next != TALLY_NONE) {
        crowd->groups[g->next].previous = g->previous;
    }
    if (g->previous != TALLY_NONE) {
        crowd->groups[g->previous].next = g->next;
    } else {
        crowd->ranks[g->count] = g->next + 1;
    }
}

static void enter_rank(struct crowd *crowd, uint32_t row)
{
    struct crowd_group *g = &crowd->groups[row];
    g->next = crowd->ranks[g->count] - 1;
    g->previous = TALLY_NONE;
    if (g->next != TALLY_NONE) {
        crowd->groups[g->next].previous = row;
    }
    crowd->ranks[g->count] = row + 1;
}

/* Changes the number of connections of a group by one. */
static void count(struct crowd *crowd, uint32_t row, uint32_t to)
{
    struct crowd_group *g = &crowd->groups[row];
    if (g->count > 0) {
        leave_rank(crowd, row);
    }
    g->count = to;
    if (to > 0) {
        enter_rank(crowd, row);
    }
    if (to > crowd->most) {
        crowd->most = to;
    } else if (crowd->most > 0 && crowd->ranks[crowd->most] == 0) {
        crowd->most--;
    }
}

/* ---- connections ---- */

void crowd_enter(struct connection *c, uint32_t row)
{
    struct crowd *crowd = &c->worker->crowd;
    struct crowd_group *g = &crowd->groups[row];
    c->place_in_crowd = (struct crowd_place){.older = g->newest, .row = row};
    if (g->newest != NULL) {
        g->newest->place_in_crowd.newer = c;
    } else {
        g->oldest = c;
    }
    g->newest = c;
    count(crowd, row, g->count + 1);
}

void crowd_leave(struct connection *c)
{
    struct crowd *crowd = &c->worker->crowd;
    struct crowd_place *p = &c->place_in_crowd;
    struct crowd_group *g = &crowd->groups[p->row];
    if (p->older != NULL) {
        p->older->place_in_crowd.newer = p->newer;
    } else {
        g->oldest = p->newer;
    }
    if (p->newer != NULL) {
        p->newer->place_in_crowd.older = p->older;
    } else {
        g->newest = p->older;
    }
    count(crowd, p->row, g->count - 1);
    p->row = TALLY_NONE;
}

/* ---- the one that makes room ---- */

typedef bool (*may_close_fn)(const struct connection *c);

/* Returns whether the server waits for the client's next request. A health check that has part of the
 * reserve keeps it until its deadline: otherwise it would have to make room for the next one. */
static bool is_idle(const struct connection *c)
{
    return !c->writing && c->unfetched == 0 && c->pending.count == 0 && !c->beyond;
}

/* Returns whether the client alone is the reason that the connection is not idle: it does not fetch
 * its replies, or it has shown a wrong secret and waits for the refusal. */
static bool is_stalled(const struct connection *c)
{
    return (c->pending.count == 0 || c->pending.first->refusal) && !c->beyond;
}

/* Returns the oldest connection of a group that may be closed. *looks is how many may be looked at. */
static struct connection *oldest_of(const struct crowd_group *g, may_close_fn may_close,
                                    unsigned *looks)
{
    struct connection *c = g->oldest;
    while (c != NULL && *looks > 0 && !may_close(c)) {
        c = c->place_in_crowd.newer;
        --*looks;
    }
    return *looks > 0 ? c : NULL;
}

/* Returns the oldest connection that may be closed, of the address that has most of them. */
static struct connection *oldest_of_most(const struct crowd *crowd, may_close_fn may_close)
{
    unsigned looks = CROWD_LOOKS;
    for (uint32_t n = crowd->most; n > 0 && looks > 0; n--) {
        for (uint32_t row = crowd->ranks[n] - 1; row != TALLY_NONE; row = crowd->groups[row].next) {
            struct connection *found = oldest_of(&crowd->groups[row], may_close, &looks);
            if (found != NULL || looks == 0) {
                return found;
            }
        }
        looks--;
    }
    return NULL;
}

struct connection *crowd_oldest(const struct worker *w, uint32_t row)
{
    static const may_close_fn tests[] = {is_idle, is_stalled};
    struct connection *found = NULL;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0] && found == NULL; i++) {
        unsigned looks = CROWD_LOOKS;
        found = row != TALLY_NONE ? oldest_of(&w->crowd.groups[row], tests[i], &looks)
                                  : oldest_of_most(&w->crowd, tests[i]);
    }
    return found;
}
