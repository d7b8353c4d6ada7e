/* Makes random rules over few values, so that most requests match something, but not everything. */
#include "support/oracle/matching_world.h"

#include <string.h>

#define PICK(g, list) (list)[oracle_between((g), 0, sizeof(list) / sizeof(list)[0] - 1)]

/* These two are too long to be compared one by one. */
#define LONG_1 "a-user-with-a-name-that-is-hard-to-type-0001"
#define LONG_2 "a-user-with-a-name-that-is-hard-to-type-0002"

static void set_text(char *to, const char *text)
{
    (void)snprintf(to, M_TEXT, "%s", text);
}

/* ---- values ---- */

static void random_path(struct oracle_random *g, const char *const *pieces, size_t n, char *to)
{
    unsigned segments = (unsigned)oracle_between(g, 0, 4);
    size_t len = 0;
    for (unsigned i = 0; i < segments; i++) {
        const char *piece = pieces[oracle_between(g, 0, n - 1)];
        len += (size_t)snprintf(to + len, M_TEXT - len, "/%s", piece);
    }
    if (segments == 0) {
        set_text(to, "/");
    }
}

static struct matching_address random_address(struct oracle_random *g)
{
    struct matching_address a = {.v6 = oracle_once_in(g, 3)};
    if (a.v6) {
        memcpy(a.bytes, "\x20\x01\x0d\xb8", 4);
        a.bytes[5] = (unsigned char)oracle_between(g, 0, 1);
        a.bytes[7] = (unsigned char)oracle_between(g, 0, 1);
        a.bytes[15] = (unsigned char)oracle_between(g, 1, 3);
    } else {
        a.bytes[0] = oracle_once_in(g, 5) ? 11 : 10;
        a.bytes[1] = (unsigned char)oracle_between(g, 0, 1);
        a.bytes[2] = (unsigned char)oracle_between(g, 0, 1);
        a.bytes[3] = (unsigned char)oracle_between(g, 1, 3);
    }
    return a;
}

static void random_network(struct oracle_random *g, struct matching_value *v)
{
    static const unsigned v4[] = {8, 7, 15, 16, 24, 30, 31, 32};
    static const unsigned v6[] = {32, 47, 48, 64, 126, 127, 128};
    v->network = random_address(g);
    v->prefix = v->network.v6 ? PICK(g, v6) : PICK(g, v4);
    for (unsigned bit = v->prefix; bit < 128; bit++) {
        v->network.bytes[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
    }
}

static void random_pattern(struct oracle_random *g, int attribute, char *to)
{
    static const char *const pieces[] = {"a", "b",  "ab", "a.b", "c d", "\\*", "\\\\",
                                         "*", "a*", "*b", "*.b", "a*b", "**",  "**"};
    static const char *const methods[] = {"GET", "POST", "PUT", "P*", "*T"};
    static const char *const hosts[] = {"a.example", "b.example", "example", "*.example", "a.*"};
    static const char *const users[] = {"u1", "o1",   "1.2.3.4", "u*",       "a\\*b",
                                        "*",  LONG_1, LONG_2,    M_USER_FILE};
    static const char *const tiers[] = {"free", "pro", "gold", "*o*"};
    static const char *const orgs[] = {"o1", "o2", "o*", "u1"};
    switch (attribute) {
    case M_PATH:
        random_path(g, pieces, sizeof pieces / sizeof pieces[0], to);
        break;
    case M_METHOD:
        set_text(to, PICK(g, methods));
        break;
    case M_HOST:
        set_text(to, PICK(g, hosts));
        break;
    case M_USER:
        set_text(to, PICK(g, users));
        break;
    case M_TIER:
        set_text(to, PICK(g, tiers));
        break;
    default:
        set_text(to, PICK(g, orgs));
        break;
    }
}

static void random_value(struct oracle_random *g, int attribute, char *to)
{
    static const char *const pieces[] = {"a", "b", "ab", "a.b", "c d", "*", "\\", "aab"};
    static const char *const methods[] = {"GET", "POST", "PUT"};
    static const char *const hosts[] = {"a.example", "b.example", "example"};
    static const char *const users[] = {"u1", "o1", "1.2.3.4", "a*b", "axb", LONG_1, LONG_2};
    static const char *const tiers[] = {"free", "pro", "gold", "other"};
    static const char *const orgs[] = {"o1", "o2", "u1"};
    switch (attribute) {
    case M_PATH:
        random_path(g, pieces, sizeof pieces / sizeof pieces[0], to);
        break;
    case M_METHOD:
        set_text(to, PICK(g, methods));
        break;
    case M_HOST:
        set_text(to, PICK(g, hosts));
        break;
    case M_USER:
        set_text(to, PICK(g, users));
        break;
    case M_TIER:
        set_text(to, PICK(g, tiers));
        break;
    default:
        set_text(to, PICK(g, orgs));
        break;
    }
}

/* ---- rules ---- */

/* Most rules are about the path. */
static int random_attribute(struct oracle_random *g)
{
    return oracle_once_in(g, 3) ? M_PATH : (int)oracle_between(g, 0, M_ATTRIBUTES - 1);
}

static void random_condition(struct oracle_random *g, int attribute, struct matching_condition *c)
{
    c->attribute = attribute;
    c->n = oracle_once_in(g, 2) ? 1 : (unsigned)oracle_between(g, 1, 3);
    for (unsigned i = 0; i < c->n; i++) {
        c->values[i].spelling = (unsigned)oracle_between(g, 0, 7);
        if (attribute == M_IP) {
            random_network(g, &c->values[i]);
        } else {
            random_pattern(g, attribute, c->values[i].pattern);
        }
    }
}

/* Up to `most` conditions on different attributes. */
static void random_conditions(struct oracle_random *g, unsigned least, unsigned most,
                              struct matching_conditions *to)
{
    bool taken[M_ATTRIBUTES] = {false};
    unsigned n = (unsigned)oracle_between(g, least, most);
    to->n = 0;
    while (to->n < n) {
        int attribute = random_attribute(g);
        if (!taken[attribute]) {
            taken[attribute] = true;
            random_condition(g, attribute, &to->at[to->n++]);
        }
    }
}

static void random_key(struct oracle_random *g, struct matching_limit *limit)
{
    limit->parts = (unsigned)oracle_between(g, 0, 3);
    for (unsigned i = 0; i < limit->parts; i++) {
        struct matching_part *part = &limit->key[i];
        part->n = oracle_once_in(g, 2) ? 1 : (unsigned)oracle_between(g, 2, 3);
        for (unsigned k = 0; k < part->n; k++) {
            part->alternatives[k] = (int)oracle_between(g, 0, M_ATTRIBUTES - 1);
        }
    }
    static const unsigned v4[] = {0, 0, 8, 16, 31, 32};
    static const unsigned v6[] = {0, 0, 48, 64, 127, 128};
    limit->ipv4_prefix = PICK(g, v4);
    limit->ipv6_prefix = PICK(g, v6);
}

static void random_tiers(struct oracle_random *g, struct matching_limit *limit)
{
    static const char *const names[2][3] = {{"free", "pro", "gold"}, {"o1", "o2", "o3"}};
    bool org = oracle_once_in(g, 4);
    limit->tier_by = org ? M_ORG : M_TIER;
    limit->tiers_n = oracle_once_in(g, 2) ? (unsigned)oracle_between(g, 1, 3) : 0;
    for (unsigned i = 0; i < limit->tiers_n; i++) {
        set_text(limit->tiers[i].name, names[org][i]);
        limit->tiers[i].burst = (unsigned)oracle_between(g, 1, 4);
    }
    limit->tier_default = -1;
    if (limit->tiers_n > 0 && oracle_once_in(g, 2)) {
        limit->tier_default = (int)oracle_between(g, 0, limit->tiers_n - 1);
    }
}

static void random_limit(struct oracle_random *g, struct matching_limit *limit)
{
    random_conditions(g, oracle_once_in(g, 6) ? 0 : 1, 3, &limit->when);
    random_conditions(g, 0, oracle_once_in(g, 3) ? 2 : 0, &limit->unless);
    random_key(g, limit);
    random_tiers(g, limit);
    limit->burst = (unsigned)oracle_between(g, 1, 4);
    limit->group = (unsigned)oracle_between(g, 0, 3);
    limit->shadow = oracle_once_in(g, 5);
    limit->deny_missing = oracle_once_in(g, 12);
    limit->overrides = oracle_once_in(g, 5);
}

/* Lists are rare, because otherwise every request would be on one. */
static void random_list(struct oracle_random *g, struct matching_list *list)
{
    list->n = oracle_once_in(g, 3) ? (unsigned)oracle_between(g, 1, M_LIST) : 0;
    for (unsigned i = 0; i < list->n; i++) {
        random_conditions(g, 2, 3, &list->at[i]);
    }
}

static void random_request(struct oracle_random *g, struct matching_request *r)
{
    for (int i = 0; i < M_ATTRIBUTES; i++) {
        r->has[i] = !oracle_once_in(g, i == M_PATH ? 20 : 5);
        if (i != M_IP) {
            random_value(g, i, r->value[i]);
        }
    }
    r->ip = random_address(g);
    r->has_header = oracle_once_in(g, 2);
    random_value(g, M_TIER, r->header);
    r->spelling = oracle_next(g);
    r->peek = oracle_once_in(g, 8);
}

void matching_make(struct oracle_random *g, struct matching_world *world)
{
    memset(world, 0, sizeof *world);
    world->derives = oracle_once_in(g, 3);
    world->limits_n = (unsigned)oracle_between(g, 1, M_LIMITS);
    for (unsigned i = 0; i < world->limits_n; i++) {
        world->limits[i].id = i;
        random_limit(g, &world->limits[i]);
    }
    random_list(g, &world->block);
    random_list(g, &world->allow);
    world->requests_n = M_REQUESTS;
    for (unsigned i = 0; i < world->requests_n; i++) {
        random_request(g, &world->requests[i]);
    }
}
