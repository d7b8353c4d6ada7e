/*
 * weir-bench core: the figures of the engine, each next to its floor.
 *
 *   bench_core_command.c  arguments
 *   bench_core.c          the figures as rows, and the rounds that measure them in turn
 *   bench_loop.h          the loop that measures every figure and every floor
 *   bench_figures.c       what is asked in that loop
 *   bench_floor.c         the least work that any limiter of this kind must do
 *   bench_rivals.c        the limiters that one would write instead
 *   bench_tables.c        limiters, their keys, and the memory that these take
 *   bench_zipf.c          skewed keys
 *   bench_measure.c       threads and time
 *   bench_machine.c       what the kernel reports about the machine and this process
 *   bench_report.c        the table and the JSON object
 */
#ifndef WEIR_BENCH_CORE_H
#define WEIR_BENCH_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/utsname.h>

#include <weir.h>

#define BENCH_ALGORITHMS 5
#define BENCH_NARROW 4 /* algorithms without a record: all but sliding_log, which is the last */
#define BENCH_ROUNDS_MIN 5
#define BENCH_ROUNDS_MAX 99
#define BENCH_KEYS_MIN 1000
#define BENCH_KEYS_MAX UINT64_C(100000000)

struct bench_options {
    uint64_t keys;
    unsigned rounds;
    unsigned ease; /* divides the length of every loop */
    bool json;
    bool huge; /* tables, floors and rivals all on large pages */
};

/* A limiter, and the times at which it is asked. */
struct subject {
    struct weir *w;
    uint64_t now_ns;
    uint64_t step_ns; /* from one question to the next */
};

enum subject_id {
    SUBJECT_HOT, /* and the BENCH_ALGORITHMS - 1 after it: one known key, always allowed */
    SUBJECT_DENY = SUBJECT_HOT + BENCH_ALGORITHMS, /* one key that has nothing left */
    SUBJECT_CLOCK,                                 /* reads the time from its own clock */
    /* BENCH_NARROW limiters begin here; each has options.keys keys, all of which owe units. */
    SUBJECT_LIVE,
    SUBJECT_FULL_EVICT = SUBJECT_LIVE + BENCH_NARROW, /* every slot taken by an indebted key */
    SUBJECT_FULL_DENY,
    SUBJECT_FRESH, /* empty at the beginning of a round, then filled */
    SUBJECTS
};

struct floors;
struct rival;

struct bench {
    struct bench_options options;
    struct subject subject[SUBJECTS];
    struct floors *floors;
    struct rival *mutex_map;
    struct rival *striped_map;
    uint32_t *zipf;   /* key numbers in the order in which they are asked */
    uint64_t zipf_n;  /* a power of two */
    uint64_t new_key; /* the next number that was never a key of the full tables */
    uint64_t samples; /* counts samples, so that each one takes other random keys */
    /* 16; a run-time value, so that the compiler cannot specialise a hash for it */
    size_t key_len;
    double bytes_per_key;
    unsigned disturbed; /* samples during which another program ran on our processors */
    volatile uint64_t sink;
};

/* One thread's share of a sample. */
struct lap {
    struct bench *bench;
    struct subject subject; /* a copy, with the time of the first question */
    unsigned thread;
    uint64_t n;
    uint64_t seed;
    uint64_t first_new; /* this thread's range of new keys */
    size_t key_len;
    struct weir_key hashed; /* the key that lap_hot_hashed() asks for */
    uint64_t sum;           /* out: sum of all the answers' fields */
    uint64_t refused;       /* out: answers that did not allow; absurdly large after an error */
};

typedef void (*lap_fn)(struct lap *lap);

/* figure.refused: some answers may allow and others refuse; the figure's sample() checks them. */
#define ANY_VERDICT UINT64_MAX

/* How a figure is compared with its bound. */
enum relation { NO_TARGET, AT_MOST, AT_LEAST, EXACTLY };

struct figure {
    const char *name;
    double (*sample)(struct bench *b, const struct figure *f); /* NULL: bench_sample() */
    lap_fn lap;
    int subject;
    unsigned threads;
    uint64_t ops;      /* decisions of each thread */
    uint64_t refused;  /* 0: every answer must allow; 1: none may */
    bool sleeps;       /* its threads sleep while they wait: use wall time */
    bool cold;         /* no warm-up: each key may be asked only once */
    bool worst;        /* report the worst round instead of the median */
    const char *floor; /* the figure that it is divided by; NULL: none */
    enum relation relation;
    double bound;
};

extern const struct figure bench_figures[];

/* The numbers of one figure, and what they are compared with. */
struct result {
    const char *name;
    const char *floor; /* the result that the value is divided by; NULL: none */
    enum relation relation;
    double bound;
    double value; /* the median, or the worst round */
    double min;
    double max;
};

/* ---- bench_core.c ---- */

/* Measures all figures. Returns 0, or -1 after a message on stderr. */
int bench_core(const struct bench_options *options);

/* ---- bench_measure.c ---- */

/* Measures f once. Returns the ns per decision, below 0 if an answer was not as expected. */
double bench_sample(struct bench *b, const struct figure *f);

/* Does the same with another number of threads. */
double bench_sample_threads(struct bench *b, const struct figure *f, unsigned threads);

/* ---- bench_figures.c ---- */

void lap_clock(struct lap *lap);
void lap_clock_read(struct lap *lap);
void lap_hash_cas(struct lap *lap);
void lap_line_miss(struct lap *lap);
void lap_hot(struct lap *lap);
void lap_hot_hashed(struct lap *lap);
void lap_hot_clock(struct lap *lap);
void lap_known(struct lap *lap);
void lap_random(struct lap *lap);
void lap_random_chained(struct lap *lap);
void lap_batch(struct lap *lap);
void lap_zipf(struct lap *lap);
void lap_count(struct lap *lap);
void lap_flood(struct lap *lap);
void lap_mutex_map(struct lap *lap);
void lap_striped_map(struct lap *lap);

/* ---- bench_tables.c ---- */

/* Opens and fills everything that lives for the whole run. Returns 0 or -1. */
int bench_setup(struct bench *b);
void bench_finish(struct bench *b);

/* Maps memory as a private limiter does, and touches all of it. Returns NULL if there is none. */
void *bench_map(uint64_t bytes, bool huge);

/* For new_key_ns: fills a new table up to max_keys, and sets bytes_per_key. */
double sample_new_key(struct bench *b, const struct figure *f);
double sample_flood(struct bench *b, const struct figure *f);
double sample_bytes_per_key(struct bench *b, const struct figure *f);
double sample_lost_keys(struct bench *b, const struct figure *f);

/* ---- bench_zipf.c ---- */

/* Fills b->zipf. Returns 0 or -1. */
int bench_make_zipf(struct bench *b);

/* ---- bench_machine.c ---- */

struct machine {
    char cpu[128];
    struct utsname system;
    int cpus;        /* processors that this process may use */
    long page_bytes; /* page size of most of this process's memory, now */
};

void bench_read_machine(struct machine *m);

/* Returns the resident memory of this process, including the kernel's page tables for it. */
uint64_t bench_resident_bytes(void);

/*
 * Returns how long a processor has been busy or taken away by the hypervisor since boot, in ns
 * with the resolution of a tick; 0 if unknown or cpu < 0.
 */
uint64_t bench_busy_ns(int cpu);

/* ---- bench_report.c ---- */

/* Sets value, min and max from the samples of all rounds, which it sorts. */
void bench_summarise(struct result *result, double *samples, unsigned rounds, bool worst);

/* Prints a table below the line `about`. */
void bench_print_table(const struct result *results, size_t n, const char *about);

/* Prints an object. `facts` are its last members, as JSON without braces. */
void bench_print_json(const struct result *results, size_t n, const char *facts);

#endif
