#include "server/status/troubles.h"

#include <stdlib.h>

static struct limit_trouble read_limit(const struct limit_numbers *from)
{
    struct limit_trouble l = {.answers = 0};
    const struct weir_stats *stats = &from->stats;
    memcpy(l.name, from->name, sizeof l.name);
    if (from->remote) { /* its table is the store, which has a notice of its own */
        l.counts[TROUBLE_DEGRADED] = from->degraded;
        l.answers = stats->allowed + stats->denied + stats->never + stats->shadow_denied;
    } else {
        l.counts[TROUBLE_FULL_DENIED] = stats->full_denied;
        l.counts[TROUBLE_FULL_ALLOWED] = stats->full_allowed;
        l.counts[TROUBLE_EVICTED] = stats->evicted;
    }
    return l;
}

static uint64_t risen(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static struct answers_second *second_of(struct troubles *t, uint64_t now_ns)
{
    uint64_t second = now_ns / WEIR_SECOND;
    struct answers_second *s = &t->seconds[second % TROUBLE_SECONDS];
    if (s->second != second) {
        *s = (struct answers_second){.second = second};
    }
    return s;
}

/* Adds what a limit has counted since the last look, and notes the counters that have risen. */
static void compare(struct troubles *t, const struct limit_trouble *before,
                    struct limit_trouble *now, uint64_t now_ns)
{
    struct answers_second *s = second_of(t, now_ns);
    for (unsigned i = 0; i < TROUBLES; i++) {
        now->seen_ns[i] = now->counts[i] > before->counts[i] ? now_ns : before->seen_ns[i];
    }
    s->answers += risen(before->answers, now->answers);
    s->degraded += risen(before->counts[TROUBLE_DEGRADED], now->counts[TROUBLE_DEGRADED]);
}

void troubles_look(struct troubles *t, const struct numbers *n, uint64_t now_ns)
{
    struct limit_trouble *all = calloc(n->limits_count + 1, sizeof *all);
    for (size_t i = 0; all != NULL && i < n->limits_count; i++) {
        all[i] = read_limit(&n->limits[i]);
        if (i < t->count && strcmp(t->limits[i].name, all[i].name) == 0) {
            compare(t, &t->limits[i], &all[i], now_ns);
        }
    }
    free(t->limits);
    t->limits = all;
    t->count = all != NULL ? n->limits_count : 0;
}

bool trouble_is_near(const struct limit_trouble *l, enum trouble which, uint64_t now_ns)
{
    uint64_t seen_ns = l->seen_ns[which];
    return seen_ns != 0 && seen_ns <= now_ns && now_ns - seen_ns < TROUBLE_NS;
}

double troubles_degraded_percent(const struct troubles *t, uint64_t now_ns)
{
    uint64_t second = now_ns / WEIR_SECOND;
    uint64_t answers = 0;
    uint64_t degraded = 0;
    for (size_t i = 0; i < TROUBLE_SECONDS; i++) {
        const struct answers_second *s = &t->seconds[i];
        if (s->second <= second && second - s->second < TROUBLE_SECONDS) {
            answers += s->answers;
            degraded += s->degraded;
        }
    }
    return answers > 0 ? 100.0 * (double)degraded / (double)answers : 0;
}

void troubles_forget_answers(struct troubles *t)
{
    memset(t->seconds, 0, sizeof t->seconds);
}

void troubles_finish(struct troubles *t)
{
    free(t->limits);
    *t = (struct troubles){.limits = NULL};
}
