#include "server/loop/crowd.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "server/loop/worker.h"

#define BYTE_RANKS 4096 /* from 1 to the bound on bytes; addresses of one rank count as equal */

static int crowd_init(struct crowd *crowd, uint32_t rows, uint32_t ranks, uint64_t step)
{
    crowd->groups = calloc(rows, sizeof *crowd->groups);
    crowd->ranks = calloc((size_t)ranks + 1, sizeof *crowd->ranks);
    crowd->ranks_count = ranks + 1;
    crowd->step = step;
    return crowd->groups != NULL && crowd->ranks != NULL ? 0 : WEIR_ENOMEM;
}

int crowds_init(struct worker *w, uint32_t rows, struct weir_error *error)
{
    struct crowd *crowds = w->crowds;
    int e = crowd_init(&crowds[CROWD_OPEN], rows, rows, 1);
    e = e != 0 ? e
               : crowd_init(&crowds[CROWD_KEPT], rows, BYTE_RANKS,
                            SERVER_THREAD_INPUT_BYTES / BYTE_RANKS);
    e = e != 0 ? e
               : crowd_init(&crowds[CROWD_UNSENT], rows, BYTE_RANKS,
                            2 * SERVER_THREAD_OUTPUT_BYTES / BYTE_RANKS);
    return e == 0 ? 0 : fail(error, e, "out of memory for %u connections", rows);
}

void crowds_finish(struct worker *w)
{
    for (unsigned of = 0; of < CROWDS; of++) {
        free(w->crowds[of].groups);
        free(w->crowds[of].ranks);
    }
}

/* ---- groups by their number of units ---- */

/* Returns the rank of a group; 0: it has no units, and is in no list. */
static uint32_t rank_of(const struct crowd *crowd, uint64_t units)
{
    uint64_t rank = (units + crowd->step - 1) / crowd->step;
    return (uint32_t)(rank < crowd->ranks_count ? rank : crowd->ranks_count - 1);
}

static void leave_rank(struct crowd *crowd, uint32_t row, struct crowd_rank *rank)
{
    const struct crowd_group *g = &crowd->groups[row];
    if (g->next != TALLY_NONE) {
        crowd->groups[g->next].previous = g->previous;
    } else {
        rank->last = g->previous + 1;
    }
    if (g->previous != TALLY_NONE) {
        crowd->groups[g->previous].next = g->next;
    } else {
        rank->first = g->next + 1;
    }
}

static void enter_rank(struct crowd *crowd, uint32_t row, struct crowd_rank *rank)
{
    struct crowd_group *g = &crowd->groups[row];
    g->next = TALLY_NONE;
    g->previous = rank->last - 1;
    if (g->previous != TALLY_NONE) {
        crowd->groups[g->previous].next = row;
    } else {
        rank->first = row + 1;
    }
    rank->last = row + 1;
}

static void set_units(struct crowd *crowd, uint32_t row, uint64_t units)
{
    struct crowd_group *g = &crowd->groups[row];
    uint32_t from = rank_of(crowd, g->units);
    uint32_t to = rank_of(crowd, units);
    g->units = units;
    if (from == to) {
        return;
    }
    if (from > 0) {
        leave_rank(crowd, row, &crowd->ranks[from]);
    }
    if (to > 0) {
        enter_rank(crowd, row, &crowd->ranks[to]);
    }
    crowd->most = to > crowd->most ? to : crowd->most;
    while (crowd->most > 0 && crowd->ranks[crowd->most].first == 0) {
        crowd->most--; /* as many steps as units came before */
    }
}

/* ---- connections ---- */

/* Returns the link of a connection in a list of this kind. */
typedef struct crowd_link *(*link_fn)(struct connection *c, enum crowd_of of);

static struct crowd_link *of_address(struct connection *c, enum crowd_of of)
{
    return &c->places[of].of_address;
}

static struct crowd_link *of_thread(struct connection *c, enum crowd_of of)
{
    return &c->places[of].of_thread;
}

static void append(struct crowd_list *list, struct connection *c, enum crowd_of of, link_fn link)
{
    *link(c, of) = (struct crowd_link){.older = list->newest};
    if (list->newest != NULL) {
        link(list->newest, of)->newer = c;
    } else {
        list->oldest = c;
    }
    list->newest = c;
}

static void take_out(struct crowd_list *list, struct connection *c, enum crowd_of of, link_fn link)
{
    const struct crowd_link *l = link(c, of);
    if (l->older != NULL) {
        link(l->older, of)->newer = l->newer;
    } else {
        list->oldest = l->newer;
    }
    if (l->newer != NULL) {
        link(l->newer, of)->older = l->older;
    } else {
        list->newest = l->older;
    }
}

/* Changes what a connection counts for its address. */
static void count(struct connection *c, enum crowd_of of, size_t from, size_t to)
{
    struct crowd *crowd = &c->worker->crowds[of];
    struct crowd_group *g = &crowd->groups[c->row];
    if (from == 0 && to > 0) {
        append(&g->list, c, of, of_address);
        append(&crowd->all, c, of, of_thread);
    } else if (from > 0 && to == 0) {
        take_out(&g->list, c, of, of_address);
        take_out(&crowd->all, c, of, of_thread);
    }
    assert(g->units + to >= from);
    set_units(crowd, c->row, g->units + to - from);
}

void crowd_set(struct connection *c, enum crowd_of of, size_t units)
{
    struct crowd_place *p = &c->places[of];
    size_t before = p->units;
    p->units = units;
    if (units != before) {
        assert(c->worker->crowds[of].units + units >= before);
        c->worker->crowds[of].units += units - before;
        if (c->row != TALLY_NONE) {
            count(c, of, before, units);
        }
    }
}

void crowd_enter(struct connection *c, uint32_t row)
{
    /* A connection that closes has left already: it would stay in the lists when it is freed. */
    assert(!c->closing && c->row == TALLY_NONE);
    assert(c->places[CROWD_KEPT].units == 0 && c->places[CROWD_UNSENT].units == 0);
    c->row = row;
    crowd_set(c, CROWD_OPEN, 1);
}

void crowd_leave(struct connection *c)
{
    crowd_set(c, CROWD_OPEN, 0);
    for (unsigned of = CROWD_KEPT; of < CROWDS; of++) {
        count(c, of, c->places[of].units, 0);
    }
    for (unsigned of = 0; of < CROWDS; of++) { /* no list points to it any more */
        const struct crowd_group *g = &c->worker->crowds[of].groups[c->row];
        assert(g->list.oldest != c && g->list.newest != c);
        assert((g->units == 0) == (g->list.oldest == NULL));
        (void)g;
    }
    c->row = TALLY_NONE;
}

/* ---- the one that makes room for another connection ---- */

typedef bool (*may_close_fn)(const struct connection *c);

/* Returns whether the client has shown a wrong secret and waits for the refusal. */
static bool waits_for_refusal(const struct connection *c)
{
    return c->pending.count > 0 && c->pending.first->refusal && !c->beyond;
}

/* Returns whether the server waits for the client's next request. A health check that has part of
 * the reserve keeps it until its deadline: otherwise it would make room for the next one. */
static bool is_idle(const struct connection *c)
{
    return !c->writing && c->unfetched == 0 && c->pending.count == 0 && !c->beyond;
}

/* The loop reads all that has arrived in each turn. So a client cannot keep bytes unread, and when
 * this is asked, in nearly all cases, the first connection has none. */
static bool is_silent(const struct connection *c)
{
    return is_idle(c) && connection_unread(c) == 0;
}

static bool is_silent_for_long(const struct connection *c)
{
    return uv_now(&c->worker->loop) - c->accepted_ms >= CROWD_FRESH_MS && is_silent(c);
}

/* Returns whether the client has sent a request, or the beginning of one. More bytes of that do not
 * spare it: a client could send them one by one. */
static bool has_begun(const struct connection *c)
{
    return (c->asked && is_silent(c)) || (buffer_len(&c->input) > 0 && is_idle(c));
}

/* Returns whether the client alone is the reason that the connection is not idle. */
static bool is_stalled(const struct connection *c)
{
    return (c->writing || c->unfetched > 0) && c->pending.count == 0 && !c->beyond;
}

/* Returns the oldest connection of a group that may be closed, among the next *looks. */
static struct connection *oldest_of(const struct crowd_group *g, may_close_fn may_close,
                                    unsigned *looks)
{
    struct connection *c = g->list.oldest;
    while (c != NULL && *looks > 0 && !may_close(c)) {
        c = c->places[CROWD_OPEN].of_address.newer;
        --*looks;
    }
    return *looks > 0 ? c : NULL;
}

/* Returns the oldest connection that may be closed, of the address that has most of them. */
static struct connection *oldest_of_most(const struct crowd *crowd, may_close_fn may_close)
{
    unsigned looks = CROWD_LOOKS;
    for (uint32_t n = crowd->most; n > 0 && looks > 0; n--) {
        uint32_t row = crowd->ranks[n].first - 1;
        for (; row != TALLY_NONE; row = crowd->groups[row].next) {
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
    static const may_close_fn tests[] = {waits_for_refusal, is_silent_for_long, is_stalled,
                                         has_begun,         is_silent,          is_idle};
    const struct crowd *crowd = &w->crowds[CROWD_OPEN];
    struct connection *found = NULL;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0] && found == NULL; i++) {
        unsigned looks = CROWD_LOOKS;
        found = row != TALLY_NONE ? oldest_of(&crowd->groups[row], tests[i], &looks)
                                  : oldest_of_most(crowd, tests[i]);
    }
    return found;
}

/* ---- the one whose bytes make room ---- */

/* Returns the oldest of a list, or the second if that is `except`. */
static struct connection *oldest_but(const struct crowd_list *list, enum crowd_of of, link_fn link,
                                     const struct connection *except)
{
    struct connection *c = list->oldest;
    return c != NULL && c == except ? link(c, of)->newer : c;
}

struct connection *crowd_debtor(const struct worker *w, enum crowd_of of,
                                const struct connection *except)
{
    const struct crowd *crowd = &w->crowds[of];
    for (uint32_t n = crowd->most; n > 0; n--) {
        uint32_t row = crowd->ranks[n].first - 1;
        for (; row != TALLY_NONE; row = crowd->groups[row].next) {
            const struct crowd_group *g = &crowd->groups[row];
            struct connection *c = oldest_but(&g->list, of, of_address, except);
            if (g->units <= crowd->units / CROWD_SHARE) {
                return oldest_but(&crowd->all, of, of_thread, except);
            }
            if (c != NULL) { /* otherwise `except` is all that this address has */
                return c;
            }
        }
    }
    return NULL;
}
