#include "support/engine/process_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if __has_include(<execinfo.h>) /* musl does not have it */
#include <execinfo.h>
#else
#define backtrace(frames, most) ((void)(frames), (void)(most), 0)
#define backtrace_symbols_fd(frames, count, fd) ((void)(frames), (void)(count), (void)(fd))
#endif

#define FRAMES_MAX 32

static bool in_child;

void process_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    if (in_child) {
        _exit(1);
    }
    _fail(file, line);
}

/* ---- limiters ---- */

struct weir_options process_limit(int algorithm, uint64_t quota)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = quota;
    o.period_ns = WEIR_HOUR;
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : 0;
    o.max_keys = 50;
    o.flags = WEIR_EXPLICIT_TIME;
    return o;
}

struct weir *process_open(const struct weir_options *o)
{
    struct weir *w;
    struct weir_error error = {0, ""};
    int e = weir_open(&w, o, &error);
    if (e != 0) {
        fprintf(stderr, "weir_open: %s: %s\n", weir_errname(e), error.text);
    }
    REQUIRE(e == 0);
    return w;
}

int process_take(struct weir *w, unsigned key, uint64_t now_ns)
{
    struct weir_answer a;
    REQUIRE(weir_check_at(w, &key, sizeof key, 1, now_ns, &a) == 0);
    return a.verdict;
}

uint64_t process_left(struct weir *w, unsigned key, uint64_t now_ns)
{
    struct weir_answer a;
    struct weir_question ask = {.key = &key, .key_len = sizeof key, .cost = 1, .mode = WEIR_PEEK};
    REQUIRE(weir_ask_at(w, &ask, now_ns, &a) == 0);
    return a.remaining;
}

/* ---- files ---- */

int process_dir_make(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = malloc(PATH_MAX);
    snprintf(dir, PATH_MAX, "%s/weir-process-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        free(dir);
        return -1;
    }
    *state = dir;
    return 0;
}

int process_dir_remove(void **state)
{
    char *dir = *state;
    DIR *d = opendir(dir);
    (void)chmod(dir, 0700);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            const char *path = process_path(dir, e->d_name);
            if (unlink(path) != 0) {
                (void)rmdir(path);
            }
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
    int result = rmdir(dir);
    free(dir);
    return result;
}

const char *process_path(const char *dir, const char *name)
{
    static char ring[4][PATH_MAX];
    static unsigned at;
    char *path = ring[at++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", dir, name);
    return path;
}

unsigned process_dir_entries(const char *dir)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    REQUIRE(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    (void)closedir(d);
    return n;
}

unsigned char *process_read(const char *path, size_t *bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
    unsigned char *data = malloc((size_t)st.st_size + 1);
    REQUIRE(data != NULL && pread(fd, data, (size_t)st.st_size, 0) == st.st_size);
    (void)close(fd);
    *bytes = (size_t)st.st_size;
    return data;
}

void process_write(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    REQUIRE(pwrite(fd, data, bytes, 0) == (ssize_t)bytes);
    (void)close(fd);
}

void process_copy(const char *from, const char *to)
{
    size_t bytes;
    unsigned char *data = process_read(from, &bytes);
    REQUIRE(access(to, F_OK) != 0);
    process_write(to, data, bytes);
    free(data);
}

bool process_same(const char *path, const void *data, size_t bytes)
{
    size_t has;
    unsigned char *found = process_read(path, &has);
    bool same = has == bytes && memcmp(found, data, bytes) == 0;
    free(found);
    return same;
}

/* ---- memory and children ---- */

void *process_shared_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    return p;
}

void process_shared_free(void *p, size_t bytes)
{
    (void)munmap(p, bytes);
}

/* Prints where the child hangs, and ends it. If printing hangs too, the second alarm ends it. */
static void on_deadline(int number)
{
    static const char what[] = "a child hangs, here:\n";
    void *frames[FRAMES_MAX];
    (void)alarm(10);
    (void)!write(STDERR_FILENO, what, sizeof what - 1);
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    (void)raise(number);
}

static void set_deadline(void)
{
    struct sigaction action = {.sa_handler = on_deadline, .sa_flags = SA_NODEFER | SA_RESETHAND};
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm(PROCESS_DEADLINE_S);
}

pid_t process_start(void (*fn)(void *arg), void *arg)
{
    void *frame;
    (void)backtrace(&frame, 1); /* the first call allocates, which a signal handler must not */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        in_child = true;
        set_deadline();
        fn(arg);
        _exit(0);
    }
    REQUIRE(child > 0);
    return child;
}

bool process_ended_well(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) != child) {
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "child %d ended by signal %d (%s)\n", (int)child, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
        fprintf(stderr, "child %d exited with %d\n", (int)child, WEXITSTATUS(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool process_run(void (*fn)(void *arg), void *arg)
{
    return process_ended_well(process_start(fn, arg));
}

/* ---- random numbers ---- */

uint64_t process_seed(void)
{
    const char *given = getenv("WEIR_TEST_SEED");
    uint64_t seed = (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15);
    if (given != NULL) {
        seed = strtoull(given, NULL, 0);
    }
    printf("seed: WEIR_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* splitmix64; the bias of the remainder does not matter here. */
uint64_t process_random(uint64_t *state, uint64_t below)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}
