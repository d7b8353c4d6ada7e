#include "support/fleet/failover_ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/maths.h"

static void die(const char *what, uint64_t unit)
{
    (void)fprintf(stderr, "ledger: %s: unit %" PRIu64 "\n", what, unit);
    exit(1);
}

struct page { /* the grants of one master, sorted by unit */
    struct crowd_grant *at;
    size_t count;
};

static int by_unit(const void *a, const void *b)
{
    const struct crowd_grant *x = a;
    const struct crowd_grant *y = b;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

static struct page page_of(const struct crowd *c, unsigned key, uint64_t from_ns, uint64_t to_ns)
{
    size_t all;
    const struct crowd_grant *grants = crowd_grants(c, &all);
    struct page p = {calloc(all + 1, sizeof *p.at), 0};
    if (p.at == NULL) {
        die("memory", 0);
    }
    for (size_t i = 0; i < all; i++) {
        bool mine = grants[i].key == key && grants[i].asked_ns >= from_ns;
        if (mine && grants[i].asked_ns < to_ns) {
            p.at[p.count++] = grants[i];
        }
    }
    qsort(p.at, p.count, sizeof p.at[0], by_unit);
    for (size_t i = 1; i < p.count; i++) {
        if (p.at[i].unit == p.at[i - 1].unit) {
            die("granted twice by one master", p.at[i].unit);
        }
    }
    return p;
}

static bool holds(const struct page *p, uint64_t unit)
{
    struct crowd_grant g = {.unit = unit};
    return bsearch(&g, p->at, p->count, sizeof p->at[0], by_unit) != NULL;
}

/* Returns when the last unit up to `kept` was asked for: no lost unit ran before that. */
static uint64_t heard_ns(const struct page *old, uint64_t kept, uint64_t died_ns)
{
    uint64_t ns = old->count > 0 ? old->at[0].asked_ns : died_ns;
    for (size_t i = 0; i < old->count && old->at[i].unit <= kept; i++) {
        ns = old->at[i].asked_ns;
    }
    return ns;
}

static void count_lost(struct ledger *l, const struct page *old, const struct page *new)
{
    for (size_t i = 0; i < old->count; i++) {
        const struct crowd_grant *g = &old->at[i];
        if (g->unit > l->kept) {
            l->lost++;
            l->again += holds(new, g->unit);
            l->first_lost_ns =
                l->lost == 1 ? g->answered_ns : min_u64(l->first_lost_ns, g->answered_ns);
            l->last_lost_ns = max_u64(l->last_lost_ns, g->answered_ns);
        }
    }
}

struct ledger ledger_of(const struct crowd *c, unsigned key, uint64_t died_ns)
{
    struct page old = page_of(c, key, 0, died_ns);
    struct page new = page_of(c, key, died_ns, UINT64_MAX);
    if (new.count == 0) {
        die("the new master has granted nothing", 0);
    }
    struct ledger l = {.by_old = old.count, .by_new = new.count, .kept = new.at[0].unit - 1};
    l.last = old.count > 0 ? old.at[old.count - 1].unit : 0;
    uint64_t since_ns = heard_ns(&old, l.kept, died_ns);
    l.lag_ns = sub_floor0(died_ns, since_ns);
    for (size_t i = 0; i < old.count; i++) {
        l.within += old.at[i].answered_ns >= since_ns;
    }
    count_lost(&l, &old, &new);
    free(old.at);
    free(new.at);
    return l;
}

void ledger_print(const struct ledger *l, const char *what)
{
    printf("  %s: the old master granted %" PRIu64 ", the new one goes on behind %" PRIu64
           ": %" PRIu64 " lost, %" PRIu64 " granted again; %" PRIu64
           " were granted within the lag of %.1f ms\n",
           what, l->by_old, l->kept, l->lost, l->again, l->within, (double)l->lag_ns / 1e6);
}
