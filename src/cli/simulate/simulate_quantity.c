/* Formats the numbers for all charts and tables. */
#include <inttypes.h>
#include <stdio.h>

#include "base/maths.h"
#include "cli/simulate/simulate.h"

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {
    {"ns", 1},          {"us", WEIR_MICROSECOND}, {"ms", WEIR_MILLISECOND},
    {"s", WEIR_SECOND}, {"min", WEIR_MINUTE},     {"h", WEIR_HOUR},
    {"d", WEIR_DAY},
};

#define UNITS (sizeof units / sizeof units[0])

/*
 * Returns the largest unit of which the time is a multiple, or at least twice the size: "1 min",
 * "90 s", "2.5 min".
 */
static size_t unit_of(uint64_t ns)
{
    size_t best = 0;
    for (size_t i = 0; i < UNITS; i++) {
        if (ns >= units[i].ns && (ns % units[i].ns == 0 || ns >= 2 * units[i].ns)) {
            best = i;
        }
    }
    return best;
}

const char *sim_time_like(uint64_t ns, uint64_t like_ns, char *buffer)
{
    size_t unit = unit_of(like_ns);
    uint64_t size = units[unit].ns;
    uint64_t whole = ns / size;
    unsigned hundredths = (unsigned)((ns % size * 200 / size + 1) / 2);
    if (hundredths == 100) {
        whole++;
        hundredths = 0;
    }
    int n = snprintf(buffer, SIM_TEXT, "%" PRIu64, whole);
    if (hundredths > 0) {
        n += snprintf(buffer + n, SIM_TEXT - (size_t)n, hundredths % 10 == 0 ? ".%u" : ".%02u",
                      hundredths % 10 == 0 ? hundredths / 10 : hundredths);
    }
    if (ns != 0) {
        (void)snprintf(buffer + n, SIM_TEXT - (size_t)n, " %s", units[unit].name);
    }
    return buffer;
}

const char *sim_time(uint64_t ns, char *buffer)
{
    return sim_time_like(ns, ns, buffer);
}

const char *sim_multiple(uint64_t part, uint64_t whole, char *buffer)
{
    unsigned __int128 hundredths = ((unsigned __int128)part * 200 / whole + 1) / 2;
    (void)snprintf(buffer, SIM_TEXT, "%" PRIu64 ".%02ux", (uint64_t)(hundredths / 100),
                   (unsigned)(hundredths % 100));
    return buffer;
}

const char *sim_circumstances(const struct sim_section *section, char *buffer, size_t size)
{
    const struct sim_plan *p = section->plan;
    const struct sim_traffic *t = section->traffic;
    char rate[QUANTITY_MAX];
    char during[SIM_TEXT];
    char clients[48] = "one client";
    char load[48] = "";
    if (t->clients > 1) {
        (void)snprintf(clients, sizeof clients, "each of %u clients", t->clients);
    }
    if (t->names == NULL) {
        (void)snprintf(load, sizeof load, ", load %" PRIu64 " %%", p->load);
    }
    (void)snprintf(buffer, size, "quota %s for %s%s, %s", rate_print(p->rate, rate), clients, load,
                   sim_time(t->duration_ns, during));
    return buffer;
}

uint64_t sim_axis_step(const struct sim_section *section)
{
    uint64_t period = section->plan->rate.period_ns;
    uint64_t duration = section->traffic->duration_ns;
    uint64_t step = period < duration ? period : duration;
    static const uint64_t factors[] = {2, 5, 10};
    uint64_t scale = 1;
    for (size_t i = 0; duration / step > 8; i++) { /* 1, 2, 5, 10, 20, 50 ... windows */
        step = period * scale * factors[i % 3];
        scale *= i % 3 == 2 ? 10 : 1;
    }
    return step;
}

uint64_t sim_total(const uint64_t *bins, size_t first, size_t n)
{
    uint64_t total = 0;
    for (size_t i = first; i < first + n; i++) {
        total += bins[i];
    }
    return total;
}

uint64_t sim_tallest(const struct sim_section *section, size_t n)
{
    uint64_t tallest = 1;
    for (size_t i = 0; i < section->results_count; i++) {
        for (size_t first = 0; first < SIM_BINS; first += n) {
            tallest = max_u64(tallest, sim_total(section->results[i].offered_in, first, n));
        }
    }
    return tallest;
}
