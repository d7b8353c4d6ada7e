/* The limits of a fleet: weir_fleet_limit_..., and the calls that ask and change them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/fleet.h"
#include "fleet/loop.h"

#define DENY_CACHE_NS WEIR_SECOND
#define DENY_CACHE_OFF 1
#define SYNC_NS (100 * WEIR_MILLISECOND)

struct weir_fleet_limit {
    struct weir_fleet *fleet;
    struct store_limit *store;
};

/* ---- opening ---- */

static int check_options(const struct weir_fleet_limit_options *o, struct weir_error *error)
{
    if (o == NULL) {
        return fail(error, WEIR_EINVAL, "the options are NULL");
    }
    if (o->size != sizeof *o) {
        return fail(error, WEIR_EINVAL,
                    "options.size is %zu, expected %zu: start with WEIR_FLEET_LIMIT_OPTIONS_INIT",
                    o->size, sizeof *o);
    }
    if (o->name == NULL || o->name[0] == 0) {
        return fail(error, WEIR_EINVAL, "the limit has no name, expected one");
    }
    return 0;
}

int weir_fleet_limit_open(struct weir_fleet_limit **limit, struct weir_fleet *fleet,
                          const struct weir_fleet_limit_options *options, struct weir_error *error)
{
    if (limit == NULL) {
        return fail(error, WEIR_EINVAL, "limit is NULL, expected the address of a pointer");
    }
    *limit = NULL;
    if (fleet == NULL) {
        return fail(error, WEIR_EINVAL, "fleet is NULL");
    }
    int e = check_options(options, error);
    if (e != 0) {
        return e;
    }
    const uint64_t deny_ns = options->deny_cache_ns;
    const struct remote_spec spec = {
        .name = text_of(options->name),
        .options = options->limit,
        .mode = options->consistency != 0 ? options->consistency : REMOTE_EXACT,
        .on_failure = options->on_store_failure,
        .deny_cache_ns = deny_ns == 0                ? DENY_CACHE_NS
                         : deny_ns == DENY_CACHE_OFF ? 0
                                                     : deny_ns,
        .sync_ns = options->sync_ns != 0 ? options->sync_ns : SYNC_NS,
    };
    struct weir_fleet_limit *l = malloc(sizeof *l);
    if (l == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for limit '%.100s'", options->name);
    }
    l->fleet = fleet;
    e = store_limit_open(fleet->shared, &spec, &l->store, error);
    if (e != 0) {
        free(l);
        return e;
    }
    *limit = l;
    return 0;
}

void weir_fleet_limit_close(struct weir_fleet_limit *limit)
{
    if (limit != NULL) {
        store_limit_release(limit->store);
        free(limit);
    }
}

int weir_fleet_limit_consistency(const struct weir_fleet_limit *limit)
{
    return limit != NULL ? store_limit_mode(limit->store) : WEIR_EINVAL;
}

/* ---- asking ---- */

/* A question of a public call that the loop has to answer. It holds the limit, which the caller may
 * close meanwhile. */
struct fleet_question {
    _Alignas(16) char memory[STORE_QUESTION_BYTES];
    struct remote_question question;
    struct remote_part part;
    weir_fleet_done_fn done; /* NULL: nobody wants the answer */
    void *arg;
    char key[];
};

static void on_answer(void *arg, int error, const struct remote_answer *answer)
{
    struct fleet_question *a = arg;
    weir_fleet_done_fn done = a->done;
    void *done_arg = a->arg;
    store_limit_release(a->part.limit);
    free(a);
    if (done != NULL) {
        done(done_arg, error, error == 0 ? &answer->answer : NULL);
    }
}

static struct fleet_question *create(const struct remote_question *q, weir_fleet_done_fn done,
                                     void *arg)
{
    const struct remote_part *part = &q->parts[0];
    struct fleet_question *a = malloc(sizeof *a + part->key.len);
    if (a != NULL) {
        memcpy(a->key, part->key.at, part->key.len);
        a->part = *part;
        a->part.key.at = a->key;
        a->done = done;
        a->arg = arg;
        a->question = *q;
        a->question.parts = &a->part;
        a->question.done = on_answer;
        a->question.arg = a;
        a->question.memory = a->memory;
    }
    return a;
}

/* Asks a question about one key. Returns REMOTE_ANSWERED, REMOTE_PENDING or WEIR_E... The limit is
 * held before another thread gets the question, but on the loop's own thread only if the answer
 * comes later: most answers of leases and counts do not. */
static int ask(struct weir_fleet_limit *limit, const struct remote_question *q,
               struct remote_answer *answer, weir_fleet_done_fn done, void *arg)
{
    if (q->parts[0].key.len > WEIR_KEY_MAX) {
        return WEIR_EKEY;
    }
    int e = fleet_loop_try(limit->fleet->loop, q, answer);
    if (e != REMOTE_PENDING) {
        return e;
    }
    bool here = fleet_loop_is_here(limit->fleet->loop);
    struct fleet_question *a = create(q, done, arg);
    if (a == NULL) {
        return WEIR_ENOMEM;
    }
    if (!here) {
        store_limit_hold(limit->store);
    }
    e = fleet_loop_send(limit->fleet->loop, &a->question, answer);
    if (e == REMOTE_PENDING) {
        if (here) {
            store_limit_hold(limit->store);
        }
        return e;
    }
    if (!here) {
        store_limit_release(limit->store);
    }
    free(a);
    return e;
}

static int check_question(const struct weir_question *q)
{
    bool waits = q->max_wait_ns != 0;
    if (q->hashed != NULL || (q->flags & ~WEIR_SHADOW) != 0 || q->mode < WEIR_CHECK ||
        q->mode > WEIR_UP_TO || (waits && q->mode == WEIR_UP_TO)) {
        return WEIR_EINVAL;
    }
    return q->key == NULL ? WEIR_EKEY : 0;
}

int weir_fleet_ask(struct weir_fleet_limit *limit, const struct weir_question *question,
                   struct weir_answer *answer, weir_fleet_done_fn done, void *arg)
{
    if (limit == NULL || question == NULL || answer == NULL || done == NULL) {
        return WEIR_EINVAL;
    }
    int e = check_question(question);
    if (e != 0) {
        return e;
    }
    const struct remote_part part = {
        .limit = limit->store, .key = {question->key, question->key_len}, .cost = question->cost};
    const struct remote_question q = {.verb = question->mode, /* both enums have the same order */
                                      .shadow = (question->flags & WEIR_SHADOW) != 0,
                                      .parts = &part,
                                      .n = 1,
                                      .time_ns = question->max_wait_ns};
    struct remote_answer got;
    e = ask(limit, &q, &got, done, arg);
    if (e == REMOTE_ANSWERED) {
        *answer = got.answer;
    }
    return e;
}

int weir_fleet_check(struct weir_fleet_limit *limit, const void *key, size_t key_len, uint64_t cost,
                     struct weir_answer *answer)
{
    if (limit == NULL || answer == NULL) {
        return WEIR_EINVAL;
    }
    const struct remote_part part = {.limit = limit->store, .key = {key, key_len}, .cost = cost};
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = &part, .n = 1};
    struct remote_answer got;
    int e = key != NULL ? fleet_loop_wait(limit->fleet->loop, &q, &got) : WEIR_EKEY;
    if (e != REMOTE_ANSWERED) {
        return e;
    }
    *answer = got.answer;
    return 0;
}

/* ---- other verbs ---- */

static int tell(struct weir_fleet_limit *limit, int verb, struct weir_text key, uint64_t units,
                uint64_t time_ns, weir_fleet_done_fn done, void *arg)
{
    struct remote_answer answer;
    if (limit == NULL) {
        return WEIR_EINVAL;
    }
    if (key.at == NULL) {
        return WEIR_EKEY;
    }
    const struct remote_part part = {.limit = limit->store, .key = key, .cost = units};
    const struct remote_question q = {.verb = verb, .parts = &part, .n = 1, .time_ns = time_ns};
    int e = ask(limit, &q, &answer, done, arg);
    if (e == REMOTE_ANSWERED && done != NULL) {
        done(arg, 0, &answer.answer);
    }
    return e == REMOTE_ANSWERED ? 0 : e;
}

int weir_fleet_refund(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                      uint64_t units, weir_fleet_done_fn done, void *arg)
{
    return tell(limit, REMOTE_REFUND, (struct weir_text){key, key_len}, units, 0, done, arg);
}

int weir_fleet_penalize(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                        uint64_t units, weir_fleet_done_fn done, void *arg)
{
    return tell(limit, REMOTE_PENALIZE, (struct weir_text){key, key_len}, units, 0, done, arg);
}

int weir_fleet_block(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                     uint64_t for_ns, weir_fleet_done_fn done, void *arg)
{
    if (for_ns == 0) {
        return WEIR_ETIME;
    }
    return tell(limit, REMOTE_BLOCK, (struct weir_text){key, key_len}, 1, for_ns, done, arg);
}

int weir_fleet_unblock(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                       weir_fleet_done_fn done, void *arg)
{
    return tell(limit, REMOTE_UNBLOCK, (struct weir_text){key, key_len}, 1, 0, done, arg);
}

int weir_fleet_reset(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                     weir_fleet_done_fn done, void *arg)
{
    return tell(limit, REMOTE_RESET, (struct weir_text){key, key_len}, 1, 0, done, arg);
}
