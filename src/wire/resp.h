/*
 * RESP2 and RESP3 as bytes, without I/O: requests are read out of what has arrived, replies are
 * put behind what waits to be sent.
 *
 * Nothing is remembered between calls. The caller keeps the bytes of a request that is not all
 * there, and asks again when more have come; that costs a step for each argument, since the bytes
 * of an argument are jumped over and never looked at.
 *
 * A request is judged from left to right, and what it announces is believed only within the
 * limits. Hence:
 *
 *   R1  what is said of some bytes, other than RESP_MORE, is also said with more bytes behind them;
 *   R2  RESP_MORE is never said of limits->request_max bytes: a buffer of that size is enough;
 *   R3  a request and its arguments lie within the bytes given, or within struct resp_request.
 */
#ifndef WEIR_WIRE_RESP_H
#define WEIR_WIRE_RESP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/text.h"

#define RESP_ARGS_MAX 128
#define RESP_INLINE_MAX 4096 /* bytes of an inline command with its line end (Redis: 65536) */

enum { RESP_REQUEST = 1, RESP_MORE = 0, RESP_BAD = -1 };

struct resp_limits {
    unsigned args_max;  /* with the command's name; RESP_ARGS_MAX if above that */
    size_t bulk_max;    /* bytes of one argument */
    size_t request_max; /* bytes of a request on the wire */
    bool inline_commands;
    bool unauthenticated; /* changes only the words of a complaint, as in Redis */
};

struct resp_request {
    unsigned argc;
    size_t used; /* bytes of the input that the request took */
    struct text argv[RESP_ARGS_MAX];
    char scratch[RESP_INLINE_MAX]; /* the words of an inline command, a complaint */
};

/*
 * Reads one request from the start of the input: an array of bulk strings or, where allowed, an
 * inline command. An empty line, "*0" and "*-1" are a request without arguments, to be passed over.
 * The arguments point into the input (inline: into *out) and may hold any byte.
 *
 * RESP_REQUEST: *out is set. RESP_MORE: the beginning of a request. RESP_BAD: not a request;
 * *complaint, in the words of Redis where it has some ("Protocol error: ..."), lives as long as
 * *out. Answer with it behind "ERR " and close: where the next request begins cannot be known.
 *
 * Stricter than Redis: a line end is CR LF also where Redis skips two bytes of any kind, and a
 * count has at most 32 characters. POST and Host: are refused as inline commands: what speaks HTTP
 * here is a browser that somebody has sent.
 */
int resp_parse(struct text input, const struct resp_limits *limits, struct resp_request *out,
               const char **complaint);

/* A decimal number as Redis reads one: no '+', spaces or leading zeros, nothing out of range. */
bool resp_to_u64(struct text text, uint64_t *number);
bool resp_to_i64(struct text text, int64_t *number);

/*
 * Replies. `proto` is 2 or 3, what the connection has agreed on. As always with a buffer, what does
 * not fit sets b->full; each call puts all of its bytes or none.
 */

/* One line each: control characters become spaces, so that no text can end the line early. */
void resp_put_simple(struct buffer *b, struct text text);
void resp_put_error(struct buffer *b,
                    struct text text); /* begins with its code, for instance ERR */
/* Cut after 255 bytes. */
void resp_put_errorf(struct buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void resp_put_integer(struct buffer *b, int64_t number);
void resp_put_bulk(struct buffer *b, struct text text);
void resp_put_null(struct buffer *b, int proto);
void resp_put_bool(struct buffer *b, int proto, bool value);
void resp_put_double(struct buffer *b, int proto, double number);
/* A text for people. In RESP2 a bulk string. */
void resp_put_verbatim(struct buffer *b, int proto, struct text text);

/* The beginning of an array; n values follow. */
void resp_put_array(struct buffer *b, size_t n);
/* All of an array of n integers. */
void resp_put_integers(struct buffer *b, const int64_t *numbers, size_t n);
/* The beginning of a map; n times a key and a value follow. In RESP2 an array of 2 n. */
void resp_put_map(struct buffer *b, int proto, size_t n);

#endif
