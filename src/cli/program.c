/* The commands of `weir`, in the order in which help and the manual list them. */
#include "cli/cli.h"

const char *const cli_program = "weir";

const struct cli_command *const cli_commands[] = {
    &cli_serve,
    &cli_check,
    &cli_ask,
    &cli_ctl,
    &cli_top,
    &cli_watch,
    &cli_demo,
    &cli_replay,
    &cli_simulate,
    &cli_config_check,
    &cli_config_show,
    &cli_config_convert,
    &cli_bench_load,
    &cli_completion,
    &cli_version,
    &cli_help,
    NULL,
};
