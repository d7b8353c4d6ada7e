/* Where the store is:
 *
 *     redis://host:port[,host:port...][/db]        the first that answers as a master
 *     redis-sentinel://host:port,.../mastername    whoever the Sentinels call the master
 *     redis-cluster://host:port,...                by slots; the hosts are where to begin
 *
 * host is a name, an IPv4 address, [an IPv6 address], or for redis:// an absolute path of a unix socket
 * (redis:///run/redis.sock). Ports are 6379, of Sentinels 26379, unless said. user:password@ is refused:
 * secrets have files.
 */
#ifndef WEIR_REDIS_URL_H
#define WEIR_REDIS_URL_H

#include <weir.h>

#include "common/text.h"

#define STORE_HOSTS_MAX 32

enum store_kind { STORE_ALONE, STORE_SENTINEL, STORE_CLUSTER };

struct store_host {
    char host[256]; /* begins with '/': a unix socket */
    unsigned port;
};

struct store_url {
    enum store_kind kind;
    struct store_host hosts[STORE_HOSTS_MAX];
    size_t count;
    unsigned db;
    char master[64];
};

/* 0, or WEIR_EINVAL with what was found and what was expected; never with a secret in it. */
int store_url_read(struct text text, struct store_url *url, struct weir_error *error);

#endif
