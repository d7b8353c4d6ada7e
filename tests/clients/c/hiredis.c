/* hiredis as a driver (see ../README.md): hiredis PORT RESP SECRET */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 32

static redisContext *context;
static const char *resp, *secret;

static void put_text(const char *text, size_t len)
{
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            putchar('\\');
        }
        putchar(text[i]);
    }
    putchar('"');
}

static void put_error(const char *text)
{
    printf("{\"error\":");
    put_text(text, strlen(text));
    putchar('}');
}

static void put(const redisReply *reply)
{
    if (reply == NULL) {
        put_error(context->errstr);
        return;
    }
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        printf("%lld", reply->integer);
        break;
    case REDIS_REPLY_ERROR:
        put_error(reply->str);
        break;
    case REDIS_REPLY_ARRAY:
        putchar('[');
        for (size_t i = 0; i < reply->elements; i++) {
            printf(i > 0 ? "," : "");
            put(reply->element[i]);
        }
        putchar(']');
        break;
#ifdef REDIS_REPLY_MAP
    case REDIS_REPLY_MAP: /* elements are names and values in turn */
        putchar('{');
        for (size_t i = 0; i < reply->elements; i += 2) {
            printf(i > 0 ? "," : "");
            put(reply->element[i]);
            putchar(':');
            put(reply->element[i + 1]);
        }
        putchar('}');
        break;
#endif
    case REDIS_REPLY_NIL:
        printf("null");
        break;
    default:
        put_text(reply->str, reply->len);
    }
}

/* Splits a command at its tabs; returns the number of words. */
static int split(char *text, const char **words)
{
    int n = 0;
    for (char *word = strtok(text, "\t"); word != NULL && n < WORDS_MAX;
         word = strtok(NULL, "\t")) {
        words[n++] = word;
    }
    return n;
}

static redisReply *ask(int argc, const char **words)
{
    return redisCommandArgv(context, argc, words, NULL);
}

/* hiredis does neither by itself. */
static void greet(void)
{
    redisReply *reply = NULL;
    if (strcmp(resp, "3") == 0) {
        const char *words[] = {"HELLO", "3", "AUTH", "default", secret};
        reply = ask(secret[0] != 0 ? 5 : 2, words);
    } else if (secret[0] != 0) {
        const char *words[] = {"AUTH", secret};
        reply = ask(2, words);
    }
    if (context->err != 0 || (reply != NULL && reply->type == REDIS_REPLY_ERROR)) {
        fprintf(stderr, "%s\n", context->err != 0 ? context->errstr : reply->str);
        exit(1);
    }
    freeReplyObject(reply);
}

static void put_and_free(redisReply *reply)
{
    put(reply);
    if (reply != NULL) {
        freeReplyObject(reply);
    }
}

/* Sends all commands, then reads their replies; of a transaction only that of EXEC counts. */
static void many(char *line, int transaction)
{
    static const char *multi[] = {"MULTI"}, *exec[] = {"EXEC"};
    const char *words[WORDS_MAX];
    void *reply = NULL;
    int n = 0;
    if (transaction) {
        redisAppendCommandArgv(context, 1, multi, NULL);
    }
    for (char *next = line; next != NULL; n++) {
        char *at = next;
        next = strstr(at, "\t;\t");
        if (next != NULL) {
            *next = 0;
            next += 3;
        }
        redisAppendCommandArgv(context, split(at, words), words, NULL);
    }
    if (transaction) {
        redisAppendCommandArgv(context, 1, exec, NULL);
        for (; n >= 0; n--) {
            redisGetReply(context, &reply);
            freeReplyObject(reply);
        }
        redisGetReply(context, &reply);
        put_and_free(reply);
        return;
    }
    for (int i = 0; i < n; i++) {
        putchar(i > 0 ? ',' : '[');
        redisGetReply(context, &reply);
        put_and_free(reply);
    }
    putchar(']');
}

int main(int argc, char **argv)
{
    static char line[1 << 20];
    const char *words[WORDS_MAX];
    if (argc != 4) {
        return 2;
    }
    resp = argv[2];
    secret = argv[3];
    context = redisConnect("127.0.0.1", atoi(argv[1]));
    greet();
    printf("hiredis %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *verb = line, *rest = strchr(line, '\t');
        line[strcspn(line, "\n")] = 0;
        *rest++ = 0;
        if (context->err != 0 && redisReconnect(context) == REDIS_OK) {
            greet();
        }
        if (strcmp(verb, "ask") == 0) {
            put_and_free(ask(split(rest, words), words));
        } else {
            many(rest, strcmp(verb, "multi") == 0);
        }
        putchar('\n');
        fflush(stdout);
    }
    redisFree(context);
    return 0;
}
