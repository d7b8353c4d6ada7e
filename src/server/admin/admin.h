/*
 * The operators' interface: HTTP on a listener and a thread of its own, so that it
 * answers while the other threads are busy. `weir ctl` and `weir top` use it.
 *
 *   anybody  GET    /healthz, /readyz
 *   check    GET    /metrics                Prometheus text 0.0.4 (metrics.c)
 *   check    GET    /v1/status              version, uptime, state, requests, connections, memory
 *   check    GET    /v1/history             samples of the last 15 minutes, and what has happened:
 *                   {"now_ms","every_ms","role","demo","samples":[...] (sample.h),
 *                   "events":[{"at_ms","kind","text","messages":[...]},...]}; text and
 *                   messages for admin only
 *   check    GET    /v1/events              the same as server-sent events (events.h)
 *   admin    GET    /v1/limits[/NAME]       live view: numbers, mode, keys, decisions
 *   admin    PUT    /v1/limits/NAME         one limit, JSON or YAML: added (201) or replaced (200)
 *   admin    DELETE /v1/limits/NAME         204
 *   admin    GET    /v1/keys?limit=L&key=K[&key=K2][&tier=T][&by=A]
 *                                           one key: its answer, its block
 *   admin    POST   /v1/keys/reset|block|unblock|refund|penalize
 *                   {"limit":L,"key":K|[K,K2],"tier":T,"by":A,"for_ms":N (block),"why":W (block),
 *                   "units":N}
 *   admin    GET    /v1/blocks[?limit=L]    {"blocks":[{"limit","tier","key","banned","since_ms",
 *                   "until_ms" (null: without end),"blocked_ms" (-1: without end),"by","why"},...],
 *                   "left_out":N (of a list that is too long),"unnamed":N (at most so many are
 *                   blocked whose keys are not known)}
 *   admin    GET    /v1/top[?n=20][&minutes=1|5|15]
 *                   {"minutes","seconds" (that it covers),"others" (at most so often each other
 *                   key was denied),"denied":[{"limit":L,"key":K,"reason":R,"count":N,
 *                   "error":N},...]}
 *   admin    POST   /v1/reload              {"generation":N,"messages":[...]}; 422 if
 *                                           something stays as it was (rules or secrets)
 *   admin    GET    /v1/config              the effective rules, application/yaml
 *   admin    POST   /v1/explain             {"attributes":{...}[,"cost":N]}: the members of an
 *                   answer (a peek), "attributes" (as they are compared), "list" (null, allow,
 *                   block),"limits":[{"name","line" (null: added by PUT),"applies":true,"mode",
 *                   "tier" (null: none),"algorithm","rate","key","consistency","verdict","quota",
 *                   "remaining","retry_after_ms","reset_after_ms","blocked_ms"},
 *                   {"name","line","applies":false,"why"},...]; numbers of limits that a fleet
 *                   decides are null
 *   admin    POST   /v1/config/check        checks a rule file (the body, YAML) without using it:
 *                   {"ok","messages":[{"severity" (error, warning),"line","column","text"},...],
 *                   "limits":[{"name","line"},...],"changes":[...] (against the rules in effect)};
 *                   with ?source=file and no body, the files that a reload would read
 *   admin    POST   /v1/sandbox             {"rules":YAML}: rules to try out (server/sandbox):
 *                   201 {"sandbox":ID,"expires_in_s","limits":[...]}; 422 with messages as above
 *   admin    POST   /v1/sandbox/ID          one step: {"asks":[{"at_ms","attributes","cost","peek",
 *                   "explain","headers"},...]} (up to 512): {"answers":[...]}
 *   admin    DELETE /v1/sandbox/ID          204
 *   check    POST   /v1/demo, /v1/demo/ID, DELETE /v1/demo/ID: with --demo, the same with built-in
 *                   rules: {"scenario":"token_bucket"}; asks have no "explain" and "headers"
 *   admin    GET    /v1/log-level           {"level":"info"}
 *   admin    PUT    /v1/log-level           {"level":"debug"}
 *   admin    GET    /v1/mode                {"mode":"enforce","limits":{"search":"shadow"}}
 *   admin    PUT    /v1/mode                {"mode":"shadow"[,"limit":L]}: the kill switch;
 *                                           "enforce" returns to what the rules say
 *   anybody  GET    /openapi.json           the description of all of this
 *   anybody  GET    /, /page/FILE           the page for browsers (page.h)
 *
 * /v1/limits gives {"limits":[{"name","tier","algorithm","rate" ("100/min"),"count","period_ms",
 * "burst","shadow" (by the rules),"mode","keys","capacity","blocks","bytes","allowed","denied",
 * "never","shadow_denied","evicted","reclaimed","full_denied","full_allowed","missing",
 * "uncovered","bans",
 * "consistency" (local, exact, leased, synced),"degraded" (answers without the store),
 * "denied_rate","decided_rate" (per second of about the last 10 s, by all tiers of the limit
 * together)},...]}.
 * Each tier, and each different rate of overrides, is an item. The built-in limit "adhoc" is the
 * last item; its rate, count, period_ms and burst are null, because they come with each call.
 * /v1/keys gives the nine members of an answer (a peek of 1 unit), and "blocked_ms" (0: not
 * blocked, -1: without end). /v1/status gives {"version","state" (starting, ready,
 * draining),"uptime_s","pid","threads","generation","config" (path; null: none, or not for the role
 * check),"mode",
 * "connections":{"resp":N,...},"requests":{"resp":N,...},"results":{"allow","deny","error",
 * "overload","other"},"decisions":{"allow","deny","never","shadow_deny"},"store":
 * {"up","nodes","connections","breakers_open","full","evicted_keys","policy","why" (what is wrong;
 * null: nothing, or not for the role check)} (null: no fleet),"memory_bytes","cpu_seconds"}.
 *
 * Every change is logged at LEVEL_AUDIT with the client's address and role and what was changed.
 * Errors are problem+json as on the other listener. If rules were refused (422), the problem has
 * "messages", each as the program prints it ("weir.yaml:3:5: found ...").
 *
 * A page in a browser must not be able to use an operator's access. http_origin.c refuses requests
 * of other origins and to other host names (403), on both listeners. Here, changes whose body has a
 * type that a form could have sent are refused too (415; application/json and application/yaml are
 * accepted).
 */
#ifndef WEIR_SERVER_ADMIN_ADMIN_H
#define WEIR_SERVER_ADMIN_ADMIN_H

#include "common/log.h"
#include "server/http/http_json.h"

/* Tables of routes; `path` is NULL after the last row. */
extern const struct http_route admin_status_routes[];   /* state, metrics */
extern const struct http_route admin_top_routes[];      /* keys denied most */
extern const struct http_route admin_metrics_routes[];  /* of the listener for metrics */
extern const struct http_route admin_limits_routes[];   /* limits, and the rules as a whole */
extern const struct http_route admin_keys_routes[];     /* keys */
extern const struct http_route admin_blocks_routes[];   /* keys that are blocked */
extern const struct http_route admin_settings_routes[]; /* the log's level, the kill switch */
extern const struct http_route admin_page_routes[];     /* the page for browsers */
extern const struct http_route admin_events_routes[];   /* what it shows live: events.h */

/* Returns whether `name` is that of the built-in limit, and the server has one. */
bool admin_is_adhoc(const struct exchange *x, const char *name);

/* Replies with JSON, and releases it. NULL means that there was no memory for it: replies 500. */
void admin_reply_json(struct exchange *x, int status, struct json_t *json);

/* Replies 422 with the messages if rules were refused (WEIR_ERULES); other errors as elsewhere. */
void admin_reply_refused(struct exchange *x, int e, const struct weir_error *error,
                         struct json_t *messages);

/* The times for which the keys that were denied most are listed. */
#define ADMIN_TOP_MINUTES 3
extern const uint64_t admin_top_minutes[ADMIN_TOP_MINUTES];

/* Returns what /v1/top replies; NULL if out of memory. */
struct json_t *admin_top(const struct server *server, uint64_t minutes, size_t most);

/* Begins another turn of counting denials if one is due. Called about once a second. */
void admin_top_tick(const struct server *server);

/* Puts ,"messages":[...] before the end of a problem. NULL: nothing. */
void admin_put_messages(struct buffer *body, const struct json_t *messages);

/* Returns a member of the body that must be a string; NULL after a 400. */
const char *admin_member(struct exchange *x, const struct json_t *body, const char *name);

/*
 * Sets *yaml to the body, which is YAML or JSON; JSON is rewritten into `room`. Returns false,
 * after a 400, if the body is said to be JSON and is not.
 */
bool admin_read_limit(struct exchange *x, struct buffer *room, struct weir_text *yaml);

/* Logs a change, with one more field about it. */
void admin_audit(const struct exchange *x, const char *what, struct log_field more);

#endif
