/* Serves the OpenAPI document, which describes both HTTP listeners, on each of them. */
#include "server/http/http_routes.h"
#include "server/http/openapi.h"

static void run_openapi(struct exchange *x)
{
    buffer_put(&x->body, (struct text){openapi_json, openapi_json_size});
    http_reply(x, 200, "application/json", NULL);
}

const struct http_route http_openapi_routes[] = {
    {"GET", "/openapi.json", HTTP_AT, ROLE_NONE, run_openapi, "what there is, as OpenAPI 3.1"},
    {NULL, NULL, HTTP_AT, ROLE_NONE, NULL, NULL},
};
