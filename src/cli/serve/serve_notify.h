/* Messages to the service manager: sd_notify(3), without its library. */
#ifndef WEIR_CLI_SERVE_SERVE_NOTIFY_H
#define WEIR_CLI_SERVE_SERVE_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: nobody listens */
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ns; /* a sign of life is expected at least that often; 0: none is */
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment. */
void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/* Lines such as READY=1 and STATUS=text. What cannot be sent is not: nobody is there to be told. */
void notify_send(const struct notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
