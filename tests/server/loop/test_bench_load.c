/* The load generator against a server: a real one, and one that stops for a moment. */
#include "load/load.h"
#include "support/server/server_client.h"
#include "support/server/server_memory.h"
#include "support/engine/unit_limiter.h"

#include <arpa/inet.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static struct load_result result;

static struct load_plan plan_for(const char *address, const char *const *words, unsigned n)
{
    struct load_plan plan = {.address = address,
                             .connections = 4,
                             .depth = 1,
                             .threads = 1,
                             .keys = 100,
                             .duration_ns = UINT64_MAX,
                             .within_ns = 100 * MS,
                             .seed = 1};
    struct weir_error error;
    assert_int_equal(load_request_make(&plan.request, LOAD_RESP, words, n, NULL, &error), 0);
    return plan;
}

static void run(struct load_plan *plan)
{
    struct weir_error error = {0};
    int e = load_run(plan, &result, &error);
    if (e != 0) {
        fail_msg("%s", error.text);
    }
    load_request_finish(&plan->request);
}

/* ---- a real server ---- */

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/day}]\n";

static void yes_and_no_are_counted_exactly(void **state)
{
    static const char *const words[] = {"CL.THROTTLE", "{key}", "4", "1", "3600"};
    struct server_world w;
    struct server_options o = server_world_options();
    server_world_start(&w, rules, &o);
    struct load_plan plan = plan_for(w.address, words, 5);
    plan.requests = 1000;
    plan.depth = 16;
    plan.threads = 2;
    plan.order = LOAD_SEQUENTIAL;
    run(&plan);
    assert_int_equal(result.verdicts[LOAD_ALLOWED], 500); /* 5 for each of 100 keys */
    assert_int_equal(result.verdicts[LOAD_DENIED], 500);
    assert_int_equal(load_replies(&result), 1000);
    assert_int_equal(result.latency.count, 1000);
    assert_int_equal(result.lost + result.unsent, 0);
    server_world_stop(&w);
}

static void the_rate_is_kept(void **state)
{
    static const char *const words[] = {"WEIR.CHECK", "api", "{key}"};
    struct server_world w;
    struct server_options o = server_world_options();
    server_world_start(&w, rules, &o);
    for (int poisson = 0; poisson < 2; poisson++) {
        struct load_plan plan = plan_for(w.address, words, 3);
        plan.rate = 2000;
        plan.arrivals = poisson ? LOAD_POISSON : LOAD_CONSTANT;
        plan.depth = 64;
        plan.threads = 2;
        plan.warmup_ns = 100 * MS;
        plan.duration_ns = 500 * MS;
        run(&plan);
        uint64_t all = load_replies(&result) + result.lost + result.unsent;
        assert_in_range(all, poisson ? 850 : 999, poisson ? 1150 : 1001);
        assert_int_equal(result.verdicts[LOAD_ERROR], 0);
    }
    server_world_stop(&w);
}

/* No address space has room for such a stack, so that no thread can be created. */
#define NO_STACK (UINT64_C(1) << 50)

static void a_thread_that_cannot_be_started_is_an_error(void **state)
{
    static const char *const words[] = {"PING"};
    struct server_world w;
    struct server_options o = server_world_options();
    struct weir_error error = {0};
    pthread_attr_t before;
    pthread_attr_t huge;
    server_world_start(&w, rules, &o);
    struct load_plan plan = plan_for(w.address, words, 1);
    plan.threads = 2;
    plan.requests = 100;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_getattr_default_np(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, NO_STACK), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    int e = load_run(&plan, &result, &error);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    assert_int_equal(e, WEIR_EIO);
    assert_non_null(strstr(error.text, "thread 2 of 2"));
    assert_int_equal(load_replies(&result), 0);
    load_request_finish(&plan.request);
    server_world_stop(&w);
}

static void without_memory_nothing_is_kept(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* there, an allocation that is too large ends the process */
#endif
    static const char *const words[] = {"PING"};
    struct weir_error error = {0};
    struct load_plan plan = plan_for("127.0.0.1:1", words, 1);
    plan.order = LOAD_ZIPF;
    plan.threads = UINT_MAX; /* more than there is memory for */
    size_t before = server_resident_bytes();
    for (int i = 0; i < 16; i++) {
        assert_int_equal(load_run(&plan, &result, &error), WEIR_ENOMEM);
    }
    server_assert_grown_less(before, 32u << 20); /* a list of skewed keys has 4 MiB */
    load_request_finish(&plan.request);
}

static void errors_are_counted_as_errors(void **state)
{
    static const char *const words[] = {"WEIR.CHECK", "nothing", "{key}"};
    struct server_world w;
    struct server_options o = server_world_options();
    server_world_start(&w, rules, &o);
    struct load_plan plan = plan_for(w.address, words, 3);
    plan.requests = 100;
    run(&plan);
    assert_int_equal(result.verdicts[LOAD_ERROR], 100);
    assert_int_equal(result.within, 0);
    server_world_stop(&w);
}

static void nobody_there_is_an_error(void **state)
{
    static const char *const words[] = {"PING"};
    struct weir_error error = {0};
    struct load_plan plan = plan_for("unix:/nowhere/at/all", words, 1);
    plan.requests = 1;
    assert_int_equal(load_run(&plan, &result, &error), WEIR_EIO);
    assert_non_null(strstr(error.text, "/nowhere/at/all"));
    plan.address = "localhost";
    assert_int_equal(load_run(&plan, &result, &error), WEIR_EINVAL);
    load_request_finish(&plan.request);
}

/* ---- servers with faults ---- */

struct fake {
    int listener;
    char address[64];
    pthread_t thread;
    unsigned replies_before; /* the fault */
    unsigned stall_ms;       /* 0: it hangs up instead */
};

static void *serve_fake(void *arg)
{
    const struct fake *f = arg;
    int fd = accept(f->listener, NULL, NULL);
    char bytes[4096];
    unsigned answered = 0;
    for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
        for (ssize_t i = 0; i < n; i++) { /* "*1 $4 PING": one 'P' each */
            if (bytes[i] != 'P') {
                continue;
            }
            if (answered++ == f->replies_before && f->stall_ms == 0) {
                close(fd);
                fd = accept(f->listener, NULL, NULL);
                break;
            }
            if (answered == f->replies_before) {
                usleep(f->stall_ms * 1000);
            }
            (void)send(fd, "+PONG\r\n", 7, MSG_NOSIGNAL);
        }
    }
    close(fd);
    return NULL;
}

static void start_fake(struct fake *f, unsigned replies_before, unsigned stall_ms)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *f = (struct fake){.replies_before = replies_before, .stall_ms = stall_ms};
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(f->listener, 8), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &len), 0);
    snprintf(f->address, sizeof f->address, "127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&f->thread, NULL, serve_fake, f), 0);
}

static void stop_fake(struct fake *f)
{
    pthread_join(f->thread, NULL);
    close(f->listener);
}

/*
 * One connection, 1000 requests a second, and a server that stops for 200 ms once: that is one slow
 * request of 1000 to a generator that waits for it, and 200 to their senders. Half of those wait
 * for 100 ms and more.
 */
static void a_stall_shows_in_all_requests_that_were_due_in_it(void **state)
{
    static const char *const words[] = {"PING"};
    struct fake f;
    start_fake(&f, 300, 200);
    struct load_plan plan = plan_for(f.address, words, 1);
    plan.connections = 1;
    plan.rate = 1000;
    plan.duration_ns = 1000 * MS;
    run(&plan);
    stop_fake(&f);
    assert_int_equal(load_replies(&result) + result.unsent, 1000);
    assert_true(load_latency_at(&result.latency, 0.999) >= 190 * MS);
    assert_true(load_latency_at(&result.latency, 0.91) >= 80 * MS);
    assert_true(result.within <= 920);
}

/* The server never comes back: what was due until the end is told, not left out. */
static void what_is_never_sent_counts_with_the_time_it_has_waited(void **state)
{
    static const char *const words[] = {"PING"};
    struct fake f;
    start_fake(&f, 100, 400);
    struct load_plan plan = plan_for(f.address, words, 1);
    plan.connections = 1;
    plan.rate = 1000;
    plan.duration_ns = 300 * MS;
    run(&plan);
    stop_fake(&f);
    assert_true(result.unsent >= 150);
    assert_int_equal(load_replies(&result) + result.unsent + result.lost, 300);
    assert_int_equal(result.latency.count, 300);
    assert_true(load_latency_at(&result.latency, 0.9) >= 100 * MS);
}

static void a_connection_that_ends_is_opened_again_and_its_request_is_lost(void **state)
{
    static const char *const words[] = {"PING"};
    struct fake f;
    start_fake(&f, 10, 0);
    struct load_plan plan = plan_for(f.address, words, 1);
    plan.connections = 1;
    plan.requests = 50;
    run(&plan);
    stop_fake(&f);
    assert_int_equal(result.lost, 1);
    assert_int_equal(load_replies(&result), 49);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yes_and_no_are_counted_exactly),
        cmocka_unit_test(the_rate_is_kept),
        cmocka_unit_test(a_thread_that_cannot_be_started_is_an_error),
        cmocka_unit_test(without_memory_nothing_is_kept),
        cmocka_unit_test(errors_are_counted_as_errors),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(a_stall_shows_in_all_requests_that_were_due_in_it),
        cmocka_unit_test(what_is_never_sent_counts_with_the_time_it_has_waited),
        cmocka_unit_test(a_connection_that_ends_is_opened_again_and_its_request_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
