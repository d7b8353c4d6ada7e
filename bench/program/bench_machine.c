/* Reads what the kernel reports about the machine and about this process. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_core.h"

/* Copies the rest of the first line that begins with `name`; "" if there is none. */
static void read_line(const char *path, const char *name, char *out, size_t size)
{
    char line[512];
    FILE *f = fopen(path, "re");
    out[0] = '\0';
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            (void)snprintf(out, size, "%s", line + strlen(name));
            out[strcspn(out, "\n")] = '\0';
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

/* Reads "<name>   123 kB" from a file of /proc. Returns bytes. */
static uint64_t read_bytes(const char *path, const char *name)
{
    char text[64];
    read_line(path, name, text, sizeof text);
    return strtoull(text, NULL, 10) * 1024;
}

uint64_t bench_resident_bytes(void)
{
    return read_bytes("/proc/self/smaps_rollup", "Rss:") +
           read_bytes("/proc/self/status", "VmPTE:");
}

uint64_t bench_busy_ns(int cpu)
{
    enum { USER, NICE, SYSTEM, IDLE, IO_WAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    char name[32];
    char text[256];
    char *p = text;
    uint64_t ticks = 0;
    if (cpu < 0) {
        return 0;
    }
    (void)snprintf(name, sizeof name, "cpu%d ", cpu);
    read_line("/proc/stat", name, text, sizeof text);
    for (int i = 0; i < FIELDS; i++) {
        uint64_t n = strtoull(p, &p, 10);
        ticks += i != IDLE && i != IO_WAIT ? n : 0;
    }
    return ticks * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
}

/*
 * Returns the page size of most of the memory. Tables, floors and rivals are nearly all of it
 * and are on the same kind of pages.
 */
static long page_bytes(void)
{
    uint64_t huge = read_bytes("/proc/self/smaps_rollup", "AnonHugePages:");
    uint64_t all = read_bytes("/proc/self/smaps_rollup", "Rss:");
    return huge > all / 2 ? 2l << 20 : sysconf(_SC_PAGESIZE);
}

void bench_read_machine(struct machine *m)
{
    cpu_set_t set;
    char text[sizeof m->cpu];
    memset(m, 0, sizeof *m);
    read_line("/proc/cpuinfo", "model name", text, sizeof text);
    text[strcspn(text, "\"\\")] = '\0'; /* the text goes into a JSON string */
    const char *colon = strchr(text, ':');
    (void)snprintf(m->cpu, sizeof m->cpu, "%s", colon != NULL ? colon + 2 : "unknown");
    (void)uname(&m->system);
    m->cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    m->page_bytes = page_bytes();
}
