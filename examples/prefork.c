/*
 * A pre-forking server: the parent makes the limiter in shared memory before
 * fork(), the workers inherit it, and all of them share one quota.
 */
// test-labels: notsan
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

#define WORKERS 4
#define CALLS 5000
#define QUOTA 8000

/* A worker: decides CALLS requests and reports how many were allowed. */
static int work(struct weir *limiter, uint64_t now_ns, int report)
{
    uint64_t allowed = 0;
    for (int i = 0; i < CALLS; i++) {
        struct weir_answer a;
        if (weir_check_at(limiter, "tenant-42", 9, 1, now_ns, &a) != 0) {
            return 1;
        }
        allowed += a.verdict == WEIR_ALLOW;
    }
    return write(report, &allowed, sizeof allowed) != (ssize_t)sizeof allowed;
}

static int start_workers(struct weir *limiter, uint64_t now_ns, int report)
{
    for (int i = 0; i < WORKERS; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            return -1;
        }
        if (pid == 0) {
            _exit(work(limiter, now_ns, report));
        }
    }
    return 0;
}

/* Returns 1 if every worker succeeded and reported; *total is what they allowed. */
static int add_up(int reports, uint64_t *total)
{
    int well = 1;
    for (int i = 0; i < WORKERS; i++) {
        int status;
        uint64_t allowed = 0;
        well &= wait(&status) > 0 && status == 0;
        well = well && read(reports, &allowed, sizeof allowed) == (ssize_t)sizeof allowed;
        printf("a worker allowed %4" PRIu64 " of %d\n", allowed, CALLS);
        *total += allowed;
    }
    return well;
}

int main(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct weir *limiter;
    uint64_t now_ns;
    uint64_t total = 0;
    int reports[2];
    o.algorithm = WEIR_SLIDING_WINDOW;
    o.memory = WEIR_SHARED; /* with WEIR_PRIVATE each worker would have its own quota */
    o.count = QUOTA;
    o.period_ns = WEIR_MINUTE;
    if (weir_open(&limiter, &o, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    /* All workers use the same time, so that the total is a known number; see threads.c. */
    if (weir_now(limiter, &now_ns) != 0 || pipe(reports) != 0 ||
        start_workers(limiter, now_ns, reports[1]) != 0) {
        return 1;
    }
    close(reports[1]); /* so that read() ends if a worker has died */
    int well = add_up(reports[0], &total);
    weir_close(limiter);
    printf("together %" PRIu64 "; the quota is %d\n", total, QUOTA);
    return !well || total != QUOTA;
}
