/*
 * The operators' side: HTTP on a listener and a thread of its own, so that it
 * answers while the others are busy. `weir ctl` and `weir top` speak it.
 *
 *   anybody  GET    /healthz, /readyz
 *   check    GET    /metrics                Prometheus text 0.0.4 (metrics.c)
 *   check    GET    /v1/status              version, uptime, state, requests, connections, memory
 *   check    GET    /v1/limits[/NAME]       live view: numbers, mode, keys, decisions
 *   admin    PUT    /v1/limits/NAME         one limit as JSON or YAML: added (201) or replaced (200)
 *   admin    DELETE /v1/limits/NAME         204
 *   check    GET    /v1/keys?limit=L&key=K[&key=K2][&tier=T]    one key: its answer, its block
 *   admin    POST   /v1/keys/reset|block|unblock|refund|penalize
 *                   {"limit":L,"key":K|[K,K2],"tier":T,"for_ms":N (block),"units":N}
 *   check    GET    /v1/top[?n=20]          {"denied":[{"limit":L,"key":K,"count":N,"error":N},...]}
 *   admin    POST   /v1/reload              {"generation":N,"messages":[...]}, or 422 and the old rules
 *   check    GET    /v1/config              the effective rules, application/yaml
 *   check    GET    /v1/log-level           {"level":"info"}
 *   admin    PUT    /v1/log-level           {"level":"debug"}
 *   check    GET    /v1/mode                {"mode":"enforce","limits":{"search":"shadow"}}
 *   admin    PUT    /v1/mode                {"mode":"shadow"[,"limit":L]}: the kill switch; "enforce"
 *                                           is what the rules say
 *   anybody  GET    /openapi.json           the description of all of this
 *
 * /v1/limits gives {"limits":[{"name","tier","algorithm","rate" ("100/min"),"count","period_ms",
 * "burst","shadow" (by the rules),"mode","keys","capacity","blocks","bytes","allowed","denied",
 * "never","evicted","reclaimed","full_denied","full_allowed","missing"},...]}; one tier or rate of
 * overrides is an item. /v1/keys gives the eight members of an answer (a peek of 1), and
 * "blocked_ms" (0: not, -1: without end). /v1/status gives {"version","state" (starting, ready,
 * draining),"uptime_s","pid","threads","generation","config" (path or null),"mode",
 * "connections":{"resp":N,...},"requests":{"resp":N,...},"decisions":{"allow","deny","never"},
 * "memory_bytes","cpu_seconds"}.
 *
 * Every change is logged at LEVEL_AUDIT with who did it (address, role) and what. Errors are
 * problem+json as on the other listener.
 */
#ifndef WEIR_SERVER_ADMIN_H
#define WEIR_SERVER_ADMIN_H

#include "server/http.h"

extern const struct http_route admin_routes[]; /* NULL behind the last path */

#endif
