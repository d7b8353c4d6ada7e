/*
 * The loop by which figures and floors are all measured: the next key number, its 16 bytes, one
 * call that is not inlined, the whole answer consumed, the time advanced. `next` and `ask` are
 * constants at each use, so the compiler makes a plain loop of it, without indirect calls.
 */
#ifndef WEIR_BENCH_LOOP_H
#define WEIR_BENCH_LOOP_H

#include "base/maths.h"
#include "bench_core.h"

struct bench_key {
    uint64_t word[2];
};

/*
 * Returns the key of a number. The number is spread over the bytes of the first word, as the
 * bytes of a session id or an address would be.
 */
static inline struct bench_key key_of(uint64_t number)
{
    return (struct bench_key){{number * UINT64_C(0x9e3779b97f4a7c15), number}};
}

/* State from which the next key is chosen. */
struct walk {
    uint64_t x;
    uint64_t base;
    uint64_t span;
    const uint32_t *list;
};

typedef uint64_t (*next_fn)(struct walk *walk, uint64_t last);

struct outcome {
    uint64_t sum;     /* sum of the answer's fields */
    uint64_t refused; /* 0: allowed, 1: not; absurdly large if the call failed */
};

typedef struct outcome (*ask_fn)(struct lap *lap, const struct bench_key *key, uint64_t now_ns,
                                 uint64_t last);

/* Reads every field that a caller would read. */
static inline struct outcome consume(int e, const struct weir_answer *a)
{
    uint64_t sum = a->remaining + a->retry_after_ns + a->reset_after_ns + a->delay_ns + a->granted +
                   a->quota + a->flags;
    return (struct outcome){sum, (a->verdict != WEIR_ALLOW) + (uint64_t)(int64_t)e};
}

static inline __attribute__((always_inline)) void loop(struct lap *lap, struct walk walk,
                                                       next_fn next, ask_fn ask)
{
    uint64_t now_ns = lap->subject.now_ns;
    uint64_t sum = 0;
    uint64_t refused = 0;
    struct outcome o = {0, 0};
    for (uint64_t i = 0; i < lap->n; i++) {
        struct bench_key key = key_of(next(&walk, o.sum));
        o = ask(lap, &key, now_ns, o.sum);
        sum += o.sum;
        refused += o.refused;
        now_ns += lap->subject.step_ns;
    }
    lap->sum += sum;
    lap->refused += refused;
}

#endif
