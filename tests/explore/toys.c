#include "explore/toys.h"

#include <string.h>

#include "base/atomic.h"

struct toy_memory toy_memory;
#define m toy_memory

static void add(unsigned user)
{
    (void)user;
    store_relaxed(&m.a, load_relaxed(&m.a) + 1);
}

static void swap(unsigned user)
{
    (void)user;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t seen = load_relaxed(&m.a);
        while (!cas_u64(&m.a, seen, seen + 1)) {
            seen = load_relaxed(&m.a);
        }
    }
}

static void cross(unsigned user)
{
    store_relaxed(user == 0 ? &m.a : &m.b, 1);
    m.told[user] = 1 + load_relaxed(user == 0 ? &m.b : &m.a);
}

static void guarded(unsigned user)
{
    (void)user;
    lock_take(&m.first, &lock_private);
    add(0);
    store_relaxed(&m.b, load_relaxed(&m.b) + 1);
    lock_release(&m.first);
}

static void wait(unsigned user)
{
    if (user == 1) {
        store_relaxed(&m.b, 1);
        store_relaxed(&m.a, 1);
        return;
    }
    for (unsigned i = 0; i < 4 && load_relaxed(&m.a) == 0; i++) {
        lock_pause(i);
    }
    m.told[user] = 1 + load_relaxed(&m.b);
}

static void embrace(unsigned user)
{
    lock_take(user == 0 ? &m.first : &m.second, &lock_private);
    lock_take(user == 0 ? &m.second : &m.first, &lock_private);
    lock_release(&m.first);
    lock_release(&m.second);
}

static void spin(unsigned user)
{
    (void)user;
    while (load_relaxed(&m.a) == 0) {
    }
}

static void forget(unsigned user)
{
    if (user == 1) {
        store_relaxed(&m.a, 1);
        store_relaxed(&m.a, 0);
        return;
    }
    m.note = load_relaxed(&m.a);
    (void)load_relaxed(&m.b);
    store_relaxed(&m.b, m.note);
}
#undef m

const struct toy toy_add = {2, add, false};
const struct toy toy_swap = {2, swap, false};
const struct toy toy_cross = {2, cross, false};
const struct toy toy_guarded = {2, guarded, false};
const struct toy toy_wait = {2, wait, false};
const struct toy toy_embrace = {2, embrace, false};
const struct toy toy_spin = {2, spin, false};
const struct toy toy_forget = {2, forget, true};

static void reset(void *arg)
{
    (void)arg;
    memset(&toy_memory, 0, sizeof toy_memory);
}

static const char *accept(void *arg, unsigned dead)
{
    (void)arg;
    (void)dead;
    return NULL;
}

struct subject toy_subject(const struct toy *toy)
{
    static struct range ranges[2];
    size_t note = offsetof(struct toy_memory, note);
    ranges[0] = (struct range){&toy_memory, note, false};
    ranges[1] = (struct range){&toy_memory.note, sizeof toy_memory.note, toy->mute};
    struct task task = {toy->users, toy->body, NULL, 100000, ranges, 2};
    return (struct subject){task, reset, accept, NULL};
}
