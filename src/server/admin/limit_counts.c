#include "server/admin/limit_counts.h"

#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct limit_counts *)a)->name, ((const struct limit_counts *)b)->name);
}

bool limits_counted_read(const struct numbers *n, struct limits_counted *counted)
{
    struct limit_counts *all = calloc(n->limits_count + 1, sizeof *all);
    *counted = (struct limits_counted){all, all != NULL ? n->limits_count : 0};
    for (size_t i = 0; i < counted->count; i++) {
        const struct weir_stats *stats = &n->limits[i].stats;
        memcpy(all[i].name, n->limits[i].name, sizeof all[i].name);
        all[i].allowed = stats->allowed;
        all[i].denied = stats->denied + stats->never;
        all[i].shadow_denied = stats->shadow_denied;
        all[i].missing = n->limits[i].missing;
        all[i].uncovered = n->limits[i].uncovered;
    }
    if (all != NULL) {
        qsort(all, counted->count, sizeof *all, by_name);
    }
    return all != NULL;
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
