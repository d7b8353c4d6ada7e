#include "support/server/server_http2.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "server/operations/operations.h"

enum { END_STREAM = 1, END_HEADERS = 4, WINDOW_UPDATE = 8, INITIAL_WINDOW_SIZE = 4 };

static char *put_head(char *to, size_t len, unsigned type, unsigned flags, unsigned stream)
{
    const unsigned char head[9] = {
        (unsigned char)(len >> 16),    (unsigned char)(len >> 8),    (unsigned char)len,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
    memcpy(to, head, sizeof head);
    return to + sizeof head;
}

static char *put_u32(char *to, unsigned value)
{
    for (unsigned i = 0; i < 4; i++) {
        to[i] = (char)(value >> (8 * (3 - i)));
    }
    return to + 4;
}

static bool send_number(struct server_client *c, unsigned type, unsigned stream, unsigned value)
{
    char frame[13];
    (void)put_u32(put_head(frame, 4, type, 0, stream), value);
    return server_send(c, frame, sizeof frame);
}

bool http2_begin(struct server_client *c, unsigned window)
{
    char hello[64] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    char *end = put_head(hello + 24, 6, HTTP2_SETTINGS, 0, 0);
    *end++ = 0;
    *end++ = INITIAL_WINDOW_SIZE;
    end = put_u32(end, window);
    return server_send(c, hello, (size_t)(end - hello));
}

/* Puts HEADERS with fields that are not compressed; without a secret it is "". */
static char *put_call(char *to, unsigned stream, const char *path, const char *secret)
{
    char fields[224];
    int n = snprintf(fields, sizeof fields, "\x83\x86\x41\x01x\x44%c%s\x5f\x10%s",
                     (int)strlen(path), path, "application/grpc");
    if (secret[0] != 0) {
        n += snprintf(fields + n, sizeof fields - (size_t)n, "\x40\x0bweir-secret%c%s",
                      (int)strlen(secret), secret);
    }
    to = put_head(to, (size_t)n, HTTP2_HEADERS, END_HEADERS, stream);
    memcpy(to, fields, (size_t)n);
    return to + n;
}

bool http2_begin_call(struct server_client *c, unsigned stream, const char *path)
{
    return http2_begin_secret_call(c, stream, path, "");
}

bool http2_begin_secret_call(struct server_client *c, unsigned stream, const char *path,
                             const char *secret)
{
    char frame[256];
    return server_send(c, frame, (size_t)(put_call(frame, stream, path, secret) - frame));
}

bool http2_call(struct server_client *c, unsigned stream, const char *path,
                struct weir_text message)
{
    char frames[16384];
    if (message.len > sizeof frames - 512) {
        return false;
    }
    char *end = put_call(frames, stream, path, "");
    end = put_head(end, message.len + 5, HTTP2_DATA, END_STREAM, stream);
    *end++ = 0;
    end = put_u32(end, (unsigned)message.len);
    memcpy(end, message.at, message.len);
    return server_send(c, frames, (size_t)(end - frames) + message.len);
}

bool http2_call_padded(struct server_client *c, unsigned stream, const char *path, unsigned bytes)
{
    static char frame[9 + 16384];
    unsigned left = bytes + 5;
    unsigned rest = bytes - 4; /* field 15, a text */
    char *to = frame + 9;
    bool goes_on = http2_begin_call(c, stream, path);
    memset(frame, 0, sizeof frame);
    to = put_u32(to + 1, bytes);
    *to++ = 15 << 3 | 2;
    *to++ = (char)(rest | 128);
    *to++ = (char)(rest >> 7 | 128);
    *to++ = (char)(rest >> 14);
    while (goes_on && left > 0) {
        unsigned n = left < 16384 ? left : 16384;
        left -= n;
        (void)put_head(frame, n, HTTP2_DATA, left == 0 ? END_STREAM : 0, stream);
        goes_on = server_send(c, frame, 9 + n);
        memset(frame + 9, 0, 9);
    }
    return goes_on;
}

bool http2_open_window(struct server_client *c, unsigned stream, unsigned bytes)
{
    return send_number(c, WINDOW_UPDATE, stream, bytes);
}

bool http2_ping(struct server_client *c)
{
    static const char ping[] = "\0\0\10\6\0\0\0\0\0weir-it";
    return server_send(c, ping, sizeof ping);
}

bool http2_reset(struct server_client *c, unsigned stream)
{
    return send_number(c, HTTP2_RST_STREAM, stream, 8); /* CANCEL */
}

static bool receive_all(struct server_client *c, void *to, size_t len)
{
    return len == 0 || recv(c->fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

bool http2_receive(struct server_client *c, struct http2_frame *frame)
{
    unsigned char head[9];
    if (!receive_all(c, head, sizeof head)) {
        return false;
    }
    frame->len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    frame->type = head[3];
    frame->flags = head[4];
    frame->stream = (unsigned)head[6] << 16 | (unsigned)head[7] << 8 | head[8];
    return frame->len <= sizeof frame->payload && receive_all(c, frame->payload, frame->len);
}

struct weir_text http2_batch(unsigned checks)
{
    static const char check[] = /* field 1, a message: its max_wait_ms is the largest number */
        {1 << 3 | 2, 11, (ASK_MAX_WAIT + 1) << 3, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1};
    static char message[1000 * sizeof check];
    for (unsigned i = 0; i < sizeof message / sizeof check; i++) {
        memcpy(message + i * sizeof check, check, sizeof check);
    }
    return (struct weir_text){message, checks * sizeof check};
}
