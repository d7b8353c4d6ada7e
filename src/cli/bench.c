/* weir bench: what the engine costs. The measuring is in bench_core.h and behind it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_core.h"
#include "cli/cli.h"

#define KEYS UINT64_C(10000000)
#define ROUNDS 7
#define QUICK_KEYS UINT64_C(100000)
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define QUICK_EASE 400
#else
#define QUICK_EASE 40
#endif

/* After a complaint on standard error; --help gets it on standard output. */
static int usage(FILE *out)
{
    (void)fprintf(out,
                  "usage: weir bench core [--json] [--rounds N] [--keys N] [--huge] [--quick]\n"
                  "  --json      one object instead of a table\n"
                  "  --rounds N  how often each figure is measured: %d to %d, else %d\n"
                  "  --keys N    live keys of the large tables: %d and up, else 10000000\n"
                  "  --huge      everything large on 2 MiB pages\n"
                  "  --quick     few keys, short loops: a smoke test, not a measurement\n",
                  BENCH_ROUNDS_MIN, BENCH_ROUNDS_MAX, ROUNDS, BENCH_KEYS_MIN);
    return out == stdout ? CLI_OK : CLI_USAGE;
}

/* 0, or -1 if text is not a whole number from min to max. */
static int read_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return -1;
    }
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno != 0 || *end != '\0' || *number < min || *number > max ? -1 : 0;
}

/* How many words were used; 0 if they are no option. */
static int read_option(char **word, struct bench_options *o)
{
    uint64_t number;
    if (strcmp(word[0], "--json") == 0) {
        o->json = true;
    } else if (strcmp(word[0], "--huge") == 0) {
        o->huge = true;
    } else if (strcmp(word[0], "--quick") == 0) {
        o->ease = QUICK_EASE;
        o->rounds = BENCH_ROUNDS_MIN;
        o->keys = QUICK_KEYS;
    } else if (strcmp(word[0], "--rounds") == 0) {
        if (read_number(word[1], BENCH_ROUNDS_MIN, BENCH_ROUNDS_MAX, &number) != 0) {
            return 0;
        }
        o->rounds = (unsigned)number;
        return 2;
    } else if (strcmp(word[0], "--keys") == 0) {
        return read_number(word[1], BENCH_KEYS_MIN, BENCH_KEYS_MAX, &o->keys) == 0 ? 2 : 0;
    } else {
        return 0;
    }
    return 1;
}

int cli_bench(int argc, char **argv)
{
    struct bench_options options = {.keys = KEYS, .rounds = ROUNDS, .ease = 1};
    if (argc >= 2 && strcmp(argv[argc - 1], "--help") == 0) {
        return usage(stdout);
    }
    if (argc < 2 || strcmp(argv[1], "core") != 0) {
        (void)fprintf(stderr, "weir bench: expected 'core', found %s\n",
                      argc < 2 ? "nothing" : argv[1]);
        return usage(stderr);
    }
    for (int i = 2; i < argc;) {
        int used = read_option(&argv[i], &options);
        if (used == 0) {
            (void)fprintf(stderr, "weir bench: cannot use '%s%s%s'\n", argv[i],
                          i + 1 < argc ? " " : "", i + 1 < argc ? argv[i + 1] : "");
            return usage(stderr);
        }
        i += used;
    }
    return bench_core(&options) == 0 ? CLI_OK : CLI_FAILED;
}
