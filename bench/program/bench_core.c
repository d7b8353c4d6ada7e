/*
 * The figures, and the rounds. Each round measures every figure once, in turn, so that a slow
 * minute of the machine affects figures and floors alike.
 */
#include "bench_core.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static double sample_threads2_speedup(struct bench *b, const struct figure *f);
static double sample_threads256(struct bench *b, const struct figure *f);

#define HOT_OPS 2000000
#define MISS_OPS 1000000
/* A whole number of batches, also after a quick run has divided it. */
#define BATCH_OPS 2048000
#define HOT(algorithm) (SUBJECT_HOT + (algorithm)-1)

/* Runs the loop `what` on a subject, with `t` threads of n questions each. */
#define LOOP(what, which, t, n) .lap = (what), .subject = (which), .threads = (t), .ops = (n)
#define LIVE(what, t, n) LOOP(what, SUBJECT_LIVE, t, n)
#define ALGO10M(algorithm)                                                                         \
    LOOP(lap_random, SUBJECT_LIVE + (algorithm)-1, 1, MISS_OPS), .floor = "random10m_ns",          \
                                                                 TARGET(AT_MOST, 1.15)
#define FULL(which)                                                                                \
    LOOP(lap_flood, which, 1, MISS_OPS), .sample = sample_flood, .refused = ANY_VERDICT
#define TARGET(is, number) .relation = (is), .bound = (number)

/* clang-format off */
const struct figure bench_figures[] = {
    {"clock_ns", LOOP(lap_clock, SUBJECT_HOT, 1, HOT_OPS)},
    {"clock_read_ns", LOOP(lap_clock_read, SUBJECT_CLOCK, 1, HOT_OPS),
     .floor = "clock_ns", TARGET(AT_MOST, 0.6)},
    {"hash_cas_ns", LOOP(lap_hash_cas, SUBJECT_HOT, 1, HOT_OPS)},
    {"hot_ns", LOOP(lap_hot, SUBJECT_HOT, 1, HOT_OPS),
     .floor = "hash_cas_ns", TARGET(AT_MOST, 1.4)},
    {"hot_hashed_ns", LOOP(lap_hot_hashed, SUBJECT_HOT, 1, HOT_OPS),
     .floor = "hot_ns", TARGET(AT_MOST, 0.75)},
    {"threads256_ns", LOOP(lap_hot, SUBJECT_HOT, 1, HOT_OPS),
     .floor = "hot_ns", TARGET(AT_MOST, 1.1), .sample = sample_threads256},
    {"hot_deny_ns", LOOP(lap_hot, SUBJECT_DENY, 1, HOT_OPS),
     .refused = 1, .floor = "hash_cas_ns"},
    {"hot_clock_ns", LOOP(lap_hot_clock, SUBJECT_CLOCK, 1, HOT_OPS), .floor = "clock_ns"},
    {"algo.token_bucket.hot_ns", LOOP(lap_hot, HOT(WEIR_TOKEN_BUCKET), 1, HOT_OPS),
     .floor = "hash_cas_ns"},
    {"algo.leaky_bucket.hot_ns", LOOP(lap_hot, HOT(WEIR_LEAKY_BUCKET), 1, HOT_OPS),
     .floor = "algo.token_bucket.hot_ns", TARGET(AT_MOST, 1.15)},
    {"algo.fixed_window.hot_ns", LOOP(lap_hot, HOT(WEIR_FIXED_WINDOW), 1, HOT_OPS),
     .floor = "algo.token_bucket.hot_ns", TARGET(AT_MOST, 1.15)},
    {"algo.sliding_window.hot_ns", LOOP(lap_hot, HOT(WEIR_SLIDING_WINDOW), 1, HOT_OPS),
     .floor = "algo.token_bucket.hot_ns", TARGET(AT_MOST, 1.15)},
    {"algo.sliding_log.hot_ns", LOOP(lap_hot, HOT(WEIR_SLIDING_LOG), 1, HOT_OPS),
     .floor = "hash_cas_ns"},
    {"hot2_ns", LIVE(lap_hot, 2, HOT_OPS / 2), .floor = "hot_ns"},
    {"threads2_speedup", LIVE(lap_known, 2, HOT_OPS), TARGET(AT_LEAST, 1.9),
     .sample = sample_threads2_speedup},
    {"line_miss_ns", LIVE(lap_line_miss, 1, MISS_OPS)},
    {"random10m_ns", LIVE(lap_random, 1, MISS_OPS),
     .floor = "line_miss_ns", TARGET(AT_MOST, 1.3)},
    {"algo.leaky_bucket.random10m_ns", ALGO10M(WEIR_LEAKY_BUCKET)},
    {"algo.fixed_window.random10m_ns", ALGO10M(WEIR_FIXED_WINDOW)},
    {"algo.sliding_window.random10m_ns", ALGO10M(WEIR_SLIDING_WINDOW)},
    {"random10m_chained_ns", LIVE(lap_random_chained, 1, MISS_OPS), .floor = "line_miss_ns"},
    {"batch10m_ns", LIVE(lap_batch, 1, BATCH_OPS),
     .floor = "random10m_ns", TARGET(AT_MOST, 0.28)},
    {"zipf10m_ns", LIVE(lap_zipf, 1, MISS_OPS), .floor = "line_miss_ns"},
    {"full_flood_ns", FULL(SUBJECT_FULL_EVICT), .floor = "line_miss_ns", TARGET(AT_MOST, 4)},
    {"full_flood_deny_ns", FULL(SUBJECT_FULL_DENY), .floor = "line_miss_ns"},
    {"random10m_2t_ns", LIVE(lap_random, 2, MISS_OPS), .floor = "random10m_ns"},
    {"batch10m_2t_ns", LIVE(lap_batch, 2, BATCH_OPS), .floor = "batch10m_ns"},
    {"mutex_map_ns", LIVE(lap_mutex_map, 1, MISS_OPS), .floor = "random10m_ns"},
    {"mutex_map_2t_ns", LIVE(lap_mutex_map, 2, MISS_OPS / 2), .sleeps = true,
     .floor = "random10m_2t_ns", TARGET(AT_LEAST, 4)},
    {"striped_map_2t_ns", LIVE(lap_striped_map, 2, MISS_OPS), .sleeps = true,
     .floor = "batch10m_2t_ns", TARGET(AT_LEAST, 2.5)},
    {"new_key_ns", LOOP(lap_count, SUBJECT_FRESH, 1, 0), .cold = true, .floor = "line_miss_ns",
     .sample = sample_new_key},
    {"lost_keys", .sample = sample_lost_keys, .worst = true, TARGET(EXACTLY, 0)},
    {"bytes_per_key", .sample = sample_bytes_per_key, TARGET(AT_MOST, 21)},
};
/* clang-format on */
#define FIGURES (sizeof bench_figures / sizeof bench_figures[0])

/*
 * Compares two threads with one. Each thread has its own keys, and all of them stay in the
 * caches.
 */
static double sample_threads2_speedup(struct bench *b, const struct figure *f)
{
    double one = bench_sample_threads(b, f, 1);
    double two = bench_sample_threads(b, f, 2);
    return one < 0 || two < 0 ? -1 : one / two;
}

/* A thread that has used the limiter and stays alive, so that its thread number stays taken. */
struct idler {
    struct bench *bench;
    const struct figure *figure;
    pthread_barrier_t *used;
    pthread_barrier_t *over;
};

static void *idle(void *arg)
{
    struct idler *idler = arg;
    struct lap lap = {.bench = idler->bench, .n = 1, .key_len = idler->bench->key_len};
    lap.subject = idler->bench->subject[idler->figure->subject];
    idler->figure->lap(&lap);
    (void)pthread_barrier_wait(idler->used);
    (void)pthread_barrier_wait(idler->over);
    return NULL;
}

#define IDLERS 256

/* Measures a call by a thread that starts after 256 others have used the limiter. */
static double sample_threads256(struct bench *b, const struct figure *f)
{
    pthread_t id[IDLERS];
    pthread_barrier_t used;
    pthread_barrier_t over;
    struct idler idler = {b, f, &used, &over};
    if (pthread_barrier_init(&used, NULL, IDLERS + 1) != 0 ||
        pthread_barrier_init(&over, NULL, IDLERS + 1) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < IDLERS; i++) {
        if (pthread_create(&id[i], NULL, idle, &idler) != 0) {
            return -1; /* the process ends now, and its threads with it */
        }
    }
    (void)pthread_barrier_wait(&used);
    double ns = bench_sample(b, f);
    (void)pthread_barrier_wait(&over);
    for (unsigned i = 0; i < IDLERS; i++) {
        (void)pthread_join(id[i], NULL);
    }
    (void)pthread_barrier_destroy(&used);
    (void)pthread_barrier_destroy(&over);
    return ns;
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
            samples[i][round] = f->sample != NULL ? f->sample(b, f) : bench_sample(b, f);
            if (samples[i][round] < 0) {
                (void)fprintf(stderr, "weir-bench: %s could not be measured\n", f->name);
                return -1;
            }
        }
    }
    return 0;
}

static void report(const struct bench *b, double samples[][BENCH_ROUNDS_MAX])
{
    const struct bench_options *o = &b->options;
    struct result results[FIGURES];
    char text[256];
    for (unsigned i = 0; i < FIGURES; i++) {
        const struct figure *f = &bench_figures[i];
        results[i] = (struct result){f->name, f->floor, f->relation, f->bound, 0, 0, 0};
        bench_summarise(&results[i], samples[i], o->rounds, f->worst);
    }
    if (o->json) {
        struct machine m;
        bench_read_machine(&m);
        (void)snprintf(text, sizeof text,
                       "  \"keys\": %" PRIu64 ",\n  \"rounds\": %u,\n  \"page_bytes\": %ld,\n"
                       "  \"disturbed_samples\": %u",
                       o->keys, o->rounds, m.page_bytes, b->disturbed);
        bench_print_json(results, FIGURES, text);
    } else {
        (void)snprintf(text, sizeof text,
                       "%" PRIu64 " keys of 16 bytes, %u rounds, %u samples disturbed", o->keys,
                       o->rounds, b->disturbed);
        bench_print_table(results, FIGURES, text);
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
