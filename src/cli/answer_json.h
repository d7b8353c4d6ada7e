/* A question about a key and the answer to it, as JSON in the form of the server's HTTP. */
#ifndef WEIR_CLI_ANSWER_JSON_H
#define WEIR_CLI_ANSWER_JSON_H

#include <jansson.h>

#include "cli/output/colour.h"
#include "common/buffer.h"

/*
 * Returns {"limit":...,"key":[...],"tier":...}, from the words LIMIT KEY...; `tier` may be NULL.
 * Returns NULL if some of it is not UTF-8.
 */
json_t *key_question(char **words, int count, const char *tier);

/* Puts the target of a question about a key of an operator, with a NUL at its end:
 * /v1/keys?limit=... `tier` and `by` may be NULL. */
void key_target(struct buffer *target, char **words, int count, const char *tier, const char *by);

/* Returns {"attributes":{...}}, from words NAME=VALUE, each with '='; NULL if some of it is not
 * UTF-8. */
json_t *attributes_question(char **words, int count);

/* Returns the colour of a verdict. */
enum colour verdict_colour(const char *verdict);

/* Prints an answer for people, one member on each line. Members that say nothing are left out. */
void answer_print(const json_t *said);

#endif
