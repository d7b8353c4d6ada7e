/* Writes texts as YAML that reads back as the same texts. */
#ifndef WEIR_RULES_FILE_YAML_WRITE_H
#define WEIR_RULES_FILE_YAML_WRITE_H

#include <stdio.h>

#include "rules/file/config.h"
#include "rules/yaml/document.h"

/* Writes a scalar, with quotes only if it needs them. */
void yaml_put(FILE *out, struct weir_text text);

/* Writes "[a, 'b c']". */
void yaml_put_list(FILE *out, const struct texts *texts);

/* Writes a node in one line: "{a: 1, b: [c, d]}". */
void yaml_put_node(FILE *out, const struct node *node);

#endif
