/*
 * Rule files of Envoy's reference rate limit server (envoyproxy/ratelimit) as limits of weir's own
 * format.
 *
 * A call has a domain and descriptors, and a descriptor has entries: keys with values, in order.
 * The reference server walks down a tree for each descriptor. At each level an entry leads to the
 * node with its key and its value; otherwise to the first node with its key and a value with
 * wildcards that matches; otherwise to the node with its key and no value. There is no way back up.
 * A limit applies if the last entry leads to it.
 *
 * Here a descriptor is one question with these attributes:
 *
 *     domain       edge
 *     descriptor   path/remote_address     the keys of all entries
 *     value_1      /login                  the value of the first entry
 *     value_2      203.0.113.7
 *
 * and each node with a limit is a limit: `when` has the domain, the keys, and the values of the
 * nodes on the way; `unless` has the values that would have led to other nodes; `key` has the
 * values that are counted apart.
 */
#ifndef WEIR_RULES_ENVOY_ENVOY_H
#define WEIR_RULES_ENVOY_ENVOY_H

#include "rules/yaml/document.h"

/* The names of the attributes. That of a value has its number after it, from 1 on. */
#define ENVOY_DOMAIN "domain"
#define ENVOY_DESCRIPTOR "descriptor"
#define ENVOY_VALUE "value_"

/* The most entries of a descriptor that a limit can have. Those of calls may be more. */
#define ENVOY_ENTRIES_MAX 10

/* The value that stands for an empty one, which the rules would treat as missing. No other value is
 * the same, because strings of calls have no NUL. */
#define ENVOY_EMPTY ((struct weir_text){"\0", 1})

/* Returns whether an attribute is one of those above. */
bool envoy_has_attribute(struct weir_text name);

/*
 * Writes a key as it is in `descriptor`: bytes that would separate keys, or mean something in a
 * condition, become %XX. `to` has ENVOY_KEY_BYTES(key.len) bytes. Returns how many were written.
 */
#define ENVOY_KEY_BYTES(len) (3 * (len))
size_t envoy_put_key(struct weir_text key, char *to);

/* Returns whether a document is such a file: a map with `domain` or `descriptors`. */
bool envoy_is_file(const struct node *root);

/*
 * Converts a document into a map with `limits`, with the places of the document, and sets *domain.
 * A section `envoy`, which only weir knows, is taken over as it is.
 * It makes at most `most` limits.
 * Everything is allocated in the arena. Problems are reported; what could be converted is returned.
 * NULL: out of memory (arena->failed).
 */
struct node *envoy_convert(struct arena *arena, const struct node *root, size_t most,
                           struct weir_text *domain, struct problems *problems);

#endif
