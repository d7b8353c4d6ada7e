/* The shared decision vectors, through RESP: what the oracle says, in milliseconds rounded up; from
 * limits in this process, and from limits in a Redis. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/server/server_store.h"
#include "support/server/server_vectors.h"

static void send_one(void *arg, const struct oracle_vector *v, size_t i, const char *limit)
{
    const struct oracle_op *op = &v->trace.ops[i];
    const struct oracle_expected *e = &v->expected[i];
    char words[256];
    char retry[32] = "-1";
    char expected[256];
    (void)snprintf(words, sizeof words, "WEIR.%s %s %s COST %" PRIu64 " MAXWAIT %" PRIu64,
                   op->verb == ORACLE_PEEK ? "PEEK" : "CHECK", limit, v->keys[op->key], op->cost,
                   op->wait_ns / WEIR_MILLISECOND);
    if (e->verdict != WEIR_NEVER) {
        (void)snprintf(retry, sizeof retry, "%" PRIu64, server_vector_ms(v, e->retry));
    }
    (void)snprintf(expected, sizeof expected,
                   "['%s' '%s' %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIu64 " '' 'limit']",
                   server_vector_verdicts[e->verdict], limit, v->trace.rule.quota, e->remaining,
                   retry, server_vector_ms(v, e->reset), server_vector_ms(v, e->delay));
    const char *heard = server_ask(arg, words);
    if (strcmp(heard, expected) != 0) {
        fail_msg("%s, call %zu: %s\n  got      %s\n  expected %s", limit, i + 1, words, heard,
                 expected);
    }
}

static void send_all(struct server_store *store)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    o.adhoc_keys = 0;
    server_world_start_shared(&w, "limits: [{name: v, key: [user], rate: 1/s}]", &o, store);
    server_connect(&c, w.address);
    server_vectors_send(&w, send_one, &c);
    assert_memory_equal(server_ask(&c, "CL.THROTTLE k 4 6 60"), "-NOLIMIT", 8);
    server_disconnect(&c);
    server_world_stop(&w);
}

static void the_vectors_hold_on_the_wire(void **state)
{
    send_all(NULL);
}

static void and_if_a_redis_decides(void **state)
{
    struct server_store store;
    server_store_start(&store);
    send_all(&store);
    server_store_stop(&store, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_hold_on_the_wire),
        cmocka_unit_test(and_if_a_redis_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
