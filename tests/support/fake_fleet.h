/*
 * A fleet that decides in memory, and answers when it is told to: what common/remote.h promises, and no
 * more. A limit has `count` units for all keys together, which never come back.
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
    struct fake_limit *limits; /* that are open, the newest first */
    struct fake_question *out; /* the oldest first */
    unsigned opened;           /* limits, ever */
    unsigned asked;            /* questions, ever */
    bool at_once;              /* answers in ask() */
    int ask_error;             /* what ask() returns instead; 0: nothing */
    uint64_t most; /* open() and change() refuse a higher count with WEIR_ERATE; 0: none */
    struct remote_question last;    /* without its parts */
    char told[4][2 * WEIR_KEY_MAX]; /* the last question's parts: "limit shard key cost" */
};

void fake_init(struct fake_fleet *f);
/* Fails the test if a limit is still open, or a question out. */
void fake_finish(struct fake_fleet *f);

static inline struct weir_fleet *fake_of(struct fake_fleet *f)
{
    return (struct weir_fleet *)(void *)f;
}

struct fake_limit *fake_find(struct fake_fleet *f, const char *name);
unsigned fake_out(struct fake_fleet *f);

/* Answers the oldest question, or the newest. False: none is out. error: instead of an answer. */
bool fake_answer(struct fake_fleet *f);
bool fake_answer_newest(struct fake_fleet *f);
bool fake_fail(struct fake_fleet *f, int error);

#endif
