#include "server/admin/uncovered.h"

#include <stdlib.h>

#include "common/log.h"

/* Returns the requests that a limit was for: those that it decided or was skipped for. */
static uint64_t matched_by(const struct limit_counts *l)
{
    return l->allowed + l->denied + l->shadow_denied + l->missing;
}

static bool is_fault(const struct limit_counts *l)
{
    uint64_t matched = matched_by(l);
    return matched > UNCOVERED_REQUESTS && l->uncovered * 100 > matched * UNCOVERED_PERCENT;
}

static void tell(const struct limit_counts *l)
{
    LOG(LEVEL_WARNING, "a limit does not limit: requests have no value for its key",
        LOG_STRING("limit", l->name), LOG_COUNT("requests", matched_by(l)),
        LOG_COUNT("skipped", l->uncovered), LOG_COUNT("minutes", UNCOVERED_NS / WEIR_MINUTE));
}

static void tell_all(const struct limit_counts *since, size_t count)
{
    size_t faults = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_fault(&since[i]) && faults++ < UNCOVERED_LINES) {
            tell(&since[i]);
        }
    }
    if (faults > UNCOVERED_LINES) {
        LOG(LEVEL_WARNING, "more limits do not limit: requests have no value for their keys",
            LOG_COUNT("limits", faults - UNCOVERED_LINES));
    }
}

/* Returns false if there is no memory, or the rules are being changed. */
static bool look(struct uncovered *u, const struct server *server)
{
    struct numbers n;
    struct limits_counted now = {NULL, 0};
    struct limit_counts *since = NULL;
    bool good = numbers_read_briefly(server, &n) && limits_counted_read(&n, &now) &&
                (since = calloc(now.count + 1, sizeof *since)) != NULL;
    if (good) {
        limits_counted_since(&u->before, &now, since);
        tell_all(since, now.count);
        limits_counted_finish(&u->before);
        u->before = now;
    } else {
        limits_counted_finish(&now);
    }
    free(since);
    numbers_finish(&n);
    return good;
}

void uncovered_look(struct uncovered *u, const struct server *server, uint64_t now_ns)
{
    if (now_ns >= u->due_ns) {
        u->due_ns = now_ns + (look(u, server) ? UNCOVERED_NS : WEIR_SECOND);
    }
}

void uncovered_finish(struct uncovered *u)
{
    limits_counted_finish(&u->before);
}
