/*
 * weir-bench core: measures what the engine costs. bench_core.h lists the files that do the
 * measuring.
 */
#include <errno.h>
#include <stdlib.h>

#include "bench_core.h"
#include "cli/cli.h"

#define KEYS UINT64_C(10000000)
#define ROUNDS 7
#define QUICK_KEYS UINT64_C(100000)
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define QUICK_EASE 400
#else
#define QUICK_EASE 40
#endif

enum { JSON, ROUNDS_N, KEYS_N, HUGE, QUICK };

static const struct cli_option options[] = {
    [JSON] = {"--json", NULL, "one object instead of a table"},
    [ROUNDS_N] = {"--rounds", "N", "how often each figure is measured: 5 to 99, else 7"},
    [KEYS_N] = {"--keys", "N", "live keys of the large tables: 1000 and up, else 10000000"},
    [HUGE] = {"--huge", NULL, "everything large on 2 MiB pages"},
    [QUICK] = {"--quick", NULL, "few keys, short loops: a smoke test, not a measurement"},
};

static int run(int argc, char **argv);

const struct cli_command bench_core_command =
    CLI_COMMAND("core", "", "measure the engine next to its floors", options, run);

/* Reads a whole number from min to max. Returns 0, or CLI_USAGE after a message. */
static int read_number(const struct cli_args *args, int row, uint64_t min, uint64_t max,
                       uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(args->value, &end, 10);
    if (args->value[0] < '0' || args->value[0] > '9' || errno != 0 || *end != '\0' ||
        *number < min || *number > max) {
        return cli_complain(args->command, "%s is '%s', expected a whole number from %llu to %llu",
                            options[row].name, args->value, (unsigned long long)min,
                            (unsigned long long)max);
    }
    return 0;
}

static int read_option(const struct cli_args *args, int row, struct bench_options *o)
{
    uint64_t number;
    int code = 0;
    switch (row) {
    case JSON:
        o->json = true;
        return 0;
    case HUGE:
        o->huge = true;
        return 0;
    case QUICK:
        o->ease = QUICK_EASE;
        o->rounds = BENCH_ROUNDS_MIN;
        o->keys = QUICK_KEYS;
        return 0;
    case ROUNDS_N:
        code = read_number(args, row, BENCH_ROUNDS_MIN, BENCH_ROUNDS_MAX, &number);
        o->rounds = (unsigned)number;
        return code;
    case KEYS_N:
        return read_number(args, row, BENCH_KEYS_MIN, BENCH_KEYS_MAX, &o->keys);
    default:
        return cli_complain(args->command, "takes no arguments, found '%s'", args->value);
    }
}

static int run(int argc, char **argv)
{
    struct bench_options asked = {.keys = KEYS, .rounds = ROUNDS, .ease = 1};
    struct cli_args args;
    cli_args_init(&args, &bench_core_command, argc, argv);
    for (int row; (row = cli_next(&args)) != CLI_END;) {
        if (row == CLI_HELP || row == CLI_BAD) {
            return row == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        if (read_option(&args, row, &asked) != 0) {
            return CLI_USAGE;
        }
    }
    return bench_core(&asked) == 0 ? CLI_OK : CLI_FAILED;
}
