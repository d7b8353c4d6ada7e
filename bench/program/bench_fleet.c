/*
 * weir-bench fleet: measures decisions of one process through libweir-redis, and their cost to
 * the store.
 */
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include <weir_fleet.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "common/digits.h"
#include "rules/value/quantity.h"

#define RUN_EVERY 256 /* most questions between two runs of the loop */

struct asked {
    struct weir_fleet_options fleet;
    struct weir_fleet_limit_options limit;
    struct rate rate;
    int consistency; /* index of modes[] */
    int algorithm;   /* index of algorithms[] */
    uint64_t in_flight;
    uint64_t keys;
    uint64_t duration_ns;
    bool json;
};

#define TO(member) .to = offsetof(struct asked, member)

static const char *const modes[] = {"exact", "leased", "synced", NULL};
_Static_assert(WEIR_FLEET_LEASED == WEIR_FLEET_EXACT + 1 &&
                   WEIR_FLEET_SYNCED == WEIR_FLEET_EXACT + 2,
               "modes[] begins with EXACT");

static const char *const algorithms[] = {"token_bucket",   "leaky_bucket", "fixed_window",
                                         "sliding_window", "sliding_log",  NULL};
_Static_assert(WEIR_TOKEN_BUCKET == 1 && WEIR_SLIDING_LOG == 5, "algorithms[] begins with 1");

static const struct cli_option options[] = {
    {"--store", "URL", "URL of the store; default redis://127.0.0.1:6379", cli_read_text,
     TO(fleet.url)},
    {"--consistency", "HOW", "exact, leased or synced; default exact", cli_read_choice,
     TO(consistency), .choices = modes},
    {"--in-flight", "N", "questions that wait at once, 1 to 4096; default 64", cli_read_count,
     TO(in_flight), 1, 4096},
    {"--keys", "N", "different keys, asked in turn, up to 100M; default 1", cli_read_count,
     TO(keys), 1, 100000000},
    {"--algorithm", "NAME", "algorithm of the limit; default token_bucket", cli_read_choice,
     TO(algorithm), .choices = algorithms},
    {"--rate", "N/PERIOD", "rate of the limit; default 1000000/s", cli_read_rate, TO(rate)},
    {"--burst", "N", "burst of a token_bucket; default the count of its rate", cli_read_count,
     TO(limit.limit.burst), 1, UINT64_C(1) << 40},
    {"--deadline", "TIME", "deadline of a decision; default 1s, so that the store is measured",
     cli_read_duration, TO(fleet.deadline_ns), 1, WEIR_HOUR},
    {"--duration", "TIME", "how long questions are asked; default 3s", cli_read_duration,
     TO(duration_ns), 1, WEIR_HOUR},
    {"--json", NULL, "print one JSON object instead of a table", cli_read_switch, TO(json)},
};

static int run(const struct cli_given *given, void *settings);

static const struct asked defaults = {.fleet = {.size = sizeof(struct weir_fleet_options),
                                                .flags = WEIR_FLEET_CALLERS_LOOP,
                                                .url = "redis://127.0.0.1:6379",
                                                .deadline_ns = WEIR_SECOND},
                                      .limit = WEIR_FLEET_LIMIT_OPTIONS_INIT,
                                      .rate = {1000000, WEIR_SECOND},
                                      .in_flight = 64,
                                      .keys = 1,
                                      .duration_ns = 3 * WEIR_SECOND};

const struct cli_command bench_fleet_command =
    CLI_COMMAND("fleet", "", "measure decisions that need a store", options, defaults, run);

/* ---- asking ---- */

struct asking {
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit;
    uint64_t keys;
    uint64_t next;     /* number of the next key */
    uint64_t until_ns; /* until then, each answer leads to a new question */
    uint64_t waiting;
    uint64_t decisions;
    uint64_t verdicts[WEIR_NEVER + 1];
    uint64_t degraded;
    int error;
};

static void note(struct asking *a, const struct weir_answer *answer)
{
    a->decisions++;
    a->verdicts[answer->verdict]++;
    a->degraded += (answer->flags & WEIR_FLAG_DEGRADED) != 0;
}

static void on_answer(void *arg, int error, const struct weir_answer *answer);

static void ask(struct asking *a)
{
    char key[4 + DIGITS_MAX] = "key:";
    size_t len = 4 + digits_write(a->next, 10, 1, key + 4);
    struct weir_question q = {.key = key, .key_len = len, .cost = 1, .mode = WEIR_CHECK};
    struct weir_answer answer;
    a->next = a->next + 1 < a->keys ? a->next + 1 : 0;
    int said = weir_fleet_ask(a->limit, &q, &answer, on_answer, a);
    if (said == 1) {
        note(a, &answer);
    } else if (said == 0) {
        a->waiting++;
    } else {
        a->error = said;
    }
}

static void on_answer(void *arg, int error, const struct weir_answer *answer)
{
    struct asking *a = arg;
    a->waiting--;
    a->error = error != 0 ? error : a->error;
    if (error == 0) {
        note(a, answer);
    }
    if (a->error == 0 && clock_boot_ns() < a->until_ns) {
        ask(a);
    }
}

static void wait_for_answers(const struct asking *a)
{
    struct pollfd p = {.fd = weir_fleet_fd(a->fleet), .events = POLLIN};
    (void)poll(&p, 1, weir_fleet_timeout_ms(a->fleet));
}

/*
 * Asks as many questions as may be in flight, then takes their answers. Questions that need no
 * store are answered at once.
 */
static void ask_until(struct asking *a, uint64_t in_flight, uint64_t until_ns)
{
    a->until_ns = until_ns;
    while (a->error == 0 && clock_boot_ns() < until_ns) {
        for (unsigned i = 0; i < RUN_EVERY && a->waiting < in_flight && a->error == 0; i++) {
            ask(a);
        }
        if (a->waiting >= in_flight) {
            wait_for_answers(a);
        }
        (void)weir_fleet_run(a->fleet);
    }
}

static void drain(struct asking *a)
{
    while (a->waiting > 0) {
        (void)weir_fleet_run(a->fleet);
        if (a->waiting > 0) {
            wait_for_answers(a);
        }
    }
}

/* ---- the report ---- */

struct measured {
    double seconds;
    double cpu_s;
    uint64_t calls;
};

static void report(const struct asked *asked, const struct asking *a, const struct measured *m)
{
    double n = (double)(a->decisions > 0 ? a->decisions : 1);
    const char *form = asked->json ? "{\"consistency\":\"%s\",\"in_flight\":%llu,\"keys\":%llu,"
                                     "\"decisions\":%llu,\"per_second\":%.0f,\"cpu_ns\":%.1f,"
                                     "\"calls\":%llu,\"calls_per_1000\":%.3f,\"allowed\":%llu,"
                                     "\"denied\":%llu,\"degraded\":%llu}\n"
                                   : "%s, %llu in flight, %llu keys\n"
                                     "%llu decisions, %.0f per second, %.1f ns of CPU each\n"
                                     "%llu calls to the store, %.3f per 1,000 decisions\n"
                                     "%llu allowed, %llu denied, %llu degraded\n";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)printf(form, modes[weir_fleet_limit_consistency(a->limit) - WEIR_FLEET_EXACT],
                 (unsigned long long)asked->in_flight, (unsigned long long)asked->keys,
                 (unsigned long long)a->decisions, n / m->seconds, m->cpu_s * 1e9 / n,
                 (unsigned long long)m->calls, (double)m->calls * 1000 / n,
                 (unsigned long long)a->verdicts[WEIR_ALLOW],
                 (unsigned long long)a->verdicts[WEIR_DENY], (unsigned long long)a->degraded);
#pragma GCC diagnostic pop
}

static uint64_t calls_of(struct weir_fleet *fleet)
{
    struct weir_fleet_stats stats = {.size = sizeof stats};
    return weir_fleet_stats_read(fleet, &stats) == 0 ? stats.calls : 0;
}

static double cpu_s(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Asks until the connection is open, the scripts are loaded and the store answers; for at most 2 s
 * and two deadlines. Returns CLI_OK, or CLI_FAILED after a message.
 */
static int warm_up(struct asking *a, uint64_t deadline_ns)
{
    uint64_t until_ns = clock_boot_ns() + 2 * WEIR_SECOND + 2 * deadline_ns;
    do {
        a->degraded = 0;
        ask(a);
        drain(a);
    } while (a->degraded > 0 && a->error == 0 && clock_boot_ns() < until_ns);
    if (a->degraded > 0) {
        return cli_fail(&bench_fleet_command, "the store does not answer");
    }
    return CLI_OK;
}

static int measure(const struct asked *asked, struct asking *a)
{
    int code = warm_up(a, asked->fleet.deadline_ns);
    if (code != CLI_OK) {
        return code;
    }
    uint64_t calls = calls_of(a->fleet);
    double cpu = cpu_s();
    uint64_t began_ns = clock_boot_ns();
    a->decisions = 0;
    memset(a->verdicts, 0, sizeof a->verdicts);
    ask_until(a, asked->in_flight, began_ns + asked->duration_ns);
    drain(a);
    if (a->error != 0) {
        return cli_fail(&bench_fleet_command, "%s", weir_strerror(a->error));
    }
    struct measured m = {(double)(clock_boot_ns() - began_ns) / 1e9, cpu_s() - cpu,
                         calls_of(a->fleet) - calls};
    report(asked, a, &m);
    return CLI_OK;
}

static int run_with(const struct asked *asked)
{
    struct weir_error error;
    struct asking a = {.keys = asked->keys};
    int e = weir_fleet_open(&a.fleet, &asked->fleet, &error);
    e = e == 0 ? weir_fleet_limit_open(&a.limit, a.fleet, &asked->limit, &error) : e;
    int code = e == 0 ? measure(asked, &a) : cli_fail(&bench_fleet_command, "%s", error.text);
    weir_fleet_limit_close(a.limit);
    weir_fleet_close(a.fleet);
    return code;
}

static int run(const struct cli_given *given, void *settings)
{
    struct asked *asked = settings;
    (void)given;
    asked->limit.name = "bench";
    asked->limit.consistency = WEIR_FLEET_EXACT + asked->consistency;
    asked->limit.limit.algorithm = WEIR_TOKEN_BUCKET + asked->algorithm;
    asked->limit.limit.count = asked->rate.count;
    asked->limit.limit.period_ns = asked->rate.period_ns;
    return run_with(asked);
}
