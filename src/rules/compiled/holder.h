/* Limiters of a rule set: made anew, or taken over from the previous rules. */
#ifndef WEIR_RULES_COMPILED_HOLDER_H
#define WEIR_RULES_COMPILED_HOLDER_H

#include "rules/compiled/ruleset.h"

/*
 * Sets the holder of one variant of a limit: that of the same variant of the same limit in `old`
 * (may be NULL) if its keys mean the same, otherwise a new one. Changes that an old one needs are
 * appended to set->changes.
 */
int holder_find(struct ruleset *set, const struct weir_rules_options *options,
                const struct ruleset *old, const struct rule *rule, struct variant *variant,
                struct problems *problems, struct weir_error *error);

/* Changes a limiter's numbers and ban. No thread may be deciding by it. */
void holder_change(struct change *change);

/*
 * Take and release a reference, from any thread. The caller of keep must have one, or be inside the
 * gate.
 */
void holder_keep(struct holder *holder);
void holder_release(struct holder *holder);

#endif
