#include "rules/compiled/ruleset_tests.h"

#include <stdlib.h>

/* Exact values of a condition that take no more bytes are compared one by one, not looked up. */
#define FEW_BYTES 64

unsigned ruleset_number(struct ruleset *set, struct weir_text name)
{
    enum attribute_kind kind = attribute_kind_of(name);
    int64_t known = text_map_find(set->names, name);
    if (known >= 0) {
        return (unsigned)known;
    }
    unsigned number = kind != ATTRIBUTE_PLAIN ? kind : set->attributes_count;
    if (number >= ATTRIBUTES_MAX || text_map_put(set->names, name, number) != -1) {
        return NO_ATTRIBUTE;
    }
    set->attributes[number] = name;
    set->attributes_count += kind == ATTRIBUTE_PLAIN;
    return number;
}

static void add_networks(struct ruleset *set, const struct condition *from, struct test *to)
{
    struct cidr *networks = calloc(from->count + 1, sizeof *networks);
    for (size_t i = 0; networks != NULL && i < from->count; i++) {
        networks[i] = from->values[i].network;
    }
    if (networks == NULL || cidr_set_create(networks, from->count, &to->networks) != 0) {
        set->arena.failed = true;
    } else if (!arena_append(&set->arena, &set->networks, &set->networks_count, sizeof to->networks,
                             &to->networks)) {
        cidr_set_destroy(to->networks);
    }
    free(networks);
}

/*
 * Returns the bytes that the exact values take with their lengths and the final 0; more than
 * FEW_BYTES if they are not few.
 */
static size_t few_bytes(const struct condition *from)
{
    size_t bytes = 1;
    for (size_t i = 0; i < from->count && bytes <= FEW_BYTES; i++) {
        bytes += from->values[i].kind == VALUE_EXACT ? 1 + from->values[i].text.len : 0;
    }
    return bytes;
}

/*
 * Appends a value. An empty one is left out: no request has it, and its length would end the list.
 */
static void add_few(unsigned char **at, struct weir_text value)
{
    if (value.len > 0) {
        *(*at)++ = (unsigned char)value.len;
        memcpy(*at, value.at, value.len);
        *at += value.len;
    }
}

static size_t count_patterns(const struct condition *from)
{
    size_t n = 0;
    for (size_t i = 0; i < from->count; i++) {
        n += from->values[i].kind != VALUE_EXACT;
    }
    return n;
}

static void compile_test(struct ruleset *set, const struct condition *from, struct test *to)
{
    size_t bytes = few_bytes(from);
    unsigned char *few = NULL;
    to->attribute = ruleset_number(set, from->attribute);
    if (to->attribute == NUMBER_IP) {
        add_networks(set, from, to);
        return;
    }
    if (bytes <= FEW_BYTES) {
        to->few = few = arena_take(&set->arena, bytes);
    } else {
        to->exact = text_map_create(&set->arena, from->count);
    }
    to->patterns = arena_array(&set->arena, count_patterns(from), sizeof *to->patterns);
    if ((few == NULL && to->exact == NULL) || to->patterns == NULL) {
        return;
    }
    for (size_t i = 0; i < from->count; i++) {
        if (from->values[i].kind != VALUE_EXACT) {
            to->patterns[to->patterns_count++] = from->values[i].text;
        } else if (few != NULL) {
            add_few(&few, from->values[i].text);
        } else {
            (void)text_map_put(to->exact, from->values[i].text, 0);
        }
    }
}

/* Compiles the values of a file once, even if many conditions name the file. */
static void compile_shared(struct ruleset *set, const struct condition *from, struct test *to)
{
    for (size_t i = 0; i < set->shared_count; i++) {
        const struct shared_test *s = &set->shared[i];
        if (s->values == from->values &&
            s->test.attribute == ruleset_number(set, from->attribute)) {
            *to = s->test;
            return;
        }
    }
    compile_test(set, from, to);
    struct shared_test own = {from->values, *to};
    (void)arena_append(&set->arena, &set->shared, &set->shared_count, sizeof own, &own);
}

void ruleset_tests(struct ruleset *set, const struct conditions *from, size_t without,
                   struct tests *to)
{
    to->at = arena_array(&set->arena, from->count, sizeof *to->at);
    for (size_t i = 0; to->at != NULL && i < from->count; i++) {
        if (i != without) {
            const struct condition *one = &from->at[i];
            (one->shared ? compile_shared : compile_test)(set, one, &to->at[to->count++]);
        }
    }
}

void ruleset_list(struct ruleset *set, const struct list_config *from, struct tests **to,
                  size_t *count)
{
    *to = arena_array(&set->arena, from->count, sizeof **to);
    for (size_t i = 0; *to != NULL && i < from->count; i++) {
        ruleset_tests(set, &from->entries[i], SIZE_MAX, &(*to)[(*count)++]);
    }
}
