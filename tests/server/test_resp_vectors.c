/* The shared decision vectors, through RESP: what the oracle says, in milliseconds rounded up. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/oracle_vector.h"
#include "support/server_client.h"
#include "support/threads_run.h"

static const char *const names[] = {"allow", "deny", "never"};

/* Rules know neither debt nor offsets, and MAXWAIT is in milliseconds. */
static bool can_be_sent(const struct oracle_vector *v)
{
    const struct oracle_rule *r = &v->trace.rule;
    bool good = !v->stepped && r->offset_ns == 0;
    for (size_t i = 0; i < v->trace.n; i++) {
        const struct oracle_op *op = &v->trace.ops[i];
        good = good && (op->verb == ORACLE_CHECK || op->verb == ORACLE_PEEK) && op->cost > 0 &&
               op->wait_ns % WEIR_MILLISECOND == 0;
    }
    return good;
}

static void load(struct server_world *w, const struct oracle_rule *r, unsigned number)
{
    char text[512];
    struct weir_error error;
    char more[64] = "";
    if (r->algorithm == WEIR_TOKEN_BUCKET) {
        (void)snprintf(more, sizeof more, ", burst: %" PRIu64, r->burst);
    } else if (r->algorithm == WEIR_LEAKY_BUCKET) {
        (void)snprintf(more, sizeof more, ", queue: %" PRIu64, r->queue);
    }
    int n = snprintf(text, sizeof text,
                     "limits: [{name: v%u, key: [user], algorithm: %s, rate: %" PRIu64 "/%" PRIu64
                     "ns%s, max_keys: 1k}]",
                     number, weir_algorithm_name(r->algorithm), r->count, r->period_ns, more);
    if (weir_rules_reload_text(w->server.rules, "v", text, (size_t)n, &error) != 0) {
        fail_msg("%s: %s", text, error.text);
    }
}

static uint64_t to_ms(uint64_t time, const struct oracle_vector *v)
{
    uint64_t per_ms = WEIR_MILLISECOND / v->unit;
    return (time + per_ms - 1) / per_ms;
}

static void send_one(struct server_world *w, struct server_client *c, const struct oracle_vector *v,
                     size_t i, unsigned number)
{
    const struct oracle_op *op = &v->trace.ops[i];
    const struct oracle_expected *e = &v->expected[i];
    char words[256];
    char retry[32] = "-1";
    char expected[256];
    char limit[16];
    (void)snprintf(limit, sizeof limit, "v%u", number);
    (void)snprintf(words, sizeof words, "WEIR.%s %s %s COST %" PRIu64 " MAXWAIT %" PRIu64,
                   op->verb == ORACLE_PEEK ? "PEEK" : "CHECK", limit, v->keys[op->key], op->cost,
                   op->wait_ns / WEIR_MILLISECOND);
    if (e->verdict != WEIR_NEVER) {
        (void)snprintf(retry, sizeof retry, "%" PRIu64, to_ms(e->retry, v));
    }
    (void)snprintf(expected, sizeof expected,
                   "['%s' '%s' %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIu64 " '']",
                   names[e->verdict], limit, v->trace.rule.quota, e->remaining, retry,
                   to_ms(e->reset, v), to_ms(e->delay, v));
    threads_set(&w->now_ns, op->time_ns);
    const char *heard = server_ask(c, words);
    if (strcmp(heard, expected) != 0) {
        fail_msg("section %u, call %zu: %s\n  got      %s\n  expected %s", number, i + 1, words,
                 heard, expected);
    }
}

/* How many calls were sent. */
static size_t send_file(struct server_world *w, struct server_client *c, const char *name,
                        unsigned *number)
{
    char path[4096];
    size_t sent = 0;
    struct oracle_vector v;
    (void)snprintf(path, sizeof path, "%s/tests/vectors/%s.vec", WEIR_SOURCE_DIR, name);
    struct oracle_reader reader = {.in = fopen(path, "r")};
    assert_non_null(reader.in);
    for (int got; (got = oracle_vector_read(&reader, &v)) != 0; oracle_vector_finish(&v)) {
        assert_int_equal(got, 1);
        if (!can_be_sent(&v)) {
            continue;
        }
        threads_set(&w->now_ns, 0); /* where its time line begins */
        load(w, &v.trace.rule, ++*number);
        for (size_t i = 0; i < v.trace.n; i++, sent++) {
            send_one(w, c, &v, i, *number);
        }
    }
    (void)fclose(reader.in);
    return sent;
}

static void the_vectors_hold_on_the_wire(void **state)
{
    static const char *const files[] = {"token_bucket", "leaky_bucket", "fixed_window",
                                        "sliding_window", "sliding_log"};
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    unsigned number = 0;
    o.adhoc_keys = 0;
    server_world_start(&w, "limits: [{name: v, key: [user], rate: 1/s}]", &o);
    server_connect(&c, w.address);
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t sent = send_file(&w, &c, files[i], &number);
        print_message("%s: %zu calls\n", files[i], sent);
        assert_true(sent > 100);
    }
    assert_memory_equal(server_ask(&c, "CL.THROTTLE k 4 6 60"), "-NOLIMIT", 8);
    server_disconnect(&c);
    server_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_hold_on_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
