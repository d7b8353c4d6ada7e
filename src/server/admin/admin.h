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
 * "never","evicted","reclaimed","full_denied","full_allowed","missing","shadow_denied",
 * "consistency" (local, exact, leased, synced),"degraded" (answers without the store)},...]}; one
 * tier or rate of overrides is an item, and the built-in limit "adhoc" the last one: its rate, count,
 * period_ms and burst are null, they come with each call. /v1/keys gives the eight members of an answer (a peek of 1), and
 * "blocked_ms" (0: not, -1: without end). /v1/status gives {"version","state" (starting, ready,
 * draining),"uptime_s","pid","threads","generation","config" (path or null),"mode",
 * "connections":{"resp":N,...},"requests":{"resp":N,...},"decisions":{"allow","deny","never"},
 * "memory_bytes","cpu_seconds"}.
 *
 * Every change is logged at LEVEL_AUDIT with who did it (address, role) and what. Errors are
 * problem+json as on the other listener; where rules were refused (422), with "messages", each as
 * the program prints it ("weir.yaml:3:5: found ...").
 *
 * A page in a browser must not be able to use an operator's access. Requests with an Origin that is
 * not this server's own are refused (403), and changes whose body has a type that a form could have
 * sent (415: say application/json, or application/yaml). Where no secrets are asked for, a page
 * could also bring its own name to point here: then a Host is an IP address, localhost or the
 * host that --admin names (403).
 */
#ifndef WEIR_SERVER_ADMIN_ADMIN_H
#define WEIR_SERVER_ADMIN_ADMIN_H

#include "common/log.h"
#include "server/http/http_json.h"

/* NULL behind the last path. */
extern const struct http_route admin_status_routes[];   /* what is going on */
extern const struct http_route admin_limits_routes[];   /* limits, and their rules as a whole */
extern const struct http_route admin_keys_routes[];     /* keys */
extern const struct http_route admin_settings_routes[]; /* the log's level, the kill switch */

/* Whether who asks is no page of a stranger in an operator's browser. Replies if not. */
bool admin_admits(struct exchange *x);

/* Whether the built-in limit is meant, which is none of the rules, and there. */
bool admin_is_adhoc(const struct exchange *x, const char *name);

/* Takes over the JSON; NULL: there was no memory for it. */
void admin_reply_json(struct exchange *x, int status, struct json_t *json);

/* 422 with the messages for rules that were refused; other errors as elsewhere. */
void admin_reply_refused(struct exchange *x, int e, const struct weir_error *error,
                         struct json_t *messages);

/* The only member of the body, a string that must be there; NULL after a reply. */
const char *admin_member(struct exchange *x, const struct json_t *body, const char *name);

/* Logs a change: what, and one more thing about it. */
void admin_audit(const struct exchange *x, const char *what, struct log_field more);

#endif
