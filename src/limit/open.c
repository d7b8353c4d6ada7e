/* Making, opening and closing limiters. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "limit/plan.h"
#include "limit/shortcut.h"

/* One call of weir_open(). */
struct opening {
    struct weir *w;
    const struct weir_options *options;
    struct plan plan;
    struct weir_error *error;
};

/* ---- comparing a file with the plan ---- */

struct stored_number {
    const char *name;
    uint64_t has;
    uint64_t wanted;
};

static int compare(const struct stored_number *numbers, size_t n, struct weir_error *error)
{
    for (size_t i = 0; i < n; i++) {
        if (numbers[i].has != numbers[i].wanted) {
            return fail(error, WEIR_EMISMATCH, "the file has %s %" PRIu64 ", expected %" PRIu64,
                        numbers[i].name, numbers[i].has, numbers[i].wanted);
        }
    }
    return 0;
}

static int compare_fixed(const struct opening *o, const struct region_fixed *has)
{
    const struct region_fixed *want = &o->plan.fixed;
    if (algo_by_id(has->algorithm) == NULL) {
        return fail(o->error, WEIR_EDAMAGED, "the file has algorithm %d, which does not exist",
                    has->algorithm);
    }
    if (has->algorithm != want->algorithm) {
        return fail(o->error, WEIR_EMISMATCH, "the file has algorithm %s, expected %s",
                    weir_algorithm_name(has->algorithm), weir_algorithm_name(want->algorithm));
    }
    uint64_t keys = has->shape.max_keys;
    uint64_t wanted = want->shape.max_keys;
    /* With WEIR_MORE_KEYS, a table that is larger than the one that is asked for is kept. */
    bool more = (o->options->flags & WEIR_MORE_KEYS) != 0 && keys > wanted && keys / 8 <= wanted;
    const struct stored_number numbers[] = {
        {"hash", (uint64_t)has->hash, (uint64_t)want->hash},
        {"align", (uint64_t)has->align, (uint64_t)want->align},
        {"explicit time", has->explicit_time, want->explicit_time},
        {"period_ns", has->period_ns, want->period_ns},
        {"offset_ns", has->offset_ns, want->offset_ns},
        {"max_keys", more ? wanted : keys, wanted},
        {"max_blocks", min_u64(has->shape.max_blocks, want->shape.max_blocks),
         want->shape.max_blocks},
    };
    return compare(numbers, sizeof numbers / sizeof numbers[0], o->error);
}

/* Returns options.max_debt in words. */
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
    const struct stored_number numbers[] = {
        {"count", has->count, want->count},
        {"burst", has->burst, want->burst},
        {"queue", has->queue, want->queue},
        {"undelayed", has->undelayed, want->undelayed},
    };
    int e = compare(numbers, sizeof numbers / sizeof numbers[0], error);
    return e != 0 || has->debt_asked == want->debt_asked
               ? e
               : fail(error, WEIR_EMISMATCH, "the file has max_debt %s, expected %s",
                      debt_text(has->debt_asked, a), debt_text(want->debt_asked, b));
}

/* ---- time and parameters ---- */

/* Checks that words can express the caller's time: that of its clock, or `own_ns` without one. */
static int check_life(const struct opening *o, const struct algo_params *p, uint64_t own_ns)
{
    const struct weir_options *options = o->options;
    uint64_t now_ns = options->clock != NULL ? options->clock(options->clock_arg) : own_ns;
    if ((options->flags & WEIR_EXPLICIT_TIME) != 0 || limiter_knows(o->w, p, now_ns)) {
        return 0;
    }
    return fail(o->error, WEIR_ETIME,
                "the time line that began at %" PRId64 " ns has run out, or the clock is wrong; "
                "make a new limiter, or set the clock",
                o->w->epoch_ns);
}

/* Reads the parameters of the file. Returns whether they make a limit. */
static bool is_sound(const struct weir *w, struct algo_params *has)
{
    struct algo_layout layout = layout_of(w);
    struct algo_params again;
    int e;
    (void)params_read(w, has, &e);
    return e == 0 && has->spec.algorithm == w->head->fixed.algorithm &&
           w->table.record_bytes == algo_record_bytes(has) &&
           params_compile(w->ops, &has->spec, &layout, &again, NULL) == 0 &&
           again.spec.max_debt == has->spec.max_debt;
}

/*
 * Finds the parameters that the file will have when it is open: its own (then *same is true), or
 * with WEIR_CHANGE the caller's. Returns an error if it is damaged or has other ones. Changes
 * nothing.
 */
static int find_params(const struct opening *o, struct algo_params *next, bool *same)
{
    const struct limit_spec *want = &o->plan.params.spec;
    struct algo_layout layout = layout_of(o->w);
    *same = false;
    if (!is_sound(o->w, next)) {
        return fail(o->error, WEIR_EDAMAGED, "the file's parameters are damaged");
    }
    const struct stored_number on_full = {"on_full", (uint64_t)next->spec.on_full,
                                          (uint64_t)want->on_full};
    int e = compare(&on_full, 1, o->error);
    *same = compare_spec(&next->spec, want, NULL) == 0;
    if (e != 0 || *same) {
        return e;
    }
    return (o->options->flags & WEIR_CHANGE) != 0
               ? params_compile(o->w->ops, want, &layout, next, o->error)
               : compare_spec(&next->spec, want, o->error);
}

/* Takes over an existing region. Publishes last, so that a failed call has changed nothing. */
static int adopt(const struct opening *o)
{
    struct weir *w = o->w;
    struct algo_params next;
    bool same;
    lock_take(&w->head->change, w->region->owner);
    int e = find_params(o, &next, &same);
    /*
     * Not clock_now_ns(), whose branches depend on the time between two instructions: the tests
     * that step through weir_open() need the same instructions each time.
     */
    e = e != 0 ? e : check_life(o, &next, clock_boot_ns() + w->boot_to_unix_ns);
    if (e == 0 && !same) {
        spec_publish(w->head, &next.spec);
    }
    lock_release(&w->head->change);
    return e;
}

/* ---- the region ---- */

/*
 * Fills *debt with what the owner of a slot owes. Computes with the parameters with which the
 * public call began, so that it does not see others halfway.
 */
static void debt_of(const void *arg, uint64_t tag, uint64_t word, uint64_t *record, uint64_t now,
                    struct debt *debt)
{
    const struct weir *w = arg;
    struct algo_params copy;
    unsigned slot = thread_slot();
    const struct algo_params *p =
        slot < THREAD_OWN ? &w->threads[slot].params : params_renew(w, &copy);
    algo_owes(w->ops, p, (struct algo_state){word, record}, key_time(w, tag, now), debt);
}

static void attach(struct weir *w, struct region *r)
{
    w->head = r->head;
    w->epoch_ns = r->head->fixed.epoch_ns;
    table_attach(&w->table, &r->head->fixed.shape, r->body, &r->head->counts, r->owner, debt_of, w);
}

static int fill(const struct region_opening *r, struct region *region)
{
    const struct opening *o = r->arg;
    attach(o->w, region);
    spec_publish(region->head, &o->plan.params.spec);
    /* If the wall clock has not been set, time begins at the epoch; see region_anchor_now(). */
    return check_life(o, &o->plan.params, max_u64(clock_unix_ns(), (uint64_t)o->w->epoch_ns));
}

static int examine(const struct region_opening *r, struct region *region)
{
    const struct opening *o = r->arg;
    struct algo_params next;
    bool same;
    int e = compare_fixed(o, &region->head->fixed);
    attach(o->w, region);
    e = e != 0 ? e : find_params(o, &next, &same);
    /* The time by the system's clock is not known yet: the anchor may change. */
    return e != 0 || o->options->clock == NULL ? e : check_life(o, &next, 0);
}

static int recover(const struct region_opening *r, struct region *region,
                   const struct region_anchor *anchor)
{
    const struct opening *o = r->arg;
    struct algo_params has;
    int e;
    attach(o->w, region);
    if (anchor != NULL) {
        /* A wrong clock must not be anchored: the file would be refused until the next boot. */
        (void)params_read(o->w, &has, &e); /* examine() has seen it succeed */
        e = check_life(o, &has, anchor->unix_ns);
        if (e != 0) {
            return e;
        }
        table_recover(&o->w->table);
    }
    table_init_locks(&o->w->table);
    lock_init(&region->head->change);
    return 0;
}

/* Puts the path before the text of an error. A long path is cut. */
static void name_file(struct weir_error *error, const char *path)
{
    char text[sizeof error->text];
    if (error != NULL) {
        memcpy(text, error->text, sizeof text);
        int room = (int)(sizeof text - sizeof ": " - strnlen(text, 200));
        (void)snprintf(error->text, sizeof error->text, "%.*s: %.200s", room, path, text);
    }
}

void limiter_anchor(struct weir *w)
{
    const struct region_anchor *anchor = region_anchor(w->region);
    uint64_t offset_ns = (uint64_t)clock_boot_offset_ns();
    store_relaxed(&w->boot_to_unix_ns, anchor->unix_ns - anchor->boot_ns - offset_ns);
    store_relaxed(&w->adrift, w->clock == NULL && region_is_adrift(w->region));
}

/* Sets what the limiter takes from its region and from its options. */
static void set_up(struct weir *w, const struct weir_options *o)
{
    const struct region_fixed *f = &w->region->head->fixed;
    attach(w, w->region);
    w->explicit_time = f->explicit_time != 0;
    w->clock = o->clock;
    w->clock_arg = o->clock_arg;
    limiter_anchor(w);
    if (!w->explicit_time && w->clock == NULL) {
        clock_choose();
    }
    w->xxh3 = f->hash == WEIR_XXH3;
    w->align_key = f->align == WEIR_ALIGN_KEY;
    w->inlined =
        shortcut_has(w->ops->id) && w->table.record_bytes == 0 && f->period_ns != WEIR_MONTH;
    w->plain = w->inlined && !w->align_key;
    w->token_bucket = w->ops == &algo_token_bucket;
    w->generation = f->generation;
    w->secret = f->secret;
}

static int open_region(struct opening *o)
{
    const struct weir_options *options = o->options;
    struct region_opening r = {
        .fixed = &o->plan.fixed,
        .path = options->path,
        .shared = options->memory == WEIR_SHARED,
        .flags = options->flags,
        .error = o->error,
        .arg = o,
        .fill = fill,
        .examine = examine,
        .recover = recover,
    };
    bool file = options->memory == WEIR_FILE;
    int e = file ? region_open_file(&r, &o->w->region) : region_make_memory(&r, &o->w->region);
    if (e == 0) {
        set_up(o->w, options);
        e = r.made ? 0 : adopt(o);
    }
    if (e != 0 && file) {
        name_file(o->error, options->path);
    }
    return e;
}

/* ---- public ---- */

#define THREADS_BYTES (THREAD_SLOTS * sizeof(struct per_thread))

/* Allocates a limiter. Of the threads' places, only the pages that are used take memory. */
static struct weir *create(const struct algo_ops *ops)
{
    struct weir *w = aligned_alloc(64, (sizeof *w + 63) & ~(size_t)63);
    if (w != NULL) {
        memset(w, 0, sizeof *w);
        w->ops = ops;
        w->threads =
            mmap(NULL, THREADS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return w;
}

int weir_open(struct weir **out, const struct weir_options *options, struct weir_error *error)
{
    struct weir_options copy;
    struct opening o = {.options = &copy, .error = error};
    if (out == NULL) {
        return fail(error, WEIR_EINVAL, "the pointer for the limiter is NULL");
    }
    *out = NULL;
    int e = plan_make(options, &copy, &o.plan, error);
    if (e == 0 && pair_init() != 0) {
        e = fail(error, WEIR_ECPU, "%s", weir_strerror(WEIR_ECPU));
    }
    if (e != 0) {
        return e;
    }
    o.w = create(o.plan.ops);
    int state; /* a thread that is cancelled in here would leave a descriptor with its locks */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    e = o.w == NULL || o.w->threads == MAP_FAILED
            ? fail(error, WEIR_ENOMEM, "out of memory for the limiter itself")
            : open_region(&o);
    if (e != 0) {
        weir_close(o.w);
        o.w = NULL;
    }
    (void)pthread_setcancelstate(state, NULL);
    *out = o.w;
    return e;
}

void weir_close(struct weir *w)
{
    if (w == NULL) {
        return;
    }
    region_close(w->region);
    if (w->threads != MAP_FAILED) {
        (void)munmap(w->threads, THREADS_BYTES);
    }
    free(w);
}
