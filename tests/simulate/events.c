/* The queue of events: a heap by time, and by order of creation for equal times. */
#include <stdlib.h>

#include "simulate/world.h"

static bool before(const struct event *a, const struct event *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->seq < b->seq);
}

static void swap(struct event *a, struct event *b)
{
    struct event t = *a;
    *a = *b;
    *b = t;
}

void event_put(struct world *w, uint64_t at_us, enum event_kind kind, unsigned node,
               struct message *message)
{
    if (w->heap_n == w->heap_room) {
        w->heap_room = w->heap_room == 0 ? 1024 : 2 * w->heap_room;
        w->heap = realloc(w->heap, w->heap_room * sizeof w->heap[0]);
        if (w->heap == NULL) {
            abort();
        }
    }
    if (message != NULL) {
        message->references++;
    }
    size_t i = w->heap_n++;
    w->heap[i] = (struct event){at_us, w->seq++, kind, node, message};
    while (i > 0 && before(&w->heap[i], &w->heap[(i - 1) / 2])) {
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

bool event_next(struct world *w, struct event *out)
{
    if (w->heap_n == 0) {
        return false;
    }
    *out = w->heap[0];
    w->heap[0] = w->heap[--w->heap_n];
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < w->heap_n; child++) {
            least = before(&w->heap[child], &w->heap[least]) ? child : least;
        }
        if (least == i) {
            return true;
        }
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
}
