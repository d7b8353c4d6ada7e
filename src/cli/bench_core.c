/*
 * The figures, and the rounds. Each round measures every figure once, in turn, so
 * that a slow minute of the machine falls on figures and floors alike.
 */
#include "cli/bench_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double sample_threads2_speedup(struct bench *b, const struct figure *f);

#define HOT_OPS 4000000
#define MISS_OPS 1000000
/* 32 * 31250: whole batches, and still whole after a quick run's division. */
#define BATCH_OPS 2048000

#define HOT(algorithm) (SUBJECT_HOT + (algorithm)-1)
#define LOOP bench_sample

/* clang-format off: rows */
const struct figure bench_figures[] = {
    {.name = "clock_ns", .sample = LOOP, .lap = lap_clock, .threads = 1, .ops = HOT_OPS},
    {.name = "hash_cas_ns", .sample = LOOP, .lap = lap_hash_cas, .threads = 1, .ops = HOT_OPS},
    {.name = "hot_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = SUBJECT_HOT,
     .threads = 1,
     .ops = HOT_OPS,
     .floor = "hash_cas_ns",
     .relation = AT_MOST,
     .bound = 1.5},
    {.name = "hot_deny_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = SUBJECT_DENY,
     .threads = 1,
     .ops = HOT_OPS,
     .verdict = WEIR_DENY,
     .floor = "hash_cas_ns"},
    {.name = "hot_clock_ns",
     .sample = LOOP,
     .lap = lap_hot_clock,
     .subject = SUBJECT_CLOCK,
     .threads = 1,
     .ops = HOT_OPS,
     .floor = "clock_ns"},
    {.name = "algo.token_bucket.hot_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = HOT(WEIR_TOKEN_BUCKET),
     .threads = 1,
     .ops = HOT_OPS,
     .floor = "hash_cas_ns"},
    {.name = "algo.leaky_bucket.hot_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = HOT(WEIR_LEAKY_BUCKET),
     .threads = 1,
     .ops = HOT_OPS,
     .floor = "hash_cas_ns"},
    {.name = "algo.fixed_window.hot_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = HOT(WEIR_FIXED_WINDOW),
     .threads = 1,
     .ops = HOT_OPS,
     .floor = "hash_cas_ns"},
    {.name = "algo.sliding_window.hot_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = HOT(WEIR_SLIDING_WINDOW),
     .threads = 1,
     .ops = HOT_OPS,
     .floor = "hash_cas_ns"},
    {.name = "algo.sliding_log.hot_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = HOT(WEIR_SLIDING_LOG),
     .threads = 1,
     .ops = HOT_OPS,
     .floor = "hash_cas_ns"},
    {.name = "hot2_ns",
     .sample = LOOP,
     .lap = lap_hot,
     .subject = SUBJECT_LIVE,
     .threads = 2,
     .ops = HOT_OPS / 2,
     .floor = "hot_ns"},
    {.name = "threads2_speedup",
     .sample = sample_threads2_speedup,
     .lap = lap_known,
     .subject = SUBJECT_LIVE,
     .threads = 2,
     .ops = HOT_OPS,
     .relation = AT_LEAST,
     .bound = 1.9},
    {.name = "line_miss_ns", .sample = LOOP, .lap = lap_line_miss, .threads = 1, .ops = MISS_OPS},
    {.name = "random10m_ns",
     .sample = LOOP,
     .lap = lap_random,
     .subject = SUBJECT_LIVE,
     .threads = 1,
     .ops = MISS_OPS,
     .floor = "line_miss_ns",
     .relation = AT_MOST,
     .bound = 1.3},
    {.name = "random10m_chained_ns",
     .sample = LOOP,
     .lap = lap_random_chained,
     .subject = SUBJECT_LIVE,
     .threads = 1,
     .ops = MISS_OPS,
     .floor = "line_miss_ns"},
    {.name = "batch10m_ns",
     .sample = LOOP,
     .lap = lap_batch,
     .subject = SUBJECT_LIVE,
     .threads = 1,
     .ops = BATCH_OPS,
     .floor = "random10m_ns",
     .relation = AT_MOST,
     .bound = 0.28},
    {.name = "zipf10m_ns",
     .sample = LOOP,
     .lap = lap_zipf,
     .subject = SUBJECT_LIVE,
     .threads = 1,
     .ops = MISS_OPS,
     .floor = "line_miss_ns"},
    {.name = "full_flood_ns",
     .sample = LOOP,
     .lap = lap_flood,
     .subject = SUBJECT_FULL_EVICT,
     .threads = 1,
     .ops = MISS_OPS,
     .floor = "line_miss_ns",
     .relation = AT_MOST,
     .bound = 4},
    {.name = "full_flood_deny_ns",
     .sample = LOOP,
     .lap = lap_flood,
     .subject = SUBJECT_FULL_DENY,
     .threads = 1,
     .ops = MISS_OPS,
     .verdict = WEIR_DENY,
     .floor = "line_miss_ns"},
    {.name = "random10m_2t_ns",
     .sample = LOOP,
     .lap = lap_random,
     .subject = SUBJECT_LIVE,
     .threads = 2,
     .ops = MISS_OPS,
     .floor = "random10m_ns"},
    {.name = "batch10m_2t_ns",
     .sample = LOOP,
     .lap = lap_batch,
     .subject = SUBJECT_LIVE,
     .threads = 2,
     .ops = BATCH_OPS,
     .floor = "batch10m_ns"},
    {.name = "mutex_map_ns",
     .sample = LOOP,
     .lap = lap_mutex_map,
     .subject = SUBJECT_LIVE,
     .threads = 1,
     .ops = MISS_OPS,
     .floor = "random10m_ns"},
    {.name = "mutex_map_2t_ns",
     .sample = LOOP,
     .lap = lap_mutex_map,
     .subject = SUBJECT_LIVE,
     .threads = 2,
     .ops = MISS_OPS / 2,
     .sleeps = true,
     .floor = "random10m_2t_ns",
     .relation = AT_LEAST,
     .bound = 4},
    {.name = "striped_map_2t_ns",
     .sample = LOOP,
     .lap = lap_striped_map,
     .subject = SUBJECT_LIVE,
     .threads = 2,
     .ops = MISS_OPS,
     .sleeps = true,
     .floor = "batch10m_2t_ns",
     .relation = AT_LEAST,
     .bound = 2.5},
    {.name = "new_key_ns",
     .sample = sample_new_key,
     .lap = lap_count,
     .subject = SUBJECT_FRESH,
     .threads = 1,
     .cold = true,
     .floor = "line_miss_ns"},
    {.name = "lost_keys",
     .sample = sample_lost_keys,
     .worst = true,
     .relation = EXACTLY,
     .bound = 0},
    {.name = "bytes_per_key", .sample = sample_bytes_per_key, .relation = AT_MOST, .bound = 21},
};
/* clang-format on */
#define FIGURES (sizeof bench_figures / sizeof bench_figures[0])
const unsigned bench_figure_count = FIGURES;

/* Two threads with keys of their own against one, all of which stay in the caches. */
static double sample_threads2_speedup(struct bench *b, const struct figure *f)
{
    double one = bench_sample_threads(b, f, 1);
    double two = bench_sample_threads(b, f, 2);
    return one < 0 || two < 0 ? -1 : one / two;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct result summarise(const struct figure *f, double *samples, unsigned n)
{
    qsort(samples, n, sizeof *samples, by_value);
    double median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
    return (struct result){f->worst ? samples[n - 1] : median, samples[0], samples[n - 1]};
}

static void tell(const char *what, unsigned i, unsigned n)
{
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r%s %u of %u ", what, i, n);
    }
}

static int run_rounds(struct bench *b, double samples[][BENCH_ROUNDS_MAX])
{
    for (unsigned round = 0; round < b->options.rounds; round++) {
        tell("round", round + 1, b->options.rounds);
        for (unsigned i = 0; i < FIGURES; i++) {
            const struct figure *f = &bench_figures[i];
            samples[i][round] = f->sample(b, f);
            if (samples[i][round] < 0) {
                (void)fprintf(stderr, "weir bench: %s could not be measured\n", f->name);
                return -1;
            }
        }
    }
    return 0;
}

static void report(struct bench *b, double samples[][BENCH_ROUNDS_MAX])
{
    struct result results[FIGURES];
    for (unsigned i = 0; i < FIGURES; i++) {
        results[i] = summarise(&bench_figures[i], samples[i], b->options.rounds);
    }
    if (b->options.json) {
        bench_print_json(b, results);
    } else {
        bench_print_table(b, results);
    }
}

int bench_core(const struct bench_options *options)
{
    static double samples[FIGURES][BENCH_ROUNDS_MAX];
    volatile size_t key_len = 16;
    struct bench b = {.options = *options, .key_len = key_len};
    tell("setting up", 1, 1);
    int e = bench_setup(&b);
    if (e == 0) {
        e = run_rounds(&b, samples);
    }
    if (e == 0) {
        report(&b, samples);
    }
    bench_finish(&b);
    return e;
}
