/* Compiles parts of rules: names of attributes to numbers, conditions to tests. */
#ifndef WEIR_RULES_COMPILED_RULESET_TESTS_H
#define WEIR_RULES_COMPILED_RULESET_TESTS_H

#include "rules/compiled/ruleset.h"

/*
 * Returns the number of an attribute, a new one if it has none yet. NO_ATTRIBUTE: there are too
 * many.
 */
unsigned ruleset_number(struct ruleset *set, struct weir_text name);

/*
 * Compile all conditions except the one at `without` (SIZE_MAX: all), and the entries of `allow` or
 * `block`. Out of memory: set->arena.failed.
 */
void ruleset_tests(struct ruleset *set, const struct conditions *from, size_t without,
                   struct tests *to);
void ruleset_list(struct ruleset *set, const struct list_config *from, struct tests **to,
                  size_t *count);

#endif
