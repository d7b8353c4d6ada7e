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
#ifndef WEIR_RULES_COMPILED_INDEX_PARTS_H
#define WEIR_RULES_COMPILED_INDEX_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/maths.h"
#include "common/text.h"

#define INDEX_DEPTH 32
#define NONE UINT32_MAX
#define SPREAD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio: spreads neighbouring owners */

/* The first limit in place, the others in index.more. Nearly all lists have one. */
struct list {
    uint32_t limit; /* NONE: empty */
    uint32_t next;  /* 0: no more */
};

/* What a slot of the table says about. */
enum kind {
    VALUE,    /* owner: an attribute; found: limits */
    LITERAL,  /* owner: a node, whose child by this segment is found */
    EXTENSION /* owner: a node, whose child by '*' and this is found */
};

struct slot {
    uint32_t kind;
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
    uint64_t secret[2];  /* the second is odd */
    unsigned shift;      /* 64 - log2(groups) */
    unsigned char *tags; /* one for each slot: 0, or 0x80 and some bits of the hash */
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

/* Both halves of the product, one upon the other. */
static inline uint64_t fold(uint64_t x, uint64_t by)
{
    return x * by ^ mul_high(x, by);
}

/*
 * Segments are short and there are several in a path: a quick hash does, with a
 * random secret. Nobody can fill the table with texts that meet, see above.
 * It takes eight bytes at a time, and 0 for those behind the end; at least 16.
 */
static inline uint64_t hash_begin(const struct index *index, size_t len)
{
    return index->secret[0] + len;
}

static inline uint64_t hash_word(const struct index *index, uint64_t h, uint64_t word)
{
    return fold(h ^ word, index->secret[1]);
}

static inline uint64_t hash_text(const struct index *index, struct text t)
{
    unsigned char end[16] = {0};
    uint64_t h = hash_begin(index, t.len);
    for (; t.len > 16; t = text_after(t, 8)) {
        h = hash_word(index, h, load_le64((const unsigned char *)t.at));
    }
    if (t.len > 0) {
        memcpy(end, t.at, t.len);
    }
    h = hash_word(index, h, load_le64(end));
    return hash_word(index, h, load_le64(end + 8));
}

static inline struct text text_at(const struct index *index, uint32_t at, uint32_t len)
{
    return (struct text){index->bytes + at, len};
}

/*
 * Slots are in groups of eight, whose tags are compared at once: that nothing is found, the
 * usual case, is seen in one word of memory that is near, without a loop to guess the end of.
 */
#define GROUP 8
#define EACH_BYTE UINT64_C(0x0101010101010101)
#define EACH_TOP UINT64_C(0x8080808080808080)

/* One text may have many owners: the top bits of this say which group, the low ones are the tag. */
static inline uint64_t place_of(enum kind kind, uint32_t owner, uint64_t hash)
{
    return hash + ((uint64_t)owner << 2 | kind) * SPREAD;
}

static inline unsigned char tag_of(uint64_t place)
{
    return (unsigned char)(place | 0x80);
}

static inline size_t group_of(const struct index *index, uint64_t place)
{
    return (size_t)(place >> index->shift);
}

static inline size_t next_group(const struct index *index, size_t group)
{
    return (group + 1) & (((size_t)1 << (64 - index->shift)) - 1);
}

/* The top bits of the bytes that are 0, and perhaps of some behind one. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE) & ~word & EACH_TOP;
}

/* NULL if there is none. */
static inline const struct slot *find_slot(const struct index *index, enum kind kind,
                                           uint32_t owner, struct text text, uint64_t hash)
{
    uint64_t place = place_of(kind, owner, hash);
    for (size_t group = group_of(index, place);; group = next_group(index, group)) {
        uint64_t tags = load_le64(index->tags + group * GROUP);
        uint64_t same = zero_bytes(tags ^ tag_of(place) * EACH_BYTE);
        for (; same != 0; same &= same - 1) {
            const struct slot *s = &index->slots[group * GROUP + (size_t)__builtin_ctzll(same) / 8];
            if (s->owner == owner && s->kind == kind &&
                text_equal(text_at(index, s->at, s->len), text)) {
                return s;
            }
        }
        if ((~tags & EACH_TOP) != 0) {
            return NULL; /* it would be in the free one */
        }
    }
}

#endif
