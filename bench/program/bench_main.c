/* weir-bench: measures the engine, the rules, the calls of a fleet, and replies of a server. */
#include "cli/cli.h"

extern const struct cli_command bench_core_command, bench_fleet_command, bench_load_command,
    bench_rules_command;

const char *const cli_program = "weir-bench";

const struct cli_command *const cli_commands[] = {
    &bench_core_command,
    &bench_rules_command,
    &bench_fleet_command,
    &bench_load_command,
    &cli_version,
    &cli_help,
    NULL,
};

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
