/* Finds changes in a rule file that only a restart applies. */
#include "rules/file/config.h"

struct compared {
    const char *name;
    size_t offset; /* of a struct text in struct config */
};

static const struct compared texts[] = {
    {"server.http", offsetof(struct config, server.http)},
    {"server.resp", offsetof(struct config, server.resp)},
    {"server.admin", offsetof(struct config, server.admin)},
    {"server.state", offsetof(struct config, server.state)},
    {"server.check_secrets", offsetof(struct config, server.check_secrets)},
    {"server.admin_secrets", offsetof(struct config, server.admin_secrets)},
    {"store.url", offsetof(struct config, store.url)},
    {"store.password_file", offsetof(struct config, store.password_file)},
    {"store.user", offsetof(struct config, store.user)},
    {"store.sentinel_password_file", offsetof(struct config, store.sentinel_password_file)},
    {"store.sentinel_user", offsetof(struct config, store.sentinel_user)},
    {"store.prefix", offsetof(struct config, store.prefix)},
};

static struct text text_at(const struct config *config, size_t offset)
{
    return *(const struct text *)(const void *)((const char *)config + offset);
}

static bool same_networks(const struct server_config *a, const struct server_config *b)
{
    if (a->trusted_given != b->trusted_given || a->trusted_count != b->trusted_count) {
        return false;
    }
    for (size_t i = 0; i < a->trusted_count; i++) {
        if (memcmp(a->trusted[i].network.bytes, b->trusted[i].network.bytes, 16) != 0 ||
            a->trusted[i].network.family != b->trusted[i].network.family ||
            a->trusted[i].prefix != b->trusted[i].prefix) {
            return false;
        }
    }
    return true;
}

static bool same_adhoc(const struct adhoc_config *a, const struct adhoc_config *b)
{
    return a->off == b->off && a->max_keys == b->max_keys && a->on_full == b->on_full &&
           a->consistency == b->consistency;
}

static void tell(struct problems *problems, const char *name, const char *what, bool changed)
{
    if (changed) {
        warning(problems, (struct place){name, 0, 0}, "%s has changed: needs restart", what);
    }
}

void config_compare(const struct config *old, const struct config *next, const char *name,
                    struct problems *problems)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool same = text_equal(text_at(old, texts[i].offset), text_at(next, texts[i].offset));
        tell(problems, name, texts[i].name, !same);
    }
    tell(problems, name, "server.trusted_proxies", !same_networks(&old->server, &next->server));
    tell(problems, name, "server.headers", old->server.headers != next->server.headers);
    tell(problems, name, "adhoc", !same_adhoc(&old->adhoc, &next->adhoc));
    tell(problems, name, "store.deadline", old->store.deadline_ns != next->store.deadline_ns);
    tell(problems, name, "store.fleet_size", old->store.fleet_size != next->store.fleet_size);
}
