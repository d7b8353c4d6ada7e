/* Makes the options of the limiters that decide a limit of the file, and computes their memory. */
#include "base/maths.h"
#include "rules/file/ban.h"
#include "rules/file/limits.h"

/* ---- quota, window and wait ---- */

uint64_t limit_quota(const struct limit_config *limit, const struct setting *setting)
{
    if (algorithm_has(limit->algorithm, HAS_BURST)) {
        return setting->burst;
    }
    return algorithm_has(limit->algorithm, HAS_QUEUE) ? add_sat(setting->burst, 1)
                                                      : setting->rate.count;
}

/* The quota of windows and of the log is the count, so the result is their period. */
uint64_t limit_window_ns(const struct limit_config *limit, const struct setting *setting)
{
    return rate_kind(setting->rate) != RATE_COUNTS
               ? 0
               : mul_div_up(limit_quota(limit, setting), setting->rate.period_ns,
                            setting->rate.count);
}

uint64_t limit_queue_ns(const struct limit_config *limit, const struct setting *setting)
{
    return limit_has_queue(limit, setting->rate)
               ? mul_div_up(sub_floor0(setting->burst, limit->undelayed), setting->rate.period_ns,
                            setting->rate.count)
               : 0;
}

uint64_t limit_wait_ns(const struct limit_config *limit, const struct setting *setting,
                       uint64_t delay_ns)
{
    return limit_queue_ns(limit, setting) <= delay_ns
               ? 0
               : max_u64(delay_ns, 1); /* a max_wait of 0 is the queue's own */
}

/* ---- options ---- */

/*
 * The limiter of a rate that is 0 or unlimited does not have the limit's algorithm. Of rate 0 it is
 * a token bucket that is asked for more than its burst, and so never has a key. If it is unlimited,
 * it is a window that is asked for one unit of more than a key can use in a second; a full table
 * must not deny.
 */
static void fixed_options(const struct limit_config *limit, const struct setting *setting,
                          struct weir_options *options)
{
    bool unlimited = rate_kind(setting->rate) == RATE_UNLIMITED;
    options->algorithm = unlimited ? WEIR_FIXED_WINDOW : WEIR_TOKEN_BUCKET;
    options->count = unlimited ? 1000000000 : 1;
    options->period_ns = WEIR_SECOND;
    options->max_keys = unlimited && limit->key_parts > 0 ? setting->max_keys : 1;
    options->max_blocks = limit->max_blocks;
}

bool limit_replaces(const struct limit_config *limit, const struct limit_config *other)
{
    for (size_t i = 0; i < limit->replaces.count; i++) {
        struct weir_text name = limit->replaces.at[i];
        if (text_equal(name, other->name) || text_equal(name, other->label)) {
            return true;
        }
    }
    return false;
}

void config_options(const struct limit_config *limit, const struct setting *setting,
                    struct weir_options *options)
{
    *options = (struct weir_options)WEIR_OPTIONS_INIT;
    if (rate_kind(setting->rate) != RATE_COUNTS) {
        fixed_options(limit, setting, options);
        return;
    }
    options->algorithm = limit->algorithm;
    options->count = setting->rate.count;
    options->period_ns = setting->rate.period_ns;
    options->max_keys = limit->key_parts > 0 ? setting->max_keys : 1;
    options->max_blocks = limit->max_blocks;
    options->on_full = limit->on_full;
    if (limit->align != LIMIT_ALIGN_EPOCH) {
        options->align = limit->align;
    } else if (options->period_ns % (7 * WEIR_DAY) == 0) { /* not on a Monday */
        options->offset_ns = options->period_ns - 4 * WEIR_DAY;
    }
    if (algorithm_has(limit->algorithm, HAS_BURST)) {
        options->burst = setting->burst;
    } else if (algorithm_has(limit->algorithm, HAS_QUEUE)) {
        options->queue = setting->burst;
        options->undelayed = min_u64(limit->undelayed, setting->burst);
    }
}

/* ---- memory ---- */

/* One setting of a limit, and what it is called in messages. */
struct sized {
    const struct setting *setting;
    const char *of; /* ", tier " */
    struct weir_text name;
};

/* Returns the bytes of a limiter. Reports at `place` that it is impossible. */
static uint64_t options_bytes(const struct limit_config *limit, const struct sized *of,
                              const struct weir_options *options, struct place place,
                              struct problems *problems)
{
    struct weir_error error;
    uint64_t bytes = 0;
    if (options->period_ns == WEIR_MONTH &&
        (!algorithm_has(options->algorithm, IS_FIXED_WINDOW) || limit->align != WEIR_ALIGN_CLOCK)) {
        problem(problems, place,
                "limit '%.*s'%s%.*s: found a rate per month, which needs 'algorithm: fixed_window' "
                "and 'align: clock', its default",
                TEXT_ARGS(limit->name), of->of, TEXT_ARGS(of->name));
    } else if (weir_size(options, &bytes, &error) != 0) {
        problem(problems, place, "limit '%.*s'%s%.*s: %s", TEXT_ARGS(limit->name), of->of,
                TEXT_ARGS(of->name), error.text);
    }
    return bytes;
}

/* True if this process has a limiter for the setting. */
static bool is_counted(const struct config *config, const struct limit_config *limit,
                       const struct setting *setting)
{
    return config == NULL || setting_is_local(config, limit, setting);
}

static uint64_t setting_bytes(const struct config *config, const struct limit_config *limit,
                              struct sized of, struct problems *problems)
{
    struct weir_options options;
    uint64_t bytes = 0;
    if (is_counted(config, limit, of.setting)) {
        config_options(limit, of.setting, &options);
        bytes = options_bytes(limit, &of, &options, limit->rate_place, problems);
    }
    if (limit->ban.denials > 0) {
        ban_options(limit, of.setting, &options);
        bytes = add_sat(bytes, options_bytes(limit, &of, &options, limit->ban_place, problems));
    }
    return bytes;
}

uint64_t limit_bytes(const struct config *config, const struct limit_config *limit,
                     struct problems *problems)
{
    const struct overrides *o = &limit->overrides;
    uint64_t sum = 0;
    if (limit->tier_default.len == 0) {
        struct sized own = {&limit->base, "", TEXT("")};
        sum = setting_bytes(config, limit, own, problems);
    }
    for (size_t i = 0; i < limit->tiers_count; i++) {
        struct sized tier = {&limit->tiers[i].setting, ", tier ", limit->tiers[i].name};
        sum = add_sat(sum, setting_bytes(config, limit, tier, problems));
    }
    for (size_t i = 0; i < o->settings_count; i++) {
        struct sized rate = {&o->settings[i], ", overrides ", o->file};
        sum = add_sat(sum, setting_bytes(config, limit, rate, problems));
    }
    return sum;
}
