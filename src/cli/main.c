#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    static char help[] = "help";
    static char version[] = "version";
    if (argc < 2) {
        cli_list(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        argv[1] = help;
    } else if (strcmp(argv[1], "--version") == 0) {
        argv[1] = version;
    }
    int code = cli_dispatch(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fprintf(stderr, "weir: cannot write the output\n");
        return CLI_FAILED;
    }
    return code;
}
