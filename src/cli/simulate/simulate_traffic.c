/* The shapes of traffic. Each client asks for `load` percent of the rate, on average. */
#include <stdlib.h>

#include "base/error.h"
#include "base/maths.h"
#include "cli/simulate/simulate.h"
#include "common/array.h"

/* Collects the requests, one client after the other. */
struct maker {
    const struct sim_plan *plan;
    struct sim_traffic *traffic;
    uint32_t client;
    int error;
};

static void add(struct maker *m, uint64_t time_ns)
{
    struct sim_traffic *t = m->traffic;
    if (m->error != 0 || time_ns >= t->duration_ns) {
        return;
    }
    struct sim_request request = {.time_ns = time_ns, .cost = 1, .client = m->client};
    if (t->count == SIM_REQUESTS_MAX) {
        m->error = WEIR_EINVAL;
    } else if (!array_append(&t->requests, &t->count, sizeof request, &request)) {
        m->error = WEIR_ENOMEM;
    }
}

/* Returns the requests of one client in `periods` periods, rounded; at least 1. */
static uint64_t requests_in(const struct sim_plan *plan, unsigned periods)
{
    unsigned __int128 n = (unsigned __int128)plan->rate.count * plan->load * periods + 50;
    uint64_t whole = n / 100 > SIM_REQUESTS_MAX ? SIM_REQUESTS_MAX + 1 : (uint64_t)(n / 100);
    return whole > 0 ? whole : 1;
}

/* Many requests, evenly spaced over a part of a period, again and again. */
struct traffic_crowd {
    unsigned at;    /* when the first one begins, in percent of a period */
    unsigned width; /* in percent of a period */
    unsigned every; /* periods from one crowd to the next */
    unsigned holds; /* requests, in periods of the load; 0: no crowd */
};

static void add_crowds(struct maker *m, const struct traffic_crowd *c)
{
    uint64_t period = m->plan->rate.period_ns;
    uint64_t width = mul_div(period, c->width, 100);
    uint64_t n = requests_in(m->plan, c->holds);
    for (uint64_t begin = mul_div(period, c->at, 100);
         begin < m->plan->duration_ns && m->error == 0; begin += c->every * period) {
        for (uint64_t i = 0; i < n && m->error == 0; i++) {
            add(m, begin + mul_div(width, i, n));
        }
    }
}

/* Each client asks every 100 * period / (count * load), and the clients take turns. */
static void steady(struct maker *m)
{
    const struct sim_plan *p = m->plan;
    unsigned __int128 divisor = (unsigned __int128)p->rate.count * p->load * p->clients;
    unsigned __int128 step = (unsigned __int128)p->rate.period_ns * 100;
    for (uint64_t k = m->client; m->error == 0; k += p->clients) {
        uint64_t time_ns = (uint64_t)(step * k / divisor);
        if (time_ns >= p->duration_ns) {
            break;
        }
        add(m, time_ns);
    }
}

static void poisson(struct maker *m)
{
    const struct sim_plan *p = m->plan;
    unsigned __int128 step = (unsigned __int128)p->rate.period_ns * 100;
    unsigned __int128 divisor = (unsigned __int128)p->rate.count * p->load << 32;
    uint64_t who = p->seed + m->client * UINT64_C(0xd1342543de82ef95);
    uint64_t state = splitmix_next(&who); /* mixed, so that neighbouring seeds and clients differ */
    /* The time in units of 1 / divisor, so that rounding errors do not add up. */
    unsigned __int128 exact = 0;
    while (m->error == 0) {
        exact += step * sim_exponential(splitmix_next(&state));
        if (exact / divisor >= p->duration_ns) {
            break;
        }
        add(m, (uint64_t)(exact / divisor));
    }
}

#define CROWDS 2

static const struct shape {
    const char *name;
    const char *about;
    void (*make)(struct maker *m); /* NULL: only crowds */
    struct traffic_crowd crowds[CROWDS];
    bool come_back;
} shapes[] = {
    {"steady", "evenly spaced requests", .make = steady},
    {"burst", "all requests of a period at once, in its middle", .crowds = {{50, 2, 1, 1}}},
    {"onoff", "twice the load for one period, silence for the next", .crowds = {{0, 100, 2, 2}}},
    {"poisson", "independent requests, at random times", .make = poisson},
    {"edge", "a crowd just before and one just after a window's end",
     .crowds = {{90, 10, 2, 1}, {100, 10, 2, 1}}},
    {"herd", "many requests at one instant; denied clients come back exactly when told",
     .crowds = {{50, 0, 2, 1}}, .come_back = true},
};

#define SHAPES (sizeof shapes / sizeof shapes[0])
_Static_assert(SHAPES <= SIM_SHAPES_MAX, "room for --shape all");

const char *sim_shape_name(size_t row)
{
    return row < SHAPES ? shapes[row].name : NULL;
}

static int in_order(const void *a, const void *b)
{
    const struct sim_request *x = a;
    const struct sim_request *y = b;
    if (x->time_ns != y->time_ns) {
        return x->time_ns < y->time_ns ? -1 : 1;
    }
    return (x->turn > y->turn) - (x->turn < y->turn);
}

void sim_traffic_sort(struct sim_traffic *traffic)
{
    for (size_t i = 0; i < traffic->count; i++) {
        traffic->requests[i].turn = (uint32_t)i;
    }
    if (traffic->count > 1) {
        qsort(traffic->requests, traffic->count, sizeof *traffic->requests, in_order);
    }
}

/* Estimates, before any request is made, whether the average number is far too large. */
static bool too_many(const struct sim_plan *p)
{
    unsigned __int128 all = (unsigned __int128)p->rate.count * p->load;
    if (all > SIM_REQUESTS_MAX * 1000) { /* in one period; a crowd is never cut in two */
        return true;
    }
    all = all * p->clients * (p->duration_ns / p->rate.period_ns + 1) / 100;
    return all > SIM_REQUESTS_MAX * 2;
}

int sim_traffic_make(const struct sim_plan *plan, size_t shape, struct sim_traffic *out,
                     struct weir_error *error)
{
    struct maker m = {.plan = plan, .traffic = out};
    *out = (struct sim_traffic){.name = shapes[shape].name,
                                .about = shapes[shape].about,
                                .clients = plan->clients,
                                .duration_ns = plan->duration_ns,
                                .come_back = shapes[shape].come_back};
    m.error = too_many(plan) ? WEIR_EINVAL : 0;
    for (; m.client < plan->clients && m.error == 0; m.client++) {
        if (shapes[shape].make != NULL) {
            shapes[shape].make(&m);
        }
        for (size_t i = 0; i < CROWDS && shapes[shape].crowds[i].holds > 0; i++) {
            add_crowds(&m, &shapes[shape].crowds[i]);
        }
    }
    if (m.error != 0) {
        sim_traffic_finish(out);
        return m.error == WEIR_ENOMEM
                   ? fail(error, WEIR_ENOMEM, "out of memory")
                   : fail(error, WEIR_EINVAL,
                          "found more than %u requests; use a shorter --duration, a lower --rate "
                          "or --load, or fewer --clients",
                          (unsigned)SIM_REQUESTS_MAX);
    }
    sim_traffic_sort(out);
    return 0;
}

void sim_traffic_finish(struct sim_traffic *traffic)
{
    free(traffic->requests);
    free(traffic->names);
    free(traffic->events);
    arena_finish(&traffic->memory);
    free(traffic->title);
    *traffic = (struct sim_traffic){0};
}
