/*
 * Moments of a run: all that its future follows from, as a digest; and a copy of
 * it, from which the run can go on again.
 *
 * That is the memory that users change; and for each user who lives its stack
 * from where it was left, which begins with its registers. Fibers have the same
 * stacks in every run, so that equal bytes mean the same thing. Bytes that mean
 * nothing, such as places of variables that are out of use, can make two moments
 * look different that are not: that costs time and hides nothing.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "explore/users.h"

static unsigned char *bottom_of(unsigned v)
{
    return fiber_bottom(&users.user[v].fiber);
}

static size_t stack_bytes(unsigned v)
{
    return (size_t)(&stacks[v][0] + STACK_BYTES - bottom_of(v));
}

struct digest moment_memory(void)
{
    struct digest d = {1, 2};
    if (users.known) {
        return users.memory;
    }
    for (unsigned i = 0; i < users.task->range_count; i++) {
        const struct range *r = &users.task->ranges[i];
        if (!r->mute) {
            d = digest_add(d, r->memory, r->bytes);
        }
    }
    users.memory = d;
    users.known = true;
    return d;
}

static struct digest presence_of(unsigned v, bool dead)
{
    struct user *u = &users.user[v];
    if (dead || u->state != ALIVE) {
        return (struct digest){v + 1, dead || u->state == DEAD};
    }
    if (!u->fresh) {
        struct digest d = digest_add((struct digest){u->stand, 0}, &u->fiber, sizeof u->fiber);
        u->standing = digest_add(d, bottom_of(v), stack_bytes(v));
        u->fresh = true;
    }
    return u->standing;
}

struct digest moment_digest(int corpse)
{
    struct digest all[USERS_MAX + 1];
    unsigned n = users.task->users;
    for (unsigned v = 0; v < n; v++) {
        all[v] = presence_of(v, (int)v == corpse);
    }
    all[n] = moment_memory();
    return digest_add((struct digest){3, 4}, all, (n + 1) * sizeof all[0]);
}

struct digest moment_end(void)
{
    uint64_t dead = users.run.dead;
    return digest_add(moment_memory(), &dead, sizeof dead);
}

/* ---- copies ---- */

struct moment {
    struct user user[USERS_MAX];
    struct run run;
    unsigned char *bytes;
    size_t room;
};

struct moment *moment_make(void)
{
    struct moment *m = calloc(1, sizeof *m);
    assert(m != NULL);
    return m;
}

void moment_free(struct moment *m)
{
    free(m->bytes);
    free(m);
}

static size_t bytes_now(void)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < users.task->range_count; i++) {
        bytes += users.task->ranges[i].bytes;
    }
    for (unsigned v = 0; v < users.task->users; v++) {
        bytes += users.user[v].state == ALIVE ? stack_bytes(v) : 0;
    }
    return bytes;
}

void moment_keep(struct moment *m)
{
    size_t bytes = bytes_now();
    if (bytes > m->room) {
        m->room = bytes + 4096;
        m->bytes = realloc(m->bytes, m->room);
        assert(m->bytes != NULL);
    }
    unsigned char *p = m->bytes;
    for (unsigned i = 0; i < users.task->range_count; i++) {
        const struct range *r = &users.task->ranges[i];
        memcpy(p, r->memory, r->bytes);
        p += r->bytes;
    }
    for (unsigned v = 0; v < users.task->users; v++) {
        if (users.user[v].state == ALIVE) {
            memcpy(p, bottom_of(v), stack_bytes(v));
            p += stack_bytes(v);
        }
    }
    memcpy(m->user, users.user, sizeof m->user);
    m->run = users.run;
}

void moment_return(const struct moment *m)
{
    const unsigned char *p = m->bytes;
    memcpy(users.user, m->user, sizeof m->user);
    users.run = m->run;
    users.known = false;
    for (unsigned i = 0; i < users.task->range_count; i++) {
        const struct range *r = &users.task->ranges[i];
        memcpy(r->memory, p, r->bytes);
        p += r->bytes;
    }
    for (unsigned v = 0; v < users.task->users; v++) {
        if (users.user[v].state == ALIVE) {
            memcpy(bottom_of(v), p, stack_bytes(v));
            p += stack_bytes(v);
        }
    }
}
