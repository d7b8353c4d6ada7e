/* Making, opening and closing limiters. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "limit/plan.h"

/* ---- files of others ---- */

struct field {
    const char *name;
    uint64_t has;
    uint64_t wanted;
};

static int compare(const struct field *fields, size_t n, struct weir_error *error)
{
    for (size_t i = 0; i < n; i++) {
        if (fields[i].has != fields[i].wanted) {
            return fail(error, WEIR_EMISMATCH, "the file has %s %" PRIu64 ", expected %" PRIu64,
                        fields[i].name, fields[i].has, fields[i].wanted);
        }
    }
    return 0;
}

static int compare_fixed(const struct region_fixed *has, const struct region_fixed *want,
                         unsigned flags, struct weir_error *error)
{
    if (algo_by_id(has->algorithm) == NULL) {
        return fail(error, WEIR_EDAMAGED, "the file has algorithm %d, which there is not",
                    has->algorithm);
    }
    if (has->algorithm != want->algorithm) {
        return fail(error, WEIR_EMISMATCH, "the file has algorithm %s, expected %s",
                    weir_algorithm_name(has->algorithm), weir_algorithm_name(want->algorithm));
    }
    uint64_t keys = has->shape.max_keys;
    uint64_t wanted = want->shape.max_keys;
    /* A table that has outgrown what is asked for need not be given up. */
    bool grown = (flags & WEIR_MORE_KEYS) != 0 && keys > wanted && keys / 8 <= wanted;
    const struct field fields[] = {
        {"hash", (uint64_t)has->hash, (uint64_t)want->hash},
        {"align", (uint64_t)has->align, (uint64_t)want->align},
        {"explicit time", has->explicit_time, want->explicit_time},
        {"period_ns", has->period_ns, want->period_ns},
        {"offset_ns", has->offset_ns, want->offset_ns},
        {"max_keys", grown ? wanted : keys, wanted},
        {"max_blocks", min_u64(has->shape.max_blocks, want->shape.max_blocks),
         want->shape.max_blocks},
    };
    return compare(fields, sizeof fields / sizeof fields[0], error);
}

/* options.max_debt in words. */
static const char *debt_text(uint64_t debt, char text[24])
{
    (void)snprintf(text, 24, "%" PRIu64, debt);
    return debt == 0 ? "as much as its quota" : debt == WEIR_NO_DEBT ? "none" : text;
}

static int compare_spec(const struct limit_spec *has, const struct limit_spec *want,
                        struct weir_error *error)
{
    char a[24];
    char b[24];
    const struct field fields[] = {
        {"count", has->count, want->count},
        {"burst", has->burst, want->burst},
        {"queue", has->queue, want->queue},
    };
    int e = compare(fields, sizeof fields / sizeof fields[0], error);
    return e != 0 || has->debt_asked == want->debt_asked
               ? e
               : fail(error, WEIR_EMISMATCH, "the file has max_debt %s, expected %s",
                      debt_text(has->debt_asked, a), debt_text(want->debt_asked, b));
}

/* ---- time ---- */

/* Can words computed by *p express the caller's time, which is `own_ns` unless it has a clock of its own? */
static int check_life(const struct weir *w, const struct weir_options *o,
                      const struct algo_params *p, uint64_t own_ns, struct weir_error *error)
{
    uint64_t now_ns = o->clock != NULL ? o->clock(o->clock_arg) : own_ns;
    if ((o->flags & WEIR_EXPLICIT_TIME) != 0 || limiter_knows(w, p, now_ns)) {
        return 0;
    }
    return fail(error, WEIR_ETIME,
                "the time line that began at %" PRId64 " ns has run out, or the clock is wrong; "
                "make a new limiter, or set the clock",
                w->epoch_ns);
}

/* ---- parameters ---- */

/* Is what the file holds a limit that can be? */
static bool is_sound(const struct weir *w, struct algo_params *has)
{
    const struct region_fixed *f = &w->head->fixed;
    struct algo_layout layout = {f->shift, f->capacity, true};
    struct algo_params again;
    int e;
    (void)params_read(w, has, &e);
    return e == 0 && has->spec.algorithm == f->algorithm &&
           f->shape.record_bytes == algo_record_bytes(has) &&
           params_compile(w->ops, &has->spec, &layout, &again, NULL) == 0 &&
           again.spec.max_debt == has->spec.max_debt;
}

/*
 * Finds the parameters that the file will have when it is open: its own, or with WEIR_CHANGE the
 * caller's. *same: they are its own. An error if it is damaged or not the caller's. Changes
 * nothing.
 */
static int find_params(const struct weir *w, const struct plan *plan, const struct weir_options *o,
                       struct algo_params *next, bool *same, struct weir_error *error)
{
    const struct region_fixed *f = &w->head->fixed;
    const struct limit_spec *want = &plan->params.spec;
    struct algo_layout layout = {f->shift, f->capacity, true};
    *same = false;
    if (!is_sound(w, next)) {
        return fail(error, WEIR_EDAMAGED, "the file's parameters are damaged");
    }
    const struct field on_full = {"on_full", (uint64_t)next->spec.on_full, (uint64_t)want->on_full};
    int e = compare(&on_full, 1, error);
    *same = e == 0 && compare_spec(&next->spec, want, NULL) == 0;
    if (e != 0 || *same) {
        return e;
    }
    return (o->flags & WEIR_CHANGE) != 0 ? params_compile(w->ops, want, &layout, next, error)
                                         : compare_spec(&next->spec, want, error);
}

/* Under head->change. Publishes last: a failed call has changed nothing. */
static int adopt_locked(struct weir *w, const struct plan *plan, const struct weir_options *o,
                        struct weir_error *error)
{
    struct algo_params next;
    bool same;
    /*
     * Not clock_now_ns(), whose branches depend on the time between two instructions: the tests
     * that step through weir_open() need the same instructions each time.
     */
    uint64_t now_ns = clock_boot_ns() + w->boot_to_unix_ns;
    int e = find_params(w, plan, o, &next, &same, error);
    e = e != 0 ? e : check_life(w, o, &next, now_ns, error);
    if (e == 0 && !same) {
        spec_publish(w->head, &next.spec);
    }
    return e;
}

static int adopt(struct weir *w, const struct plan *plan, const struct weir_options *o,
                 struct weir_error *error)
{
    lock_take(&w->head->change, w->region->owner);
    int e = adopt_locked(w, plan, o, error);
    lock_release(&w->head->change);
    return e;
}

/* ---- opening ---- */

/* The parameters that the public call around us began with; it must not see others half-way. */
static const struct algo_params *params_here(const struct weir *w, struct params_place *place)
{
    unsigned slot = thread_slot();
    return slot < THREAD_OWN ? &w->threads[slot].params : params_renew(w, place);
}

/* Fills *debt with what a slot's owner owes. */
static void debt_of(const void *arg, uint64_t tag, uint64_t word, const uint64_t *record,
                    uint64_t now, struct debt *debt)
{
    const struct weir *w = arg;
    struct params_place place;
    algo_owes(w->ops, params_here(w, &place), word, record, key_time(w, tag, now), debt);
}

static void attach(struct weir *w, struct region *r)
{
    w->head = r->head;
    w->epoch_ns = r->head->fixed.epoch_ns;
    table_attach(&w->table, &r->head->fixed.shape, r->body, &r->head->counts, r->owner, debt_of, w);
}

/* What the hooks know. */
struct opening {
    struct weir *w;
    const struct plan *plan;
    const struct weir_options *options;
};

static int fill(void *arg, struct region *r, struct weir_error *error)
{
    struct opening *o = arg;
    attach(o->w, r);
    spec_publish(r->head, &o->plan->params.spec);
    /* Where the wall clock has not been set, time begins at the epoch: region_anchor_now(). */
    uint64_t now_ns = max_u64(clock_unix_ns(), (uint64_t)o->w->epoch_ns);
    return check_life(o->w, o->options, &o->plan->params, now_ns, error);
}

static int examine(void *arg, struct region *r, struct weir_error *error)
{
    struct opening *o = arg;
    struct algo_params next;
    bool same;
    int e = compare_fixed(&r->head->fixed, &o->plan->fixed, o->options->flags, error);
    attach(o->w, r);
    e = e != 0 ? e : find_params(o->w, o->plan, o->options, &next, &same, error);
    /* Of the system's clock the anchor is not known yet. */
    return e != 0 || o->options->clock == NULL ? e : check_life(o->w, o->options, &next, 0, error);
}

/* A wrong clock must not be anchored: the file would be refused until the next boot. */
static int recover(void *arg, struct region *r, const struct region_anchor *anchor,
                   struct weir_error *error)
{
    struct opening *o = arg;
    struct algo_params has;
    int e;
    attach(o->w, r);
    (void)params_read(o->w, &has, &e); /* examined already */
    e = check_life(o->w, o->options, &has, anchor->unix_ns, error);
    if (e == 0) {
        table_init_locks(&o->w->table);
        lock_init(&r->head->change);
        table_recover(&o->w->table);
    }
    return e;
}

/* The hooks know no path: says it before what they said. */
static void name_file(struct weir_error *error, const char *path, int code)
{
    char text[sizeof error->text];
    size_t n = strlen(path);
    if (error != NULL && code != 0 && strncmp(error->text, path, n) != 0) {
        memcpy(text, error->text, sizeof text);
        (void)snprintf(error->text, sizeof error->text, "%.120s: %.120s", path, text);
    }
}

void limiter_anchor(struct weir *w)
{
    const struct region_anchor *anchor = region_anchor(w->region);
    uint64_t offset_ns = (uint64_t)clock_boot_offset_ns();
    store_relaxed(&w->boot_to_unix_ns, anchor->unix_ns - anchor->boot_ns - offset_ns);
    store_relaxed(&w->adrift, w->clock == NULL && region_is_adrift(w->region));
}

static void set_time(struct weir *w, const struct weir_options *o)
{
    w->explicit_time = w->head->fixed.explicit_time != 0;
    w->clock = o->clock;
    w->clock_arg = o->clock_arg;
    limiter_anchor(w);
    if (!w->explicit_time && w->clock == NULL) {
        clock_choose();
    }
}

static int open_region(struct weir *w, const struct weir_options *o, const struct plan *plan,
                       struct weir_error *error)
{
    struct opening arg = {w, plan, o};
    struct region_hooks hooks = {fill, examine, recover, &arg, (o->flags & WEIR_RECOVER) != 0};
    bool made = true;
    int e;
    if (o->memory == WEIR_FILE) {
        e = region_open_file(&w->region, o->path, &plan->fixed, o->flags, &hooks, &made, error);
    } else {
        e = region_make_memory(&w->region, &plan->fixed, o->memory == WEIR_SHARED, o->flags, &hooks,
                               error);
    }
    if (e == 0) {
        attach(w, w->region);
        set_time(w, o);
        e = made ? 0 : adopt(w, plan, o, error);
    }
    if (o->memory == WEIR_FILE) {
        name_file(error, o->path, e);
    }
    return e;
}

static int open_parts(struct weir *w, const struct weir_options *o, const struct plan *plan,
                      struct weir_error *error)
{
    int e = open_region(w, o, plan, error);
    if (e != 0) {
        return e;
    }
    w->xxh3 = w->head->fixed.hash == WEIR_XXH3;
    w->align_key = w->head->fixed.align == WEIR_ALIGN_KEY;
    w->plain = w->table.record_bytes == 0 && !w->align_key;
    w->token_bucket = w->ops == &algo_token_bucket;
    w->generation = w->head->fixed.generation;
    w->secret = w->head->fixed.secret;
    return 0;
}

#define THREADS_BYTES (THREAD_SLOTS * sizeof(struct per_thread))

/* Of its own mapping, of which only the pages of threads that come are ever touched. */
static struct per_thread *threads_create(void)
{
    void *p = mmap(NULL, THREADS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void threads_destroy(struct per_thread *threads)
{
    if (threads != NULL) {
        (void)munmap(threads, THREADS_BYTES);
    }
}

int weir_open(struct weir **out, const struct weir_options *options, struct weir_error *error)
{
    struct weir_options o;
    struct plan plan;
    if (out == NULL) {
        return fail(error, WEIR_EINVAL, "the limiter's place is NULL");
    }
    *out = NULL;
    int e = plan_make(options, &o, &plan, error);
    if (e == 0 && pair_init() != 0) {
        e = fail(error, WEIR_ECPU, "%s", weir_strerror(WEIR_ECPU));
    }
    if (e != 0) {
        return e;
    }
    struct weir *w = aligned_alloc(64, (sizeof *w + 63) & ~(size_t)63);
    struct per_thread *threads = threads_create();
    if (w == NULL || threads == NULL) {
        free(w);
        threads_destroy(threads);
        return fail(error, WEIR_ENOMEM, "out of memory for the limiter itself");
    }
    memset(w, 0, sizeof *w);
    w->threads = threads;
    w->ops = plan.ops;
    int state; /* a thread that was cancelled in here would leave a descriptor with its locks */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    e = open_parts(w, &o, &plan, error);
    if (e != 0) {
        weir_close(w);
        w = NULL;
    }
    (void)pthread_setcancelstate(state, NULL);
    *out = w;
    return e;
}

void weir_close(struct weir *w)
{
    if (w != NULL) {
        region_close(w->region);
        threads_destroy(w->threads);
        free(w);
    }
}

const char *weir_algorithm_name(int algorithm)
{
    const struct algo_ops *ops = algo_by_id(algorithm);
    return ops != NULL ? ops->name : NULL;
}

int weir_algorithm_by_name(const char *name)
{
    const struct algo_ops *ops = name != NULL ? algo_by_name(name) : NULL;
    return ops != NULL ? ops->id : 0;
}
