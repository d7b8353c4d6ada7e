#include "server/admin/limit_counts.h"

#include <stdlib.h>

#include "server/record/limit_reasons.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct limit_counts *)a)->name, ((const struct limit_counts *)b)->name);
}

bool limits_counted_read(const struct numbers *n, struct limits_counted *counted)
{
    struct limit_counts *all = calloc(n->limits_count + 1, sizeof *all);
    if (all == NULL) {
        *counted = (struct limits_counted){NULL, 0};
        return false;
    }
    for (size_t i = 0; i < n->limits_count; i++) {
        const struct limit_numbers *from = &n->limits[i];
        memcpy(all[i].name, from->name, sizeof all[i].name);
        all[i].allowed = from->stats.allowed;
        all[i].denied = from->stats.denied + from->stats.never;
        all[i].shadow_denied = from->stats.shadow_denied;
        limit_reasons_read(n->server->reasons, from->name, all[i].reasons);
        all[i].missing = from->missing;
        all[i].uncovered = from->uncovered;
    }
    qsort(all, n->limits_count, sizeof *all, by_name);
    *counted = (struct limits_counted){all, n->limits_count};
    return true;
}

void limits_counted_finish(struct limits_counted *counted)
{
    free(counted->limits);
    *counted = (struct limits_counted){NULL, 0};
}

static uint64_t added(uint64_t before, uint64_t now)
{
    return now >= before ? now - before : now;
}

/* Returns the counts of a limit at an earlier look. Asked for limits in the order of their names,
 * it goes through `before` once: *at is where the search goes on. */
static const struct limit_counts *find_next(const struct limits_counted *before, size_t *at,
                                            const struct limit_counts *limit)
{
    static const struct limit_counts none;
    while (*at < before->count && by_name(&before->limits[*at], limit) < 0) {
        ++*at;
    }
    bool known = *at < before->count && by_name(&before->limits[*at], limit) == 0;
    return known ? &before->limits[*at] : &none;
}

void limits_counted_since(const struct limits_counted *before, const struct limits_counted *now,
                          struct limit_counts *since)
{
    size_t at = 0;
    for (size_t i = 0; i < now->count; i++) {
        const struct limit_counts *from = find_next(before, &at, &now->limits[i]);
        since[i] = now->limits[i];
        since[i].allowed = added(from->allowed, since[i].allowed);
        since[i].denied = added(from->denied, since[i].denied);
        since[i].shadow_denied = added(from->shadow_denied, since[i].shadow_denied);
        for (unsigned r = 0; r < REQUEST_REASONS; r++) {
            since[i].reasons[r] = added(from->reasons[r], since[i].reasons[r]);
        }
        since[i].missing = added(from->missing, since[i].missing);
        since[i].uncovered = added(from->uncovered, since[i].uncovered);
    }
}

/* Returns a mean in which the weight of what was earlier decays. */
static double decay(double mean, uint64_t count, double seconds)
{
    return (mean * RATE_SPAN_S + (double)count) / (RATE_SPAN_S + seconds);
}

void limits_counted_rate(const struct limits_counted *before, struct limits_counted *now,
                         const struct limit_counts *since, double seconds)
{
    size_t at = 0;
    for (size_t i = 0; i < now->count; i++) {
        const struct limit_counts *from = find_next(before, &at, &now->limits[i]);
        now->limits[i].denied_rate = decay(from->denied_rate, since[i].denied, seconds);
        now->limits[i].decided_rate =
            decay(from->decided_rate, limit_decisions(&since[i]), seconds);
    }
}

static int compare_name(const void *name, const void *limit)
{
    return strcmp(name, ((const struct limit_counts *)limit)->name);
}

const struct limit_counts *limits_counted_find(const struct limits_counted *counted,
                                               const char *name)
{
    return counted->count == 0 ? NULL
                               : bsearch(name, counted->limits, counted->count,
                                         sizeof *counted->limits, compare_name);
}
