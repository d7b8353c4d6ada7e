/*
 * Reads the reply of a Redis to a script call or to SCRIPT LOAD: an integer, an array of integers,
 * a text, nothing, or an error. The functions work on bytes, without I/O, and keep no state between
 * calls.
 */
#ifndef WEIR_REDIS_REPLY_H
#define WEIR_REDIS_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

#define STORE_INTEGERS_MAX 16
#define STORE_TEXT_MAX 65536

enum { STORE_REPLY = 1, STORE_MORE = 0, STORE_BAD = -1 };

/* Why a call was refused, as the first word of an error says. */
enum store_refusal {
    STORE_REFUSED_NOT = 0, /* not an error */
    STORE_REFUSED,         /* an error of no kind below */
    STORE_MISCONF,         /* cannot write to its disk; how much of the call has run is unknown */
    STORE_NOSCRIPT,        /* the script is not loaded: send its text */
    STORE_MOVED,           /* the slot lives elsewhere, for good ... */
    STORE_ASK,             /* ... or for this call */
    STORE_TRYAGAIN,
    STORE_CLUSTERDOWN,
    STORE_LOADING,
    STORE_MASTERDOWN,
    STORE_READONLY,
    STORE_NOREPLICAS,
    STORE_BUSY,
    STORE_OOM
};

struct store_reply {
    size_t used; /* bytes of the input */
    char type;   /* ':' integers (one or an array), '$' or '+' text, '_' nothing, '-' error */
    size_t n;    /* ':' how many integers */
    int64_t integers[STORE_INTEGERS_MAX];
    struct text text; /* points into the input; the whole line of an error */
    enum store_refusal refusal;
};

/*
 * Reads one reply from the start of the input. STORE_REPLY: *out is set. STORE_MORE: the input is
 * the beginning of a reply. STORE_BAD: it is not such a reply; nothing after it can be trusted. An
 * array holds at most STORE_INTEGERS_MAX integers and nothing else, a text at most STORE_TEXT_MAX
 * bytes.
 */
int store_reply_read(struct text input, struct store_reply *out);

/* Returns true if the endpoint does not take any calls now (client.h C5). */
bool store_is_failure(enum store_refusal refusal);

/* Returns true if the refusal proves that the call changed nothing, so that it may be sent
 * again. */
bool store_did_not_run(enum store_refusal refusal);

#endif
