/* A ring of nodes within larger things, with a head that is no thing. */
#ifndef WEIR_REDIS_LIST_H
#define WEIR_REDIS_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

/* The thing of `type` whose `member` the node is. */
#define LIST_OF(node, type, member)                                                                \
    ((type *)(void *)((char *)(void *)(node)-offsetof(type, member)))

static inline void list_init(struct list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

/* Behind `where`; behind head->prev is the end. */
static inline void list_put(struct list *where, struct list *node)
{
    node->prev = where;
    node->next = where->next;
    where->next->prev = node;
    where->next = node;
}

/* Also if it is in none: then it is a ring of its own. */
static inline void list_take(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* All of `from` goes to the end of `to`. */
static inline void list_move(struct list *to, struct list *from)
{
    if (!list_is_empty(from)) {
        from->next->prev = to->prev;
        to->prev->next = from->next;
        from->prev->next = to;
        to->prev = from->prev;
        list_init(from);
    }
}

#endif
