/* The JSON Schema of rule files, from the rows that read them. */
#ifndef WEIR_DOCS_SCHEMA_H
#define WEIR_DOCS_SCHEMA_H

/* Returns the text, which the caller frees; NULL: out of memory. */
char *schema_text(void);

#endif
