/* The shapes of traffic. Each client asks for `load` percent of the rate, on average. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/simulate/simulate.h"

/* Collects the requests, one client after the other. */
struct maker {
    const struct sim_plan *plan;
    struct sim_traffic *traffic;
    size_t room;
    uint32_t client;
    int error;
};

void *sim_grow(void *array, size_t count, size_t more, size_t *room, size_t element_bytes)
{
    if (count + more <= *room) {
        return array;
    }
    size_t wanted = *room * 2 + more + 64;
    void *grown = realloc(array, wanted * element_bytes);
    *room = grown != NULL ? wanted : *room;
    return grown;
}

static void add(struct maker *m, uint64_t time_ns)
{
    struct sim_traffic *t = m->traffic;
    if (m->error != 0 || time_ns >= t->duration_ns) {
        return;
    }
    if (t->count == SIM_REQUESTS_MAX) {
        m->error = WEIR_EINVAL;
        return;
    }
    struct sim_request *grown = sim_grow(t->requests, t->count, 1, &m->room, sizeof *grown);
    if (grown == NULL) {
        m->error = WEIR_ENOMEM;
        return;
    }
    t->requests = grown;
    t->requests[t->count++] =
        (struct sim_request){.time_ns = time_ns, .cost = 1, .client = m->client};
}

/* Returns the requests of one client in `times` periods, rounded; at least 1. */
static uint64_t per_period(const struct sim_plan *plan, uint64_t times)
{
    unsigned __int128 n = (unsigned __int128)plan->rate.count * plan->load * times + 50;
    uint64_t whole = n / 100 > SIM_REQUESTS_MAX ? SIM_REQUESTS_MAX + 1 : (uint64_t)(n / 100);
    return whole > 0 ? whole : 1;
}

/* Adds n requests, evenly spaced over `width` from `begin` on. */
static void crowd(struct maker *m, uint64_t begin_ns, uint64_t width_ns, uint64_t n)
{
    for (uint64_t i = 0; i < n && m->error == 0; i++) {
        add(m, begin_ns + (uint64_t)((unsigned __int128)width_ns * i / n));
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

static void burst(struct maker *m)
{
    uint64_t w = m->plan->rate.period_ns;
    for (uint64_t begin = 0; begin < m->plan->duration_ns && m->error == 0; begin += w) {
        crowd(m, begin + w / 2, w / 50, per_period(m->plan, 1));
    }
}

static void on_off(struct maker *m)
{
    uint64_t w = m->plan->rate.period_ns;
    for (uint64_t begin = 0; begin < m->plan->duration_ns && m->error == 0; begin += 2 * w) {
        crowd(m, begin, w, per_period(m->plan, 2));
    }
}

static void poisson(struct maker *m)
{
    const struct sim_plan *p = m->plan;
    unsigned __int128 step = (unsigned __int128)p->rate.period_ns * 100;
    unsigned __int128 divisor = (unsigned __int128)p->rate.count * p->load << 32;
    uint64_t who = p->seed + m->client * UINT64_C(0xd1342543de82ef95);
    uint64_t state = sim_random(&who); /* mixed, so that neighbouring seeds and clients differ */
    /* The time in units of 1 / divisor, so that rounding errors do not add up. */
    unsigned __int128 exact = 0;
    while (m->error == 0) {
        exact += step * sim_exponential(sim_random(&state));
        if (exact / divisor >= p->duration_ns) {
            break;
        }
        add(m, (uint64_t)(exact / divisor));
    }
}

/* Crowds just before and just after the ends of the first window, the third, and so on. */
static void edge(struct maker *m)
{
    uint64_t w = m->plan->rate.period_ns;
    uint64_t near = w / 10;
    for (uint64_t end = w; end - near < m->plan->duration_ns && m->error == 0; end += 2 * w) {
        crowd(m, end - near, near, per_period(m->plan, 1));
        crowd(m, end, near, per_period(m->plan, 1));
    }
}

static void herd(struct maker *m)
{
    uint64_t w = m->plan->rate.period_ns;
    for (uint64_t at = w / 2; at < m->plan->duration_ns && m->error == 0; at += 2 * w) {
        crowd(m, at, 0, per_period(m->plan, 1));
    }
}

static const struct shape {
    const char *name;
    const char *about;
    void (*make)(struct maker *m);
    bool come_back;
} shapes[] = {
    {"steady", "evenly spaced requests", steady, false},
    {"burst", "all requests of a period at once, in its middle", burst, false},
    {"onoff", "twice the load for one period, silence for the next", on_off, false},
    {"poisson", "independent requests, at random times", poisson, false},
    {"edge", "a crowd just before and one just after a window's end", edge, false},
    {"herd", "many requests at one instant; denied clients come back exactly when told", herd,
     true},
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
        shapes[shape].make(&m);
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
    free(traffic->file);
    free(traffic->title);
    *traffic = (struct sim_traffic){0};
}
