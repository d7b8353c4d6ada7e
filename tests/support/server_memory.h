/* How much memory this process has, and that strangers did not make it grow. */
#ifndef WEIR_TESTS_SUPPORT_SERVER_MEMORY_H
#define WEIR_TESTS_SUPPORT_SERVER_MEMORY_H

#include <stddef.h>

size_t server_resident_bytes(void);

/* Not judged under a sanitizer, whose memory is its own. */
void server_assert_grown_less(size_t before, size_t bytes);

#endif
