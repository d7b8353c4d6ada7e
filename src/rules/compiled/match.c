/* Finds the limits that apply to a request. */
#include "base/atomic.h"
#include "base/error.h"
#include "rules/compiled/ruleset.h"
#include "rules/value/pattern.h"

static bool few_has(const unsigned char *few, struct text value)
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
    struct text value = request->value[test->attribute];
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

static bool tests_hold(const struct tests *tests, const struct request *request)
{
    for (size_t i = 0; i < tests->count; i++) {
        if (!test_holds(&tests->at[i], request)) {
            return false;
        }
    }
    return true;
}

size_t list_find(const struct tests *entries, size_t n, const struct request *request)
{
    size_t i = 0;
    while (i < n && !tests_hold(&entries[i], request)) {
        i++;
    }
    return i;
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

/* Counts a missing key. A set that is only for looking at rules has no holders. */
static void count_missing(const struct rule *rule, const struct request *request)
{
    bool unknown;
    struct holder *holder = rule_variant(rule, request, &unknown)->holder;
    if (holder != NULL) {
        count_shared(&holder->missing, 1);
    }
}

static int consider(const struct rule *rule, const struct request *request, struct matches *matches,
                    struct weir_error *error)
{
    bool shadow = rule->shadow;
    const struct rule **list = shadow ? matches->shadow : matches->enforced;
    size_t *count = shadow ? &matches->shadow_count : &matches->enforced_count;
    if (!tests_hold(&rule->when, request) ||
        (rule->unless.count > 0 && tests_hold(&rule->unless, request)) ||
        group_taken(matches, rule->group)) {
        return 0;
    }
    if (!key_is_there(rule, request)) {
        matches->missing++;
        count_missing(rule, request);
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
}

int ruleset_match(const struct ruleset *set, const struct request *request, struct matches *matches,
                  struct weir_error *error)
{
    struct index_found candidates; /* most of it is neither written nor read */
    matches->enforced_count = 0;
    matches->shadow_count = 0;
    matches->refused = NULL;
    matches->missing = 0;
    matches->shadow_dropped = 0;
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
    return 0;
}
