/*
 * Reads the replies of a Redis. Calls of scripts are answered by an integer, an array of integers,
 * a text, nothing, or an error. Other commands (ROLE, CLUSTER SLOTS, SENTINEL) have replies of any
 * form, whose values are taken one by one from the bytes of the whole reply (value_next()). The
 * functions work on bytes, without I/O, and keep no state between calls.
 */
#ifndef WEIR_REDIS_REPLY_H
#define WEIR_REDIS_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

#define STORE_INTEGERS_MAX 96             /* most integers that are read at once */
#define STORE_TEXT_MAX 65536              /* bytes of a text or an error */
#define VALUE_BYTES_MAX ((size_t)4 << 20) /* bytes of a whole reply */
#define VALUE_DEPTH_MAX 8

enum { STORE_REPLY = 1, STORE_MORE = 0, STORE_BAD = -1 };

/* Why a call was refused, as the first word of an error says. */
enum store_refusal {
    STORE_REFUSED_NOT = 0, /* not an error */
    STORE_REFUSED,         /* an error of no kind below */
    STORE_MISCONF,         /* cannot write to its disk; how much of the call has run is unknown */
    STORE_NOSCRIPT,        /* the script is not loaded: send its text */
    STORE_MOVED,           /* the slot has moved to another node */
    STORE_ASK,             /* another node has the slot for this call */
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
    struct weir_text whole; /* its bytes in the input */
    /* ':' integers (one, or an array of at most STORE_INTEGERS_MAX), '*' any other array, '$' or
     * '+' text, '_' nothing, '-' error */
    char type;
    size_t n; /* ':' how many integers */
    int64_t integers[STORE_INTEGERS_MAX];
    struct weir_text text; /* points into the input; the whole line of an error */
    enum store_refusal refusal;
};

/*
 * Reads one reply from the start of the input. STORE_REPLY: *out is set. STORE_MORE: the input is
 * the beginning of a reply. STORE_BAD: it is no reply, or one of more than VALUE_BYTES_MAX bytes or
 * VALUE_DEPTH_MAX nested arrays; nothing after it can be trusted.
 */
int store_reply_read(struct weir_text input, struct store_reply *out);

/* Returns true if the endpoint does not take any calls now (client.h C5). */
bool store_is_failure(enum store_refusal refusal);

/* Returns true if the refusal proves that the call changed nothing, so that it may be sent
 * again. */
bool store_did_not_run(enum store_refusal refusal);

/* ---- the values of a whole reply ---- */

struct store_value {
    char type;             /* '*' array, ':' integer, '$' or '+' text, '-' error, '_' nothing */
    int64_t number;        /* ':' the integer; '*' how many values follow */
    struct weir_text text; /* '$', '+', '-' */
};

/* Takes the next value from the front of a whole reply. False: there is none. */
bool value_next(struct weir_text *rest, struct store_value *out);

/* Take the next value. value_text() returns an empty text if it is not a text; value_integer() and
 * value_array() (the length) return -1 if it is not an integer or an array. */
struct weir_text value_text(struct weir_text *rest);
int64_t value_integer(struct weir_text *rest);
int64_t value_array(struct weir_text *rest);

/* Passes over one value and all that is in it. */
void value_pass(struct weir_text *rest);

#endif
