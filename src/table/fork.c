#include "table/fork.h"

#include <pthread.h>

#include <weir.h>

#include "base/thread.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fork_watch *list;

/* Apart from list_lock, which the handlers take. */
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static bool installed;

static void before(void)
{
    (void)pthread_mutex_lock(&list_lock);
}

static void in_parent(void)
{
    (void)pthread_mutex_unlock(&list_lock);
}

static void in_child(void)
{
    thread_after_fork();
    for (struct fork_watch *w = list; w != NULL; w = w->next) {
        (void)table_init_locks(w->table);
        (void)lock_init(w->change);
    }
    (void)pthread_mutex_unlock(&list_lock);
}

/*
 * When the library is loaded, so that of all `before` handlers ours runs last:
 * one of the application's may wait for a thread that is in weir_open(). Early
 * among constructors, for the sake of libraries that stand on this one.
 */
static __attribute__((constructor(1000))) int install(void)
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
