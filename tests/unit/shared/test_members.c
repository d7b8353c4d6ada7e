/* Tests how many nodes a node takes the fleet for: the number rises at once, and falls late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <weir.h>

#include "shared/store/members.h"

#define S WEIR_SECOND

static struct members m;
static uint64_t now_ns;

static int begin(void **state)
{
    members_init(&m, "weir", 1);
    now_ns = 1000 * S;
    return 0;
}

/* The store names n nodes, every 2 s for that long. */
static void hear(int64_t n, uint64_t for_ns)
{
    struct store_reply reply = {.type = ':', .n = 1, .integers = {n}};
    for (uint64_t end = now_ns + for_ns; now_ns < end; now_ns += MEMBERS_BEAT_NS) {
        members_heard(&m, &reply, now_ns);
    }
}

static void a_node_without_news_knows_only_of_itself(void **state)
{
    assert_int_equal(members_count(&m), 1);
}

static void the_number_rises_at_once_and_falls_after_10_s(void **state)
{
    hear(4, 2 * S);
    assert_int_equal(members_count(&m), 4);
    hear(7, 2 * S);
    assert_int_equal(members_count(&m), 7);
    hear(3, 8 * S);
    assert_int_equal(members_count(&m), 7);
    hear(2, 2 * S);
    assert_int_equal(members_count(&m), 2);
}

/* A store that was away, or was started empty, knows only the nodes that have found it again. */
static void the_number_does_not_fall_until_a_store_has_been_back_for_10_s(void **state)
{
    hear(4, 20 * S);
    now_ns += 3600 * S;
    hear(1, 10 * S);
    assert_int_equal(members_count(&m), 4);
    now_ns += 30 * S; /* away again */
    hear(2, 10 * S);
    assert_int_equal(members_count(&m), 4);
    hear(2, 2 * S);
    assert_int_equal(members_count(&m), 2);
}

static void the_number_outlives_the_process(void **state)
{
    uint64_t kept = 0;
    members_keep(&m, &kept);
    assert_int_equal(members_count(&m), 1);
    hear(4, 2 * S);
    assert_int_equal(kept, 4);
    members_init(&m, "weir", 2);
    members_keep(&m, &kept);
    assert_int_equal(members_count(&m), 4);
    hear(1, 10 * S); /* the first to find the store again */
    assert_int_equal(members_count(&m), 4);
    hear(1, 2 * S);
    assert_int_equal(kept, 1);
}

static void a_damaged_number_is_not_used(void **state)
{
    uint64_t kept = MEMBERS_MOST + 1;
    members_keep(&m, &kept);
    assert_int_equal(members_count(&m), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_node_without_news_knows_only_of_itself, begin),
        cmocka_unit_test_setup(the_number_rises_at_once_and_falls_after_10_s, begin),
        cmocka_unit_test_setup(the_number_does_not_fall_until_a_store_has_been_back_for_10_s,
                               begin),
        cmocka_unit_test_setup(the_number_outlives_the_process, begin),
        cmocka_unit_test_setup(a_damaged_number_is_not_used, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
