/*
 * Replaces the redis-server of the script tests (support/store/store_redis.h) by the fake. It is
 * linked before the support library, whose own version is then not used. So those tests show
 * whether the fake is faithful.
 */
#include "support/store/store_redis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulate/fake_redis.h"
#include "wire/resp.h"

static struct fake_redis *fake;

void store_redis_start(struct store_redis *r, const char *const *extra)
{
    *r = (struct store_redis){.fd = -1};
    buffer_init(&r->out, (size_t)64 << 20);
    buffer_init(&r->in, (size_t)64 << 20);
    fake = fake_redis_create();
    fake_redis_set_time(fake, UINT64_C(1800000000000000));
}

void store_redis_stop(struct store_redis *r)
{
    fake_redis_destroy(fake);
    buffer_finish(&r->out);
    buffer_finish(&r->in);
}

void store_redis_put(struct store_redis *r, ...)
{
    const char *args[RESP_ARGS_MAX];
    size_t n = 0;
    va_list list;
    va_start(list, r);
    while (n < RESP_ARGS_MAX && (args[n] = va_arg(list, const char *)) != NULL) {
        n++;
    }
    va_end(list);
    resp_put_array(&r->out, n);
    for (size_t i = 0; i < n; i++) {
        resp_put_bulk(&r->out, text_of(args[i]));
    }
}

void store_redis_send(struct store_redis *r)
{
    static const struct resp_limits limits = {
        .args_max = RESP_ARGS_MAX, .bulk_max = (size_t)1 << 20, .request_max = (size_t)2 << 20};
    static struct resp_request request;
    const char *complaint;
    while (buffer_len(&r->out) > 0) {
        if (resp_parse(buffer_text(&r->out), &limits, &request, &complaint) != RESP_REQUEST) {
            (void)fprintf(stderr, "the fake cannot read its request\n");
            exit(1);
        }
        fake_redis_request(fake, request.argv, request.argc, &r->in);
        buffer_take(&r->out, request.used);
    }
}

const struct store_reply *store_redis_next(struct store_redis *r)
{
    buffer_take(&r->in, r->used);
    if (store_reply_read(buffer_text(&r->in), &r->reply) != STORE_REPLY) {
        (void)fprintf(stderr, "the fake has not replied, or wrongly\n");
        exit(1);
    }
    r->used = r->reply.whole.len;
    return &r->reply;
}
