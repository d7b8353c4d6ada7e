#include "server/loop/processors.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096
#define LINE_BYTES 4096

/* Reads the first line of a file of a group; returns false if there is none. */
static bool read_line(const char *folder, const char *name, char *line, size_t size)
{
    char path[PATH_BYTES + 32];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "re");
    bool got = in != NULL && fgets(line, (int)size, in) != NULL;
    if (in != NULL) {
        (void)fclose(in);
    }
    return got;
}

/* Returns the number at the start of the text; 0 for "max", -1 and anything else. */
static uint64_t number_of(const char *text)
{
    return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : 0;
}

static unsigned rounded_up(uint64_t quota, uint64_t period)
{
    uint64_t n = quota > 0 && period > 0 ? (quota - 1) / period + 1 : 0;
    return n > UINT32_MAX ? 0 : (unsigned)n;
}

/* Returns the quota of one group: version 2 has cpu.max, "150000 100000" or "max 100000", and
 * version 1 has a file for each of the two numbers. */
static unsigned quota_in(const char *folder)
{
    char quota[64];
    char period[64];
    if (read_line(folder, "cpu.max", quota, sizeof quota)) {
        const char *space = strchr(quota, ' ');
        return rounded_up(number_of(quota), space != NULL ? number_of(space + 1) : 0);
    }
    bool both = read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) &&
                read_line(folder, "cpu.cfs_period_us", period, sizeof period);
    return both ? rounded_up(number_of(quota), number_of(period)) : 0;
}

static unsigned least(unsigned a, unsigned b)
{
    return a == 0 ? b : b == 0 || a < b ? a : b;
}

/* Returns the smallest quota of a group and the groups above it, because all of them apply. */
static unsigned quota_of(const char *mount, const char *group)
{
    char folder[PATH_BYTES];
    unsigned n = 0;
    int len = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (len < 0 || (size_t)len >= sizeof folder) {
        return 0;
    }
    for (;;) {
        n = least(n, quota_in(folder));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < strlen(mount)) {
            return n;
        }
        *slash = '\0';
    }
}

/* Returns true if a list such as "cpu,cpuacct" has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, word, n) == 0 && (at[n] == '\0' || at[n] == ',')) {
            return true;
        }
    }
    return false;
}

/* Returns the quota by a line of /proc/self/cgroup: "0::/group" in version 2,
 * "4:cpu,cpuacct:/group" in version 1. */
static unsigned quota_by_line(const char *root, char *line)
{
    char mount[PATH_BYTES];
    char *list = strchr(line, ':');
    char *group = list != NULL ? strchr(list + 1, ':') : NULL;
    if (group == NULL) {
        return 0;
    }
    *group++ = '\0';
    list++;
    group[strcspn(group, "\n")] = '\0';
    if (list[0] == '\0') {
        (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
        return quota_of(mount, group);
    }
    if (!has_word(list, "cpu")) {
        return 0;
    }
    (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, list);
    unsigned n = quota_of(mount, group);
    (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
    return least(n, quota_of(mount, group));
}

unsigned processors_by_quota(const char *root)
{
    char path[PATH_BYTES];
    char line[LINE_BYTES];
    unsigned n = 0;
    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *in = fopen(path, "re");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        n = least(n, quota_by_line(root, line));
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    return n;
}

unsigned processors_allowed(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return least(n < 1 ? 1 : (unsigned)n, processors_by_quota(""));
}
