/*
 * A limiter in a known state, one call on it, and the only two worlds that a kill may leave: the
 * one before the call and the one after it.
 */
#ifndef WEIR_TESTS_PROCESS_SCENE_H
#define WEIR_TESTS_PROCESS_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/limiter.h"
#include "support/engine/process_fixture.h"
#include "support/engine/process_step.h"

#define SCENE_KEYS 160
/* A key that no scene contains. */
#define SCENE_STRANGER 0xffffffffu

struct scene {
    struct weir *w;
    void (*call)(struct weir *w, unsigned key); /* called with the key `own` */
    unsigned own;
    unsigned key[SCENE_KEYS]; /* all keys that matter, `own` included */
    unsigned keys;
    uint64_t now;
    bool partial;         /* works unit by unit: a state between the two is valid too */
    unsigned char *image; /* all bytes of the limiter before the call */
    struct weir_answer world[2][SCENE_KEYS];
};

/* Takes over the limiter as it is. `key` lists its residents. */
void scene_init(struct scene *s, struct weir *w, void (*call)(struct weir *, unsigned),
                unsigned own);
void scene_add(struct scene *s, unsigned key);

/* Call it when the setup is complete: it saves the bytes, tries the call, records its effect and
 * undoes it. */
void scene_freeze(struct scene *s);
void scene_finish(struct scene *s); /* closes the limiter */

/* Functions for struct step_plan. */
void scene_prepare(void *scene);
void scene_act(void *scene);
void scene_verify(void *scene);
const void *scene_watched(void *scene, size_t *bytes);

/* Steps through the scene's call, and finishes the scene. */
void scene_step(struct scene *s, const char *name, uint64_t *random);

/* Functions that find keys by where they are stored. */
struct table_key scene_place(const struct weir *w, unsigned key);
unsigned scene_key_in_line(const struct weir *w, uint64_t line, unsigned after);
unsigned scene_slots_of(const struct weir *w, uint64_t tag, bool marked);

/*
 * Takes a unit for as many keys as it needs to fill both lines of `own`, which is not inserted, and
 * with depth 2 also all lines to which their residents could move. Adds these keys to the scene.
 */
void scene_crowd(struct scene *s, unsigned depth);

/* The same until no slot is empty. */
void scene_fill(struct scene *s);

#endif
