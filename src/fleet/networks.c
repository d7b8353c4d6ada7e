/* Confines a fleet to the networks of its options: a store or a Sentinel that was taken over must
 * not be able to send the nodes, and their password, anywhere. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "fleet/fleet_thread.h"

/* ---- the option ---- */

static int read_items(struct weir_text list, struct cidr *items, size_t *count,
                      struct weir_error *error)
{
    struct weir_error why = {0};
    while (list.len > 0) {
        struct weir_text item = text_trim(text_cut(&list, ','));
        if (cidr_parse(item, &items[*count], &why) != 0) {
            return fail(error, WEIR_EINVAL, "networks: %s", why.text);
        }
        ++*count;
    }
    return 0;
}

int fleet_networks_read(struct weir_fleet *f, struct weir_error *error)
{
    if (f->options.networks == NULL) {
        return 0;
    }
    struct weir_text list = text_of(f->options.networks);
    size_t count = 0;
    struct cidr *items = calloc(list.len + 1, sizeof *items); /* more than it can have */
    int e = items != NULL ? read_items(list, items, &count, error) : WEIR_ENOMEM;
    e = e == 0 ? cidr_set_create(items, count, &f->networks) : e;
    free(items);
    return e == WEIR_ENOMEM ? fail(error, e, "out of memory for the networks of a fleet") : e;
}

/* ---- the check ---- */

static bool has(struct weir_fleet *f, const struct address *a, const char *host, unsigned port)
{
    if (f->networks == NULL || cidr_set_has(f->networks, a)) {
        return true;
    }
    count_shared(&f->targets_refused, 1);
    bool colons = strchr(host, ':') != NULL;
    (void)pthread_mutex_lock(&f->lock);
    (void)snprintf(f->last_refused, sizeof f->last_refused, colons ? "[%s]:%u" : "%s:%u", host,
                   port);
    (void)pthread_mutex_unlock(&f->lock);
    return false;
}

bool fleet_permits(void *fleet, struct weir_text host, unsigned port)
{
    struct address a;
    char text[ADDRESS_MAX];
    return address_parse(host, &a, NULL) != 0 || has(fleet, &a, address_print(&a, text), port);
}

bool fleet_permits_address(struct weir_fleet *f, const struct sockaddr *address)
{
    char host[NI_MAXHOST];
    char port[8];
    struct address a;
    socklen_t size =
        address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (f->networks == NULL) {
        return true;
    }
    return getnameinfo(address, size, host, sizeof host, port, sizeof port,
                       NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
           address_parse(text_of(host), &a, NULL) == 0 &&
           has(f, &a, host, (unsigned)strtoul(port, NULL, 10));
}

uint64_t fleet_targets_refused(const struct weir_fleet *f, char *last, size_t size)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&f->lock;
    (void)pthread_mutex_lock(lock);
    (void)snprintf(last, size, "%s", f->last_refused);
    (void)pthread_mutex_unlock(lock);
    return load_relaxed(&f->targets_refused);
}
