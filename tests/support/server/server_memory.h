/* Measures the memory of this process, and checks that clients did not make it grow. */
#ifndef WEIR_TESTS_SUPPORT_SERVER_MEMORY_H
#define WEIR_TESTS_SUPPORT_SERVER_MEMORY_H

#include <stddef.h>

size_t server_resident_bytes(void);

/* Does not judge under a sanitizer, which uses memory of its own. */
void server_assert_grown_less(size_t before, size_t bytes);

#endif
