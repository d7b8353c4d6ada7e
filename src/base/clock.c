#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

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

uint64_t clock_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
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
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || errno == EACCES ? 0 : WEIR_EIO;
    }
    ssize_t n = read(fd, text, sizeof text);
    int number = errno;
    (void)close(fd);
    errno = number;
    for (ssize_t i = 0; i < n; i++) {
        int digit = hex_digit(text[i]);
        if (digit >= 0) {
            id->word[0] = id->word[0] << 4 | id->word[1] >> 60;
            id->word[1] = id->word[1] << 4 | (uint64_t)digit;
        }
    }
    return n < 0 ? WEIR_EIO : 0;
}
