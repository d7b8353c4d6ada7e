#include "support/rules/fake_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

static struct fake_fleet *fake_from(struct weir_fleet *fleet)
{
    return (struct fake_fleet *)(void *)fleet;
}

/* ---- limits ---- */

static int check_numbers(const struct fake_fleet *f, const struct weir_options *o,
                         struct weir_error *error)
{
    if (f->most == 0 || o->count <= f->most) {
        return 0;
    }
    if (error != NULL) {
        error->code = WEIR_ERATE;
        (void)snprintf(error->text, sizeof error->text, "found %llu, expected at most %llu",
                       (unsigned long long)o->count, (unsigned long long)f->most);
    }
    return WEIR_ERATE;
}

static int open_limit(struct weir_fleet *fleet, const struct remote_spec *spec, void **limit,
                      struct weir_error *error)
{
    struct fake_fleet *f = fake_from(fleet);
    int e = check_numbers(f, &spec->options, error);
    if (e != 0) {
        return e;
    }
    struct fake_limit *l = calloc(1, sizeof *l);
    threads_require(l != NULL);
    *l = (struct fake_limit){.fleet = f, .references = 1, .spec = *spec};
    (void)snprintf(l->name, sizeof l->name, "%.*s", TEXT_ARGS(spec->name));
    l->spec.name = text_of(l->name);
    l->left = spec->options.count;
    (void)pthread_mutex_lock(&f->lock);
    l->next = f->limits;
    f->limits = l;
    f->opened++;
    (void)pthread_mutex_unlock(&f->lock);
    *limit = l;
    return 0;
}

static void hold(void *limit)
{
    struct fake_limit *l = limit;
    (void)pthread_mutex_lock(&l->fleet->lock);
    l->references++;
    (void)pthread_mutex_unlock(&l->fleet->lock);
}

static void release(void *limit)
{
    struct fake_limit *l = limit;
    struct fake_fleet *f = l->fleet;
    (void)pthread_mutex_lock(&f->lock);
    bool last = --l->references == 0;
    for (struct fake_limit **at = &f->limits; last && *at != NULL; at = &(*at)->next) {
        if (*at == l) {
            *at = l->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&f->lock);
    if (last) {
        free(l);
    }
}

static int change(void *limit, const struct weir_options *options, struct weir_error *error)
{
    struct fake_limit *l = limit;
    int e = check_numbers(l->fleet, options, error);
    if (e != 0) {
        return e;
    }
    (void)pthread_mutex_lock(&l->fleet->lock);
    l->left += options->count - l->spec.options.count;
    l->spec.options = *options;
    l->changes++;
    (void)pthread_mutex_unlock(&l->fleet->lock);
    return 0;
}

static void counts(const void *limit, struct remote_counts *to)
{
    const struct fake_limit *l = limit;
    (void)pthread_mutex_lock(&l->fleet->lock);
    *to = l->counts;
    to->mode = l->spec.mode;
    (void)pthread_mutex_unlock(&l->fleet->lock);
}

/* ---- questions ---- */

/* What the fake keeps of a pending question, in the question's memory. */
struct fake_state {
    void *where;
    struct fake_plan plan; /* as it was when the question was asked */
};

static size_t bytes(size_t n)
{
    return sizeof(struct fake_state);
}

static struct fake_state *state_of(const struct remote_question *q)
{
    return q->memory;
}

static uint64_t charge_of(const struct remote_question *q, size_t i)
{
    return q->verb == REMOTE_CHECK ? q->parts[i].cost : 0;
}

static void fill(const struct fake_limit *l, size_t i, int verdict, struct weir_answer *a)
{
    *a = (struct weir_answer){.verdict = verdict,
                              .limit = (uint32_t)i,
                              .quota = l->spec.options.count,
                              .remaining = l->left,
                              .retry_after_ns = verdict == WEIR_ALLOW ? 0 : WEIR_SECOND};
}

/* Decides UP_TO and REFUND of one limit, under the lock. */
static void decide_amount(const struct remote_question *q, struct remote_answer *said)
{
    struct fake_limit *l = q->parts[0].limit;
    uint64_t cost = q->parts[0].cost;
    bool refund = q->verb == REMOTE_REFUND;
    uint64_t most = refund ? l->spec.options.count - l->left : l->left;
    uint64_t amount = cost < most ? cost : most;
    l->left = refund ? l->left + amount : l->left - amount;
    *said = (struct remote_answer){0};
    fill(l, 0, refund || amount > 0 ? WEIR_ALLOW : WEIR_DENY, &said->answer);
    said->answer.granted = amount;
}

/* Decides each local part on its own: enough for tests with one. */
static int decide_local(const struct remote_question *q, struct weir_answer *a)
{
    for (size_t i = 0; i < q->n; i++) {
        struct weir_answer own;
        if (q->parts[i].limit != NULL) {
            continue;
        }
        struct weir_question to = {.key = q->parts[i].key.at,
                                   .key_len = q->parts[i].key.len,
                                   .cost = q->parts[i].cost,
                                   .mode = q->verb == REMOTE_PEEK ? WEIR_PEEK : WEIR_CHECK};
        int e = weir_ask_at(q->parts[i].local, &to, q->now_ns, &own);
        if (e != 0) {
            return e;
        }
        if (own.verdict != WEIR_ALLOW) {
            *a = own;
            a->limit = (uint32_t)i;
        }
    }
    return 0;
}

/* Puts the part that clients may be told, after all parts were decided. */
static void put_shown(const struct remote_question *q, int verdict)
{
    for (size_t i = 0; q->shown != NULL && i < q->n; i++) {
        const struct fake_limit *l = q->parts[i].limit;
        struct weir_answer own;
        if (l == NULL || q->parts[i].hidden) {
            continue;
        }
        bool allows = verdict == WEIR_ALLOW || l->left >= q->parts[i].cost;
        fill(l, i, allows ? WEIR_ALLOW : WEIR_DENY, &own);
        if (own.verdict > q->shown->verdict ||
            (own.verdict == q->shown->verdict && own.remaining < q->shown->remaining)) {
            *q->shown = own;
        }
    }
}

/* Decides all or nothing, under the lock. Local parts come last, so that they are charged only if
 * everything else fits. */
static int decide_by_counts(const struct remote_question *q, struct remote_answer *said)
{
    if (q->verb == REMOTE_UP_TO || q->verb == REMOTE_REFUND) {
        decide_amount(q, said);
        return 0;
    }
    *said = (struct remote_answer){.answer = {.verdict = WEIR_ALLOW}};
    for (size_t i = 0; i < q->n; i++) {
        struct fake_limit *l = q->parts[i].limit;
        if (l != NULL && l->left < q->parts[i].cost) {
            fill(l, i, WEIR_DENY, &said->answer);
            l->counts.denied += !q->shadow;
            return 0;
        }
    }
    int e = decide_local(q, &said->answer);
    if (e != 0 || said->answer.verdict != WEIR_ALLOW) {
        return e;
    }
    bool first = true;
    for (size_t i = 0; i < q->n; i++) {
        struct fake_limit *l = q->parts[i].limit;
        if (l == NULL) {
            continue;
        }
        l->left -= charge_of(q, i);
        l->counts.allowed++;
        if (first || l->left < said->answer.remaining) {
            fill(l, i, WEIR_ALLOW, &said->answer);
            first = false;
        }
    }
    return 0;
}

static void decide_by_plan(const struct fake_plan *p, const struct remote_question *q,
                           struct remote_answer *said)
{
    uint64_t cost = q->parts[0].cost;
    *said = (struct remote_answer){.answer = {.verdict = p->verdict != 0 ? p->verdict : WEIR_ALLOW,
                                              .flags = p->flags,
                                              .quota = 1000000,
                                              .remaining = cost,
                                              .granted = cost,
                                              .retry_after_ns = p->retry_ns,
                                              .delay_ns = p->delay_ns},
                                   .stamp = 12345,
                                   .found = 1};
}

/* Decides under the lock. */
static int decide(const struct fake_plan *plan, const struct remote_question *q,
                  struct remote_answer *said)
{
    int e = plan->planned ? plan->error : decide_by_counts(q, said);
    if (!plan->planned && e == 0) {
        put_shown(q, said->answer.verdict);
    }
    if (plan->planned) {
        decide_by_plan(plan, q, said);
    }
    if (e == 0 && q->shadow && q->verb == REMOTE_CHECK && said->answer.verdict != WEIR_ALLOW) {
        ((struct fake_limit *)q->parts[0].limit)->counts.shadow_denied++;
    }
    return e;
}

static void put_in_log(struct fake_fleet *f, const struct remote_question *q)
{
    f->asked++;
    f->last = *q;
    memset(f->told, 0, sizeof f->told);
    for (size_t i = 0; i < q->n && i < sizeof f->told / sizeof f->told[0]; i++) {
        const struct remote_part *p = &q->parts[i];
        const struct fake_limit *l = p->limit;
        (void)snprintf(f->told[i], sizeof f->told[i], "%s %.*s %.*s %llu",
                       l != NULL ? l->name : "-", (int)p->shard.len,
                       p->shard.at != NULL ? p->shard.at : "", TEXT_ARGS(p->key),
                       (unsigned long long)p->cost);
    }
    if (f->logged < FAKE_LOG) {
        f->log[f->logged].verb = q->verb;
        f->log[f->logged].cost = q->parts[0].cost;
        f->log[f->logged].time_ns = q->time_ns;
        (void)snprintf(f->log[f->logged].key, sizeof f->log[0].key, "%.*s",
                       TEXT_ARGS(q->parts[0].key));
    }
    f->logged++;
}

static void put_out(struct fake_fleet *f, struct remote_question *q, void *where)
{
    *state_of(q) = (struct fake_state){where, f->plan};
    struct remote_question **at = &f->out;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = q;
    q->next = NULL;
    f->out_count++;
    f->out_most = f->out_count > f->out_most ? f->out_count : f->out_most;
}

static int ask(struct weir_fleet *fleet, void *where, struct remote_question *q,
               struct remote_answer *answer)
{
    struct fake_fleet *f = fake_from(fleet);
    (void)pthread_mutex_lock(&f->lock);
    int e = f->plan.allowed == 0 ? f->plan.refuse : 0;
    f->plan.allowed -= f->plan.allowed > 0;
    put_in_log(f, q);
    if (e == 0 && f->plan.at_once != 0 && f->asked % f->plan.at_once == 0) {
        e = decide(&f->plan, q, answer);
        e = e == 0 ? REMOTE_ANSWERED : e;
    } else if (e == 0) {
        put_out(f, q, where);
        e = REMOTE_PENDING;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return e;
}

/* ---- answers ---- */

/* Takes a question out of the list: the one with that number among those that were asked at `where`
 * (NULL: anywhere), or the last. */
static struct remote_question *take(struct fake_fleet *f, const void *where, uint64_t number)
{
    struct remote_question **found = NULL;
    for (struct remote_question **at = &f->out; *at != NULL; at = &(*at)->next) {
        if (where == NULL || state_of(*at)->where == where) {
            found = at;
            if (number-- == 0) {
                break;
            }
        }
    }
    struct remote_question *q = found != NULL ? *found : NULL;
    if (q != NULL) {
        *found = q->next;
        f->out_count--;
    }
    return q;
}

static uint64_t count_at(const struct fake_fleet *f, const void *where)
{
    uint64_t n = 0;
    for (const struct remote_question *q = f->out; q != NULL; q = q->next) {
        n += where == NULL || state_of(q)->where == where;
    }
    return n;
}

/* Answers a question that take() has found. */
static bool answer(struct fake_fleet *f, const void *where, uint64_t number, int error)
{
    struct remote_answer said;
    (void)pthread_mutex_lock(&f->lock);
    struct remote_question *q = take(f, where, number);
    int e = q != NULL && error == 0 ? decide(&state_of(q)->plan, q, &said) : error;
    (void)pthread_mutex_unlock(&f->lock);
    if (q != NULL) {
        q->done(q->arg, e, e == 0 ? &said : NULL);
    }
    return q != NULL;
}

bool fake_answer(struct fake_fleet *f)
{
    return answer(f, NULL, 0, 0);
}

bool fake_answer_newest(struct fake_fleet *f)
{
    return answer(f, NULL, UINT64_MAX, 0);
}

bool fake_fail(struct fake_fleet *f, int error)
{
    return answer(f, NULL, 0, error);
}

bool fake_answer_at(struct fake_fleet *f, const void *where)
{
    (void)pthread_mutex_lock(&f->lock);
    uint64_t n = count_at(f, where);
    uint64_t which = n > 0 ? threads_random(&f->random) % n : 0;
    (void)pthread_mutex_unlock(&f->lock);
    return n > 0 && answer(f, where, which, 0);
}

/* ---- the whole ---- */

static const struct remote_ops ops = {.open = open_limit,
                                      .hold = hold,
                                      .release = release,
                                      .change = change,
                                      .counts = counts,
                                      .bytes = bytes,
                                      .ask = ask};

void fake_init(struct fake_fleet *f)
{
    memset(f, 0, sizeof *f);
    f->face.ops = &ops;
    f->random = 1;
    (void)pthread_mutex_init(&f->lock, NULL);
}

void fake_finish(struct fake_fleet *f)
{
    threads_require(f->out == NULL);
    if (f->limits != NULL) {
        threads_fail(__FILE__, __LINE__, "a limit is still open");
    }
    (void)pthread_mutex_destroy(&f->lock);
}

void fake_set_plan(struct fake_fleet *f, struct fake_plan plan)
{
    (void)pthread_mutex_lock(&f->lock);
    f->plan = plan;
    (void)pthread_mutex_unlock(&f->lock);
}

struct fake_limit *fake_find(struct fake_fleet *f, const char *name)
{
    struct fake_limit *l = f->limits;
    while (l != NULL && strcmp(l->name, name) != 0) {
        l = l->next;
    }
    return l;
}

unsigned fake_out(struct fake_fleet *f)
{
    (void)pthread_mutex_lock(&f->lock);
    unsigned n = (unsigned)f->out_count;
    (void)pthread_mutex_unlock(&f->lock);
    return n;
}

const void *fake_where(struct fake_fleet *f)
{
    return state_of(f->out)->where;
}
