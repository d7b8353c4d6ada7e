/* Arrays that grow one item at a time. */
#ifndef WEIR_COMMON_ARRAY_H
#define WEIR_COMMON_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Appends *item (size bytes) to an array of *count items, which grows by doubling, may move, and is
 * freed with free(). `array` is the address of the pointer to its first item, NULL while it is
 * empty. False: out of memory, and the array and *count are as they were.
 */
static inline bool array_append(void *array, size_t *count, size_t size, const void *item)
{
    size_t n = *count;
    char *items;
    memcpy(&items, array, sizeof items); /* a pointer to any type */
    if ((n & (n - 1)) == 0) {            /* 0, 1, 2, 4, ...: the array is full */
        items = realloc(items, (n == 0 ? 1 : 2 * n) * size);
        if (items == NULL) {
            return false;
        }
        memcpy(array, &items, sizeof items);
    }
    memcpy(items + n * size, item, size);
    *count = n + 1;
    return true;
}

#endif
