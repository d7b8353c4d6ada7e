#include "support/server/run_delay.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

/* Returns the second number of a schedstat file. */
static uint64_t read_delay(const char *path)
{
    uint64_t ran_ns;
    uint64_t waited_ns = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return 0;
    }
    int read = fscanf(f, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns);
    (void)fclose(f);
    return read == 2 ? waited_ns : 0;
}

uint64_t run_delay_ns(void)
{
    return read_delay("/proc/thread-self/schedstat");
}

uint64_t run_delay_of_process_ns(pid_t pid)
{
    char path[320];
    uint64_t sum_ns = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        (void)snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)pid, e->d_name);
        sum_ns += e->d_name[0] != '.' ? read_delay(path) : 0;
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    return sum_ns;
}
