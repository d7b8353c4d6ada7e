/*
 * Who decides: this process, or a Redis that a fleet shares; and what if that one fails. A contract,
 * written before the code. What is there already: the decision in the store (store/script.h), which
 * limits it can express (store/params.h), where keys lie (store/key.h), its replies (store/reply.h).
 *
 * A question goes in, and an answer comes back: at once where no store is needed, or else by a
 * callback, exactly once, at the latest when the question's deadline has passed. Nothing here waits,
 * opens a socket or reads a clock. A store is driven from outside: who owns the loop (a worker of the
 * server, a program that uses the library, the simulator) moves bytes between sockets and links, and
 * tells the time:
 *
 *     store_ask()             any number of questions of one turn of the loop
 *     store_outgoing()        what a link has to send; questions of one turn go out together
 *     store_link_up/received/down()
 *     store_tick()            deadlines, probes; says when it wants to be called again
 *
 * One store belongs to one thread. What the stores of a process know together, breakers and the size
 * of the fleet, is in struct store_shared, whose fields are atomic.
 *
 * RULES
 *   S1  Every question is answered once, by its deadline, whatever the store does. The deadline counts
 *       from store_ask(); a question whose deadline has passed before it was sent is never sent.
 *   S2  A charge is sent at most once: again only after a reply which proves that it did not run
 *       (store_did_not_run()). Bytes sent and no reply: on_failure decides, and the charge, should it
 *       have happened, stays. So a decision is charged at most once per limit.
 *   S3  An answer that the store has not given carries STORE_DEGRADED, also if it is an ALLOW of
 *       `open` or a DENY of `closed`. Degraded is never plain.
 *   S4  Everything is bounded: questions in flight (`in_flight_max`), bytes that wait for a link, one
 *       connection attempt at a time per endpoint. Beyond the bounds a question fails at once.
 *   S5  A late reply, to a question that its deadline has answered, is read and dropped, and what it
 *       says of the connection (alive) counts.
 *   S6  A breaker per endpoint and process: open after 5 failures in a row, or half of at least 20
 *       within a second. Open: questions fail at once. A probe, one at a time, after 100 ms doubling to
 *       5 s, each a random part of that; its success closes the breaker.
 */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/text.h"
#include "store/key.h"
#include "store/params.h"
#include "store/script.h"

/* `consistency:`. leased and synced come with files of their own, behind the same questions. */
enum store_mode { STORE_MODE_LOCAL, STORE_MODE_EXACT };

/*
 * `on_store_failure:`. local: by store_limit.fallback, a limiter with rate/N and burst
 * max(1, floor(burst/N)), N = nodes of the fleet; a key that is new to it starts with what the store
 * last said remained, or else with nothing. Nothing is replayed when the store is back.
 */
enum store_failed { STORE_FAILED_LOCAL, STORE_FAILED_OPEN, STORE_FAILED_CLOSED };

/* One limit, as a store sees it. The caller's; outlives every question that names it. */
struct store_limit {
    enum store_mode mode;
    enum store_failed on_failure;
    struct weir *local;    /* STORE_MODE_LOCAL: decides */
    struct weir *fallback; /* STORE_FAILED_LOCAL: decides instead of the store */
    struct store_params params;
    struct store_key_head head;
    uint64_t deny_cache_ns; /* remembers who was denied, for min(retry, this); 0: not */
    uint32_t metric;        /* the row of its metrics */
};

#define STORE_DEGRADED 0x100u /* a flag of struct weir_answer */

/* One limit of a question. */
struct store_question_part {
    const struct store_limit *limit;
    struct text shard; /* at NULL: none */
    struct text key;   /* 1 to WEIR_KEY_MAX bytes; copied */
    uint64_t cost;
};

struct store_question {
    enum store_verb verb;
    const struct store_question_part *parts;
    size_t n;             /* 1; up to WEIR_SEVERAL_MAX for CHECK and PEEK, no part twice */
    uint64_t time_ns;     /* as in struct store_part */
    uint64_t now_ns;      /* for limits that are decided here */
    uint64_t deadline_ns; /* on the line of store_tick(); 0: the store's usual one */
};

/*
 * The answer; `error` 0, or WEIR_E... of a question that only the store could refuse (WEIR_ETIME of
 * a block). Called from within store_received(), store_link_down() and store_tick(), never from
 * within store_ask(). It may ask again.
 */
typedef void (*store_done_fn)(void *arg, int error, const struct weir_answer *answer);

enum { STORE_ANSWERED = 1, STORE_PENDING = 0 };

struct store;
struct store_shared;

/*
 * STORE_ANSWERED: *answer is complete (a local limit, a remembered denial, a breaker that is open),
 * and `done` will not be called. STORE_PENDING: it will, once. WEIR_E... as weir_ask(): nothing has
 * happened.
 *
 * Several parts: those in one slot are one call, all or nothing. Parts in different slots, and parts
 * that are decided here, are charged side by side; if one denies, the others get their units back by
 * a REFUND that nobody waits for: never an admission too much, but units that a denied question holds
 * until then, and until they refill if this process dies.
 */
int store_ask(struct store *s, const struct store_question *question, struct weir_answer *answer,
              store_done_fn done, void *arg);

/* ---- links: one connection to one endpoint each; the caller's loop has the sockets ---- */

struct store_link;

/* What the link has to send, empty if nothing. store_sent() takes it from the front. */
struct text store_outgoing(struct store_link *link);
void store_sent(struct store_link *link, size_t bytes);

/* The connection stands: AUTH, SELECT and SCRIPT LOAD go first, and questions behind them. */
void store_link_up(struct store_link *link, uint64_t now_ns);

/* Bytes have come. False: not what a store says; close it and say store_link_down(). */
bool store_received(struct store_link *link, struct text bytes, uint64_t now_ns);

/* It could not be made, or has ended: what was sent on it is answered by on_failure (S2). */
void store_link_down(struct store_link *link, uint64_t now_ns);

/* Deadlines and probes as of now. Returns the next time at which something is due. */
uint64_t store_tick(struct store *s, uint64_t now_ns);

#endif
