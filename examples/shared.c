/*
 * Processes that have only a path in common share one limit. Its state is in a
 * file, so it remains when they have ended.
 */
// test-labels: notsan
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#define QUOTA 10

static struct weir *open_limit(const char *path, uint64_t count)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct weir *w;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.memory = WEIR_FILE;
    o.path = path;
    o.count = count;
    o.period_ns = WEIR_DAY;
    o.max_keys = 1000;
    if (weir_open(&w, &o, &error) != 0) {
        printf("%s: %s\n", weir_errname(error.code), error.text);
        fflush(stdout); /* a child ends by _exit() */
    }
    return w; /* NULL after an error */
}

/* Opens the limit and asks `calls` times. Returns how often it was allowed, or -1 on error. */
static int ask(const char *path, int calls)
{
    struct weir *w = open_limit(path, QUOTA);
    int allowed = 0;
    for (int i = 0; w != NULL && i < calls; i++) {
        struct weir_answer a;
        if (weir_check(w, "exports", 7, 1, &a) != 0) {
            weir_close(w);
            return -1;
        }
        allowed += a.verdict == WEIR_ALLOW;
    }
    weir_close(w);
    return w != NULL ? allowed : -1;
}

/* The same in another process. */
static int ask_in_child(const char *path, int calls)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(ask(path, calls));
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}

static int show(const char *path)
{
    int first = ask_in_child(path, 6);
    int second = ask_in_child(path, 6);
    int third = ask(path, 6);
    printf("%d per day; asked 6 times each by three processes in turn\n", QUOTA);
    printf("allowed: %d, then %d, then %d\n", first, second, third);
    if (first != 6 || second != QUOTA - 6 || third != 0) {
        return 1;
    }
    printf("a program with other numbers for the limit gets an error:\n  ");
    struct weir *w = open_limit(path, QUOTA + 1);
    weir_close(w);
    return w != NULL;
}

int main(void)
{
    char directory[] = "/tmp/weir-shared-XXXXXX";
    char path[64];
    if (mkdtemp(directory) == NULL) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/exports", directory);
    int failed = show(path);
    unlink(path);
    rmdir(directory);
    return failed;
}
