/*
 * One limit, found by its name, and one key of it. It is asked in the same way whether it is
 * decided here or by a fleet's store: key_ask() asks, and when the answer is there, at once or
 * later, `step` is called with it. `step` fills the answer, or asks once more.
 *
 *     static int on_checked(struct key_ask *k, int error, const struct remote_answer *said) {
 *         if (error == 0) { key_answer(k, &said->answer); }
 *         return error;
 *     }
 *     static int begin(struct key_ask *k) {
 *         return key_ask(k, REMOTE_CHECK, 1, 0, on_checked);
 *     }
 *     e = key_begin(asker, &key, begin, NULL, 0, &answer, &error); // 0, ANSWER_LATER or WEIR_E...
 *
 * If the limit is decided here, all of this happens within key_begin(), inside the gate of the
 * rules, on the stack. If a fleet decides it, the struct key_ask and what it points to are in the
 * thread's spare struct pending, which keeps them and the limit until the last answer has come.
 */
#ifndef WEIR_SERVER_OPERATIONS_KEY_ASK_H
#define WEIR_SERVER_OPERATIONS_KEY_ASK_H

#include "rules/live/live.h"
#include "server/operations/answer.h"

struct key_ask;

/* Called with the answer: `error` is 0, or WEIR_E... without an answer. Returns 0 (k->answer is
 * complete), WEIR_E..., or what key_ask() returned. */
typedef int (*key_step_fn)(struct key_ask *k, int error, const struct remote_answer *said);
typedef int (*key_begin_fn)(struct key_ask *k);

struct key_ask {
    struct weir_text limit; /* its name */
    struct rules_found found;
    struct weir *limiter; /* decides it; NULL: a fleet does */
    struct weir_text key;
    struct remote_rate rate; /* of questions to a fleet; burst 0: none */
    uint64_t now_ns;
    struct pending *pending; /* NULL: decided here */
    bool waited;             /* an answer has come later */
    const void *data;        /* of the operation */
    struct answer *answer;
    int verb;     /* of the last question */
    bool removed; /* there was something that a reset or an unblock has removed */
    key_step_fn step;
    struct remote_part part; /* of the last question to a fleet */
    struct remote_question question;
};

/*
 * Finds the limit, composes the key and calls `begin`. `data` is copied if it must outlive this
 * call. Returns what `begin` returned, or WEIR_E... with the reason. After ANSWER_LATER,
 * asker->pending will get the answer. key_begin_any() also finds the built-in limit, whose
 * found.told.limit is NULL.
 */
int key_begin(struct asker *asker, const struct weir_rules_key *key, key_begin_fn begin,
              const void *data, size_t data_bytes, struct answer *answer, struct weir_error *error);
int key_begin_any(struct asker *asker, const struct weir_rules_key *key, key_begin_fn begin,
                  const void *data, size_t data_bytes, struct answer *answer,
                  struct weir_error *error);

/* A key of a limit that a fleet decides, remembered for later questions; `found.told.limit` is kept
 * by whoever remembers it. */
struct key_memory {
    struct weir_text limit;
    struct rules_found found;
    struct weir_text key;
};

/* As key_begin() for such a key. */
int key_begin_again(struct asker *asker, const struct key_memory *of, key_begin_fn begin,
                    const void *data, size_t data_bytes, struct answer *answer);

/*
 * Asks one question (enum remote_verb, with `time_ns` as in struct remote_question), and calls
 * `step` with the answer if it is there. Returns what `step` returned, or ANSWER_LATER.
 */
int key_ask(struct key_ask *k, int verb, uint64_t cost, uint64_t time_ns, key_step_fn step);

/* Sets k->answer to what the limit has said. */
void key_answer(const struct key_ask *k, const struct weir_answer *said);
/* After that, unless it was a peek: notes a denial, for the limit's ban, for the keys that are
 * denied most and for the log. */
void key_note(const struct key_ask *k, const struct weir_answer *said);

/* Returns the flags of a question: the limit in shadow mode counts its denials apart. */
static inline unsigned key_flags(const struct key_ask *k)
{
    return k->found.told.shadow ? WEIR_SHADOW : 0;
}

/* Forgets the denials of the key that the limit's ban has counted on this node. */
void key_forget_denials(const struct key_ask *k, struct weir_rules *rules);

/*
 * Sets *cost to that of a question: what was given or, if that is 0, the limit's own cost, or 1.
 * Refuses to charge 1 for a limit whose cost is an attribute, because a question about a key has no
 * attributes: WEIR_EINVAL. Called by a key_begin_fn.
 */
int key_cost(const struct key_ask *k, uint64_t given, uint64_t *cost, struct weir_error *error);

/* Returns how many parts the key of a limit has, also of the built-in one; or WEIR_ENOLIMIT. */
int key_parts(struct server *server, struct weir_text limit);

#endif
