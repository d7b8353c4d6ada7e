/*
 * RESP2 and RESP3 as bytes, without I/O: requests are read from the bytes that have arrived,
 * replies are appended to the bytes that wait to be sent.
 *
 * Nothing is remembered between calls. The caller keeps the bytes of an incomplete request, and
 * calls again when more have come. That costs one step for each argument, because the bytes of an
 * argument are skipped and never looked at.
 *
 * A request is judged from left to right, and the lengths that it announces are accepted only
 * within the limits. Hence:
 *
 *   R1  a result for some bytes, other than RESP_MORE, stays the same if more bytes follow them;
 *   R2  RESP_MORE is never returned for limits->request_max bytes: a buffer of that size is enough;
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
    unsigned args_max;    /* including the command's name; at most RESP_ARGS_MAX */
    size_t bulk_max;      /* bytes of one argument */
    size_t request_max;   /* bytes of a request on the wire */
    bool inline_commands; /* all of them; HELLO and PING are always accepted */
};

struct resp_request {
    unsigned argc;
    size_t used; /* bytes of the input that the request took */
    struct weir_text argv[RESP_ARGS_MAX];
    char scratch[RESP_INLINE_MAX]; /* the words of an inline command, or a complaint */
};

/*
 * Reads one request from the start of the input: an array of bulk strings or, if allowed, an inline
 * command. An empty line, "*0" and "*-1" are requests without arguments, which the caller skips.
 * The arguments point into the input (inline: into *out) and may hold any byte.
 *
 * RESP_REQUEST: *out is set. RESP_MORE: the input is the beginning of a request. RESP_BAD: the
 * input is no request; *complaint, in the words of Redis where it has some ("Protocol error: ..."),
 * is valid as long as *out. The caller should answer with "ERR " and the complaint and close the
 * connection, because it is unknown where the next request begins.
 *
 * Stricter than Redis: a line end is CR LF also where Redis skips any two bytes, and a count has at
 * most 32 characters. POST and Host: are refused as inline commands: a client that speaks HTTP here
 * is a browser that was tricked into it.
 */
int resp_parse(struct weir_text input, const struct resp_limits *limits, struct resp_request *out,
               const char **complaint);

/* Read a decimal number as Redis does: no '+', spaces or leading zeros, nothing out of range. */
bool resp_to_u64(struct weir_text text, uint64_t *number);
bool resp_to_i64(struct weir_text text, int64_t *number);

/*
 * Replies. `proto` is 2 or 3, as agreed on for the connection. As always with a buffer, a reply
 * that does not fit sets b->full; each call writes all of its bytes or none.
 */

/* Write one line each: control characters become spaces, so that no text can end the line early. */
void resp_put_simple(struct buffer *b, struct weir_text text);
void resp_put_error(struct buffer *b,
                    struct weir_text text); /* begins with its code, for instance ERR */
/* The text is cut after 255 bytes. */
void resp_put_errorf(struct buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void resp_put_integer(struct buffer *b, int64_t number);
void resp_put_bulk(struct buffer *b, struct weir_text text);
/* Writes n integers as bulk strings. Fails if the buffer has no room for the longest ones. */
void resp_put_bulk_integers(struct buffer *b, const int64_t *numbers, size_t n);
void resp_put_null(struct buffer *b, int proto);
void resp_put_string(struct buffer *b, int proto, const char *string); /* "": as null */
/* Writes a text for people; a bulk string in RESP2. */
void resp_put_verbatim(struct buffer *b, int proto, struct weir_text text);

/* Writes the beginning of an array; n values follow. */
void resp_put_array(struct buffer *b, size_t n);
/* Writes a whole array of n integers. */
void resp_put_integers(struct buffer *b, const int64_t *numbers, size_t n);
/*
 * Writes the beginning of a map; n pairs of a key and a value follow. In RESP2 it is an array of 2
 * n.
 */
void resp_put_map(struct buffer *b, int proto, size_t n);
/* Writes the beginning of a set; n values follow. In RESP2 it is an array. */
void resp_put_set(struct buffer *b, int proto, size_t n);

#endif
