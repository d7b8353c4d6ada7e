/* Counting, adding up what the threads counted, and sweeping. */
#include <stddef.h>
#include <string.h>

#include "limit/limiter.h"

static void count_flags(struct counts *c, const struct weir_answer *a)
{
    count_add(&c->blocked, (a->flags & WEIR_FLAG_BLOCKED) != 0);
    count_add(&c->spurious, (a->flags & WEIR_FLAG_SPURIOUS) != 0);
    if ((a->flags & WEIR_FLAG_FULL) != 0) {
        count_add(a->verdict == WEIR_ALLOW ? &c->full_allowed : &c->full_denied, 1);
    }
}

void limiter_count(struct weir *w, const struct weir_answer *answer)
{
    struct counts *c = limiter_counts(w);
    count_add(&c->verdict[answer->verdict], 1);
    if (answer->flags != 0) {
        count_flags(c, answer);
    }
}

void limiter_count_claim(struct weir *w, const struct claim *claim)
{
    if ((claim->reclaimed | claim->evicted | claim->moved) != 0) {
        struct counts *c = limiter_counts(w);
        count_add(&c->reclaimed, claim->reclaimed);
        count_add(&c->evicted, claim->evicted);
        count_add(&c->moved, claim->moved);
    }
}

static void add(uint64_t *sum, const uint64_t *part)
{
    *sum += __atomic_load_n(part, __ATOMIC_RELAXED);
}

int weir_stats_read(struct weir *w, struct weir_stats *stats)
{
    if (w == NULL || stats == NULL || stats->size < sizeof stats->size ||
        stats->size > sizeof *stats) {
        return WEIR_EINVAL;
    }
    struct weir_stats s;
    memset(&s, 0, sizeof s);
    for (unsigned i = 0; i < thread_slots_used(); i++) {
        const struct counts *c = &w->threads[i].counts;
        add(&s.allowed, &c->verdict[WEIR_ALLOW]);
        add(&s.denied, &c->verdict[WEIR_DENY]);
        add(&s.never, &c->verdict[WEIR_NEVER]);
        add(&s.blocked, &c->blocked);
        add(&s.spurious, &c->spurious);
        add(&s.reclaimed, &c->reclaimed);
        add(&s.evicted, &c->evicted);
        add(&s.full_denied, &c->full_denied);
        add(&s.full_allowed, &c->full_allowed);
        add(&s.moved, &c->moved);
    }
    s.size = stats->size;
    s.keys = table_keys(&w->table);
    s.capacity = w->table.all * LINE_SLOTS;
    s.blocks = load_relaxed(&w->table.counts->blocks.count);
    s.bytes = w->region->bytes;
    memcpy(stats, &s, stats->size);
    return 0;
}

int64_t weir_sweep_at(struct weir *w, uint64_t lines, uint64_t now_ns)
{
    struct params_place place;
    if (w == NULL) {
        return WEIR_EINVAL;
    }
    if (!limiter_knows(w, params_now(w, &place), now_ns)) {
        return WEIR_ETIME;
    }
    return (int64_t)table_sweep(&w->table, lines, limiter_line(w, now_ns));
}

int64_t weir_sweep(struct weir *w, uint64_t lines)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_sweep_at(w, lines, now_ns);
}
