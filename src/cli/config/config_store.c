#include "cli/config/config_store.h"

#include <stdio.h>

#include "redis/url.h"
#include "rules/file/adhoc.h"
#include "rules/file/limits.h"
#include "shared/leased/lease.h"
#include "shared/synced/sync.h"

/* The number of nodes assumed for `fleet_size: auto`, for a bound that grows with it. */
#define NODES_LIKELY 10

/* ---- the settings of a limit: its own, its tiers', its overrides' ---- */

static size_t settings_count(const struct limit_config *limit)
{
    return 1 + limit->tiers_count + limit->overrides.settings_count;
}

/*
 * Returns a setting of the limit; NULL for the limit's own one if there is a default tier,
 * because then no request uses it. *tier is the setting's tier, empty if it has none.
 */
static const struct setting *setting_at(const struct limit_config *limit, size_t i,
                                        struct weir_text *tier)
{
    *tier = TEXT("");
    if (i == 0) {
        return limit->tier_default.len > 0 ? NULL : &limit->base;
    }
    if (i <= limit->tiers_count) {
        *tier = limit->tiers[i - 1].name;
        return &limit->tiers[i - 1].setting;
    }
    return &limit->overrides.settings[i - 1 - limit->tiers_count];
}

static int params_at(const struct limit_config *limit, size_t i, struct weir_text *tier,
                     struct store_params *params, struct weir_error *error)
{
    struct weir_options options;
    const struct setting *setting = setting_at(limit, i, tier);
    if (setting == NULL || rate_kind(setting->rate) != RATE_COUNTS) {
        return WEIR_ENOENT; /* the store is not asked */
    }
    config_options(limit, setting, &options);
    return store_params(&options, params, error);
}

/* ---- the store ---- */

static void check_url(const struct config *config, struct problems *problems)
{
    struct store_url url = {0};
    struct weir_error error;
    const struct store_config *store = &config->store;
    bool has_url = store->url.len > 0; /* otherwise a problem has been reported */
    if (has_url && store_url_read(store->url, &url, &error) != 0) {
        problem(problems, store->url_place, "%s", error.text);
        has_url = false;
    }
    if (has_url && store->tls.place.line > 0 && !url.tls) {
        problem(problems, store->tls.place,
                "found 'tls' for a URL without TLS, expected rediss://, rediss-sentinel:// or "
                "rediss-cluster://");
    }
    if (store->user.len > 0 && store->password_file.len == 0) {
        problem(problems, config->store_place,
                "found a user of the store without 'password_file', expected both or none");
    }
    if (store->sentinel_user.len > 0 && store->sentinel_password_file.len == 0) {
        problem(
            problems, config->store_place,
            "found a user of Sentinels without 'sentinel_password_file', expected both or none");
    }
    if (has_url && store->sentinel_password_file.len > 0 && url.kind != STORE_SENTINEL) {
        problem(problems, config->store_place,
                "found 'sentinel_password_file' for a URL without Sentinels, expected "
                "redis-sentinel://");
    }
    if (has_url && store->networks.given && url.kind == STORE_ALONE) {
        warning(problems, config->store_place,
                "found 'networks' for a URL with redis://, where they have no effect: they confine "
                "what Sentinels or a Cluster announce, not the hosts of the URL");
    }
}

/* ---- limits ---- */

static void check_bound(const struct config *config, const struct limit_config *limit,
                        struct weir_text tier, const struct store_params *params,
                        struct problems *problems)
{
    char every[QUANTITY_MAX];
    uint64_t rtt_ns = config->store.deadline_ns;
    uint64_t nodes = config->store.fleet_size != 0 ? config->store.fleet_size : NODES_LIKELY;
    if (sync_is_loose(params, nodes, limit->sync_ns, rtt_ns)) {
        warning(problems, limit->consistency_place,
                "limit '%.*s'%s%.*s: synced every %s, %llu nodes that are offered %u times the "
                "rate may admit %llu where %llu are allowed; expected a longer period or a "
                "larger burst, a shorter sync, or another consistency",
                TEXT_ARGS(limit->name), tier.len > 0 ? ", tier " : "", TEXT_ARGS(tier),
                duration_print(limit->sync_ns, every), (unsigned long long)nodes, SYNC_FLOOD,
                (unsigned long long)sync_bound(params, nodes, limit->sync_ns, rtt_ns, SYNC_FLOOD),
                (unsigned long long)params->quota);
    }
}

static void check_limit(const struct config *config, const struct limit_config *limit,
                        struct problems *problems)
{
    for (size_t i = 0; i < settings_count(limit); i++) {
        struct store_params params;
        struct weir_error error;
        struct weir_text tier;
        int e = params_at(limit, i, &tier, &params, &error);
        if (e != 0 && e != WEIR_ENOENT) {
            problem(problems, limit->rate_place, "limit '%.*s'%s%.*s: %s", TEXT_ARGS(limit->name),
                    tier.len > 0 ? ", tier " : "", TEXT_ARGS(tier), error.text);
        } else if (e == 0 && limit->consistency == CONSISTENCY_SYNCED) {
            check_bound(config, limit, tier, &params, problems);
        }
    }
}

int config_check_store(const struct config *config, struct problems *problems)
{
    if (!config_has_store(config)) {
        return 0;
    }
    check_url(config, problems);
    for (size_t i = 0; i < config->limits_count; i++) {
        if (config_is_shared(config, config->limits[i])) {
            check_limit(config, config->limits[i], problems);
        }
    }
    return problems->errors == 0 ? 0 : WEIR_ERULES;
}

bool config_bound_is_counted(const struct config *config)
{
    bool counted = config_has_store(config) && config->store.fleet_size == 0;
    size_t i = 0;
    if (counted && adhoc_is_shared(config) && config->adhoc.on_store_failure == REMOTE_FAIL_LOCAL) {
        return true;
    }
    while (counted && i < config->limits_count &&
           !(config_is_shared(config, config->limits[i]) &&
             config->limits[i]->on_store_failure == REMOTE_FAIL_LOCAL)) {
        i++;
    }
    return counted && i < config->limits_count;
}

/*
 * Decides as store_limit_open() does. Without a fleet_size it assumes one node, so that all
 * nodes decide the same although they do not know their number.
 */
static bool is_too_small(const struct config *config, const struct store_params *params)
{
    uint64_t nodes = config->store.fleet_size != 0 ? config->store.fleet_size : 1;
    return !lease_is_worth(params, nodes);
}

bool config_note_store(const struct config *config, const struct limit_config *limit,
                       char to[SHOW_NOTE_MAX])
{
    size_t all = 0;
    size_t small = 0;
    struct weir_text tier;
    struct store_params params;
    if (!config_is_shared(config, limit) || limit->consistency != CONSISTENCY_LEASED) {
        return false;
    }
    for (size_t i = 0; i < settings_count(limit); i++) {
        bool used = params_at(limit, i, &tier, &params, NULL) == 0;
        all += used;
        small += used && is_too_small(config, &params);
    }
    if (small == all) {
        (void)snprintf(to, SHOW_NOTE_MAX, "acts as exact: too small for leases");
    } else {
        (void)snprintf(to, SHOW_NOTE_MAX, "%zu of its %zu rates act as exact: too small for leases",
                       small, all);
    }
    return small > 0;
}
