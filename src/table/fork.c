#include "table/fork.h"

#include <pthread.h>

#include <weir.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fork_watch *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int handlers;

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
    for (struct fork_watch *w = list; w != NULL; w = w->next) {
        (void)table_init_locks(w->table);
        (void)lock_init(w->change);
    }
    (void)pthread_mutex_unlock(&list_lock);
}

static void install(void)
{
    handlers = pthread_atfork(before, in_parent, in_child);
}

int fork_watch(struct fork_watch *watch, struct table *table, struct lock *change)
{
    (void)pthread_once(&once, install);
    if (handlers != 0) {
        return WEIR_ENOMEM;
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
