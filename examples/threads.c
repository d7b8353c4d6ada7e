/*
 * Many threads use one limiter without a lock: together they are allowed exactly
 * what one thread would be. Exits with 1 if the total is not exact.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <weir.h>

#define THREADS 8
#define CALLS 20000
#define QUOTA 50000

struct worker {
    pthread_t thread;
    struct weir *limiter;
    uint64_t now_ns;
    uint64_t allowed;
    uint64_t denied;
    int error;
};

/*
 * Every thread asks with the same time, so that nothing refills and the total is
 * a known number. A server calls weir_check(), which reads the clock, or reads the
 * time once for each request and passes it on.
 */
static void *work(void *arg)
{
    struct worker *me = arg;
    for (int i = 0; i < CALLS && me->error == 0; i++) {
        struct weir_answer a;
        me->error = weir_check_at(me->limiter, "everyone", 8, 1, me->now_ns, &a);
        if (me->error == 0) {
            me->allowed += a.verdict == WEIR_ALLOW;
            me->denied += a.verdict == WEIR_DENY;
        }
    }
    return NULL;
}

int main(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct worker worker[THREADS] = {0};
    struct weir *limiter;
    uint64_t now_ns;
    uint64_t allowed = 0;
    uint64_t denied = 0;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = QUOTA;
    o.period_ns = WEIR_SECOND;
    if (weir_open(&limiter, &o, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (weir_now(limiter, &now_ns) != 0) {
        return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        worker[i].limiter = limiter;
        worker[i].now_ns = now_ns;
        if (pthread_create(&worker[i].thread, NULL, work, &worker[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(worker[i].thread, NULL);
        if (worker[i].error != 0) {
            fprintf(stderr, "thread %d: %s\n", i, weir_strerror(worker[i].error));
            return 1;
        }
        printf("thread %d: %6" PRIu64 " allowed\n", i, worker[i].allowed);
        allowed += worker[i].allowed;
        denied += worker[i].denied;
    }
    weir_close(limiter);
    printf("together: %6" PRIu64 " allowed, %" PRIu64 " denied; the quota is %d\n", allowed, denied,
           QUOTA);
    return allowed != QUOTA || denied != (uint64_t)THREADS * CALLS - QUOTA;
}
