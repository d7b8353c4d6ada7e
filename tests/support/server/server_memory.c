#include "support/server/server_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

size_t server_resident_bytes(void)
{
    char line[256] = "";
    FILE *in = fopen("/proc/self/statm", "r");
    assert_non_null(in);
    assert_non_null(fgets(line, sizeof line, in));
    (void)fclose(in);
    return strtoul(strchr(line, ' '), NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

void server_assert_grown_less(size_t before, size_t bytes)
{
    size_t now = server_resident_bytes();
    if (THREADS_ASAN + THREADS_TSAN == 0 && now > before + bytes) {
        fail_msg("%zu bytes more, expected at most %zu", now - before, bytes);
    }
}
