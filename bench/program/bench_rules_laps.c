/* The operations that `weir-bench rules` measures. Each consumes its whole result. */
#include "bench_rules.h"

/* Builds a request as request_read() leaves it, with its bytes in the caches. */
static void bring(const struct bench_world *world, const struct bench_request *from,
                  struct request *to)
{
    const char *at = from->texts;
    to->present = world->present;
    to->ip = (struct address){.family = 4};
    memcpy(to->ip.bytes, from->ip, 4);
    to->value[NUMBER_IP] = (struct weir_text){(const char *)to->ip.bytes, 4};
    to->value[NUMBER_PATH] = (struct weir_text){at, from->path_len};
    at += from->path_len;
    to->value[NUMBER_METHOD] = (struct weir_text){at, from->method_len};
    at += from->method_len;
    to->value[world->user] = (struct weir_text){at, from->user_len};
    at += from->user_len;
    to->value[world->tier] = (struct weir_text){at, from->tier_len};
}

uint64_t bench_match(struct bench_world *world, uint64_t n)
{
    struct request request;
    struct matches matches;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        bring(world, &world->requests[i % BENCH_RULES_REQUESTS], &request);
        if (ruleset_match(world->set, &request, &matches, NULL) != 0) {
            return 0;
        }
        sum += matches.enforced_count;
    }
    return sum;
}

static struct weir_rules_question question_number(const struct bench_world *world, uint64_t i)
{
    return (struct weir_rules_question){.attributes =
                                            world->questions[i % BENCH_RULES_REQUESTS].attributes,
                                        .attributes_count = BENCH_RULES_ATTRIBUTES};
}

uint64_t bench_read(struct bench_world *world, uint64_t n)
{
    struct request request;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct weir_rules_question q = question_number(world, i);
        if (request_read(world->set, &q, &request, NULL) != 0) {
            return 0;
        }
        sum += request.present;
    }
    return sum;
}

uint64_t bench_ask(struct bench_world *world, uint64_t n)
{
    struct weir_rules_answer answer;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct weir_rules_question q = question_number(world, i);
        world->now_ns += 10 * WEIR_MICROSECOND; /* slower than every limit's rate */
        if (weir_rules_ask_at(world->rules, &q, world->now_ns, &answer, NULL) != 0 ||
            answer.answer.verdict != WEIR_ALLOW) {
            return 0;
        }
        sum += answer.applied;
    }
    return sum;
}

uint64_t bench_normalise(struct bench_world *world, uint64_t n)
{
    char path[PATH_BYTES_MAX];
    uint64_t sum = 0;
    size_t len;
    for (uint64_t i = 0; i < n; i++) {
        const struct bench_request *r = &world->requests[i % BENCH_RULES_REQUESTS];
        if (path_normalise((struct weir_text){r->texts, r->path_len}, path, &len, NULL) != 0) {
            return 0;
        }
        sum += len;
    }
    return sum;
}

uint64_t bench_normalise_odd(struct bench_world *world, uint64_t n)
{
    static const struct weir_text odd[] = {
        TEXT("/v1//accounts/%61ction-17"),
        TEXT("/v1/x/../accounts/./action-17?page=2"),
        TEXT("http://example.com/v1/accounts;v=1/action-17/"),
        TEXT("/v1/caf%C3%A9/action%2D17"),
    };
    char path[PATH_BYTES_MAX];
    uint64_t sum = 0;
    size_t len;
    (void)world;
    for (uint64_t i = 0; i < n; i++) {
        if (path_normalise(odd[i % (sizeof odd / sizeof odd[0])], path, &len, NULL) != 0) {
            return 0;
        }
        sum += len;
    }
    return sum;
}
