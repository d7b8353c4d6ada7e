/*
 * Random files of Envoy's reference server, converted and asked, against a walk down their tree
 * (support/oracle/envoy_tree.c): to every descriptor the same limit must apply, or none, and the
 * same values must be counted apart.
 *
 * WEIR_SEED=n in the environment runs another set, or the one that failed.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/envoy/envoy.h"
#include "rules/live/call_ask.h"
#include "support/oracle/envoy_tree.h"
#include "support/rules/rules_ask.h"

#if defined(WEIR_LONG)
#define TREES 50000
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_COVERAGE)
#define TREES 200
#else
#define TREES 800
#endif
#define QUESTIONS 40

struct found {
    int limit; /* -1: none */
    char key[TREE_KEY];
    size_t key_len;
};

static struct weir_rules *open_tree(const struct tree_node *root, char **yaml)
{
    size_t len = 0;
    FILE *out = open_memstream(yaml, &len);
    assert_non_null(out);
    tree_print(out, root);
    assert_int_equal(fclose(out), 0);
    return rules_open(*yaml);
}

/* Makes the attributes that envoy.h describes. */
static size_t attributes_of(const struct tree_descriptor *d, struct arena *memory,
                            struct weir_rules_attribute *to)
{
    struct weir_text empty = ENVOY_EMPTY;
    char *keys = arena_room(memory, 1000);
    size_t n = 0;
    to[0] = (struct weir_rules_attribute){ENVOY_DOMAIN, strlen(ENVOY_DOMAIN), d->domain,
                                          strlen(d->domain)};
    for (unsigned i = 0; i < d->count; i++) {
        const char *name = arena_format(memory, ENVOY_VALUE "%u", i + 1);
        const char *value = d->values[i];
        keys[n] = '/';
        n += i > 0;
        n += envoy_put_key(text_of(d->keys[i]), keys + n);
        to[2 + i] =
            (struct weir_rules_attribute){name, strlen(name), value[0] != 0 ? value : empty.at,
                                          value[0] != 0 ? strlen(value) : empty.len};
    }
    to[1] = (struct weir_rules_attribute){ENVOY_DESCRIPTOR, strlen(ENVOY_DESCRIPTOR), keys, n};
    return 2 + d->count;
}

static struct found ask(struct weir_rules *rules, const struct tree_descriptor *d)
{
    struct arena memory = ARENA_INIT;
    struct weir_rules_attribute with[TREE_DEPTH + 3];
    struct weir_error error = {0};
    struct found found = {.limit = -1};
    struct call_question q = {.attributes = with,
                              .attributes_count = attributes_of(d, &memory, with)};
    struct call call = {
        .rules = rules, .memory = &memory, .now_ns = RULES_T0, .questions = &q, .count = 1};
    if (call_ask(&call, &error) != 0) {
        fail_msg("%s", error.text);
    }
    assert_true(call.parts_count <= 1);
    if (call.parts_count == 1) {
        assert_true(call.statuses[0].limited);
        found.limit = atoi(call.statuses[0].label.at);
        found.key_len = call.parts[0]->remote.key.len;
        assert_true(found.key_len <= sizeof found.key);
        memcpy(found.key, call.parts[0]->remote.key.at, found.key_len);
    }
    arena_finish(&memory);
    return found;
}

static void print_difference(uint64_t seed, const char *yaml, const struct tree_descriptor *d,
                             const struct found *found, int expected)
{
    (void)fprintf(stderr, "WEIR_SEED=%" PRIu64 "\n%sdomain '%s'", seed, yaml, d->domain);
    for (unsigned i = 0; i < d->count; i++) {
        (void)fprintf(stderr, " ('%s', '%s')", d->keys[i], d->values[i]);
    }
    (void)fprintf(stderr, "\nfound the limit %d, expected %d\n", found->limit, expected);
}

/* Asks about one tree. Returns how many descriptors had a limit. */
static unsigned compare(uint64_t seed)
{
    struct oracle_random g = {seed};
    struct tree_node *root = tree_random(&g);
    char *yaml = NULL;
    struct weir_rules *rules = open_tree(root, &yaml);
    struct found before = {.limit = -1};
    char counted_before[TREE_KEY] = "";
    unsigned limited = 0;
    for (unsigned i = 0; i < QUESTIONS; i++) {
        char counted[TREE_KEY];
        struct tree_descriptor d = tree_random_descriptor(&g, root);
        int expected = tree_walk(root, &d, counted);
        struct found found = ask(rules, &d);
        bool same_key =
            found.key_len == before.key_len && memcmp(found.key, before.key, found.key_len) == 0;
        bool compared = expected >= 0 && expected == before.limit;
        if (found.limit != expected ||
            (compared && same_key != (strcmp(counted, counted_before) == 0))) {
            print_difference(seed, yaml, &d, &found, expected);
            fail();
        }
        limited += expected >= 0;
        if (expected >= 0) {
            before = found;
            (void)strcpy(counted_before, counted);
        }
    }
    weir_rules_close(rules);
    free(yaml);
    tree_free(root);
    return limited;
}

static void converted_files_find_the_limit_that_the_tree_has(void **state)
{
    const char *given = getenv("WEIR_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    unsigned limited = 0;
    for (uint64_t i = 0; i < TREES; i++) {
        limited += compare(first + i);
    }
    assert_true(limited > TREES * QUESTIONS / 4); /* the cases are not all trivial */
    print_message("%u of %u descriptors have a limit\n", limited, TREES * QUESTIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converted_files_find_the_limit_that_the_tree_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
