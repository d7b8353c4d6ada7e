/*
 * Composes a sample: what the server has done since the last one, and its state, as a JSON object.
 *
 *   {"at_ms","requests":{"allow","deny","error","overload","other"} (of the clients' listeners),
 *    "denied":{REASON:N,...} (of the denied ones, by reason: "limit", "store" and so on, and
 *    "other" for calls that could not be decided; those with some),
 *    "latency_us":{"p50","p99","p999"} (null: no requests),
 *    "limits":{NAME:[allowed,denied,shadow_denied],...} (of those with decisions SAMPLE_LIMITS:
 *    first up to SAMPLE_DENYING that have denied most, then the busiest; the others added up as
 *    "(others)"), "limits_denied":{NAME:{REASON:N,...},...} (of these limits, their denials for
 *    other reasons than the units of the limit), "keys","capacity","fullest":{"limit","percent"}
 *    (null: no limits),"reservations","held", "connections" (of clients),"memory_bytes","cpu"
 *    (processors in use),"generation","mode",
 *    "store":{"up","nodes","connections","breakers_open"} (null: no fleet)}
 */
#ifndef WEIR_SERVER_ADMIN_SAMPLE_H
#define WEIR_SERVER_ADMIN_SAMPLE_H

#include "server/admin/limit_counts.h"

#define SAMPLE_LIMITS 64
#define SAMPLE_DENYING 32

/* The counts at the last sample; all zero at first. */
struct sampler {
    uint64_t at_ns; /* Unix time; 0: there was none */
    uint64_t cpu_ns;
    uint64_t requests[REQUEST_RESULTS];
    uint64_t denied[REQUEST_REASONS];
    struct histogram took;
    struct limits_counted limits;
};

/*
 * Puts the sample for the time since the last one. Puts nothing for the first call, if out of
 * memory, or while the rules are being read again: another thread may do that for long, and the
 * operators' thread must go on. The next sample is then for a longer time.
 */
void sample_put(struct sampler *s, const struct server *server, uint64_t now_ns,
                struct buffer *out);

void sampler_finish(struct sampler *s);

#endif
