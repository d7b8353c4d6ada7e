/* Limiters of a rule set: made, or taken over from the rules before. */
#ifndef WEIR_RULES_COMPILED_HOLDER_H
#define WEIR_RULES_COMPILED_HOLDER_H

#include "rules/compiled/ruleset.h"

/*
 * The holder for one variant of a limit: that of the same variant of the same
 * limit in `old` (may be NULL) if its keys mean the same, else a new one. What
 * has to change in an old one is put behind set->changes.
 */
int holder_find(struct ruleset *set, const struct weir_rules_options *options,
                const struct ruleset *old, const struct rule *rule, struct variant *variant,
                struct problems *problems, struct weir_error *error);

/* Nobody may be deciding by it. */
void holder_change(const struct change *change);

/* From any thread, by whoever has a reference. */
void holder_keep(struct holder *holder);
void holder_release(struct holder *holder);

#endif
