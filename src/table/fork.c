#include "table/fork.h"

#include <pthread.h>

#include <weir.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fork_watch *list;

/* Apart from list_lock, which the handlers take. */
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static bool installed;

/* ThreadSanitizer follows at most 64 locks of a thread and aborts beyond; there fork takes none. */
#if PAIR_UNDER_TSAN
#define HOLD_STRIPES 0
#else
#define HOLD_STRIPES 1
#endif

static void for_each_lock(void (*act)(struct lock *lock))
{
    for (struct fork_watch *w = list; w != NULL; w = w->next) {
        act(w->change);
        for (uint64_t i = 0; i <= w->table->stripe_mask; i++) {
            act(&w->table->stripes[i]);
        }
    }
}

/* Holding one while waiting for the next is safe: who holds a stripe waits for none (G4). */
static void before(void)
{
    (void)pthread_mutex_lock(&list_lock);
    if (HOLD_STRIPES) {
        for_each_lock(lock_take);
    }
}

static void in_parent(void)
{
    if (HOLD_STRIPES) {
        for_each_lock(lock_release);
    }
    (void)pthread_mutex_unlock(&list_lock);
}

static void make_anew(struct lock *lock)
{
    (void)lock_init(lock);
}

static void in_child(void)
{
    for_each_lock(make_anew);
    (void)pthread_mutex_unlock(&list_lock);
}

static int install(void)
{
    (void)pthread_mutex_lock(&install_lock);
    if (!installed) {
        installed = pthread_atfork(before, in_parent, in_child) == 0;
    }
    int e = installed ? 0 : WEIR_ENOMEM;
    (void)pthread_mutex_unlock(&install_lock);
    return e;
}

int fork_watch(struct fork_watch *watch, struct table *table, struct lock *change)
{
    int e = install();
    if (e != 0) {
        return e;
    }
    watch->table = table;
    watch->change = change;
    (void)pthread_mutex_lock(&list_lock);
    watch->previous = NULL;
    watch->next = list;
    if (list != NULL) {
        list->previous = watch;
    }
    list = watch;
    (void)pthread_mutex_unlock(&list_lock);
    return 0;
}

void fork_unwatch(struct fork_watch *watch)
{
    if (watch->table == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&list_lock);
    if (watch->previous != NULL) {
        watch->previous->next = watch->next;
    } else {
        list = watch->next;
    }
    if (watch->next != NULL) {
        watch->next->previous = watch->previous;
    }
    (void)pthread_mutex_unlock(&list_lock);
    watch->table = NULL;
}
