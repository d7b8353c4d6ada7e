/*
 * Verbs on keys in a fleet's store. The store is asked for a change; when it has made it, the
 * change is logged and the key inspected by a peek of 1 unit. The answer has the longer of the
 * block and the time until there are units; so if the key is blocked, a peek of 0 units asks for
 * the block alone.
 */
#include "server/ask/verbs_later.h"

#include <stdlib.h>

#include "server/net/deferred.h"

struct verb_later {
    struct verb_audit audit; /* only for a change */
    uint64_t now_ns;
};

uint64_t verb_for_ns(const struct verb_call *call)
{
    uint64_t ms = call->for_ms;
    return ms > UINT64_MAX / WEIR_MILLISECOND ? WEIR_FOREVER : ms * WEIR_MILLISECOND;
}

/* ---- looking ---- */

static void on_block(struct deferred *d, int error, const struct remote_answer *answer)
{
    d->error = error;
    if (error == 0 && (answer->answer.flags & WEIR_FLAG_BLOCKED) != 0) {
        uint64_t ns = answer->answer.retry_after_ns;
        d->answer.blocked_ms =
            ns == WEIR_FOREVER ? -1
                               : (int64_t)(ns / WEIR_MILLISECOND + (ns % WEIR_MILLISECOND != 0));
    }
    deferred_answered(d);
}

static void on_look(struct deferred *d, int error, const struct remote_answer *answer)
{
    const struct later_question *q = &d->later;
    const struct verb_later *v = d->data;
    d->error = error;
    if (error != 0) {
        deferred_answered(d);
        return;
    }
    answer_from_limit(&answer->answer, (struct weir_rules_value){q->limit, strlen(q->limit)},
                      &q->found, &d->answer);
    d->answer.blocked_ms = 0;
    if ((answer->answer.flags & WEIR_FLAG_BLOCKED) != 0) {
        struct later_call call = {.verb = REMOTE_PEEK, .now_ns = v->now_ns};
        later_ask_again(d, &call, on_block);
    } else {
        deferred_answered(d);
    }
}

/* ---- changing ---- */

static void on_change(struct deferred *d, int error, const struct remote_answer *answer)
{
    const struct verb_later *v = d->data;
    struct later_call look = {.verb = REMOTE_PEEK, .cost = 1, .now_ns = v->now_ns};
    (void)answer;
    if (error != 0) {
        d->error = error;
        deferred_answered(d);
        return;
    }
    verb_audit_tell(&v->audit);
    later_ask_again(d, &look, on_look);
}

/* ---- beginning ---- */

static void drop(struct deferred *d)
{
    free(d->data);
}

static int begin(struct later *later, struct weir_rules_value limit, const void *key,
                 size_t key_len, const struct weir_rules_found *found, struct verb_later *v,
                 const struct later_call *call, later_step_fn step, struct remote_answer *answer)
{
    int e =
        v != NULL ? later_ask(later, limit, key, key_len, found, call, step, answer) : WEIR_ENOMEM;
    if (e != ANSWER_LATER) {
        free(v);
        return e;
    }
    later->kept->data = v;
    later->kept->drop = drop;
    return e;
}

int verb_begin(const struct verb_call *call, const struct actor *by, const void *key,
               size_t key_len, const struct weir_rules_found *found, uint64_t now_ns,
               struct later *later)
{
    static const int verbs[VERBS] = {[VERB_REFUND] = REMOTE_REFUND,
                                     [VERB_PENALIZE] = REMOTE_PENALIZE,
                                     [VERB_BLOCK] = REMOTE_BLOCK,
                                     [VERB_UNBLOCK] = REMOTE_UNBLOCK,
                                     [VERB_RESET] = REMOTE_RESET};
    const struct verb_row *row = &verb_rows[call->verb];
    struct later_call asked = {.verb = verbs[call->verb],
                               .cost = row->units ? call->units : 0,
                               .time_ns = row->time ? verb_for_ns(call) : 0,
                               .now_ns = now_ns};
    struct verb_later *v = calloc(1, sizeof *v);
    struct remote_answer answer;
    if (v != NULL) {
        verb_audit_init(&v->audit, call, by);
        v->now_ns = now_ns;
    }
    int e = begin(later, call->key.limit, key, key_len, found, v, &asked, on_change, &answer);
    return e == 0 ? WEIR_EIO : e; /* only the store could have made the change */
}

/* An answer that is there at once was given without the store, and says nothing about blocks. */
int verb_look(const struct weir_rules_key *of, const void *key, size_t key_len,
              const struct weir_rules_found *found, uint64_t now_ns, struct later *later,
              struct answer *told)
{
    struct later_call asked = {.verb = REMOTE_PEEK, .cost = 1, .now_ns = now_ns};
    struct verb_later *v = calloc(1, sizeof *v);
    struct remote_answer answer;
    if (v != NULL) {
        v->now_ns = now_ns;
    }
    int e = begin(later, of->limit, key, key_len, found, v, &asked, on_look, &answer);
    if (e == 0) {
        answer_from_limit(&answer.answer, of->limit, found, told);
    }
    return e;
}
