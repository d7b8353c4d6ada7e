/* Finds limits in an index; index_parts.h describes its layout. */
#include "rules/compiled/index.h"

#include "rules/compiled/index_parts.h"
#include "rules/value/pattern.h"

static inline void set_bits(const struct index *index, struct limit_list list,
                            struct index_found *found)
{
    while (list.limit != NONE) {
        index_found_set(found, list.limit);
        if (list.next == 0) {
            return;
        }
        list = index->more[list.next];
    }
}

static inline void find_value(const struct index *index, unsigned attribute, struct weir_text value,
                              uint64_t hash, struct index_found *found)
{
    const struct index_slot *s = find_slot(index, VALUE, attribute, value, hash);
    if (s != NULL) {
        set_bits(index, s->found, found);
    }
}

void index_find_value(const struct index *index, unsigned attribute, struct weir_text value,
                      struct index_found *found)
{
    find_value(index, attribute, value, hash_text(index, value), found);
}

/* ---- segments ----
 *
 * Segments are cut and hashed by words of eight bytes, up to 16 bytes without a branch on the
 * length: the length of the next segment is hard to predict, and a misprediction takes longer than
 * all the rest.
 */

#define WORD 8

/* A position of a walk: before segment `i`, which begins at byte `at`. */
struct position {
    uint32_t i;
    uint32_t at;
};

struct segment {
    uint64_t hash;
    uint32_t at;
    uint32_t len;
};

/* The segments that a walk has reached. The last entry is reused for all that are deeper. */
struct walk {
    const struct index *index;
    struct weir_text path;
    struct index_found *found;
    uint32_t known;
    struct segment segments[INDEX_DEPTH + 1];
};

/* Returns eight bytes from `at` on, with 0 for those after the end. The path has at least eight. */
static inline uint64_t load_within(struct weir_text path, size_t at)
{
    size_t from = min_u64(at, path.len - WORD);
    size_t beyond = at - from;
    uint64_t word = load_le64((const unsigned char *)path.at + from);
    return beyond < WORD ? word >> 8 * beyond : 0;
}

/* Returns the first n bytes of a word; all of them if n is 8 or more. */
static inline uint64_t keep_bytes(uint64_t word, size_t n)
{
    return n == 0 ? 0 : word & UINT64_MAX >> (64 - 8 * min_u64(n, WORD));
}

/*
 * Returns the number of bytes before the first slash, 8 if there is none. The lowest bit that
 * zero_bytes() sets is always that of a slash.
 */
static inline size_t slash_in(uint64_t word)
{
    uint64_t slashes = zero_bytes(word ^ '/' * EACH_BYTE);
    return slashes != 0 ? (size_t)__builtin_ctzll(slashes) / 8 : WORD;
}

static void cut_long(const struct walk *w, struct segment *s)
{
    struct weir_text segment = text_before(text_after(w->path, s->at), '/');
    s->len = (uint32_t)segment.len;
    s->hash = hash_text(w->index, segment);
}

static inline void cut(const struct walk *w, struct segment *s)
{
    if (w->path.len < WORD) {
        cut_long(w, s);
        return;
    }
    uint64_t first = load_within(w->path, s->at);
    uint64_t second = load_within(w->path, s->at + WORD);
    size_t len = slash_in(first);
    len += len == WORD ? slash_in(second) : 0;
    len = min_u64(len, w->path.len - s->at);
    if (len == 2 * WORD) {
        cut_long(w, s);
        return;
    }
    s->len = (uint32_t)len;
    s->hash = hash_word(w->index, hash_begin(w->index, len), keep_bytes(first, len));
    s->hash = hash_word(w->index, s->hash, keep_bytes(second, len > WORD ? len - WORD : 0));
}

static inline const struct segment *segment_at(struct walk *w, struct position p)
{
    if (p.i < w->known) {
        return &w->segments[p.i];
    }
    struct segment *s = &w->segments[w->known];
    w->known += w->known < INDEX_DEPTH;
    *s = (struct segment){.at = p.at};
    cut(w, s);
    return s;
}

/* ---- the walk ---- */

static void visit(struct walk *w, uint32_t number, struct position p);

/* Returns the last dot and what follows it; empty if there is none. */
static struct weir_text extension_of(struct weir_text segment)
{
    const char *dot = memrchr(segment.at, '.', segment.len);
    size_t before = dot != NULL ? (size_t)(dot - segment.at) : segment.len;
    return text_after(segment, before);
}

static inline void visit_child(struct walk *w, enum slot_kind kind, uint32_t number,
                               struct weir_text text, uint64_t hash, struct position next)
{
    const struct index_slot *s = find_slot(w->index, kind, number, text, hash);
    if (s != NULL) {
        visit(w, s->found.limit, next);
    }
}

static void visit_mixed(struct walk *w, uint32_t first, struct weir_text text, struct position next)
{
    const struct link *l;
    for (uint32_t i = first; i != 0; i = l->next) {
        l = &w->index->links[i];
        if (segment_match(text_at(w->index, l->at, l->len), text)) {
            visit(w, l->number, next);
        }
    }
}

static void visit_extension(struct walk *w, uint32_t number, struct weir_text text,
                            struct position next)
{
    struct weir_text extension = extension_of(text);
    if (extension.len != 0) {
        visit_child(w, EXTENSION, number, extension, hash_text(w->index, extension), next);
    }
}

/* Visits the children of a node that match the segment at p; returns the position after it. */
static inline struct position step(struct walk *w, uint32_t number, struct position p)
{
    const struct index_node *node = &w->index->nodes[number];
    const struct segment *s = segment_at(w, p);
    struct weir_text text = {w->path.at + s->at, s->len};
    struct position next = {p.i + 1, p.at + s->len + 1};
    if (node->literal != 0) {
        visit_child(w, LITERAL, number, text, s->hash, next);
    }
    if (node->star != 0) {
        visit(w, node->star, next);
    }
    if (node->extension != 0) {
        visit_extension(w, number, text, next);
    }
    if (node->mixed != 0) {
        visit_mixed(w, node->mixed, text, next);
    }
    return next;
}

static void compare_rest(struct walk *w, uint32_t first)
{
    const struct link *l;
    for (uint32_t i = first; i != 0; i = l->next) {
        l = &w->index->links[i];
        if (path_pattern_match(text_at(w->index, l->at, l->len), w->path)) {
            index_found_set(w->found, l->number);
        }
    }
}

/* Visits a node that the segments before p have led to. */
static void visit(struct walk *w, uint32_t number, struct position p)
{
    const struct index_node *node = &w->index->nodes[number];
    set_bits(w->index, node->tail, w->found);
    if (node->rest != 0) {
        compare_rest(w, node->rest);
    }
    if (p.at >= w->path.len) {
        set_bits(w->index, node->here, w->found);
        return;
    }
    (void)step(w, number, p);
    if (node->any != 0) {
        while (p.at < w->path.len) {
            p = step(w, node->any, p);
        }
    }
}

static uint64_t hash_path(const struct index *index, struct weir_text path)
{
    if (path.len < 2 * WORD) {
        return hash_text(index, path);
    }
    uint64_t h = hash_begin(index, path.len);
    size_t at = 0;
    for (; path.len - at > 2 * WORD; at += WORD) {
        h = hash_word(index, h, load_le64((const unsigned char *)path.at + at));
    }
    h = hash_word(index, h, load_within(path, at));
    return hash_word(index, h, load_within(path, at + WORD));
}

void index_find_path(const struct index *index, struct weir_text path, struct index_found *found)
{
    find_value(index, INDEX_PATH, path, hash_path(index, path), found);
    if (index->has_patterns) {
        struct walk w; /* not cleared: that would take longer than the walk */
        w.index = index;
        w.path = path;
        w.found = found;
        w.known = 0;
        visit(&w, 0, (struct position){0, 1});
    }
}
