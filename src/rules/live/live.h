/*
 * Rules in use: asked by any number of threads, switched by one.
 *
 * The gate. A thread that asks first adds to a word on a cache line of its own (`inside`), then
 * looks whether the gate is closed. A thread that switches first closes the gate, then looks
 * whether a thread is inside. Both do so in sequentially consistent order (G1: if the two meet, at
 * least one sees the other). A thread that finds the gate closed steps back and waits until it is
 * open. When no thread is inside, none reads the rules or decides by them. Then the numbers of
 * shared limiters are changed, the pointer is switched, the gate opens, and the old rules are freed
 * at once (G2). So every request sees one rule set with all of its numbers (G3), and asking costs
 * two uncontended atomic additions.
 *
 * The gate waits for decisions only, because no I/O happens inside. A reload prepares the new
 * rules, which reads files and makes tables, before it closes the gate.
 *
 * There is one lock, `reload`: it allows one reload at a time, and limits and statistics are read
 * under it. weir_rules_ask() takes no lock.
 */
#ifndef WEIR_RULES_LIVE_LIVE_H
#define WEIR_RULES_LIVE_LIVE_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/thread.h"
#include "rules/compiled/ruleset.h"

/* Counters that one thread writes, on cache lines of its own. */
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
    uint64_t closed;     /* 1 while the gate is closed */
    struct ruleset *set; /* changes only while the gate is closed and no thread is inside */
    struct state *state; /* the folder of the limiters; NULL: they are in memory */
    pthread_mutex_t reload;
    struct weir_rules_options options;
    struct config started;  /* without limits; a reload warns of differences from it */
    struct config rejected; /* what the last load refused; its files are watched too */
    char *path;             /* the file or folder of the rules; NULL: a text */
    uint64_t anchor_unix_ns;
    uint64_t anchor_boot_ns;
    uint64_t generation;
    uint64_t references; /* the owner's, and one for each pending question */
    bool ended;          /* set by weir_rules_close(); changes as `set` does */
    bool shadow_all;     /* new limits are switched to shadow too; protected by `reload` */
    LIST_ENTRY(weir_rules) others; /* list of all open rules, for fork() */
};

/*
 * Calls fn with each file that the rules name, including those of the rules that were refused last.
 * Some files may come twice. fn must not call the same rules.
 */
typedef void (*rules_file_fn)(void *arg, const struct source_file *file);
void rules_files(struct weir_rules *r, rules_file_fn fn, void *arg);

/* ---- the gate (gate.c) ---- */

/* Between enter and leave the rule set and its numbers do not change. Must not be nested. */
struct slot *gate_enter(struct weir_rules *r);
void gate_leave(struct slot *slot);

/*
 * Between close and open no thread is inside. The caller holds `reload`, or is closing the rules.
 */
void gate_close(struct weir_rules *r);
void gate_open(struct weir_rules *r);

/*
 * Makes `set` the rules in force, taking it over, and frees the old one. The caller holds `reload`.
 */
void gate_switch(struct weir_rules *r, struct ruleset *set);

/* Add and remove rules that fork() must prepare. */
void gate_enlist(struct weir_rules *r);
void gate_delist(struct weir_rules *r);

/*
 * Take and release a reference. After weir_rules_close() the rules are freed with their last
 * pending question. The last release must not happen inside the gate, which it closes.
 */
void rules_keep(struct weir_rules *r);
void rules_release(struct weir_rules *r);

/*
 * weir_rules_ask_async() with memory of the caller, who frees it when `done` is called or a result
 * other than 0 is returned. memory NULL: the question has its own.
 */
int rules_ask_in(struct weir_rules *rules, void *where, struct arena *memory,
                 const struct weir_rules_question *question, uint64_t now_ns,
                 struct weir_rules_answer *answer, weir_rules_done_fn done, void *arg,
                 struct weir_error *error);

/*
 * Opens rules that somebody tries out, from a text that must not name files: no fleet, no state,
 * WEIR_EXPLICIT_TIME, and tables within the bounds of a sandbox (rules/file/config.h). Messages
 * name RULES_TEXT as the file. Returns the errors of weir_rules_open().
 */
#define RULES_TEXT "rules"
int rules_open_sandbox(struct weir_rules **rules, struct weir_text yaml,
                       weir_rules_message_fn message, void *arg, struct weir_error *error);

/* ---- rules that are only checked (live_check.c) ---- */

/* Functions that are called about rules that are checked, in this order: for the limits that could
 * be read, for each change that they would make, and for messages. Texts are valid only during the
 * call. */
struct rules_check_told {
    void (*limit)(void *arg, const char *name, unsigned line);
    void (*change)(void *arg, const char *line); /* only if there is no error: as config_diff() */
    weir_rules_message_fn message;
};

/*
 * Checks a text, which must not name files, or (yaml NULL) the files that a reload would read,
 * without using it. Returns 0; WEIR_ERULES if the rules have errors; WEIR_EINVAL if the rules in
 * use did not come from files; or WEIR_ENOMEM.
 */
int rules_check(struct weir_rules *rules, const struct weir_text *yaml,
                const struct rules_check_told *tell, void *arg, struct weir_error *error);

/* Returns why limits that apply gave this answer (enum weir_rules_reason). */
int rules_reason(const struct weir_answer *answer); /* rules_answer.c */

/* weir_rules_reload() and weir_rules_put(), with a message function of their own; NULL: that of the
 * options. */
int rules_reload(struct weir_rules *rules, const char *path, weir_rules_message_fn message,
                 void *arg, struct weir_error *error);
int rules_put(struct weir_rules *rules, struct weir_text yaml, weir_rules_message_fn message,
              void *arg, struct weir_error *error);

/* ruleset_needs_ip() of the rules in force. */
bool rules_need_ip(struct weir_rules *rules);

/*
 * Says that /v1/auth asks these rules. Warns of attributes that it cannot send, as every later
 * reload and put does. Called before questions are asked.
 */
void rules_serve_gateways(struct weir_rules *rules);

/* Returns whether the rules in force have `envoy: {on_bad_call: deny}`. */
bool rules_deny_bad_calls(struct weir_rules *rules);

/* ---- one limit by its name (by_name.c) ---- */

/* What rules_use() found: what weir_rules_use() tells, and how the fleet is asked. */
struct rules_found {
    struct weir_rules_found told;
    void *remote;           /* as struct remote_part.limit; NULL: decided here */
    struct weir_text shard; /* as there */
    enum rate_kind kind;    /* of the rate: questions need rate_cost(), answers rate_answer() */
};

/* As weir_rules_use_fn; there is no limiter if a fleet decides. */
typedef int (*rules_use_fn)(void *arg, struct weir *limiter, struct weir_text key,
                            const struct rules_found *found);

int rules_use(struct weir_rules *rules, const struct weir_rules_key *key, rules_use_fn fn,
              void *arg, struct weir_error *error);

/*
 * After a CHECK of the limit, which is enforced, was answered with DENY: counts that for its ban,
 * as weir_rules_ask() does, and makes *answer tell of a ban. These two are called inside the gate:
 * by fn, or after gate_enter().
 */
void rules_denied(struct weir_rules *rules, void *where, const struct rules_found *found,
                  struct weir_text key, uint64_t now_ns, struct weir_answer *answer);

/* Forgets the denials of a key that were counted. */
void rules_forget_denials(const struct rules_found *found, struct weir_text key);

/* Returns the notes that weir_rules_blocks() lists. They live as long as the limit. */
struct block_notes *rules_block_notes(const struct rules_found *found);

/* ---- the kill switch (mode.c) ---- */

/*
 * Copies to the next set, which is about to take over, which limits are switched. The caller holds
 * `reload`.
 */
void mode_carry(const struct weir_rules *r, struct ruleset *next);

/* ---- limiters that outlive us (live_state.c) ---- */

/*
 * Opens the folder that the options name or, if they name none and WEIR_RULES_SERVER_STATE is set,
 * that of *config. Does nothing if there is no folder.
 */
int live_open_state(struct weir_rules *r, const struct config *config, struct weir_error *error);

/* Returns WEIR_ENOTSUP in a child of the process that opened the folder, otherwise 0. */
int live_check_process(const struct weir_rules *r, struct weir_error *error);

/* Settles the files of *set, which is about to be switched to, or is r->set, the first. */
void live_settle_state(struct weir_rules *r, struct ruleset *set, struct problems *problems);

/*
 * Opens a limiter that is not of the rules, in the file `name`.weir of their folder if they have
 * one.
 */
int live_open_beside(struct weir_rules *r, const char *name, struct weir_options *o,
                     struct weir **limiter, struct weir_error *error);
void live_close_beside(struct weir *limiter); /* NULL is allowed */

/* Reads the counts of a limit of the fleet. */
void live_read_counts(const struct remote_ops *ops, const void *remote,
                      struct weir_rules_limit *limit);

#endif
