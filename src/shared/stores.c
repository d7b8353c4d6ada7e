#include "shared/stores.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "shared/script.h"

static int make_keys(struct store_shared *s)
{
    const uint64_t most[KEY_KINDS] = {
        [KEY_NOTED] = SHARED_NOTES,
        [KEY_LEASED] = SHARED_LEASES,
        [KEY_SYNCED] = SHARED_SYNCS,
    };
    int e = scripts_init(&s->scripts, s->options.clock);
    return e == 0 ? node_keys_create(&s->keys, most) : e;
}

int store_shared_create(struct store_shared **out, const struct store_shared_options *options)
{
    struct store_shared *s = calloc(1, sizeof *s);
    if (s == NULL || options->prefix.len > STORE_PREFIX_MAX) {
        free(s);
        return s == NULL ? WEIR_ENOMEM : WEIR_EINVAL;
    }
    s->options = *options;
    if (options->prefix.len > 0) {
        memcpy(s->prefix, options->prefix.at, options->prefix.len);
    }
    s->options.prefix = (struct text){s->prefix, options->prefix.len};
    members_init(&s->members, s->prefix, options->node);
    int e = make_keys(s);
    if (e != 0) {
        store_shared_destroy(s);
        return e;
    }
    *out = s;
    return 0;
}

void store_shared_destroy(struct store_shared *s)
{
    if (s != NULL) {
        node_keys_destroy(s->keys);
        scripts_finish(&s->scripts);
        free(s);
    }
}

void store_shared_stop(struct store_shared *s)
{
    node_keys_stop(s->keys);
}

uint64_t store_fleet_size(const struct store_shared *s)
{
    return s->options.fleet_size != 0 ? s->options.fleet_size : members_count(&s->members);
}

uint64_t store_degraded(const struct store_shared *s)
{
    return load_relaxed(&s->degraded);
}

uint64_t store_refunds_lost(const struct store_shared *s)
{
    return load_relaxed(&s->refunds_lost);
}

void store_sync_counts(const struct store_shared *s, struct sync_counts *counts)
{
    sync_counts(s->keys, counts);
}
