// test-labels: nosan
// test-timeout: 900
/*
 * A process is killed at each instruction of an insertion that has to make room:
 * by moving residents, in one step or in two, with and without records, or by
 * forgetting somebody. Nobody is lost, nobody is there twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/engine/process_scene.h"

#define QUOTA 5

static uint64_t chance;

static void take_one(struct weir *w, unsigned key)
{
    (void)process_take(w, key, PROCESS_NOW);
}

static struct weir *make(int algorithm, int memory, const char *path)
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.memory = memory;
    o.path = path;
    return process_open(&o);
}

static uint64_t moves_so_far(struct weir *w)
{
    struct weir_stats stats = {.size = sizeof stats};
    REQUIRE(weir_stats_read(w, &stats) == 0);
    return stats.moved;
}

/* Freezes the scene, sure that its call moves exactly `depth` residents. */
static void step_through(struct scene *s, unsigned depth, const char *name)
{
    uint64_t before = moves_so_far(s->w);
    scene_crowd(s, depth);
    scene_freeze(s);
    assert_int_equal(moves_so_far(s->w), before + depth);
    scene_step(s, name, &chance);
}

static void killed_while_moving_a_resident(void **state)
{
    struct scene s;
    scene_init(&s, make(WEIR_TOKEN_BUCKET, WEIR_SHARED, NULL), take_one, 1);
    step_through(&s, 1, "a move");
}

static void killed_while_moving_two_residents(void **state)
{
    struct scene s;
    scene_init(&s, make(WEIR_FIXED_WINDOW, WEIR_SHARED, NULL), take_one, 1);
    step_through(&s, 2, "two moves");
}

static void killed_while_moving_a_resident_with_its_record(void **state)
{
    struct scene s;
    scene_init(&s, make(WEIR_SLIDING_LOG, WEIR_SHARED, NULL), take_one, 1);
    step_through(&s, 1, "a move with a record");
}

static void killed_while_moving_a_resident_within_a_file(void **state)
{
    struct scene s;
    const char *path = process_path(*state, "limits");
    scene_init(&s, make(WEIR_TOKEN_BUCKET, WEIR_FILE, path), take_one, 1);
    step_through(&s, 1, "a move in a file");
}

/*
 * Every slot holds a key in use: the least indebted of the candidates is forgotten.
 * The search for room is long: only the long run kills at each of its instructions.
 */
static void killed_while_somebody_is_forgotten(void **state)
{
    struct weir_stats stats = {.size = sizeof stats};
    struct scene s;
    scene_init(&s, make(WEIR_TOKEN_BUCKET, WEIR_SHARED, NULL), take_one, 1);
    scene_fill(&s);
    scene_freeze(&s);
    assert_int_equal(weir_stats_read(s.w, &stats), 0);
    assert_int_equal(stats.evicted, 1);
    scene_step(&s, "an eviction", &chance);
}

static int get_seed(void **state)
{
    chance = process_seed();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_while_moving_a_resident),
        cmocka_unit_test(killed_while_moving_two_residents),
        cmocka_unit_test(killed_while_moving_a_resident_with_its_record),
        cmocka_unit_test_setup_teardown(killed_while_moving_a_resident_within_a_file,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test(killed_while_somebody_is_forgotten),
    };
    return cmocka_run_group_tests(tests, get_seed, NULL);
}
