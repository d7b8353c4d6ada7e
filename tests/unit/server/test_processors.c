#include "server/loop/processors.h"
#include "support/engine/unit_limiter.h"

#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char root[] = "/tmp/weir-processors-XXXXXX";

/* A file below the root, with the folders on the way. */
static void put(const char *path, const char *text)
{
    char full[512];
    (void)snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    FILE *out = fopen(full, "w");
    assert_non_null(out);
    (void)fputs(text, out);
    (void)fclose(out);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int begin(void **state)
{
    (void)snprintf(root, sizeof root, "/tmp/weir-processors-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int end(void **state)
{
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void no_group_is_no_quota(void **state)
{
    assert_int_equal(processors_by_quota(root), 0);
    put("/proc/self/cgroup", "0::/a/b\n");
    assert_int_equal(processors_by_quota(root), 0);
}

static void a_quota_is_rounded_up_to_whole_processors(void **state)
{
    static const struct {
        const char *max;
        unsigned processors;
    } rows[] = {{"max 100000\n", 0},    {"100000 100000\n", 1},
                {"100001 100000\n", 2}, {"20000 100000\n", 1},
                {"350000 100000\n", 4}, {"1 100000\n", 1},
                {"nonsense\n", 0},      {"", 0},
                {"100000\n", 0},        {"100000 0\n", 0}};
    put("/proc/self/cgroup", "0::/\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put("/sys/fs/cgroup/cpu.max", rows[i].max);
        assert_int_equal(processors_by_quota(root), rows[i].processors);
    }
}

static void the_groups_above_count_too(void **state)
{
    put("/proc/self/cgroup", "0::/pod/container\n");
    put("/sys/fs/cgroup/pod/container/cpu.max", "800000 100000\n");
    assert_int_equal(processors_by_quota(root), 8);
    put("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
    assert_int_equal(processors_by_quota(root), 3);
    put("/sys/fs/cgroup/pod/container/cpu.max", "100000 100000\n");
    assert_int_equal(processors_by_quota(root), 1);
}

static void the_first_version_is_known_under_both_names(void **state)
{
    put("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/c\n3:cpuset:/docker/c\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/c/cpu.cfs_quota_us", "250000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/c/cpu.cfs_period_us", "100000\n");
    assert_int_equal(processors_by_quota(root), 3);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/c/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(processors_by_quota(root), 0);
    put("/sys/fs/cgroup/cpu/docker/c/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu/docker/c/cpu.cfs_period_us", "100000\n");
    assert_int_equal(processors_by_quota(root), 2);
}

static void the_affinity_counts(void **state)
{
    cpu_set_t before;
    cpu_set_t one;
    int first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(processors_allowed(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_in_range(processors_allowed(), 1, CPU_COUNT(&before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_group_is_no_quota, begin, end),
        cmocka_unit_test_setup_teardown(a_quota_is_rounded_up_to_whole_processors, begin, end),
        cmocka_unit_test_setup_teardown(the_groups_above_count_too, begin, end),
        cmocka_unit_test_setup_teardown(the_first_version_is_known_under_both_names, begin, end),
        cmocka_unit_test(the_affinity_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
