/*
 * Makes rule sets as a service with many endpoints would have them. The first limit applies to
 * every request. One limit in ten is a glob; the others name a path, some of them with a method,
 * an exception or tiers. A request is made either for one limit, so that it matches that limit,
 * or for none.
 */
#include "bench_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Percentage of requests that are made for no limit. */
#define STRANGERS 10

static const char *const nouns[] = {"accounts", "orders", "invoices", "users", "carts", "search"};
#define NOUNS (sizeof nouns / sizeof nouns[0])

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static bool is_glob(unsigned limit)
{
    return limit % 10 == 9;
}

/*
 * Writes the path of a limit or, with other words in place of the wildcards, that of a request
 * for it.
 */
static void write_path(char *to, size_t size, unsigned i, unsigned glob, const char *star,
                       const char *two_stars)
{
    if (!is_glob(i) && i % 10 == 8) { /* matches the next limit too, if that is of kind 0 */
        (void)snprintf(to, size, "/v1/area-%u/report", i + 1);
        return;
    }
    if (!is_glob(i)) {
        (void)snprintf(to, size, "/v1/%s/action-%u", nouns[i % NOUNS], i);
        return;
    }
    switch ((i / 10 + glob) % BENCH_RULES_GLOBS) {
    case 0:
        (void)snprintf(to, size, "/v1/area-%u/%s", i, two_stars);
        break;
    case 1:
        (void)snprintf(to, size, "/v1/users/%s/item-%u", star, i);
        break;
    case 2:
        (void)snprintf(to, size, "/v1/images-%u/%s.jpg", i, star);
        break;
    case 3:
        (void)snprintf(to, size, "/%s/export-%u", two_stars, i);
        break;
    default:
        (void)snprintf(to, size, "/v1/files-%u/part-%s/raw", i, star);
        break;
    }
}

/* ---- rules ---- */

static void print_limit(FILE *out, unsigned i, unsigned glob)
{
    char path[64];
    (void)fprintf(out, "  - name: limit-%u\n    rate: 1M/s\n    max_keys: 1k\n", i);
    if (i == 0) {
        (void)fprintf(out, "    key: []\n");
        return;
    }
    write_path(path, sizeof path, i, glob, "*", "**");
    (void)fprintf(out, "    key: [%s]\n", i % 2 == 0 ? "user|ip" : "ip");
    (void)fprintf(out, "    when:\n      path: '%s'\n", path);
    if (i % 3 == 1) {
        (void)fprintf(out, "      method: [GET, POST]\n");
    }
    if (i % 7 == 3) {
        (void)fprintf(out, "    unless: {user: [admin, root]}\n");
    }
    if (i % 10 == 2) {
        (void)fprintf(out, "    tiers: {by: tier, default: free, free: {}, pro: {rate: 2M/s}}\n");
    }
}

/* Returns the text of a rule file, which the caller frees; NULL if out of memory. */
static char *print_rules(unsigned limits, unsigned glob, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    if (out == NULL) {
        return NULL;
    }
    (void)fprintf(out, "server: {memory: 4GB}\nlimits:\n");
    for (unsigned i = 0; i < limits; i++) {
        print_limit(out, i, glob);
    }
    return fclose(out) == 0 ? text : NULL;
}

/* ---- requests ---- */

static struct weir_rules_attribute attribute(const char *name, const char *at, size_t len)
{
    return (struct weir_rules_attribute){name, strlen(name), at, len};
}

/* Copies a text to *at and moves *at past it. Returns the length. */
static uint8_t put(char **at, const char *text)
{
    size_t len = strlen(text);
    memcpy(*at, text, len);
    *at += len;
    return (uint8_t)len;
}

static void write_request_path(char *to, size_t size, unsigned limits, unsigned glob,
                               uint64_t *seed)
{
    char number[16];
    char words[16];
    unsigned limit = 1 + (unsigned)(next_random(seed) % (limits - 1));
    unsigned id = (unsigned)(next_random(seed) % 100000);
    (void)snprintf(number, sizeof number, "%u", id);
    (void)snprintf(words, sizeof words, "x/%u", id);
    if (next_random(seed) % 100 < STRANGERS) {
        (void)snprintf(to, size, "/v1/%s/%u/other", nouns[id % NOUNS], id);
    } else {
        write_path(to, size, limit, glob, number, words);
    }
}

static void make_request(unsigned limits, unsigned glob, uint64_t *seed, struct bench_request *r,
                         struct bench_question *q)
{
    char path[32];
    char user[16];
    unsigned id = (unsigned)(next_random(seed) % 100000);
    write_request_path(path, sizeof path, limits, glob, seed);
    (void)snprintf(user, sizeof user, "user-%u", id % 800);
    int ip_len = snprintf(q->ip, sizeof q->ip, "10.%u.%u.7", id % 4, id % 200);
    char *at = r->texts;
    r->path_len = put(&at, path);
    r->method_len = put(&at, id % 3 == 0 ? "POST" : "GET");
    r->user_len = put(&at, user);
    r->tier_len = put(&at, id % 2 == 0 ? "free" : "pro");
    at = r->texts;
    q->attributes[0] = attribute("path", at, r->path_len);
    q->attributes[1] = attribute("method", at += r->path_len, r->method_len);
    q->attributes[2] = attribute("user", at += r->method_len, r->user_len);
    q->attributes[3] = attribute("tier", at += r->user_len, r->tier_len);
    q->attributes[4] = attribute("ip", q->ip, (size_t)ip_len);
}

/*
 * Fills in what request_read() derives, and checks that the path is in normal form already and
 * that not too many limits match.
 */
static int read_request(struct bench_world *world, const struct bench_question *from,
                        struct bench_request *r)
{
    struct request request;
    struct matches matches;
    struct weir_rules_question q = {.attributes = from->attributes,
                                    .attributes_count = BENCH_RULES_ATTRIBUTES};
    struct weir_error error;
    if (request_read(world->set, &q, &request, &error) != 0 ||
        ruleset_match(world->set, &request, &matches, &error) != 0) {
        (void)fprintf(stderr, "weir-bench: %s\n", error.text);
        return -1;
    }
    world->present = request.present;
    memcpy(r->ip, request.ip.bytes, 4);
    struct weir_text path = request.value[NUMBER_PATH];
    if (!text_equal(path, (struct weir_text){r->texts, r->path_len}) ||
        matches.enforced_count > BENCH_RULES_MATCHES) {
        (void)fprintf(stderr,
                      "weir-bench: %.*s: found another path, or more than %d matching limits\n",
                      TEXT_ARGS(path), BENCH_RULES_MATCHES);
        return -1;
    }
    return 0;
}

static int make_requests(struct bench_world *world, unsigned limits, unsigned glob)
{
    uint64_t seed = 7;
    world->requests = calloc(BENCH_RULES_REQUESTS, sizeof *world->requests);
    world->questions = calloc(BENCH_RULES_REQUESTS, sizeof *world->questions);
    if (world->requests == NULL || world->questions == NULL) {
        (void)fprintf(stderr, "weir-bench: out of memory\n");
        return -1;
    }
    for (size_t i = 0; i < BENCH_RULES_REQUESTS; i++) {
        make_request(limits, glob, &seed, &world->requests[i], &world->questions[i]);
        if (read_request(world, &world->questions[i], &world->requests[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- both ---- */

static int compile(const char *text, size_t len, struct bench_world *world,
                   struct weir_error *error)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct problems problems = {0};
    struct config config = {0};
    options.flags = WEIR_EXPLICIT_TIME;
    int e = config_read_text(&config, "bench", (struct weir_text){text, len}, &problems);
    if (e != 0) {
        config_finish(&config);
        *error = problems.first;
        return e;
    }
    e = ruleset_create(&config, NULL, NULL, NULL, &problems, &world->set, error);
    if (e == 0) {
        e = weir_rules_open_text(&world->rules, "bench", text, len, &options, error);
    }
    return e;
}

int bench_world_create(unsigned limits, unsigned glob, struct bench_world *world)
{
    struct weir_error error = {0};
    size_t len;
    char *text = print_rules(limits, glob, &len);
    *world = (struct bench_world){0};
    int e = text != NULL ? compile(text, len, world, &error) : WEIR_ENOMEM;
    free(text);
    if (e != 0) {
        (void)fprintf(stderr, "weir-bench: %s: %s\n", weir_strerror(e), error.text);
        return -1;
    }
    world->user = (unsigned)text_map_find(world->set->names, TEXT("user"));
    world->tier = (unsigned)text_map_find(world->set->names, TEXT("tier"));
    return make_requests(world, limits, glob);
}

void bench_world_destroy(struct bench_world *world)
{
    ruleset_destroy(world->set);
    weir_rules_close(world->rules);
    free(world->requests);
    free(world->questions);
}
