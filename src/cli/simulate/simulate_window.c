/*
 * Computes how much was admitted in any window of a period's length: exactly, for every moment,
 * not only for aligned windows. A unit released at r counts in (t - period, t] for all t in [r,
 * r + period), so the count changes only at r and r + period.
 */
#include <stdlib.h>

#include "cli/simulate/simulate.h"

size_t sim_bin(uint64_t time_ns, uint64_t duration_ns)
{
    uint64_t bin = (uint64_t)((unsigned __int128)time_ns * SIM_BINS / duration_ns);
    return bin < SIM_BINS ? (size_t)bin : SIM_BINS - 1;
}

static int in_order(const void *a, const void *b)
{
    const struct sim_release *x = a;
    const struct sim_release *y = b;
    if (x->client != y->client) {
        return x->client < y->client ? -1 : 1;
    }
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Records that the count was `units` in [from, to). */
static void note(struct sim_result *result, uint64_t duration_ns, uint64_t units, uint64_t from_ns,
                 uint64_t to_ns)
{
    result->worst = units > result->worst ? units : result->worst;
    if (units == 0 || from_ns >= to_ns || from_ns >= duration_ns) {
        return;
    }
    size_t last = sim_bin(to_ns - 1, duration_ns);
    for (size_t bin = sim_bin(from_ns, duration_ns); bin <= last; bin++) {
        result->running[bin] = units > result->running[bin] ? units : result->running[bin];
    }
}

/* Follows one client's count. At the same moment, units leave the window before others enter it. */
static void slide(const struct sim_release *r, size_t n, uint64_t period_ns, uint64_t duration_ns,
                  struct sim_result *result)
{
    uint64_t units = 0;
    uint64_t since = 0;
    size_t leaving = 0;
    size_t coming = 0;
    while (leaving < n) {
        uint64_t leaves = r[leaving].time_ns + period_ns;
        uint64_t comes = coming < n ? r[coming].time_ns : UINT64_MAX;
        uint64_t now = leaves <= comes ? leaves : comes;
        note(result, duration_ns, units, since, now);
        since = now;
        if (leaves <= comes) {
            units -= r[leaving++].units;
        } else {
            units += r[coming++].units;
        }
    }
}

void sim_windows(struct sim_release *releases, size_t n, uint64_t period_ns, uint64_t duration_ns,
                 struct sim_result *result)
{
    if (n > 1) {
        qsort(releases, n, sizeof *releases, in_order);
    }
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && releases[end].client == releases[first].client; end++) {
        }
        slide(&releases[first], end - first, period_ns, duration_ns, result);
    }
}
