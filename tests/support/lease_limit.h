/*
 * A limit without a store, for programs that test leases alone: these take the place of the real ones
 * in the program that includes this.
 */
#ifndef WEIR_TESTS_SUPPORT_LEASE_LIMIT_H
#define WEIR_TESTS_SUPPORT_LEASE_LIMIT_H

#include "store/store.h"

void store_limit_hold(struct store_limit *limit)
{
    limit->references++;
}

void store_limit_release(struct store_limit *limit)
{
    limit->references--;
}

const struct store_numbers *store_limit_numbers(const struct store_limit *limit)
{
    return limit->numbers;
}

#endif
