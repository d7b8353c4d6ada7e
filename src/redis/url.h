/*
 * The URL of a store:
 *
 *     redis://host:port[,host:port...][/db]        the first host that answers as a master
 *     redis-sentinel://host:port,.../mastername    the node that the Sentinels name as the master
 *     redis-cluster://host:port,...                by slots; the hosts are those to ask first
 *     rediss://, rediss-sentinel://, rediss-cluster://   the same with TLS on every connection
 *
 * host is a name, an IPv4 address, [an IPv6 address], or for redis:// the absolute path of a unix
 * socket (redis:///run/redis.sock). The default port is 6379, for Sentinels 26379. user:password@
 * is refused: secrets are read from files or options.
 */
#ifndef WEIR_REDIS_URL_H
#define WEIR_REDIS_URL_H

#include <weir.h>

#include "common/text.h"

#define STORE_HOSTS_MAX 32

enum store_kind { STORE_ALONE, STORE_SENTINEL, STORE_CLUSTER };

struct store_host {
    char host[256]; /* path of a unix socket if it begins with '/' */
    unsigned port;
};

struct store_url {
    enum store_kind kind;
    bool tls;
    struct store_host hosts[STORE_HOSTS_MAX];
    size_t count;
    unsigned db;
    char master[64];
};

/* Reads a port, 1 to 65535. Returns false if it is none. */
bool store_port_read(struct weir_text text, unsigned *port);

/* Returns 0, or WEIR_EINVAL with a message that says what was found and what was expected; the
 * message never contains a secret. */
int store_url_read(struct weir_text text, struct store_url *url, struct weir_error *error);

#endif
