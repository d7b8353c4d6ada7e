/* Compiling rules: names of attributes to numbers, conditions to tests. */
#ifndef WEIR_RULES_COMPILED_RULESET_TESTS_H
#define WEIR_RULES_COMPILED_RULESET_TESTS_H

#include "rules/compiled/ruleset.h"

/* The number of an attribute; a new one if it has none. NO_ATTRIBUTE when there are too many. */
unsigned ruleset_number(struct ruleset *set, struct text name);

/* All conditions but the one at `without`; SIZE_MAX: all. 0, WEIR_ENOMEM. */
int ruleset_tests(struct ruleset *set, const struct conditions *from, size_t without,
                  struct tests *to);

/* Those of `allow` or `block`. */
int ruleset_list(struct ruleset *set, const struct list_config *from, struct tests **to,
                 size_t *count);

#endif
