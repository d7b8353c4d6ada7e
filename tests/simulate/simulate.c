#include "shared/core/script.h"
#include "simulate/simulate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "simulate/world.h"

/* ---- failures and the trace ---- */

__attribute__((format(printf, 3, 0))) static void fail(struct world *w, uint64_t at_us,
                                                       const char *format, va_list args)
{
    if (!w->result->failed) {
        w->result->failed = true;
        w->result->at_us = at_us;
        (void)vsnprintf(w->result->text, sizeof w->result->text, format, args);
    }
}

void world_fail(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(w, w->now_us, format, args);
    va_end(args);
}

void world_fail_at(struct world *w, uint64_t at_us, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(w, at_us, format, args);
    va_end(args);
}

void world_trace(struct world *w, const char *format, ...)
{
    if (w->options->whole && w->lines_n > 0) {
        (void)fprintf(w->options->trace, "%s\n", w->lines[0]);
        w->lines_n = 0;
    }
    char *line = w->lines[w->lines_n++ % TRACE_LINES];
    int n = snprintf(line, sizeof w->lines[0], "%10" PRIu64 " ", w->now_us);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line + n, sizeof w->lines[0] - (size_t)n, format, args);
    va_end(args);
}

static void write_trace(const struct world *w)
{
    size_t first = w->lines_n > TRACE_LINES ? w->lines_n - TRACE_LINES : 0;
    for (size_t i = first; i < w->lines_n; i++) {
        (void)fprintf(w->options->trace, "%s\n", w->lines[i % TRACE_LINES]);
    }
}

/* ---- state that lives as long as the process ---- */

static struct store_shared *shared;
static uint64_t secret; /* for the next tables of keys */

int __wrap_hash_secret_init(struct hash_secret *out);

/* All random numbers come from the seed. */
int __wrap_hash_secret_init(struct hash_secret *out)
{
    *out = (struct hash_secret){.sip = {secret, ~secret}};
    return 0;
}

static void share(void)
{
    if (shared == NULL) {
        struct store_shared_options o = {.prefix = TEXT("sim"), .fleet_size = 1};
        if (store_shared_create(&shared, &o) != 0) {
            abort();
        }
    }
}

void simulate_finish(void)
{
    store_shared_destroy(shared);
    shared = NULL;
}

/* ---- making a world ---- */

static void make_limits(struct world *w)
{
    for (unsigned i = 0; i < w->plan.limits; i++) {
        char name[16];
        struct weir_error error;
        (void)snprintf(name, sizeof name, "limit%u", i);
        struct remote_spec spec = {
            .name = text_of(name),
            .options = w->plan.limit[i],
            .mode = w->options->mode,
            .on_failure = REMOTE_FAIL_CLOSED,
            .sync_ns = w->plan.sync_us * 1000,
        };
        if (store_limit_open(shared, &spec, &w->limits[i], &error) != 0) {
            (void)fprintf(stderr, "seed %" PRIu64 ": %s\n", w->options->seed, error.text);
            abort();
        }
    }
}

static void make_subjects(struct world *w)
{
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        struct subject *s = &w->subjects[i];
        s->limit = w->limits[i % w->plan.limits];
        s->params = &store_limit_numbers(s->limit)->params;
        (void)snprintf(s->name, sizeof s->name, "key%u", i);
        store_key(&s->limit->head, (struct weir_text){NULL, 0}, text_of(s->name), &s->key);
    }
}

static void make_nodes(struct world *w)
{
    w->nodes = calloc(w->plan.nodes, sizeof w->nodes[0]);
    if (w->nodes == NULL) {
        abort();
    }
    for (unsigned n = 0; n < w->plan.nodes; n++) {
        struct node *node = &w->nodes[n];
        uint64_t drift = world_between(w, 0, 2 * w->plan.drift_ppm);
        node->drift_ppm = (int)drift - (int)w->plan.drift_ppm;
        node->offset_ns = world_between(w, 1, UINT64_C(1) << 50);
        node_start(w, n);
        event_put(w, world_between(w, 0, w->plan.gap_us), EVENT_DEMAND, n, NULL);
    }
}

static void make_world(struct world *w)
{
    w->random.state = w->options->seed * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)w->options->mode;
    plan_draw(&w->random, w->options->mode, &w->plan);
    plan_describe(&w->plan, w->result->plan, sizeof w->result->plan);
    w->result->nodes = w->plan.nodes;
    share();
    shared->options.fleet_size = w->plan.nodes;
    secret = w->options->seed;
    w->scripts = &store_scripts;
    w->epoch_us = UINT64_C(1800000000000000) + world_between(w, 0, 3600 * SECOND_US);
    w->redis = fake_redis_create();
    fake_redis_only_declared(w->redis, true);
    buffer_init(&w->arguments, 65536);
    buffer_init(&w->request, 262144);
    buffer_init(&w->reply, 65536);
    w->lines = w->options->trace != NULL ? calloc(TRACE_LINES, sizeof w->lines[0]) : NULL;
    make_limits(w);
    make_subjects(w);
    make_nodes(w);
    faults_plan(w);
    event_put(w, w->plan.length_us, EVENT_END_OF_DEMAND, 0, NULL);
}

static void end_world(struct world *w)
{
    struct event e;
    w->over = true;
    for (unsigned n = 0; n < w->plan.nodes; n++) {
        if (w->nodes[n].up) {
            node_stop(w, n);
        }
    }
    while (event_next(w, &e)) {
        message_release(e.message);
    }
    for (unsigned i = 0; i < w->plan.limits; i++) {
        if (w->limits[i]->references != 1 && !w->result->failed) {
            world_fail(w, "a limit is held %" PRIu64 " times when all is over",
                       w->limits[i]->references);
        }
        store_limit_release(w->limits[i]);
    }
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        free(w->subjects[i].admissions);
    }
    fake_redis_destroy(w->redis);
    buffer_finish(&w->arguments);
    buffer_finish(&w->request);
    buffer_finish(&w->reply);
    free(w->lines);
    free(w->nodes);
    free(w->heap);
}

/* ---- questions ---- */

static uint64_t gap_of(struct world *w, unsigned n)
{
    uint64_t gap = w->plan.gap_us * w->plan.burst;
    if (w->plan.demand == DEMAND_ONE_HOT) {
        gap = n == 0 ? max_u64(gap / w->plan.nodes, 1) : 4 * gap;
    } else if (w->plan.demand == DEMAND_FLOOD) {
        gap = max_u64(gap / 2, 1);
    }
    bool rests = !w->plan.calm && world_once_in(w, 40);
    return world_between(w, gap / 2, gap + gap / 2) + (rests ? 20 * gap : 1);
}

static uint64_t cost_of(struct world *w, unsigned subject)
{
    uint64_t quota = w->subjects[subject].params->quota;
    if (!w->plan.calm && world_once_in(w, 100)) {
        return quota + world_between(w, 0, 1);
    }
    return world_between(w, 1, min_u64(w->plan.cost_most, quota));
}

static void demand(struct world *w, unsigned n)
{
    if (w->now_us >= w->plan.length_us) {
        return;
    }
    for (unsigned i = 0; i < w->plan.burst; i++) {
        unsigned subject = (unsigned)world_between(w, 0, w->plan.subjects - 1);
        node_ask(w, n, subject, cost_of(w, subject), false);
    }
    uint64_t next_us = w->now_us + gap_of(w, n);
    uint64_t wave_us = w->plan.wave_us;
    if (w->plan.demand == DEMAND_WAVES && next_us % wave_us > wave_us / 3) {
        next_us += wave_us - next_us % wave_us;
    }
    event_put(w, next_us, EVENT_DEMAND, n, NULL);
}

/* ---- the end ---- */

static uint64_t filled_us(const struct store_params *p, uint64_t times)
{
    return (uint64_t)((i128)(p->quota + p->max_debt) * unit_parts(p) * times / STORE_PARTS) + 1;
}

/* Returns the life of a lease: the time in which the bucket fills, plus an eighth
 * (leased_bucket.lua). */
static uint64_t life_us(const struct store_params *p)
{
    uint64_t full_us = (uint64_t)((i128)p->quota * unit_parts(p) / STORE_PARTS);
    uint64_t life = min_u64(max_u64(full_us, SECOND_US / 4), 2 * SECOND_US);
    return life + life / 8;
}

/* Returns the time from now until a key is fresh, at the latest. A clock that was set back adds up
 * to a second, and a state further ahead is pulled down to a full one by the next question. The
 * debt of `synced` is at most what sync.c allows. */
static uint64_t new_after_us(const struct world *w, const struct subject *s)
{
    const struct store_params *p = s->params;
    uint64_t slack_us = w->plan.steps > 0 ? SECOND_US : 0;
    slack_us += w->plan.verbs > 0 ? BLOCK_MOST_US : 0; /* a block that was heard of, or came late */
    if (w->options->mode == REMOTE_SYNCED) {
        uint64_t told_us = 20 * w->plan.sync_us + 2 * w->plan.deadline_us;
        uint64_t times = 1 + 2 * max_u64(w->plan.nodes, 8);
        return told_us + slack_us + (is_bucket(p) ? filled_us(p, times) : 3 * p->a);
    }
    uint64_t calls_us = 2 * (w->plan.delay_us + w->plan.jitter_us) + w->plan.slow_us +
                        w->plan.late_us + w->plan.deadline_us; /* questions that waited */
    return calls_us + slack_us + (is_bucket(p) ? filled_us(p, 1) + life_us(p) : p->a);
}

/* A key is locked out from its first question after the clock was set back, not earlier. So this
 * asks once. */
static void look_once(struct world *w, unsigned subject)
{
    unsigned n = (unsigned)world_between(w, 0, w->plan.nodes - 1);
    if (w->options->mode == REMOTE_LEASED) {
        node_verb(w, n, subject, REMOTE_CHECK, 1, 0);
    } else {
        node_ask(w, n, subject, 1, false);
    }
}

static void end_of_demand(struct world *w)
{
    uint64_t last_us = 0;
    TRACE(w, "nobody asks any more");
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        uint64_t at_us = w->now_us + new_after_us(w, &w->subjects[i]);
        if (w->plan.verbs > 0) {
            node_verb(w, (unsigned)world_between(w, 0, w->plan.nodes - 1), i, REMOTE_UNBLOCK, 1, 0);
        }
        if (w->plan.steps > 0) {
            look_once(w, i);
        }
        event_put(w, at_us, EVENT_PROBE, i, NULL);
        last_us = max_u64(last_us, at_us);
    }
    w->end_us = last_us + 2 * w->plan.deadline_us + SECOND_US;
}

static void probe(struct world *w, unsigned subject)
{
    const struct subject *s = &w->subjects[subject];
    unsigned n = (unsigned)world_between(w, 0, w->plan.nodes - 1);
    if (w->options->mode == REMOTE_SYNCED) {
        check_told(w, subject);
    }
    node_ask(w, n, subject, s->params->quota, true);
}

/* ---- the run ---- */

static void happen(struct world *w, const struct event *e)
{
    switch (e->kind) {
    case EVENT_DEMAND:
        demand(w, e->node);
        break;
    case EVENT_TICK:
        node_tick(w, e->node);
        break;
    case EVENT_ARRIVE:
        network_arrive(w, e->message);
        break;
    case EVENT_REPLY:
        network_reply(w, e->message);
        break;
    case EVENT_DEADLINE:
        network_deadline(w, e->message);
        break;
    case EVENT_END_OF_DEMAND:
        end_of_demand(w);
        break;
    case EVENT_PROBE:
        probe(w, e->node); /* here the index of the subject */
        break;
    default:
        fault_happens(w, e);
    }
}

static bool goes_on(const struct world *w, const struct event *e)
{
    uint64_t until_us = w->options->until_us;
    return !w->result->failed && e->at_us <= w->end_us && (until_us == 0 || e->at_us <= until_us);
}

static void run(struct world *w)
{
    struct event e;
    bool more = true;
    w->end_us = NEVER_US;
    while (more && event_next(w, &e)) {
        more = goes_on(w, &e);
        if (more) {
            w->now_us = e.at_us;
            world_print(w, e.at_us);
            world_print(w, (uint64_t)e.kind << 32 | e.node);
            happen(w, &e);
        }
        message_release(e.message);
    }
}

static void check(struct world *w)
{
    if (w->open != 0) {
        world_fail(w, "%" PRIu64 " questions are unanswered at the end", w->open);
    }
    if (w->options->mode == REMOTE_LEASED) {
        check_leased(w);
    } else {
        check_synced(w);
    }
}

void simulate(const struct simulate_options *options, struct simulate_result *result)
{
    struct world *w = calloc(1, sizeof *w);
    if (w == NULL) {
        abort();
    }
    *result = (struct simulate_result){.print = UINT64_C(14695981039346656037)};
    w->options = options;
    w->result = result;
    make_world(w);
    run(w);
    if (!result->failed && options->until_us == 0) {
        check(w);
    }
    if (options->trace != NULL) {
        write_trace(w);
    }
    end_world(w);
    free(w);
}

bool simulate_seed(const char *program, int mode, uint64_t seed, FILE *out,
                   struct simulate_result *result)
{
    struct simulate_options options = {.seed = seed, .mode = mode};
    simulate(&options, result);
    if (!result->failed || out == NULL) {
        return !result->failed;
    }
    struct simulate_result again;
    options.whole = getenv("WEIR_SIMULATE_WHOLE") != NULL;
    (void)fprintf(out, "seed %" PRIu64 " fails: %s\n%s\nthe last that happened (us):\n", seed,
                  result->text, result->plan);
    options.trace = out;
    options.until_us = result->at_us;
    simulate(&options, &again);
    (void)fprintf(out, "again: %s %" PRIu64 " (WEIR_SIMULATE_WHOLE=1: with all of its trace)\n",
                  program, seed);
    return false;
}
