/*
 * weir demo: replays a second and a half of invented traffic at explicit times through each
 * algorithm, so that their behaviour can be compared side by side.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir.h>

#include "base/algorithms.h"
#include "cli/cli.h"

#define TICK_NS (25 * WEIR_MILLISECOND)
#define TICKS 60

/* Returns the requests per tick: steady, a burst across the one-second edge, silence, steady. */
static unsigned offered(unsigned tick)
{
    if (tick >= 36 && tick < 44) {
        return 3;
    }
    return tick < 12 || tick >= 50 ? tick % 2 : 0;
}

static int run_one(int algorithm)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct weir *w;
    char row[TICKS + 1] = {0};
    unsigned allowed = 0;
    unsigned denied = 0;
    o.algorithm = algorithm;
    o.count = 10;
    o.period_ns = WEIR_SECOND;
    o.queue = algorithm_has(algorithm, HAS_QUEUE) ? 9 : 0;
    o.max_keys = 10;
    o.flags = WEIR_EXPLICIT_TIME;
    if (weir_open(&w, &o, &error) != 0) {
        return cli_fail(&cli_demo, "%s", error.text);
    }
    for (unsigned tick = 0; tick < TICKS; tick++) {
        unsigned passed = 0;
        for (unsigned i = 0; i < offered(tick); i++) {
            struct weir_answer a;
            if (weir_check_at(w, "alice", 5, 1, tick * TICK_NS, &a) == 0) {
                passed += a.verdict == WEIR_ALLOW;
            }
        }
        allowed += passed;
        denied += offered(tick) - passed;
        row[tick] = "x+#"[passed == 0 ? 0 : passed == offered(tick) ? 2 : 1];
        row[tick] = offered(tick) == 0 ? '.' : row[tick];
    }
    (void)printf("  %-15s %s  %2u admitted, %2u denied\n", weir_algorithm_name(algorithm), row,
                 allowed, denied);
    weir_close(w);
    return CLI_OK;
}

/* With the real clock: asks for one key until the answer is deny, with the time to retry. */
static int run_live(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_answer a;
    struct weir *w;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 5;
    o.period_ns = WEIR_MINUTE;
    if (weir_open(&w, &o, NULL) != 0) {
        return CLI_FAILED;
    }
    (void)printf("\nA login that is limited to 5 per minute, with the real clock:\n\n");
    do {
        if (weir_check(w, "203.0.113.7", 11, 1, &a) != 0) {
            weir_close(w);
            return CLI_FAILED;
        }
        (void)printf("  %-5s  remaining %" PRIu64 "  retry after %.3f s  full again in %.3f s\n",
                     a.verdict == WEIR_ALLOW ? "allow" : "deny", a.remaining,
                     (double)a.retry_after_ns / 1e9, (double)a.reset_after_ns / 1e9);
    } while (a.verdict == WEIR_ALLOW);
    weir_close(w);
    return CLI_OK;
}

static int run(const struct cli_given *given, void *settings)
{
    (void)given;
    (void)settings;
    (void)printf("10 per second for one key; 1.5 s of traffic in ticks of 25 ms; a new window\n"
                 "begins at the bar. # all admitted  + some  x none  . no request\n\n"
                 "  %-15s %40s|\n",
                 "", "");
    for (int algorithm = 1; algorithm < ALGORITHMS_END; algorithm++) {
        if (run_one(algorithm) != CLI_OK) {
            return CLI_FAILED;
        }
    }
    return run_live();
}

const struct cli_command cli_demo = {"demo", "", "show how each algorithm limits the same traffic",
                                     .run = run};
