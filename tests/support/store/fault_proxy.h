/*
 * A TCP proxy in a thread of the test that imitates the faults of networks. It listens on a port of
 * 127.0.0.1 and connects to another one. The faults can be changed at any time, from any thread; a
 * change applies to bytes that have not been passed on yet, and to new connections.
 *
 *     delay, jitter   each piece leaves that much later (and up to jitter more), in order
 *     slice           at most that many bytes at a time, each slice in its own packet
 *     HOLD            nothing moves in that direction; when it is lifted, all bytes arrive late
 *     DROP            bytes are lost, and so are all later ones on this connection, for good
 *     half open       connections are accepted, but there is no server: DROP in both directions,
 *                     and nothing is ever closed
 *     black hole      HOLD in both directions; new connections are neither accepted nor refused
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
    size_t slice; /* 0: bytes are not split */
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
    uint64_t to_client; /* bytes passed on, in each direction */
    uint64_t dropped;   /* bytes */
};

struct fault_proxy;

/* Starts a proxy without faults in front of 127.0.0.1:port. Any error ends the program. */
struct fault_proxy *fault_proxy_start(unsigned port);
void fault_proxy_stop(struct fault_proxy *p); /* resets open connections */

unsigned fault_proxy_port(const struct fault_proxy *p);

/* These return when the change is in force in the proxy's thread. */
void fault_proxy_set(struct fault_proxy *p, const struct faults *faults); /* NULL: none */
void fault_proxy_reset(struct fault_proxy *p);                            /* all open connections */
void fault_proxy_lead_to(struct fault_proxy *p, unsigned port);           /* for new connections */

struct fault_counts fault_proxy_counts(struct fault_proxy *p);

#endif
