#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

#include "base/atomic.h"
#include "base/counter.h"

static uint64_t use_counter; /* 0 or 1; relaxed, because it orders no other memory */
static __thread struct counter_clock own;

static uint64_t read_clock(clockid_t id)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t clock_unix_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

/*
 * Reads a small file of the kernel as text: "" if it is missing or may not be read. 0, or WEIR_EIO
 * with errno set.
 */
static int read_small(const char *path, char *text, size_t bytes)
{
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, bytes - 1);
        int number = errno;
        (void)close(fd);
        errno = number;
    } else if (errno != ENOENT && errno != EACCES) {
        n = -1;
    }
    text[n > 0 ? n : 0] = '\0';
    return n < 0 ? WEIR_EIO : 0;
}

int64_t clock_boot_offset_ns(void)
{
    static const char name[] = "boottime";
    char text[256];
    (void)read_small("/proc/self/timens_offsets", text, sizeof text);
    char *at = strstr(text, name);
    if (at == NULL) {
        return 0;
    }
    int64_t seconds = strtoll(at + sizeof name - 1, &at, 10);
    return seconds * INT64_C(1000000000) + strtoll(at, NULL, 10);
}

uint64_t clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void clock_choose(void)
{
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char source[16];
    (void)read_small(path, source, sizeof source);
    store_relaxed(&use_counter, counter_usable(source));
}

static __attribute__((noinline)) uint64_t sync_own(void)
{
    if (load_relaxed(&use_counter) == 0) {
        own.span_ticks = 0;
        return counter_forward(&own, clock_boot_ns());
    }
    uint64_t before = counter_ticks();
    uint64_t now_ns = clock_boot_ns();
    return counter_sync(&own, before, now_ns, counter_ticks());
}

uint64_t clock_now_ns(void)
{
    uint64_t now_ns;
    /* Without a window the counter is not read, because this process may not be allowed to. */
    if (own.span_ticks != 0 && counter_read(&own, counter_ticks(), &now_ns)) {
        return now_ns;
    }
    return sync_own();
}

int clock_boot_id(struct boot_id *id)
{
    static const char digits[] = "0123456789abcdef";
    char text[64];
    *id = (struct boot_id){{0, 0}};
    int e = read_small("/proc/sys/kernel/random/boot_id", text, sizeof text);
    for (const char *p = text; *p != '\0'; p++) {
        const char *digit = strchr(digits, *p);
        if (digit != NULL) {
            id->word[0] = id->word[0] << 4 | id->word[1] >> 60;
            id->word[1] = id->word[1] << 4 | (uint64_t)(digit - digits);
        }
    }
    return e;
}
