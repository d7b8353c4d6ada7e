/* What a lock needs from the kernel: to sleep, to wake, and to know whether an owner lives. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/lock.h"

/* From the kernel's interface, because <linux/futex.h> is not on every compiler's path. */
#define FUTEX_WAKE 1
#define FUTEX_WAIT_BITSET 9 /* waits until a time, so that signals do not prolong it */

long lock_wait_ns = LOCK_WAIT_NS;

/* Without a wrapper of the C library, so that no system call here is a cancellation point. */
static long futex(struct lock *lock, int operation, uint32_t value, const struct timespec *until)
{
    /* The kernel compares the low 32 bits of the word, which is enough to sleep. */
    return syscall(SYS_futex, &lock->word, operation, value, until, NULL, UINT32_MAX);
}

bool lock_sleep(struct lock *lock, uint64_t seen)
{
    uint64_t until_ns = clock_monotonic_ns() + (uint64_t)lock_wait_ns;
    struct timespec until = {(time_t)(until_ns / WEIR_SECOND), (long)(until_ns % WEIR_SECOND)};
    long result;
    do {
        result = futex(lock, FUTEX_WAIT_BITSET, (uint32_t)seen, &until);
    } while (result != 0 && errno == EINTR);
    return result != 0 && errno == ETIMEDOUT;
}

void lock_wake(struct lock *lock)
{
    int number = errno;
    (void)futex(lock, FUTEX_WAKE, 1, NULL);
    errno = number;
}

void lock_pause(unsigned attempt)
{
    const struct timespec pause = {0, 200000};
    if (attempt < 8) {
        (void)sched_yield();
    } else {
        (void)syscall(SYS_nanosleep, &pause, NULL);
    }
}

/* ---- owners ---- */

struct lock_owner lock_private = {0, 0, NULL, -1};

static struct flock record_of(uint64_t number, short type)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1};
}

#define NUMBER_MOST (UINT64_C(1) << 62)
#define NUMBERS_TRIED 100000

static int set_record(const struct lock_owner *owner, uint64_t number, short type)
{
    struct flock record = record_of(number, type);
    int result;
    do {
        result = fcntl(owner->fd, F_SETLK, &record);
    } while (result != 0 && errno == EINTR);
    return result;
}

/*
 * Takes the record lock of a number first, and the number only if it is still above the last one.
 * So no number is given out twice, even if a process dies in between, and a failed call changes
 * nothing.
 */
static int take_number(struct lock_owner *owner)
{
    uint64_t number = load_acquire(owner->last) + 1;
    for (unsigned i = 0; i < NUMBERS_TRIED && number <= NUMBER_MOST; i++) {
        uint64_t last = number;
        if (set_record(owner, number, F_WRLCK) == 0) {
            do {
                last = load_acquire(owner->last);
            } while (last < number && !cas_u64(owner->last, last, number));
            if (last < number) {
                store_release(&owner->number, number);
                return 0;
            }
            (void)set_record(owner, number, F_UNLCK);
        } else if (errno != EAGAIN && errno != EACCES) {
            return WEIR_EIO;
        }
        number = last + 1;
    }
    errno = EOVERFLOW; /* another program's record lock covers them all, or the file is damaged */
    return WEIR_EIO;
}

void lock_owner_renew(const struct lock_owner *owner)
{
    (void)set_record(owner, load_relaxed(&owner->number), F_WRLCK);
}

int lock_owner_join(struct lock_owner *owner, uint64_t *last, int fd)
{
    *owner = (struct lock_owner){.last = last, .fd = fd};
    int e = take_number(owner);
    store_release(&owner->process, process_number());
    return e;
}

/*
 * A forked child has a copy of its parent's owner. Its threads come here one after the other,
 * because they share record locks: one could give up a record that another one has just taken.
 */
static void join_again(struct lock_owner *owner, uint64_t process)
{
    static struct lock joining;
    if (owner->last == NULL) {
        store_release(&owner->number, process);
        store_release(&owner->process, process); /* after the number: pairs with lock_number() */
        return;
    }
    lock_take(&joining, &lock_private);
    if (load_acquire(&owner->process) != process) {
        /* Only ENOLCK is tried again: the kernel is short of memory for a moment. */
        for (unsigned i = 0; take_number(owner) != 0 && errno == ENOLCK && i < 1000; i++) {
            lock_pause(i);
        }
        store_release(&owner->process, process);
    }
    lock_release(&joining);
}

uint64_t lock_number(struct lock_owner *owner)
{
    uint64_t process = process_number();
    if (__builtin_expect(load_acquire(&owner->process) != process, 0)) {
        join_again(owner, process);
    }
    return load_relaxed(&owner->number);
}

/*
 * Asks for the descriptor, not for the process, so that the record locks of this process count. A
 * number that is never given out is that of no process: the word is damaged.
 */
bool lock_owner_is_dead(struct lock_owner *owner, uint64_t number)
{
    if (owner->last == NULL) {
        return number != lock_number(owner);
    }
    if (number > NUMBER_MOST) {
        return true;
    }
    struct flock record = record_of(number, F_WRLCK);
    return fcntl(owner->fd, F_OFD_GETLK, &record) == 0 && record.l_type == F_UNLCK;
}
