#include "explore/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/maths.h"

/* ---- digests ---- */

static uint64_t fold(uint64_t x, uint64_t y)
{
    u128 product = (u128)x * y;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static struct digest add_two(struct digest d, uint64_t x, uint64_t y)
{
    return (struct digest){
        fold(d.a ^ x ^ UINT64_C(0xa0761d6478bd642f), y ^ UINT64_C(0xe7037ed1a0b428db)),
        fold(d.b ^ y ^ UINT64_C(0x8ebc6af09c88c6e3), x ^ UINT64_C(0x589965cc75374cc3)),
    };
}

/* Four at a time, which do not wait for each other. */
#define LANES 4

static const unsigned char *add_blocks(struct digest *d, const unsigned char *p, size_t blocks)
{
    struct digest lane[LANES] = {*d, {d->b, d->a}, {~d->a, d->b}, {~d->b, d->a}};
    for (size_t n = 0; n < blocks; n++) {
        for (unsigned i = 0; i < LANES; i++, p += 16) {
            uint64_t word[2];
            memcpy(word, p, sizeof word);
            lane[i] = add_two(lane[i], word[0], word[1]);
        }
    }
    for (unsigned i = 0; i < LANES; i++) {
        *d = add_two(*d, lane[i].a, lane[i].b);
    }
    return p;
}

struct digest digest_add(struct digest d, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    d = add_two(d, count, UINT64_C(0x1d8e4e27c47d124f)); /* so that it is known where this ends */
    p = add_blocks(&d, p, count / (16 * LANES));
    for (count %= 16 * LANES; count != 0;) {
        uint64_t word[2] = {0, 0};
        size_t n = count < sizeof word ? count : sizeof word;
        memcpy(word, p, n);
        d = add_two(d, word[0], word[1]);
        p += n;
        count -= n;
    }
    d.b &= ~UINT64_C(1);
    return d;
}

/* ---- sets ---- */

#define OPEN UINT64_C(1)
#define FIRST_ROOM 4096

void set_clear(struct digest_set *set)
{
    free(set->slots);
    *set = (struct digest_set){NULL, 0, 0};
}

/* Where it is, or where it would be. */
static struct digest *place_of(const struct digest_set *set, struct digest d)
{
    size_t i = d.a & (set->room - 1);
    while ((set->slots[i].a | set->slots[i].b) != 0 &&
           (set->slots[i].a != d.a || (set->slots[i].b & ~OPEN) != d.b)) {
        i = (i + 1) & (set->room - 1);
    }
    return &set->slots[i];
}

static void grow(struct digest_set *set)
{
    struct digest_set old = *set;
    set->room = old.room == 0 ? FIRST_ROOM : old.room * 2;
    set->slots = calloc(set->room, sizeof *set->slots);
    assert(set->slots != NULL);
    for (size_t i = 0; i < old.room; i++) {
        struct digest d = {old.slots[i].a, old.slots[i].b & ~OPEN};
        *place_of(set, d) = old.slots[i];
    }
    free(old.slots);
}

static bool taken(const struct digest *place)
{
    return (place->a | place->b) != 0;
}

enum set_found set_enter(struct digest_set *set, struct digest d)
{
    if (set->count >= set->room / 2) {
        grow(set);
    }
    struct digest *place = place_of(set, d);
    if (taken(place)) {
        return (place->b & OPEN) != 0 ? SET_OPEN : SET_CLOSED;
    }
    *place = (struct digest){d.a, d.b | OPEN};
    set->count++;
    return SET_NEW;
}

void set_close(struct digest_set *set, struct digest d)
{
    struct digest *place = place_of(set, d);
    assert(taken(place));
    place->b &= ~OPEN;
}

bool set_has(const struct digest_set *set, struct digest d)
{
    return set->room != 0 && taken(place_of(set, d));
}
