/* Tests the ring: which node owns a key, how even the shares are, and which keys move when a node
 * comes or goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir_fleet.h>

#include "base/clock.h"

#define KEYS 200000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NODES_MAX 200
#define FEW 1 /* fewer nodes and keys, because sanitized code is about 30 times as slow */
#else
#define NODES_MAX 1000
#define FEW 0
#endif

struct names {
    char text[NODES_MAX][24];
    const char *at[NODES_MAX];
};

static struct names names;

static void name_nodes(const char *prefix, const char *suffix, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names.text[i], sizeof names.text[i], "%s%zu%s", prefix, i + 1, suffix);
        names.at[i] = names.text[i];
    }
}

static struct weir_ring *ring_of(const char *const *nodes, size_t count)
{
    struct weir_ring *ring;
    struct weir_error error;
    if (weir_ring_open(&ring, nodes, count, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return ring;
}

static size_t find(const struct weir_ring *ring, unsigned key)
{
    char text[24];
    int n = snprintf(text, sizeof text, "client-%u", key);
    return weir_ring_find(ring, text, (size_t)n);
}

/* Returns the number of keys of the heaviest node, in 1/1000 of an even share. */
static uint64_t heaviest(const struct weir_ring *ring, size_t nodes, unsigned keys)
{
    static uint64_t held[NODES_MAX];
    uint64_t most = 0;
    memset(held, 0, sizeof held);
    for (unsigned k = 0; k < keys; k++) {
        uint64_t now = ++held[find(ring, k)];
        most = now > most ? now : most;
    }
    return most * 1000 * nodes / keys;
}

static void the_heaviest_of_up_to_100_nodes_has_at_most_a_quarter_too_much(void **state)
{
    static const struct {
        const char *prefix;
        const char *suffix;
    } kinds[] = {{"10.0.0.", ":6379"}, {"node-", ""}, {"", ""}};
    uint64_t worst = 0;
    for (size_t nodes = 2; nodes <= 100; nodes += FEW ? 98 : nodes < 20 ? 1 : 8) {
        for (size_t i = 0; i < (FEW ? 1 : sizeof kinds / sizeof kinds[0]); i++) {
            name_nodes(kinds[i].prefix, kinds[i].suffix, nodes);
            struct weir_ring *ring = ring_of(names.at, nodes);
            uint64_t share = heaviest(ring, nodes, KEYS);
            worst = share > worst ? share : worst;
            weir_ring_close(ring);
        }
    }
    print_message("the heaviest of 2 to 100 nodes: %.3f times its share\n", (double)worst / 1000);
    assert_in_range(worst, 1000, 1250);
}

static void many_nodes_all_have_keys(void **state)
{
    static uint64_t held[NODES_MAX];
    name_nodes("node-", "", NODES_MAX);
    struct weir_ring *ring = ring_of(names.at, NODES_MAX);
    const unsigned each = FEW ? 100 : 1000;
    for (unsigned k = 0; k < each * NODES_MAX; k++) {
        held[find(ring, k)]++;
    }
    for (size_t i = 0; i < NODES_MAX; i++) {
        assert_in_range(held[i], each / 4, each * 2);
    }
    weir_ring_close(ring);
}

/* Compares `count` nodes with the same ones without the node at `gone`. */
static void only_its_keys_move(size_t count, size_t gone)
{
    const char *fewer[NODES_MAX];
    size_t n = 0;
    name_nodes("cache-", ".example", count);
    for (size_t i = 0; i < count; i++) {
        if (i != gone) {
            fewer[n++] = names.at[i];
        }
    }
    struct weir_ring *before = ring_of(names.at, count);
    struct weir_ring *after = ring_of(fewer, n);
    uint64_t moved = 0;
    for (unsigned k = 0; k < KEYS; k++) {
        size_t was = find(before, k);
        size_t is = find(after, k);
        if (was == gone) {
            moved++;
        } else {
            assert_string_equal(fewer[is], names.at[was]);
        }
    }
    assert_in_range(moved * count, KEYS * 3 / 4, KEYS * 5 / 4);
    weir_ring_close(before);
    weir_ring_close(after);
}

static void a_node_that_leaves_moves_its_keys_and_no_others(void **state)
{
    static const size_t counts[] = {2, 3, 10, 31, 100};
    for (size_t i = FEW ? 3 : 0; i < sizeof counts / sizeof counts[0] - FEW; i++) {
        only_its_keys_move(counts[i], 0);
        only_its_keys_move(counts[i], counts[i] / 2);
        only_its_keys_move(counts[i], counts[i] - 1);
    }
}

static void the_keys_of_a_node_that_leaves_are_spread_over_all_others(void **state)
{
    uint64_t got[10] = {0};
    name_nodes("node-", "", 10);
    struct weir_ring *before = ring_of(names.at, 10);
    struct weir_ring *after = ring_of(names.at, 9);
    for (unsigned k = 0; k < KEYS; k++) {
        if (find(before, k) == 9) {
            got[find(after, k)]++;
        }
    }
    for (size_t i = 0; i < 9; i++) {
        assert_in_range(got[i], KEYS / 90 * 3 / 4, KEYS / 90 * 5 / 4);
    }
    weir_ring_close(before);
    weir_ring_close(after);
}

static void the_order_of_the_names_does_not_matter(void **state)
{
    const char *turned[50];
    name_nodes("node-", "", 50);
    for (size_t i = 0; i < 50; i++) {
        turned[i] = names.at[(i * 7 + 3) % 50];
    }
    struct weir_ring *a = ring_of(names.at, 50);
    struct weir_ring *b = ring_of(turned, 50);
    for (unsigned k = 0; k < KEYS; k++) {
        assert_string_equal(names.at[find(a, k)], turned[find(b, k)]);
    }
    weir_ring_close(a);
    weir_ring_close(b);
}

/* Programs of other versions and machines must agree on these. A change of the hash would break
 * them. */
static void the_owners_of_these_keys_are_part_of_the_format(void **state)
{
    static const char *const nodes[] = {"a", "b", "c", "d", "e"};
    static const struct {
        const char *key;
        const char *owner;
    } known[] = {{"", "d"},         {"alice", "a"},       {"bob", "b"},     {"carol", "c"},
                 {"10.0.0.1", "e"}, {"2001:db8::1", "d"}, {"tenant/7", "a"}};
    struct weir_ring *ring = ring_of(nodes, 5);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t at = weir_ring_find(ring, known[i].key, strlen(known[i].key));
        assert_string_equal(nodes[at], known[i].owner);
    }
    weir_ring_close(ring);
}

static void assert_refused(const char *const *nodes, size_t count, const char *why)
{
    struct weir_ring *ring = (struct weir_ring *)&names;
    struct weir_error error = {0};
    assert_int_equal(weir_ring_open(&ring, nodes, count, &error), WEIR_EINVAL);
    assert_null(ring);
    assert_int_equal(error.code, WEIR_EINVAL);
    assert_string_equal(error.text, why);
    assert_int_equal(weir_ring_open(&ring, nodes, count, NULL), WEIR_EINVAL);
}

static void names_that_are_none_are_refused(void **state)
{
    static char longest[1026];
    const char *const twice[] = {"a", "b", "a"};
    const char *const empty[] = {"a", ""};
    const char *const null[] = {"a", NULL};
    const char *const tall[] = {longest};
    memset(longest, 'x', sizeof longest - 1);
    assert_refused(twice, 3, "two nodes have the name 'a'");
    assert_refused(empty, 2, "node 1 has no name, expected one");
    assert_refused(null, 2, "node 1 has no name, expected one");
    assert_refused(tall, 1, "the name of node 0 is longer than 1024 bytes");
    assert_refused(twice, 0, "0 nodes, expected 1 to 1000 names");
    assert_refused(twice, 1001, "1001 nodes, expected 1 to 1000 names");
    assert_refused(NULL, 3, "3 nodes, expected 1 to 1000 names");
    assert_int_equal(weir_ring_open(NULL, twice, 2, NULL), WEIR_EINVAL);
    weir_ring_close(NULL);
}

static void one_node_has_every_key(void **state)
{
    const char *const only[] = {"only"};
    struct weir_ring *ring = ring_of(only, 1);
    for (unsigned k = 0; k < 1000; k++) {
        assert_int_equal(find(ring, k), 0);
    }
    weir_ring_close(ring);
}

/* A lookup takes no longer with more nodes, except for memory access. */
static void a_lookup_takes_as_long_with_any_number_of_nodes(void **state)
{
    static const size_t counts[] = {2, 100, NODES_MAX};
    const uint64_t lookups = FEW ? 20000 : 1000000;
    uint64_t took[3];
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        name_nodes("node-", "", counts[i]);
        uint64_t begun = clock_monotonic_ns();
        struct weir_ring *ring = ring_of(names.at, counts[i]);
        uint64_t made = clock_monotonic_ns();
        size_t sum = 0;
        for (uint64_t k = 0; k < lookups; k++) {
            sum += weir_ring_find(ring, &(uint64_t[2]){k, sum & 1}, 16);
        }
        took[i] = clock_monotonic_ns() - made;
        print_message("%zu nodes: made in %.1f ms, %.1f ns for a lookup (%zu)\n", counts[i],
                      (double)(made - begun) / 1e6, (double)took[i] / (double)lookups, sum);
        weir_ring_close(ring);
    }
    assert_true(took[2] < 20 * took[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heaviest_of_up_to_100_nodes_has_at_most_a_quarter_too_much),
        cmocka_unit_test(many_nodes_all_have_keys),
        cmocka_unit_test(a_node_that_leaves_moves_its_keys_and_no_others),
        cmocka_unit_test(the_keys_of_a_node_that_leaves_are_spread_over_all_others),
        cmocka_unit_test(the_order_of_the_names_does_not_matter),
        cmocka_unit_test(the_owners_of_these_keys_are_part_of_the_format),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(one_node_has_every_key),
        cmocka_unit_test(a_lookup_takes_as_long_with_any_number_of_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
