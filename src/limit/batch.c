/*
 * Many questions at once. Memory is what a decision waits for; here the lines of
 * up to GROUP questions are on their way at the same time. Second lines are
 * fetched only for keys that are not in their first.
 */
#include "limit/limiter.h"

#define GROUP 32

static void fetch(struct weir *w, const struct asked *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        __builtin_prefetch(&w->table.lines[q[i].key.line], 1);
    }
    for (size_t i = 0; i < n; i++) {
        if (line_find(&w->table.lines[q[i].key.line], q[i].key.tag) == NULL) {
            uint64_t second = table_other_line(&w->table, q[i].key.line, q[i].key.tag);
            __builtin_prefetch(&w->table.lines[second], 1);
        }
    }
}

static int validate(const struct weir *w, const struct weir_ask *asks, size_t n, uint64_t now_ns,
                    size_t *bad)
{
    struct asked q;
    for (size_t i = 0; i < n; i++) {
        int e = asked_init(w, &asks[i], now_ns, &q);
        if (e != 0) {
            if (bad != NULL) {
                *bad = i;
            }
            return e;
        }
    }
    return 0;
}

int weir_ask_batch_at(struct weir *w, const struct weir_ask *asks, size_t n, uint64_t now_ns,
                      struct weir_answer *answers, size_t *bad)
{
    if (w == NULL || (n != 0 && (asks == NULL || answers == NULL))) {
        return WEIR_EINVAL;
    }
    int e = validate(w, asks, n, now_ns, bad);
    if (e != 0) {
        return e;
    }
    for (size_t done = 0; done < n; done += GROUP) {
        struct asked q[GROUP];
        size_t group = min_u64(GROUP, n - done);
        for (size_t i = 0; i < group; i++) {
            (void)asked_init(w, &asks[done + i], now_ns, &q[i]);
        }
        fetch(w, q, group);
        for (size_t i = 0; i < group; i++) {
            limiter_decide(w, &q[i], &answers[done + i], NULL);
            if (q[i].mode != WEIR_PEEK) {
                limiter_count(w, &answers[done + i]);
            }
        }
    }
    return 0;
}

int weir_ask_batch(struct weir *w, const struct weir_ask *asks, size_t n,
                   struct weir_answer *answers, size_t *bad)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_ask_batch_at(w, asks, n, now_ns, answers, bad);
}
