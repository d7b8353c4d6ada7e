#include "support/store/store_run.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

void store_run_load(struct store_redis *r, const struct scripts *s)
{
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        script_put_load(&r->out, &s->row[i]);
        store_redis_send(r);
        (void)store_redis_next(r);
    }
}

void store_run_clock(struct store_redis *r, uint64_t now_ns)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRIu64, now_ns / WEIR_MICROSECOND);
    store_redis_put(r, "SET", "now", digits, NULL);
}

void store_run_call(const struct store_params *params, const char *name, const struct oracle_op *op,
                    struct store_call *call)
{
    static const unsigned verbs[] = {
        [ORACLE_CHECK] = REMOTE_CHECK,       [ORACLE_PEEK] = REMOTE_PEEK,
        [ORACLE_UP_TO] = REMOTE_UP_TO,       [ORACLE_REFUND] = REMOTE_REFUND,
        [ORACLE_PENALIZE] = REMOTE_PENALIZE,
    };
    struct store_key head;
    assert_int_equal(store_key_head(TEXT("t"), TEXT("limit"), params, &head, NULL), 0);
    store_key(&head, (struct weir_text){NULL, 0}, text_of(name), &call->key);
    call->verb = verbs[op->verb];
    call->part = (struct store_part){
        .params = params,
        .key = store_key_text(&call->key),
        .cost = op->cost,
        .time_ns = op->verb == ORACLE_REFUND ? op->charged_ns : op->wait_ns,
    };
}

void store_run_put(struct store_redis *r, const struct script *script,
                   const struct store_call *call, uint64_t now_ns)
{
    store_run_clock(r, now_ns);
    script_put_call(&r->out, script, SCRIPT_BY_SHA, call->verb, &call->part, 1);
}

void store_run_answer(struct store_redis *r, const struct store_call *call, struct weir_answer *a)
{
    assert_int_equal(store_redis_next(r)->type, '+'); /* OK from setting the clock */
    const struct store_reply *reply = store_redis_next(r);
    if (script_answer(reply, &call->part, 1, a, NULL) != 0) {
        fail_msg("not an answer, but %.*s", TEXT_ARGS(reply->whole));
    }
}

const char *store_run_difference(const struct weir_answer *local, const struct weir_answer *store)
{
    struct oracle_expected a = oracle_expect(local, ORACLE_US);
    struct oracle_expected b = oracle_expect(store, ORACLE_US);
    bool endless = local->reset_after_ns == WEIR_FOREVER; /* rounding it up overflows */
    return a.verdict != b.verdict             ? "verdict"
           : a.remaining != b.remaining       ? "remaining"
           : a.retry != b.retry               ? "retry"
           : a.reset != b.reset && !endless   ? "reset"
           : a.delay != b.delay               ? "delay"
           : local->flags != store->flags     ? "flags"
           : local->quota != store->quota     ? "quota"
           : local->granted != store->granted ? "granted"
           : local->limit != store->limit     ? "limit"
                                              : NULL;
}

static void print(const char *who, const struct weir_answer *a)
{
    (void)fprintf(stderr,
                  "%s: verdict %d flags %u remaining %" PRIu64 " granted %" PRIu64 " retry %" PRIu64
                  " reset %" PRIu64 " delay %" PRIu64 " limit %" PRIu32 "\n",
                  who, a->verdict, a->flags, a->remaining, a->granted, a->retry_after_ns,
                  a->reset_after_ns, a->delay_ns, a->limit);
}

void store_run_print(const struct weir_answer *local, const struct weir_answer *store)
{
    print("local", local);
    print("store", store);
}
