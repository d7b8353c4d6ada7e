#include "support/engine/process_scene.h"

#include <stdlib.h>
#include <string.h>

void scene_init(struct scene *s, struct weir *w, void (*call)(struct weir *, unsigned),
                unsigned own)
{
    memset(s, 0, sizeof *s);
    s->w = w;
    s->call = call;
    s->own = own;
    s->now = PROCESS_NOW;
    scene_add(s, own);
}

void scene_add(struct scene *s, unsigned key)
{
    REQUIRE(s->keys < SCENE_KEYS);
    s->key[s->keys++] = key;
}

static void look_at(const struct scene *s, struct weir_answer *world)
{
    for (unsigned i = 0; i < s->keys; i++) {
        struct weir_question ask = {
            .key = &s->key[i], .key_len = sizeof s->key[i], .cost = 1, .mode = WEIR_PEEK};
        REQUIRE(weir_ask_at(s->w, &ask, s->now, &world[i]) == 0);
    }
}

void scene_freeze(struct scene *s)
{
    lock_wait_ns = 200000; /* most runs leave a lock with a dead owner */
    s->image = malloc(s->w->region->bytes);
    REQUIRE(s->image != NULL);
    memcpy(s->image, s->w->region->head, s->w->region->bytes);
    look_at(s, s->world[0]);
    scene_prepare(s);
    s->call(s->w, s->own);
    look_at(s, s->world[1]);
    scene_prepare(s);
}

void scene_finish(struct scene *s)
{
    free(s->image);
    weir_close(s->w);
}

void scene_prepare(void *arg)
{
    struct scene *s = arg;
    memcpy(s->w->region->head, s->image, s->w->region->bytes);
}

void scene_act(void *arg)
{
    struct scene *s = arg;
    s->call(s->w, s->own);
}

const void *scene_watched(void *arg, size_t *bytes)
{
    struct scene *s = arg;
    *bytes = s->w->region->bytes;
    return s->w->region->head;
}

/* ---- what a survivor requires ---- */

static bool same(const struct weir_answer *a, const struct weir_answer *b)
{
    return a->verdict == b->verdict && a->flags == b->flags && a->quota == b->quota &&
           a->remaining == b->remaining && a->retry_after_ns == b->retry_after_ns &&
           a->reset_after_ns == b->reset_after_ns && a->delay_ns == b->delay_ns;
}

static bool is_world(const struct scene *s, const struct weir_answer *seen, unsigned n)
{
    for (unsigned i = 0; i < s->keys; i++) {
        if (!same(&seen[i], &s->world[n][i])) {
            return false;
        }
    }
    return true;
}

/* Returns true if all keys but `own` are as before, and own is between the two worlds. */
static bool is_between(const struct scene *s, const struct weir_answer *seen)
{
    uint64_t a = s->world[0][0].remaining;
    uint64_t b = s->world[1][0].remaining;
    for (unsigned i = 1; i < s->keys; i++) {
        if (!same(&seen[i], &s->world[0][i])) {
            return false;
        }
    }
    return seen[0].remaining >= min_u64(a, b) && seen[0].remaining <= max_u64(a, b);
}

unsigned scene_slots_of(const struct weir *w, uint64_t tag, bool marked)
{
    unsigned n = 0;
    for (uint64_t i = 0; i < 2 * w->table.half * LINE_SLOTS; i++) {
        uint64_t has = w->table.lines[i / LINE_SLOTS].slot[i % LINE_SLOTS].tag;
        n += marked ? (has & TAG_MARKS) != 0 : has == tag;
    }
    return n;
}

static void require_table_sound(struct scene *s)
{
    uint64_t lines = 2 * s->w->table.half;
    struct weir_stats stats = {.size = sizeof stats};
    REQUIRE(weir_sweep_at(s->w, lines, s->now) >= 0);
    REQUIRE(scene_slots_of(s->w, 0, true) == 0);
    for (unsigned i = 0; i < s->keys; i++) {
        REQUIRE(scene_slots_of(s->w, scene_place(s->w, s->key[i]).tag, false) <= 1);
    }
    REQUIRE(weir_stats_read(s->w, &stats) == 0);
    uint64_t taken = lines * LINE_SLOTS - scene_slots_of(s->w, 0, false);
    REQUIRE(stats.keys + 1 >= taken && stats.keys <= taken + 1);
}

/* Requires that the table still works: exactly what was left of `own` is granted, and new keys are
 * admitted. */
static void require_usable(struct scene *s, uint64_t left)
{
    uint64_t got = 0;
    while (process_take(s->w, s->own, s->now) == WEIR_ALLOW) {
        got++;
    }
    REQUIRE(got == left);
    REQUIRE(process_take(s->w, SCENE_STRANGER, s->now) == WEIR_ALLOW);
}

void scene_verify(void *arg)
{
    struct scene *s = arg;
    struct weir_answer seen[SCENE_KEYS];
    look_at(s, seen);
    REQUIRE(s->partial ? is_between(s, seen) : is_world(s, seen, 0) || is_world(s, seen, 1));
    require_table_sound(s);
    look_at(s, seen);
    REQUIRE(s->partial ? is_between(s, seen) : is_world(s, seen, 0) || is_world(s, seen, 1));
    require_usable(s, seen[0].remaining);
}

/* ---- places ---- */

struct table_key scene_place(const struct weir *w, unsigned key)
{
    return table_key(&w->table, limiter_hash(w, &key, sizeof key));
}

unsigned scene_key_in_line(const struct weir *w, uint64_t line, unsigned after)
{
    unsigned key = after + 1;
    while (scene_place(w, key).line != line) {
        key++;
    }
    return key;
}

static unsigned free_in_line(const struct weir *w, uint64_t line)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        n += w->table.lines[line].slot[i].tag == 0;
    }
    return n;
}

/* Fills a line with keys for which it is the first line. */
static void fill_line(struct scene *s, uint64_t line, unsigned *last)
{
    for (unsigned n = free_in_line(s->w, line); n > 0; n--) {
        *last = scene_key_in_line(s->w, line, *last);
        REQUIRE(process_take(s->w, *last, s->now) == WEIR_ALLOW);
        scene_add(s, *last);
    }
}

void scene_crowd(struct scene *s, unsigned depth)
{
    const struct table *t = &s->w->table;
    struct table_key own = scene_place(s->w, s->own);
    uint64_t lines[2] = {own.line, table_other_line(t, own.line, own.tag)};
    unsigned last = 1000;
    fill_line(s, lines[0], &last);
    fill_line(s, lines[1], &last);
    for (unsigned i = 0; i < 2 * LINE_SLOTS && depth > 1; i++) {
        uint64_t line = lines[i / LINE_SLOTS];
        uint64_t tag = t->lines[line].slot[i % LINE_SLOTS].tag;
        fill_line(s, table_other_line(t, line, tag), &last);
    }
}

void scene_fill(struct scene *s)
{
    unsigned last = 1000;
    for (uint64_t line = 0; line < 2 * s->w->table.half; line++) {
        fill_line(s, line, &last);
    }
}

void scene_step(struct scene *s, const char *name, uint64_t *random)
{
    struct step_plan plan = {
        .name = name,
        .prepare = scene_prepare,
        .act = scene_act,
        .verify = scene_verify,
        .arg = s,
        .watched = scene_watched,
    };
    (void)process_step(&plan, random);
    scene_finish(s);
}
