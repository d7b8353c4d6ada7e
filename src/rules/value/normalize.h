/* Normalises attributes that can be written in several ways. */
#ifndef WEIR_RULES_VALUE_NORMALIZE_H
#define WEIR_RULES_VALUE_NORMALIZE_H

#include "rules/value/path.h"

/* The kind of an attribute's values, determined by the attribute's name. */
enum attribute_kind {
    ATTRIBUTE_PATH,
    ATTRIBUTE_METHOD,
    ATTRIBUTE_HOST,
    ATTRIBUTE_IP,
    ATTRIBUTE_PLAIN /* any other name */
};

extern const char *const attribute_names[ATTRIBUTE_PLAIN];

enum attribute_kind attribute_kind_of(struct weir_text name);

/*
 * Writes a value of that kind in its normal form: a path as described in rules/value/path.h, an
 * address as its 4 or 16 bytes, a method and a host as below, anything else as it is. `to` has
 * NORMAL_BYTES(from.len) bytes. Returns 0, or WEIR_EINVAL with what was found.
 */
#define NORMAL_BYTES(len) ((len) > PATH_BYTES_MAX ? (len) : PATH_BYTES_MAX)
int normalize_value(enum attribute_kind kind, struct weir_text from, char *to, size_t *len,
                    struct weir_error *error);

/*
 * Writes a method in upper case: some servers take "get" for GET, so it must not count as another
 * method. `to` has from.len bytes.
 */
void normalize_method(struct weir_text from, char *to);

/* Writes the text in lower case, as names of headers are stored. `to` has from.len bytes. */
void normalize_lower(struct weir_text from, char *to);

/*
 * Writes a host in lower case, without its port and without the dot of the root; returns its
 * length. `to` has from.len bytes.
 */
size_t normalize_host(struct weir_text from, char *to);

/* Returns whether a host has only bytes that a name or an address may have. What others write there
 * is read in different ways: as a list, as a user before the host, or as the end of it. */
bool is_host(struct weir_text host);

#endif
