/*
 * Denials that ban, counted by many threads: every denial counts once, so the ban is made by
 * exactly the denial that the rules name, and once.
 */
// test-timeout: 120
// test-serial: yes
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir_rules.h>

#include "support/engine/threads_run.h"

#define THREADS 8

struct scene {
    struct weir_rules *rules;
    uint64_t asks; /* of each thread */
    uint64_t now_ns;
    uint64_t denied;  /* by the quota */
    uint64_t blocked; /* by the ban; the denial that makes it included */
    uint64_t done;
};

static const char form[] = "limits: [{name: l, key: [user], rate: 1/week, algorithm: fixed_window, "
                           "ban: {denials: %llu, within: 1s, for: %us}}]";

static void write_rules(char text[256], uint64_t denials, unsigned seconds)
{
    (void)snprintf(text, 256, form, (unsigned long long)denials, seconds);
}

static struct weir_rules *open_rules(uint64_t denials)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    struct weir_rules *rules;
    char text[256];
    o.flags = WEIR_EXPLICIT_TIME;
    write_rules(text, denials, 1);
    if (weir_rules_open_text(&rules, "test", text, strlen(text), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static struct weir_rules_answer ask(const struct scene *s)
{
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 1};
    struct weir_rules_answer a;
    threads_require(weir_rules_ask_at(s->rules, &q, s->now_ns, &a, NULL) == 0);
    return a;
}

static void ask_often(unsigned index, void *arg)
{
    struct scene *s = arg;
    uint64_t denied = 0;
    uint64_t blocked = 0;
    for (uint64_t i = 0; i < s->asks; i++) {
        struct weir_rules_answer a = ask(s);
        threads_require(a.answer.verdict == WEIR_DENY);
        denied += (a.answer.flags & WEIR_FLAG_BLOCKED) == 0;
        blocked += (a.answer.flags & WEIR_FLAG_BANNED) != 0;
    }
    (void)index;
    (void)threads_add(&s->denied, denied);
    (void)threads_add(&s->blocked, blocked);
    (void)threads_add(&s->done, 1);
}

static int read_bans(void *arg, const struct weir_rules_limit *limit)
{
    *(uint64_t *)arg = limit->bans;
    return 0;
}

static uint64_t bans_of(const struct scene *s)
{
    uint64_t bans = 0;
    assert_int_equal(weir_rules_limits(s->rules, read_bans, &bans), 0);
    return bans;
}

static void exactly_the_last_of_all_denials_bans(void **state)
{
    struct scene s = {.asks = THREADS_ROUNDS(40000, 8000, 4000), .now_ns = THREADS_T0};
    uint64_t all = THREADS * s.asks;
    s.rules = open_rules(all + 1);
    assert_int_equal(ask(&s).answer.verdict, WEIR_ALLOW);
    threads_run(THREADS, ask_often, &s);
    assert_int_equal(s.denied, all);
    assert_int_equal(bans_of(&s), 0); /* one denial is missing: none was counted twice */
    assert_int_equal(ask(&s).answer.flags, WEIR_FLAG_BLOCKED | WEIR_FLAG_BANNED);
    assert_int_equal(bans_of(&s), 1); /* and none was lost */
    weir_rules_close(s.rules);
}

static void a_window_bans_a_key_once_however_many_threads_are_denied(void **state)
{
    uint64_t rounds = THREADS_ROUNDS(300, 60, 40);
    struct scene s = {.asks = 20, .now_ns = THREADS_T0};
    s.rules = open_rules(7);
    assert_int_equal(ask(&s).answer.verdict, WEIR_ALLOW);
    for (uint64_t i = 0; i < rounds; i++) {
        s.denied = 0;
        s.blocked = 0;
        threads_run(THREADS, ask_often, &s);
        /* Six denials by the quota and the seventh, which tells of the ban. Until it has been made,
         * others are denied by the quota too. */
        assert_true(s.denied >= 6 && s.blocked >= 1);
        assert_int_equal(s.denied + s.blocked, THREADS * s.asks);
        assert_int_equal(bans_of(&s), i + 1);
        s.now_ns += 2 * WEIR_SECOND;
    }
    weir_rules_close(s.rules);
}

/* The first thread reloads: how long a ban lasts changes, what is counted does not. */
static void reload_or_ask(unsigned index, void *arg)
{
    struct scene *s = arg;
    char text[256];
    if (index > 0) {
        ask_often(index, arg);
        return;
    }
    for (unsigned i = 0; threads_get(&s->done) < THREADS; i++) {
        write_rules(text, THREADS * s->asks + 1, 1 + i % 50);
        threads_require(weir_rules_reload_text(s->rules, "test", text, strlen(text), NULL) == 0);
        (void)sched_yield();
    }
}

static void reloads_lose_no_denial(void **state)
{
    struct scene s = {.asks = THREADS_ROUNDS(10000, 2000, 1000), .now_ns = THREADS_T0};
    s.rules = open_rules(THREADS * s.asks + 1);
    assert_int_equal(ask(&s).answer.verdict, WEIR_ALLOW);
    threads_run(THREADS + 1, reload_or_ask, &s);
    assert_int_equal(bans_of(&s), 0);
    assert_int_equal(ask(&s).answer.flags, WEIR_FLAG_BLOCKED | WEIR_FLAG_BANNED);
    assert_int_equal(bans_of(&s), 1);
    weir_rules_close(s.rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_last_of_all_denials_bans),
        cmocka_unit_test(a_window_bans_a_key_once_however_many_threads_are_denied),
        cmocka_unit_test(reloads_lose_no_denial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
