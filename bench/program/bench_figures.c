/* The laps of each figure: their keys and their limiter. bench_loop.h has the loop. */
#include <weir.h>

#include "base/clock.h"
#include "bench_floor.h"
#include "bench_loop.h"
#include "bench_rivals.h"

#define BATCH 32
/* Keys of each thread in lap_known(): their lines stay in its cache. */
#define KNOWN 256

/* ---- the next key ---- */

static uint64_t next_same(struct walk *walk, uint64_t last)
{
    (void)last;
    return walk->base;
}

static uint64_t next_counted(struct walk *walk, uint64_t last)
{
    (void)last;
    return walk->base + walk->x++;
}

static uint64_t next_around(struct walk *walk, uint64_t last)
{
    (void)last;
    return walk->base + (walk->x++ & (walk->span - 1));
}

static uint64_t next_random(struct walk *walk, uint64_t last)
{
    (void)last;
    walk->x = walk->x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return mul_high(walk->x, walk->span);
}

/* The next key depends on the last answer, so the processor cannot start on it earlier. */
static uint64_t next_chained(struct walk *walk, uint64_t last)
{
    walk->x = walk->x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return mul_high(walk->x + last, walk->span);
}

static uint64_t next_listed(struct walk *walk, uint64_t last)
{
    (void)last;
    return walk->list[walk->x++ & (walk->span - 1)];
}

static struct walk random_walk(const struct lap *lap)
{
    return (struct walk){lap->seed, 0, lap->bench->options.keys, NULL};
}

/* ---- what is asked ---- */

static struct outcome ask_weir(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                               uint64_t last)
{
    struct weir_answer a;
    (void)last;
    int e = weir_check_at(lap->subject.w, key, lap->key_len, 1, now_ns, &a);
    return consume(e, &a);
}

static struct outcome ask_weir_now(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                   uint64_t last)
{
    struct weir_answer a;
    (void)last;
    (void)now_ns;
    int e = weir_check(lap->subject.w, key, lap->key_len, 1, &a);
    return consume(e, &a);
}

static struct outcome ask_clock(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                uint64_t last)
{
    (void)lap;
    (void)key;
    (void)now_ns;
    (void)last;
    return (struct outcome){clock_boot_ns(), 0};
}

static struct outcome ask_clock_read(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                     uint64_t last)
{
    (void)lap;
    (void)key;
    (void)now_ns;
    (void)last;
    return (struct outcome){clock_now_ns(), 0};
}

static struct outcome ask_hash_cas(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                   uint64_t last)
{
    (void)now_ns;
    (void)last;
    return (struct outcome){floor_hash_cas(lap->bench->floors, key, lap->key_len), 0};
}

static struct outcome ask_line(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                               uint64_t last)
{
    (void)now_ns;
    return (struct outcome){floor_line_read(lap->bench->floors, key, lap->key_len, last), 0};
}

static struct outcome ask_weir_hashed(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                      uint64_t last)
{
    struct weir_answer a;
    struct weir_question q = {.hashed = &lap->hashed, .cost = 1};
    (void)key;
    (void)last;
    return consume(weir_ask_at(lap->subject.w, &q, now_ns, &a), &a);
}

static struct outcome ask_mutex_map(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                    uint64_t last)
{
    struct weir_answer a;
    (void)last;
    int e = mutex_map_check(lap->bench->mutex_map, key, lap->key_len, now_ns, &a);
    return consume(e, &a);
}

static struct outcome ask_striped_map(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                      uint64_t last)
{
    struct weir_answer a;
    (void)last;
    int e = striped_map_check(lap->bench->striped_map, key, lap->key_len, now_ns, &a);
    return consume(e, &a);
}

/* ---- figures ---- */

void lap_clock(struct lap *lap)
{
    loop(lap, (struct walk){0}, next_same, ask_clock);
}

void lap_clock_read(struct lap *lap)
{
    loop(lap, (struct walk){0}, next_same, ask_clock_read);
}

void lap_hash_cas(struct lap *lap)
{
    loop(lap, (struct walk){0}, next_same, ask_hash_cas);
}

void lap_line_miss(struct lap *lap)
{
    loop(lap, random_walk(lap), next_random, ask_line);
}

void lap_hot(struct lap *lap)
{
    loop(lap, (struct walk){0}, next_same, ask_weir);
}

void lap_hot_hashed(struct lap *lap)
{
    struct bench_key key = key_of(0);
    (void)weir_key_init(lap->subject.w, &key, lap->key_len, &lap->hashed);
    loop(lap, (struct walk){0}, next_same, ask_weir_hashed);
}

void lap_hot_clock(struct lap *lap)
{
    loop(lap, (struct walk){0}, next_same, ask_weir_now);
}

void lap_known(struct lap *lap)
{
    loop(lap, (struct walk){0, lap->thread * KNOWN, KNOWN, NULL}, next_around, ask_weir);
}

void lap_random(struct lap *lap)
{
    loop(lap, random_walk(lap), next_random, ask_weir);
}

void lap_random_chained(struct lap *lap)
{
    loop(lap, random_walk(lap), next_chained, ask_weir);
}

void lap_zipf(struct lap *lap)
{
    struct walk walk = {lap->seed, 0, lap->bench->zipf_n, lap->bench->zipf};
    loop(lap, walk, next_listed, ask_weir);
}

/* Asks for all keys in order, each once. */
void lap_count(struct lap *lap)
{
    loop(lap, (struct walk){0}, next_counted, ask_weir);
}

void lap_flood(struct lap *lap)
{
    loop(lap, (struct walk){0, lap->first_new, 0, NULL}, next_counted, ask_weir);
}

void lap_mutex_map(struct lap *lap)
{
    loop(lap, random_walk(lap), next_random, ask_mutex_map);
}

void lap_striped_map(struct lap *lap)
{
    loop(lap, random_walk(lap), next_random, ask_striped_map);
}

/*
 * Asks for the same keys as lap_random(), 32 in each call. The only figure that cannot use
 * loop().
 */
void lap_batch(struct lap *lap)
{
    struct walk walk = random_walk(lap);
    struct weir_answer answers[BATCH];
    struct weir_question asks[BATCH];
    struct bench_key keys[BATCH];
    uint64_t now_ns = lap->subject.now_ns;
    for (unsigned i = 0; i < BATCH; i++) {
        asks[i] = (struct weir_question){.key = &keys[i], .key_len = lap->key_len, .cost = 1};
    }
    for (uint64_t done = 0; done < lap->n; done += BATCH) {
        for (unsigned i = 0; i < BATCH; i++) {
            keys[i] = key_of(next_random(&walk, 0));
        }
        int e = weir_ask_batch_at(lap->subject.w, asks, BATCH, now_ns, answers, NULL);
        for (unsigned i = 0; i < BATCH; i++) {
            struct outcome o = consume(e, &answers[i]);
            lap->sum += o.sum;
            lap->refused += o.refused;
        }
        now_ns += lap->subject.step_ns;
    }
}
