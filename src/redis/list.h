/* An intrusive doubly linked list. Nodes are members of larger structs and form a ring with a head,
 * which is a node alone. */
#ifndef WEIR_REDIS_LIST_H
#define WEIR_REDIS_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

/* The struct of `type` whose `member` is the node. */
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

/* Inserts a node after `where`; after head->prev is the end of the list. */
static inline void list_put(struct list *where, struct list *node)
{
    node->prev = where;
    node->next = where->next;
    where->next->prev = node;
    where->next = node;
}

/* Removes a node from its list. A node that is in no list is a ring of its own, and stays one. */
static inline void list_take(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Removes and returns the first node of a list that is not empty. */
static inline struct list *list_pop(struct list *head)
{
    struct list *node = head->next;
    head->next = node->next;
    node->next->prev = head;
    list_init(node);
    return node;
}

/* Moves all nodes of `from` to the end of `to`. */
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
