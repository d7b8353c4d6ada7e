/*
 * Logs what happens to connections. Clients can cause each of these events at any rate,
 * so each kind is logged once a second, with the number of those left out.
 */
#include "common/log.h"
#include "server/net/worker.h"

static const char *print_peer(const struct connection *c, char *text)
{
    return c->peer.family != 0 ? address_print(&c->peer, text) : "unix";
}

void connection_tell_refused(const struct connection *c, enum connection_refusal why)
{
    static const char *const words[CONNECTION_REFUSALS] = {
        [CONNECTION_TOO_MANY] = "too many connections",
        [CONNECTION_TOO_MANY_OF_ADDRESS] = "too many connections of this address",
    };
    static struct log_limit limits[CONNECTION_REFUSALS];
    char peer[ADDRESS_MAX];
    LOG_LIMITED(&limits[why], LEVEL_WARNING, "connection refused", LOG_STRING("why", words[why]),
                LOG_STRING("protocol", c->protocol->name),
                LOG_STRING("address", print_peer(c, peer)));
}

/* An idle client has done nothing wrong and is logged at debug level; a slow
 * one may be an attack. */
void connection_tell_late(const struct connection *c)
{
    static struct log_limit limits[2];
    bool idle = !c->writing && buffer_len(&c->input) == 0;
    char peer[ADDRESS_MAX];
    LOG_LIMITED(&limits[idle], idle ? LEVEL_DEBUG : LEVEL_WARNING, "connection cut",
                LOG_STRING("why", c->writing ? "it does not fetch its replies"
                                  : idle     ? "idle"
                                             : "its request does not end"),
                LOG_STRING("protocol", c->protocol->name),
                LOG_STRING("address", print_peer(c, peer)));
}

bool connection_wrong_secret(struct connection *c)
{
    static struct log_limit limit;
    char peer[ADDRESS_MAX];
    if (++c->wrong < CONNECTION_WRONG_MAX) {
        return false;
    }
    LOG_LIMITED(&limit, LEVEL_WARNING, "wrong secrets: connection ended",
                LOG_STRING("address", print_peer(c, peer)),
                LOG_STRING("protocol", c->protocol->name), LOG_COUNT("tried", c->wrong));
    return true;
}
