/* Rules whose limits a fleet decides, at a real Redis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/atomic.h"
#include "support/fleet_open.h"
#include "support/redis_world.h"
#include "support/rules_ask.h"

static struct redis_world world;
static const struct weir_rules_question plain;

/* One node: its fleet, its rules, and what they have said. */
struct node {
    struct weir_fleet *fleet;
    struct weir_rules *rules;
    sem_t came;
    uint64_t allowed, denied, degraded, shadowed, errors;
    struct weir_rules_answer last;
};

static void begin_at(struct node *n, const char *url, uint64_t deadline_ns, const char *yaml)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0};
    memset(n, 0, sizeof *n);
    (void)sem_init(&n->came, 0, 0);
    n->fleet = fleet_open_at(url, 0, deadline_ns);
    o.flags = WEIR_EXPLICIT_TIME;
    o.fleet = n->fleet;
    if (weir_rules_open_text(&n->rules, "test", yaml, strlen(yaml), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void begin(struct node *n, const char *yaml)
{
    begin_at(n, world.url, 0, yaml);
}

static void end(struct node *n)
{
    weir_rules_close(n->rules);
    weir_fleet_close(n->fleet);
    (void)sem_destroy(&n->came);
}

static void hear(void *arg, int error, const struct weir_rules_answer *answer)
{
    struct node *n = arg;
    if (error != 0) {
        (void)fetch_add(&n->errors, 1);
    } else {
        n->last = *answer;
        bool allowed = answer->answer.verdict == WEIR_ALLOW;
        (void)fetch_add(allowed ? &n->allowed : &n->denied, 1);
        (void)fetch_add(&n->degraded, (answer->answer.flags & WEIR_FLAG_DEGRADED) != 0);
        (void)fetch_add(&n->shadowed, answer->shadow_denied);
    }
    (void)sem_post(&n->came);
}

/* Asked, and waited for. */
static const struct weir_rules_answer *ask(struct node *n, const char *words)
{
    struct weir_rules_answer answer;
    struct weir_error error = {0};
    int e = rules_ask_async(n->rules, NULL, words, plain, &answer, hear, n, &error);
    if (e < 0) {
        fail_msg("%s", error.text);
    }
    if (e == 1) {
        n->last = answer;
    } else {
        (void)sem_wait(&n->came);
    }
    assert_int_equal(n->errors, 0);
    return &n->last;
}

static void two_nodes_share_a_limit_and_its_tiers(void **state)
{
    static const char yaml[] = "limits:\n"
                               "- name: shared\n"
                               "  key: [user]\n"
                               "  rate: 3/h\n"
                               "  deny_cache: off\n"
                               "  tiers: {by: tier, pro: {rate: 5/h}}\n";
    struct node a;
    struct node b;
    begin(&a, yaml);
    begin(&b, yaml);
    assert_int_equal(ask(&a, "user=u")->answer.remaining, 2);
    assert_int_equal(ask(&b, "user=u")->answer.remaining, 1);
    assert_int_equal(ask(&a, "user=u tier=pro")->answer.remaining, 4);
    assert_string_equal(a.last.tier, "pro");
    assert_int_equal(ask(&b, "user=u tier=pro")->answer.remaining, 3);
    assert_int_equal(ask(&a, "user=u")->answer.remaining, 0);
    assert_int_equal(ask(&b, "user=u")->answer.verdict, WEIR_DENY);
    assert_string_equal(b.last.limit, "shared");
    assert_int_equal(b.last.answer.flags & WEIR_FLAG_DEGRADED, 0);
    end(&a);
    end(&b);
}

static void limits_that_shard_by_one_thing_are_one_call(void **state)
{
    struct node n;
    begin(&n, "limits:\n"
              "- {name: by, key: [tenant], rate: 9/h, shard_by: tenant}\n"
              "- {name: each, key: [tenant, user], rate: 2/h, shard_by: tenant}\n"
              "- {name: here, key: [tenant], rate: 9/h, consistency: local}\n"
              "- {name: apart, when: {path: /apart}, key: [user], rate: 9/h}\n");
    assert_int_equal(ask(&n, "tenant=t user=u")->answer.verdict, WEIR_ALLOW);
    uint64_t calls = fleet_stats_of(n.fleet).calls;
    assert_string_equal(ask(&n, "tenant=t user=u")->limit, "each");
    assert_int_equal(n.last.answer.remaining, 0);
    assert_int_equal(n.last.applied, 3);
    assert_in_range(fleet_stats_of(n.fleet).calls, calls + 1, calls + 2); /* a heartbeat may come */
    assert_int_equal(ask(&n, "tenant=t user=u")->answer.verdict, WEIR_DENY);
    assert_int_equal(ask(&n, "tenant=t user=v path=/apart")->answer.verdict, WEIR_ALLOW);
    end(&n);
}

static void what_no_script_can_express_is_told_where_the_file_says_it(void **state)
{
    static const char yaml[] = "limits:\n"
                               "- {name: good, key: [], rate: 5/s}\n"
                               "- {name: bad, key: [], algorithm: fixed_window, rate: 5/1500ns}\n";
    struct node n;
    struct weir_error error = {0};
    begin(&n, "limits: [{name: good, key: [], rate: 5/s}]");
    assert_int_equal(weir_rules_reload_text(n.rules, "new", yaml, sizeof yaml - 1, &error),
                     WEIR_ERULES);
    assert_non_null(strstr(error.text, "new:3:55: limit 'bad': a window of 1500 ns"));
    assert_int_equal(ask(&n, "")->answer.verdict, WEIR_ALLOW);
    end(&n);
}

static int take_limit(void *arg, const struct weir_rules_limit *limit)
{
    *(struct weir_rules_limit *)arg = *limit;
    return 0;
}

static void a_store_that_is_away_is_flagged_and_counted(void **state)
{
    struct node n;
    struct weir_rules_limit found;
    begin_at(&n, "redis://127.0.0.1:1", 5 * WEIR_MILLISECOND,
             "limits: [{name: l, key: [], rate: 5/h, on_store_failure: closed}]");
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(ask(&n, "")->answer.verdict, WEIR_DENY);
        assert_int_equal(n.last.answer.flags, WEIR_FLAG_DEGRADED | WEIR_FLAG_CLOSED);
        assert_string_equal(n.last.limit, "l");
    }
    assert_int_equal(weir_rules_limits(n.rules, take_limit, &found), 0);
    assert_int_equal(found.degraded[WEIR_FLEET_CLOSED], 4);
    assert_int_equal(found.degraded[WEIR_FLEET_OPEN] + found.degraded[WEIR_FLEET_LOCAL], 0);
    end(&n);
}

/* ---- many questions ---- */

#define ASKERS 2
#define EACH 300
#define QUOTA 400

static void *ask_much(void *arg)
{
    struct node *n = arg;
    for (unsigned i = 0; i < EACH; i++) {
        struct weir_rules_answer answer;
        int e = rules_ask_async(n->rules, NULL, "user=u", plain, &answer, hear, n, NULL);
        if (e != 0) { /* at once, or not at all */
            hear(n, e < 0 ? e : 0, &answer);
        }
    }
    return NULL;
}

/* However the limit is shared, and whatever happens to the rules: no unit more, none lost. */
static void assert_exact_totals(const char *name, const char *consistency, uint64_t least)
{
    char yaml[2][600];
    struct node n[2];
    pthread_t id[2][ASKERS];
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(
            yaml[i], sizeof yaml[i],
            "limits:\n"
            "- {name: %s, key: [user], rate: %d/day, consistency: %s, deny_cache: off, "
            "retry_jitter: %u%%}\n"
            "- {name: here, key: [user], rate: %u00k/h, consistency: local}\n"
            "- {name: s-%s, key: [user], rate: 100/day, shadow: true, deny_cache: off}\n",
            name, QUOTA, consistency, i, 1 + i, name);
    }
    for (unsigned i = 0; i < 2; i++) {
        begin(&n[i], yaml[0]);
    }
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned t = 0; t < ASKERS; t++) {
            assert_int_equal(pthread_create(&id[i][t], NULL, ask_much, &n[i]), 0);
        }
    }
    for (unsigned i = 0; i < 20; i++) {
        const char *next = yaml[(i + 1) % 2];
        assert_int_equal(weir_rules_reload_text(n[i % 2].rules, "x", next, strlen(next), NULL), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned t = 0; t < ASKERS; t++) {
            (void)pthread_join(id[i][t], NULL);
        }
        for (unsigned q = 0; q < ASKERS * EACH; q++) {
            (void)sem_wait(&n[i].came);
        }
    }
    uint64_t allowed = n[0].allowed + n[1].allowed;
    assert_int_equal(n[0].errors + n[1].errors, 0);
    assert_int_equal(n[0].degraded + n[1].degraded, 0);
    assert_int_equal(allowed + n[0].denied + n[1].denied, 2 * ASKERS * EACH);
    assert_in_range(allowed, least, QUOTA);
    assert_int_equal(n[0].shadowed + n[1].shadowed, allowed - 100);
    end(&n[0]);
    end(&n[1]);
}

static void nodes_that_switch_their_rules_admit_exactly_the_limit(void **state)
{
    assert_exact_totals("sum", "exact", QUOTA);
}

static void nodes_with_leases_never_admit_more(void **state)
{
    assert_exact_totals("lent", "leased", 101);
}

static void rules_and_fleet_may_be_closed_while_questions_are_out(void **state)
{
    for (unsigned round = 0; round < 10; round++) {
        struct node n;
        unsigned out = 0;
        begin(&n, "limits:\n"
                  "- {name: l, key: [user], rate: 1M/h}\n"
                  "- {name: here, key: [user], rate: 1M/h, consistency: local}\n"
                  "- {name: s, key: [user], rate: 1M/h, shadow: true}\n");
        for (unsigned i = 0; i < 50; i++) {
            struct weir_rules_answer answer;
            out += rules_ask_async(n.rules, NULL, "user=u", plain, &answer, hear, &n, NULL) == 0;
        }
        assert_int_equal(out, 50);
        weir_rules_close(n.rules);
        weir_fleet_close(n.fleet);
        assert_int_equal(n.allowed + n.denied + n.errors, 50);
        (void)sem_destroy(&n.came);
    }
}

static int start(void **state)
{
    (void)state;
    redis_world_alone(&world, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_nodes_share_a_limit_and_its_tiers),
        cmocka_unit_test(limits_that_shard_by_one_thing_are_one_call),
        cmocka_unit_test(what_no_script_can_express_is_told_where_the_file_says_it),
        cmocka_unit_test(a_store_that_is_away_is_flagged_and_counted),
        cmocka_unit_test(nodes_that_switch_their_rules_admit_exactly_the_limit),
        cmocka_unit_test(nodes_with_leases_never_admit_more),
        cmocka_unit_test(rules_and_fleet_may_be_closed_while_questions_are_out),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
