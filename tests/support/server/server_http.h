/* A server in this process, and a client that speaks HTTP to it. */
#ifndef WEIR_TESTS_SERVER_HTTP_H
#define WEIR_TESTS_SERVER_HTTP_H

#include "server/loop/server.h"

struct http_server {
    struct server server;
    char address[128];
};

/* Starts it with these rules, on a free port unless the options, which may be NULL, name an address
 * for HTTP. */
void http_server_start(struct http_server *s, const char *rules,
                       const struct server_options *options);
void http_server_stop(struct http_server *s);

int http_connect(const struct http_server *s); /* returns a socket; fails the test if it cannot */
void http_send(int fd, const char *text, size_t len);

struct http_answer {
    int status;
    char text[1 << 18]; /* head and body, terminated */
    const char *body;   /* in it */
};

/* Reads the next answer. Returns false if the server has closed the connection instead. */
bool http_receive(int fd, struct http_answer *a);

/* Sends one request on a connection of its own: "POST /v1/check", fields ("A: b\r\n"), a body. */
void http_ask(const struct http_server *s, const char *line, const char *fields, const char *body,
              struct http_answer *a);

/* Returns the seconds of Retry-After; 0 if there is none. */
unsigned long http_retry_after(const struct http_answer *a);

/* Returns whether the head has this line. */
bool http_has_line(const struct http_answer *a, const char *line);

#endif
