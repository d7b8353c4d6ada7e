/*
 * The sliding log as the explorer sees it: its records are plain memory, so
 * every touch is turned into steps, and watched: who touches the record of a
 * slot must hold the stripe of the key in it (G6).
 */
#ifndef WEIR_EXPLORE_WIDE_H
#define WEIR_EXPLORE_WIDE_H

#include "algo/algo.h"

/* The operations to use in place of these. */
const struct algo_ops *wide_ops(const struct algo_ops *ops);

#endif
