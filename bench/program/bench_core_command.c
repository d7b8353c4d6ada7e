/*
 * weir-bench core: measures what the engine costs. bench_core.h lists the files that do the
 * measuring.
 */
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

#define TO(member) .to = offsetof(struct bench_options, member)

static int read_quick(const struct cli_value *value, void *to)
{
    struct bench_options *o = to;
    (void)value;
    o->ease = QUICK_EASE;
    o->rounds = BENCH_ROUNDS_MIN;
    o->keys = QUICK_KEYS;
    return CLI_OK;
}

static const struct cli_option options[] = {
    {"--json", NULL, "print one JSON object instead of a table", cli_read_switch, TO(json)},
    {"--rounds", "N", "how often each figure is measured, 5 to 99; default 7", cli_read_unsigned,
     TO(rounds), BENCH_ROUNDS_MIN, BENCH_ROUNDS_MAX},
    {"--keys", "N", "live keys of the large tables, 1000 to 100M; default 10M", cli_read_count,
     TO(keys), BENCH_KEYS_MIN, BENCH_KEYS_MAX},
    {"--huge", NULL, "put everything large on pages of 2 MiB", cli_read_switch, TO(huge)},
    {"--quick", NULL, "few keys, short loops: a smoke test, not a measurement", .read = read_quick},
};

static int run(const struct cli_given *given, void *settings)
{
    (void)given;
    return bench_core(settings) == 0 ? CLI_OK : CLI_FAILED;
}

static const struct bench_options defaults = {.keys = KEYS, .rounds = ROUNDS, .ease = 1};

const struct cli_command bench_core_command =
    CLI_COMMAND("core", "", "measure the engine next to its floors", options, defaults, run);
