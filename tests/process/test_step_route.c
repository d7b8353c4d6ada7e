/* Routes to an instruction: each leads to the one that it is for, and most are short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/engine/process_fixture.h"
#include "support/engine/process_route.h"

#define PLACES 200 /* of two bytes each */
#define LENGTH 5000
#define HOPS 5000

static unsigned char code[2 * PLACES];
static uint64_t place[LENGTH + 1];

static uint64_t place_of(unsigned i)
{
    return (uintptr_t)&code[2 * i];
}

static bool anywhere(uint64_t at)
{
    return at != 0;
}

static bool not_in_the_middle(uint64_t at)
{
    return at < place_of(PLACES / 3) || at >= place_of(PLACES / 2);
}

static bool nowhere(uint64_t at)
{
    return at == 0;
}

/* What the processor would do: the number of instructions made after the hop. */
static unsigned follow(unsigned k, const struct hop *hop)
{
    switch (hop->kind) {
    case HOP_STEP:
        return k + hop->count;
    case HOP_RUN:
        while (place[k] != hop->stop) {
            k++;
        }
        return k;
    case HOP_TURNS:
        for (unsigned i = 0; i < hop->count; i++) {
            REQUIRE(place[k + i] == place[k]);
        }
        REQUIRE(hop->stop == place[k] + 2);
        return k + hop->count;
    }
    return 0;
}

static void require_routes_lead_there(bool (*can_stop)(uint64_t place))
{
    static struct hop hops[HOPS];
    struct routes *r = routes_create(place, LENGTH, can_stop);
    for (unsigned k = 1; k <= LENGTH; k++) {
        unsigned n = route_to(r, k, hops, HOPS);
        unsigned at = 0;
        for (unsigned i = 0; i < n; i++) {
            REQUIRE(hops[i].stop == 0 || can_stop(hops[i].stop));
            at = follow(at, &hops[i]);
        }
        REQUIRE(at == k);
    }
    routes_destroy(r);
}

/* One place in ten is a string instruction. Goes on to the next one, turns back, or jumps. */
static void go_at_random(uint64_t *random)
{
    unsigned at = 0;
    for (unsigned i = 0; i < PLACES; i++) {
        bool string = process_random(random, 10) == 0;
        code[2 * i] = string ? 0xf3 : 0x90;
        code[2 * i + 1] = string ? 0xab : 0x90;
    }
    for (unsigned k = 0; k <= LENGTH;) {
        unsigned turns = code[2 * at] == 0xf3 ? 1 + (unsigned)process_random(random, 60) : 1;
        for (unsigned i = 0; i < turns && k <= LENGTH; i++) {
            place[k++] = place_of(at);
        }
        unsigned back =
            turns == 1 && process_random(random, 8) == 0 ? (unsigned)process_random(random, 20) : 0;
        at = at + 1 < PLACES && back == 0 ? at + 1 : back < at ? at - back : 0;
    }
}

static void a_route_leads_to_the_instruction_that_it_is_for(void **state)
{
    uint64_t random = process_seed();
    for (unsigned i = 0; i < 20 / PROCESS_SCALE; i++) {
        go_at_random(&random);
        require_routes_lead_there(anywhere);
        require_routes_lead_there(not_in_the_middle);
        require_routes_lead_there(nowhere);
    }
}

static void a_loop_is_passed_in_one_hop_and_entered_in_about_one_for_each_turn(void **state)
{
    struct hop hops[HOPS];
    for (unsigned k = 0; k <= LENGTH; k++) { /* a loop of ten instructions, and what follows */
        place[k] = place_of(k < 2000 ? k % 10 : 10 + (k - 2000) % (PLACES - 10));
    }
    code[0] = 0x90;
    struct routes *r = routes_create(place, LENGTH, anywhere);
    assert_int_equal(route_to(r, 2005, hops, HOPS), 1);
    assert_int_equal(route_to(r, 9, hops, HOPS), 1);
    assert_in_range(route_to(r, 509, hops, HOPS), 50, 60);
    routes_destroy(r);
}

static void a_turn_of_a_string_instruction_is_reached_in_two_hops(void **state)
{
    struct hop hops[HOPS];
    for (unsigned k = 0; k <= LENGTH; k++) {
        place[k] = place_of(k < 10 ? k : k < 4010 ? 10 : 11 + k % 10);
    }
    place[4010] = place_of(11);
    code[20] = 0xf3;
    code[21] = 0xaa;
    struct routes *r = routes_create(place, LENGTH, anywhere);
    assert_int_equal(route_to(r, 3000, hops, HOPS), 2);
    assert_int_equal(hops[1].kind, HOP_TURNS);
    assert_int_equal(hops[1].count, 2990);
    assert_false(route_is_turn(r, 10));
    assert_true(route_is_turn(r, 11));
    assert_int_equal(route_turns(r, 11), 4000);
    assert_int_equal(route_turns(r, 4010), 1);
    routes_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_leads_to_the_instruction_that_it_is_for),
        cmocka_unit_test(a_loop_is_passed_in_one_hop_and_entered_in_about_one_for_each_turn),
        cmocka_unit_test(a_turn_of_a_string_instruction_is_reached_in_two_hops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
