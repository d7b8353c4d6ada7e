#include "support/engine/process_route.h"

#include <limits.h>
#include <stdlib.h>

#include "support/engine/process_fixture.h"

#define PLACES 65536 /* a power of two, more than a call has different instructions */

/* The costs of hops, in units of a breakpoint; STEP_COST is that under a hypervisor. */
#define STEP_COST 4
#define RUN_COST 1
#define TURNS_COST 1

/* When each place was last passed. */
struct seen {
    uint64_t place; /* 0: none */
    unsigned last;
};

struct routes {
    const uint64_t *place;
    unsigned n;
    unsigned *cost;  /* cost of the cheapest route to k */
    unsigned *from;  /* where the last hop of that route begins */
    unsigned *first; /* first turn of the instruction of which k is a turn; mostly k */
    unsigned *after; /* the instruction after it; mostly k + 1 */
    struct seen *seen;
    unsigned *cheap; /* stops that are cheaper than all later ones, in order */
    unsigned cheaps;
};

/* ---- planning ---- */

/* Records that the place is passed at k. Returns the first stop after it was last passed. */
static unsigned see(struct seen *seen, uint64_t place, unsigned k)
{
    uint64_t i = place % PLACES;
    while (seen[i].place != 0 && seen[i].place != place) {
        i = (i + 1) % PLACES;
    }
    unsigned since = seen[i].place != 0 ? seen[i].last + 1 : 0;
    seen[i] = (struct seen){place, k};
    return since;
}

/* Returns the cheapest stop from `since` on. */
static unsigned cheapest_since(const struct routes *r, unsigned since)
{
    unsigned low = 0;
    unsigned high = r->cheaps - 1;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (r->cheap[middle] >= since) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return r->cheap[low];
}

static void add_stop(struct routes *r, unsigned k)
{
    while (r->cheaps > 0 && r->cost[r->cheap[r->cheaps - 1]] >= r->cost[k]) {
        r->cheaps--;
    }
    r->cheap[r->cheaps++] = k;
}

static void take_if_cheaper(struct routes *r, unsigned k, unsigned from, unsigned hop_cost)
{
    if (r->cost[from] + hop_cost < r->cost[k]) {
        r->cost[k] = r->cost[from] + hop_cost;
        r->from[k] = from;
    }
}

/* Matches movs and stos with a rep prefix, in all sizes: rcx is the number of turns left. */
static bool is_string(uint64_t place)
{
    const unsigned char *code = (const unsigned char *)(uintptr_t)place;
    if (code[0] != 0xf3) {
        return false;
    }
    unsigned char op = code[1] == 0x48 ? code[2] : code[1];
    return op == 0xa4 || op == 0xa5 || op == 0xaa || op == 0xab;
}

static void find_turns(struct routes *r)
{
    for (unsigned k = 0; k <= r->n; k++) {
        bool turn = k > 0 && r->place[k] == r->place[k - 1] && is_string(r->place[k]);
        r->first[k] = turn ? r->first[k - 1] : k;
    }
    r->after[r->n] = r->n + 1;
    for (unsigned k = r->n; k-- > 0;) {
        r->after[k] = r->first[k + 1] == k + 1 ? k + 1 : r->after[k + 1];
    }
}

/* Finds the cheapest route to k; those to all before it are known. */
static void find_way(struct routes *r, unsigned k, bool (*can_stop)(uint64_t place))
{
    unsigned since = see(r->seen, r->place[k], k);
    r->cost[k] = UINT_MAX;
    take_if_cheaper(r, k, k - 1, STEP_COST);
    if (since < k && can_stop(r->place[k])) {
        take_if_cheaper(r, k, cheapest_since(r, since), RUN_COST);
    }
    if (r->first[k] < k && r->after[k] <= r->n && can_stop(r->place[r->after[k]])) {
        take_if_cheaper(r, k, r->first[k], TURNS_COST);
    }
    add_stop(r, k);
}

struct routes *routes_create(const uint64_t *place, unsigned n, bool (*can_stop)(uint64_t place))
{
    struct routes *r = calloc(1, sizeof *r);
    REQUIRE(r != NULL);
    *r = (struct routes){.place = place, .n = n};
    r->cost = calloc(n + 1, sizeof *r->cost);
    r->from = calloc(n + 1, sizeof *r->from);
    r->first = calloc(n + 1, sizeof *r->first);
    r->after = calloc(n + 1, sizeof *r->after);
    r->cheap = calloc(n + 1, sizeof *r->cheap);
    r->seen = calloc(PLACES, sizeof *r->seen);
    REQUIRE(r->cost != NULL && r->from != NULL && r->first != NULL && r->after != NULL &&
            r->cheap != NULL && r->seen != NULL);
    find_turns(r);
    (void)see(r->seen, place[0], 0);
    add_stop(r, 0);
    for (unsigned k = 1; k <= n; k++) {
        find_way(r, k, can_stop);
    }
    return r;
}

void routes_destroy(struct routes *r)
{
    free(r->cost);
    free(r->from);
    free(r->first);
    free(r->after);
    free(r->cheap);
    free(r->seen);
    free(r);
}

/* ---- queries ---- */

bool route_is_turn(const struct routes *r, unsigned k)
{
    return r->first[k] != k;
}

unsigned route_turns(const struct routes *r, unsigned k)
{
    return r->after[k] - r->first[k];
}

static struct hop last_hop(const struct routes *r, unsigned k)
{
    unsigned from = r->from[k];
    unsigned cost = r->cost[k] - r->cost[from];
    if (cost == STEP_COST) {
        return (struct hop){HOP_STEP, 1, 0};
    }
    if (r->first[k] == from) {
        return (struct hop){HOP_TURNS, k - from, r->place[r->after[k]]};
    }
    return (struct hop){HOP_RUN, 0, r->place[k]};
}

unsigned route_to(const struct routes *r, unsigned k, struct hop *hops, unsigned max)
{
    unsigned n = 0;
    for (; k > 0; k = r->from[k]) { /* backwards; consecutive steps are one hop */
        struct hop hop = last_hop(r, k);
        if (n > 0 && hop.kind == HOP_STEP && hops[n - 1].kind == HOP_STEP) {
            hops[n - 1].count++;
        } else {
            REQUIRE(n < max);
            hops[n++] = hop;
        }
    }
    for (unsigned i = 0; i < n / 2; i++) {
        struct hop hop = hops[i];
        hops[i] = hops[n - 1 - i];
        hops[n - 1 - i] = hop;
    }
    return n;
}
