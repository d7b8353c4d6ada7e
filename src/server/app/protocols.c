/* The protocols of the listeners, and the routes of those that speak HTTP. */
#include "server/admin/admin.h"
#include "server/grpc/grpc.h"
#include "server/resp/resp_commands.h"
#include "server/sandbox/explain_json.h"
#include "server/sandbox/sandboxes.h"

static const struct http_route *const client_routes[] = {
    http_operation_routes, http_auth_routes,    http_rls_routes,
    http_health_routes,    http_openapi_routes, NULL,
};

static const struct http_route *const operator_routes[] = {
    admin_status_routes,   admin_top_routes,    admin_limits_routes,
    admin_keys_routes,     admin_blocks_routes, http_key_routes,
    admin_settings_routes, http_health_routes,  sandbox_routes,
    demo_routes,           explain_routes,      http_openapi_routes,
    admin_page_routes,     admin_events_routes, NULL,
};

static const struct http_route *const metrics_routes[] = {
    admin_metrics_routes,
    http_health_routes,
    NULL,
};

#define SPEAKS_HTTP                                                                                \
    .refusal = http_refusal, .unsealed = http_unsealed, .alpn = {"http/1.1"}, .reserve = true,     \
    .session_bytes = sizeof(struct http_session), .consume = http_consume

static const struct protocol http = {
    .name = "http",
    .address = "127.0.0.1:8080",
    .roles = {[ROLE_CHECK] = true},
    .kind = PROTOCOL_HTTP,
    .rows = client_routes,
    SPEAKS_HTTP,
};

static const struct protocol admin = {
    .name = "admin",
    .address = "127.0.0.1:8082",
    .roles = {[ROLE_CHECK] = true, [ROLE_ADMIN] = true}, /* it shows keys */
    .kind = PROTOCOL_ADMIN,
    .rows = operator_routes,
    SPEAKS_HTTP,
};

/* No role uses it, so it needs no secret at any address. */
static const struct protocol metrics = {
    .name = "metrics",
    .address = "off",
    .kind = PROTOCOL_METRICS,
    .rows = metrics_routes,
    SPEAKS_HTTP,
};

const struct protocol *const server_protocols[PROTOCOLS] = {
    [PROTOCOL_RESP] = &protocol_resp, [PROTOCOL_HTTP] = &http,
    [PROTOCOL_GRPC] = &protocol_grpc, [PROTOCOL_ADMIN] = &admin,
    [PROTOCOL_METRICS] = &metrics,
};
