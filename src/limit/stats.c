/* Adding up what the threads counted, and sweeping. */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "limit/limiter.h"

static void add(uint64_t *sum, const uint64_t *part)
{
    *sum += __atomic_load_n(part, __ATOMIC_RELAXED);
}

int weir_stats(struct weir *w, struct weir_stats *stats)
{
    if (w == NULL || stats == NULL || stats->size < sizeof stats->size ||
        stats->size > sizeof *stats) {
        return WEIR_EINVAL;
    }
    struct weir_stats s;
    memset(&s, 0, sizeof s);
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        const struct counts *c = &w->counts[i];
        add(&s.allowed, &c->allowed);
        add(&s.denied, &c->denied);
        add(&s.never, &c->never);
        add(&s.blocked, &c->blocked);
        add(&s.spurious, &c->spurious);
        add(&s.reclaimed, &c->reclaimed);
        add(&s.evicted, &c->evicted);
        add(&s.full_denied, &c->full_denied);
        add(&s.full_allowed, &c->full_allowed);
        add(&s.moved, &c->moved);
    }
    s.size = stats->size;
    s.keys = load_relaxed(&w->table.counts->keys);
    s.capacity = 2 * w->table.half * LINE_SLOTS;
    s.blocks = load_relaxed(&w->table.counts->blocks);
    s.bytes = w->region.bytes;
    memcpy(stats, &s, stats->size);
    return 0;
}

long weir_sweep_at(struct weir *w, uint64_t lines, uint64_t now_ns)
{
    uint64_t now;
    if (w == NULL) {
        return WEIR_EINVAL;
    }
    int e = limiter_line(w, now_ns, &now);
    if (e != 0) {
        return e;
    }
    uint64_t freed = table_sweep(&w->table, lines, sub_floor0(now, ALGO_SLACK_NS));
    return (long)min_u64(freed, LONG_MAX);
}

long weir_sweep(struct weir *w, uint64_t lines)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_sweep_at(w, lines, now_ns);
}
