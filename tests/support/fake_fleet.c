#include "support/fake_fleet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    assert_non_null(l);
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

static uint64_t charge_of(const struct remote_question *q, size_t i)
{
    return q->verb == REMOTE_CHECK ? q->parts[i].cost : 0;
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

static void fill(const struct fake_limit *l, size_t i, int verdict, struct weir_answer *a)
{
    *a = (struct weir_answer){.verdict = verdict,
                              .limit = (uint32_t)i,
                              .quota = l->spec.options.count,
                              .remaining = l->left,
                              .retry_after_ns = verdict == WEIR_ALLOW ? 0 : WEIR_SECOND};
}

/* Decides all or nothing, under the lock. Local parts come last, so that they are charged only if
 * everything else fits. */
static int decide(const struct remote_question *q, struct remote_answer *said)
{
    *said = (struct remote_answer){.answer = {.verdict = WEIR_ALLOW}};
    for (size_t i = 0; i < q->n; i++) {
        struct fake_limit *l = q->parts[i].limit;
        if (l != NULL && l->left < q->parts[i].cost) {
            fill(l, i, WEIR_DENY, &said->answer);
            l->counts.denied++;
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

static struct text own_text(struct text from)
{
    char *copy = from.at != NULL ? malloc(from.len + 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, from.at, from.len);
        copy[from.len] = 0;
    }
    return (struct text){copy, from.len};
}

static void tell(struct fake_fleet *f, const struct remote_question *q)
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
}

/* Copies what it needs (R2). */
static void put_out(struct fake_fleet *f, const struct remote_question *q, void *where,
                    remote_done_fn done, void *arg)
{
    struct fake_question *own = calloc(1, sizeof *own);
    assert_non_null(own);
    *own = (struct fake_question){.question = *q, .where = where, .done = done, .arg = arg};
    for (size_t i = 0; i < q->n; i++) {
        struct fake_limit *l = q->parts[i].limit;
        own->parts[i] = q->parts[i];
        own->parts[i].key = own_text(q->parts[i].key);
        own->parts[i].shard = own_text(q->parts[i].shard);
        if (l != NULL) {
            l->references++;
        }
    }
    own->question.parts = own->parts;
    struct fake_question **at = &f->out;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = own;
}

static int ask(struct weir_fleet *fleet, void *where, const struct remote_question *q,
               struct remote_answer *answer, remote_done_fn done, void *arg)
{
    struct fake_fleet *f = fake_from(fleet);
    (void)pthread_mutex_lock(&f->lock);
    int e = f->ask_error;
    tell(f, q);
    if (e == 0 && f->at_once) {
        e = decide(q, answer);
        e = e == 0 ? REMOTE_ANSWERED : e;
    } else if (e == 0) {
        put_out(f, q, where, done, arg);
        e = REMOTE_PENDING;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return e;
}

static void destroy(struct fake_question *q)
{
    for (size_t i = 0; i < q->question.n; i++) {
        free((char *)(uintptr_t)q->parts[i].key.at);
        free((char *)(uintptr_t)q->parts[i].shard.at);
        if (q->parts[i].limit != NULL) {
            release(q->parts[i].limit);
        }
    }
    free(q);
}

static struct fake_question *take(struct fake_fleet *f, bool newest)
{
    struct fake_question **at = &f->out;
    while (newest && *at != NULL && (*at)->next != NULL) {
        at = &(*at)->next;
    }
    struct fake_question *q = *at;
    *at = q != NULL ? q->next : NULL;
    return q;
}

static bool answer_one(struct fake_fleet *f, bool newest, int error)
{
    struct remote_answer said;
    (void)pthread_mutex_lock(&f->lock);
    struct fake_question *q = take(f, newest);
    int e = q != NULL && error == 0 ? decide(&q->question, &said) : error;
    (void)pthread_mutex_unlock(&f->lock);
    if (q == NULL) {
        return false;
    }
    q->done(q->arg, e, e == 0 ? &said : NULL);
    destroy(q);
    return true;
}

bool fake_answer(struct fake_fleet *f)
{
    return answer_one(f, false, 0);
}

bool fake_answer_newest(struct fake_fleet *f)
{
    return answer_one(f, true, 0);
}

bool fake_fail(struct fake_fleet *f, int error)
{
    return answer_one(f, false, error);
}

/* ---- the whole ---- */

static const struct remote_ops ops = {.open = open_limit,
                                      .hold = hold,
                                      .release = release,
                                      .change = change,
                                      .counts = counts,
                                      .ask = ask};

void fake_init(struct fake_fleet *f)
{
    memset(f, 0, sizeof *f);
    f->face.ops = &ops;
    (void)pthread_mutex_init(&f->lock, NULL);
}

void fake_finish(struct fake_fleet *f)
{
    assert_null(f->out);
    if (f->limits != NULL) {
        fail_msg("limit '%s' is still open", f->limits->name);
    }
    (void)pthread_mutex_destroy(&f->lock);
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
    unsigned n = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (const struct fake_question *q = f->out; q != NULL; q = q->next) {
        n++;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return n;
}
