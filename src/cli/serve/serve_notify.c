#include "cli/serve/serve_notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

#define MESSAGE_BYTES 2048

/*
 * Sets n->to from a path, or from '@' and an abstract name. Returns false for any other address,
 * such as vsock:, which is not supported.
 */
static bool address_of(const char *name, struct notify *n)
{
    size_t len = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof n->to.sun_path) {
        return false;
    }
    n->to.sun_family = AF_UNIX;
    memcpy(n->to.sun_path, name, len);
    n->to.sun_path[0] = (char)(name[0] == '@' ? '\0' : '/');
    n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'));
    return true;
}

/* Returns the watchdog's time in ns; 0 if there is none, or if pid names another process. */
static uint64_t watchdog_of(const char *usec, const char *pid)
{
    if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid())) {
        return 0;
    }
    uint64_t number = usec[0] >= '0' && usec[0] <= '9' ? strtoull(usec, NULL, 10) : 0;
    return number < UINT64_MAX / 1000 ? number * 1000 : 0;
}

void notify_open(struct notify *n)
{
    const char *name = getenv("NOTIFY_SOCKET");
    *n = (struct notify){.fd = -1};
    n->watchdog_ns = watchdog_of(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
    if (name != NULL && name[0] != '\0') {
        if (address_of(name, n)) {
            n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        }
        if (n->fd < 0) {
            LOG(LEVEL_WARNING, "cannot send messages to the service manager",
                LOG_STRING("NOTIFY_SOCKET", name));
        }
    }
    n->watchdog_ns = n->fd >= 0 ? n->watchdog_ns : 0;
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *n)
{
    if (n->fd >= 0) {
        (void)close(n->fd);
    }
    n->fd = -1;
}

void notify_send(const struct notify *n, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list list;
    if (n->fd < 0) {
        return;
    }
    va_start(list, format);
    int len = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    len = len < (int)sizeof text ? len : (int)sizeof text - 1;
    if (len > 0 && sendto(n->fd, text, (size_t)len, MSG_NOSIGNAL, (const struct sockaddr *)&n->to,
                          n->to_len) < 0) {
        static struct log_limit limit;
        LOG_LIMITED(&limit, LEVEL_WARNING, "cannot send a message to the service manager",
                    LOG_STRING("why", strerror(errno)));
    }
}
