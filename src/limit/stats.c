/* Counts what happens, adds up the counts of all threads, and sweeps the table. */
#include "limit/limiter.h"

void limiter_count(struct weir *w, const struct weir_answer *answer, bool shadow)
{
    struct counts *c = limiter_counts(w);
    unsigned flags = answer->flags;
    bool passed = shadow && answer->verdict != WEIR_ALLOW;
    count_add(&c->verdict[passed ? COUNT_SHADOW : answer->verdict], 1);
    if (flags != 0) {
        count_add(&c->blocked, (flags & WEIR_FLAG_BLOCKED) != 0);
        count_add(&c->spurious, (flags & WEIR_FLAG_SPURIOUS) != 0);
        count_add(answer->verdict == WEIR_ALLOW ? &c->full_allowed : &c->full_denied,
                  (flags & WEIR_FLAG_FULL) != 0);
    }
}

int weir_stats_read(struct weir *w, struct weir_stats *stats)
{
    enum { COUNTS = sizeof(struct counts) / sizeof(uint64_t) };
    _Static_assert(offsetof(struct counts, moved) == offsetof(struct weir_stats, moved),
                   "counts are the first fields of the statistics");
    uint64_t sum[COUNTS] = {0};
    struct weir_stats s;
    if (w == NULL || stats == NULL || stats->size < sizeof stats->size ||
        stats->size > sizeof *stats) {
        return WEIR_EINVAL;
    }
    for (unsigned i = 0; i < thread_slots_used(); i++) {
        const uint64_t *count = (const uint64_t *)(const void *)&w->threads[i].counts;
        for (size_t j = 0; j < COUNTS; j++) {
            sum[j] += __atomic_load_n(&count[j], __ATOMIC_RELAXED);
        }
    }
    memcpy(&s, sum, sizeof sum);
    s.size = stats->size;
    s.shadow_denied = sum[COUNT_SHADOW];
    s.keys = table_keys(&w->table);
    s.capacity = w->table.all * LINE_SLOTS;
    s.blocks = load_relaxed(&w->table.counts->blocks.count);
    s.bytes = w->region->bytes;
    memcpy(stats, &s, stats->size);
    return 0;
}

const void *weir_memory(const struct weir *w, size_t *bytes)
{
    if (w == NULL || bytes == NULL) {
        return NULL;
    }
    *bytes = (size_t)w->region->bytes;
    return w->head;
}

int64_t weir_sweep_at(struct weir *w, uint64_t lines, uint64_t now_ns)
{
    struct algo_params copy;
    if (w == NULL) {
        return WEIR_EINVAL;
    }
    if (!limiter_knows(w, params_now(w, &copy), now_ns)) {
        return WEIR_ETIME;
    }
    return (int64_t)table_sweep(&w->table, lines, limiter_line(w, now_ns));
}

int64_t weir_sweep(struct weir *w, uint64_t lines)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_sweep_at(w, lines, now_ns);
}
