/* A run from inside: what scheduler.c and moment.c share. */
#ifndef WEIR_EXPLORE_USERS_H
#define WEIR_EXPLORE_USERS_H

#include "explore/fiber.h"
#include "explore/scheduler.h"

#define STACK_BYTES 65536

enum user_state { ALIVE, DONE, DEAD };

/* Where a user stands. */
enum stand { AT_START, AT_ACCESS, AT_TAKE, AT_PAUSE, AT_END };

struct user {
    struct fiber fiber;
    enum user_state state;
    enum stand stand;
    const void *address;    /* of the access that it stands before */
    struct digest standing; /* of where it stands and its stack; if `fresh`, up to date */
    bool fresh;
};

struct users {
    bool active;
    unsigned current;
    struct user user[USERS_MAX];
    struct fiber home;
    const struct task *task;
    struct rules rules;
    struct run run;
    struct digest memory; /* of all that is not mute; if `known`, up to date */
    bool known;
};

extern struct users users;
extern unsigned char stacks[USERS_MAX][STACK_BYTES];

struct digest moment_memory(void);

#endif
