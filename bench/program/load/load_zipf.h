/* Skewed keys: Zipf, s = 0.99. */
#ifndef WEIR_BENCH_LOAD_ZIPF_H
#define WEIR_BENCH_LOAD_ZIPF_H

#include <stdint.h>

/*
 * Returns n draws from 0 to ranks - 1 in random order, in which each rank has its exact share;
 * NULL if out of memory. The caller frees them.
 */
uint32_t *zipf_list(uint64_t n, uint64_t ranks);

#endif
