#include "server/sandbox/sandboxes.h"

#include <stdlib.h>

#include "base/error.h"

int sandboxes_create(struct sandboxes **sandboxes, const struct server_options *options,
                     struct weir_error *error)
{
    *sandboxes = calloc(1, sizeof **sandboxes);
    if (*sandboxes == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for sandboxes");
    }
    uint64_t idle_ms = options->sandbox_idle_ms;
    uint64_t step_ns = options->sandbox_step_ns;
    (*sandboxes)->idle_ms = idle_ms != 0 ? idle_ms : SANDBOX_IDLE_MS;
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
    for (size_t i = 0; sandboxes != NULL && i < SANDBOXES_MAX; i++) {
        release(&sandboxes->at[i]);
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
    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        struct sandbox *sandbox = &sandboxes->at[i];
        if (sandbox->used && !sandbox->busy && now_ms - sandbox->touched_ms >= sandboxes->idle_ms) {
            sandbox_remove(sandbox);
        }
    }
}

struct sandbox *sandboxes_take(struct sandboxes *sandboxes, uint64_t now_ms)
{
    size_t i = 0;
    while (i < SANDBOXES_MAX && sandboxes->at[i].used) {
        i++;
    }
    struct sandbox *sandbox = i < SANDBOXES_MAX ? &sandboxes->at[i] : NULL;
    if (sandbox == NULL || !id_random(&sandbox->id)) {
        return NULL;
    }
    sandbox->used = true;
    sandbox->busy = true;
    sandbox->touched_ms = now_ms;
    return sandbox;
}

struct sandbox *sandboxes_find(struct sandboxes *sandboxes, struct text text)
{
    struct id id;
    if (!id_parse(text, &id)) {
        return NULL;
    }
    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        struct sandbox *sandbox = &sandboxes->at[i];
        if (sandbox->used && !sandbox->doomed && sandbox->id.word[0] == id.word[0] &&
            sandbox->id.word[1] == id.word[1]) {
            return sandbox;
        }
    }
    return NULL;
}

void sandbox_rest(struct sandbox *sandbox, uint64_t now_ms)
{
    sandbox->busy = false;
    sandbox->touched_ms = now_ms;
    if (sandbox->doomed) {
        release(sandbox);
    }
}
