/*
 * A fleet on the program's own event loop: one thread with poll(), which never waits for an answer.
 *
 *     fleet_loop redis://127.0.0.1:6379
 *
 * Requests come through a pipe, one byte each. The program asks a question for each, and
 * weir_fleet_run() calls on_answer() with the answers. Exits with 1 if a request gets no answer.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <weir_fleet.h>

#define REQUESTS 100
#define QUOTA 60

struct program {
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit;
    unsigned answered, allowed, degraded;
};

static void on_answer(void *arg, int error, const struct weir_answer *answer)
{
    struct program *p = arg;
    p->answered++;
    if (error == 0) {
        p->allowed += answer->verdict == WEIR_ALLOW;
        p->degraded += (answer->flags & WEIR_FLAG_DEGRADED) != 0;
    }
}

static void on_requests(struct program *p, int from)
{
    char bytes[REQUESTS];
    ssize_t n = read(from, bytes, sizeof bytes);
    for (ssize_t i = 0; i < n; i++) {
        struct weir_question q = {.key = "alice", .key_len = 5, .cost = 1};
        struct weir_answer a;
        int e = weir_fleet_ask(p->limit, &q, &a, on_answer, p);
        if (e != 0) { /* answered already, or an error: on_answer() will not be called */
            on_answer(p, e < 0 ? e : 0, &a);
        }
    }
}

static int open_fleet(struct program *p, const char *url)
{
    struct weir_fleet_options f = WEIR_FLEET_OPTIONS_INIT;
    struct weir_fleet_limit_options l = WEIR_FLEET_LIMIT_OPTIONS_INIT;
    struct weir_error error;
    f.url = url;
    f.flags = WEIR_FLEET_CALLERS_LOOP;
    f.deadline_ns = WEIR_SECOND; /* for a busy machine; the default is 5 ms */
    l.name = "example loop";
    l.limit.algorithm = WEIR_TOKEN_BUCKET;
    l.limit.count = QUOTA;
    l.limit.period_ns = WEIR_DAY;
    if (weir_fleet_open(&p->fleet, &f, &error) != 0 ||
        weir_fleet_limit_open(&p->limit, p->fleet, &l, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct program p = {0};
    char requests[REQUESTS] = {0};
    int pipes[2];
    if (argc != 2) {
        fprintf(stderr, "usage: fleet_loop redis://host:port\n");
        return 2;
    }
    if (open_fleet(&p, argv[1]) != 0 || pipe(pipes) != 0 ||
        write(pipes[1], requests, sizeof requests) != sizeof requests) {
        return 1;
    }
    while (p.answered < REQUESTS) {
        struct pollfd fds[] = {{pipes[0], POLLIN, 0}, {weir_fleet_fd(p.fleet), POLLIN, 0}};
        if (poll(fds, 2, weir_fleet_timeout_ms(p.fleet)) < 0) {
            break;
        }
        if (fds[0].revents & POLLIN) {
            on_requests(&p, pipes[0]);
        }
        weir_fleet_run(p.fleet); /* whether the descriptor is readable or the time has passed */
    }
    printf("%u of %d allowed, %u answers, %u degraded\n", p.allowed, QUOTA, p.answered, p.degraded);
    weir_fleet_limit_close(p.limit);
    weir_fleet_close(p.fleet);
    close(pipes[0]);
    close(pipes[1]);
    return p.answered != REQUESTS || (p.degraded == 0 && p.allowed != QUOTA);
}
