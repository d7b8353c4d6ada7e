#include "server/admin/limit_counts.h"

#include <stdlib.h>

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

void limits_counted_since(const struct limits_counted *before, const struct limits_counted *now,
                          struct limit_counts *since)
{
    static const struct limit_counts none;
    size_t j = 0;
    for (size_t i = 0; i < now->count; i++) {
        while (j < before->count && by_name(&before->limits[j], &now->limits[i]) < 0) {
            j++;
        }
        bool known = j < before->count && by_name(&before->limits[j], &now->limits[i]) == 0;
        const struct limit_counts *from = known ? &before->limits[j] : &none;
        since[i] = now->limits[i];
        since[i].allowed = added(from->allowed, since[i].allowed);
        since[i].denied = added(from->denied, since[i].denied);
        since[i].shadow_denied = added(from->shadow_denied, since[i].shadow_denied);
        since[i].missing = added(from->missing, since[i].missing);
        since[i].uncovered = added(from->uncovered, since[i].uncovered);
    }
}
