/*
 * A fleet that decides in memory and answers when the test tells it to. It keeps the promises of
 * common/remote.h and no others. A limit has `count` units for all keys together, which never
 * refill.
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

struct fake_question {
    struct remote_question question;
    struct remote_part parts[WEIR_SEVERAL_MAX];
    void *where;
    remote_done_fn done;
    void *arg;
    struct fake_question *next;
};

struct fake_fleet {
    struct remote_face face;
    pthread_mutex_t lock;
    struct fake_limit *limits; /* open limits, the newest first */
    struct fake_question *out; /* pending questions, the oldest first */
    unsigned opened;           /* number of limits ever opened */
    unsigned asked;            /* number of questions ever asked */
    bool at_once;              /* answer within ask() */
    int ask_error;             /* error that ask() returns; 0: none */
    uint64_t most; /* open() and change() refuse a higher count with WEIR_ERATE; 0: none */
    struct remote_question last;    /* without its parts */
    char told[4][2 * WEIR_KEY_MAX]; /* the last question's parts: "limit shard key cost" */
};

void fake_init(struct fake_fleet *f);
/* Fails the test if a limit is still open or a question is still pending. */
void fake_finish(struct fake_fleet *f);

static inline struct weir_fleet *fake_of(struct fake_fleet *f)
{
    return (struct weir_fleet *)(void *)f;
}

struct fake_limit *fake_find(struct fake_fleet *f, const char *name);
unsigned fake_out(struct fake_fleet *f);

/* Answer the oldest question, or the newest, or fail the oldest with `error`. They return false if
 * no question is pending. */
bool fake_answer(struct fake_fleet *f);
bool fake_answer_newest(struct fake_fleet *f);
bool fake_fail(struct fake_fleet *f, int error);

#endif
