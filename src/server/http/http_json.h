/* Requests as JSON: a member for each of a struct ask. */
#ifndef WEIR_SERVER_HTTP_HTTP_JSON_H
#define WEIR_SERVER_HTTP_HTTP_JSON_H

#include <jansson.h>

#include "common/arena.h"
#include "server/operations/operations.h"
#include "server/http/http_routes.h"

/* Values and names of members in one object that is sent; the largest question has half as many. */
#define HTTP_JSON_VALUES 1024

/* Checks that the body is JSON with at most values_most values and names. Returns 0 and sets *value
 * to what jsontext.h takes apart, or returns WEIR_EINVAL with the reason. */
int http_parse_json(const struct exchange *x, size_t values_most, struct weir_text *value,
                    struct weir_error *error);

/* Does the same. Returns false after a 400. */
bool http_check_json(struct exchange *x, size_t values_most, struct weir_text *value);

/* Returns the body as JSON, to be freed by json_decref(); NULL after a 400. */
json_t *http_read_json(struct exchange *x);

/*
 * Reads the members that the operation takes. Strings with escapes are decoded into the arena; the
 * others stay where they are. Returns 0 or WEIR_EINVAL: not an object, a member that is not
 * allowed, not good, given twice, or missing; or WEIR_ENOMEM.
 */
int http_read_ask(struct weir_text object, const struct operation_row *row, struct ask *ask,
                  struct arena *arena, struct weir_error *error);

/* Reads one member, which must be one of `allowed` (ASK_BIT()s). Returns the same. */
int http_read_member(struct weir_text name, struct weir_text value, unsigned allowed,
                     struct ask *ask, struct arena *arena, struct weir_error *error);

/* Returns WEIR_EINVAL, with the member, what kind of value was found, and what was expected. */
int http_json_bad(struct weir_error *error, struct weir_text name, struct weir_text value,
                  const char *expected);

/* Returns the bytes of a string or name; `at` is NULL if there was no memory to decode them. */
struct weir_text http_json_bytes(struct weir_text string, struct arena *arena);

/* Returns the largest number that JSON can give for this member. */
uint64_t http_number_most(const struct ask_member_row *row);

#endif
