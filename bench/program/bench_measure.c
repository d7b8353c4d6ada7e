/*
 * Runs the threads of a sample and measures their time.
 *
 * A decision that never sleeps costs the CPU time of its thread, so the time that other programs
 * take from the machine does not count. For two threads, the slower one's CPU time divided by
 * the decisions of both is the overall time per decision.
 *
 * A thread that waits for a mutex may sleep meanwhile, and its CPU time would make it look
 * faster than it is. Such figures use wall time, but only from a sample during which no other
 * program ran on our processors. After TRIES disturbed samples the CPU time is used instead,
 * which favours the rival and never weir.
 *
 * Other programs also take caches and the processor's clock rate away, which CPU time does not
 * show. So a sample of one thread is cut into SLICES, and their lower quartile stands for all of
 * them. This is the same for figures and floors.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/atomic.h"
#include "bench_core.h"

#define THREADS_MAX 2
#define TRIES 4
/*
 * A sample is disturbed if other programs, or the hypervisor for other guests, had more than
 * 1/20 of a processor.
 */
#define OTHERS_SHARE 20
/* The unit in which /proc/stat counts. */
#define TICK_NS UINT64_C(10000000)
/*
 * A sample is also disturbed if a thread was preempted more often than this. The kernel's own
 * housekeeping preempts it less often, and only for microseconds.
 */
#define SWITCHES_ALLOWED 2
/*
 * 1/32 of a lap is run before the clock starts, so that the caches are in the state that the
 * loop leaves them in.
 */
#define WARM_UP 32
#define SLICES 32

struct racer {
    struct lap lap;
    lap_fn run;
    bool cold;
    unsigned slices;
    uint64_t *waiting; /* number of threads that are not ready yet */
    int cpu;           /* the processor to stay on; -1: any */
    uint64_t began_ns;
    uint64_t ended_ns;
    uint64_t cpu_ns;
    long switches;
    uint64_t others_ns; /* time that others used of the thread's processor, if it stays on one */
};

static uint64_t read_ns(clockid_t id)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static long involuntary_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Returns the index-th processor that this process may use, or -1 if there are fewer. */
static int allowed_cpu(unsigned index)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return -1;
    }
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set) && index-- == 0) {
            return (int)cpu;
        }
    }
    return -1;
}

static void stay_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/*
 * Runs part of the lap before it is measured. A key is new only once, so the warm-up takes its
 * new keys from the front of the range.
 */
static void warm_up(struct racer *r)
{
    struct lap lap = r->lap;
    lap.n = lap.n / WARM_UP;
    r->run(&lap);
    r->lap.sum += lap.sum;
    r->lap.first_new += lap.n;
    r->lap.subject.now_ns += lap.n * lap.subject.step_ns;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/*
 * Runs the lap in slices, each with random keys of its own. Returns the CPU time of the whole
 * lap, extrapolated from the lower quartile of the slices.
 */
static uint64_t run_slices(struct racer *r, unsigned slices)
{
    uint64_t took_ns[SLICES];
    struct lap *lap = &r->lap;
    for (unsigned i = 0; i < slices; i++) {
        struct lap slice = *lap;
        slice.n = lap->n / slices + (i == 0 ? lap->n % slices : 0);
        slice.seed += i * UINT64_C(0xd1342543de82ef95);
        uint64_t began_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
        r->run(&slice);
        took_ns[i] = (read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns) * lap->n / slice.n;
        lap->sum = slice.sum;
        lap->refused = slice.refused;
        lap->first_new += slice.n;
        lap->subject.now_ns += slice.n * lap->subject.step_ns;
    }
    qsort(took_ns, slices, sizeof took_ns[0], by_size);
    return took_ns[slices / 4];
}

static void *race(void *arg)
{
    struct racer *r = arg;
    if (r->cpu >= 0) {
        stay_on(r->cpu);
    }
    if (!r->cold) {
        warm_up(r);
    }
    (void)fetch_sub(r->waiting, 1);
    while (load_acquire(r->waiting) != 0) {
    }
    long switches = involuntary_switches();
    uint64_t busy_ns = bench_busy_ns(r->cpu);
    r->began_ns = read_ns(CLOCK_MONOTONIC);
    r->cpu_ns = run_slices(r, r->slices);
    r->ended_ns = read_ns(CLOCK_MONOTONIC);
    r->switches = involuntary_switches() - switches;
    busy_ns = bench_busy_ns(r->cpu) - busy_ns;
    r->others_ns = busy_ns > r->cpu_ns ? busy_ns - r->cpu_ns : 0;
    return NULL;
}

static void prepare(struct bench *b, const struct figure *f, unsigned threads, struct racer *racer)
{
    for (unsigned i = 0; i < threads; i++) {
        struct lap *lap = &racer[i].lap;
        *lap = (struct lap){.bench = b, .thread = i, .key_len = b->key_len};
        lap->n = f->ops / b->options.ease;
        lap->subject = b->subject[f->subject];
        lap->seed = ++b->samples * UINT64_C(0x9e3779b97f4a7c15);
        lap->first_new = b->new_key;
        b->new_key += 2 * lap->n;
        racer[i].run = f->lap;
        racer[i].cold = f->cold;
        /* A figure that compares samples of one and of two threads takes both whole. */
        bool whole = f->sample != NULL || threads > 1 || f->cold || lap->n < SLICES * SLICES;
        racer[i].slices = whole ? 1 : SLICES;
        racer[i].cpu = threads > 1 ? allowed_cpu(i) : -1;
    }
    b->subject[f->subject].now_ns += 2 * racer[0].lap.n * racer[0].lap.subject.step_ns;
}

/* Runs all threads. Returns 0, or -1 if a thread could not be created. */
static int run_all(struct racer *racer, unsigned threads)
{
    uint64_t waiting = threads;
    pthread_t id[THREADS_MAX];
    unsigned made = 0;
    for (; made < threads; made++) {
        racer[made].waiting = &waiting;
        if (pthread_create(&id[made], NULL, race, &racer[made]) != 0) {
            break;
        }
    }
    (void)fetch_sub(&waiting, threads - made);
    for (unsigned i = 0; i < made; i++) {
        (void)pthread_join(id[i], NULL);
    }
    return made == threads ? 0 : -1;
}

struct timing {
    uint64_t wall_ns; /* from the first start to the last end */
    uint64_t cpu_ns;  /* of the slowest thread */
    bool disturbed;
};

static struct timing timing(const struct racer *racer, unsigned threads)
{
    struct timing t = {0, 0, false};
    uint64_t began_ns = UINT64_MAX;
    uint64_t ended_ns = 0;
    for (unsigned i = 0; i < threads; i++) {
        began_ns = racer[i].began_ns < began_ns ? racer[i].began_ns : began_ns;
        ended_ns = racer[i].ended_ns > ended_ns ? racer[i].ended_ns : ended_ns;
        t.cpu_ns = racer[i].cpu_ns > t.cpu_ns ? racer[i].cpu_ns : t.cpu_ns;
    }
    t.wall_ns = ended_ns - began_ns;
    for (unsigned i = 0; i < threads; i++) {
        t.disturbed = t.disturbed || racer[i].switches > SWITCHES_ALLOWED ||
                      racer[i].others_ns > t.wall_ns / OTHERS_SHARE + TICK_NS;
    }
    return t;
}

static int check_answers(struct bench *b, const struct figure *f, const struct racer *racer,
                         unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        b->sink += racer[i].lap.sum;
        if (f->refused != ANY_VERDICT && racer[i].lap.refused != f->refused * racer[i].lap.n) {
            (void)fprintf(stderr, "weir-bench: %s: answers were not all '%s'\n", f->name,
                          f->refused == 0 ? "allow" : "deny");
            return -1;
        }
    }
    return 0;
}

double bench_sample_threads(struct bench *b, const struct figure *f, unsigned threads)
{
    struct timing t = {0, 0, true};
    for (unsigned i = 0; t.disturbed && i < (threads > 1 ? TRIES : 1); i++) {
        struct racer racer[THREADS_MAX] = {0};
        prepare(b, f, threads, racer);
        if (run_all(racer, threads) != 0 || check_answers(b, f, racer, threads) != 0) {
            return -1;
        }
        t = timing(racer, threads);
    }
    b->disturbed += t.disturbed;
    uint64_t ns = f->sleeps && !t.disturbed ? t.wall_ns : t.cpu_ns;
    uint64_t n = f->ops / b->options.ease * threads;
    return (double)ns / (double)n;
}

double bench_sample(struct bench *b, const struct figure *f)
{
    return bench_sample_threads(b, f, f->threads);
}
