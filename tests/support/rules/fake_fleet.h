/*
 * A fleet that decides in memory and answers when the test tells it to. It keeps the promises of
 * common/remote.h and no others. By default a limit has `count` units for all keys together, which
 * never refill; a plan makes every answer the same instead. Rules use it directly
 * (support/rules/faked_world.h), a server through support/server/server_fleet.h.
 */
#ifndef WEIR_TESTS_FAKE_FLEET_H
#define WEIR_TESTS_FAKE_FLEET_H

#include <pthread.h>
#include <stdbool.h>

#include "common/remote.h"

struct fake_limit {
    struct fake_fleet *fleet;
    uint64_t references;
    char name[300];
    struct remote_spec spec;
    uint64_t left;
    unsigned changes;
    struct remote_counts counts;
    struct fake_limit *next;
};

#define FAKE_LOG 64

/* How the next questions are answered. */
struct fake_plan {
    bool planned; /* answer as below, with `remaining` = the cost; false: by the limits' counts */
    int verdict;  /* 0 means WEIR_ALLOW */
    unsigned flags;
    uint64_t retry_ns;
    uint64_t delay_ns;
    int error;        /* of the later answer */
    int refuse;       /* WEIR_E...: ask() fails with it at once, without effect ... */
    unsigned allowed; /* ... after this many questions */
    unsigned at_once; /* every n-th question is answered at once; 0: none */
};

struct fake_fleet {
    struct remote_face face;
    pthread_mutex_t lock;
    struct fake_limit *limits;   /* open limits, the newest first */
    struct remote_question *out; /* pending questions, the oldest first */
    uint64_t out_count;
    uint64_t out_most;
    uint64_t random; /* state of fake_answer_at() */
    struct fake_plan plan;
    unsigned opened; /* number of limits ever opened */
    unsigned asked;  /* number of questions ever asked */
    uint64_t most;   /* open() and change() refuse a higher count with WEIR_ERATE; 0: none */
    struct remote_question last;    /* without its parts */
    char told[4][2 * WEIR_KEY_MAX]; /* the last question's parts: "limit shard key cost" */
    struct {
        int verb;
        uint64_t cost;
        uint64_t time_ns;
        char key[64];
    } log[FAKE_LOG]; /* the first questions since `logged` was 0 */
    uint64_t logged;
};

void fake_init(struct fake_fleet *f);
/* Fails the test if a limit is still open or a question is still pending. */
void fake_finish(struct fake_fleet *f);

static inline struct weir_fleet *fake_of(struct fake_fleet *f)
{
    return (struct weir_fleet *)(void *)f;
}

struct fake_limit *fake_find(struct fake_fleet *f, const char *name);
unsigned fake_out(struct fake_fleet *f);      /* how many questions are pending */
const void *fake_where(struct fake_fleet *f); /* where the oldest of them was asked */

/* Answer the oldest question, or the newest, or fail the oldest with `error`. They return false if
 * no question is pending. */
bool fake_answer(struct fake_fleet *f);
bool fake_answer_newest(struct fake_fleet *f);
bool fake_fail(struct fake_fleet *f, int error);
/* Answers one of the questions that were asked at `where`, at random. */
bool fake_answer_at(struct fake_fleet *f, const void *where);

void fake_set_plan(struct fake_fleet *f, struct fake_plan plan);

#endif
