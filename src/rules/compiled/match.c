/* Finds the limits that apply to a request. */
#include "base/atomic.h"
#include "base/error.h"
#include "rules/compiled/ruleset.h"
#include "rules/value/pattern.h"

static bool few_has(const unsigned char *few, struct weir_text value)
{
    for (; *few != 0; few += 1 + *few) {
        if (*few == value.len && memcmp(few + 1, value.at, value.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool test_holds(const struct test *test, const struct request *request)
{
    if (!request_has(request, test->attribute)) {
        return false;
    }
    struct weir_text value = request->value[test->attribute];
    if (test->attribute == NUMBER_IP) {
        return test->networks != NULL && cidr_set_has(test->networks, &request->ip);
    }
    if (test->few != NULL ? few_has(test->few, value) : text_map_find(test->exact, value) >= 0) {
        return true;
    }
    bool path = test->attribute == NUMBER_PATH;
    for (size_t i = 0; i < test->patterns_count; i++) {
        if (path ? path_pattern_match(test->patterns[i], value)
                 : segment_match(test->patterns[i], value)) {
            return true;
        }
    }
    return false;
}

bool tests_hold(const struct tests *tests, const struct request *request)
{
    for (size_t i = 0; i < tests->count; i++) {
        if (!test_holds(&tests->at[i], request)) {
            return false;
        }
    }
    return true;
}

static bool has_group(const struct rule *const *list, size_t n, unsigned group)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i]->group == group) {
            return true;
        }
    }
    return false;
}

/*
 * Only the first matching limit of a group applies. Enforced limits and shadow limits of the rule
 * file do not hide each other, because their groups have different numbers. A limit that is
 * switched to shadow by hand keeps its place in its group, so both lists are searched.
 */
static bool group_taken(const struct matches *matches, unsigned group)
{
    return group != 0 && (has_group(matches->enforced, matches->enforced_count, group) ||
                          has_group(matches->shadow, matches->shadow_count, group));
}

/*
 * Counts a missing key; with `uncovered`, that no other limit applies in the place of the limit. A
 * set that is only for looking at rules has no holders.
 */
static void count_missing(const struct rule *rule, const struct request *request, bool uncovered)
{
    bool unknown;
    struct holder *holder = rule_variant(rule, request, &unknown)->holder;
    if (holder != NULL) {
        count_shared(uncovered ? &holder->uncovered : &holder->missing, 1);
    }
}

/* Returns whether `when` has a condition about an attribute that cannot be read, and all of its
 * other conditions hold. */
static bool when_is_unread(const struct rule *rule, const struct request *request)
{
    bool unread = request_lacks(request, rule->indexed_attribute);
    for (size_t i = 0; i < rule->when.count; i++) {
        const struct test *test = &rule->when.at[i];
        if (request_lacks(request, test->attribute)) {
            unread = true;
        } else if (!test_holds(test, request)) {
            return false;
        }
    }
    return unread;
}

/* Returns whether a candidate applies, after those before it were entered into `matches`. */
static inline enum fit fit_of(const struct rule *rule, const struct request *request,
                              const struct matches *matches)
{
    bool unread = request->unread != 0 && when_is_unread(rule, request);
    if (!unread && !tests_hold(&rule->when, request)) {
        return FIT_WHEN;
    }
    if (list_find(rule->unless, rule->unless_count, request) < rule->unless_count) {
        return FIT_UNLESS;
    }
    if (group_taken(matches, rule->group)) {
        return FIT_GROUP;
    }
    return unread || !key_is_there(rule, request) ? FIT_MISSING : FIT_APPLIES;
}

/* Enters a candidate that applies, or whose key is missing, into `matches`. */
static inline int enter(const struct rule *rule, enum fit fit, struct matches *matches,
                        struct weir_error *error)
{
    bool shadow = rule->shadow;
    const struct rule **list = shadow ? matches->shadow : matches->enforced;
    size_t *count = shadow ? &matches->shadow_count : &matches->enforced_count;
    if (fit == FIT_MISSING) {
        matches->missing++;
        if (rule->deny_missing && !shadow && matches->refused == NULL) {
            matches->refused = rule;
        }
        return 0;
    }
    if (*count == MATCHES_MAX && shadow) {
        matches->shadow_dropped++; /* a shadow limit that is left out does not stop the request */
        return 0;
    }
    if (*count == MATCHES_MAX) {
        return fail(error, WEIR_EINVAL,
                    "too many limits apply to this request, expected at most %d", MATCHES_MAX);
    }
    list[(*count)++] = rule;
    matches->remote |= rule->mode != REMOTE_LOCAL;
    return 0;
}

static void find_candidates(const struct ruleset *set, const struct request *request,
                            struct index_found *candidates)
{
    candidates->words = set->always.words;
    for (uint64_t left = candidates->words; left != 0; left &= left - 1) {
        unsigned word = (unsigned)__builtin_ctzll(left);
        candidates->bits[word] = set->always.bits[word];
    }
    if (request_has(request, NUMBER_PATH)) {
        index_find_path(set->index, request->value[NUMBER_PATH], candidates);
    }
    for (uint64_t left = set->indexed & request->present; left != 0; left &= left - 1) {
        unsigned attribute = (unsigned)__builtin_ctzll(left);
        index_find_value(set->index, attribute, request->value[attribute], candidates);
    }
    for (size_t i = 0; request->unread != 0 && i < set->rules_count; i++) {
        if (request_lacks(request, set->rules[i].indexed_attribute)) {
            index_found_set(candidates, (unsigned)i);
        }
    }
}

static int consider(const struct rule *rule, const struct request *request, struct matches *matches,
                    struct weir_error *error)
{
    enum fit fit = fit_of(rule, request, matches);
    if (fit != FIT_APPLIES && fit != FIT_MISSING) {
        return 0;
    }
    if (fit == FIT_MISSING) {
        count_missing(rule, request, false);
    }
    return enter(rule, fit, matches, error);
}

static void matches_init(struct matches *matches)
{
    matches->enforced_count = 0;
    matches->shadow_count = 0;
    matches->remote = false;
    matches->refused = NULL;
    matches->missing = 0;
    matches->uncovered = 0;
    matches->shadow_dropped = 0;
}

/* Returns the limit of a list that replaces `rule`; NULL: none. */
static const struct rule *replacing(const struct rule *const *list, size_t n,
                                    const struct rule *rule)
{
    for (size_t i = 0; i < n; i++) {
        if (limit_replaces(list[i]->config, rule->config)) {
            return list[i];
        }
    }
    return NULL;
}

static const struct rule *replaced_by(const struct matches *m, const struct rule *rule)
{
    const struct rule *by = replacing(m->enforced, m->enforced_count, rule);
    return by != NULL ? by : replacing(m->shadow, m->shadow_count, rule);
}

static size_t keep_others(const struct matches *all, const struct rule *const *from, size_t n,
                          const struct rule **to)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (replaced_by(all, from[i]) == NULL) {
            to[kept++] = from[i];
        }
    }
    return kept;
}

/* Takes limits out that others replace: all at once, so that their order does not matter. */
static __attribute__((noinline)) void drop_replaced(struct matches *matches)
{
    struct matches all = *matches;
    matches->enforced_count =
        keep_others(&all, all.enforced, all.enforced_count, matches->enforced);
    matches->shadow_count = keep_others(&all, all.shadow, all.shadow_count, matches->shadow);
}

/*
 * Finds the limits that were skipped and in whose place no other applies. By now all limits that
 * apply are known, so that a skipped limit whose group went to a later one no longer fits as
 * FIT_MISSING.
 */
static __attribute__((noinline)) void find_uncovered(const struct ruleset *set,
                                                     const struct request *request,
                                                     const struct index_found *candidates,
                                                     struct matches *matches)
{
    for (uint64_t words = candidates->words; words != 0; words &= words - 1) {
        unsigned word = (unsigned)__builtin_ctzll(words);
        for (uint64_t left = candidates->bits[word]; left != 0; left &= left - 1) {
            const struct rule *rule = &set->rules[word * 64 + (unsigned)__builtin_ctzll(left)];
            if (fit_of(rule, request, matches) == FIT_MISSING &&
                (!set->replaces || replaced_by(matches, rule) == NULL)) {
                count_missing(rule, request, true);
                matches->uncovered += !rule->shadow;
            }
        }
    }
}

int ruleset_match(const struct ruleset *set, const struct request *request, struct matches *matches,
                  struct weir_error *error)
{
    struct index_found candidates; /* most of it is neither written nor read */
    matches_init(matches);
    find_candidates(set, request, &candidates);
    for (uint64_t words = candidates.words; words != 0; words &= words - 1) {
        unsigned word = (unsigned)__builtin_ctzll(words);
        for (uint64_t left = candidates.bits[word]; left != 0; left &= left - 1) {
            const struct rule *rule = &set->rules[word * 64 + (unsigned)__builtin_ctzll(left)];
            int e = consider(rule, request, matches, error);
            if (e != 0) {
                return e;
            }
        }
    }
    if (matches->missing > 0 && matches->refused == NULL) {
        find_uncovered(set, request, &candidates, matches);
    }
    if (set->replaces) {
        drop_replaced(matches);
    }
    return 0;
}

/* ---- why ---- */

static bool is_candidate(const struct index_found *candidates, size_t rule)
{
    return (candidates->words >> rule / 64 & 1) != 0 &&
           (candidates->bits[rule / 64] >> rule % 64 & 1) != 0;
}

/* Returns the number of the first condition of `when` that does not hold for a candidate. The
 * tests are the conditions in their order, without the one that the index answers. */
static size_t failing_condition(const struct rule *rule, const struct request *request)
{
    size_t i = 0;
    while (i < rule->when.count && test_holds(&rule->when.at[i], request)) {
        i++;
    }
    return i + (i >= rule->indexed);
}

/* Returns the limit that has taken the group. */
static const struct rule *first_of_group(const struct matches *matches, unsigned group)
{
    for (size_t i = 0; i < matches->enforced_count; i++) {
        if (matches->enforced[i]->group == group) {
            return matches->enforced[i];
        }
    }
    size_t i = 0;
    while (matches->shadow[i]->group != group) { /* it is there: group_taken() */
        i++;
    }
    return matches->shadow[i];
}

static int explain_candidate(const struct rule *rule, const struct request *request,
                             struct matches *matches, struct rule_fit *fit,
                             struct weir_error *error)
{
    unsigned dropped = matches->shadow_dropped;
    fit->fit = fit_of(rule, request, matches);
    if (fit->fit == FIT_WHEN) {
        fit->condition = failing_condition(rule, request);
    } else if (fit->fit == FIT_GROUP) {
        fit->other = first_of_group(matches, rule->group);
    }
    if (fit->fit != FIT_APPLIES && fit->fit != FIT_MISSING) {
        return 0;
    }
    int e = enter(rule, fit->fit, matches, error);
    fit->fit = matches->shadow_dropped > dropped ? FIT_DROPPED : fit->fit;
    return e;
}

int ruleset_explain(const struct ruleset *set, const struct request *request,
                    struct matches *matches, struct rule_fit *fits, struct weir_error *error)
{
    struct index_found candidates;
    int e = 0;
    matches_init(matches);
    find_candidates(set, request, &candidates);
    for (size_t i = 0; e == 0 && i < set->rules_count; i++) {
        fits[i] = (struct rule_fit){.fit = FIT_WHEN, .condition = set->rules[i].indexed};
        if (is_candidate(&candidates, i)) {
            e = explain_candidate(&set->rules[i], request, matches, &fits[i], error);
        }
    }
    for (size_t i = 0; e == 0 && set->replaces && i < set->rules_count; i++) {
        const struct rule *by = replaced_by(matches, &set->rules[i]);
        if (fits[i].fit == FIT_APPLIES && by != NULL) {
            fits[i] = (struct rule_fit){.fit = FIT_REPLACED, .other = by};
        }
    }
    if (e == 0 && set->replaces) {
        drop_replaced(matches);
    }
    return e;
}
