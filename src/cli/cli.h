/* The subcommands of the program `weir`: one file each, one row in main.c each. */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

/* Exit codes. */
#define CLI_OK 0
#define CLI_FAILED 1 /* it ran, and did not succeed */
#define CLI_USAGE 2  /* bad input; nothing was done */

/* argv[0] is the subcommand's own name. */
int cli_bench(int argc, char **argv);
int cli_demo(int argc, char **argv);

#endif
