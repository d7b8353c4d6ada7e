/*
 * Many questions at once. A decision mostly waits for memory, so the lines of up to GROUP questions
 * are fetched at the same time. Second lines are fetched only for keys that are not in their first.
 */
#include "limit/shortcut.h"

#define GROUP 32

static void decide_group(struct weir *w, const struct algo_params *p,
                         const struct weir_question *asks, size_t n, uint64_t now_ns,
                         struct weir_answer *answers)
{
    struct asked q[GROUP];
    struct pair *slot[GROUP]; /* where the key was seen, or NULL */
    for (size_t i = 0; i < n; i++) {
        q[i].params = p;
        q[i].answer = &answers[i];
        q[i].charge = NULL;
        asked_from(w, &asks[i], now_ns, &q[i]);
        __builtin_prefetch(&w->table.lines[q[i].key.line], 1);
    }
    for (size_t i = 0; i < n; i++) {
        slot[i] = line_pick(&w->table.lines[q[i].key.line], q[i].key.tag);
        if (slot[i] == NULL) {
            __builtin_prefetch(table_second(&w->table, q[i].key), 1);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (slot[i] == NULL) {
            slot[i] = line_pick(table_second(&w->table, q[i].key), q[i].key.tag);
        }
        shortcut_or_decide(w, &q[i], slot[i]);
    }
}

int weir_ask_batch_at(struct weir *w, const struct weir_question *asks, size_t n, uint64_t now_ns,
                      struct weir_answer *answers, size_t *bad)
{
    if (w == NULL || (n != 0 && (asks == NULL || answers == NULL))) {
        return WEIR_EINVAL;
    }
    struct algo_params copy;
    const struct algo_params *p = params_now(w, &copy);
    for (size_t i = 0; i < n; i++) {
        int e = ask_check(w, p, &asks[i], now_ns);
        if (e != 0) {
            if (bad != NULL) {
                *bad = i;
            }
            return e;
        }
    }
    for (size_t done = 0; done < n; done += GROUP) {
        decide_group(w, p, asks + done, min_u64(GROUP, n - done), now_ns, answers + done);
    }
    return 0;
}

int weir_ask_batch(struct weir *w, const struct weir_question *asks, size_t n,
                   struct weir_answer *answers, size_t *bad)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_ask_batch_at(w, asks, n, now_ns, answers, bad);
}
