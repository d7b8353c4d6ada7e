#include <inttypes.h>
#include <stdio.h>

#include "load/load.h"

static const struct {
    const char *name;
    double share;
} points[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1},
};
#define POINTS (sizeof points / sizeof points[0])

static const char *const verdict_names[LOAD_VERDICTS] = {"allowed", "denied", "refused", "other",
                                                         "errors"};

uint64_t load_replies(const struct load_result *result)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < LOAD_VERDICTS; i++) {
        n += result->verdicts[i];
    }
    return n;
}

static double per_second(uint64_t n, const struct load_result *result)
{
    double seconds = (double)result->elapsed_ns / 1e9;
    return seconds > 0 ? (double)n / seconds : 0;
}

static double at_us(const struct load_result *result, double share)
{
    return (double)load_latency_at(&result->latency, share) / 1e3;
}

static double mean_us(const struct load_result *result)
{
    const struct load_latency *l = &result->latency;
    return l->count > 0 ? (double)l->sum_ns / (double)l->count / 1e3 : 0;
}

void load_print_table(const struct load_plan *plan, const struct load_result *result)
{
    uint64_t replies = load_replies(result);
    (void)printf("%s, %u connection%s, %u in flight on each, ", plan->address, plan->connections,
                 plan->connections == 1 ? "" : "s", plan->depth);
    if (plan->rate > 0) {
        (void)printf("%.0f/s (%s), latency from the time at which each request was due\n\n",
                     plan->rate, plan->arrivals == LOAD_POISSON ? "poisson" : "constant");
    } else {
        (void)printf("as fast as replies come\n\n");
    }
    (void)printf("%-12s %12" PRIu64 "   %.1f/s in %.3f s\n", "replies", replies,
                 per_second(replies, result), (double)result->elapsed_ns / 1e9);
    for (unsigned i = 0; i < LOAD_VERDICTS; i++) {
        (void)printf("  %-10s %12" PRIu64 "\n", verdict_names[i], result->verdicts[i]);
    }
    (void)printf("%-12s %12" PRIu64 "\n%-12s %12" PRIu64 "\n%-12s %12" PRIu64 "   in %.0f ms\n\n",
                 "lost", result->lost, "unsent", result->unsent, "within", result->within,
                 (double)plan->within_ns / 1e6);
    (void)printf("latency      %12s\n", "ms");
    (void)printf("  %-10s %12.3f\n", "mean", mean_us(result) / 1e3);
    for (unsigned i = 0; i < POINTS; i++) {
        (void)printf("  %-10s %12.3f\n", points[i].name, at_us(result, points[i].share) / 1e3);
    }
}

void load_print_json(const struct load_plan *plan, const struct load_result *result)
{
    uint64_t replies = load_replies(result);
    (void)printf("{\"replies\": %" PRIu64, replies);
    for (unsigned i = 0; i < LOAD_VERDICTS; i++) {
        (void)printf(", \"%s\": %" PRIu64, verdict_names[i], result->verdicts[i]);
    }
    (void)printf(", \"lost\": %" PRIu64 ", \"unsent\": %" PRIu64 ", \"within\": %" PRIu64
                 ", \"within_ms\": %.3f,\n \"elapsed_s\": %.6f, \"rate\": %.1f, \"throughput\": "
                 "%.1f,\n \"latency_us\": {\"mean\": %.3f",
                 result->lost, result->unsent, result->within, (double)plan->within_ns / 1e6,
                 (double)result->elapsed_ns / 1e9, plan->rate, per_second(replies, result),
                 mean_us(result));
    for (unsigned i = 0; i < POINTS; i++) {
        (void)printf(", \"%s\": %.3f", points[i].name, at_us(result, points[i].share));
    }
    (void)printf("},\n \"connections\": %u, \"depth\": %u, \"threads\": %u, \"keys\": %" PRIu64
                 ", \"order\": \"%s\", \"arrivals\": \"%s\"}\n",
                 plan->connections, plan->depth, plan->threads, plan->keys,
                 load_order_names[plan->order],
                 plan->rate <= 0                  ? "closed"
                 : plan->arrivals == LOAD_POISSON ? "poisson"
                                                  : "constant");
}
