/* weir bench load: runs weir-bench, the program of the benchmarks, which is not part of this
 * one. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

#define BENCH "weir-bench"

/* Finds the path of weir-bench in the folder of this program. Without /proc it is empty. */
static void find_beside(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - sizeof BENCH);
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    path[0] = length > 0 ? path[0] : 0;
    memcpy(path + (length > 0 ? length : 1), BENCH, sizeof BENCH);
}

/* Returns the error that kept it from being run; does not return if it was. */
static int run_bench(char **words)
{
    char beside[PATH_MAX];
    find_beside(beside);
    (void)execv(beside, words);
    if (errno == ENOENT) {
        (void)execvp(BENCH, words);
    }
    return errno;
}

static int run(const struct cli_given *given, void *settings)
{
    char **words = calloc((size_t)given->count + 3, sizeof *words); /* NULL after the last */
    (void)settings;
    if (words == NULL) {
        return cli_fail(given->command, "out of memory");
    }
    words[0] = (char[]){BENCH};
    words[1] = (char[]){"load"};
    memcpy(words + 2, given->operands, (size_t)given->count * sizeof *words);
    int error = run_bench(words);
    free(words);
    return error == ENOENT
               ? cli_fail(given->command, "found no program " BENCH ", expected one beside weir or "
                                          "in the PATH; `make install` puts both into one folder")
               : cli_fail(given->command, "cannot run " BENCH ": %s", strerror(error));
}

const struct cli_command cli_bench_load = {
    .name = "bench load",
    .operands = "[WORD...]",
    .summary = "send requests on a schedule and measure how long replies take",
    .run = run,
    .verbatim = true,
};
