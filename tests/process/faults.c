#include "process/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool armed;
    bool for_ever;
    unsigned at;
    unsigned calls;
    unsigned failed;
    const char *name;
} fault = {.name = ""};

static long allocations;

int64_t faults_wall_clock_off_s;

void faults_arm(unsigned n, bool for_ever)
{
    memset(&fault, 0, sizeof fault);
    fault.name = "";
    fault.at = n;
    fault.for_ever = for_ever;
    fault.armed = true;
}

unsigned faults_disarm(void)
{
    fault.armed = false;
    return fault.failed;
}

const char *faults_name(void)
{
    return fault.name;
}

/* True if this call is to fail. */
static bool trip(const char *name)
{
    if (!fault.armed) {
        return false;
    }
    fault.calls++;
    if (fault.calls != fault.at && !(fault.for_ever && fault.calls > fault.at)) {
        return false;
    }
    fault.name = fault.failed++ == 0 ? name : fault.name;
    return true;
}

/* ---- the calls ---- */

/* Calls that return 0, or -1 and errno. */
#define WRAP_ERRNO(type, bad, name, number, parameters, arguments)                                 \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        if (trip(#name)) {                                                                         \
            errno = number;                                                                        \
            return bad;                                                                            \
        }                                                                                          \
        return __real_##name arguments;                                                            \
    }

/* Calls that return 0 or an error number. */
#define WRAP_NUMBER(name, number, parameters, arguments)                                           \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return trip(#name) ? number : __real_##name arguments;                                     \
    }

WRAP_ERRNO(void *, MAP_FAILED, mmap, ENOMEM,
           (void *p, size_t n, int prot, int flags, int fd, off_t at), (p, n, prot, flags, fd, at))
WRAP_ERRNO(int, -1, madvise, ENOMEM, (void *p, size_t n, int advice), (p, n, advice))
WRAP_ERRNO(int, -1, mkostemp, EIO, (char *name, int flags), (name, flags))
WRAP_ERRNO(int, -1, link, EIO, (const char *from, const char *to), (from, to))
WRAP_ERRNO(int, -1, linkat, EIO, (int d1, const char *from, int d2, const char *to, int flags),
           (d1, from, d2, to, flags))
WRAP_ERRNO(int, -1, fstat, EIO, (int fd, struct stat *st), (fd, st))
WRAP_ERRNO(int, -1, flock, ENOLCK, (int fd, int operation), (fd, operation))
WRAP_ERRNO(int, -1, memfd_create, ENOMEM, (const char *name, unsigned flags), (name, flags))
WRAP_ERRNO(int, -1, statx, ENOSYS,
           (int fd, const char *path, int flags, unsigned mask, struct statx *s),
           (fd, path, flags, mask, s))
WRAP_ERRNO(int, -1, name_to_handle_at, EPERM,
           (int fd, const char *path, struct file_handle *h, int *mount, int flags),
           (fd, path, h, mount, flags))
WRAP_ERRNO(int, -1, fsync, EIO, (int fd), (fd))
WRAP_ERRNO(ssize_t, -1, pread, EIO, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAP_ERRNO(ssize_t, -1, read, EIO, (int fd, void *p, size_t n), (fd, p, n))
WRAP_ERRNO(ssize_t, -1, getrandom, ENOSYS, (void *p, size_t n, unsigned flags), (p, n, flags))

WRAP_NUMBER(posix_fallocate, ENOSPC, (int fd, off_t at, off_t n), (fd, at, n))
WRAP_NUMBER(pthread_key_create, EAGAIN, (pthread_key_t * key, void (*end)(void *)), (key, end))
WRAP_NUMBER(pthread_setspecific, ENOMEM, (pthread_key_t key, const void *value), (key, value))

/* Only the record locks of base/lock.h, which have one argument more. */
int __real_fcntl(int fd, int operation, ...);
int __wrap_fcntl(int fd, int operation, ...);
int __wrap_fcntl(int fd, int operation, ...)
{
    va_list list;
    va_start(list, operation);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (trip("fcntl")) {
        errno = ENOLCK;
        return -1;
    }
    return __real_fcntl(fd, operation, argument);
}

/* Never fail, by themselves; listed so that --wrap finds them. */
int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n)
{
    return __real_munmap(p, n);
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    return __real_close(fd);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    return __real_unlink(path);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (trip("open")) {
        errno = EMFILE;
        return -1;
    }
    return __real_open(path, flags, mode);
}

/* ---- memory ---- */

static void *counted(void *p)
{
    allocations += p != NULL;
    return p;
}

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return trip("aligned_alloc") ? no_memory() : counted(__real_aligned_alloc(alignment, n));
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return trip("calloc") ? no_memory() : counted(__real_calloc(n, size));
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    return trip("malloc") ? no_memory() : counted(__real_malloc(n));
}

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
    if (trip("realloc")) {
        return no_memory();
    }
    void *q = __real_realloc(p, n);
    allocations += p == NULL && q != NULL;
    return q;
}

/* The real one would take memory behind our back. */
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = trip("strdup") ? no_memory() : counted(__real_malloc(n));
    return copy != NULL ? memcpy(copy, text, n) : NULL;
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
    allocations -= p != NULL;
    __real_free(p);
}

/* Its entries and the array of them are the caller's to free. */
int __real_scandir(const char *path, struct dirent ***entries, int (*wanted)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **));
int __wrap_scandir(const char *path, struct dirent ***entries, int (*wanted)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **));
int __wrap_scandir(const char *path, struct dirent ***entries, int (*wanted)(const struct dirent *),
                   int (*compare)(const struct dirent **, const struct dirent **))
{
    if (trip("scandir")) {
        errno = ENOMEM;
        return -1;
    }
    int n = __real_scandir(path, entries, wanted, compare);
    allocations += n >= 0 ? n + 1 : 0;
    return n;
}

/* Its text is the caller's to free, once the stream is closed. */
FILE *__real_open_memstream(char **text, size_t *len);
FILE *__wrap_open_memstream(char **text, size_t *len);
FILE *__wrap_open_memstream(char **text, size_t *len)
{
    return trip("open_memstream") ? no_memory() : counted(__real_open_memstream(text, len));
}

/* libyaml takes all of its memory by these, and finds ours before its own. */
void *yaml_malloc(size_t n);
void *yaml_realloc(void *p, size_t n);
char *yaml_strdup(const char *text);
void yaml_free(void *p);

__attribute__((visibility("default"))) void *yaml_malloc(size_t n)
{
    return trip("yaml_malloc") ? no_memory() : counted(__real_malloc(n > 0 ? n : 1));
}

__attribute__((visibility("default"))) void *yaml_realloc(void *p, size_t n)
{
    if (trip("yaml_realloc")) {
        return no_memory();
    }
    void *q = __real_realloc(p, n > 0 ? n : 1);
    allocations += p == NULL && q != NULL;
    return q;
}

__attribute__((visibility("default"))) char *yaml_strdup(const char *text)
{
    return text == NULL ? NULL : __wrap_strdup(text);
}

__attribute__((visibility("default"))) void yaml_free(void *p)
{
    allocations -= p != NULL;
    __real_free(p);
}

/* ---- the clock ---- */

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    int result = __real_clock_gettime(id, t);
    if (id == CLOCK_REALTIME) {
        t->tv_sec += faults_wall_clock_off_s;
    }
    return result;
}

/* ---- what is held ---- */

static unsigned count_descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

static unsigned count_mappings(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    char text[4096];
    unsigned lines = 0;
    int fd = __real_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; (n = __real_read(fd, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            lines += text[i] == '\n';
        }
    }
    (void)__real_close(fd);
    return lines;
#endif
}

struct holdings faults_holdings(void)
{
    return (struct holdings){allocations, count_descriptors(), count_mappings()};
}
