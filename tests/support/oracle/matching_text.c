/* Writes the rule file as text, and requests in the many notations that clients and attackers
 * use. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "support/oracle/matching_world.h"

const char *const matching_names[M_ATTRIBUTES] = {"path", "method", "host", "ip",
                                                  "user", "tier",   "org"};

/* ---- files ---- */

const struct matching_row matching_tier_rows[M_ROWS] = {
    {"u1", "pro", 0}, {"1.2.3.4", "gold", 0}, {"a*b", "other", 0}};
const struct matching_row matching_override_rows[M_ROWS] = {
    {"u1", "1/week", 2}, {"o1", "1/week", 5}, {"axb", "1/week", 2}};
const char *const matching_user_lines[M_ROWS] = {"u1", "axb", "1.2.3.*"};

static FILE *create(const char *folder, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "we");
    if (out == NULL) {
        perror(path);
        abort();
    }
    return out;
}

void matching_write_files(const char *folder)
{
    FILE *tiers = create(folder, "tiers.csv");
    FILE *overrides = create(folder, "overrides.csv");
    FILE *users = create(folder, "users.txt");
    (void)fprintf(overrides, "user,rate,burst\r\n");
    (void)fprintf(users, "# some users\n\n");
    for (unsigned i = 0; i < M_ROWS; i++) {
        const struct matching_row *t = &matching_tier_rows[i];
        const struct matching_row *o = &matching_override_rows[i];
        (void)fprintf(tiers, "\"%s\", %s\n", t->value, t->answer);
        (void)fprintf(overrides, "%s,%s,%u\r\n", o->value, o->answer, o->burst);
        (void)fprintf(users, "  %s\n", matching_user_lines[i]);
    }
    (void)fclose(tiers);
    (void)fclose(overrides);
    (void)fclose(users);
}

/* ---- addresses ---- */

static unsigned pair_at(const struct matching_address *a, unsigned i)
{
    return (unsigned)a->bytes[i] << 8 | a->bytes[i + 1];
}

static void print_v6(char *to, size_t size, const struct matching_address *a, unsigned spelling)
{
    size_t len = 0;
    if (spelling % 4 == 0) {
        (void)inet_ntop(AF_INET6, a->bytes, to, (socklen_t)size);
        return;
    }
    for (unsigned i = 0; i < 16; i += 2) {
        const char *colon = i > 0 ? ":" : "";
        unsigned pair = pair_at(a, i);
        len += (size_t)(spelling % 4 == 1   ? snprintf(to + len, size - len, "%s%04x", colon, pair)
                        : spelling % 4 == 2 ? snprintf(to + len, size - len, "%s%X", colon, pair)
                                            : snprintf(to + len, size - len, "%s%x", colon, pair));
    }
}

/* Prints an IPv4 address, on its own or inside an IPv6 one. */
static void print_v4(char *to, size_t size, const struct matching_address *a, unsigned spelling)
{
    char dotted[32];
    unsigned high = pair_at(a, 0);
    unsigned low = pair_at(a, 2);
    (void)inet_ntop(AF_INET, a->bytes, dotted, sizeof dotted);
    switch (spelling % 8) {
    case 0:
        (void)snprintf(to, size, "::ffff:%s", dotted);
        break;
    case 1:
        (void)snprintf(to, size, "::FFFF:%x:%x", high, low);
        break;
    case 2:
        (void)snprintf(to, size, "64:ff9b::%x:%x", high, low);
        break;
    case 3:
        (void)snprintf(to, size, "0:0:0:0:0:ffff:%04X:%04X", high, low);
        break;
    default:
        (void)snprintf(to, size, "%s", dotted);
        break;
    }
}

static void spell_address(char *to, const struct matching_address *a, uint64_t spelling)
{
    char bare[64];
    if (a->v6) {
        print_v6(bare, sizeof bare, a, (unsigned)spelling);
    } else {
        print_v4(bare, sizeof bare, a, (unsigned)spelling);
    }
    bool colons = strchr(bare, ':') != NULL;
    switch (spelling >> 8 & 3) {
    case 0:
        (void)snprintf(to, M_SPELLED, colons ? "[%s]:443" : "%s:443", bare);
        break;
    case 1:
        (void)snprintf(to, M_SPELLED, colons ? "[%s]" : "%s", bare);
        break;
    default:
        (void)snprintf(to, M_SPELLED, "%s", bare);
        break;
    }
}

/* ---- the rule file ---- */

static void print_network(FILE *out, const struct matching_value *v)
{
    char text[64];
    if (v->network.v6) {
        print_v6(text, sizeof text, &v->network, v->spelling);
        (void)fprintf(out, "'%s/%u'", text, v->prefix);
        return;
    }
    (void)inet_ntop(AF_INET, v->network.bytes, text, sizeof text);
    if (v->prefix == 32 && v->spelling % 2 == 0) {
        (void)fprintf(out, "%s", text);
    } else if (v->spelling % 4 == 1) {
        (void)fprintf(out, "'::ffff:%s/%u'", text, 96 + v->prefix);
    } else {
        (void)fprintf(out, "%s/%u", text, v->prefix);
    }
}

/* Prints methods and hosts in either case. */
static void print_value(FILE *out, int attribute, const struct matching_value *v)
{
    bool other_case = v->spelling % 2 == 0;
    if (attribute == M_IP) {
        print_network(out, v);
        return;
    }
    (void)fputc('\'', out);
    for (const char *p = v->pattern; *p != 0; p++) {
        int c = (unsigned char)*p;
        c = attribute == M_METHOD && other_case ? tolower(c) : c;
        (void)fputc(attribute == M_HOST && other_case ? toupper(c) : c, out);
    }
    (void)fputc('\'', out);
}

static void print_conditions(FILE *out, const struct matching_conditions *c)
{
    (void)fputc('{', out);
    for (unsigned i = 0; i < c->n; i++) {
        const struct matching_condition *one = &c->at[i];
        (void)fprintf(out, "%s%s: [", i > 0 ? ", " : "", matching_names[one->attribute]);
        for (unsigned k = 0; k < one->n; k++) {
            (void)fprintf(out, "%s", k > 0 ? ", " : "");
            print_value(out, one->attribute, &one->values[k]);
        }
        (void)fputc(']', out);
    }
    (void)fputc('}', out);
}

static void print_list(FILE *out, const char *name, const struct matching_list *list)
{
    if (list->n > 0) {
        (void)fprintf(out, "%s:\n", name);
    }
    for (unsigned i = 0; i < list->n; i++) {
        (void)fprintf(out, "- ");
        print_conditions(out, &list->at[i]);
        (void)fputc('\n', out);
    }
}

static void print_key(FILE *out, const struct matching_limit *l)
{
    (void)fprintf(out, "  key: [");
    for (unsigned i = 0; i < l->parts; i++) {
        (void)fprintf(out, "%s", i > 0 ? ", " : "");
        for (unsigned k = 0; k < l->key[i].n; k++) {
            (void)fprintf(out, "%s%s", k > 0 ? "|" : "", matching_names[l->key[i].alternatives[k]]);
        }
    }
    (void)fprintf(out, "]\n");
}

static void print_tiers(FILE *out, const struct matching_limit *l)
{
    if (l->tiers_n == 0) {
        return;
    }
    (void)fprintf(out, "  tiers: {by: %s", matching_names[l->tier_by]);
    if (l->tier_default >= 0) {
        (void)fprintf(out, ", default: %s", l->tiers[l->tier_default].name);
    }
    for (unsigned i = 0; i < l->tiers_n; i++) {
        (void)fprintf(out, ", %s: {burst: %u}", l->tiers[i].name, l->tiers[i].burst);
    }
    (void)fprintf(out, "}\n");
}

static void print_limit(FILE *out, const struct matching_limit *l)
{
    (void)fprintf(out, "- name: l%u\n  rate: 1/week\n  burst: %u\n  max_keys: 64\n", l->id,
                  l->burst);
    if (l->when.n > 0) {
        (void)fprintf(out, "  when: ");
        print_conditions(out, &l->when);
        (void)fputc('\n', out);
    }
    if (l->unless.n > 0) {
        (void)fprintf(out, "  unless: ");
        print_conditions(out, &l->unless);
        (void)fputc('\n', out);
    }
    print_key(out, l);
    print_tiers(out, l);
    (void)fprintf(out, "%s", l->overrides ? "  overrides: {by: user, file: overrides.csv}\n" : "");
    if (l->group > 0) {
        (void)fprintf(out, "  group: g%u\n", l->group);
    }
    if (l->ipv4_prefix > 0) {
        (void)fprintf(out, "  ipv4_prefix: %u\n", l->ipv4_prefix);
    }
    if (l->ipv6_prefix > 0) {
        (void)fprintf(out, "  ipv6_prefix: %u\n", l->ipv6_prefix);
    }
    (void)fprintf(out, "%s%s", l->shadow ? "  shadow: true\n" : "",
                  l->deny_missing ? "  on_missing: deny\n" : "");
}

void matching_print(FILE *out, const struct matching_world *world)
{
    if (world->derives) {
        (void)fprintf(out, "attributes: {tier: ['header:X-Tier', 'file:tiers.csv by user'], "
                           "user: request, org: request}\n");
    }
    print_list(out, "block", &world->block);
    print_list(out, "allow", &world->allow);
    (void)fprintf(out, "limits:%s\n", world->limits_n == 0 ? " []" : "");
    for (unsigned i = 0; i < world->limits_n; i++) {
        print_limit(out, &world->limits[i]);
    }
}

/* ---- requests ---- */

/* Takes the bits of the spelling one by one. */
struct choices {
    uint64_t bits;
};

static bool choose(struct choices *c, unsigned one_in)
{
    c->bits = c->bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (c->bits >> 33) % one_in == 0;
}

static size_t add(char *to, size_t len, const char *text)
{
    return len + (size_t)snprintf(to + len, M_SPELLED - len, "%s", text);
}

/* Adds one letter, plain or encoded. */
static size_t add_letter(char *to, size_t len, char letter, struct choices *c)
{
    char encoded[4];
    (void)snprintf(encoded, sizeof encoded, "%%%02X", (unsigned char)letter);
    char plain[2] = {letter, 0};
    return add(to, len, choose(c, 6) ? encoded : plain);
}

static void spell_path(char *to, const char *path, uint64_t spelling)
{
    struct choices c = {spelling};
    bool dots = choose(&c, 2); /* a path with dot segments and an encoded slash would be refused */
    size_t len = choose(&c, 8) ? add(to, 0, "http://host.example") : 0;
    for (const char *p = path; *p != 0; p++) {
        if (*p != '/') {
            len = add_letter(to, len, *p, &c);
            continue;
        }
        /* Parameters end only at a slash that is not encoded. */
        if (p > path && !dots && choose(&c, 6)) {
            len = add(to, len, choose(&c, 2) ? "%2F" : "%2f");
        } else {
            len = p > path && choose(&c, 8) ? add(to, len, ";v=1") : len;
            len = add(to, len, choose(&c, 6) ? "//" : "/");
        }
        if (dots && choose(&c, 6)) {
            len = add(to, len, choose(&c, 2) ? "./" : "zz/../");
        }
    }
    len = choose(&c, 6) ? add(to, len, "/") : len;
    len = choose(&c, 6) ? add(to, len, "?a=/x") : len;
    len = choose(&c, 8) ? add(to, len, "#f") : len;
    to[len] = 0;
}

static void spell_name(char *to, const char *name, int (*change)(int), const char *behind)
{
    size_t len = 0;
    for (; *name != 0; name++) {
        to[len++] = (char)(change != NULL ? change((unsigned char)*name) : *name);
    }
    (void)snprintf(to + len, M_SPELLED - len, "%s", behind);
}

static void spell_value(const struct matching_request *r, int attribute, char *to)
{
    static const char *const behind[] = {"", ":80", ".", ".:8443"};
    uint64_t bits = r->spelling >> 7 * attribute;
    switch (attribute) {
    case M_PATH:
        spell_path(to, r->value[M_PATH], r->spelling);
        break;
    case M_METHOD:
        spell_name(to, r->value[M_METHOD], bits % 2 == 0 ? tolower : NULL, "");
        break;
    case M_HOST:
        spell_name(to, r->value[M_HOST], bits % 2 == 0 ? toupper : NULL, behind[bits >> 1 & 3]);
        break;
    case M_IP:
        spell_address(to, &r->ip, bits);
        break;
    default:
        spell_name(to, r->value[attribute], NULL, "");
        break;
    }
}

static void add_attribute(struct matching_spelled *out, const char *name)
{
    const char *value = out->values[out->n];
    out->attributes[out->n++] =
        (struct weir_rules_attribute){name, strlen(name), value, strlen(value)};
}

/* A missing attribute is left out or empty. There may be an attribute that no rule names. The order
 * varies. */
void matching_spell(const struct matching_request *request, struct matching_spelled *out)
{
    struct choices c = {~request->spelling};
    unsigned first = (unsigned)(request->spelling % M_ATTRIBUTES);
    out->n = 0;
    for (unsigned i = 0; i < M_ATTRIBUTES; i++) {
        int attribute = (int)((first + i) % M_ATTRIBUTES);
        out->values[out->n][0] = 0;
        if (request->has[attribute]) {
            spell_value(request, attribute, out->values[out->n]);
            add_attribute(out, matching_names[attribute]);
        } else if (choose(&c, 2)) {
            add_attribute(out, matching_names[attribute]);
        }
    }
    if (request->has_header) {
        (void)snprintf(out->values[out->n], M_SPELLED, "%s", request->header);
        add_attribute(out, choose(&c, 2) ? "header:X-Tier" : "header:x-tIER");
    }
    if (choose(&c, 2)) {
        (void)snprintf(out->values[out->n], M_SPELLED, "blue");
        add_attribute(out, "colour");
    }
}

void matching_print_request(FILE *out, const struct matching_request *request)
{
    struct matching_spelled spelled;
    matching_spell(request, &spelled);
    (void)fprintf(out, "%s", request->peek ? "peek" : "ask ");
    for (unsigned i = 0; i < spelled.n; i++) {
        (void)fprintf(out, " %s='%s'", spelled.attributes[i].name, spelled.values[i]);
    }
    (void)fputc('\n', out);
}
