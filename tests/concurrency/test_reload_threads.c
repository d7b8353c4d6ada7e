/*
 * Rules under more threads than have counters of their own, threads that come
 * and go, and forks in the middle of it all: every request is counted once,
 * every unit is given once, and no child waits for a thread that it has not.
 */
// test-timeout: 300
// test-serial: yes
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir_rules.h>

#include "support/engine/threads_run.h"

#define CROWD 100
#define QUOTA 5000

static const char kept[] = "limits:\n"
                           "  - {name: kept, key: [user], rate: 5000/week, "
                           "algorithm: fixed_window}\n";
static const char kept_and_more[] = "limits:\n"
                                    "  - {name: other, key: [user], rate: 1M/s}\n"
                                    "  - {name: kept, when: {path: [/x, /y]}, key: [user], "
                                    "rate: 5000/week, algorithm: fixed_window}\n"
                                    "  - {name: seen, key: [], rate: 1/week, shadow: true}\n";

static const char kept_and_seen[] = "limits:\n"
                                    "  - {name: kept, when: {path: /**}, key: [user], "
                                    "rate: 5000/week, algorithm: fixed_window}\n"
                                    "  - {name: seen, key: [], rate: 1/week, shadow: true}\n";

struct scene {
    struct weir_rules *rules;
    struct threads_barrier barrier;
    unsigned threads;
    uint64_t asks; /* of each */
    uint64_t rounds;
    uint64_t done; /* threads that have asked all they wanted */
    uint64_t switches;
    uint64_t forking;
    uint64_t forks;
    uint64_t allowed;
    uint64_t denied;
    uint64_t seen[2];
};

static struct weir_rules *open_rules(const char *text)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    struct weir_rules *rules;
    o.flags = WEIR_EXPLICIT_TIME;
    if (weir_rules_open_text(&rules, "test", text, strlen(text), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static int ask(struct weir_rules *rules, int mode, struct weir_rules_answer *a)
{
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("path", "/x"),
                                          WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 2, .mode = mode};
    return weir_rules_ask_at(rules, &q, THREADS_T0, a, NULL);
}

static int reload(struct weir_rules *rules, const char *text)
{
    return weir_rules_reload_text(rules, "test", text, strlen(text), NULL);
}

static void switch_to(struct scene *s, const char *text)
{
    threads_require(reload(s->rules, text) == 0);
    (void)threads_add(&s->switches, 1);
}

static void ask_and_count(struct scene *s, uint64_t asks)
{
    uint64_t allowed = 0;
    uint64_t denied = 0;
    for (uint64_t i = 0; i < asks; i++) {
        struct weir_rules_answer a;
        threads_require(ask(s->rules, WEIR_CHECK, &a) == 0);
        allowed += a.answer.verdict == WEIR_ALLOW;
        denied += a.answer.verdict == WEIR_DENY;
    }
    (void)threads_add(&s->allowed, allowed);
    (void)threads_add(&s->denied, denied);
}

static struct weir_rules_stats stats_of(struct weir_rules *rules)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(rules, &stats), 0);
    return stats;
}

/* ---- a crowd ---- */

static void crowd(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        for (uint64_t i = 0; threads_get(&s->done) < s->threads - 1; i++) {
            switch_to(s, i % 2 == 0 ? kept_and_more : kept);
            (void)sched_yield();
        }
        return;
    }
    ask_and_count(s, 1); /* takes a slot; when all have met, the last ones share theirs */
    threads_meet(&s->barrier, s->threads - 1);
    ask_and_count(s, s->asks - 1);
    (void)threads_add(&s->done, 1);
}

static void a_crowd_larger_than_the_slots_is_counted_and_limited_exactly(void **state)
{
    struct scene s = {.threads = CROWD + 1, .asks = THREADS_ROUNDS(4000, 400, 100)};
    s.rules = open_rules(kept);
    threads_run(s.threads, crowd, &s);
    struct weir_rules_stats stats = stats_of(s.rules);
    assert_int_equal(s.allowed, QUOTA);
    assert_int_equal(s.allowed + s.denied, CROWD * s.asks);
    assert_int_equal(stats.asked, CROWD * s.asks);
    assert_int_equal(stats.bad, 0);
    assert_int_equal(stats.unmatched, 0);
    assert_int_equal(stats.generation, s.switches + 1);
    weir_rules_close(s.rules);
}

/* Each wave of threads takes over the numbers of the one before. */
static void wave(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        switch_to(s, s->switches % 2 == 0 ? kept_and_more : kept);
    }
    ask_and_count(s, s->asks);
}

static void counts_go_on_when_threads_end_and_others_begin(void **state)
{
    struct scene s = {.threads = 80, .asks = 10};
    uint64_t waves = THREADS_ROUNDS(10, 8, 7);
    s.rules = open_rules(kept);
    for (uint64_t i = 0; i < waves; i++) {
        threads_run(s.threads, wave, &s);
        assert_int_equal(stats_of(s.rules).asked, (i + 1) * s.threads * s.asks);
    }
    assert_int_equal(s.allowed, QUOTA);
    assert_int_equal(s.denied, waves * s.threads * s.asks - QUOTA);
    weir_rules_close(s.rules);
}

/* ---- lists and limits belong together ---- */

/* With the list of the one and the limit of the other a request would be told NEVER. */
static const char with_list[] = "allow: [{user: alice}]\n"
                                "limits: [{name: wall, key: [], rate: 1/week, cost: 2}]\n";
static const char with_limit[] = "limits: [{name: door, key: [], rate: 1M/s}]\n";

static void ask_both(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        for (uint64_t i = 0; threads_get(&s->done) < s->threads - 1; i++) {
            switch_to(s, i % 2 == 0 ? with_limit : with_list);
        }
        return;
    }
    for (uint64_t i = 0; i < s->asks || threads_get(&s->switches) < 50; i++) {
        struct weir_rules_answer a;
        threads_require(ask(s->rules, WEIR_PEEK, &a) == 0);
        threads_require(a.answer.verdict == WEIR_ALLOW);
        bool listed = a.reason == WEIR_REASON_ALLOW_LIST;
        threads_require(listed || strcmp(a.limit, "door") == 0);
        (void)threads_add(&s->seen[listed], 1);
    }
    (void)threads_add(&s->done, 1);
}

static void lists_and_limits_are_switched_together(void **state)
{
    struct scene s = {.threads = 5, .asks = THREADS_ROUNDS(50000, 5000, 1000)};
    s.rules = open_rules(with_list);
    threads_run(s.threads, ask_both, &s);
    struct weir_rules_stats stats = stats_of(s.rules);
    assert_int_equal(stats.asked, s.seen[0] + s.seen[1]);
    assert_int_equal(stats.allow_listed, s.seen[1]);
    assert_true(s.seen[0] > 0 && s.seen[1] > 0);
    weir_rules_close(s.rules);
}

/* ---- forks ---- */

/*
 * Those who ask hold every lock a little longer than they need to, so that a
 * fork finds it held. (Sanitizers have functions of their own in this place.)
 */
static __thread bool dawdles;

#if !THREADS_TSAN && !THREADS_ASAN
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static int (*unlock)(pthread_mutex_t *);
    if (__atomic_load_n(&unlock, __ATOMIC_RELAXED) == NULL) {
        void *found = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
        __atomic_store(&unlock, (int (**)(pthread_mutex_t *))(void *)&found, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; dawdles && i < 2; i++) {
        (void)sched_yield();
    }
    return unlock(mutex);
}
#endif

/* In a child: exits with the number of what went wrong. */
static void use_everything(struct weir_rules *rules)
{
    struct weir_rules_answer a;
    struct weir_rules_stats stats = {.size = sizeof stats};
    uint64_t allowed = 0;
    (void)alarm(10);
    if (ask(rules, WEIR_PEEK, &a) != 0 || reload(rules, kept) != 0) {
        _exit(1);
    }
    (void)ask(rules, WEIR_PEEK, &a);
    uint64_t left = a.answer.remaining; /* nobody else takes of it here */
    if (strcmp(a.limit, "kept") != 0 || left > QUOTA) {
        _exit(2);
    }
    for (uint64_t i = 0; i <= QUOTA; i++) {
        allowed += ask(rules, WEIR_CHECK, &a) == 0 && a.answer.verdict == WEIR_ALLOW;
    }
    if (allowed != left) {
        _exit(3);
    }
    if (reload(rules, kept_and_seen) != 0 || weir_rules_remove(rules, "kept", NULL) != 0 ||
        weir_rules_stats_read(rules, &stats) != 0) {
        _exit(4);
    }
    weir_rules_close(rules);
    _exit(0);
}

static void fork_a_child(struct scene *s)
{
    int status = 0;
    pid_t child = fork();
    threads_require(child >= 0);
    if (child == 0) {
        use_everything(s->rules);
    }
    (void)threads_add(&s->forks, 1);
    threads_require(waitpid(child, &status, 0) == child);
    threads_require(WIFEXITED(status)); /* not ended by its alarm */
    threads_require(WEXITSTATUS(status) == 0);
}

/* Reloads do not stand in the way of a fork for long: one at most begins after it has. */
static void switch_between_forks(struct scene *s)
{
    for (uint64_t i = 0; threads_get(&s->done) == 0; i++) {
        uint64_t forks = threads_get(&s->forks);
        switch_to(s, i % 2 == 0 ? kept_and_seen : kept);
        while (threads_get(&s->forking) != 0 && threads_get(&s->forks) == forks) {
            (void)sched_yield();
        }
    }
}

/* In turn as soon as rules have been switched, when those who waited for it go on, and at once. */
static void fork_again_and_again(struct scene *s)
{
    for (uint64_t i = 0; i < s->rounds; i++) {
        uint64_t before = threads_get(&s->switches);
        while (i % 2 == 0 && threads_get(&s->switches) == before) {
            threads_pause();
        }
        threads_set(&s->forking, 1);
        fork_a_child(s);
        threads_set(&s->forking, 0);
    }
    threads_set(&s->done, 1);
}

static void fork_among_others(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        fork_again_and_again(s);
    } else if (index == 1) {
        switch_between_forks(s);
    } else {
        uint64_t asked = 0;
        dawdles = true;
        for (; threads_get(&s->done) == 0; asked += 10) {
            ask_and_count(s, 10);
        }
        (void)threads_add(&s->seen[0], asked);
    }
}

static void a_child_asks_and_reloads_wherever_other_threads_were_at_the_fork(void **state)
{
    struct scene s = {.threads = 6, .rounds = THREADS_ROUNDS(20, 10, 5)};
    s.rules = open_rules(kept);
    threads_run(s.threads, fork_among_others, &s);
    struct weir_rules_stats stats = stats_of(s.rules);
    assert_int_equal(s.allowed, s.seen[0] < QUOTA ? s.seen[0] : QUOTA);
    assert_int_equal(s.allowed + s.denied, s.seen[0]);
    assert_int_equal(stats.asked, s.seen[0]);
    assert_int_equal(stats.generation, s.switches + 1);
    weir_rules_close(s.rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crowd_larger_than_the_slots_is_counted_and_limited_exactly),
        cmocka_unit_test(counts_go_on_when_threads_end_and_others_begin),
        cmocka_unit_test(lists_and_limits_are_switched_together),
        cmocka_unit_test(a_child_asks_and_reloads_wherever_other_threads_were_at_the_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
