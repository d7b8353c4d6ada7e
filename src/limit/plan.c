#include "limit/plan.h"

#include <string.h>

#include "base/error.h"

/* No future version of the options will be larger: a larger size is an error. */
#define OPTIONS_SIZE_MOST 4096
#define MAX_KEYS_DEFAULT 100000
#define MAX_KEYS_MOST (UINT64_C(1) << 40)
/* A default max_blocks adds a quarter of a byte to each key. */
#define KEYS_PER_BLOCK 128
#define MAX_BLOCKS_LEAST 64
#define PERIOD_LEAST WEIR_MICROSECOND
/* The time line of a limiter begins in the past, for callers whose clocks lag. */
#define EPOCH_LEAD WEIR_DAY
#define FILE_FLAGS (WEIR_CHANGE | WEIR_MUST_EXIST | WEIR_RECOVER | WEIR_MORE_KEYS)
#define KNOWN_FLAGS (FILE_FLAGS | WEIR_EXPLICIT_TIME | WEIR_PREFAULT | WEIR_HUGE_PAGES)

/* Copies the fields that the caller's version of the struct has. The rest is 0, the default. */
static int read_options(const struct weir_options *given, struct weir_options *o,
                        struct weir_error *error)
{
    memset(o, 0, sizeof *o);
    if (given == NULL) {
        return fail(error, WEIR_EINVAL, "the options are NULL");
    }
    size_t least = offsetof(struct weir_options, period_ns) + sizeof given->period_ns;
    if (given->size < least || given->size > OPTIONS_SIZE_MOST) {
        return fail(error, WEIR_EINVAL,
                    "options.size is %zu, expected sizeof(struct weir_options): start with "
                    "WEIR_OPTIONS_INIT",
                    given->size);
    }
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *o; i < given->size; i++) {
        if (bytes[i] != 0) {
            return fail(
                error, WEIR_EINVAL,
                "options.size is %zu and byte %zu is set, but this library is older than its "
                "header and knows %zu bytes",
                given->size, i, sizeof *o);
        }
    }
    memcpy(o, given, min_u64(given->size, sizeof *o));
    return 0;
}

static int check_enums(const struct weir_options *o, struct weir_error *error)
{
    if (algo_by_id(o->algorithm) == NULL) {
        return fail(error, WEIR_EINVAL, "algorithm is %d, expected one of enum weir_algorithm",
                    o->algorithm);
    }
    const struct {
        const char *name;
        int value;
        int last;
    } ranges[] = {
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
    if (o->hash == WEIR_XXH3 && !hash_has_xxh3) {
        return fail(error, WEIR_ENOTSUP,
                    "hash is WEIR_XXH3, but this library was built without xxhash.h: use "
                    "WEIR_SIPHASH, or build it with that header");
    }
    if ((o->flags & ~KNOWN_FLAGS) != 0) {
        return fail(error, WEIR_EINVAL, "flags has unknown bits 0x%x", o->flags & ~KNOWN_FLAGS);
    }
    return 0;
}

static bool has(const struct weir_options *o, unsigned traits)
{
    return algorithm_has(o->algorithm, traits);
}

/* Checks that the algorithm has the options that are set. */
static int check_traits(const struct weir_options *o, struct weir_error *error)
{
    const struct {
        const char *option;
        bool set;
        unsigned traits;
    } rules[] = {
        {"burst", o->burst != 0, HAS_BURST},
        {"queue", o->queue != 0, HAS_QUEUE},
        {"align", o->align != WEIR_ALIGN_CLOCK, IS_FIXED_WINDOW},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].set && !has(o, rules[i].traits)) {
            char names[ALGORITHM_LIST_MAX];
            return fail(error, WEIR_EINVAL, "%s is for %s only", rules[i].option,
                        algorithm_list(rules[i].traits, names));
        }
    }
    return 0;
}

/* Checks which options exclude each other. */
static int check_sense(const struct weir_options *o, struct weir_error *error)
{
    bool file = o->memory == WEIR_FILE;
    bool fixed = has(o, IS_FIXED_WINDOW);
    const struct {
        bool broken;
        const char *text;
    } rules[] = {
        {file && o->path == NULL, "memory is WEIR_FILE but path is NULL"},
        {!file && o->path != NULL, "path is set but memory is not WEIR_FILE"},
        {o->path != NULL && o->path[0] == '\0', "path is empty"},
        {!file && (o->flags & FILE_FLAGS) != 0,
         "WEIR_CHANGE, WEIR_MUST_EXIST, WEIR_RECOVER and WEIR_MORE_KEYS need memory WEIR_FILE"},
        {file && (o->flags & (WEIR_PREFAULT | WEIR_HUGE_PAGES)) != 0,
         "WEIR_PREFAULT and WEIR_HUGE_PAGES are for private and shared memory"},
        {(o->flags & WEIR_EXPLICIT_TIME) != 0 && o->clock != NULL,
         "WEIR_EXPLICIT_TIME and a clock exclude each other"},
        {o->undelayed > o->queue, "undelayed is more than queue, expected at most as much"},
        {o->period_ns == WEIR_MONTH && (!fixed || o->align != WEIR_ALIGN_CLOCK),
         "a calendar month (WEIR_MONTH) needs the algorithm fixed_window, with align clock"},
        {o->offset_ns != 0 && !has(o, IS_WINDOW), "offset_ns is for the window algorithms only"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].broken) {
            return fail(error, WEIR_EINVAL, "%s", rules[i].text);
        }
    }
    return 0;
}

static int check_numbers(const struct weir_options *o, struct weir_error *error)
{
    const struct {
        const char *name;
        uint64_t value;
        bool fine;
        int code;
        const char *expected;
    } rules[] = {
        {"count", o->count, o->count != 0, WEIR_ERATE, "at least 1"},
        {"period_ns", o->period_ns, o->period_ns >= PERIOD_LEAST && o->period_ns <= ALGO_LIFE_NS,
         WEIR_ERATE, "1000 (1 us) to 3155760000000000000 (100 years)"},
        {"offset_ns", o->offset_ns, o->offset_ns < o->period_ns, WEIR_EINVAL,
         "less than the period"},
        {"max_keys", o->max_keys, o->max_keys <= MAX_KEYS_MOST, WEIR_EINVAL,
         "at most 1099511627776"},
        {"max_blocks", o->max_blocks, o->max_blocks <= MAX_KEYS_MOST, WEIR_EINVAL,
         "at most 1099511627776"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!rules[i].fine) {
            return fail(error, rules[i].code, "%s is %" PRIu64 ", expected %s", rules[i].name,
                        rules[i].value, rules[i].expected);
        }
    }
    return 0;
}

static int compile(const struct algo_ops *ops, const struct limit_spec *spec,
                   const struct algo_layout *layout, struct algo_params *params,
                   struct weir_error *error)
{
    memset(params, 0, sizeof *params);
    params->spec = *spec;
    return ops->compile(spec, layout, params, error);
}

int params_compile(const struct algo_ops *ops, const struct limit_spec *spec,
                   const struct algo_layout *layout, struct algo_params *params,
                   struct weir_error *error)
{
    struct limit_spec full = *spec;
    full.max_debt = spec->debt_asked == WEIR_NO_DEBT ? 0 : spec->debt_asked;
    int e = compile(ops, &full, layout, params, error);
    if (e != 0 || spec->debt_asked != 0 || !algorithm_has(spec->algorithm, HOLDS_DEBT)) {
        return e;
    }
    uint64_t debt = params->quota;
    do {
        full.max_debt = debt;
        debt /= 2;
    } while (compile(ops, &full, layout, params, NULL) != 0); /* 0 has been seen to compile */
    return 0;
}

/* Returns how long after multiples of the period windows begin: those of whole weeks on a Monday.
 * 1970 began on a Thursday. */
static uint64_t choose_offset(const struct weir_options *o)
{
    bool weeks = has(o, IS_WINDOW) && o->period_ns % (7 * WEIR_DAY) == 0;
    return weeks ? (o->offset_ns + 4 * WEIR_DAY) % o->period_ns : o->offset_ns;
}

/* Windows: returns the latest multiple of the period, plus offset, that is not after `start`. */
static int64_t align_epoch(const struct weir_options *o, int64_t start)
{
    int64_t offset = (int64_t)choose_offset(o);
    int64_t period = (int64_t)o->period_ns;
    if (!has(o, IS_WINDOW)) {
        return start;
    }
    int64_t since = (start - offset) % period;
    return o->period_ns == WEIR_MONTH ? offset : start - (since < 0 ? since + period : since);
}

static int64_t choose_epoch(const struct weir_options *o)
{
    if ((o->flags & WEIR_EXPLICIT_TIME) != 0) {
        return align_epoch(o, 0);
    }
    uint64_t now =
        o->clock != NULL ? o->clock(o->clock_arg) : max_u64(clock_unix_ns(), CLOCK_SET_NS);
    return align_epoch(o, (int64_t)sub_floor0(min_u64(now, INT64_MAX), EPOCH_LEAD));
}

int plan_make(const struct weir_options *options, struct weir_options *o, struct plan *plan,
              struct weir_error *error)
{
    static const struct algo_layout none = {0, 0, false};
    int e = read_options(options, o, error);
    e = e != 0 ? e : check_enums(o, error);
    e = e != 0 ? e : check_traits(o, error);
    e = e != 0 ? e : check_sense(o, error);
    e = e != 0 ? e : check_numbers(o, error);
    if (e != 0) {
        return e;
    }
    memset(plan, 0, sizeof *plan);
    plan->ops = algo_by_id(o->algorithm);
    const struct limit_spec spec = {
        .algorithm = o->algorithm,
        .on_full = o->on_full,
        .count = o->count,
        .period_ns = o->period_ns,
        .burst = has(o, HAS_BURST) && o->burst == 0 ? o->count : o->burst,
        .queue = o->queue,
        .undelayed = o->undelayed,
        .debt_asked = o->max_debt,
    };
    e = params_compile(plan->ops, &spec, &none, &plan->params, error);
    if (e != 0) {
        return e;
    }
    struct region_fixed *f = &plan->fixed;
    uint64_t max_keys = o->max_keys != 0 ? o->max_keys : MAX_KEYS_DEFAULT;
    uint64_t max_blocks = max_u64(max_keys / KEYS_PER_BLOCK, MAX_BLOCKS_LEAST);
    f->shape = table_shape(max_keys, o->max_blocks != 0 ? o->max_blocks : max_blocks,
                           algo_record_bytes(&plan->params));
    f->algorithm = o->algorithm;
    f->hash = o->hash;
    f->align = o->align;
    f->explicit_time = (o->flags & WEIR_EXPLICIT_TIME) != 0;
    f->shift = plan->params.shift;
    f->capacity = plan->params.capacity;
    f->period_ns = o->period_ns;
    f->offset_ns = choose_offset(o);
    f->epoch_ns = choose_epoch(o);
    return region_fixed_finish(f, error);
}

int weir_size(const struct weir_options *options, uint64_t *bytes, struct weir_error *error)
{
    struct weir_options o;
    struct plan plan;
    if (bytes == NULL) {
        return fail(error, WEIR_EINVAL, "the pointer for the size is NULL");
    }
    int e = plan_make(options, &o, &plan, error);
    if (e == 0) {
        *bytes = plan.fixed.total_bytes;
    }
    return e;
}
