#include "cli/output/progress_bar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/maths.h"

#define BAR_WIDTH 40

bool progress_bar_is_seen(void)
{
    return isatty(STDERR_FILENO) == 1;
}

void progress_bar_draw(uint64_t done, uint64_t total, const char *text)
{
    char bar[BAR_WIDTH + 1] = "";
    if (total == 0) {
        (void)fprintf(stderr, "\r%s\033[K", text);
        return;
    }
    done = min_u64(done, total);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', mul_div(done, BAR_WIDTH, total));
    (void)fprintf(stderr, "\r%s %3" PRIu64 " %%  %s\033[K", bar, mul_div(done, 100, total), text);
}

void progress_bar_clear(void)
{
    (void)fputs("\r\033[K", stderr);
}
