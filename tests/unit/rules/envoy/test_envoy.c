/* Files of Envoy's reference rate limit server, as limits of weir's own format. */
#include <stdio.h>
#include <stdlib.h>

#include "rules/envoy/envoy.h"
#include "rules/file/config.h"
#include "support/engine/unit_limiter.h"
#include "support/rules/loading.h"

/* The limit of a descriptor, in one line. */
#define LIMIT "rate_limit: {unit: minute, requests_per_unit: 5}"
#define FILE_OF(descriptors) "domain: d\ndescriptors:\n" descriptors

/* Returns the value of a key of the n-th limit, as `weir config show` prints it, "" if it has none.
 * Valid until the next call. */
static const char *shown(const char *yaml, unsigned n, const char *key)
{
    static char value[2000];
    char begin[40];
    char *all = loading_show_of(yaml);
    char *limit = strstr(all, "\n  - name: ");
    for (unsigned i = 0; i < n && limit != NULL; i++) {
        limit = strstr(limit + 1, "\n  - name: ");
    }
    assert_non_null(limit);
    char *end = strstr(limit + 1, "\n  - name: ");
    if (end != NULL) {
        *end = 0;
    }
    (void)snprintf(begin, sizeof begin,
                   strcmp(key, "name") == 0 ? "\n  - %s: " : "\n    %s: ", key);
    const char *at = strstr(limit, begin);
    size_t len = at != NULL ? strcspn(at + strlen(begin), "\n") : 0;
    (void)snprintf(value, sizeof value, "%.*s", (int)len, at != NULL ? at + strlen(begin) : "");
    free(all);
    return value;
}

/* ---- conditions and keys ---- */

static void an_entry_with_a_value_is_a_condition_and_one_without_is_counted(void **state)
{
    static const char yaml[] = FILE_OF("  - {key: a, value: x, " LIMIT "}\n"
                                       "  - {key: b, " LIMIT "}\n");
    assert_string_equal(shown(yaml, 0, "when"), "{value_1: [x], descriptor: [a], domain: [d]}");
    assert_string_equal(shown(yaml, 0, "key"), "[]");
    assert_string_equal(shown(yaml, 0, "expose"), "true");
    assert_string_equal(shown(yaml, 0, "unless"), "");
    assert_string_equal(shown(yaml, 1, "when"), "{descriptor: [b], domain: [d]}");
    assert_string_equal(shown(yaml, 1, "key"), "[value_1]");
}

static void descriptors_below_others_are_one_limit_for_the_whole_way(void **state)
{
    static const char yaml[] =
        FILE_OF("  - key: a\n"
                "    value: x\n"
                "    descriptors:\n"
                "      - key: b\n"
                "        descriptors: [{key: b, value: 'p*', share_threshold: true, " LIMIT "},\n"
                "                      {key: b, value: 'q*', " LIMIT "}]\n");
    assert_string_equal(shown(yaml, 0, "when"),
                        "{value_1: [x], value_3: ['p*'], descriptor: [a/b/b], domain: [d]}");
    assert_string_equal(shown(yaml, 0, "key"), "[value_2]");
    assert_string_equal(shown(yaml, 1, "key"), "[value_2, value_3]");
    assert_string_equal(shown(yaml, 1, "unless"), "{value_3: ['p*']}");
}

static void values_that_lead_elsewhere_are_excluded_at_each_level(void **state)
{
    static const char yaml[] = FILE_OF("  - {key: a, value: x}\n"
                                       "  - {key: z, value: y}\n"
                                       "  - {key: a, value: 'w*'}\n"
                                       "  - key: a\n"
                                       "    descriptors:\n"
                                       "      - {key: b, value: v}\n"
                                       "      - {key: b, " LIMIT "}\n");
    assert_string_equal(shown(yaml, 0, "unless"), "[{value_1: [x, 'w*']}, {value_2: [v]}]");
    assert_string_equal(shown(yaml, 0, "key"), "[value_1, value_2]");
}

static void stars_and_backslashes_of_texts_are_not_wildcards(void **state)
{
    static const char yaml[] = "domain: 'd*\\'\n"
                               "descriptors:\n"
                               "  - {key: 'a*/b:c%d\\e', value: 'x\\y', " LIMIT "}\n"
                               "  - {key: a, value: 'x\\*y', " LIMIT "}\n";
    assert_string_equal(shown(yaml, 0, "when"),
                        "{value_1: ['x\\\\y'], descriptor: ['a%2A%2Fb%3Ac%25d%5Ce'], domain: "
                        "['d\\*\\\\']}");
    assert_string_equal(shown(yaml, 1, "when"), /* the star is a wildcard, the backslash is not */
                        "{value_1: ['x\\\\*y'], descriptor: [a], domain: ['d\\*\\\\']}");
}

static void keys_are_written_so_that_they_cannot_be_mixed_up(void **state)
{
    static const struct {
        const char *key;
        const char *written;
    } rows[] = {{"path", "path"}, {"a/b", "a%2Fb"}, {"a%2Fb", "a%252Fb"},       {"a:b", "a%3Ab"},
                {"*", "%2A"},     {"\\", "%5C"},    {"a\xc3\xa9", "a\xc3\xa9"}, {"a b|c", "a b|c"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char to[64];
        size_t n = envoy_put_key(text_of(rows[i].key), to);
        assert_true(n <= ENVOY_KEY_BYTES(strlen(rows[i].key)));
        to[n] = 0;
        assert_string_equal(to, rows[i].written);
    }
    assert_int_equal(envoy_put_key((struct weir_text){"a\0b", 3}, (char[9]){0}), 3);
}

static void attributes_of_descriptors_have_names_of_their_own(void **state)
{
    static const char *const ours[] = {"domain", "descriptor", "value_1", "value_99"};
    static const char *const others[] = {"domains", "descriptors", "value_",
                                         "value_x", "value",       ""};
    for (size_t i = 0; i < 4; i++) {
        assert_true(envoy_has_attribute(text_of(ours[i])));
    }
    for (size_t i = 0; i < 6; i++) {
        assert_false(envoy_has_attribute(text_of(others[i])));
    }
}

/* ---- rates and modes ---- */

static void units_are_windows_that_begin_with_the_epoch(void **state)
{
    static const struct {
        const char *unit;
        const char *rate;
        const char *align;
    } rows[] = {{"second", "3/s", "clock"},   {"MINUTE", "3/min", "clock"},
                {"Hour", "3/h", "clock"},     {"day", "3/day", "clock"},
                {"week", "3/week", "epoch"},  {"month", "3/30day", "clock"},
                {"year", "3/365day", "clock"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       FILE_OF("- {key: k, rate_limit: {unit: %s, requests_per_unit: 3}}\n"),
                       rows[i].unit);
        assert_string_equal(shown(yaml, 0, "rate"), rows[i].rate);
        assert_string_equal(shown(yaml, 0, "align"), rows[i].align);
        assert_string_equal(shown(yaml, 0, "algorithm"), "fixed_window");
    }
}

static void limits_of_nothing_and_without_end_are_rates(void **state)
{
    assert_string_equal(shown(FILE_OF("- {key: k, rate_limit: {unlimited: true}}\n"), 0, "rate"),
                        "unlimited");
    assert_string_equal(
        shown(FILE_OF("- {key: k, rate_limit: {unit: day, requests_per_unit: 0}}\n"), 0, "rate"),
        "0/day");
    assert_string_equal(shown(FILE_OF("- {key: k, rate_limit: {unlimited: no, unit: second,"
                                      " requests_per_unit: 4294967295}}\n"),
                              0, "rate"),
                        "4294967295/s");
}

static void modes_and_names_are_keys_of_the_limit(void **state)
{
    static const char yaml[] =
        FILE_OF("- {key: a, shadow_mode: yes, rate_limit: {name: 'A b', unit: day,"
                " requests_per_unit: 1, replaces: [{name: c}, {name: x}]}}\n"
                "- {key: c, quota_mode: on, rate_limit: {name: c, unlimited: true}}\n");
    assert_string_equal(shown(yaml, 0, "shadow"), "true");
    assert_string_equal(shown(yaml, 0, "label"), "'A b'");
    assert_string_equal(shown(yaml, 0, "replaces"), "[c]"); /* no limit has the name x */
    assert_string_equal(shown(yaml, 1, "quota_mode"), "true");
    assert_string_equal(shown(yaml, 1, "shadow"), "false");
}

static void keys_of_weir_take_precedence(void **state)
{
    static const char yaml[] =
        FILE_OF("- {key: a, rate_limit: {unit: week, requests_per_unit: 7, weir: {algorithm:"
                " token_bucket, burst: 3, max_keys: 20, name: own}}}\n");
    assert_string_equal(shown(yaml, 0, "name"), "own");
    assert_string_equal(shown(yaml, 0, "algorithm"), "token_bucket");
    assert_string_equal(shown(yaml, 0, "rate"), "7/week");
    assert_string_equal(shown(yaml, 0, "burst"), "3");
    assert_string_equal(shown(yaml, 0, "max_keys"), "20");
}

static void names_that_no_limit_has_are_told_and_not_kept(void **state)
{
    static const char yaml[] = FILE_OF(
        "- {key: a, rate_limit: {name: main, unit: day, requests_per_unit: 1}}\n"
        "- {key: b, rate_limit: {replaces: [{name: mian}, {name: main}], unlimited: true}}\n");
    assert_string_equal(
        loading_told_of(yaml),
        "4:3: warning: found 'mian' in 'replaces' of limit 'd.b', expected the name or "
        "label of another limit; did you mean 'main'?\n");
    assert_string_equal(shown(yaml, 1, "replaces"), "[main]");
}

static void a_rate_of_weir_needs_no_unit(void **state)
{
    static const char yaml[] = FILE_OF("- {key: a, rate_limit: {weir: {rate: 20/90s}}}\n");
    assert_string_equal(loading_told_of(yaml), "");
    assert_string_equal(shown(yaml, 0, "rate"), "20/90s");
    assert_string_equal(shown(yaml, 0, "algorithm"), "fixed_window");
}

static void a_null_is_as_if_the_key_were_absent(void **state)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++) {
        char yaml[500];
        const char *n = nulls[i];
        (void)snprintf(yaml, sizeof yaml,
                       FILE_OF("- {key: a, value: %s, rate_limit: {unit: day, requests_per_unit: 1,"
                               " unlimited: %s, name: %s, replaces: %s, weir: %s}}\n"
                               "- {key: b, rate_limit: %s, descriptors: %s, shadow_mode: %s}\n"),
                       n, n, n, n, n, n, n, n);
        assert_string_equal(loading_told_of(yaml), "");
        assert_string_equal(shown(yaml, 0, "key"), "[value_1]");
        assert_string_equal(shown(yaml, 0, "label"), "");
    }
    assert_string_equal(shown(FILE_OF("- {key: a, value: 'null', " LIMIT "}\n"), 0, "when"),
                        "{value_1: [null], descriptor: [a], domain: [d]}");
}

/* ---- names ---- */

static void a_name_tells_the_way(void **state)
{
    static const char yaml[] =
        FILE_OF("- {key: a, value: x, " LIMIT ", descriptors: [{key: b, " LIMIT "}]}\n");
    assert_string_equal(shown(yaml, 0, "name"), "d.a-x");
    assert_string_equal(shown(yaml, 1, "name"), "d.a-x.b");
}

static void names_that_were_changed_or_are_taken_end_with_a_hash(void **state)
{
    static const char yaml[] = FILE_OF("- {key: 'a b', " LIMIT "}\n"
                                       "- {key: 'a/b', " LIMIT "}\n"
                                       "- {key: a_b, " LIMIT "}\n"
                                       "- {key: a_b, value: c, " LIMIT "}\n"
                                       "- {key: a_b-c, " LIMIT "}\n");
    char first[64];
    (void)snprintf(first, sizeof first, "%s", shown(yaml, 0, "name"));
    assert_int_equal(strlen(first), strlen("d.a_b-01234567"));
    assert_memory_equal(first, "d.a_b-", 6);
    assert_memory_equal(shown(yaml, 1, "name"), "d.a_b-", 6);
    assert_string_not_equal(shown(yaml, 1, "name"), first);
    assert_string_equal(shown(yaml, 2, "name"), "d.a_b");
    assert_string_equal(shown(yaml, 3, "name"), "d.a_b-c");
    assert_memory_equal(shown(yaml, 4, "name"), "d.a_b-c-", 8);
    /* a name does not depend on what comes after it */
    assert_string_equal(shown(FILE_OF("- {key: 'a b', " LIMIT "}\n"), 0, "name"), first);
}

static void long_names_are_cut(void **state)
{
    char yaml[2000];
    char key[200];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    (void)snprintf(yaml, sizeof yaml, FILE_OF("- {key: %s, " LIMIT "}\n- {key: %s1, " LIMIT "}\n"),
                   key, key);
    char first[100];
    (void)snprintf(first, sizeof first, "%s", shown(yaml, 0, "name"));
    assert_int_equal(strlen(first), WEIR_RULES_NAME - 1);
    assert_int_equal(strlen(shown(yaml, 1, "name")), WEIR_RULES_NAME - 1);
    assert_string_not_equal(shown(yaml, 1, "name"), first);
}

static void a_name_that_another_limit_has_with_its_hash_is_not_used_twice(void **state)
{
    char yaml[500];
    char name[64];
    (void)snprintf(name, sizeof name, "%s",
                   shown(FILE_OF("- {key: 'a b', " LIMIT "}\n"), 0, "name"));
    (void)snprintf(yaml, sizeof yaml,
                   FILE_OF("- {key: %s, " LIMIT "}\n- {key: 'a b', " LIMIT "}\n"),
                   name + strlen("d."));
    assert_string_equal(loading_told_of(yaml), "");
    assert_string_equal(shown(yaml, 0, "name"), name);
    assert_memory_equal(shown(yaml, 1, "name"), "d.a_b-", 6);
    assert_string_not_equal(shown(yaml, 1, "name"), name);
}

/* Such files load in the reference server. */
static void numbers_and_empty_names_are_read_as_by_the_reference_server(void **state)
{
    static const char *const numbers[][2] = {
        {"1_000", "1k/day"}, {"1__0_", "10/day"},
        {"0x10", "16/day"},  {"0XfF", "255/day"},
        {"0b11", "3/day"},   {"0o17", "15/day"},
        {"+5", "5/day"},     {"0", "0/day"},
        {"0x_f", "15/day"},  {"4_294_967_295", "4294967295/day"},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       FILE_OF("- {key: k, rate_limit: {unit: day, requests_per_unit: %s}}\n"),
                       numbers[i][0]);
        assert_string_equal(loading_told_of(yaml), "");
        assert_string_equal(shown(yaml, 0, "rate"), numbers[i][1]);
    }
    static const char yaml[] =
        "domain: d\nname: ours\ndescriptors:\n"
        "- {key: a, rate_limit: {name: '', unit: day, requests_per_unit: 1}}\n";
    assert_string_equal(loading_told_of(yaml), "");
    assert_string_equal(shown(yaml, 0, "label"), "");
}

/* ---- errors ---- */

/* The first message begins with `place`; there is no other. */
static void each_mistake_is_told_once_at_its_place(void **state)
{
    static const struct {
        const char *yaml;
        const char *place;
    } rows[] = {
        {"descriptors: []\n", "1:1: found no domain"},
        {"domain: d\nlimits: []\n", "2:1: found the unknown key 'limits'"},
        {"domain: d\ndescriptor: []\n", "2:1: found the unknown key 'descriptor'; did you mean "},
        {"domain: 'file:d'\n", "1:9: found 'file:d', expected a text that does not begin"},
        {"domain: d\ndescriptors: x\n", "2:14: found 'x', expected a list of descriptors"},
        {FILE_OF("- x\n"), "3:3: found 'x', expected a map with 'key'"},
        {FILE_OF("- {value: x}\n"), "3:3: found "},
        {FILE_OF("- {key: a, value: [x]}\n"), "3:19: found a list, expected a text"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, name: [b], requests_per_unit: 1}}\n"),
         "3:42: found a list, expected a text"},
        {FILE_OF("- {key: a, valeu: x}\n"), "3:12: found the unknown key 'valeu'; did you mean"},
        {FILE_OF("- {key: a, value: 'file:x', " LIMIT "}\n"), "3:19: found 'file:x', expected"},
        {FILE_OF("- {key: a, value: x}\n- {key: a, value: x}\n"),
         "4:3: found a second descriptor with th"},
        {FILE_OF("- {key: a}\n- {key: a, value: ''}\n"), "4:3: found a second descriptor with th"},
        {FILE_OF("- {key: a, shadow_mode: 1}\n"), "3:25: found '1', expected true or false"},
        {FILE_OF("- {key: a, rate_limit: 5}\n"), "3:24: found '5', expected a map with unit"},
        {FILE_OF("- {key: a, rate_limit: {}}\n"), "3:24: found no unit"},
        {FILE_OF("- {key: a, rate_limit: {unit: day}}\n"),
         "3:24: found no requests_per_unit, expected a whole number from 0 to 4294967295"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: }}\n"),
         "3:24: found no requests_per_unit"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: 010}}\n"),
         "3:55: found '010', expected a whole number that does not begin with 0"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: 0x}}\n"),
         "3:55: found '0x', expected a whole number from 0"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: _1}}\n"),
         "3:55: found '_1', expected a whole number from 0"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: '1_0'}}\n"),
         "3:55: found '1_0', expected a whole number from 0"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: 0x1g}}\n"),
         "3:55: found '0x1g', expected a whole number from 0"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: 0x100000000}}\n"),
         "3:55: found '0x100000000', expected a whole number from 0"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: 1e3}}\n"),
         "3:55: found '1e3', expected a whole number from 0"},
        {FILE_OF("- {key: a, name: x}\n"), "3:12: found the unknown key 'name'"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, weir: {max_keys: 3}}}\n"),
         "3:24: found no requests_per_unit"},
        {FILE_OF("- {key: a, rate_limit: {unit: fortnight}}\n"), "3:31: found 'fortnight', exp"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: -1}}\n"),
         "3:55: found '-1', expected a whole number"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: 4294967296}}\n"),
         "3:55: found '4294967296', expected a whole number"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, unlimited: true}}\n"),
         "3:31: found a unit together with"},
        {FILE_OF("- {key: a, rate_limit: {unlimited: maybe, unit: day, requests_per_unit: 1}}\n"),
         "3:36: found 'maybe'"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, burst: 3, requests_per_unit: 1}}\n"),
         "3:36: found 'burst', exp"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, replaces: b, requests_per_unit: 1}}\n"),
         "3:46: found 'b', expected"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, replaces: [b], requests_per_unit: 1}}\n"),
         "3:47: found 'b', exp"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, name: b, replaces: [{name: b}], "
                 "requests_per_unit: 1}}\n"),
         "3:63: found 'b', expected the name of another limit"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, weir: 3, requests_per_unit: 1}}\n"),
         "3:42: found '3', expected"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, weir: {cots: 3}, requests_per_unit: 1}}\n"),
         "3:43: unknown key 'cots'"},
        {FILE_OF("- {key: a, rate_limit: {unit: day, requests_per_unit: 9, weir: {burst: 3}}}\n"),
         "3:65: found 'burst'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *told = loading_told_of(rows[i].yaml);
        const char *end = strchr(told, '\n');
        if (strncmp(told, rows[i].place, strlen(rows[i].place)) != 0 || end == NULL ||
            end[1] != 0) {
            fail_msg("row %zu: found '%s', expected '%s'", i, told, rows[i].place);
        }
    }
}

/* Eight of them may be counted apart, as in every limit. */
static void entries_may_be_ten_and_no_more(void **state)
{
    char yaml[2000];
    for (int depth = ENVOY_ENTRIES_MAX; depth <= ENVOY_ENTRIES_MAX + 1; depth++) {
        size_t n = (size_t)snprintf(yaml, sizeof yaml, "domain: d\n");
        for (int i = 0; i < depth; i++) {
            n += (size_t)snprintf(yaml + n, sizeof yaml - n,
                                  "%*sdescriptors:\n%*s- key: k\n%*svalue: %s\n", 2 * i, "", 2 * i,
                                  "", 2 * i + 2, "", i < 2 ? "x" : "");
        }
        (void)snprintf(yaml + n, sizeof yaml - n, "%*s" LIMIT "\n", 2 * depth, "");
        const char *told = loading_told_of(yaml);
        if (depth == ENVOY_ENTRIES_MAX) {
            assert_string_equal(told, "");
            assert_string_equal(
                shown(yaml, 0, "when"),
                "{value_1: [x], value_2: [x], descriptor: [k/k/k/k/k/k/k/k/k/k], domain: [d]}");
        } else {
            assert_non_null(strstr(told, "found descriptors below 10 others"));
        }
    }
}

/* Returns a file with a limit for each of `values` values, and one for the others. */
static char *file_with_values(unsigned values)
{
    char *yaml = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&yaml, &size);
    assert_non_null(out);
    (void)fputs(
        FILE_OF("- {key: k, rate_limit: {unit: day, requests_per_unit: 0, weir: {max_keys: 1}}}\n"),
        out);
    for (unsigned i = 0; i < values; i++) {
        (void)fprintf(out, "- {key: k, value: v%u, " LIMIT "}\n", i);
    }
    (void)fclose(out);
    return yaml;
}

static void a_file_with_thousands_of_values_loads_and_too_many_are_told_once(void **state)
{
    char *yaml = file_with_values(CONFIG_LIMITS_MAX - 1);
    assert_string_equal(loading_told_of(yaml), "");
    free(yaml);
    yaml = file_with_values(3 * CONFIG_LIMITS_MAX);
    assert_string_equal(loading_told_of(yaml),
                        "4099:3: found too many limits, expected at most 4096\n");
    free(yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_with_a_value_is_a_condition_and_one_without_is_counted),
        cmocka_unit_test(descriptors_below_others_are_one_limit_for_the_whole_way),
        cmocka_unit_test(values_that_lead_elsewhere_are_excluded_at_each_level),
        cmocka_unit_test(stars_and_backslashes_of_texts_are_not_wildcards),
        cmocka_unit_test(keys_are_written_so_that_they_cannot_be_mixed_up),
        cmocka_unit_test(attributes_of_descriptors_have_names_of_their_own),
        cmocka_unit_test(units_are_windows_that_begin_with_the_epoch),
        cmocka_unit_test(limits_of_nothing_and_without_end_are_rates),
        cmocka_unit_test(modes_and_names_are_keys_of_the_limit),
        cmocka_unit_test(keys_of_weir_take_precedence),
        cmocka_unit_test(a_rate_of_weir_needs_no_unit),
        cmocka_unit_test(a_null_is_as_if_the_key_were_absent),
        cmocka_unit_test(names_that_no_limit_has_are_told_and_not_kept),
        cmocka_unit_test(a_name_tells_the_way),
        cmocka_unit_test(names_that_were_changed_or_are_taken_end_with_a_hash),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(a_name_that_another_limit_has_with_its_hash_is_not_used_twice),
        cmocka_unit_test(numbers_and_empty_names_are_read_as_by_the_reference_server),
        cmocka_unit_test(each_mistake_is_told_once_at_its_place),
        cmocka_unit_test(entries_may_be_ten_and_no_more),
        cmocka_unit_test(a_file_with_thousands_of_values_loads_and_too_many_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
