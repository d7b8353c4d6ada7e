/* Skewed keys: Zipf, s = 0.99. */
#ifndef WEIR_CLI_LOAD_LOAD_ZIPF_H
#define WEIR_CLI_LOAD_LOAD_ZIPF_H

#include <stdint.h>

/* n draws from 0 to ranks - 1, each with its exact share, shuffled. NULL if there is no memory. */
uint32_t *zipf_list(uint64_t n, uint64_t ranks);

#endif
