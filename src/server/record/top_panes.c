#include "server/record/top_panes.h"

#include <stdlib.h>
#include <weir.h>

#include "base/atomic.h"
#include "rules/file/config.h"
#include "server/record/limit_reasons.h"

#define TURN_NS (TOP_TURN_S * WEIR_SECOND)

/* What was denied from one time to another. */
struct pane {
    uint64_t from_ns;
    uint64_t to_ns;
    struct top_set sets[TOP_SETS];
};

struct top_panes {
    uint64_t turn __attribute__((aligned(64))); /* all threads read it: a cache line of its own */
    uint64_t before_ns __attribute__((aligned(64))); /* when the turn before this one began */
    uint64_t began_ns;                               /* when this turn began */
    size_t recent_count;
    size_t old_count;
    struct pane sum; /* of the last list */
    struct pane recent[TOP_RECENT];
    struct pane old[TOP_OLD];
};

_Static_assert(TOP_BYTES == CONFIG_TOP_BYTES, "it is counted as what it is");
_Static_assert(sizeof(struct top_panes) + TOP_THREADS * TOP_THREAD + REASON_TABLE <= TOP_BYTES,
               "panes, sketches and reasons are too large");

struct top_panes *top_panes_create(uint64_t now_ns)
{
    struct top_panes *p = aligned_alloc(_Alignof(struct top_panes), sizeof *p);
    if (p != NULL) {
        memset(p, 0, sizeof *p);
        p->turn = 2; /* so that the turn before it has a number too */
        p->before_ns = now_ns;
        p->began_ns = now_ns;
    }
    return p;
}

void top_panes_destroy(struct top_panes *panes)
{
    free(panes);
}

size_t top_panes_bytes(void)
{
    return sizeof(struct top_panes);
}

const uint64_t *top_panes_turn(const struct top_panes *panes)
{
    return &panes->turn;
}

/* ---- adding up ---- */

static const struct top_row *find(const struct top_set *set, uint64_t id)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->rows[i].id == id) {
            return &set->rows[i];
        }
    }
    return NULL;
}

/* Adds what `set` knows of a row. */
static void add_counts(struct top_row *row, const struct top_set *set)
{
    const struct top_row *other = find(set, row->id);
    row->high += other != NULL ? other->high : set->lost;
    row->low += other != NULL ? other->low : 0;
}

static int highest_first(const void *a, const void *b)
{
    const struct top_row *x = *(const struct top_row *const *)a;
    const struct top_row *y = *(const struct top_row *const *)b;
    if (x->high != y->high) {
        return x->high > y->high ? -1 : 1;
    }
    if (x->low != y->low) {
        return x->low > y->low ? -1 : 1;
    }
    int order = strcmp(x->limit, y->limit);
    order = order != 0 ? order : memcmp(x->key, y->key, sizeof x->key);
    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

/* Adds `more` to `sum` (E1 to E3). */
static void add_set(struct top_set *sum, const struct top_set *more)
{
    struct top_row all[2 * TOP_WAYS];
    const struct top_row *order[2 * TOP_WAYS];
    size_t n = 0;
    for (unsigned i = 0; i < sum->count; i++) {
        all[n] = sum->rows[i];
        add_counts(&all[n++], more);
    }
    for (unsigned i = 0; i < more->count; i++) {
        if (find(sum, more->rows[i].id) == NULL) {
            all[n] = more->rows[i];
            add_counts(&all[n++], sum);
        }
    }
    for (size_t i = 0; i < n; i++) {
        order[i] = &all[i];
    }
    qsort(order, n, sizeof order[0], highest_first);
    sum->lost = n > TOP_WAYS ? order[TOP_WAYS]->high : sum->lost + more->lost;
    sum->count = n < TOP_WAYS ? n : TOP_WAYS;
    for (unsigned i = 0; i < sum->count; i++) {
        sum->rows[i] = *order[i];
    }
}

static void add_pane(struct pane *sum, const struct pane *more)
{
    for (unsigned s = 0; s < TOP_SETS; s++) {
        if (more->sets[s].count > 0) {
            add_set(&sum->sets[s], &more->sets[s]);
        }
    }
}

/* Adds what the threads have counted in a turn. */
static void add_turn(struct pane *sum, uint64_t turn, struct top *const *tops, size_t count)
{
    struct top_set one;
    for (size_t i = 0; i < count; i++) {
        for (unsigned s = 0; s < TOP_SETS; s++) {
            top_read_set(tops[i], turn, s, &one);
            if (one.count > 0) {
                add_set(&sum->sets[s], &one);
            }
        }
    }
}

/* Empties a pane. What its rows hold means nothing then. */
static void begin_pane(struct pane *pane, uint64_t from_ns, uint64_t to_ns)
{
    pane->from_ns = from_ns;
    pane->to_ns = to_ns;
    for (unsigned s = 0; s < TOP_SETS; s++) {
        pane->sets[s].count = 0;
        pane->sets[s].lost = 0;
    }
}

/* ---- turns ---- */

/* Removes the first n of `count` panes. */
static void remove_first(struct pane *panes, size_t *count, size_t n)
{
    *count -= n;
    memmove(panes, panes + n, *count * sizeof *panes);
}

/* Makes one pane of the oldest recent ones. */
static void join_oldest(struct top_panes *p)
{
    if (p->old_count == TOP_OLD) {
        remove_first(p->old, &p->old_count, 1);
    }
    struct pane *joined = &p->old[p->old_count++];
    begin_pane(joined, p->recent[0].from_ns, p->recent[TOP_JOINED - 1].to_ns);
    for (unsigned i = 0; i < TOP_JOINED; i++) {
        add_pane(joined, &p->recent[i]);
    }
    remove_first(p->recent, &p->recent_count, TOP_JOINED);
}

void top_panes_tick(struct top_panes *p, struct top *const *tops, size_t count, uint64_t now_ns)
{
    if (now_ns < p->began_ns + TURN_NS) {
        return;
    }
    if (p->recent_count == TOP_RECENT) {
        join_oldest(p);
    }
    struct pane *pane = &p->recent[p->recent_count++];
    begin_pane(pane, p->before_ns, p->began_ns);
    add_turn(pane, p->turn - 1, tops, count);
    p->before_ns = p->began_ns;
    p->began_ns = now_ns;
    store_relaxed(&p->turn, p->turn + 1); /* threads may learn of it late (top_denied.h) */
}

/* ---- listing ---- */

/* Adds the panes that end after `since`. They are in the order of time. */
static void add_since(struct pane *sum, const struct pane *panes, size_t count, uint64_t since_ns)
{
    for (size_t i = count; i > 0 && panes[i - 1].to_ns > since_ns; i--) {
        add_pane(sum, &panes[i - 1]);
        sum->from_ns = panes[i - 1].from_ns;
    }
}

void top_panes_list(struct top_panes *p, struct top *const *tops, size_t count, uint64_t window_ns,
                    uint64_t now_ns, struct top_list *list)
{
    uint64_t since_ns = now_ns > window_ns ? now_ns - window_ns : 0;
    begin_pane(&p->sum, p->before_ns, now_ns);
    add_turn(&p->sum, p->turn, tops, count);
    add_turn(&p->sum, p->turn - 1, tops, count);
    add_since(&p->sum, p->recent, p->recent_count, since_ns);
    add_since(&p->sum, p->old, p->old_count, since_ns);
    *list = (struct top_list){.from_ns = p->sum.from_ns};
    for (unsigned s = 0; s < TOP_SETS; s++) {
        const struct top_set *set = &p->sum.sets[s];
        list->lost = set->lost > list->lost ? set->lost : list->lost;
        for (unsigned i = 0; i < set->count; i++) {
            list->rows[list->count++] = &set->rows[i];
        }
    }
    qsort(list->rows, list->count, sizeof list->rows[0], highest_first);
}
