/*
 * The subjects that decide: a limiter of one algorithm, or a rule file. The simulation supplies
 * the time.
 */
#include <stdio.h>
#include <string.h>

#include "base/algorithms.h"
#include "base/error.h"
#include "base/maths.h"
#include "cli/cli.h"
#include "cli/replay/replay_trace.h"
#include "cli/simulate/simulate.h"

/* Returns the number of subjects. Their indexes count the algorithms first, then the rule files. */
size_t sim_subjects(const struct sim_plan *plan)
{
    return plan->algorithms_count + plan->rules_count;
}

/* Returns the highest cost of a request, at least 1. */
static uint64_t highest_cost(const struct sim_traffic *traffic)
{
    uint64_t highest = 1;
    for (size_t i = 0; traffic->costs && i < traffic->count; i++) {
        highest = max_u64(highest, traffic->requests[i].cost);
    }
    return highest;
}

uint64_t sim_bound(const struct sim_plan *plan, size_t index, const struct sim_traffic *traffic)
{
    uint64_t count = plan->rate.count;
    switch (index < plan->algorithms_count ? plan->algorithms[index] : 0) {
    case WEIR_TOKEN_BUCKET:
        return add_sat(plan->burst != 0 ? plan->burst : count, count);
    case WEIR_LEAKY_BUCKET: /* the last release of a period has its whole cost in it */
        return add_sat(add_sat(count, plan->undelayed), highest_cost(traffic) - 1);
    case WEIR_FIXED_WINDOW:
        return add_sat(count, count);
    case WEIR_SLIDING_WINDOW:
        return add_sat(count, count - 1);
    case WEIR_SLIDING_LOG:
        return count;
    default:
        return UINT64_MAX;
    }
}

static int open_limiter(struct sim_subject *s, int algorithm, uint32_t clients,
                        struct weir_error *error)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    uint64_t bytes;
    o.algorithm = algorithm;
    o.count = s->plan->rate.count;
    o.period_ns = s->plan->rate.period_ns;
    o.burst = algorithm_has(algorithm, HAS_BURST) ? s->plan->burst : 0;
    o.max_keys = clients;
    o.max_debt = WEIR_NO_DEBT;
    o.flags = WEIR_EXPLICIT_TIME;
    if (algorithm_has(algorithm, HAS_QUEUE)) { /* by default, as many at once as the others admit */
        o.queue = s->plan->queue_given ? s->plan->queue : s->plan->rate.count - 1;
        o.undelayed = s->plan->undelayed;
    }
    int e = weir_size(&o, &bytes, error);
    if (e == 0 && bytes > SIM_BYTES_MAX) {
        e = fail(error, WEIR_EQUOTA,
                 "found a size of %llu MiB for %u clients, expected at most 1024",
                 (unsigned long long)(bytes >> 20), clients);
    }
    return e != 0 ? e : weir_open(&s->limiter, &o, error);
}

/* Shows errors only: rules are opened again for each run, which would repeat their warnings. */
static void tell_error(void *arg, const struct weir_rules_message *message)
{
    if (message->severity == WEIR_RULES_ERROR) {
        cli_tell_rules(arg, message);
    }
}

static int open_rules(struct sim_subject *s, const char *path, struct weir_error *error)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    o.flags = WEIR_EXPLICIT_TIME;
    o.message = tell_error;
    int e = weir_rules_open(&s->rules, path, &o, error);
    return e != WEIR_ERULES
               ? e
               : fail(error, e, "%s: found errors in the rules, which are printed above", path);
}

int sim_subject_open(struct sim_subject *subject, const struct sim_plan *plan, size_t index,
                     uint32_t clients, struct weir_error *error)
{
    *subject = (struct sim_subject){.plan = plan};
    if (index < plan->algorithms_count) {
        subject->name = weir_algorithm_name(plan->algorithms[index]);
        return open_limiter(subject, plan->algorithms[index], clients, error);
    }
    subject->name = plan->rules[index - plan->algorithms_count];
    return open_rules(subject, subject->name, error);
}

void sim_subject_close(struct sim_subject *subject)
{
    weir_close(subject->limiter);
    weir_rules_close(subject->rules);
}

/*
 * The identity of a simulated client. Client 258 is user u258 at 198.18.1.2, in the network that
 * is reserved for benchmark tests; clients of a trace that do not fit there get addresses in
 * 240.0.0.0/4, which is not in use.
 */
struct person {
    char user[16];
    char ip[16];
};

static void make_person(uint32_t client, struct person *p)
{
    const uint32_t test_network = 0xc6120000; /* 198.18.0.0/15 */
    const uint32_t reserved = 0xf0000000;     /* 240.0.0.0/4 */
    uint32_t ip = client < 1u << 17 ? test_network + client : reserved + client;
    (void)snprintf(p->user, sizeof p->user, "u%u", client);
    (void)snprintf(p->ip, sizeof p->ip, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255,
                   ip & 255);
}

#define PERSON_ATTRIBUTES 4

/* Adds an attribute, or replaces the one of the same name. Returns the new number of attributes. */
static size_t put_attribute(struct weir_rules_attribute *with, size_t count,
                            const struct weir_rules_attribute *one)
{
    size_t i = 0;
    while (i < count && (with[i].name_len != one->name_len ||
                         memcmp(with[i].name, one->name, one->name_len) != 0)) {
        i++;
    }
    with[i] = *one;
    return i == count ? count + 1 : count;
}

/* Who asks which question of a rule file. */
struct subject_ask {
    struct sim_subject *subject;
    const struct sim_traffic *traffic; /* NULL: no trace and no shape yet */
    const struct sim_request *request;
    int mode;
};

static int ask_with(const struct subject_ask *ask, const struct weir_rules_attribute *with,
                    size_t count, struct weir_rules_answer *answer, struct weir_error *error)
{
    struct weir_rules_question q = {.attributes = with,
                                    .attributes_count = count,
                                    .cost = ask->request->cost,
                                    .mode = ask->mode};
    uint64_t base_ns = ask->traffic != NULL ? ask->traffic->base_ns : 0;
    return weir_rules_ask_at(ask->subject->rules, &q, base_ns + ask->request->time_ns, answer,
                             error);
}

static int ask_as_person(const struct subject_ask *ask, struct weir_rules_answer *answer,
                         struct weir_error *error)
{
    const struct sim_plan *plan = ask->subject->plan;
    const struct sim_traffic *traffic = ask->traffic;
    uint32_t client = ask->request->client;
    struct person p;
    make_person(client, &p);
    struct weir_rules_attribute with[PERSON_ATTRIBUTES + SIM_ATTRIBUTES_MAX] = {
        WEIR_RULES_ATTRIBUTE("path", plan->path),
        WEIR_RULES_ATTRIBUTE("method", plan->method),
        WEIR_RULES_ATTRIBUTE("ip", p.ip),
        WEIR_RULES_ATTRIBUTE("user", p.user),
    };
    if (traffic != NULL && traffic->names != NULL) {
        with[3].value = traffic->names[client].at;
        with[3].value_len = traffic->names[client].len;
    }
    size_t count = PERSON_ATTRIBUTES;
    for (size_t i = 0; i < plan->attributes_count; i++) {
        count = put_attribute(with, count, &plan->attributes[i]);
    }
    return ask_with(ask, with, count, answer, error);
}

/* Asks with the attributes of the request's line in the trace, and no others. */
static int ask_as_event(const struct subject_ask *ask, struct weir_rules_answer *answer,
                        struct weir_error *error)
{
    struct replay_event event;
    int e = replay_event_parse(&event, ask->traffic->events[ask->request->turn],
                               ask->subject->plan->unit_ns, error);
    if (e == 0) {
        e = ask_with(ask, event.attributes, event.attributes_count, answer, error);
        replay_event_finish(&event);
    }
    return e;
}

static int ask_rules(const struct subject_ask *ask, struct weir_rules_answer *answer,
                     struct weir_error *error)
{
    bool event = ask->traffic != NULL && ask->traffic->events != NULL;
    return (event ? ask_as_event : ask_as_person)(ask, answer, error);
}

static const char *binding_name(const struct weir_rules_answer *a)
{
    if (a->reason == WEIR_REASON_MISSING) {
        return "(missing attribute)";
    }
    if (a->limit[0] != 0) {
        return a->limit;
    }
    if (a->reason == WEIR_REASON_ALLOW_LIST) {
        return "(allow list)";
    }
    return a->reason == WEIR_REASON_BLOCK_LIST ? "(block list)" : "(no limit)";
}

/*
 * Adds the cost to the row of the limit that decided. When all rows are taken, the last one is
 * renamed to "(others)" and counts every further limit.
 */
static void note_binding(struct sim_subject *s, const struct weir_rules_answer *a, uint64_t cost)
{
    const char *name = binding_name(a);
    size_t i = 0;
    while (i < s->bindings_count && strcmp(s->bindings[i].limit, name) != 0) {
        i++;
    }
    if (i == SIM_BINDINGS_MAX) {
        i--;
        (void)snprintf(s->bindings[i].limit, sizeof s->bindings[i].limit, "(others)");
    } else if (i == s->bindings_count) {
        s->bindings_count++;
        (void)snprintf(s->bindings[i].limit, sizeof s->bindings[i].limit, "%s", name);
    }
    *(a->answer.verdict == WEIR_ALLOW ? &s->bindings[i].admitted : &s->bindings[i].denied) += cost;
}

int sim_subject_ask(struct sim_subject *subject, const struct sim_traffic *traffic,
                    const struct sim_request *request, struct weir_answer *answer,
                    struct weir_error *error)
{
    if (subject->limiter != NULL) {
        int e = weir_check_at(subject->limiter, &request->client, sizeof request->client,
                              request->cost, traffic->base_ns + request->time_ns, answer);
        return e == 0 ? 0 : fail(error, e, "%s", weir_strerror(e));
    }
    struct weir_rules_answer a;
    struct subject_ask ask = {subject, traffic, request, WEIR_CHECK};
    int e = ask_rules(&ask, &a, error);
    if (e == 0) {
        note_binding(subject, &a, request->cost);
        *answer = a.answer;
    }
    return e;
}

struct wanted {
    const struct weir_rules_answer *answer;
    struct rate *rate;
};

static int take_rate(void *arg, const struct weir_rules_limit *limit)
{
    const struct wanted *w = arg;
    if (strcmp(limit->name, w->answer->limit) != 0 || strcmp(limit->tier, w->answer->tier) != 0) {
        return 0;
    }
    *w->rate = (struct rate){limit->count, limit->period_ns};
    return 1;
}

int sim_rules_rate(const struct sim_plan *plan, const struct sim_traffic *trace, struct rate *rate,
                   struct weir_error *error)
{
    struct sim_subject s = {.name = plan->rules[0], .plan = plan};
    struct sim_request first = trace != NULL ? trace->requests[0] : (struct sim_request){.cost = 1};
    struct weir_rules_answer a;
    int e = open_rules(&s, s.name, error);
    if (e != 0) {
        return e;
    }
    e = ask_rules(&(struct subject_ask){&s, trace, &first, WEIR_PEEK}, &a, error);
    if (e == 0 && weir_rules_limits(s.rules, take_rate, &(struct wanted){&a, rate}) != 1) {
        e = fail(error, WEIR_EINVAL,
                 "%s: no limit applies to the first request; give --rate, or another --path",
                 s.name);
    }
    weir_rules_close(s.rules);
    return e;
}
