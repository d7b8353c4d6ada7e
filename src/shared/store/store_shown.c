/* The answer of the limit that clients may be told: remote_question.shown. */
#include "limit/binding.h"
#include "shared/store/store_question.h"

void piece_show(const struct store_question *a, unsigned piece, const struct weir_answer *answer)
{
    struct weir_answer *shown = a->asked->shown;
    if (shown != NULL && !a->pieces[piece].part->hidden &&
        (shown->verdict == 0 || answer_binds(answer, shown))) {
        *shown = *answer;
        shown->limit = piece;
    }
}

void group_show_remembered(const struct group *g, uint64_t now_ns)
{
    const struct store_question *a = g->of;
    if (a->asked->shown == NULL) {
        return;
    }
    FOR_PIECES(i, g)
    {
        const struct piece *p = &a->pieces[i];
        struct weir_answer said;
        if (!p->part->hidden &&
            store_limit_remembers(p->limit, p->params, p->hash, p->part->cost, now_ns, &said)) {
            piece_show(a, i, &said);
        }
    }
}
