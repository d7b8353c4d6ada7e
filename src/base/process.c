#include "base/process.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/thread.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static uint64_t in_memory; /* used until the page is mapped, and on kernels before 4.14 */
uint64_t *process_word = &in_memory;

/* The last number in this line of descent. A child inherits it and takes the next one. */
static uint64_t last;

uint64_t process_number_take(void)
{
    uint64_t seen = 0;
    uint64_t next = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(process_word, &seen, next, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE)
               ? next
               : seen;
}

/* Runs in the forking thread, before the child can have others. Not after a raw clone(). */
static void in_child(void)
{
    __atomic_store_n(process_word, 0, __ATOMIC_RELEASE);
    thread_after_fork();
}

/* Runs early, because constructors of other libraries may open limiters. */
static __attribute__((constructor(1000))) void prepare(void)
{
    void *page = mmap(NULL, sizeof *process_word, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, sizeof *process_word, MADV_WIPEONFORK) == 0) {
        process_word = page;
    }
    (void)pthread_atfork(NULL, NULL, in_child);
}
