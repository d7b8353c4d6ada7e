/* Sends messages to the service manager: sd_notify(3), without its library. */
#ifndef WEIR_CLI_SERVE_SERVE_NOTIFY_H
#define WEIR_CLI_SERVE_SERVE_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: no service manager */
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ns; /* longest time between two watchdog messages; 0: none are expected */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment. */
void notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/*
 * Sends lines such as READY=1 and STATUS=text. A message that cannot be sent is dropped, with a
 * warning in the log.
 */
void notify_send(const struct notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
