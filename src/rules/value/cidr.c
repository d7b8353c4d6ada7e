/*
 * Sets of networks. A network is a range of numbers. The ranges are sorted, and joined where they
 * overlap or touch. A set keeps two numbers of each range, in order: the first number of the range,
 * and the first number after it. An address is in the set if the last of these numbers that is not
 * larger is the first number of a range. IPv4 and IPv6 are kept apart, so that the common search
 * reads an array of 4-byte numbers: 16 to a cache line.
 */
#include <stdlib.h>

#include "base/maths.h"
#include "rules/value/address.h"

struct range {
    u128 first;
    u128 end; /* the first number after it; 0 after the last IPv6 address */
};

struct cidr_set {
    size_t ipv4_count;
    size_t ipv6_count;
    uint32_t *ipv4;
    u128 *ipv6;
};

static u128 number_of(const struct address *a)
{
    u128 x = 0;
    for (int i = 0; i < (a->family == 4 ? 4 : 16); i++) {
        x = x << 8 | a->bytes[i];
    }
    return x;
}

static struct range range_of(const struct cidr *c)
{
    unsigned bits = c->network.family == 4 ? 32 : 128;
    u128 host = c->prefix == 0 && bits == 128 ? ~(u128)0 : ((u128)1 << (bits - c->prefix)) - 1;
    u128 first = number_of(&c->network) & ~host;
    return (struct range){first, (first | host) + 1};
}

static int compare(const void *left, const void *right)
{
    const struct range *a = left;
    const struct range *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

/* Sorts and joins ranges in place; returns how many are left. */
static size_t sort_and_join(struct range *ranges, size_t n)
{
    size_t kept = 0;
    qsort(ranges, n, sizeof *ranges, compare);
    for (size_t i = 1; i < n; i++) {
        struct range *to = &ranges[kept];
        if (ranges[i].first > to->end && to->end != 0) {
            ranges[++kept] = ranges[i];
        } else if (ranges[i].end - 1 > to->end - 1) {
            to->end = ranges[i].end;
        }
    }
    return n == 0 ? 0 : kept + 1;
}

/*
 * Makes the ranges of a family, and returns the number of their beginnings and ends. The end of a
 * range that has the last address is left out: there is no number for it.
 */
static size_t ranges_of_family(const struct cidr *cidrs, size_t n, unsigned family,
                               struct range *out)
{
    u128 beyond = family == 4 ? (u128)1 << 32 : 0;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (cidrs[i].network.family == family) {
            out[found++] = range_of(&cidrs[i]);
        }
    }
    found = sort_and_join(out, found);
    return found > 0 && out[found - 1].end == beyond ? 2 * found - 1 : 2 * found;
}

static u128 bound_at(const struct range *ranges, size_t i)
{
    return i % 2 == 0 ? ranges[i / 2].first : ranges[i / 2].end;
}

int cidr_set_create(const struct cidr *cidrs, size_t n, struct cidr_set **out)
{
    struct cidr_set *set = calloc(1, sizeof *set);
    struct range *ranges = calloc(n + 1, sizeof *ranges);
    int e = WEIR_ENOMEM;
    if (set == NULL || ranges == NULL) {
        goto done;
    }
    set->ipv4_count = ranges_of_family(cidrs, n, 4, ranges);
    set->ipv4 = calloc(set->ipv4_count + 1, sizeof *set->ipv4);
    for (size_t i = 0; set->ipv4 != NULL && i < set->ipv4_count; i++) {
        set->ipv4[i] = (uint32_t)bound_at(ranges, i);
    }
    set->ipv6_count = ranges_of_family(cidrs, n, 6, ranges);
    set->ipv6 = calloc(set->ipv6_count + 1, sizeof *set->ipv6);
    for (size_t i = 0; set->ipv6 != NULL && i < set->ipv6_count; i++) {
        set->ipv6[i] = bound_at(ranges, i);
    }
    if (set->ipv4 != NULL && set->ipv6 != NULL) {
        *out = set;
        set = NULL;
        e = 0;
    }
done:
    free(ranges);
    cidr_set_destroy(set);
    return e;
}

/* The two searches halve what is left, without a branch that the processor could mispredict. */

static bool has_ipv4(const struct cidr_set *set, uint32_t x)
{
    size_t at = 0;
    for (size_t n = set->ipv4_count; n > 1; n -= n / 2) {
        at += set->ipv4[at + n / 2] <= x ? n / 2 : 0;
    }
    return set->ipv4_count > 0 && set->ipv4[at] <= x && at % 2 == 0;
}

static bool has_ipv6(const struct cidr_set *set, u128 x)
{
    size_t at = 0;
    for (size_t n = set->ipv6_count; n > 1; n -= n / 2) {
        at += set->ipv6[at + n / 2] <= x ? n / 2 : 0;
    }
    return set->ipv6_count > 0 && set->ipv6[at] <= x && at % 2 == 0;
}

bool cidr_set_has(const struct cidr_set *set, const struct address *a)
{
    return a->family == 4 ? has_ipv4(set, (uint32_t)number_of(a)) : has_ipv6(set, number_of(a));
}

void cidr_set_destroy(struct cidr_set *set)
{
    if (set != NULL) {
        free(set->ipv4);
        free(set->ipv6);
        free(set);
    }
}
