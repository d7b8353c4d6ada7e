/*
 * Instead of the fake's keys and commands, those of a real redis-server: scripts run here, in the
 * Lua that this is linked with, and every command that they call, and every other request, goes to
 * the server. So the tests of scripts run in Lua 5.4 with what a Redis replies.
 */
#include <stdlib.h>

#include "simulate/fake_inside.h"
#include "wire/resp.h"

/* The support library's functions for a redis-server, under names of their own: the tests
 * get those of store_redis_fake.c. */
#define store_redis_start server_start
#define store_redis_stop server_stop
#define store_redis_put server_put
#define store_redis_send server_send
#define store_redis_next server_next
#include "support/store/store_redis.c"

static struct store_redis server;

void fake_command(struct fake_redis *r, const struct weir_text *argv, size_t argc, struct buffer *b)
{
    resp_put_array(&server.out, argc);
    for (size_t i = 0; i < argc; i++) {
        resp_put_bulk(&server.out, argv[i]);
    }
    server_send(&server);
    buffer_put(b, server_next(&server)->whole);
}

void fake_redis_request(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                        struct buffer *reply)
{
    if (text_is_word(argv[0], "EVAL") || text_is_word(argv[0], "EVALSHA")) {
        fake_eval(r, argv, argc, reply);
    } else if (text_is_word(argv[0], "SCRIPT")) {
        fake_script(r, argv, argc, reply);
    } else {
        fake_command(r, argv, argc, reply);
    }
}

struct fake_redis *fake_redis_create(void)
{
    struct fake_redis *r = calloc(1, sizeof *r);
    if (r == NULL) {
        abort();
    }
    server_start(&server, NULL);
    buffer_init(&r->scratch, (size_t)64 << 20);
    fake_lua_start(r);
    return r;
}

void fake_redis_destroy(struct fake_redis *r)
{
    fake_lua_stop(r);
    buffer_finish(&r->scratch);
    free(r);
    server_stop(&server);
}

void fake_redis_set_time(struct fake_redis *r, uint64_t now_us)
{
}
