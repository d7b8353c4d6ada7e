/*
 * What is told of one key: the numbers of the server's last answer in words, and whether the key is
 * in use. The page has the same logic and the same words (web/key_state.js); both are held to
 * tests/golden/key_states.json. The page also extrapolates between two polls; a terminal does not.
 */
#ifndef WEIR_CLI_WATCH_KEY_STATE_H
#define WEIR_CLI_WATCH_KEY_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_POLLS 4 /* polls that are kept to tell the use: three pauses between them */

/* One question about a key and its answer. */
struct key_poll {
    double sent_ms; /* when the question was sent */
    double came_ms; /* when the answer came, by the same clock */
    char verdict[16];
    /* This node knows the numbers below, which are whole numbers. It does not know them if it
     * denies because the store is away: those are the same for every key. */
    bool known;
    double quota;
    double remaining;
    double retry_ms;   /* -1: never */
    double reset_ms;   /* -1: never */
    double blocked_ms; /* 0: not blocked; -1: without end */
};

/* The last polls of a key, the oldest first. Zeroed, it has none. */
struct key_polls {
    struct key_poll polls[KEY_POLLS];
    size_t count;
};

struct key_state {
    const char *verdict; /* in the memory of the poll */
    bool blocked;
    bool in_use;
    double part;    /* of the quota that is left, 0 to 1 */
    char left[160]; /* "12 of 30 left", "blocked", "not known on this node" */
    char retry[64];
    char reset[64];
    char use[64]; /* "no use seen", "in use, about 7/s", "use not known" */
};

/* Reads an answer of the server: of /v1/keys, or a limit of /v1/explain. */
void key_poll_read(const json_t *answer, struct key_poll *poll);

void key_polls_add(struct key_polls *polls, const struct key_poll *poll);

/*
 * Returns the units that come back in a millisecond, if they come back evenly, as those of buckets
 * do; otherwise 0. `period_ms` 0: not known.
 */
double key_even(const char *algorithm, double count, double period_ms);

/* Tells the state of the last poll; there is at least one. */
void key_state_tell(const struct key_polls *polls, double even, struct key_state *state);

#endif
