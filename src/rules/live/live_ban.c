#include "rules/live/live_ban.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"
#include "rules/compiled/holder.h"
#include "rules/value/quantity.h"

/* ---- counting ---- */

/* Denials that are not due to what the key has used. */
#define NOT_COUNTED (WEIR_FLAG_BLOCKED | WEIR_FLAG_FULL | REMOTE_DEGRADED | REMOTE_CLOSED)

/* Counts one denial; true if it is the last one that the window allows (N1). */
static bool is_last(const struct denial *d)
{
    struct weir_question one = {.key = d->key.at, .key_len = d->key.len, .cost = 1};
    struct weir_answer said;
    return weir_ask_at(d->holder->denials, &one, d->now_ns, &said) == 0 &&
           said.verdict == WEIR_ALLOW && said.remaining == 0;
}

/* ---- the ban of a limit that a fleet decides ---- */

/* A ban on its way to the store. It holds the limit and the rules until the store has replied. */
struct sent_ban {
    struct weir_rules *rules;
    struct holder *holder;
    struct remote_part part;
    struct remote_question question;
    char texts[]; /* key and shard, then question.memory */
};

static void end_sent(struct sent_ban *sent, int error)
{
    struct weir_rules *rules = sent->rules;
    if (error != 0) {
        block_notes_drop(&sent->holder->notes, sent->part.key);
    }
    count_shared(error == 0 ? &sent->holder->bans : &sent->holder->bans_failed, 1);
    holder_release(sent->holder);
    free(sent);
    rules_release(rules);
}

static void on_sent(void *arg, int error, const struct remote_answer *said)
{
    (void)said;
    end_sent(arg, error);
}

static struct sent_ban *make_sent(const struct denial *d, const struct remote_ops *ops)
{
    const size_t align = _Alignof(max_align_t);
    size_t texts =
        (sizeof(struct sent_ban) + d->key.len + d->shard.len + align - 1) / align * align;
    struct sent_ban *sent = malloc(texts + ops->bytes(1));
    if (sent == NULL) {
        return NULL;
    }
    char *shard = sent->texts + d->key.len;
    memcpy(sent->texts, d->key.at, d->key.len);
    if (d->shard.at != NULL) {
        memcpy(shard, d->shard.at, d->shard.len);
    }
    sent->rules = d->rules;
    sent->holder = d->holder;
    sent->part = (struct remote_part){.limit = d->holder->remote,
                                      .key = {sent->texts, d->key.len},
                                      .shard = {d->shard.at != NULL ? shard : NULL, d->shard.len}};
    sent->question = (struct remote_question){.verb = REMOTE_BAN,
                                              .parts = &sent->part,
                                              .n = 1,
                                              .time_ns = d->holder->ban.for_ns,
                                              .now_ns = d->now_ns,
                                              .done = on_sent,
                                              .arg = sent,
                                              .memory = (char *)sent + texts};
    return sent;
}

/*
 * Sends the ban to the store. The reference to the rules, which end_sent() releases inside the gate
 * if the store answers at once, is not the last: the asker has one.
 */
static int send_ban(const struct denial *d)
{
    const struct remote_ops *ops = d->holder->ops;
    struct remote_answer said;
    bool many = load_relaxed(&d->rules->references) > WEIR_RULES_PENDING_MAX;
    struct sent_ban *sent = many ? NULL : make_sent(d, ops);
    if (sent == NULL) {
        count_shared(&d->holder->bans_failed, 1);
        return WEIR_ENOMEM;
    }
    holder_keep(d->holder);
    rules_keep(d->rules);
    int e = ops->ask(weir_rules_fleet(d->rules), d->where, &sent->question, &said);
    if (e != REMOTE_PENDING) {
        end_sent(sent, e == REMOTE_ANSWERED ? 0 : e);
    }
    return e < 0 ? e : 0;
}

/* ---- making ---- */

static int make_ban(const struct denial *d)
{
    struct holder *holder = d->holder;
    if (holder->remote != NULL) {
        return send_ban(d);
    }
    int e = weir_ban_at(holder->limiter, d->key.at, d->key.len,
                        add_sat(d->now_ns, holder->ban.for_ns), d->now_ns);
    count_shared(e == 0 ? &holder->bans : &holder->bans_failed, 1);
    return e;
}

/* Notes the ban, before it is made: a ban of the store may fail before this thread goes on. */
static void note_ban(const struct denial *d)
{
    char within[QUANTITY_MAX];
    const struct ban_config *ban = &d->holder->ban;
    struct block_note note = {.since_ns = d->now_ns,
                              .until_ns = add_sat(d->now_ns, ban->for_ns),
                              .ban = true,
                              .by = "ban"};
    (void)snprintf(note.why, sizeof note.why, "%llu denial%s within %s",
                   (unsigned long long)ban->denials, ban->denials == 1 ? "" : "s",
                   duration_print(ban->within_ns, within));
    block_notes_put(&d->holder->notes, d->key, &note);
}

/* Makes the answer to the last denial that of a banned key, so that its retry is true. */
static void tell_ban(uint64_t for_ns, struct weir_answer *answer)
{
    answer->flags |= WEIR_FLAG_BLOCKED | WEIR_FLAG_BANNED;
    answer->remaining = 0;
    answer->retry_after_ns = max_u64(answer->retry_after_ns, for_ns);
    answer->reset_after_ns = max_u64(answer->reset_after_ns, for_ns);
}

void ban_count(const struct denial *d, struct weir_answer *answer)
{
    if ((answer->flags & NOT_COUNTED) != 0 || !is_last(d)) {
        return;
    }
    note_ban(d);
    if (make_ban(d) == 0) {
        tell_ban(d->holder->ban.for_ns, answer);
    } else {
        block_notes_drop(&d->holder->notes, d->key);
    }
}
