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

static uint64_t use_counter; /* 0 or 1; says nothing about other memory, so relaxed */
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

/* Reads a small file of /proc as text. Its length, 0 where there is none, or -1 with errno set. */
static ssize_t read_small(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || errno == EACCES ? 0 : -1;
    }
    ssize_t n = read(fd, text, bytes - 1);
    int number = errno;
    (void)close(fd);
    errno = number;
    text[n > 0 ? n : 0] = '\0';
    return n;
}

int64_t clock_boot_offset_ns(void)
{
    static const char name[] = "boottime";
    char text[256];
    ssize_t n = read_small("/proc/self/timens_offsets", text, sizeof text);
    char *at = n > 0 ? strstr(text, name) : NULL;
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
    store_relaxed(
        &use_counter,
        counter_usable("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
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
    /* Where there is no window, the counter is not read: perhaps it must not be. */
    if (own.span_ticks != 0 && counter_read(&own, counter_ticks(), &now_ns)) {
        return now_ns;
    }
    return sync_own();
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int clock_boot_id(struct boot_id *id)
{
    char text[64];
    *id = (struct boot_id){{0, 0}};
    ssize_t n = read_small("/proc/sys/kernel/random/boot_id", text, sizeof text);
    for (ssize_t i = 0; i < n; i++) {
        int digit = hex_digit(text[i]);
        if (digit >= 0) {
            id->word[0] = id->word[0] << 4 | id->word[1] >> 60;
            id->word[1] = id->word[1] << 4 | (uint64_t)digit;
        }
    }
    return n < 0 ? WEIR_EIO : 0;
}
