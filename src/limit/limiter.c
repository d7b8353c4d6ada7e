/* Making, opening and closing limiters. */
#include "limit/limiter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* No future version's options are larger; what is, is not a size. */
#define OPTIONS_SIZE_MOST 4096
#define MAX_KEYS_DEFAULT 100000
#define MAX_KEYS_MOST (UINT64_C(1) << 40)
#define PERIOD_LEAST WEIR_MICROSECOND
/* A limiter begins its time line a little in the past, for callers whose clocks lag. */
#define EPOCH_LEAD WEIR_DAY
#define KNOWN_FLAGS                                                                                \
    (WEIR_CHANGE | WEIR_MUST_EXIST | WEIR_EXPLICIT_TIME | WEIR_PREFAULT | WEIR_HUGE_PAGES)

/* All that weir_open() derives from the options before it touches anything. */
struct plan {
    const struct algo_ops *ops;
    struct algo_params params;
    struct region_fixed fixed;
};

/* ---- options ---- */

/* Copies what the caller's version of the struct has; the rest is zero, the default. */
static int read_options(const struct weir_options *given, struct weir_options *o,
                        struct weir_error *error)
{
    if (given == NULL) {
        return fail(error, WEIR_EINVAL, "the options are NULL");
    }
    size_t least = offsetof(struct weir_options, period_ns) + sizeof given->period_ns;
    if (given->size < least) {
        return fail(error, WEIR_EINVAL,
                    "options.size is %zu, expected sizeof(struct weir_options): start with "
                    "WEIR_OPTIONS_INIT",
                    given->size);
    }
    if (given->size > OPTIONS_SIZE_MOST) {
        return fail(error, WEIR_EINVAL, "options.size is %zu, expected sizeof(struct weir_options)",
                    given->size);
    }
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *o; i < given->size; i++) {
        if (bytes[i] != 0) {
            return fail(
                error, WEIR_EINVAL,
                "options.size is %zu and byte %zu is set, but this library knows %zu bytes: "
                "it is older than its header",
                given->size, i, sizeof *o);
        }
    }
    memset(o, 0, sizeof *o);
    memcpy(o, given, min_u64(given->size, sizeof *o));
    return 0;
}

struct range {
    const char *name;
    int value;
    int last;
};

static int check_enums(const struct weir_options *o, struct weir_error *error)
{
    const struct range ranges[] = {
        {"memory", o->memory, WEIR_FILE},
        {"on_full", o->on_full, WEIR_ALLOW_NEW},
        {"hash", o->hash, WEIR_XXH3},
        {"align", o->align, WEIR_ALIGN_KEY},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].value < 0 || ranges[i].value > ranges[i].last) {
            return fail(error, WEIR_EINVAL, "%s is %d, expected 0 to %d", ranges[i].name,
                        ranges[i].value, ranges[i].last);
        }
    }
    if ((o->flags & ~KNOWN_FLAGS) != 0) {
        return fail(error, WEIR_EINVAL, "flags has unknown bits 0x%x", o->flags & ~KNOWN_FLAGS);
    }
    return 0;
}

static int check_place(const struct weir_options *o, struct weir_error *error)
{
    bool file = o->memory == WEIR_FILE;
    if (file != (o->path != NULL)) {
        return fail(error, WEIR_EINVAL,
                    file ? "memory is WEIR_FILE but path is NULL"
                         : "path is set but memory is not WEIR_FILE");
    }
    if (file && o->path[0] == '\0') {
        return fail(error, WEIR_EINVAL, "path is empty");
    }
    if (!file && (o->flags & (WEIR_CHANGE | WEIR_MUST_EXIST)) != 0) {
        return fail(error, WEIR_EINVAL, "WEIR_CHANGE and WEIR_MUST_EXIST need memory WEIR_FILE");
    }
    if (file && (o->flags & (WEIR_PREFAULT | WEIR_HUGE_PAGES)) != 0) {
        return fail(error, WEIR_EINVAL,
                    "WEIR_PREFAULT and WEIR_HUGE_PAGES are for private and shared memory");
    }
    if ((o->flags & WEIR_EXPLICIT_TIME) != 0 && o->clock != NULL) {
        return fail(error, WEIR_EINVAL, "WEIR_EXPLICIT_TIME and a clock exclude each other");
    }
    return 0;
}

static int check_numbers(const struct weir_options *o, struct weir_error *error)
{
    if (o->count == 0) {
        return fail(error, WEIR_ERATE, "count is 0, expected at least 1");
    }
    if (o->period_ns < PERIOD_LEAST || o->period_ns > ALGO_LIFE_NS) {
        return fail(error, WEIR_ERATE,
                    "period_ns is %" PRIu64 ", expected %" PRIu64 " (1 us) to %" PRIu64
                    " (100 years)",
                    o->period_ns, PERIOD_LEAST, ALGO_LIFE_NS);
    }
    if (o->burst != 0 && o->algorithm != WEIR_TOKEN_BUCKET) {
        return fail(error, WEIR_EINVAL, "burst is for token_bucket only");
    }
    if (o->queue != 0 && o->algorithm != WEIR_LEAKY_BUCKET) {
        return fail(error, WEIR_EINVAL, "queue is for leaky_bucket only");
    }
    bool fixed = o->algorithm == WEIR_FIXED_WINDOW;
    if (!fixed && o->align != WEIR_ALIGN_CLOCK) {
        return fail(error, WEIR_EINVAL, "align is for fixed_window only");
    }
    if (o->offset_ns != 0 && !fixed && o->algorithm != WEIR_SLIDING_WINDOW) {
        return fail(error, WEIR_EINVAL, "offset_ns is for the window algorithms only");
    }
    if (o->offset_ns >= o->period_ns) {
        return fail(error, WEIR_EINVAL, "offset_ns is %" PRIu64 ", expected less than the period",
                    o->offset_ns);
    }
    if (o->max_keys > MAX_KEYS_MOST) {
        return fail(error, WEIR_EINVAL, "max_keys is %" PRIu64 ", expected at most %" PRIu64,
                    o->max_keys, MAX_KEYS_MOST);
    }
    return 0;
}

static struct limit_spec spec_of(const struct weir_options *o)
{
    bool defaulted = o->algorithm == WEIR_TOKEN_BUCKET && o->burst == 0;
    return (struct limit_spec){
        .algorithm = o->algorithm,
        .on_full = o->on_full,
        .count = o->count,
        .period_ns = o->period_ns,
        .burst = defaulted ? o->count : o->burst,
        .queue = o->queue,
        .debt_asked = o->max_debt,
    };
}

static int compile_plan(const struct weir_options *o, struct plan *plan, struct weir_error *error)
{
    struct limit_spec spec = spec_of(o);
    struct algo_layout layout = {0, 0, false};
    return params_compile(plan->ops, &spec, &layout, &plan->params, error);
}

/* The latest multiple of the period (plus offset) that is not after `start`. */
static int64_t align_epoch(const struct weir_options *o, int64_t start)
{
    if (o->algorithm != WEIR_FIXED_WINDOW && o->algorithm != WEIR_SLIDING_WINDOW) {
        return start;
    }
    int64_t period = (int64_t)o->period_ns;
    int64_t since = (start - (int64_t)o->offset_ns) % period;
    return start - (since < 0 ? since + period : since);
}

static int64_t choose_epoch(const struct weir_options *o)
{
    if ((o->flags & WEIR_EXPLICIT_TIME) != 0) {
        return align_epoch(o, 0);
    }
    uint64_t now = o->clock != NULL ? o->clock(o->clock_arg) : clock_unix_ns();
    return align_epoch(o, (int64_t)sub_floor0(min_u64(now, INT64_MAX), EPOCH_LEAD));
}

static int make_plan(const struct weir_options *o, struct plan *plan, struct weir_error *error)
{
    memset(plan, 0, sizeof *plan);
    plan->ops = algo_by_id(o->algorithm);
    if (plan->ops == NULL) {
        return fail(error, WEIR_EINVAL, "algorithm is %d, expected one of enum weir_algorithm",
                    o->algorithm);
    }
    int e = check_enums(o, error);
    e = e != 0 ? e : check_place(o, error);
    e = e != 0 ? e : check_numbers(o, error);
    e = e != 0 ? e : compile_plan(o, plan, error);
    if (e != 0) {
        return e;
    }
    struct region_fixed *f = &plan->fixed;
    uint64_t max_keys = o->max_keys != 0 ? o->max_keys : MAX_KEYS_DEFAULT;
    f->shape = table_shape(max_keys, algo_record_bytes(&plan->params));
    f->algorithm = o->algorithm;
    f->hash = o->hash;
    f->align = o->align;
    f->explicit_time = (o->flags & WEIR_EXPLICIT_TIME) != 0;
    f->shift = plan->params.shift;
    f->capacity = plan->params.capacity;
    f->period_ns = o->period_ns;
    f->offset_ns = o->offset_ns;
    f->epoch_ns = choose_epoch(o);
    return region_fixed_finish(f, error);
}

/* ---- files of others ---- */

static int mismatch(struct weir_error *error, const char *what, uint64_t has, uint64_t wanted)
{
    return fail(error, WEIR_EMISMATCH, "the file has %s %" PRIu64 ", expected %" PRIu64, what, has,
                wanted);
}

struct field {
    const char *name;
    uint64_t has;
    uint64_t wanted;
};

static int compare(const struct field *fields, size_t n, struct weir_error *error)
{
    for (size_t i = 0; i < n; i++) {
        if (fields[i].has != fields[i].wanted) {
            return mismatch(error, fields[i].name, fields[i].has, fields[i].wanted);
        }
    }
    return 0;
}

static int compare_fixed(const struct region_fixed *has, const struct region_fixed *want,
                         struct weir_error *error)
{
    const struct field fields[] = {
        {"algorithm", (uint64_t)has->algorithm, (uint64_t)want->algorithm},
        {"hash", (uint64_t)has->hash, (uint64_t)want->hash},
        {"align", (uint64_t)has->align, (uint64_t)want->align},
        {"explicit time", has->explicit_time, want->explicit_time},
        {"period_ns", has->period_ns, want->period_ns},
        {"offset_ns", has->offset_ns, want->offset_ns},
        {"max_keys", has->shape.max_keys, want->shape.max_keys},
    };
    return compare(fields, sizeof fields / sizeof fields[0], error);
}

static int compare_spec(const struct limit_spec *has, const struct limit_spec *want,
                        struct weir_error *error)
{
    const struct field fields[] = {
        {"count", has->count, want->count},
        {"burst", has->burst, want->burst},
        {"queue", has->queue, want->queue},
        {"max_debt", has->debt_asked, want->debt_asked},
    };
    return compare(fields, sizeof fields / sizeof fields[0], error);
}

/* What is in force must be what its own spec compiles to; else the header is damaged. */
static int check_params(const struct weir *w, const struct algo_params *has,
                        struct weir_error *error)
{
    const struct region_fixed *f = &w->head->fixed;
    struct algo_layout layout = {f->shift, f->capacity, true};
    struct algo_params again;
    if (has->spec.algorithm != f->algorithm || has->spec.period_ns != f->period_ns ||
        has->spec.count == 0 || params_compile(w->ops, &has->spec, &layout, &again, NULL) != 0 ||
        memcmp(&again, has, sizeof again) != 0) {
        return fail(error, WEIR_EDAMAGED, "the file's parameters are damaged");
    }
    return 0;
}

/* Is the file in itself sound, and the caller's? `has` is what it holds. */
static int examine_params(const struct weir *w, const struct plan *plan, unsigned flags,
                          struct algo_params *has, struct weir_error *error)
{
    const struct limit_spec *want = &plan->params.spec;
    (void)params_read(w->head, has);
    int e = check_params(w, has, error);
    if (e == 0 && has->spec.on_full != want->on_full) {
        e = mismatch(error, "on_full", (uint64_t)has->spec.on_full, (uint64_t)want->on_full);
    }
    if (e == 0 && (flags & WEIR_CHANGE) == 0) {
        e = compare_spec(&has->spec, want, error);
    }
    return e;
}

/* Under head->change: with WEIR_CHANGE, makes the caller's parameters those of the file. */
static int adopt_locked(struct weir *w, const struct plan *plan, unsigned flags,
                        struct weir_error *error)
{
    const struct region_fixed *f = &w->head->fixed;
    const struct limit_spec *want = &plan->params.spec;
    struct algo_params has;
    struct algo_params next;
    int e = examine_params(w, plan, flags, &has, error);
    if (e != 0 || compare_spec(&has.spec, want, NULL) == 0) {
        return e;
    }
    struct algo_layout layout = {f->shift, f->capacity, true};
    e = params_compile(w->ops, want, &layout, &next, error);
    if (e == 0) {
        params_publish(w->head, &next);
    }
    return e;
}

static int adopt(struct weir *w, const struct plan *plan, unsigned flags, struct weir_error *error)
{
    lock_take(&w->head->change);
    int e = adopt_locked(w, plan, flags, error);
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

static uint64_t fresh_in(const void *arg, uint64_t tag, uint64_t word, const uint64_t *record,
                         uint64_t now)
{
    const struct weir *w = arg;
    struct params_place place;
    if ((tag & TAG_BLOCK) != 0) {
        return sub_floor0(word, now);
    }
    return w->ops->fresh_in(params_here(w, &place), word, record, key_time(w, tag, now));
}

static void attach(struct weir *w, struct region *r)
{
    w->head = r->head;
    table_attach(&w->table, &r->head->fixed.shape, r->body, &r->head->counts, fresh_in, w);
}

static int init_locks(struct weir *w, struct weir_error *error)
{
    if (table_init_locks(&w->table) != 0) {
        return fail(error, WEIR_EIO, "cannot make robust locks");
    }
    return 0;
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
    params_publish(r->head, &o->plan->params);
    return init_locks(o->w, error);
}

static int examine(void *arg, struct region *r, struct weir_error *error)
{
    struct opening *o = arg;
    struct algo_params has;
    int e = compare_fixed(&r->head->fixed, &o->plan->fixed, error);
    attach(o->w, r);
    return e != 0 ? e : examine_params(o->w, o->plan, o->options->flags, &has, error);
}

static int out_of_time(const struct weir *w, struct weir_error *error)
{
    return fail(error, WEIR_ETIME,
                "the time line that began at %" PRId64 " ns has run out, or the clock is wrong; "
                "make a new limiter, or set the clock",
                w->head->fixed.epoch_ns);
}

/* A wrong clock must not be anchored: the file would be refused until the next boot. */
static int recover(void *arg, struct region *r, const struct region_anchor *anchor,
                   struct weir_error *error)
{
    struct opening *o = arg;
    struct algo_params has;
    attach(o->w, r);
    (void)params_read(r->head, &has);
    o->w->epoch_ns = r->head->fixed.epoch_ns;
    bool own_clock = r->head->fixed.explicit_time == 0 && o->options->clock == NULL;
    if (own_clock && !limiter_knows(o->w, &has, anchor->unix_ns)) {
        return out_of_time(o->w, error);
    }
    int e = init_locks(o->w, error);
    if (e == 0) {
        table_recover(&o->w->table);
    }
    return e;
}

static int open_region(struct weir *w, const struct weir_options *o, const struct plan *plan,
                       struct weir_error *error)
{
    struct opening arg = {w, plan, o};
    struct region_hooks hooks = {fill, examine, recover, &arg};
    bool made = true;
    int e;
    if (o->memory == WEIR_FILE) {
        e = region_open_file(&w->region, o->path, &plan->fixed, o->flags, &hooks, &made, error);
    } else {
        e = region_make_memory(&w->region, &plan->fixed, o->memory == WEIR_SHARED, o->flags, &hooks,
                               error);
    }
    if (e != 0) {
        return e;
    }
    attach(w, &w->region);
    return made ? 0 : adopt(w, plan, o->flags, error);
}

static void set_time(struct weir *w, const struct weir_options *o)
{
    const struct region_anchor *anchor = region_anchor(&w->region);
    w->epoch_ns = w->head->fixed.epoch_ns;
    w->explicit_time = w->head->fixed.explicit_time != 0;
    w->boot_to_unix_ns = (int64_t)(anchor->unix_ns - anchor->boot_ns);
    w->clock = o->clock;
    w->clock_arg = o->clock_arg;
}

static int check_life(const struct weir *w, struct weir_error *error)
{
    uint64_t now_ns;
    struct params_place place;
    if (w->explicit_time) {
        return 0;
    }
    if (limiter_now(w, &now_ns) != 0 || !limiter_knows(w, params_now(w, &place), now_ns)) {
        return out_of_time(w, error);
    }
    return 0;
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
    w->token_bucket = w->ops == &algo_token_bucket;
    w->plain = w->table.record_bytes == 0 && !w->xxh3 && !w->align_key;
    w->secret = w->head->fixed.secret;
    set_time(w, o);
    e = check_life(w, error);
    if (e == 0 && w->region.own && fork_watch(&w->watch, &w->table, &w->head->change) != 0) {
        e = fail(error, WEIR_ENOMEM, "cannot install the fork handler");
    }
    return e;
}

int weir_open(struct weir **out, const struct weir_options *options, struct weir_error *error)
{
    struct weir_options o;
    struct plan plan;
    if (out == NULL) {
        return fail(error, WEIR_EINVAL, "the limiter's place is NULL");
    }
    *out = NULL;
    int e = read_options(options, &o, error);
    e = e != 0 ? e : make_plan(&o, &plan, error);
    if (e == 0 && pair_init() != 0) {
        e = fail(error, WEIR_ECPU, "%s", weir_strerror(WEIR_ECPU));
    }
    if (e != 0) {
        return e;
    }
    struct weir *w = aligned_alloc(64, (sizeof *w + 63) & ~(size_t)63);
    struct per_thread *threads = aligned_alloc(64, THREAD_SLOTS * sizeof *threads);
    if (w == NULL || threads == NULL) {
        free(w);
        free(threads);
        return fail(error, WEIR_ENOMEM, "out of memory for the limiter itself");
    }
    memset(w, 0, sizeof *w);
    memset(threads, 0, THREAD_SLOTS * sizeof *threads);
    w->threads = threads;
    w->ops = plan.ops;
    w->region.fd = -1;
    e = open_parts(w, &o, &plan, error);
    if (e != 0) {
        weir_close(w);
        return e;
    }
    *out = w;
    return 0;
}

void weir_close(struct weir *w)
{
    if (w != NULL) {
        fork_unwatch(&w->watch);
        region_close(&w->region);
        free(w->threads);
        free(w);
    }
}

int weir_size(const struct weir_options *options, uint64_t *bytes, struct weir_error *error)
{
    struct weir_options o;
    struct plan plan;
    if (bytes == NULL) {
        return fail(error, WEIR_EINVAL, "the place for the size is NULL");
    }
    int e = read_options(options, &o, error);
    e = e != 0 ? e : make_plan(&o, &plan, error);
    if (e == 0) {
        *bytes = plan.fixed.total_bytes;
    }
    return e;
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
