/* docs/reference/{metrics,rules,bounds,notices}.md, from the rows of metrics, of the rule file, of
 * bounds and of notices. */
#ifndef WEIR_DOCS_REFERENCE_H
#define WEIR_DOCS_REFERENCE_H

#include "rules/file/fields.h"

/* The sections of the rule file, in the order of the manual, with NULL after the last. */
extern const struct section *const reference_sections[];

/* Return the text, which the caller frees; NULL: out of memory. */
char *reference_metrics(void);
char *reference_rules(void);
char *reference_bounds(void);  /* reference_bounds.c */
char *reference_notices(void); /* reference_notices.c */

#endif
