/*
 * Decides which limits apply, and what they answer: looks at every limit in order, and has one line
 * for every sentence of the manual.
 */
#include <string.h>

#include "support/oracle/matching_world.h"

/* ---- patterns ---- */

/* '*' stands for any bytes, '\*' and '\\' for a star and a backslash. */
static bool name_matches(const char *p, const char *p_end, const char *t, const char *t_end)
{
    if (p == p_end) {
        return t == t_end;
    }
    if (*p == '*') {
        return name_matches(p + 1, p_end, t, t_end) ||
               (t < t_end && name_matches(p, p_end, t + 1, t_end));
    }
    if (*p == '\\' && p + 1 < p_end && (p[1] == '*' || p[1] == '\\')) {
        p++;
    }
    return t < t_end && *p == *t && name_matches(p + 1, p_end, t + 1, t_end);
}

/* Returns the end of the segment that begins after the slash at p. */
static const char *segment_end(const char *p)
{
    const char *slash = strchr(p + 1, '/');
    return slash != NULL ? slash : p + strlen(p);
}

/* Matches the remaining segments. Both are "" or begin with a slash. */
static bool segments_match(const char *p, const char *t)
{
    if (*p == 0) {
        return *t == 0;
    }
    const char *p_end = segment_end(p);
    if (p_end - p == 3 && strncmp(p, "/**", 3) == 0) {
        return segments_match(p_end, t) || (*t != 0 && segments_match(p, segment_end(t)));
    }
    return *t != 0 && name_matches(p + 1, p_end, t + 1, segment_end(t)) &&
           segments_match(p_end, segment_end(t));
}

static const char *without_root(const char *path)
{
    return strcmp(path, "/") == 0 ? "" : path;
}

/* ---- conditions ---- */

static bool in_network(const struct matching_address *a, const struct matching_value *v)
{
    if (a->v6 != v->network.v6) {
        return false;
    }
    for (unsigned bit = 0; bit < v->prefix; bit++) {
        if (((a->bytes[bit / 8] ^ v->network.bytes[bit / 8]) & 0x80 >> bit % 8) != 0) {
            return false;
        }
    }
    return true;
}

static bool text_matches(const char *pattern, const char *value)
{
    return name_matches(pattern, pattern + strlen(pattern), value, value + strlen(value));
}

static bool in_user_file(const char *user)
{
    for (unsigned i = 0; i < M_ROWS; i++) {
        if (text_matches(matching_user_lines[i], user)) {
            return true;
        }
    }
    return false;
}

static bool value_matches(const struct matching_request *r, int attribute,
                          const struct matching_value *v)
{
    const char *value = r->value[attribute];
    switch (attribute) {
    case M_IP:
        return in_network(&r->ip, v);
    case M_PATH:
        return segments_match(without_root(v->pattern), without_root(value));
    default:
        return strcmp(v->pattern, M_USER_FILE) == 0 ? in_user_file(value)
                                                    : text_matches(v->pattern, value);
    }
}

/* List items are ORed; an attribute that the request lacks has no value. */
static bool condition_holds(const struct matching_condition *c, const struct matching_request *r)
{
    for (unsigned i = 0; r->has[c->attribute] && i < c->n; i++) {
        if (value_matches(r, c->attribute, &c->values[i])) {
            return true;
        }
    }
    return false;
}

/* The keys of a condition are ANDed. */
static bool all_hold(const struct matching_conditions *c, const struct matching_request *r)
{
    for (unsigned i = 0; i < c->n; i++) {
        if (!condition_holds(&c->at[i], r)) {
            return false;
        }
    }
    return true;
}

static bool on_list(const struct matching_list *list, const struct matching_request *r)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (all_hold(&list->at[i], r)) {
            return true;
        }
    }
    return false;
}

static bool applies(const struct matching_limit *l, const struct matching_request *r)
{
    return all_hold(&l->when, r) && !(l->unless.n > 0 && all_hold(&l->unless, r));
}

/* ---- keys and tiers ---- */

/* A limit that applies to this request. */
struct match {
    const struct matching_limit *limit;
    struct matching_count *count;
    int tier;          /* -1: the limit's own numbers, or those of an override */
    unsigned override; /* 0: none */
    unsigned burst;
};

/* Returns the first alternative that the request has; -1 if there is none. */
static int alternative(const struct matching_part *part, const struct matching_request *r)
{
    for (unsigned i = 0; i < part->n; i++) {
        if (r->has[part->alternatives[i]]) {
            return part->alternatives[i];
        }
    }
    return -1;
}

static bool key_present(const struct matching_limit *l, const struct matching_request *r)
{
    for (unsigned i = 0; i < l->parts; i++) {
        if (alternative(&l->key[i], r) < 0) {
            return false;
        }
    }
    return true;
}

static int print_cut(char *to, size_t size, const struct matching_limit *l,
                     const struct matching_address *a)
{
    unsigned prefix = a->v6 ? (l->ipv6_prefix != 0 ? l->ipv6_prefix : 64)
                            : (l->ipv4_prefix != 0 ? l->ipv4_prefix : 32);
    size_t len = (size_t)snprintf(to, size, "%s:", a->v6 ? "v6" : "v4");
    for (unsigned bit = 0; bit < prefix; bit++) {
        to[len++] = (a->bytes[bit / 8] & 0x80 >> bit % 8) != 0 ? '1' : '0';
    }
    to[len] = 0;
    return (int)len;
}

/* Returns the tier that applies; -1 means the limit's own numbers. */
static int tier_of(const struct matching_limit *l, const struct matching_request *r, bool *unknown)
{
    *unknown = false;
    if (l->tiers_n == 0) {
        return -1;
    }
    for (unsigned i = 0; r->has[l->tier_by] && i < l->tiers_n; i++) {
        if (strcmp(l->tiers[i].name, r->value[l->tier_by]) == 0) {
            return (int)i;
        }
    }
    *unknown = r->has[l->tier_by];
    return l->tier_default;
}

/* Returns the row of a value; NULL if there is none. */
static const struct matching_row *row_of(const struct matching_row *rows, const char *value)
{
    for (unsigned i = 0; i < M_ROWS; i++) {
        if (strcmp(rows[i].value, value) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Writes limit, tier, and each part with the name of the attribute that was used. */
static void print_key(char *to, size_t size, const struct match *m,
                      const struct matching_request *r)
{
    const struct matching_limit *l = m->limit;
    size_t len = (size_t)snprintf(to, size, "l%u tier %d override %u", l->id, m->tier, m->override);
    for (unsigned i = 0; i < l->parts; i++) {
        int attribute = alternative(&l->key[i], r);
        len += (size_t)snprintf(to + len, size - len, " %s=", matching_names[attribute]);
        len += (size_t)(attribute == M_IP
                            ? print_cut(to + len, size - len, l, &r->ip)
                            : snprintf(to + len, size - len, "%zu:%s", strlen(r->value[attribute]),
                                       r->value[attribute]));
    }
}

static struct matching_count *count_of(struct matching_state *state, const char *key)
{
    for (unsigned i = 0; i < state->n; i++) {
        if (strcmp(state->counts[i].key, key) == 0) {
            return &state->counts[i];
        }
    }
    struct matching_count *c = &state->counts[state->n++];
    (void)snprintf(c->key, sizeof c->key, "%s", key);
    c->used = 0;
    return c;
}

/* ---- the answer ---- */

static struct match make_match(struct matching_state *state, const struct matching_limit *l,
                               const struct matching_request *r)
{
    char key[512];
    bool unknown = false;
    const struct matching_row *row = NULL;
    struct match m = {.limit = l, .tier = -1, .burst = l->burst};
    if (l->overrides && r->has[M_USER]) {
        row = row_of(matching_override_rows, r->value[M_USER]);
    }
    if (row != NULL) { /* an override beats a tier */
        m.burst = m.override = row->burst;
    } else {
        m.tier = tier_of(l, r, &unknown);
        m.burst = m.tier >= 0 ? l->tiers[m.tier].burst : l->burst;
    }
    print_key(key, sizeof key, &m, r);
    m.count = count_of(state, key);
    state->tier_unknown += unknown;
    return m;
}

static void name_limit(const struct match *m, struct matching_answer *a)
{
    (void)snprintf(a->limit, sizeof a->limit, "l%u", m->limit->id);
    (void)snprintf(a->tier, sizeof a->tier, "%s",
                   m->tier >= 0 ? m->limit->tiers[m->tier].name : "");
    a->reason = WEIR_REASON_LIMIT;
}

/* Charges all limits or none. The first one that has nothing left decides; otherwise the one with
 * the least remaining. */
static void decide(const struct match *matches, unsigned n, bool peek, struct matching_answer *a)
{
    const struct match *binding = NULL;
    unsigned charge = peek ? 0 : 1;
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < n; i++) {
        if (matches[i].count->used >= matches[i].burst) {
            name_limit(&matches[i], a);
            a->verdict = WEIR_DENY;
            a->remaining = 0;
            return;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        matches[i].count->used += charge;
        uint64_t left = matches[i].burst - matches[i].count->used;
        if (left < least) {
            least = left;
            binding = &matches[i];
        }
    }
    if (binding != NULL) {
        name_limit(binding, a);
        a->remaining = least;
    }
}

/* Shadow limits are decided separately, and never deny. */
static void decide_shadow(const struct match *m, bool peek, struct matching_answer *a)
{
    if (m->count->used < m->burst) {
        m->count->used += peek ? 0 : 1;
        return;
    }
    a->reason = WEIR_REASON_SHADOW;
    if (a->shadow_denied++ == 0) {
        (void)snprintf(a->shadow, sizeof a->shadow, "l%u", m->limit->id);
    }
}

/* Only the first matching limit of a group counts. Shadow limits have groups of their own. */
struct groups {
    bool taken[2][4];
};

static bool counts(const struct matching_limit *l, const struct matching_request *r,
                   const struct groups *groups)
{
    return applies(l, r) && !(l->group != 0 && groups->taken[l->shadow][l->group]);
}

static void ask_limits(const struct matching_world *world, const struct matching_request *r,
                       struct matching_state *state, struct matching_answer *a)
{
    struct groups groups = {0};
    const struct matching_limit *chosen[M_LIMITS];
    struct match matches[M_LIMITS];
    unsigned n = 0;
    for (unsigned i = 0; i < world->limits_n; i++) {
        const struct matching_limit *l = &world->limits[i];
        if (!counts(l, r, &groups)) {
            continue;
        }
        if (!key_present(l, r)) { /* the limit is ignored, unless on_missing is deny */
            a->missing++;
            if (l->deny_missing && !l->shadow && a->reason != WEIR_REASON_MISSING) {
                a->reason = WEIR_REASON_MISSING;
                a->verdict = WEIR_NEVER;
                (void)snprintf(a->limit, sizeof a->limit, "l%u", l->id);
            }
            continue;
        }
        groups.taken[l->shadow][l->group] = true;
        chosen[n++] = l;
        a->applied += !l->shadow;
    }
    state->missing += a->missing;
    if (a->reason == WEIR_REASON_MISSING) {
        return;
    }
    unsigned enforced = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!chosen[i]->shadow) {
            matches[enforced++] = make_match(state, chosen[i], r);
        }
    }
    state->unmatched += enforced == 0;
    decide(matches, enforced, r->peek, a);
    for (unsigned i = 0; i < n && a->verdict == WEIR_ALLOW; i++) {
        if (chosen[i]->shadow) {
            struct match m = make_match(state, chosen[i], r);
            decide_shadow(&m, r->peek, a);
        }
    }
    state->shadow_denied += a->shadow_denied > 0;
}

/* The first source that is present wins. A tier that the request carries is never replaced. */
static void derive_tier(struct matching_request *r)
{
    const struct matching_row *row = NULL;
    if (r->has[M_TIER]) {
        return;
    }
    if (r->has_header) {
        r->has[M_TIER] = true;
        (void)snprintf(r->value[M_TIER], M_TEXT, "%s", r->header);
    } else if (r->has[M_USER] && (row = row_of(matching_tier_rows, r->value[M_USER])) != NULL) {
        r->has[M_TIER] = true;
        (void)snprintf(r->value[M_TIER], M_TEXT, "%s", row->answer);
    }
}

/* Block beats allow beats limits. */
void matching_ask(const struct matching_world *world, const struct matching_request *asked,
                  struct matching_state *state, struct matching_answer *answer)
{
    struct matching_request derived = *asked;
    const struct matching_request *request = &derived;
    if (world->derives) {
        derive_tier(&derived);
    }
    *answer = (struct matching_answer){.verdict = WEIR_ALLOW, .reason = WEIR_REASON_UNMATCHED};
    if (on_list(&world->block, request)) {
        answer->verdict = WEIR_NEVER;
        answer->reason = WEIR_REASON_BLOCK_LIST;
        state->block_listed++;
    } else if (on_list(&world->allow, request)) {
        answer->reason = WEIR_REASON_ALLOW_LIST;
        state->allow_listed++;
    } else {
        ask_limits(world, request, state, answer);
    }
}
