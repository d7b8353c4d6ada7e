/*
 * A limit without a store, for programs that test leases alone: these functions replace the real
 * ones in the program that includes this header.
 */
#ifndef WEIR_TESTS_SUPPORT_LEASE_LIMIT_H
#define WEIR_TESTS_SUPPORT_LEASE_LIMIT_H

#include "shared/store/store.h"

void store_limit_hold(struct store_limit *limit)
{
    __atomic_fetch_add(&limit->references, 1, __ATOMIC_RELAXED);
}

void store_limit_release(struct store_limit *limit)
{
    __atomic_fetch_sub(&limit->references, 1, __ATOMIC_RELAXED);
}

#endif
