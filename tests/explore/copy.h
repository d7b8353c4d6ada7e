/*
 * Forced into the explorer's build of the engine: records and parameters are
 * copied word by word, and somebody else may run, or the copier die, between
 * two words. The compiler's memcpy would be one step.
 */
#ifndef WEIR_EXPLORE_COPY_H
#define WEIR_EXPLORE_COPY_H

#include <string.h>

void *explore_copy(void *to, const void *from, size_t bytes);

#undef memcpy
#define memcpy(to, from, bytes) explore_copy((to), (from), (bytes))

#endif
