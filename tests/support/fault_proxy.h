/*
 * A TCP proxy of the test's own, in a thread, that does to connections what networks do. It listens on
 * a port of 127.0.0.1 and connects to another one. What it does can be changed at any time, from any
 * thread; it holds for bytes that have not been passed on yet, and for connections to come.
 *
 *     delay, jitter   each piece leaves that much later than it came (and up to jitter more); the order stays
 *     slice           so many bytes at a time, each in a packet of its own
 *     HOLD            nothing moves in that direction; when it is lifted, all of it comes late
 *     DROP            what comes is lost, and so is all that follows on this connection, for good
 *     half open       connections are accepted, and nobody is there: DROP both ways, nothing is ever closed
 *     black hole      HOLD both ways, and new connections are neither accepted nor refused
 *     refuse          new connections are reset
 */
#ifndef WEIR_TESTS_SUPPORT_FAULT_PROXY_H
#define WEIR_TESTS_SUPPORT_FAULT_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault_flow { FAULT_FLOW, FAULT_HOLD, FAULT_DROP };

struct faults {
    uint64_t delay_us;
    uint64_t jitter_us;
    size_t slice; /* 0: as it comes */
    enum fault_flow to_server;
    enum fault_flow to_client;
    bool half_open;
    bool black_hole;
    bool refuse;
};

struct fault_counts {
    uint64_t accepted; /* connections, since it was started */
    uint64_t open;     /* now */
    uint64_t to_server;
    uint64_t to_client; /* bytes passed on */
    uint64_t dropped;   /* bytes */
};

struct fault_proxy;

/* In front of 127.0.0.1:port; without faults. Whatever goes wrong ends the program. */
struct fault_proxy *fault_proxy_start(unsigned port);
void fault_proxy_stop(struct fault_proxy *p); /* resets what is open */

unsigned fault_proxy_port(const struct fault_proxy *p);

/* These return when the proxy's thread acts by them. */
void fault_proxy_set(struct fault_proxy *p, const struct faults *faults); /* NULL: none */
void fault_proxy_reset(struct fault_proxy *p);                            /* all that are open */
void fault_proxy_lead_to(struct fault_proxy *p, unsigned port);           /* new connections */

struct fault_counts fault_proxy_counts(struct fault_proxy *p);

#endif
