#include "support/engine/unit_limiter.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const int unit_algorithms[UNIT_ALGORITHMS] = {
    WEIR_TOKEN_BUCKET, WEIR_LEAKY_BUCKET, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW, WEIR_SLIDING_LOG,
};

struct weir_options unit_options(int algorithm, uint64_t quota, uint64_t period_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = quota;
    o.period_ns = period_ns;
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : 0;
    o.max_keys = 1000;
    o.flags = WEIR_EXPLICIT_TIME;
    return o;
}

struct weir *unit_open(const struct weir_options *options)
{
    struct weir *w = NULL;
    struct weir_error error = {0, ""};
    int e = weir_open(&w, options, &error);
    if (e != 0) {
        fail_msg("weir_open: %s: %s", weir_errname(e), error.text);
    }
    assert_non_null(w);
    return w;
}

struct weir *unit_limit(int algorithm, uint64_t quota, uint64_t period_ns)
{
    struct weir_options o = unit_options(algorithm, quota, period_ns);
    return unit_open(&o);
}

void unit_each(uint64_t quota, uint64_t period_ns, void (*scenario)(struct weir *w, int algorithm))
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], quota, period_ns);
        print_message("             %s\n", weir_algorithm_name(unit_algorithms[i]));
        scenario(w, unit_algorithms[i]);
        weir_close(w);
    }
}

static void assert_verdict_fields(const struct weir_answer *a, uint64_t cost)
{
    switch (a->verdict) {
    case WEIR_ALLOW:
        assert_int_equal(a->retry_after_ns, 0);
        break;
    case WEIR_DENY:
        assert_true(a->retry_after_ns >= 1);
        assert_int_equal(a->delay_ns, 0);
        break;
    case WEIR_NEVER:
        assert_true(a->retry_after_ns == WEIR_FOREVER);
        assert_int_equal(a->delay_ns, 0);
        assert_true(cost > a->quota);
        break;
    default:
        fail_msg("verdict %d", a->verdict);
    }
}

static void assert_granted(const struct weir_answer *a, uint64_t cost, int mode)
{
    bool free_pass = (a->flags & WEIR_FLAG_FULL) != 0;
    if (a->verdict != WEIR_ALLOW || mode == WEIR_PEEK || (free_pass && mode == WEIR_CHECK)) {
        assert_int_equal(a->granted, 0);
    } else if (mode == WEIR_CHECK) {
        assert_true(a->granted == cost);
    } else {
        assert_true(a->granted >= 1 && a->granted <= cost);
    }
}

void unit_assert_sound(const struct weir_answer *a, uint64_t cost, int mode)
{
    assert_verdict_fields(a, cost);
    assert_granted(a, cost, mode);
    assert_true(a->quota >= 1);
    assert_true(a->remaining <= a->quota);
    assert_int_equal(a->reserved, 0);
    assert_int_equal(a->flags & ~(WEIR_FLAG_FULL | WEIR_FLAG_BLOCKED | WEIR_FLAG_SPURIOUS), 0);
    if (mode != WEIR_UP_TO && a->verdict != WEIR_NEVER) {
        assert_true(cost <= a->quota);
    }
}

void unit_assert_same(const struct weir_answer *a, const struct weir_answer *b)
{
    assert_int_equal(a->verdict, b->verdict);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->quota, b->quota);
    assert_int_equal(a->remaining, b->remaining);
    assert_int_equal(a->granted, b->granted);
    assert_int_equal(a->retry_after_ns, b->retry_after_ns);
    assert_int_equal(a->reset_after_ns, b->reset_after_ns);
    assert_int_equal(a->delay_ns, b->delay_ns);
    assert_int_equal(a->limit, b->limit);
}

struct weir_answer unit_ask(struct weir *w, const struct weir_question *ask, uint64_t now_ns)
{
    struct weir_answer a;
    memset(&a, 0xa5, sizeof a);
    int e = weir_ask_at(w, ask, now_ns, &a);
    if (e != 0) {
        fail_msg("weir_ask_at: %s", weir_errname(e));
    }
    unit_assert_sound(&a, ask->cost, ask->mode);
    return a;
}

struct weir_question unit_question(const char *key, uint64_t cost, int mode)
{
    return (struct weir_question){.key = key, .key_len = strlen(key), .cost = cost, .mode = mode};
}

struct weir_answer unit_check(struct weir *w, const char *key, uint64_t cost, uint64_t now_ns)
{
    struct weir_answer a;
    memset(&a, 0xa5, sizeof a);
    int e = weir_check_at(w, key, strlen(key), cost, now_ns, &a);
    if (e != 0) {
        fail_msg("weir_check_at: %s", weir_errname(e));
    }
    unit_assert_sound(&a, cost, WEIR_CHECK);
    return a;
}

struct weir_answer unit_peek(struct weir *w, const char *key, uint64_t cost, uint64_t now_ns)
{
    struct weir_question ask = unit_question(key, cost, WEIR_PEEK);
    return unit_ask(w, &ask, now_ns);
}

uint64_t unit_drain(struct weir *w, const char *key, uint64_t now_ns)
{
    uint64_t n = 0;
    while (unit_check(w, key, 1, now_ns).verdict == WEIR_ALLOW) {
        n++;
    }
    return n;
}

struct weir_stats unit_stats(struct weir *w)
{
    struct weir_stats s;
    memset(&s, 0, sizeof s);
    s.size = sizeof s;
    assert_int_equal(weir_stats_read(w, &s), 0);
    return s;
}

uint64_t unit_random(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t unit_scale(uint64_t rounds)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_EMULATED)
    return rounds / 10 + 1;
#else
    return rounds;
#endif
}

char *unit_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *folder = NULL;
    if (asprintf(&folder, "%s/weir-unit-XXXXXX", base != NULL ? base : "/tmp") < 0) {
        fail_msg("out of memory");
    }
    assert_non_null(mkdtemp(folder));
    return folder;
}

char *unit_path(const char *folder, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        fail_msg("out of memory");
    }
    return path;
}

void unit_folder_remove(char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            char *path = unit_path(folder, e->d_name);
            (void)remove(path);
            free(path);
        }
    }
    (void)closedir(dir);
    (void)rmdir(folder);
    free(folder);
}

unsigned char *unit_read_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    unsigned char *bytes = malloc((size_t)st.st_size + 1);
    assert_non_null(bytes);
    *size = (size_t)read(fd, bytes, (size_t)st.st_size);
    assert_int_equal(*size, st.st_size);
    (void)close(fd);
    return bytes;
}

void unit_write_file(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    (void)close(fd);
}
