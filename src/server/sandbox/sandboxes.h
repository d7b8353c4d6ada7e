/*
 * Sandboxes: rules that an operator tries out, beside those in use. Each has rules, tables and a
 * time of its own, which only its steps move on; it has no store, no files and no state.
 *
 *   POST   /v1/sandbox       {"rules":"YAML"}: makes one (sandbox_create.c)
 *   POST   /v1/sandbox/ID    {"asks":[...]}: one step (sandbox_step.c)
 *   DELETE /v1/sandbox/ID
 *   POST   /v1/config/check  checks rules without using them (check_file.c)
 *
 * With --demo there are sandboxes for clients of the role check too, in places of their own. Their
 * rules are built in, and named by an id (scenarios.c):
 *
 *   POST   /v1/demo          {"scenario":"all"}: makes one
 *   POST   /v1/demo/ID       one step, without explanations and header fields
 *   DELETE /v1/demo/ID
 *
 * S1  The table of sandboxes belongs to the operators' thread. A sandbox is `busy` while a job
 *     makes it or takes a step; the job has its rules and its time then. Another step gets 409.
 * S2  A busy sandbox is not freed: DELETE and the end of its idle life mark it, and the job's end
 *     frees it.
 * S3  Bounds: SANDBOXES_MAX sandboxes, each within CONFIG_SANDBOX_BYTES (rules/file/config.h);
 *     SANDBOX_IDLE_MS without a step; SANDBOX_ASKS_MAX asks and SANDBOX_STEP_NS for each step.
 *     Of the demo: DEMO_SANDBOXES_MAX sandboxes, one for each address; DEMO_IDLE_MS; DEMO_BODY_MAX
 *     bytes of a request; one job at a time (job.h).
 * S4  The demo takes no place and no job of operators, and operators none of the demo. An id of one
 *     pool is unknown in the other.
 */
#ifndef WEIR_SERVER_SANDBOX_SANDBOXES_H
#define WEIR_SERVER_SANDBOX_SANDBOXES_H

#include "server/operations/reservations_id.h"
#include "server/http/http_routes.h"

#define SANDBOXES_MAX 32
#define SANDBOX_IDLE_MS 300000
#define SANDBOX_ASKS_MAX 512
#define SANDBOX_STEP_NS WEIR_SECOND
#define DEMO_SANDBOXES_MAX 4
#define DEMO_IDLE_MS 60000
/* Bytes of a request to the demo: a step of SANDBOX_ASKS_MAX asks of the page has about 60,000. */
#define DEMO_BODY_MAX 131072
#define SANDBOX_TIME_MAX_MS UINT64_C(4102444800000) /* the largest virtual time: the year 2100 */
#define SANDBOX_DATES_MS UINT64_C(946684800000)     /* from the year 2000 on, times are dates */

enum sandbox_pool { POOL_OPERATORS, POOL_DEMO, POOLS };

struct sandbox {
    enum sandbox_pool pool;
    struct address owner; /* demo: the client */
    const char *scenario; /* demo: the name of its rules */
    bool used;            /* this place of the table is taken */
    bool busy;            /* S1 */
    bool doomed;          /* S2 */
    struct id id;
    uint64_t touched_ms;      /* when it was made or its last step came, by the loop's clock */
    struct weir_rules *rules; /* NULL while they are made */
    uint64_t now_ns;          /* virtual time of its last ask */
    uint64_t made_ns;         /* Unix time at which it was made */
    struct http_style style;  /* of the replies that it shows */
};

struct sandboxes {
    unsigned jobs;           /* of operators that run or wait (job.h) */
    struct job *turn;        /* of the demo: the job that runs, and those that wait after it */
    uint64_t idle_ms[POOLS]; /* this and the next as in the options */
    uint64_t step_ns;
    struct sandbox at[SANDBOXES_MAX];
    struct sandbox demo[DEMO_SANDBOXES_MAX];
};

int sandboxes_create(struct sandboxes **sandboxes, const struct server_options *options,
                     struct weir_error *error);
void sandboxes_destroy(struct sandboxes *sandboxes); /* NULL is allowed; no job may run */

/* Frees the sandboxes that have been idle for too long. */
void sandboxes_expire(struct sandboxes *sandboxes, uint64_t now_ms);

/* Takes a place for a sandbox that is being made, and is busy. NULL: all are taken, or the kernel
 * gives no random numbers. */
struct sandbox *sandboxes_take(struct sandboxes *sandboxes, enum sandbox_pool pool,
                               uint64_t now_ms);

/* Returns the sandbox of the demo that this client has; NULL if it has none. It may be doomed. */
struct sandbox *sandboxes_of_client(struct sandboxes *sandboxes, const struct address *client);

/* Returns the sandbox of the pool with this id; NULL if there is none, or it is doomed. */
struct sandbox *sandboxes_find(struct sandboxes *sandboxes, enum sandbox_pool pool,
                               struct weir_text id);

/* Frees the sandbox, or lets the end of its job do so. */
void sandbox_remove(struct sandbox *sandbox);

/* Called when its job has ended: it is idle from now on, or freed. */
void sandbox_rest(struct sandbox *sandbox, uint64_t now_ms);

/* Tables of routes; `path` is NULL after the last row. */
extern const struct http_route sandbox_routes[];
extern const struct http_route demo_routes[]; /* they answer 404 without --demo */

/* ---- what both pools do (sandbox_routes.c) ---- */

/* Lets a job work on a sandbox, which is busy from now on. Returns false after a reply. */
struct job;
bool sandbox_begin_work(struct exchange *x, struct sandbox *sandbox, void (*run)(struct job *job));

/* Answer a step and a DELETE of the sandbox that the path names after the prefix. */
void sandbox_run_step(struct exchange *x, enum sandbox_pool pool, const char *prefix);
void sandbox_run_delete(struct exchange *x, enum sandbox_pool pool, const char *prefix);

/* Finds the only member, a text that is not empty, of a body like {"rules":"..."}, in the arena.
 * Returns 0, WEIR_EINVAL or WEIR_ENOMEM. */
int sandbox_read_member(struct weir_text body, const char *member, struct arena *arena,
                        struct weir_text *out, struct weir_error *error); /* sandbox_create.c */

/* ---- jobs ---- */

void sandbox_make(struct job *job);   /* sandbox_create.c */
void sandbox_play(struct job *job);   /* the same with the rules of a scenario */
void sandbox_step(struct job *job);   /* sandbox_step.c */
void check_rules_of(struct job *job); /* check_file.c */

#endif
