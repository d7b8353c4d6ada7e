/* What base/lock.c asks of the kernel, as the explorer has it: a user is a process. */
#include "explore/lock_model.h"

#include <string.h>

#include "base/atomic.h"

struct lock_model lock_model;
struct lock_owner lock_private;

/* A user that sleeps stands before its own place here until it is woken. Its owner is no
 * user: it never dies. */
#define ASLEEP (USERS_MAX + 2)

static struct explore_lock *bed(unsigned user)
{
    return (struct explore_lock *)(void *)&lock_model.bed[user];
}

uint64_t lock_number(struct lock_owner *owner)
{
    (void)owner;
    return (uint64_t)scheduler_user() + 1;
}

/* With deaths a wakeup may be lost, and every sleep may end by its time. Without, only
 * a wakeup ends it. */
bool lock_sleep(struct lock *lock, uint64_t seen)
{
    unsigned user = (unsigned)scheduler_user();
    if (load_relaxed(&lock->word) != seen) {
        return false;
    }
    bed(user)->owner = ASLEEP;
    if (lock_model.wakes_only) {
        scheduler_lock(bed(user), LOCK_TAKE);
        return false;
    }
    scheduler_pause();
    bool woken = bed(user)->owner == 0;
    bed(user)->owner = 0;
    return !woken;
}

void lock_wake(struct lock *lock)
{
    explore_point(&lock->word);
    for (unsigned user = 0; user < USERS_MAX; user++) {
        if (bed(user)->owner == ASLEEP) {
            bed(user)->owner = 0;
            return;
        }
    }
}

bool lock_owner_is_dead(struct lock_owner *owner, uint64_t number)
{
    (void)owner;
    explore_point(&lock_model.lock);
    return (scheduler_run()->dead >> (number - 1) & 1) != 0;
}

void lock_pause(unsigned attempt)
{
    (void)attempt;
    scheduler_pause();
}

void lock_owner_renew(const struct lock_owner *owner)
{
    (void)owner;
}

int lock_owner_join(struct lock_owner *owner, uint64_t *last, int fd)
{
    *owner = (struct lock_owner){.last = last, .fd = fd};
    return 0;
}

/* ---- users ---- */

static bool lives(uint64_t user)
{
    return (scheduler_run()->dead >> user & 1) == 0;
}

static void use(unsigned user)
{
    uint64_t other = load_relaxed(&lock_model.inside);
    if (other != 0 && lives(other - 1)) {
        scheduler_fail("two are inside at once");
    }
    store_relaxed(&lock_model.inside, user + 1);
    store_relaxed(&lock_model.count, load_relaxed(&lock_model.count) + 1);
    store_relaxed(&lock_model.inside, 0);
}

static void live(unsigned user)
{
    for (unsigned i = 0; i < lock_model.rounds; i++) {
        lock_take(&lock_model.lock, &lock_private);
        use(user);
        lock_release(&lock_model.lock);
        lock_model.told[user]++;
    }
}

static void reset(void *arg)
{
    struct lock_model fresh = {.rounds = lock_model.rounds, .wakes_only = lock_model.wakes_only};
    (void)arg;
    lock_model = fresh;
}

static const char *judge(void *arg, unsigned dead)
{
    uint64_t told = 0;
    (void)arg;
    for (unsigned user = 0; user < USERS_MAX; user++) {
        told += lock_model.told[user];
    }
    uint64_t most = told + (unsigned)__builtin_popcount(dead);
    return lock_model.count < told || lock_model.count > most ? "an update under the lock is lost"
                                                              : NULL;
}

struct found lock_model_explore(unsigned users, unsigned rounds, unsigned kills)
{
    static struct range range;
    range = (struct range){&lock_model, sizeof lock_model, false};
    lock_model.rounds = rounds;
    lock_model.wakes_only = kills == 0;
    struct subject subject = {{users, live, NULL, 1000000, &range, 1}, reset, judge, NULL};
    struct how how = {kills, true, UINT64_C(20000000)};
    return search_all(&subject, &how);
}
