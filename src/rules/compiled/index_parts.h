/*
 * The layout of an index: one hash table and one tree, in one piece of memory.
 *
 * The table holds every value of every attribute, including paths without wildcard, so most rules
 * cost one probe. Patterns form a tree by segments. The children of a node are: literal segments
 * (in the hash table too, so a thousand siblings cost one probe), segments of the form '*.jpg' (in
 * the table, by what follows the last dot), one '*', a list of other mixed segments, and one '**'.
 * A pattern that ends in '**' is noted at the node before it.
 *
 * After a '**' that is not the last segment the walk goes on from every later segment. A second
 * such '**', and segments deeper than INDEX_DEPTH, are not followed: these patterns are compared as
 * a whole, once, at the node before their first '**', or where they get too deep. So no path makes
 * the walk long: it visits each node at most once, the nodes after a '**' at most once for each
 * segment, and the stack is bounded by INDEX_DEPTH.
 *
 * Requests only look up in the table; only the rules fill it. So no choice of paths makes a probe
 * longer than the rules have made it.
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

/* A list of limits: the first is here, the others in index.more. Nearly all lists have one. */
struct limit_list {
    uint32_t limit; /* NONE: empty */
    uint32_t next;  /* 0: no more */
};

/* What a slot of the table holds. */
enum slot_kind {
    VALUE,    /* owner is an attribute; found: limits */
    LITERAL,  /* owner is a node; found: its child by this segment */
    EXTENSION /* owner is a node; found: its child by '*' and this text */
};

struct index_slot {
    uint32_t kind;
    uint32_t owner;
    uint32_t at; /* offset of the text in index.bytes */
    uint32_t len;
    struct limit_list found; /* LITERAL, EXTENSION: .limit is the child */
};

struct index_node {
    struct limit_list here; /* patterns that end with this segment */
    struct limit_list tail; /* patterns of which only '**' is left */
    uint32_t rest;          /* patterns to be compared as a whole; 0: none */
    uint32_t mixed;         /* children by segments such as 'a*b'; 0: none */
    uint32_t star;          /* child by '*'; 0: none, as the root is never a child */
    uint32_t any;           /* child by '**'; 0: none */
    uint32_t literal;       /* 1 if it has literal children in the table */
    uint32_t extension;     /* 1 if it has children by extension in the table */
};

/* A pattern in a list of a node. */
struct link {
    uint32_t at, len; /* its text, in index.bytes */
    uint32_t number;  /* of a mixed segment: the child; of a whole pattern: the limit */
    uint32_t next;    /* 0: no more */
};

/* How many of each there are, or may become. more and links begin at 1: 0 is "none". */
struct amounts {
    size_t slots, nodes, more, links, bytes;
};

struct index {
    uint64_t secret[2];  /* the second is odd */
    unsigned shift;      /* 64 - log2(groups) */
    unsigned char *tags; /* one for each slot: 0, or 0x80 and some bits of the hash */
    struct index_slot *slots;
    struct index_node *nodes; /* nodes[0] is the root */
    struct limit_list *more;
    struct link *links;
    char *bytes;
    struct amounts used;
    bool has_patterns;
};

/* ---- the table ---- */

/* Returns the two halves of the product, combined by exclusive or. */
static inline uint64_t fold(uint64_t x, uint64_t by)
{
    return x * by ^ mul_high(x, by);
}

/*
 * Segments are short and a path has several, so a quick hash with a random secret is enough;
 * requests cannot fill the table with colliding texts (see above). It takes eight bytes at a time,
 * at least 16, with 0 for those after the end.
 */
static inline uint64_t hash_begin(const struct index *index, size_t len)
{
    return index->secret[0] + len;
}

static inline uint64_t hash_word(const struct index *index, uint64_t h, uint64_t word)
{
    return fold(h ^ word, index->secret[1]);
}

static inline uint64_t hash_text(const struct index *index, struct weir_text t)
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

static inline struct weir_text text_at(const struct index *index, uint32_t at, uint32_t len)
{
    return (struct weir_text){index->bytes + at, len};
}

/*
 * Slots are in groups of eight, whose tags are compared at once. That nothing is found, the usual
 * case, is seen from one word of memory, which is in a near cache, without a loop whose end the
 * processor has to predict.
 */
#define GROUP 8
#define EACH_BYTE UINT64_C(0x0101010101010101)
#define EACH_TOP UINT64_C(0x8080808080808080)

/*
 * Mixes kind and owner into the hash, because one text may have many owners. The top bits of the
 * result are the group, the low ones the tag.
 */
static inline uint64_t place_of(enum slot_kind kind, uint32_t owner, uint64_t hash)
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

/* Returns the top bits of the bytes that are 0, and perhaps of some bytes above one of them. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE) & ~word & EACH_TOP;
}

/* Returns the slot of a text, NULL if there is none. */
static inline const struct index_slot *find_slot(const struct index *index, enum slot_kind kind,
                                                 uint32_t owner, struct weir_text text,
                                                 uint64_t hash)
{
    uint64_t place = place_of(kind, owner, hash);
    for (size_t group = group_of(index, place);; group = next_group(index, group)) {
        uint64_t tags = load_le64(index->tags + group * GROUP);
        uint64_t same = zero_bytes(tags ^ tag_of(place) * EACH_BYTE);
        for (; same != 0; same &= same - 1) {
            const struct index_slot *s =
                &index->slots[group * GROUP + (size_t)__builtin_ctzll(same) / 8];
            if (s->owner == owner && s->kind == kind &&
                text_equal(text_at(index, s->at, s->len), text)) {
                return s;
            }
        }
        if ((~tags & EACH_TOP) != 0) {
            return NULL; /* the text would be in the free slot */
        }
    }
}

#endif
