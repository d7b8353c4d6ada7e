/*
 * What a Redis answers to a script call or to the loading of a script: an integer, an array of
 * integers, a text, nothing, or an error. Of bytes without I/O; nothing is remembered between calls.
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
    STORE_MISCONF,         /* it cannot write to its disk; what it had done by then is not known */
    STORE_NOSCRIPT,        /* send the text */
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
    size_t n;    /* ':' how many */
    int64_t integers[STORE_INTEGERS_MAX];
    struct text text; /* within the input; of an error, all of its line */
    enum store_refusal refusal;
};

/*
 * Reads one reply from the start of the input. STORE_REPLY: *out is set. STORE_MORE: the beginning
 * of one. STORE_BAD: no such reply; nothing after it can be trusted. An array holds at most
 * STORE_INTEGERS_MAX integers and nothing else, a text at most STORE_TEXT_MAX bytes.
 */
int store_reply_read(struct text input, struct store_reply *out);

/* True if it says that the endpoint does not take calls now, whichever they are (client.h C5). */
bool store_is_failure(enum store_refusal refusal);

/* True if the refusal proves that the call changed nothing: it may be sent again. */
bool store_did_not_run(enum store_refusal refusal);

#endif
