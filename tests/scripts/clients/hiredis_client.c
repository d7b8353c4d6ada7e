/* Asks `weir serve` through hiredis: a transaction in a pipeline, its errors, EVAL and DEL. Built
 * and started by redis_clients.sh, with the port and the operators' secret as its arguments. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define require(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static redisReply *next(redisContext *c)
{
    void *reply = NULL;
    require(redisGetReply(c, &reply) == REDIS_OK && reply != NULL);
    return reply;
}

static void expect_text(redisContext *c, int type, const char *text)
{
    redisReply *r = next(c);
    require(r->type == type && strncmp(r->str, text, strlen(text)) == 0);
    freeReplyObject(r);
}

static void expect_throttle(const redisReply *r, long long limited, long long remaining)
{
    require(r->type == REDIS_REPLY_ARRAY && r->elements == 5);
    require(r->element[0]->integer == limited && r->element[2]->integer == remaining);
}

static void transaction(redisContext *c)
{
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "CL.THROTTLE %b 1 1 60", "h\0\r\n", (size_t)4);
    redisAppendCommand(c, "CL.THROTTLE %b 1 1 60 2", "h\0\r\n", (size_t)4);
    redisAppendCommand(c, "SELECT 9");
    redisAppendCommand(c, "EXEC");
    expect_text(c, REDIS_REPLY_STATUS, "OK");
    for (int i = 0; i < 3; i++) {
        expect_text(c, REDIS_REPLY_STATUS, "QUEUED");
    }
    redisReply *r = next(c);
    require(r->type == REDIS_REPLY_ARRAY && r->elements == 3);
    expect_throttle(r->element[0], 0, 1);
    expect_throttle(r->element[1], 1, 1);
    require(r->element[2]->type == REDIS_REPLY_ERROR);
    freeReplyObject(r);
}

static void aborted_transaction(redisContext *c)
{
    redisAppendCommand(c, "MULTI");
    redisAppendCommand(c, "CL.THROTTLE g 1 1 60");
    redisAppendCommand(c, "CL.THROTTLE g 1");
    redisAppendCommand(c, "EXEC");
    redisAppendCommand(c, "DEL g");
    expect_text(c, REDIS_REPLY_STATUS, "OK");
    expect_text(c, REDIS_REPLY_STATUS, "QUEUED");
    expect_text(c, REDIS_REPLY_ERROR, "ERR wrong number of arguments for 'cl.throttle' command");
    expect_text(c, REDIS_REPLY_ERROR, "EXECABORT ");
    redisReply *r = next(c);
    require(r->type == REDIS_REPLY_INTEGER && r->integer == 0); /* nothing was charged */
    freeReplyObject(r);
}

static void script(redisContext *c)
{
    redisReply *r =
        redisCommand(c, "EVAL %s 1 %s 1 1 60",
                     "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], 1, ARGV[3])", "f");
    require(r != NULL);
    expect_throttle(r, 0, 1);
    freeReplyObject(r);
    r = redisCommand(c, "EVALSHA abc 1 f");
    require(r != NULL && r->type == REDIS_REPLY_ERROR && strncmp(r->str, "NOSCRIPT ", 9) == 0);
    freeReplyObject(r);
}

int main(int argc, char **argv)
{
    struct timeval patience = {.tv_sec = 30};
    require(argc == 3);
    redisContext *c = redisConnectWithTimeout("127.0.0.1", atoi(argv[1]), patience);
    require(c != NULL && c->err == 0 && redisSetTimeout(c, patience) == REDIS_OK);
    redisReply *r = redisCommand(c, "AUTH %s", argv[2]); /* for DEL */
    require(r != NULL && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);
    transaction(c);
    aborted_transaction(c);
    script(c);
    redisFree(c);
    return 0;
}
