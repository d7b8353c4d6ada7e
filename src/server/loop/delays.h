/*
 * Replies that wait for a time: refusals of wrong secrets (penalty.h), and replies to gateways
 * whose request a limit delays (http_auth.c). Each thread has one heap of them and one timer.
 *
 * A delayed reply is a struct pending whose answer is known: it keeps its place in the order of its
 * connection's replies. pending_answered() is called when it is due. If its connection closes
 * before that, it is freed at once; what it was charged stays charged.
 *
 * A thread holds at most DELAYS_HELD replies of gateways. The place of each is taken before the
 * question is asked: if there is none, the question is asked so that a delay is a denial, which
 * charges nothing. Refusals are bounded by the connections, as all pending replies are.
 */
#ifndef WEIR_SERVER_LOOP_DELAYS_H
#define WEIR_SERVER_LOOP_DELAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define DELAYS_HELD 8192 /* of one thread; each takes about 4 KB */

struct pending;
struct worker;

struct delays {
    struct pending **at; /* a heap: each is due no later than the two below it */
    size_t count;
    size_t room;
    size_t places;    /* taken for held replies */
    uint64_t last_ms; /* no reply waits for longer; UINT64_MAX unless the thread stops */
    uv_timer_t timer; /* until the first is due */
};

/* Opens and closes the timer of a thread. Closing sends what is still delayed. */
int delays_open(struct worker *w);
void delays_close(struct worker *w);

/* Lets no reply wait for longer than until last_ms, by the loop's clock. */
void delays_end_by(struct worker *w, uint64_t last_ms);

/* Delays the reply. Returns false, without effect, if there is no memory. */
bool delay_add(struct pending *p, uint64_t delay_ms);

/* Ends the delay of a reply that is not to be sent. */
void delay_remove(struct pending *p);

/* Takes a place for a held reply; false: there is none. pending_destroy() gives back the place of a
 * struct pending that has `held` set. */
bool delay_take_place(struct worker *w);
void delay_give_place(struct worker *w);

/* Tells that the answer is there, and sends the reply after this delay; 0: at once. */
void delay_answered(struct pending *p, uint64_t delay_ms);

#endif
