#include "server/sandbox/sandboxes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "server/loop/tally.h"

struct places {
    struct sandbox *at;
    size_t count;
};

static struct places places_of(struct sandboxes *s, enum sandbox_pool pool)
{
    return pool == POOL_DEMO ? (struct places){s->demo, DEMO_SANDBOXES_MAX}
                             : (struct places){s->at, SANDBOXES_MAX};
}

int sandboxes_create(struct sandboxes **sandboxes, const struct server_options *options,
                     struct weir_error *error)
{
    *sandboxes = calloc(1, sizeof **sandboxes);
    if (*sandboxes == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for sandboxes");
    }
    uint64_t idle_ms = options->sandbox_idle_ms;
    uint64_t step_ns = options->sandbox_step_ns;
    idle_ms = idle_ms != 0 ? idle_ms : SANDBOX_IDLE_MS;
    (*sandboxes)->idle_ms[POOL_OPERATORS] = idle_ms;
    (*sandboxes)->idle_ms[POOL_DEMO] = idle_ms < DEMO_IDLE_MS ? idle_ms : DEMO_IDLE_MS;
    (*sandboxes)->step_ns = step_ns != 0 ? step_ns : SANDBOX_STEP_NS;
    return 0;
}

static void release(struct sandbox *sandbox)
{
    weir_rules_close(sandbox->rules);
    *sandbox = (struct sandbox){.used = false};
}

void sandboxes_destroy(struct sandboxes *sandboxes)
{
    for (int pool = 0; sandboxes != NULL && pool < POOLS; pool++) {
        struct places places = places_of(sandboxes, (enum sandbox_pool)pool);
        for (size_t i = 0; i < places.count; i++) {
            release(&places.at[i]);
        }
    }
    free(sandboxes);
}

void sandbox_remove(struct sandbox *sandbox)
{
    if (sandbox->busy) {
        sandbox->doomed = true;
    } else {
        release(sandbox);
    }
}

void sandboxes_expire(struct sandboxes *sandboxes, uint64_t now_ms)
{
    for (int pool = 0; pool < POOLS; pool++) {
        struct places places = places_of(sandboxes, (enum sandbox_pool)pool);
        for (size_t i = 0; i < places.count; i++) {
            struct sandbox *sandbox = &places.at[i];
            if (sandbox->used && !sandbox->busy &&
                now_ms - sandbox->touched_ms >= sandboxes->idle_ms[pool]) {
                sandbox_remove(sandbox);
            }
        }
    }
}

struct sandbox *sandboxes_take(struct sandboxes *sandboxes, enum sandbox_pool pool, uint64_t now_ms)
{
    struct places places = places_of(sandboxes, pool);
    size_t i = 0;
    while (i < places.count && places.at[i].used) {
        i++;
    }
    struct sandbox *sandbox = i < places.count ? &places.at[i] : NULL;
    if (sandbox == NULL || !id_random(&sandbox->id)) {
        return NULL;
    }
    sandbox->pool = pool;
    sandbox->used = true;
    sandbox->busy = true;
    sandbox->touched_ms = now_ms;
    return sandbox;
}

struct sandbox *sandboxes_of_client(struct sandboxes *sandboxes, const struct address *client)
{
    struct address room;
    struct address owner;
    struct weir_text key = tally_client(client, &room);
    struct places places = places_of(sandboxes, POOL_DEMO);
    for (size_t i = 0; i < places.count; i++) {
        struct sandbox *sandbox = &places.at[i];
        if (sandbox->used && text_equal(tally_client(&sandbox->owner, &owner), key)) {
            return sandbox;
        }
    }
    return NULL;
}

struct sandbox *sandboxes_find(struct sandboxes *sandboxes, enum sandbox_pool pool,
                               struct weir_text text)
{
    struct places places = places_of(sandboxes, pool);
    struct id id;
    if (!id_parse(text, &id)) {
        return NULL;
    }
    for (size_t i = 0; i < places.count; i++) {
        struct sandbox *sandbox = &places.at[i];
        if (sandbox->used && !sandbox->doomed && sandbox->id.word[0] == id.word[0] &&
            sandbox->id.word[1] == id.word[1]) {
            return sandbox;
        }
    }
    return NULL;
}

void sandbox_rest(struct sandbox *sandbox, uint64_t now_ms)
{
    assert(sandbox->used && sandbox->busy); /* S2: it was not freed meanwhile */
    sandbox->busy = false;
    sandbox->touched_ms = now_ms;
    if (sandbox->doomed) {
        release(sandbox);
    }
}
