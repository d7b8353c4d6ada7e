/*
 * Work for an operator that takes long: it runs on a thread of libuv's pool, so that the operators'
 * thread answers others meanwhile, and its reply keeps its place by a struct pending.
 *
 * J1  A job has copies of what it needs of its request: the connection may close while it runs.
 * J2  On the pool's thread a job touches only itself, its sandbox (which no other job has then),
 *     and what any thread may use: the server's options, and functions of weir_rules.h.
 * J3  `ended` runs on the operators' thread, also if the connection has closed.
 * J4  Jobs of the demo run one after another, so they take at most one thread of the pool. One
 *     waits for each busy sandbox of the demo at most, so their list is as short as its places.
 */
#ifndef WEIR_SERVER_SANDBOX_JOB_H
#define WEIR_SERVER_SANDBOX_JOB_H

#include "server/http/http_json.h"

/* Jobs of operators that run or wait at once; one more is refused (503). */
#define JOBS_MAX 8

/* Bytes of one reply. */
#define JOB_REPLY_BYTES (8u << 20)

struct sandbox;

struct job {
    uv_work_t work;
    struct worker *worker;
    struct server *server;
    struct pending *pending;
    void (*run)(struct job *job);
    void (*ended)(struct job *job); /* may be NULL */
    struct sandbox *sandbox;        /* NULL: none */
    struct job *next;               /* of the demo: the one that runs after it */
    struct weir_text body;          /* of the request; the bytes follow the struct */
    bool from_file;                 /* of a check: of the files on disk, not of the body */
    bool failed;                    /* its sandbox must go */
    uint64_t until_ns;              /* of a step: when it has taken too long */
    int status;                     /* of the reply */
    const char *type;               /* of the reply's body; NULL: there is none */
    struct buffer reply;            /* the body */
};

/*
 * Lets a job run that has the members `run`, `ended`, `sandbox` and `from_file` of *like, and a
 * copy of the request's body. Returns false after a reply (503: too many jobs, 500: no memory).
 */
bool job_start(struct exchange *x, const struct job *like);

/* Set the reply: JSON, which is released (NULL: there was no memory for it), a problem, or the
 * problem of an error. */
void job_reply_json(struct job *job, int status, json_t *json);
void job_reply_problem(struct job *job, int status, const char *detail);
void job_reply_failure(struct job *job, int e, const struct weir_error *error);

#endif
