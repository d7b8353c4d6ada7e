/*
 * Rules in use: asked by any number of threads, switched by one.
 *
 * The gate. Who asks says so in a word of its own line (`inside`), then looks
 * whether the gate is closed; who switches closes the gate, then looks whether
 * somebody is inside. Both in one order (G1: of two that meet, at least one
 * sees the other). Who finds the gate closed steps back and waits until it is
 * open. When nobody is inside, nobody reads the rules or decides by them: numbers
 * of shared limiters are changed, the pointer is switched, the old rules are
 * freed at once (G2), and the gate opens. So every request sees one rule set with
 * all of its numbers (G3), and asking costs two uncontended atomic additions.
 *
 * Waiting is for decisions only, no I/O happens inside; preparing a reload,
 * which reads files and makes tables, happens before the gate closes.
 *
 * One lock, `reload`: one reload at a time; limits and statistics are read under
 * it. weir_rules_ask() takes none.
 */
#ifndef WEIR_RULES_LIVE_LIVE_H
#define WEIR_RULES_LIVE_LIVE_H

#include <pthread.h>

#include "base/thread.h"
#include "rules/compiled/ruleset.h"

/* What one thread writes: on lines of its own. */
struct slot {
    uint64_t inside;
    uint64_t asked;
    uint64_t unmatched;
    uint64_t allow_listed;
    uint64_t block_listed;
    uint64_t missing;
    uint64_t tier_unknown;
    uint64_t shadow_denied;
    uint64_t shadow_failed;
    uint64_t bad;
} __attribute__((aligned(128)));

struct weir_rules {
    struct slot slots[THREAD_SLOTS];
    uint64_t closed;     /* the gate */
    struct ruleset *set; /* changes only while the gate is closed and nobody is inside */
    struct state *state; /* where limiters live; NULL: in memory */
    pthread_mutex_t reload;
    struct weir_rules_options options;
    struct config started;  /* its head: what a restart would change is told against it */
    struct config rejected; /* what the last reload refused: its files are worth watching too */
    char *path;             /* where the rules came from; NULL: a text */
    uint64_t anchor_unix_ns;
    uint64_t anchor_boot_ns;
    uint64_t generation;
    uint64_t references;     /* the owner's, and one for each question that is out */
    bool ended;              /* by weir_rules_close(); changes as `set` does */
    bool shadow_all;         /* new limits are switched to shadow too; under `reload` */
    struct weir_rules *next; /* of all that are open, for fork() */
    struct weir_rules *previous;
};

/*
 * Calls fn with each file that the rules name, those that were refused last included. Some may
 * come twice. fn must not call the same rules.
 */
typedef void (*rules_file_fn)(void *arg, const struct source_file *file);
void rules_files(struct weir_rules *r, rules_file_fn fn, void *arg);

/* ---- the gate (gate.c) ---- */

/* Between the two the rule set and its numbers stay as they are. Not to be nested. */
struct slot *gate_enter(struct weir_rules *r);
void gate_leave(struct slot *slot);

/* Under `reload`. Between the two nobody is inside. */
void gate_close(struct weir_rules *r);
void gate_open(struct weir_rules *r);

/* Under `reload`. Takes over the set. */
void gate_switch(struct weir_rules *r, struct ruleset *set);

/* Rules that a fork must know of. */
void gate_enlist(struct weir_rules *r);
void gate_delist(struct weir_rules *r);

/* Without its owner, rules end with the last question that is out. Not inside the gate. */
void rules_keep(struct weir_rules *r);
void rules_release(struct weir_rules *r);

/* Inside the gate: what a question, or a part of its way, adds to the statistics. */
void rules_count(struct weir_rules *r, struct slot *slot, const struct tally *tally, bool bad);

/* ---- the kill switch (mode.c) ---- */

/* Under `reload`: what is switched stays so in a set that is about to take over. */
void mode_carry(const struct weir_rules *r, struct ruleset *next);

/* ---- limiters that outlive us (live_state.c) ---- */

/* Opens the folder that the options, or else *config, name; none: nothing to do. */
int live_open_state(struct weir_rules *r, const struct config *config, struct weir_error *error);

/* WEIR_ENOTSUP in a child of the process that opened the folder. */
int live_check_process(const struct weir_rules *r, struct weir_error *error);

/* *set is about to be switched to, or is r->set and the first. */
void live_settle_state(struct weir_rules *r, struct ruleset *set, struct problems *problems);

/* Sets our clock forward to where a limiter's time line can express it. Before anybody asks. */
void live_follow_clock(struct weir_rules *r, struct weir *limiter, struct problems *problems);

/* A limiter that is not of the rules, in the file `name`.weir of their folder if they have one. */
int live_open_beside(struct weir_rules *r, const char *name, struct weir_options *o,
                     struct weir **limiter, struct weir_error *error);

#endif
