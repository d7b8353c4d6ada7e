/* grpc.health.v1.Health: whether the server takes calls, as /readyz tells it. */
#include "base/atomic.h"
#include "server/grpc/grpc.h"
#include "wire/protobuf.h"

enum serving { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

static enum serving serving_of(const struct grpc_call *call, struct weir_text service)
{
    const struct server *server = call->connection->worker->server;
    bool ready = load_acquire(&server->state) == SERVER_READY;
    bool known = service.len == 0 || text_is(service, "weir.v1.Limiter") ||
                 text_is(service, "envoy.service.ratelimit.v3.RateLimitService") ||
                 text_is(service, "ratelimit"); /* the reference server's name for itself */
    return !known ? SERVICE_UNKNOWN : ready ? SERVING : NOT_SERVING;
}

/* Finds the service that is asked about; "" stands for the whole server. */
static bool read_service(struct weir_text message, struct weir_text *service)
{
    struct protobuf_field f;
    int more;
    *service = (struct weir_text){"", 0};
    while ((more = protobuf_next(&message, &f)) == 1) {
        if (f.number == 1 && f.type == PROTOBUF_BYTES) {
            *service = f.bytes;
        }
    }
    return more == 0;
}

static struct weir_text message_of(enum serving serving, char (*room)[2])
{
    (*room)[0] = 1 << 3; /* field 1, a varint */
    (*room)[1] = (char)serving;
    return (struct weir_text){*room, 2};
}

static void run_check(struct grpc_call *call, struct weir_text message)
{
    char room[2];
    struct weir_text service;
    if (!read_service(message, &service)) {
        grpc_refuse(call, REQUEST_ERROR, GRPC_INVALID_ARGUMENT, "the message is malformed");
        return;
    }
    enum serving serving = serving_of(call, service);
    if (serving == SERVICE_UNKNOWN) {
        grpc_refuse(call, REQUEST_OTHER, GRPC_NOT_FOUND,
                    "found an unknown service, expected \"\", weir.v1.Limiter, "
                    "envoy.service.ratelimit.v3.RateLimitService or ratelimit");
    } else {
        buffer_put(grpc_begin_message(call), message_of(serving, &room));
        grpc_reply(call, REQUEST_OTHER);
    }
}

/* Tells the state now, and once more when the server ends (grpc_health_ends). It has no other
 * changes: a server that takes calls is ready. */
static void run_watch(struct grpc_call *call, struct weir_text message)
{
    char room[2];
    struct weir_text service;
    if (!read_service(message, &service)) {
        grpc_refuse(call, REQUEST_ERROR, GRPC_INVALID_ARGUMENT, "the message is malformed");
        return;
    }
    call->watching = true;
    worker_count_requests(call->connection->worker, PROTOCOL_GRPC, REQUEST_OTHER, 1);
    grpc_push(call, message_of(serving_of(call, service), &room));
}

void grpc_health_ends(struct grpc_session *session)
{
    char room[2];
    for (struct grpc_call *call = session->calls; call != NULL; call = call->next) {
        if (call->watching && !call->ended) {
            grpc_push(call, message_of(NOT_SERVING, &room));
            grpc_end(call);
        }
    }
}

const struct grpc_method grpc_health_methods[GRPC_HEALTH_METHODS] = {
    {"grpc.health.v1.Health", "Check", ROLE_NONE, 0, run_check, NULL},
    {"grpc.health.v1.Health", "Watch", ROLE_NONE, 0, run_watch, NULL},
};
