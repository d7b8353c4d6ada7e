/*
 * Many questions at once. Memory is what a decision waits for; here the lines of up to GROUP
 * questions are on their way at the same time. Second lines are fetched only for keys that are not
 * in their first.
 */
#include "limit/limiter.h"
#include "limit/shortcut.h"

#define GROUP 32

struct group {
    struct asked q[GROUP];
    struct pair *slot[GROUP]; /* where the key was seen; NULL: in its second line, or nowhere */
};

static void look_first(const struct weir *w, struct group *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct table_key *key = &g->q[i].key;
        g->slot[i] = line_pick(&w->table.lines[key->line], key->tag);
        if (g->slot[i] == NULL) {
            __builtin_prefetch(&w->table.lines[table_other_line(&w->table, key->line, key->tag)],
                               1);
        }
    }
}

static struct pair *look_second(const struct weir *w, const struct table_key *key)
{
    return line_pick(&w->table.lines[table_other_line(&w->table, key->line, key->tag)], key->tag);
}

static void decide_group(struct weir *w, const struct algo_params *p,
                         const struct weir_question *asks, size_t n, uint64_t now_ns,
                         struct weir_answer *answers)
{
    struct group g;
    for (size_t i = 0; i < n; i++) {
        g.q[i].params = p;
        g.q[i].answer = &answers[i];
        g.q[i].charge = NULL;
        asked_from(w, &asks[i], now_ns, &g.q[i]);
        __builtin_prefetch(&w->table.lines[g.q[i].key.line], 1);
    }
    look_first(w, &g, n);
    for (size_t i = 0; i < n; i++) {
        struct pair *slot = g.slot[i] != NULL ? g.slot[i] : look_second(w, &g.q[i].key);
        shortcut_or_decide(w, &g.q[i], slot);
    }
}

int weir_ask_batch_at(struct weir *w, const struct weir_question *asks, size_t n, uint64_t now_ns,
                      struct weir_answer *answers, size_t *bad)
{
    if (w == NULL || (n != 0 && (asks == NULL || answers == NULL))) {
        return WEIR_EINVAL;
    }
    struct params_place place;
    const struct algo_params *p = params_now(w, &place);
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
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_ask_batch_at(w, asks, n, now_ns, answers, bad);
}
