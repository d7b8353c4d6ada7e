/* weir-bench load: arguments. load.h explains what is measured and how. */
#include "load/load.h"

#include "base/error.h"
#include "cli/cli.h"
#include "load/load_grpc.h"

struct load_arguments {
    struct load_plan plan;
    const char *resp;
    const char *http;
    const char *grpc;
    const char *body;
    bool json;
    char address[CLIENT_ADDRESS_MAX];
};

#define TO(member) .to = offsetof(struct load_arguments, member)

static const char *const arrivals[] = {"constant", "poisson", NULL};

/* Reads a number of requests per second; 0 stands for "max". */
static int read_rate(const struct cli_value *value, void *to)
{
    uint64_t number = 0;
    int code = strcmp(value->text, "max") == 0 ? CLI_OK : cli_read_count(value, &number);
    *(double *)to = (double)number;
    return code;
}

static const struct cli_option options[] = {
    {"--resp", "ADDR:PORT",
     "a server that speaks RESP, at this address, rediss://ADDR:PORT or unix:PATH", cli_read_text,
     TO(resp)},
    {"--http", "ADDR:PORT",
     "a server that speaks HTTP/1.1, at this address, https://ADDR:PORT or unix:PATH",
     cli_read_text, TO(http)},
    {"--grpc", "ADDR:PORT", "a server that speaks gRPC without TLS, at this address or unix:PATH",
     cli_read_text, TO(grpc)},
    {"--rate", "N|max", "requests per second; max: as fast as replies come; default 1000",
     read_rate, TO(plan.rate), 1, 100000000},
    {"--arrivals", "HOW", "when requests are sent: constant or poisson; default constant",
     cli_read_choice, TO(plan.arrivals), .choices = arrivals},
    {"--connections", "N", "connections of all threads, 1 to 20000; default 50", cli_read_unsigned,
     TO(plan.connections), 1, LOAD_CONNECTIONS_MAX},
    {"--depth", "N", "requests in flight on each connection, 1 to 4096; default 1",
     cli_read_unsigned, TO(plan.depth), 1, LOAD_DEPTH_MAX},
    {"--threads", "N", "threads that make requests, 1 to 16; default 1", cli_read_unsigned,
     TO(plan.threads), 1, LOAD_THREADS_MAX},
    {"--keys", "N", "different keys, up to 100M; default 1M", cli_read_count, TO(plan.keys), 1,
     LOAD_KEYS_MAX},
    {"--order", "HOW", "order of the keys: uniform, zipf or sequential; default uniform",
     cli_read_choice, TO(plan.order), .choices = load_order_names},
    {"--duration", "TIME", "how long requests are made and counted; default 10s", cli_read_duration,
     TO(plan.duration_ns), 1, WEIR_DAY},
    {"--warmup", "TIME", "time before that, in which requests are not counted; default 0s",
     cli_read_duration, TO(plan.warmup_ns), 0, WEIR_DAY},
    {"--requests", "N", "end after this many requests, or after --duration if that is given too",
     cli_read_count, TO(plan.requests), 1, UINT64_C(1000000000000)},
    {"--body", "TEXT", "body of an HTTP request; of a gRPC call, its message in hexadecimal digits",
     cli_read_text, TO(body)},
    {"--within", "TIME", "also count the replies that came within this time; default 100ms",
     cli_read_duration, TO(plan.within_ns), 0, WEIR_DAY},
    {"--seed", "N", "seed of random keys and arrivals; default 1", cli_read_count, TO(plan.seed), 0,
     UINT32_MAX},
    {"--spin", NULL, "never sleep; needs a processor that nothing else uses", cli_read_switch,
     TO(plan.spin)},
    CLIENT_TLS_ROWS(struct load_arguments, plan.tls),
    {"--json", NULL, "print one JSON object instead of a table", cli_read_switch, TO(json)},
};

/* The request if no words are given. */
static const char *const default_resp[] = {"CL.THROTTLE", "{key}", "99", "1000", "60"};
static const char *const default_http[] = {"GET",
                                           "/v1/auth",
                                           "X-Original-Method: GET",
                                           "X-Original-URI: /search",
                                           "X-Forwarded-For: 192.0.2.7",
                                           "X-User-Id: {key}"};

/* CL.THROTTLE over gRPC: key, burst 99, 1000 in 60,000 ms. */
static const char *const default_grpc[] = {"/weir.v1.Limiter/Throttle"};
#define DEFAULT_GRPC_MESSAGE "1210{key}686370e80778e0d403"

#define WORDS(list) list, sizeof(list) / sizeof(list)[0]
static const struct {
    const char *const *words;
    unsigned count;
    const char *body;
} default_requests[] = {
    [LOAD_RESP] = {WORDS(default_resp), NULL},
    [LOAD_HTTP] = {WORDS(default_http), NULL},
    [LOAD_GRPC] = {WORDS(default_grpc), DEFAULT_GRPC_MESSAGE},
};

/* Finds the server among the options of the protocols. Returns NULL unless there is exactly one. */
static const char *find_server(struct load_arguments *asked)
{
    const char *const given[] = {
        [LOAD_RESP] = asked->resp, [LOAD_HTTP] = asked->http, [LOAD_GRPC] = asked->grpc};
    const char *found = NULL;
    for (unsigned wire = 0; wire < sizeof given / sizeof given[0]; wire++) {
        if (given[wire] != NULL && found != NULL) {
            return NULL;
        }
        if (given[wire] != NULL) {
            found = given[wire];
            asked->plan.wire = (enum load_wire)wire;
        }
    }
    return found;
}

static int check(struct load_arguments *asked)
{
    struct load_plan *p = &asked->plan;
    const char *server = find_server(asked);
    if (server == NULL) {
        bool any = asked->resp != NULL || asked->http != NULL || asked->grpc != NULL;
        return cli_complain(&bench_load_command,
                            "found %s server, expected one: --resp ADDR:PORT, --http ADDR:PORT or "
                            "--grpc ADDR:PORT",
                            any ? "more than one" : "no");
    }
    if (p->threads > p->connections) {
        return cli_complain(
            &bench_load_command,
            "found %u threads and %u connections, expected at least one connection for each thread",
            p->threads, p->connections);
    }
    p->address = asked->address;
    if (p->duration_ns == 0) {
        p->duration_ns = p->requests > 0 ? UINT64_MAX : 10 * WEIR_SECOND;
    }
    if (p->wire == LOAD_GRPC && strstr(server, "s://") != NULL) { /* https, rediss */
        return cli_complain(&bench_load_command, "found '%s', expected an address without TLS",
                            server);
    }
    return client_tls_open(&p->tls, &bench_load_command, server, asked->address);
}

/* Makes the request from the words, or from the default ones if there are none. */
static int make_request(struct load_arguments *asked, const struct cli_given *given,
                        struct weir_error *error)
{
    struct load_plan *p = &asked->plan;
    const char *const *words = (const char *const *)given->operands;
    unsigned count = (unsigned)given->count;
    const char *body = asked->body;
    if (count == 0) {
        words = default_requests[p->wire].words;
        count = default_requests[p->wire].count;
        body = body != NULL ? body : default_requests[p->wire].body;
    }
    int e = load_request_make(&p->request, p->wire, words, count, body, error);
    if (e == 0 && p->wire == LOAD_GRPC && p->depth * p->request.len > LOAD_GRPC_IN_FLIGHT_BYTES) {
        e = fail(error, WEIR_EINVAL,
                 "found %u calls of %zu bytes, expected at most %d bytes in flight", p->depth,
                 p->request.len, LOAD_GRPC_IN_FLIGHT_BYTES);
        load_request_finish(&p->request);
    }
    return e;
}

static int load(struct load_arguments *asked, const struct cli_given *given)
{
    static struct load_result result; /* too large for the stack */
    struct load_plan *p = &asked->plan;
    struct weir_error error;
    int e = make_request(asked, given, &error);
    if (e == 0) {
        e = load_run(p, &result, &error);
        load_request_finish(&p->request);
    }
    bool counted = load_replies(&result) > 0;
    if (e != 0) {
        (void)cli_complain(&bench_load_command, "%s%s", error.text,
                           counted ? "; the counts are those until then" : "");
    }
    if (e == 0 || counted) {
        (asked->json ? load_print_json : load_print_table)(p, &result);
    }
    return e == 0 ? CLI_OK : e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
}

static int run(const struct cli_given *given, void *settings)
{
    int code = check(settings);
    return code == CLI_OK ? load(settings, given) : code;
}

static const struct load_arguments defaults = {.plan = {.connections = 50,
                                                        .depth = 1,
                                                        .threads = 1,
                                                        .rate = 1000,
                                                        .keys = 1000000,
                                                        .within_ns = 100 * WEIR_MILLISECOND,
                                                        .seed = 1}};

const struct cli_command bench_load_command = CLI_COMMAND(
    "load", "[WORD...]", "send requests on a schedule and measure how long replies take", options,
    defaults, run);
