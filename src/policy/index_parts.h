/*
 * One hash table and one tree, in one piece of memory.
 *
 * The table holds every value of every attribute, paths without wildcard among
 * them, so most rules cost one probe. Patterns are a tree by segments: from a
 * node lead literal segments (in the hash table too, so a thousand siblings cost
 * one probe), segments of the form '*.jpg' (in the table, by what follows the last
 * dot), one '*', a list of other mixed segments, and one '**'. A pattern that
 * ends in '**' is noted at the node before it.
 *
 * Behind a '**' that is not the last segment the walk goes on from every later
 * segment. A second such '**', and what lies deeper than INDEX_DEPTH, is not followed:
 * these patterns are compared as a whole, once, at the node before their first
 * '**'. So no path makes the walk long: it visits each node at most once, the nodes
 * behind a '**' at most once for each segment, and the stack is bounded by INDEX_DEPTH.
 *
 * The table is only ever asked by strangers, never filled by them: no choice of
 * paths makes a probe longer than the rules have made it.
 */
#ifndef WEIR_POLICY_INDEX_PARTS_H
#define WEIR_POLICY_INDEX_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/text.h"

#define INDEX_DEPTH 32
#define NONE UINT32_MAX
#define SPREAD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio: spreads neighbouring owners */

/* The first limit in place, the others in index.more. Nearly all lists have one. */
struct list {
    uint32_t limit; /* NONE: empty */
    uint32_t next;  /* 0: no more */
};

/* What a slot of the table says about. 0 is a free slot. */
enum kind {
    VALUE = 1,    /* owner: an attribute; found: limits */
    LITERAL = 2,  /* owner: a node, whose child by this segment is found */
    EXTENSION = 3 /* owner: a node, whose child by '*' and this is found */
};

struct slot {
    uint32_t tag; /* some bits of the hash; the lowest two are the kind */
    uint32_t owner;
    uint32_t at; /* the text, in index.bytes */
    uint32_t len;
    struct list found; /* LITERAL, EXTENSION: .limit is the child */
};

struct node {
    struct list here;   /* patterns that end with this segment */
    struct list tail;   /* patterns of which only '**' is left */
    uint32_t rest;      /* patterns to be compared as a whole; 0: none */
    uint32_t mixed;     /* children by segments such as 'a*b'; 0: none */
    uint32_t star;      /* child by '*'; 0: none, the root is nobody's child */
    uint32_t any;       /* child by '**', 0: none */
    uint32_t literal;   /* there are children in the table, of this kind ... */
    uint32_t extension; /* ... and of this */
};

struct mixed {
    uint32_t at, len;
    uint32_t child;
    uint32_t next;
};

struct rest {
    uint32_t at, len;
    uint32_t limit;
    uint32_t next;
};

/* How many of each there are, or may become. Those named by a number begin at 1. */
struct amounts {
    size_t slots, nodes, more, mixed, rest, bytes;
};

struct index {
    struct hash_secret secret;
    unsigned shift; /* 64 - log2(slots) */
    struct slot *slots;
    struct node *nodes; /* nodes[0] is the root */
    struct list *more;
    struct mixed *mixed;
    struct rest *rest;
    char *bytes;
    struct amounts used;
    bool has_patterns;
};

/* ---- the table ---- */

static inline uint64_t hash_text(const struct index *index, struct text t)
{
    return hash_xxh3(&index->secret, t.at, t.len).low;
}

static inline struct text text_at(const struct index *index, uint32_t at, uint32_t len)
{
    return (struct text){index->bytes + at, len};
}

/* One text may have many owners: the top bits of this say where, the low ones tell them apart. */
static inline uint64_t place_of(enum kind kind, uint32_t owner, uint64_t hash)
{
    return hash + ((uint64_t)owner << 2 | kind) * SPREAD;
}

static inline uint32_t tag_of(uint64_t place, enum kind kind)
{
    return ((uint32_t)place & ~UINT32_C(3)) | kind;
}

/* The slot of this text, or the free one where it belongs. */
static inline struct slot *probe(const struct index *index, enum kind kind, uint32_t owner,
                                 struct text text, uint64_t hash)
{
    uint64_t place = place_of(kind, owner, hash);
    uint32_t tag = tag_of(place, kind);
    size_t mask = ((size_t)1 << (64 - index->shift)) - 1;
    for (size_t i = (size_t)(place >> index->shift);; i = (i + 1) & mask) {
        struct slot *s = &index->slots[i];
        if (s->tag == 0 || (s->tag == tag && s->owner == owner &&
                            text_equal(text_at(index, s->at, s->len), text))) {
            return s;
        }
    }
}

/* Up to the next slash, or the end. */
static inline struct text cut_segment(struct text path, size_t at)
{
    const char *slash = memchr(path.at + at, '/', path.len - at);
    size_t end = slash != NULL ? (size_t)(slash - path.at) : path.len;
    return (struct text){path.at + at, end - at};
}

#endif
