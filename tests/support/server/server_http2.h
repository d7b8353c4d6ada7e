/* Frames of HTTP/2 as a careless gRPC client sends them: the test chooses its windows. */
#ifndef WEIR_TESTS_SUPPORT_SERVER_HTTP2_H
#define WEIR_TESTS_SUPPORT_SERVER_HTTP2_H

#include "common/text.h"
#include "support/server/server_client.h"

enum {
    HTTP2_DATA,
    HTTP2_HEADERS,
    HTTP2_RST_STREAM = 3,
    HTTP2_SETTINGS,
    HTTP2_PING = 6,
    HTTP2_GOAWAY
};

/* A frame that was received; the payload is valid until the next one. */
struct http2_frame {
    unsigned type;
    unsigned flags;
    unsigned stream;
    size_t len;
    unsigned char payload[16384];
};

/* Sends the preface. Each stream may then send `window` bytes of replies, the
 * connection 65,535 until http2_open_window(). */
bool http2_begin(struct server_client *c, unsigned window);

/* Begins a call, with one message. Returns false if the server has closed the connection. */
bool http2_call(struct server_client *c, unsigned stream, const char *path,
                struct weir_text message);

/* The same with a message of so many bytes, more than 16 KB, all in a field that no message has. */
bool http2_call_padded(struct server_client *c, unsigned stream, const char *path, unsigned bytes);

/* Begins a call without a message, which goes on. */
bool http2_begin_call(struct server_client *c, unsigned stream, const char *path);

/* The same with a Weir-Secret. */
bool http2_begin_secret_call(struct server_client *c, unsigned stream, const char *path,
                             const char *secret);

/* Lets the stream, or the connection (stream 0), send more bytes. */
bool http2_open_window(struct server_client *c, unsigned stream, unsigned bytes);

bool http2_ping(struct server_client *c);
bool http2_reset(struct server_client *c, unsigned stream);

/* Receives the next frame. Returns false if the connection has ended. */
bool http2_receive(struct server_client *c, struct http2_frame *frame);

/* Returns a message of Limiter/Batch with so many malformed checks, at most 1000, of 13 bytes. The
 * server answers each with more than 66 bytes. */
struct weir_text http2_batch(unsigned checks);

#endif
