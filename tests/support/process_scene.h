/*
 * A limiter in a known state, one call on it, and the two worlds that a kill may
 * leave: the one before the call and the one after it. Nothing else.
 */
#ifndef WEIR_TESTS_PROCESS_SCENE_H
#define WEIR_TESTS_PROCESS_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/limiter.h"
#include "support/process_fixture.h"
#include "support/process_step.h"

#define SCENE_KEYS 160
/* A key that no scene contains. */
#define SCENE_STRANGER 0xffffffffu

struct scene {
    struct weir *w;
    void (*call)(struct weir *w, unsigned key); /* on the key `own` */
    unsigned own;
    unsigned key[SCENE_KEYS]; /* all keys that matter, `own` included */
    unsigned keys;
    uint64_t now;
    bool partial;         /* the call works unit by unit: anything in between is right too */
    unsigned char *image; /* all bytes of the limiter before the call */
    struct weir_answer world[2][SCENE_KEYS];
};

/* Takes over the limiter as it is. `key` lists its residents. */
void scene_init(struct scene *s, struct weir *w, void (*call)(struct weir *, unsigned),
                unsigned own);
void scene_add(struct scene *s, unsigned key);

/* When all is set up: remembers the bytes, tries the call, remembers its effect, undoes it. */
void scene_freeze(struct scene *s);
void scene_finish(struct scene *s); /* closes the limiter */

/* For struct step_plan. */
void scene_prepare(void *scene);
void scene_act(void *scene);
void scene_verify(void *scene);
const void *scene_watched(void *scene, size_t *bytes);

/* Steps through the scene's call, and finishes the scene. */
void scene_step(struct scene *s, const char *name, uint64_t *random);

/* Finding keys by where they live. */
struct table_key scene_place(const struct weir *w, unsigned key);
unsigned scene_key_in_line(const struct weir *w, uint64_t line, unsigned after);
unsigned scene_slots_of(const struct weir *w, uint64_t tag, bool marked);

/*
 * Takes a unit for so many keys that `own`, which is not put in, finds
 * both its lines full, and with depth 2 also all lines that their residents
 * could move to. Adds all of them to the scene.
 */
void scene_crowd(struct scene *s, unsigned depth);

/* The same until there is no empty slot at all. */
void scene_fill(struct scene *s);

#endif
