/*
 * The small world that users share: a limiter over a table of two or four
 * lines, with keys chosen by where they live; what can be done to it; and what
 * must be true of it.
 */
#ifndef WEIR_EXPLORE_WORLD_H
#define WEIR_EXPLORE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "explore/scheduler.h"
#include "limit/limiter.h"

#define KEYS_MAX 20
#define OPS_MAX 40 /* to prepare a world */
#define SCRIPT_MAX 8

/* Limits: QUOTA units per PERIOD_S. All that happens, happens at NOW_S; what is old is as good as
   fresh by then. */
#define QUOTA 20
#define LOG_QUOTA 3
#define OLD_S 1
#define NOW_S 1000
#define PERIOD_S 100
#define LATE_S 100000

/* Where a key lives: its first and second line, its stripe. ANY: no matter. */
#define ANY (-1)
struct home {
    int first;
    int second;
    int stripe;
    int block_line; /* the home of its block */
};

enum op_kind {
    END,
    CHECK,
    CHECK_OLD,
    PEEK,
    REFUND,
    PENALIZE,
    BLOCK,
    UNBLOCK,
    RESET,
    CHANGE,
    SWEEP,
    SWEEP_LATE, /* by a clock that is far ahead: everybody is fresh */
    LEFTOVER,   /* to prepare only: what somebody leaves who dies while moving the key */
    CHECK_LATE  /* to prepare only: by that clock; to the others the state is of a far future */
};

struct op {
    enum op_kind kind;
    unsigned char key;
    unsigned char units; /* CHANGE: the new quota. SWEEP: lines */
};

struct world_spec {
    int algorithm;
    int on_full;
    unsigned lines;
    unsigned stripes;
    unsigned max_keys; /* 0: as many as there are slots */
    unsigned keys;
    struct home home[KEYS_MAX];
    struct op prepare[OPS_MAX];
};

/* Makes the world of the spec, prepared. False: no such keys. */
bool world_make(const struct world_spec *spec);

/* Back to the prepared state. */
void world_reset(void);

/* The memory that so many users change who change parameters so often. How many ranges. */
#define WORLD_RANGES (3 + 2 * (USERS_MAX + 1))
unsigned world_ranges(unsigned users, unsigned changes, struct range *ranges);

/* Is all that is in none of the ranges as it was prepared? */
bool world_rest_untouched(const struct range *ranges, unsigned count);

/* What a caller would see of the operation, in one number. */
uint64_t world_do(struct op op);

/* What is wrong with the states of the keys as the essay of table.h lists them; NULL: nothing. */
const char *world_check_states(void);

/* What is wrong when everybody has ended and `dead` were killed; NULL: nothing. */
const char *world_check_end(unsigned dead);

/* What each key can still take, and whether it is blocked. */
void world_survey(uint64_t *seen);

/* A slot's 16 bytes have changed: for struct task. */
void world_changed(const void *granule);

/* What an address is. */
void world_name(const void *address, char *text, unsigned bytes);
void world_name_op(struct op op, char *text, unsigned bytes);
void world_print(void);

struct weir *world_limiter(void);

#endif
