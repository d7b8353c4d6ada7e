#include "support/tls/tls_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/server/server_client.h"

#define BYTES_MAX (64u << 20)

static void require(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "tls_client: %s\n", what);
        abort();
    }
}

struct tls_context *tls_client_context(const struct certificates *c, const char *ca,
                                       const char *own)
{
    struct tls_context *context;
    struct weir_error error;
    char file[3][64];
    (void)snprintf(file[0], sizeof file[0], "%s.crt", ca);
    (void)snprintf(file[1], sizeof file[1], "%s.crt", own != NULL ? own : "");
    (void)snprintf(file[2], sizeof file[2], "%s.key", own != NULL ? own : "");
    struct tls_options o = {.ca = certificates_path(c, file[0]),
                            .cert = own != NULL ? certificates_path(c, file[1]) : NULL,
                            .key = own != NULL ? certificates_path(c, file[2]) : NULL};
    require(tls_context_create(&context, &o, &error) == 0, "no context");
    return context;
}

void tls_client_open(struct tls_client *c, int fd, struct tls_context *context)
{
    struct timeval patience = {.tv_sec = 60};
    *c = (struct tls_client){.fd = fd};
    buffer_init(&c->plain, BYTES_MAX);
    buffer_init(&c->out, BYTES_MAX);
    c->session = tls_session_create(context, "localhost");
    require(c->session != NULL && c->fd >= 0, "no memory");
    require(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0, "timeout");
}

void tls_client_connect(struct tls_client *c, const char *address, struct tls_context *context)
{
    const char *port = strrchr(address, ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0, "no connection");
    tls_client_open(c, fd, context);
}

void tls_client_close(struct tls_client *c)
{
    tls_session_destroy(c->session);
    buffer_finish(&c->plain);
    buffer_finish(&c->out);
    (void)close(c->fd);
}

static bool flush(struct tls_client *c)
{
    bool good = true;
    while (good && buffer_len(&c->out) > 0) {
        struct weir_text text = buffer_text(&c->out);
        ssize_t n = send(c->fd, text.at, text.len, MSG_NOSIGNAL);
        good = n > 0;
        buffer_take(&c->out, n > 0 ? (size_t)n : 0);
    }
    return good;
}

static bool unseal(struct tls_client *c, struct weir_text cipher)
{
    enum tls_result got = tls_receive(c->session, &cipher, &c->plain, &c->out, &c->error);
    c->ended = c->ended || got == TLS_ENDED;
    return flush(c) && (got == TLS_OK || got == TLS_ENDED);
}

bool tls_client_hear(struct tls_client *c)
{
    char cipher[65536];
    ssize_t n = recv(c->fd, cipher, sizeof cipher, 0);
    return n > 0 && unseal(c, (struct weir_text){cipher, (size_t)n});
}

bool tls_client_shake(struct tls_client *c)
{
    bool good = unseal(c, TEXT(""));
    while (good && !tls_is_up(c->session)) {
        good = tls_client_hear(c);
    }
    return good;
}

bool tls_client_say(struct tls_client *c, struct weir_text text)
{
    while (text.len > 0) {
        if (tls_send(c->session, &text, &c->out, &c->error) != TLS_OK || !flush(c)) {
            return false;
        }
    }
    return true;
}

bool tls_client_end(struct tls_client *c)
{
    tls_end(c->session, &c->out);
    return flush(c);
}

bool tls_client_await_bytes(struct tls_client *c, size_t n)
{
    while (buffer_len(&c->plain) < n) {
        if (!tls_client_hear(c)) {
            return false;
        }
    }
    return true;
}

bool tls_client_await(struct tls_client *c, const char *text)
{
    for (;;) {
        struct weir_text heard = buffer_text(&c->plain);
        if (memmem(heard.at, heard.len, text, strlen(text)) != NULL) {
            return true;
        }
        if (!tls_client_hear(c)) {
            return false;
        }
    }
}

const char *tls_client_ask(struct tls_client *c, const char *words)
{
    static __thread char reply[4096];
    char bytes[4096];
    size_t n = server_pack(words, bytes, sizeof bytes);
    reply[0] = 0;
    buffer_take(&c->plain, buffer_len(&c->plain));
    if (tls_client_say(c, (struct weir_text){bytes, n}) && tls_client_await(c, "\r\n")) {
        struct weir_text heard = buffer_text(&c->plain);
        (void)snprintf(reply, sizeof reply, "%.*s", TEXT_ARGS(heard));
    }
    return reply;
}
