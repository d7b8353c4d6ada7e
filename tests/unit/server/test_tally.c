/* Counts by key: however units come and go, each key has the count of a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/loop/tally.h"

#define KEYS 60
#define ROWS 40 /* fewer than keys: the lists hold several rows, and sometimes none is left */
#define MOST 5

struct plain {
    uint64_t count[KEYS];
    uint32_t row[KEYS]; /* of keys with a count */
    unsigned used;      /* keys with a count */
};

static struct weir_text key_of(unsigned i, char room[16])
{
    return (struct weir_text){room, (size_t)snprintf(room, 16, "key %u", i)};
}

static void add_units(struct tally *t, struct plain *p, unsigned i, uint32_t units)
{
    char room[16];
    uint64_t count;
    uint32_t row = tally_add(t, key_of(i, room), units, MOST, &count);
    bool fits = p->count[i] + units <= MOST && (p->count[i] > 0 || p->used < ROWS);
    if (!fits) {
        assert_int_equal(row, TALLY_NONE);
        assert_int_equal(count, p->count[i]);
        return;
    }
    assert_int_not_equal(row, TALLY_NONE);
    assert_true(p->count[i] == 0 || row == p->row[i]);
    p->used += p->count[i] == 0;
    p->count[i] += units;
    p->row[i] = row;
    assert_int_equal(count, p->count[i]);
}

static void subtract_units(struct tally *t, struct plain *p, unsigned i)
{
    if (p->count[i] > 0) {
        uint32_t units = 1 + (uint32_t)rand() % (uint32_t)p->count[i];
        tally_subtract(t, p->row[i], units);
        p->count[i] -= units;
        p->used -= p->count[i] == 0;
    }
}

static void counts_are_those_of_a_plain_array_in_any_order(void **state)
{
    struct tally *t;
    struct plain p = {{0}, {0}, 0};
    char room[16];
    srand(7);
    assert_int_equal(tally_create(&t, ROWS, NULL), 0);
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = (unsigned)rand() % KEYS;
        if (rand() % 2 == 0) {
            add_units(t, &p, i, 1 + (uint32_t)rand() % 3);
        } else {
            subtract_units(t, &p, i);
        }
        unsigned other = (unsigned)rand() % KEYS;
        assert_int_equal(tally_row(t, key_of(other, room)),
                         p.count[other] > 0 ? p.row[other] : TALLY_NONE);
    }
    tally_destroy(t);
}

static void addresses_of_one_client_are_one_key(void **state)
{
    struct address a = {.family = 6};
    struct address b;
    struct address rooms[2];
    memcpy(a.bytes, "\x20\x01\x0d\xb8\0\0\0\x01\0\0\0\0\0\0\0\x01", 16);
    b = a;
    b.bytes[15] = 2;
    assert_true(text_equal(tally_client(&a, &rooms[0]), tally_client(&b, &rooms[1])));
    b.bytes[7] = 2; /* another /64 */
    assert_false(text_equal(tally_client(&a, &rooms[0]), tally_client(&b, &rooms[1])));
    a = b = (struct address){.family = 4, .bytes = {192, 0, 2, 1}};
    assert_true(text_equal(tally_client(&a, &rooms[0]), tally_client(&b, &rooms[1])));
    b.bytes[3] = 2;
    assert_false(text_equal(tally_client(&a, &rooms[0]), tally_client(&b, &rooms[1])));
    b = (struct address){.family = 0}; /* of a unix socket */
    assert_true(text_equal(tally_client(NULL, &rooms[0]), tally_client(&b, &rooms[1])));
    assert_false(text_equal(tally_client(NULL, &rooms[0]), tally_client(&a, &rooms[1])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_a_plain_array_in_any_order),
        cmocka_unit_test(addresses_of_one_client_are_one_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
